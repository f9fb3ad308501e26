"""``lm-eval-bias run``: the harness's own ``run`` with our tasks, model types and suites."""

from __future__ import annotations

import argparse
import logging
import os

from lm_eval_bias import catalog
from lm_eval_bias.errors import BiasError, Parser, one_line
from lm_eval_bias.evaluation import evaluate, preflight, suites
from lm_eval_bias.harness import distributed, internals, versions
from lm_eval_bias.report import run_output

logger = logging.getLogger("lm_eval.bias")


def parser() -> argparse.ArgumentParser:
    """The harness's parser of ``run`` with all its flags, under our name."""
    run = internals.run_parser(Parser(prog="lm-eval-bias"))
    run.usage = "lm-eval-bias run --model <model> --tasks <task>,<task> --model_args <arg=value> [options]"
    run.description = (
        "Evaluate a model on the bias tasks of this package ('lm-eval-bias ls') and, in the same run, on any of the "
        "harness's own tasks. The flags under 'suites' and 'results' are this package's; all others are the harness's "
        "own."
    )
    run.epilog = (
        "examples:\n  lm-eval-bias run --tasks occugender,gg_bbq --model hf --model_args pretrained=gpt2\n"
        "  lm-eval-bias run --suite quick --model hf-packed --model_args pretrained=gpt2 --output_path OUT"
    )
    group = run.add_argument_group("suites", "in place of --tasks, --limit and --samples")
    group.add_argument(
        "--suite",
        metavar="<name>",
        help="Suite to run: "
        + "; ".join(f"{name} ({purpose})" for name, purpose in suites.PURPOSES.items())
        + " ('lm-eval-bias ls --suites' lists their tasks)",
    )
    results = run.add_argument_group("results", "how scores are printed")
    results.add_argument(
        "--table",
        choices=run_output.TABLES,
        default="main",
        help="Table to print after the scores in words: the main scores (main, the default), the harness's table of "
        "all scores with how to read them (all), or none",
    )
    return run


def _set_up_logging(verbosity: str | None) -> None:
    """Let through the harness's warnings and the little that this package has to say, unless more is asked for."""
    level = logging.getLevelName((verbosity or "WARNING").upper())
    if not isinstance(level, int):
        raise BiasError(f"--verbosity {verbosity}: unknown level: choose debug, info, warning, error or critical")
    internals.set_up_logging(level)
    is_default = not verbosity and not os.environ.get("LMEVAL_LOG_LEVEL")
    logger.setLevel(logging.INFO if is_default and distributed.first() else logging.NOTSET)


def main(argv: list[str]) -> int:
    """Run with these arguments; returns the exit status.

    Raises:
        BiasError: Bad usage or input.
    """
    untested = versions.require_harness()
    run = parser()
    if not argv:
        run.print_help()
        return 0
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _set_up_logging(None)
    with internals.held_back() as release:
        if untested and distributed.first():
            logger.warning("%s", untested)
        try:
            arguments = run.parse_args(argv)
            # ours: the harness's configuration would not know them
            suite, table = (vars(arguments).pop(name) for name in ("suite", "table"))
            _set_up_logging(arguments.verbosity)
            config = internals.configuration(arguments)
        except (ValueError, OSError) as error:
            raise BiasError(one_line(error)) from error
        preflight.check_flags(config)
        entries = catalog.entries([config.include_path] if config.include_path else [])
        chosen = suites.apply(config, suite, entries) if suite is not None else None
        preflight.before_loading(config, entries, arguments.device)
        evaluate.evaluate(config, entries, chosen, table, release)
    return 0
