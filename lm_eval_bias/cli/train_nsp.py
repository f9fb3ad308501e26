"""``lm-eval-bias nsp train``: teach a model to tell whether a sentence follows another."""

from __future__ import annotations

import argparse
import logging
import os

from lm_eval_bias.core.errors import BiasError, require_extra
from lm_eval_bias.core.files import expanded, is_full, why
from lm_eval_bias.models.next_sentence.nsp_settings import NUMBERS, TrainingSettings

_EPILOG = """The defaults follow Öztürk et al. (2023), section 5.2: 64 pairs an update, learning rate 5e-6 and 1e-3 for
the head (causal) or 1e-4 (T5, mT5), cosine schedule with restarts, 1% warm-up, gradients clipped at 1.0. To resume a
stopped training, run the same command again.

examples:
  lm-eval-bias nsp train --model gpt2 --corpus articles/ --language en -o gpt2-nsp
  lm-eval-bias nsp train --model google/mt5-base --corpus wikimedia/wikipedia --config 20231101.de --language de \\
      --max_pairs 1000000 --trainer bf16=true -o mt5-nsp
  lm-eval-bias nsp train --model ai-forever/mGPT --corpus en/ --language en --corpus de/ --language de -o mgpt-nsp
  accelerate launch --num_processes 4 -m lm_eval_bias nsp train --model ... --corpus ... -o ...
  lm-eval-bias run --tasks stereoset_en_inter --model hf-nsp --model_args pretrained=gpt2-nsp
"""
_CORPUS = (
    (
        "corpus",
        "SOURCE",
        "folder of .txt files, a .jsonl, .csv or .parquet file (an article each), or a data set on the Hub; give it "
        "again, with its --language, for a model of several languages",
    ),
    ("language", "LANG", "language: en, de, ..."),
    ("config", "NAME", "configuration of a data set on the Hub"),
    ("corpus_revision", "REV", "commit or tag of a data set on the Hub"),
    ("column", "NAME", "column that holds the text (default text)"),
)
_TRAINER = "further transformers.TrainingArguments: max_steps=500, eval_steps=50, bf16=true, use_cpu=true, ..."


SEVERAL = ("corpus", "language", "config")


class _Once(argparse.Action):
    """An option that holds for all corpora: the last of several would win without a word."""

    given = False

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Take the value, or refuse a second one."""
        if self.given:
            parser.error(f"{option_string} is given twice: it holds for all corpora")
        self.given = True
        setattr(namespace, self.dest, values)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    parser.epilog = _EPILOG
    add = parser.add_argument
    add(
        "--model",
        required=True,
        metavar="NAME",
        help="causal or T5 model: a folder or a name on the Hub",
    )
    add("--revision", metavar="REV", help="revision of the model on the Hub")
    add(
        "-o",
        "--output",
        required=True,
        metavar="DIR",
        help="new folder for the trained model; must not exist",
    )
    add = parser.add_argument_group("corpus").add_argument
    for name, value, text in _CORPUS:
        required = name in ("corpus", "language")
        action = "append" if name in SEVERAL else _Once
        add(f"--{name}", required=required, metavar=value, help=text, action=action)
    parser.set_defaults(column="text")
    add = parser.add_argument_group("training").add_argument
    for option in NUMBERS:
        kind = float if "float" in str(option.type) else int
        add(
            f"--{option.name}",
            type=kind,
            default=option.default,
            help=option.metadata["help"],
        )
    add(
        "--seed",
        type=int,
        default=0,
        help="random seed for the pairs, their order and the head (default 0)",
    )
    add("--trainer", default="", metavar="KEY=VALUE,...", help=_TRAINER)


def run(arguments: argparse.Namespace) -> int:
    """Train, and print how well the model does.

    Raises:
        BiasError: Usage is bad, or the model or a corpus can't be had.
    """
    from lm_eval_bias.harness import distributed, internals

    given = dict(vars(arguments))
    output = given.pop("output")
    given["trainer"] = internals.key_values(arguments.trainer)
    settings = TrainingSettings(**given)
    require_extra("train")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from lm_eval_bias.models.next_sentence import nsp_training

    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        test = nsp_training.train(settings, expanded(output))["test"]
    except Exception as error:
        if not is_full(error):
            raise
        resume = "free some space, then run the same command again to resume"
        raise BiasError(
            f"{output} cannot be written: {why(error)}: {resume}"
        ) from error
    if distributed.first():
        low, high = (100 * end for end in test["interval"])
        print(
            f"Right on articles it has never seen: {100 * test['accuracy']:.1f}% [{low:.1f}, {high:.1f}] of "
            f"{test['pairs']:,} pairs (chance: 50%)."
        )
        print(
            f"Saved in {output}; use it with --model hf-nsp --model_args pretrained={output}"
        )
    return 0
