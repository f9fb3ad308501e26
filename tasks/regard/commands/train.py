"""``lm-eval-bias regard train``: trains a regard classifier's head, with its model card."""

from __future__ import annotations

import argparse
import os
import sys

from lm_eval_bias.errors import BiasError, require_extra
from lm_eval_bias.files import expanded
from lm_eval_bias.tasks.regard.regard_texts import LANGUAGES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    from lm_eval_bias.tasks.regard.classifiers.head_networks import RECIPES

    parser.add_argument(
        "--language", metavar="LANG", default="de", choices=LANGUAGES, help="language of the corpus: de (default) or en"
    )
    parser.add_argument("--encoder", metavar="MODEL", help="sentence-transformers model: a name or a folder")
    parser.add_argument(
        "--embeddings",
        metavar="FILE",
        help="precomputed vectors (.npz: dev_X, dev_Y, test_X, test_Y); --encoder then names the encoder that made "
        "them",
    )
    parser.add_argument("--light", action="store_true", help="evaluate the light classifier instead; saves nothing")
    parser.add_argument("--seeds", metavar="N", type=int, default=5, help="number of seeds (default 5)")
    parser.add_argument(
        "--recipe",
        choices=RECIPES,
        default="paper",
        help="the paper's networks (default), or the recipe that did better on its development rows",
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="folder for the head, card.json and README.md")


def run(arguments: argparse.Namespace) -> int:
    """Train and print the model card; status 1 where the bias check fails.

    Raises:
        BiasError: Bad arguments, or data or encoder that cannot be had.
    """
    output = arguments.output
    if arguments.seeds < 1:
        raise BiasError(f"--seeds {arguments.seeds}: must be 1 or more")
    if output is not None and os.path.exists(expanded(output)) and not os.path.isdir(expanded(output)):
        raise BiasError(f"--output {output}: is a file: name a folder")
    require_extra("regard")
    return _evaluate_light(arguments) if arguments.light else _train_head(arguments)


def _evaluate_light(arguments: argparse.Namespace) -> int:
    from lm_eval_bias.tasks.regard.classifiers import classifier_card, light_classifier

    if arguments.encoder or arguments.embeddings:
        raise BiasError("--light takes neither --encoder nor --embeddings")
    if arguments.output:
        raise BiasError("--light is trained again at every use, so there is nothing to save: leave out --output")
    evaluation = light_classifier.evaluate(arguments.language)
    print(classifier_card.markdown(evaluation))
    return 0 if evaluation["bias_check"]["passed"] else 1


def _train_head(arguments: argparse.Namespace) -> int:
    from lm_eval_bias.tasks.regard.classifiers import classifier_card, head_training, regard_corpus, sbert_classifier

    if arguments.embeddings:
        data = head_training.from_file(expanded(arguments.embeddings))
        trained = head_training.train_on(data, arguments.seeds, arguments.encoder or "", arguments.recipe)
    else:
        encoder = sbert_classifier.encoder(arguments.encoder or sbert_classifier.ENCODERS[arguments.language])
        corpus = regard_corpus.load(arguments.language, second_test=True)
        trained = head_training.train(corpus, encoder.encode, arguments.seeds, encoder.name, arguments.recipe)
    if output := arguments.output:
        head_training.save(expanded(output), trained)
    print(classifier_card.markdown(trained.card))
    if output and trained.card["encoder"]:
        print(f'Saved in {output}; use it with --metadata \'{{"classifier": "head:{output}"}}\'')
    elif output:
        print(f"Saved in {output}; to classify texts with it, its head.json has to name the encoder (--encoder)")
    if trained.passed is False:
        print("lm-eval-bias: the bias check failed: this classifier must not compare women and men", file=sys.stderr)
        return 1
    return 0
