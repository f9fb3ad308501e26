"""``lm-eval-bias rescore``: every score again from saved samples, without a model."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="run folders, samples files (--log_samples) or predictions"
    )
    parser.add_argument("--language", metavar="LANG", help="of StereoSet predictions or labelled texts: de, en, ...")
    parser.add_argument(
        "--classifier", metavar="NAME", help="regard: classify the saved texts again: light, sbert, hub:<model>, ..."
    )
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--words", metavar="SET", help="OccuGender: pronouns, appendix_a, authors_code or a YAML file")


def run(arguments: argparse.Namespace) -> int:
    """Print the scores."""
    from lm_eval_bias.runs import rescoring

    results = rescoring.rescore(
        arguments.paths, words=arguments.words, language=arguments.language, classifier=arguments.classifier
    )
    print(rescoring.as_json(results) if arguments.json else rescoring.as_table(results))
    return 0
