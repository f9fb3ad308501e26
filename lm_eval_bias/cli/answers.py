"""``lm-eval-bias answers``: what ``run`` writes beside its results, made of the sample logs of other runs."""

from __future__ import annotations

import argparse

from lm_eval_bias.cli import output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    parser.description = (
        "Write the answers of runs beside their results, from their sample logs: likelihoods, readings, keys and "
        "hashes, without prompts and texts, so that they can be passed on. Runs that have them are passed over."
    )
    parser.add_argument(
        "paths", nargs="+", metavar="RUN", help="run folders or results_*.json"
    )
    parser.add_argument("--again", action="store_true", help="write all again")


def run(arguments: argparse.Namespace) -> int:
    """Write the files; return the exit status.

    Raises:
        BiasError: There is no run, or it has no log.
        OSError: A file can't be written.
    """
    from pathlib import Path

    from lm_eval_bias.core.files import writing
    from lm_eval_bias.runs import answer_files, provenance, run_discovery, sample_logs

    runs, problems = run_discovery.read(arguments.paths, by_file=True)
    output.name_problems(problems)
    for file in dict.fromkeys(Path(run.path) for run in runs):
        target = answer_files.beside(file)
        if target.is_file() and not arguments.again:
            print(f"{target}: is there")
            continue
        with writing(target):
            answer_files.write(file, sample_logs.beside(file))
            if provenance.sums_beside(file).is_file():
                provenance.write_sums(file, [target])
        print(f"{target}: {target.stat().st_size:,} bytes")
    return 0
