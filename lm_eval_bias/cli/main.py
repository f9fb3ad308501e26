"""``lm-eval-bias``: the entry point, which finds a command's module, runs it, and reports errors in one line."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import pkgutil
import sys
import traceback
import warnings
from collections.abc import Sequence

from lm_eval_bias.cli.output import Parser
from lm_eval_bias.core import __version__, redaction
from lm_eval_bias.core.benchmark import Command
from lm_eval_bias.core.errors import (
    FAULTS,
    BenchmarkFault,
    BiasError,
    did_you_mean,
    printable,
)
from lm_eval_bias.core.files import is_full, why
from lm_eval_bias.core.printed import door

_VERBS = {
    "every day": {
        "run": "evaluate a model, with all flags of the harness's own run",
        "ls": "list tasks, scores and suites, or print a benchmark's card",
        "report": "write a page on runs, or tables for papers and programs",
        "compare": "test whether models, languages or instructions differ",
        "plan": "say which differences a run could find",
        "check": "check scores against the bounds of a policy",
    },
    "with saved runs": {
        "methods": "write the methods paragraphs of a paper on runs",
        "cite": "write BibTeX of what runs rest on",
        "show": "print one item as it was asked and answered",
        "items": "write a task's items with prompts and answers",
        "rescore": "recompute every score from saved samples, without the model",
        "answers": "write a run's answers without its texts, to pass them on",
        "leaderboard": "list runs beside the models in the published papers",
    },
    "to set up": {
        "fetch": "download and verify the pinned data",
        "link": "let plain 'lm_eval --tasks occugender' find the tasks",
        "path": "print the task folder, for lm_eval --include_path",
        "doctor": "check the versions, the link and the data",
        "new": "write a package with a benchmark of one's own",
    },
}
_SHARED = {
    "items": "items:Items",
    "show": "items:Show",
    "fetch": "setup:Fetch",
    "link": "setup:Link",
    "path": "setup:TaskPath",
    "doctor": "setup:Doctor",
}
_MODEL_COMMANDS = {
    "nsp train": Command(
        "train",
        "train a next-sentence head for --model hf-nsp",
        "lm_eval_bias.cli.train_nsp",
    )
}
_EXAMPLES = """'lm-eval-bias COMMAND --help' lists the flags of a command.

examples:
  lm-eval-bias run --tasks occugender,gg_bbq --model hf --model_args pretrained=gpt2
  lm-eval-bias report results/ -o report.html
  lm_eval --include_path "$(lm-eval-bias path)" --tasks occugender --model hf ...
"""


class _Formatter(argparse.HelpFormatter):
    """A formatter that wraps descriptions and keeps the lines of examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def verbs() -> dict[str, Command]:
    """List the commands for all benchmarks; each has a module in this folder, which some share."""
    return {
        name: Command(name, purpose, f"lm_eval_bias.cli.{_SHARED.get(name, name)}")
        for group in _VERBS.values()
        for name, purpose in group.items()
    }


def special_commands() -> dict[str, Command]:
    """List the commands of one benchmark or model family, under its name: ``stereoset translate``."""
    from lm_eval_bias.core import registry

    commands = {
        f"{benchmark.name} {command.name}": command
        for benchmark, command in registry.extensions(Command)
    }
    return commands | _MODEL_COMMANDS


def parser(name: str, command: Command) -> argparse.ArgumentParser:
    """Make the parser of a command.

    Args:
        name: As it is typed: ``ls``, ``stereoset translate``.
        command: The command.
    """
    module = pkgutil.resolve_name(command.module)
    if name == "run":
        made: argparse.ArgumentParser = module.parser()  # the harness's own
        return made
    made = Parser(
        prog=f"lm-eval-bias {name}", formatter_class=_Formatter, allow_abbrev=False
    )
    module.add_arguments(made)
    made.description = (
        made.description or f"{command.help[:1].upper()}{command.help[1:]}."
    )
    return made


def _help() -> str:
    special = {name: command.help for name, command in special_commands().items()}
    groups = {**_VERBS, "for one benchmark or model family": special}
    lines = [
        "usage: lm-eval-bias COMMAND ...",
        "",
        "Published bias benchmarks for EleutherAI's lm-evaluation-harness.",
    ]
    for title, commands in groups.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:22} {purpose}" for name, purpose in commands.items()]
    return "\n".join([*lines, "", _EXAMPLES])


def _run(argv: Sequence[str]) -> int:
    first = argv[0] if argv else ""
    if first in ("-h", "--help"):
        print(_help(), end="")
        return 0
    if first == "--version":
        print(f"lm-eval-bias {__version__}")
        return 0
    name = first
    command = verbs().get(first)
    if command is None:
        special = special_commands()
        of_family = [other for other in special if other.startswith(f"{first} ")]
        if of_family and argv[1:] in ([], ["-h"], ["--help"]):
            for other in of_family:
                print(f"lm-eval-bias {other:22} {special[other].help}")
            return 0 if argv[1:] else 2
        name = " ".join(argv[:2])
        command = special.get(name)
        if command is None:
            given = name if of_family else first
            hint = did_you_mean(given, [*verbs(), *special])
            wrong = (
                f"there is no command {given!r}." if first else "no command is given."
            )
            raise BiasError(f"{wrong}{hint} 'lm-eval-bias --help' lists all")
    rest = argv[len(name.split()) :]
    if name in ("run", "doctor"):
        # read when tqdm is imported: no bars for what takes less than a second
        os.environ.setdefault("TQDM_DELAY", "1")
    module = pkgutil.resolve_name(command.module)
    if name == "run":
        return int(module.main(rest))  # the harness's parser parses
    return int(module.run(parser(name, command).parse_args(rest)))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status (2 for bad usage, input or data, with one line on standard error).

    Benchmarks that failed and so are left out are listed on standard error; then the status is 2, too.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    warnings.simplefilter("ignore", BenchmarkFault)  # they are listed at the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        # names of files can be any bytes, as in error messages
        sys.stdout.reconfigure(errors="backslashreplace")
    with door():
        redaction.learn(arguments)
        status = _guarded(arguments)
        for text in FAULTS:
            _report(f"warning: {printable(text)}")
    return status or (2 if FAULTS else 0)


def _guarded(arguments: Sequence[str]) -> int:
    """Run a command; report any error in one line on standard error."""
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except BiasError as error:
        _report(f"error: {printable(error)}")
        return 2
    except RecursionError:
        _report("error: the input is nested too deeply to be read")
        return 2
    except BrokenPipeError:
        _drop_output()
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        _report("interrupted")
        return 130
    except Exception as error:
        said = traceback.format_exc()
        if not is_full(error):
            if redaction.masked(said) == said:
                raise
            _report(said)
            return 1
        place = getattr(error, "filename", None) or "standard output or a file"
        if _drop_output():
            place = "standard output"
        text = f"{place} cannot be written: {why(error)}"
        _report(f"error: {printable(text)}")
        return 2


def _drop_output() -> bool:
    """Close standard output if it can't be written, so that Python doesn't try again at exit; tell whether it can't."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            sys.stdout.close()
        return True
    return False


def _report(message: str) -> None:
    """Print a line of its own, after the ends of progress bars that were under way."""
    if "tqdm" in sys.modules:
        bars = getattr(sys.modules["tqdm"].tqdm, "_instances", ())
        for bar in list(bars):
            bar.close()
    print(f"lm-eval-bias: {message}", file=sys.stderr)
