"""The pinned data of tasks, for readers of a page."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias import catalog
from lm_eval_bias.data.sources import manifest


def are_of_harness(tasks: Sequence[str]) -> bool:
    """Whether tasks are all of the harness's own, whose data it downloads.

    Args:
        tasks: As of :func:`data_of`.
    """
    known = [catalog.entries().get(task.partition(" ")[0]) for task in tasks]
    return all(entry is not None and entry.path is None for entry in known)


def data_of(tasks: Sequence[str]) -> list[str]:
    """The pinned data of some tasks, one line per upstream revision.

    Args:
        tasks: Names, perhaps with a remark in brackets; unknown ones are passed over.
    """
    entries = catalog.entries()
    names = {entries[base].data for base in (task.partition(" ")[0] for task in tasks) if base in entries}
    files_by_source: dict[tuple[str, str, str], int] = {}
    for name in sorted(name for name in names if name):
        for source in manifest().resolve([name]):
            key = (source.repository, source.commit, source.licence)
            files_by_source[key] = files_by_source.get(key, 0) + 1
    return [
        f"{repository}, commit {commit[:12]}, {files} {'file' if files == 1 else 'files'}; licence: {licence}"
        for (repository, commit, licence), files in files_by_source.items()
    ]
