"""``lm-eval-bias regard train``: trains a regard head, tests it and writes its card."""

from __future__ import annotations

import argparse
import sys

from lm_eval_bias.core.errors import BiasError, require_extra
from lm_eval_bias.core.files import expanded
from lm_eval_bias.tasks.regard import regard_corpus
from lm_eval_bias.tasks.regard.regard_texts import LANGUAGES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    add = parser.add_argument
    add(
        "--language",
        metavar="LANG",
        default="de",
        choices=LANGUAGES,
        help="corpus: de (default) or en",
    )
    add(
        "--corpus",
        default=regard_corpus.CLEANED,
        choices=regard_corpus.READINGS,
        help="German sentences: cleaned (default: without those that annotators dismissed), or all as released",
    )
    add(
        "--encoder",
        metavar="MODEL",
        help="sentence-transformers model: a name or a folder",
    )
    add(
        "-o",
        "--output",
        metavar="DIR",
        help="folder for the head and its card, README.md",
    )


def run(arguments: argparse.Namespace) -> int:
    """Train and print the model card; status 1 where the bias check fails.

    Raises:
        BiasError: Bad arguments, or data or encoder that cannot be had.
    """
    from lm_eval_bias.tasks.regard import heads

    output = arguments.output
    if (
        output is not None
        and expanded(output).exists()
        and not expanded(output).is_dir()
    ):
        raise BiasError(f"--output {output}: is a file: name a folder")
    require_extra("regard")
    encoder = heads.encoder(arguments.encoder or heads.ENCODERS[arguments.language])
    head, card = heads.train(
        regard_corpus.load(arguments.language, arguments.corpus),
        encoder.encode,
        encoder.name,
    )
    if output:
        heads.save(expanded(output), head, card)
    print(card)
    if output:
        print(
            f'Saved in {output}; use it with --metadata \'{{"classifier": "head:{output}"}}\''
        )
    if "warning" not in head.info:
        return 0
    print(
        "lm-eval-bias: the bias check failed: this classifier must not compare women and men",
        file=sys.stderr,
    )
    return 1
