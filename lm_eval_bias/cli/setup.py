"""The commands to set up: ``fetch``, ``link``, ``path`` and ``doctor``."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence

from lm_eval_bias.core import __version__, catalog, registry
from lm_eval_bias.core.benchmark import folder_of
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import tasks_path


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
        benchmark (NAME): check this benchmark instead, with random and planted answers: files, documents, names,
            scores, pages
    """
    if benchmark is None:
        findings = examine_installation()
    else:
        findings = examine_benchmark(benchmark)
    is_sound = True
    for status, text in findings:
        print(f"{status:8} {text}")
        is_sound &= status != "problem"
    return 0 if is_sound else 1


def examine_installation() -> Iterator[tuple[str, str]]:
    """Check versions, link and data; yield ``ok``, ``note`` (worth knowing) or ``problem``, each with a line."""
    from lm_eval_bias.harness import registration

    entries = catalog.packaged()
    tasks = sum(entry.kind == "task" for entry in entries.values())
    yield (
        "ok",
        f"lm-eval-bias {__version__}: {tasks} tasks, {len(entries) - tasks} groups",
    )
    yield "ok", f"python {platform.python_version()}"
    yield from map(registration.examine, registration.SUPPORTED)
    names = registration.model_types()
    if names:
        yield "ok", f"model types added: {', '.join(names)}"
    else:
        text = "no model types added, because the package is not installed: run 'pip install -e .' in its folder"
        yield "problem", text
    for examine in (_examine_link, _examine_data):
        try:
            yield examine()
        except BiasError as error:
            yield "problem", str(error)


def _examine_link() -> tuple[str, str]:
    from lm_eval_bias.harness import linking

    stubs = linking.stubs()
    problem = linking.stale_links()
    if problem:
        return "problem", f"link: {problem}"
    works = "plain 'lm_eval --tasks occugender' works"
    text = "not linked: use 'lm-eval-bias run' or --include_path, or run 'lm-eval-bias link' once"
    if stubs:
        before = "run 'lm-eval-bias link --remove' before you uninstall"
        text = f"linked: {works} ({len(stubs)} stubs in {linking.folder()}; {before})"
    if not linking.missing_folders():
        text = f"link not needed: {works}, because this version of the harness reads entry points"
        if stubs:
            text += "; 'lm-eval-bias link --remove' removes what an earlier link wrote"
    return "ok", text


def _examine_data() -> tuple[str, str]:
    from lm_eval_bias.data import sources

    files = list(sources.manifest().files.values())
    local = sources.mirror()
    if local is not None:
        for source in files:
            sources.locate(source.name)
        text = (
            f"local mirror {local}, all {len(files)} files verified (LM_EVAL_BIAS_DATA)"
        )
        return "ok", f"data: {text}"
    cached = sum(map(sources.is_cached, files))
    text = f"data: {cached} of {len(files)} files verified in {sources.cache_dir()}"
    rest = "the rest is downloaded on first use ('lm-eval-bias fetch' does it now)"
    return "ok", f"{text}; {rest}"


def examine_benchmark(name: str) -> Iterator[tuple[str, str]]:
    """Check a benchmark; yield findings as :func:`examine_installation` does.

    Raises:
        BiasError: There is none of that name.
    """
    from lm_eval_bias.evaluation.benchmark_checks import Examination

    examination = Examination(name)
    for text in examination.notes:
        yield "note", text
    for text in examination.mistakes:
        yield "problem", text
    if not examination.mistakes:
        number = len(examination.scores)
        text = f"no mistake found; tasks that were run: {number}"
        yield "ok", f"{examination.family.name}: {text}"
