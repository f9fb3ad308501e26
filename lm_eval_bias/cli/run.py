"""``lm-eval-bias run``: the harness's own ``run`` with our tasks, model types and suites."""

from __future__ import annotations

import argparse
import functools
import json
import logging
import os

from lm_eval_bias.cli.signatures import Parser
from lm_eval_bias.core import redaction
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.evaluation import steps, suites
from lm_eval_bias.evaluation.steps import FinishedRun
from lm_eval_bias.harness import distributed, internals, registration, running
from lm_eval_bias.report import run_output, sentences
from lm_eval_bias.runs import harness_results

logger = logging.getLogger("lm_eval.bias")


def parser() -> argparse.ArgumentParser:
    """Make the harness's parser of ``run`` with all its flags, under our name."""
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
    group = run.add_argument_group(
        "suites", "in place of --tasks, --limit and --samples"
    )
    names = [f"{name} ({purpose})" for name, purpose in suites.PURPOSES.items()]
    group.add_argument(
        "--suite",
        metavar="<name>",
        help=f"Suite to run: {'; '.join(names)} ('lm-eval-bias ls --suites' lists their tasks)",
    )
    group.add_argument(
        "--language",
        metavar="<code>,<code>",
        help="Of the suite, the tasks in these languages alone: de, or de,en",
    )
    results = run.add_argument_group("results", "how they are named and printed")
    results.add_argument(
        "--name",
        metavar="<name>",
        help="Name of the model in reports, tables and comparisons (default: its checkpoint's)",
    )
    results.add_argument(
        "--table",
        choices=run_output.TABLES,
        default="main",
        help="Table to print after the scores in words: the main scores (main, the default), the harness's table of "
        "all scores with how to read them (all), or none",
    )
    return run


def _set_up_logging(verbosity: str | None, write_out: bool) -> None:
    """Show the harness's warnings and this package's few messages, unless more is asked for."""
    level = logging.getLevelName((verbosity or "WARNING").upper())
    if not isinstance(level, int):
        raise BiasError(
            f"--verbosity {verbosity}: unknown level: choose debug, info, warning, error or critical"
        )
    internals.set_up_logging(level)
    is_default = not verbosity and not os.environ.get("LMEVAL_LOG_LEVEL")
    shows_ours = is_default and distributed.first()
    logger.setLevel(logging.INFO if shows_ours else logging.NOTSET)
    if write_out:
        logging.getLogger(internals.WRITE_OUT).setLevel(logging.INFO)


def _print(text: str) -> None:
    """Print the next stage of the run, on the first rank only."""
    if distributed.first():
        print(text, flush=True)


def _summarize(table: str, finished: FinishedRun) -> None:
    """Print what was run, the scores in words, the wanted tables, and possible next steps."""
    config, results = finished.config, finished.results
    if config.show_config:
        print(json.dumps(results, indent=2, default=str, ensure_ascii=False))
    flags = {
        name: getattr(config, name)
        for name in ("gen_kwargs", "limit", "num_fewshot", "batch_size")
    }
    flags["batch sizes"] = ",".join(map(str, results["config"]["batch_sizes"]))
    arguments = redaction.arguments(config.model_args) or "no arguments"
    given = [f"{config.model} ({arguments})"]
    given += [f"{name}: {value}" for name, value in flags.items() if value]
    run = None if config.predict_only else harness_results.in_memory(results)
    tasks = list(run.tasks.values()) if run else []
    blocks = [", ".join(given)]
    if tasks:
        blocks.append(f"In words ({sentences.LEGEND}):\n{sentences.describe(tasks)}")
        blocks.append(run_output.scores(tasks, table))
    if not tasks or table != "none":
        blocks.append(running.tables(results, {task.task for task in tasks}))
    print("\n\n".join(filter(None, blocks)), end="\n\n")
    if tasks and finished.saved:
        print(
            f"To recompute the scores without the model: lm-eval-bias rescore {config.output_path}\n"
            f"For a report as a page: lm-eval-bias report {config.output_path} -o report.html"
        )


def main(argv: list[str]) -> int:
    """Run with these arguments; return the exit status.

    Raises:
        BiasError: Bad usage or input.
    """
    registration.require_harness()
    if not argv:
        parser().print_help()
        return 0
    _set_up_logging(None, write_out=False)
    with internals.held_back() as release:
        try:
            flags = vars(parser().parse_args(argv))
        except (ValueError, OSError) as error:
            raise BiasError(one_line(error)) from error
        _set_up_logging(flags.get("verbosity"), flags.get("write_out", False))
        # ours: the harness's configuration would not know them
        ours = ("suite", "language", "name", "table")
        suite, language, name, table = (flags.pop(flag) for flag in ours)
        command = redaction.command(["lm-eval-bias", "run", *argv])
        request = steps.RunRequest(flags, suite, language, name, command)
        steps.evaluate(request, _print, release, functools.partial(_summarize, table))
    return 0
