"""``lm-eval-bias``: finds a command's module, parses its arguments, runs it, and reports errors in one line."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lm_eval_bias import __version__
from lm_eval_bias.errors import BiasError, Parser, printable
from lm_eval_bias.files import is_full, why

if TYPE_CHECKING:
    from lm_eval_bias.benchmark import Command

# the commands that serve every benchmark, each in the module of this folder with its name
_COMMANDS = {
    "run": "evaluate a model, with all flags of the harness's own run",
    "compare": "compare models, forms, languages or instructions, with intervals and p-values",
    "report": "write a report on runs (HTML, Markdown, CSV, LaTeX or JSON)",
    "agree": "correlate scores across models: which benchmarks, forms and languages agree",
    "leaderboard": "list all runs in a folder beside the published models",
    "explain": "explain one score: its meaning, worst groups, items, and what would change the verdict",
    "export": "write runs in other formats: Every Eval Ever, model cards, trackers, evidence for auditors",
    "check": "check a run's scores against the bounds of a policy; exit status 1 if one is violated",
    "train-nsp": "train a causal or T5 model to judge whether one sentence follows another (for --model hf-nsp)",
    "ls": "list tasks and groups and what they measure",
    "path": "print the task folder, for lm_eval --include_path",
    "link": "make the tasks available to plain 'lm_eval --tasks occugender'",
    "unlink": "remove what link wrote, and nothing else",
    "doctor": "check the versions, the link and the data",
    "fetch": "download and verify the pinned data",
    "rescore": "recompute every score from saved samples, without the model",
}
_EPILOG = """examples:
  lm-eval-bias ls
  lm-eval-bias run --tasks occugender,gg_bbq --model hf --model_args pretrained=gpt2
  lm-eval-bias rescore results/ --words pronouns
  lm_eval --include_path "$(lm-eval-bias path)" --tasks occugender --model hf ...
"""


class _Formatter(argparse.HelpFormatter):
    """Wraps descriptions, and keeps the lines of examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def _benchmark_commands() -> Sequence[Command]:
    """The commands that serve one benchmark, in modules of its folder."""
    from lm_eval_bias import registry

    return [command for benchmark in registry.benchmarks() for command in benchmark.commands]


def _parser() -> argparse.ArgumentParser:
    """Of all commands' names: it knows none of their arguments."""
    parser = Parser(
        prog="lm-eval-bias",
        description="Published bias benchmarks for EleutherAI's lm-evaluation-harness.",
        epilog=_EPILOG,
        formatter_class=_Formatter,
    )
    parser.add_argument("--version", action="version", version=f"lm-eval-bias {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, purpose in _purposes().items():
        commands.add_parser(name, help=purpose, add_help=False)
    return parser


def _purposes() -> dict[str, str]:
    """What each command is for."""
    return _COMMANDS | {command.name: command.help for command in _benchmark_commands()}


def _module(name: str) -> str | None:
    """Where a command lies; ``None`` for what is none."""
    if name == "run":
        return "lm_eval_bias.cli.run"
    if name in _COMMANDS:
        return f"lm_eval_bias.cli.{name.replace('-', '_')}"
    return next((command.module for command in _benchmark_commands() if command.name == name), None)


def _run(argv: Sequence[str]) -> int:
    name = _module(argv[0]) if argv else None
    if name is None:  # --help, --version or a mistake: this exits, but for a command behind --
        return _run([_parser().parse_args(argv).command])
    if argv[0] == "run":
        os.environ.setdefault("TQDM_DELAY", "1")  # read at tqdm's import: no bars for what takes less than a second
    module = importlib.import_module(name)
    if argv[0] == "run":
        return int(module.main(argv[1:]))  # the harness's parser parses
    parser = Parser(prog=f"lm-eval-bias {argv[0]}", formatter_class=_Formatter, allow_abbrev=False)
    module.add_arguments(parser)
    if parser.description is None:
        purpose = (_COMMANDS.get(argv[0]) or _purposes()[argv[0]]).rstrip(".")
        parser.description = f"{purpose[:1].upper()}{purpose[1:]}."
    return int(module.run(parser.parse_args(argv[1:])))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status (2 for bad usage, input or data, with one line on standard error)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    # closed by who called (>&-): Python would print errors where the output belongs, and nothing else can be written to
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files can be any bytes, as in error messages
    try:
        _check_current_folder()
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except BiasError as error:
        _report(f"error: {printable(error)}")
        return 2
    except RecursionError:
        _report("error: the input is nested too deeply to be read")
        return 2
    except MemoryError:
        _report("error: not enough memory for this input")
        return 2
    except BrokenPipeError:
        _drop_output()
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        _report("interrupted")
        return 130
    except Exception as error:
        if not is_full(error):
            raise
        place = "standard output" if _drop_output() else getattr(error, "filename", None) or "standard output or a file"
        _report(f"error: {printable(f'{place} cannot be written: {why(error)}')}")
        return 2


def _check_current_folder() -> None:
    """Refuse to work in a folder that was deleted: no path can be resolved there, and torch's libraries abort.

    Raises:
        BiasError: It was.
    """
    try:
        os.getcwd()
    except OSError as error:
        raise BiasError(
            f"the current folder is gone or can't be read ({why(error)}): change to another folder"
        ) from error


def _drop_output() -> bool:
    """Close standard output if it can't be written, so that Python doesn't try again at the end; whether it can't."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            sys.stdout.close()
        return True
    return False


def _report(message: str) -> None:
    """Print a line of its own: progress bars that were under way end theirs first."""
    if "tqdm" in sys.modules:
        bars = getattr(sys.modules["tqdm"].tqdm, "_instances", ())
        for bar in list(bars):
            bar.close()
    print(f"lm-eval-bias: {message}", file=sys.stderr)
