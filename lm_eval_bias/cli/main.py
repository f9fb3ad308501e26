"""``lm-eval-bias``: the entry point, which finds a command's function, calls it, and reports errors in one line."""

from __future__ import annotations

import contextlib
import gc
import inspect
import io
import os
import pkgutil
import sys
import traceback
import warnings
from collections.abc import Sequence

from lm_eval_bias.cli import signatures
from lm_eval_bias.core import __version__, redaction
from lm_eval_bias.core.benchmark import Command
from lm_eval_bias.core.errors import (
    FAULTS,
    BadOption,
    BenchmarkFault,
    BiasError,
    did_you_mean,
    printable,
)
from lm_eval_bias.core.files import is_full, why
from lm_eval_bias.core.safe_stream import safe_streams

_COMMANDS = {
    "every day": "main:run ls:ls reports:report reports:compare check:check",
    "with saved runs": "reports:methods reports:cite answers:items answers:rescore answers:answers "
    "reports:leaderboard",
    "to set up": "setup:fetch setup:link setup:path setup:doctor new:new",
}
_OF_MODELS = {
    "nsp train": Command(
        "train",
        "train a next-sentence head for --model hf-nsp",
        "lm_eval_bias.cli.train_nsp:train",
    )
}
_EXAMPLES = """'lm-eval-bias COMMAND --help' lists the flags of a command.

examples:
  lm-eval-bias run --tasks occugender,gg_bbq --model hf --model_args pretrained=gpt2
  lm-eval-bias report results/ -o report.html
  lm_eval --include_path "$(lm-eval-bias path)" --tasks occugender --model hf ...
"""


def run(argv: Sequence[str]) -> int:
    """Evaluate a model, with all flags of the harness's own run."""
    from lm_eval_bias.cli import run as harness_run

    return harness_run.main(list(argv))


def _named(places: str) -> dict[str, str]:
    """Return the address of each command's function by the command's name."""
    return {
        place.partition(":")[2]: f"lm_eval_bias.cli.{place}" for place in places.split()
    }


def verbs() -> dict[str, str]:
    """Return the address of each function that is a command for all benchmarks."""
    return _named(" ".join(_COMMANDS.values()))


def special_commands() -> dict[str, Command]:
    """List the commands of one benchmark or model family, under its name: ``stereoset translate``."""
    from lm_eval_bias.core import registry

    commands = {
        f"{benchmark.name} {command.name}": command
        for benchmark, command in registry.extensions(Command)
    }
    return commands | _OF_MODELS


def _help() -> str:
    lines = [
        "usage: lm-eval-bias COMMAND ...",
        "",
        "Published bias benchmarks for EleutherAI's lm-evaluation-harness.",
    ]
    for title, places in _COMMANDS.items():
        lines += ["", f"{title}:"]
        for name, address in _named(places).items():
            text = inspect.getdoc(pkgutil.resolve_name(address)) or ""
            purpose = text.partition("\n")[0].rstrip(".")
            lines.append(f"  {name:22} {purpose[:1].lower()}{purpose[1:]}")
    lines += ["", "for one benchmark or model family:"]
    for name, command in special_commands().items():
        lines.append(f"  {name:22} {command.help}")
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
    address = verbs().get(first)
    if address is None:
        special = special_commands()
        of_family = [other for other in special if other.startswith(f"{first} ")]
        if of_family and argv[1:] in ([], ["-h"], ["--help"]):
            for other in of_family:
                print(f"lm-eval-bias {other:22} {special[other].help}")
            return 0 if argv[1:] else 2
        name = " ".join(argv[:2])
        if name not in special:
            given = name if of_family else first
            hint = did_you_mean(given, [*verbs(), *special])
            wrong = (
                f"there is no command {given!r}." if first else "no command is given."
            )
            raise BiasError(f"{wrong}{hint} 'lm-eval-bias --help' lists all")
        address = special[name].function
    rest = argv[len(name.split()) :]
    if name in ("run", "doctor"):
        # read when tqdm is imported: no bars for what takes less than a second
        os.environ.setdefault("TQDM_DELAY", "1")
    if name == "run":
        return run(rest)  # the harness's parser parses
    gc.set_threshold(100_000)  # what a command reads, it needs to its end
    function = pkgutil.resolve_name(address)
    parser, call = signatures.command(function, f"lm-eval-bias {name}")
    return call(parser.parse_args(rest)) or 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status (2 for bad usage, input or data, with one line on standard error).

    Benchmarks that failed and so are left out are listed on standard error; then the status is 2, too.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    warnings.simplefilter("ignore", BenchmarkFault)  # they are listed at the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        # names of files can be any bytes, as in error messages
        sys.stdout.reconfigure(errors="backslashreplace")
    with safe_streams():
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
        message = error.in_shell if isinstance(error, BadOption) else error
        _report(f"error: {printable(message)}")
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
        message = traceback.format_exc()
        if not is_full(error):
            if redaction.masked(message) == message:
                raise
            _report(message)
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
