"""The commands to set up: ``fetch``, ``link``, ``path`` and ``doctor``, a class each."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator

from lm_eval_bias.core import __version__, catalog, registry
from lm_eval_bias.core.benchmark import folder_of
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import tasks_path


class Fetch:
    """Downloads and verifies the pinned data."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Add what the command understands."""
        parser.add_argument(
            "names",
            nargs="*",
            metavar="NAME",
            help="data sets or files to download (default: all)",
        )

    @staticmethod
    def run(arguments: argparse.Namespace) -> int:
        """Fetch, and print where each file lies."""
        from lm_eval_bias.data import sources

        for source, path in sources.fetch(arguments.names):
            print(
                f"{source.name}: {source.size:,} bytes, SHA-256 verified, {source.licence}\n  {path}"
            )
        return 0


class Link:
    """Lets plain ``lm_eval --tasks occugender`` find the tasks."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Add what the command understands."""
        parser.add_argument(
            "--remove",
            action="store_true",
            help="remove what link wrote, and nothing else",
        )

    @staticmethod
    def run(arguments: argparse.Namespace) -> int:
        """Link, unless the harness finds the tasks by itself, or remove the links."""
        from lm_eval_bias.harness import linking

        if arguments.remove:
            removed = linking.unlink()
            print(f"{removed} stubs removed." if removed else "Nothing was linked.")
        elif not linking.missing_folders():
            print(
                "Nothing to link: this version of the harness reads entry points, so 'lm_eval --tasks occugender' "
                "works without a link."
            )
        else:
            number = linking.link()
            print(
                f"{number} stubs written to {linking.folder()}; 'lm_eval --tasks occugender' works now."
            )
        return 0


class TaskPath:
    """Prints the task folder, for ``lm_eval --include_path``."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Add what the command understands."""
        text = "print the folder of this benchmark alone, which may come from another distribution"
        parser.add_argument("benchmark", nargs="?", metavar="BENCHMARK", help=text)

    @staticmethod
    def run(arguments: argparse.Namespace) -> int:
        """Print the folder."""
        print(
            tasks_path()
            if arguments.benchmark is None
            else folder_of(registry.get(arguments.benchmark))
        )
        return 0


class Doctor:
    """Checks versions, link and data, or one benchmark."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Add what the command understands."""
        parser.add_argument(
            "--benchmark",
            metavar="NAME",
            help="check this benchmark instead, with random and planted answers: files, documents, names, scores, "
            "pages",
        )

    @staticmethod
    def run(arguments: argparse.Namespace) -> int:
        """Print what was found; status 1 where something is a problem."""
        name = arguments.benchmark
        findings = list(
            examine_installation() if name is None else examine_benchmark(name)
        )
        for status, text in findings:
            print(f"{status:8} {text}")
        return 1 if any(status == "problem" for status, _ in findings) else 0


def examine_installation() -> Iterator[tuple[str, str]]:
    """Find out about versions, link and data: ``ok``, ``note`` (worth knowing) or ``problem``, and what was found."""
    from lm_eval_bias.harness import registration

    entries = catalog.packaged()
    tasks = sum(entry.kind == "task" for entry in entries.values())
    yield (
        "ok",
        f"lm-eval-bias {__version__}: {tasks} tasks, {len(entries) - tasks} groups",
    )
    yield "ok", f"python {platform.python_version()}"
    yield from map(registration.examine, registration.SUPPORTED)
    if names := registration.model_types():
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
    if not linking.missing_folders():
        leftover = (
            "; 'lm-eval-bias link --remove' removes what an earlier link wrote"
            if stubs
            else ""
        )
        works = "plain 'lm_eval --tasks occugender' works, because this version of the harness reads entry points"
        return "ok", f"link not needed: {works}{leftover}"
    if problem := linking.problem():
        return "problem", f"link: {problem}"
    if stubs:
        return (
            "ok",
            f"linked: plain 'lm_eval --tasks occugender' works ({len(stubs)} stubs in {linking.folder()})",
        )
    return (
        "ok",
        "not linked: use 'lm-eval-bias run' or --include_path, or run 'lm-eval-bias link' once",
    )


def _examine_data() -> tuple[str, str]:
    from lm_eval_bias.data import sources

    files = list(sources.manifest().files.values())
    if (local := sources.mirror()) is not None:
        for source in files:
            sources.locate(source.name)
        return (
            "ok",
            f"data: local mirror {local}, all {len(files)} files verified (LM_EVAL_BIAS_DATA)",
        )
    cached = sum(map(sources.is_cached, files))
    rest = "the rest is downloaded on first use ('lm-eval-bias fetch' does it now)"
    return (
        "ok",
        f"data: {cached} of {len(files)} files verified in {sources.cache_dir()}; {rest}",
    )


def examine_benchmark(name: str) -> list[tuple[str, str]]:
    """Find out what is wrong with a benchmark, a finding each, and what was checked.

    Raises:
        BiasError: There is none of that name.
    """
    from lm_eval_bias.evaluation.benchmark_checks import Examination

    found = Examination(name)
    checked = (
        "ok",
        f"{found.family.name}: no mistake found; tasks that were run: {len(found.scores)}",
    )
    problems = [("problem", text) for text in found.mistakes]
    return [*(("note", text) for text in found.notes), *(problems or [checked])]
