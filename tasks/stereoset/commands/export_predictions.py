"""``lm-eval-bias export --to predictions``: a StereoSet run as the authors' prediction file."""

from __future__ import annotations

import argparse

from lm_eval_bias.core import files
from lm_eval_bias.core.files import expanded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the format understands; a file that ends in .gz is gzipped."""
    parser.add_argument("--language", metavar="LANG", help="language to export, if the run has several")
    parser.add_argument(
        "--variant", metavar="NAME", help="score to export, for a stereoset_<language>_inter_variants run"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the file."""
    from lm_eval_bias.runs import rescoring, sample_logs
    from lm_eval_bias.tasks.stereoset import predictions

    target = expanded(arguments.output)
    files.check_place(arguments.output, arguments.paths)
    logs = rescoring.gather(arguments.paths, sample_logs.collect, readers=[rescoring.SAMPLE_LOGS])
    collected = predictions.collect(logs, arguments.variant, arguments.language)
    predictions.write(target, collected)
    counts = ", ".join(f"{len(scores):,} candidates of {name}" for name, scores in collected.items())
    print(f"{arguments.output}: {counts}")
    return 0
