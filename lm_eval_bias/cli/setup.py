"""The commands to set up: ``fetch``, ``link``, ``path`` and ``doctor``."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Sequence

from lm_eval_bias.core import __version__, catalog, registry
from lm_eval_bias.core.benchmark import folder_of
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import tasks_path

Finding = tuple[str, str]  # ok, note or problem, and a line


def fetch(names: Sequence[str] = ()) -> None:
    """Download and verify the pinned data.

    Args:
        names (NAME): data sets or files to download (default: all)
    """
    from lm_eval_bias.data import sources

    for source, path in sources.fetch(names):
        print(
            f"{source.name}: {source.size:,} bytes, SHA-256 verified, {source.licence}\n  {path}"
        )


def link(*, remove: bool = False, outside: bool = False) -> None:
    """Let plain 'lm_eval --tasks occugender' find the tasks.

    Args:
        remove: remove what link wrote, and nothing else
        outside: write into an lm_eval outside of this environment, too
    """
    from lm_eval_bias.harness import linking

    if remove:
        removed = linking.unlink()
        print(f"{removed} stubs removed." if removed else "Nothing was linked.")
    elif not linking.missing_folders():
        print(
            "Nothing to link: this version of the harness reads entry points, so 'lm_eval --tasks occugender' "
            "works without a link."
        )
    else:
        elsewhere = linking.outside()
        if elsewhere and not outside:
            raise BiasError(elsewhere)
        print(f"Linking in {linking.folder()}", flush=True)
        number = linking.link()
        print(
            f"{number} stubs written; 'lm_eval --tasks occugender' works now. Before "
            "'pip uninstall lm-eval-bias', run 'lm-eval-bias link --remove'"
        )


def path(benchmark: str | None = None) -> None:
    """Print the task folder, for lm_eval --include_path.

    Args:
        benchmark (BENCHMARK): print the folder of this benchmark alone, which may come from another distribution
    """
    print(tasks_path() if benchmark is None else folder_of(registry.get(benchmark)))


def doctor(*, benchmark: str | None = None) -> int:
    """Check the versions, the link and the data.

    Args:
        benchmark (NAME): check this benchmark instead, with random and synthetic answers: files, documents, names,
            scores, pages
    """
    from lm_eval_bias.evaluation import benchmark_checks

    found = set()
    examine = benchmark_checks.examine
    for status, text in examine(benchmark) if benchmark else examine_installation():
        print(f"{status:8} {text}")
        found.add(status)
    return int("problem" in found)


def examine_installation() -> Iterator[Finding]:
    """Check versions, link and data; yield ``ok``, ``note`` (worth knowing) or ``problem``, each with a line."""
    for look in (_versions, _model_types, _link, _data):
        try:
            yield from look()
        except BiasError as error:
            yield "problem", str(error)


def _versions() -> Iterator[Finding]:
    from lm_eval_bias.harness import registration

    kinds = Counter(entry.kind for entry in catalog.packaged().values())
    counts = f"{kinds['task']} tasks, {kinds['group']} groups"
    yield "ok", f"lm-eval-bias {__version__}: {counts}"
    yield "ok", f"python {platform.python_version()}"
    yield from map(registration.examine, registration.SUPPORTED)


def _model_types() -> Iterator[Finding]:
    from lm_eval_bias.harness import registration

    names = registration.model_types()
    if not names:
        raise BiasError(
            "no model types added, because the package is not installed: run 'pip install -e .' in its folder"
        )
    yield "ok", f"model types added: {', '.join(names)}"


def _link() -> Iterator[Finding]:
    from lm_eval_bias.harness import linking

    problem = linking.stale_links()
    stubs = linking.stubs()
    if problem:
        yield "problem", f"link: {problem}"
    elif stubs:
        remove = "run 'lm-eval-bias link --remove' before you uninstall"
        yield "ok", f"linked: {len(stubs)} stubs in {linking.folder()}: {remove}"
    elif linking.missing_folders():
        text = (
            "use 'lm-eval-bias run' or --include_path, or run 'lm-eval-bias link' once"
        )
        yield "ok", f"not linked: {text}"
    else:
        yield "ok", "link not needed: this version of the harness reads entry points"


def _data() -> Iterator[Finding]:
    from lm_eval_bias.data import sources

    files = sources.manifest().files
    place = sources.mirror() or sources.cache_dir()
    if sources.mirror():
        cached = len(list(map(sources.locate, files)))
    else:
        cached = sum(map(sources.is_cached, files.values()))
    text = f"data: {cached} of {len(files)} files verified in {place}"
    yield (
        "ok",
        f"{text}; the rest is downloaded on first use ('lm-eval-bias fetch' does it now)",
    )
