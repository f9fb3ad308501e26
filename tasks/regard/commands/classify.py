"""``lm-eval-bias regard classify``: labels the regard of any texts."""

from __future__ import annotations

import argparse
import sys

from lm_eval_bias import files
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import expanded, write_whole, writing
from lm_eval_bias.tasks.regard.regard_texts import LANGUAGES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.add_argument(
        "file", metavar="FILE", help="file of texts: one per line (.txt), or in a column (.csv, .jsonl)"
    )
    parser.add_argument("--classifier", metavar="NAME", help="light, sbert, hub:<model> or head:<folder>")
    parser.add_argument(
        "--language",
        metavar="LANG",
        choices=LANGUAGES,
        help="de or en (default: recognized by the subjects of the texts)",
    )
    parser.add_argument(
        "--column", metavar="NAME", default="text", help="column or field that holds the text (default text)"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help=".jsonl or .csv file to write (default: JSONL on standard output)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Label texts; a warning about the classifier goes to standard error.

    Raises:
        BiasError: A file or classifier that cannot be had.
    """
    from lm_eval_bias.tasks.regard.classifiers import text_files

    target = None if arguments.output is None else expanded(arguments.output)
    if target is not None and target.suffix not in (".jsonl", ".csv"):
        raise BiasError(f"--output {arguments.output}: must end in .jsonl or .csv")
    files.check_place(arguments.output, [arguments.file])
    texts = text_files.read(expanded(arguments.file), arguments.column)
    rows, classifier = text_files.label(texts, arguments.classifier, arguments.language)
    if target is None:
        sys.stdout.write(text_files.as_text(rows, ".jsonl"))
    else:
        with writing(f"--output {arguments.output}"):
            write_whole(target, text_files.as_text(rows, target.suffix).encode())
    print(f"lm-eval-bias: {len(rows):,} texts labelled by {classifier.name} ({classifier.detail})", file=sys.stderr)
    if classifier.warning:
        print(f"lm-eval-bias: warning: {classifier.warning}", file=sys.stderr)
    return 0
