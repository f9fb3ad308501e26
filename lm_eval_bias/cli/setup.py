"""The commands to set up: ``fetch``, ``link``, ``path`` and ``doctor``, a class each."""

from __future__ import annotations

import argparse
import platform
from collections import Counter
from collections.abc import Iterator

from lm_eval_bias.core import __version__, catalog, registry
from lm_eval_bias.core.benchmark import folder_of
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import tasks_path

Finding = tuple[str, str]  # ok, note or problem, and a line


class Fetch:
    """The command that downloads and verifies the pinned data."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Describe the command to a parser."""
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
    """The command that lets plain ``lm_eval --tasks occugender`` find the tasks."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Describe the command to a parser."""
        parser.add_argument(
            "--remove",
            action="store_true",
            help="remove what link wrote, and nothing else",
        )
        parser.add_argument(
            "--outside",
            action="store_true",
            help="write into an lm_eval outside of this environment, too",
        )

    @staticmethod
    def run(arguments: argparse.Namespace) -> int:
        """Link, unless the harness finds the tasks by itself, or remove the links.

        Raises:
            BiasError: The harness lies elsewhere, or can't be written.
        """
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
            elsewhere = linking.outside()
            if elsewhere and not arguments.outside:
                raise BiasError(elsewhere)
            print(f"Linking in {linking.folder()}", flush=True)
            number = linking.link()
            print(
                f"{number} stubs written; 'lm_eval --tasks occugender' works now. Before "
                "'pip uninstall lm-eval-bias', run 'lm-eval-bias link --remove'"
            )
        return 0


class TaskPath:
    """The command that prints the task folder, for ``lm_eval --include_path``."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Describe the command to a parser."""
        text = "print the folder of this benchmark alone, which may come from another distribution"
        parser.add_argument("benchmark", nargs="?", metavar="BENCHMARK", help=text)

    @staticmethod
    def run(arguments: argparse.Namespace) -> int:
        """Print the folder."""
        if arguments.benchmark is None:
            print(tasks_path())
        else:
            print(folder_of(registry.get(arguments.benchmark)))
        return 0


class Doctor:
    """The command that checks versions, link and data, or one benchmark."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Describe the command to a parser."""
        parser.add_argument(
            "--benchmark",
            metavar="NAME",
            help="check this benchmark instead, with random and planted answers: files, documents, names, scores, "
            "pages",
        )

    @staticmethod
    def run(arguments: argparse.Namespace) -> int:
        """Print the findings; status 1 where one is a problem."""
        from lm_eval_bias.evaluation import benchmark_checks

        found = set()
        name = arguments.benchmark
        examined = benchmark_checks.examine(name) if name else examine_installation()
        for status, text in examined:
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
