"""Words for what runs were made by. In come records; out go texts by the names of ``labels.yaml``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from importlib.metadata import PackageNotFoundError
from typing import Any

from lm_eval_bias.core import Data, comparability
from lm_eval_bias.core.comparability import shown
from lm_eval_bias.core.content_hashes import flat, of_files
from lm_eval_bias.core.run_data import Run, readable
from lm_eval_bias.core.run_record import RunRecord
from lm_eval_bias.runs import measurement

_NOT_SHOWN = ("file", "command", "made")  # they stand elsewhere
# how facts that aren't plain values are written, where there are any
_WRITTEN: Mapping[str, Callable[[Any], object]] = {
    "model_args": shown,
    "placement": shown,
    "template_arguments": shown,
    "weights": lambda proofs: "; ".join(map(" ".join, proofs.items())),
    "weight_files": lambda files: "; ".join(map(" ".join, flat(files))),
    "served": lambda names: f"{', '.join(names)} (not proven)",
    "cached": lambda cache: f"{cache.answers:,} of {cache.begun}",
    "machine": ", ".join,
    "tokenization_boundary": "; ".join,
    "sent": lambda options: "; ".join(map(json.dumps, options)),
    "gen_kwargs": json.dumps,
    "seeds": list,
    "data": lambda files: "; ".join(
        sorted({"/".join(f.split("/")[:2]) for f in files})
    ),
    "data_files": of_files,
}


def installed_from() -> tuple[str, str]:
    """Return the address, and the commit or the archive's hash, that this package was installed from (PEP 610).

    Both are empty where pip kept none.
    """
    with suppress(PackageNotFoundError):
        text = metadata.distribution("lm-eval-bias").read_text("direct_url.json")
        origin = json.loads(text or "{}")
        archive = origin.get("archive_info", {}).get("hash", "")
        return origin.get("url", ""), origin.get("vcs_info", {}).get(
            "commit_id", archive
        )
    return "", ""


def _of_record(record: RunRecord) -> Data:
    """Return the provenance facts of a file; ``None`` for unrecorded ones."""
    found: Data = {"data": record.files}
    for fact in comparability.facts().values():
        if not fact.field.startswith("task.") and fact.name not in _NOT_SHOWN:
            found[fact.name] = fact.of(record)
    for name, value in found.items():
        if not value:
            found[name] = None
        elif name in _WRITTEN:
            found[name] = _WRITTEN[name](value)
    return found


def _joined(values: list[object]) -> object:
    """Return the fact that all files of a run share, or list what they say."""
    if all(value == values[0] for value in values):
        return values[0]
    return "; ".join(dict.fromkeys(map(readable, values)))


def facts(run: Run) -> Data:
    """Return a run's provenance facts by the names of ``labels.yaml``; ``None`` for unrecorded ones."""
    records = [_of_record(record) for record in run.records or [RunRecord()]]
    found = {name: _joined([one[name] for one in records]) for name in records[0]}
    unproven = measurement.unproven_files(run)
    if unproven:
        found["unproven"] = "; ".join(unproven)
    return found
