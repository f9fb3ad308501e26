"""``lm-eval-bias run``: the harness's own ``run`` with our tasks, model types and suites."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from lm_eval_bias.cli.output import Parser
from lm_eval_bias.core import Data, catalog, redaction
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.evaluation import evaluate, preflight, suites
from lm_eval_bias.harness import distributed, internals, registration, running
from lm_eval_bias.report import listings, run_output, sentences
from lm_eval_bias.runs import harness_results

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig

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
        help=f"Suite to run: {'; '.join(names)} ('lm-eval-bias ls --suites' lists their tasks; quick+NAME adds a "
        "benchmark of another package)",
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


def _tell(
    config: EvaluatorConfig,
    table: str,
    results: Data,
    samples: Data | None,
    saved: bool,
) -> None:
    """Print what was run, the scores in words, the wanted tables, and possible next steps."""
    flags = {
        name: getattr(config, name)
        for name in ("gen_kwargs", "limit", "num_fewshot", "batch_size")
    }
    flags["batch sizes"] = ",".join(map(str, results["config"]["batch_sizes"]))
    arguments = redaction.arguments(config.model_args) or "no arguments"
    given = [f"{config.model} ({arguments})"]
    given += [f"{name}: {value}" for name, value in flags.items() if value]
    print(", ".join(given))
    run = None if config.predict_only else harness_results.in_memory(results)
    tasks = list(run.tasks.values()) if run else []
    words = sentences.describe(run, tasks, beside_tables=table != "all") if run else ""
    if tasks:
        print(f"\nIn words ({sentences.LEGEND}):\n{words}")
    blocks = [run_output.unanswered(tasks, samples)]
    if tasks and table == "main":
        blocks.append(run_output.main_scores(tasks))
    if not tasks or table != "none":
        whole = {task.task: task.scores for task in tasks}
        scores = whole if table == "all" else dict.fromkeys(whole, {})
        blocks.append(running.tables(results, scores))
    if tasks and table == "all":
        legend = listings.legend(results["configs"].values())
        blocks.append(
            f"How to read the scores (a part such as gender/… reads like its score):\n{legend}"
        )
    blocks.append(run_output.notes(tasks, table == "all", words))
    print("".join(f"\n{block}\n" for block in blocks if block))
    if tasks and saved:
        if config.log_samples:
            print(
                f"To recompute the scores without the model: lm-eval-bias rescore {config.output_path}"
            )
        print(
            f"For a report as a page: lm-eval-bias report {config.output_path} -o report.html"
        )


def main(argv: list[str]) -> int:
    """Run with these arguments; return the exit status.

    Raises:
        BiasError: Bad usage or input.
    """
    if not argv:
        registration.require_harness()
        parser().print_help()
        return 0
    evaluated(argv)
    return 0


def evaluated(argv: list[str]) -> Path | None:
    """Run with these arguments; return the results file, ``None`` where none was saved.

    Raises:
        BiasError: Bad usage or input.
    """
    untested = registration.require_harness()
    run = parser()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    _set_up_logging(None, write_out=False)
    with internals.held_back() as release:
        if untested and distributed.first():
            logger.warning("%s", untested)
        try:
            arguments = run.parse_args(argv)
            # ours: the harness's configuration would not know them
            ours = ("suite", "language", "name", "table")
            suite, language, name, table = (vars(arguments).pop(flag) for flag in ours)
            _set_up_logging(arguments.verbosity, getattr(arguments, "write_out", False))
            config = internals.configuration(arguments)
        except (ValueError, OSError) as error:
            raise BiasError(one_line(error)) from error
        redaction.learn(dataclasses.asdict(config))
        preflight.check_flags(config)
        entries = catalog.entries([config.include_path] if config.include_path else [])
        config.tasks = preflight.without_tags(config.tasks, entries)
        if language is not None and suite is None:
            raise BiasError("--language goes with --suite: name tasks without it")
        chosen = (
            suites.apply(config, suite, entries, language)
            if suite is not None
            else None
        )
        preflight.before_loading(config, entries, arguments.device)
        tell = functools.partial(_tell, config, table)
        given = redaction.command(["lm-eval-bias", "run", *argv])
        return evaluate.evaluate(config, entries, chosen, release, tell, name, given)
