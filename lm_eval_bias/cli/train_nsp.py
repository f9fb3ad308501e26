"""``lm-eval-bias nsp train``: teach a model to tell whether a sentence follows another."""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import math
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from lm_eval_bias.errors import BiasError, require_extra
from lm_eval_bias.files import expanded, is_full, why

_LANGUAGES = ("en", "de", "es", "fr", "tr")  # whose sentences are known to be told apart well
_EPILOG = """The defaults follow Öztürk et al. (2023), section 5.2: 4 pairs at a time, 16 batches per update, learning
rate 5e-6 and 1e-3 for the head (causal); 8, 8 and 1e-4 (T5, mT5); cosine schedule with restarts, 1% warm-up, gradients
clipped at 1.0. To resume a stopped training, run the same command again.

examples:
  lm-eval-bias nsp train --model gpt2 --corpus articles/ --language en -o gpt2-nsp
  lm-eval-bias nsp train --model google/mt5-base --corpus wikimedia/wikipedia --config 20231101.de --language de \\
      --max_pairs 1000000 --trainer bf16=true -o mt5-nsp
  accelerate launch --num_processes 4 -m lm_eval_bias nsp train --model ... --corpus ... -o ...
  lm-eval-bias run --tasks stereoset_en_inter --model hf-nsp --model_args pretrained=gpt2-nsp
"""
# type, default, what stands for the value in the help, help
_Number = tuple[type[int] | type[float], float | None, str, str]
_DATA: dict[str, _Number] = {
    "--held_out": (
        float,
        0.05,
        "SHARE",
        "share of the articles held out for early stopping; as many again are held out for the test (default 0.05)",
    ),
    "--max_pairs": (int, None, "N", "largest number of pairs to train on"),
    "--max_held_out": (
        int,
        2000,
        "N",
        "largest number of pairs for early stopping, and again for the test (default 2000 each)",
    ),
}
_TRAINING: dict[str, _Number] = {
    "--epochs": (float, 1.0, "N", "largest number of passes over the pairs (default 1)"),
    "--max_steps": (int, -1, "N", "largest number of updates"),
    "--batch_size": (int, None, "N", "pairs per batch on each device"),
    "--accumulate": (int, None, "N", "batches per update"),
    "--body_rate": (float, None, "RATE", "learning rate of the body"),
    "--head_rate": (float, 1e-3, "RATE", "learning rate of the head (default 1e-3)"),
    "--cycles": (int, 1, "N", "cycles of the learning rate schedule (default 1)"),
    "--train_layers": (int, None, "N", "train only the last N layers of a causal body (0: only the head)"),
    "--max_length": (int, 256, "N", "longest pair, in tokens (default 256)"),
    "--evaluate_every": (
        int,
        None,
        "N",
        "updates between evaluations on the held-out pairs (default: a twentieth of all updates)",
    ),
    "--patience": (int, 3, "N", "evaluations without improvement before training stops (default 3)"),
    "--gain": (float, 0.002, "SHARE", "smallest improvement in held-out accuracy that counts (default 0.002)"),
    "--seed": (int, 0, "N", "random seed for the pairs, their order and the head (default 0)"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.description = (
        "Train a causal model with a three-layer head, or a T5 model, to judge whether one sentence follows another, "
        "for StereoSet's test between sentences."
    )
    parser.epilog = _EPILOG
    parser.add_argument(
        "--model", required=True, metavar="NAME", help="causal or T5 model: a folder or a name on the Hub"
    )
    parser.add_argument("--revision", metavar="REV", help="revision of the model on the Hub")
    parser.add_argument("--gguf_file", metavar="FILE", help="file in the model's folder, if the model is a GGUF file")
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="new folder for the trained model; must not exist"
    )

    data = parser.add_argument_group("data")
    data.add_argument(
        "--corpus",
        required=True,
        action="append",
        metavar="SOURCE",
        help="folder of .txt files (one article per file), a .jsonl, .csv or .parquet file (one article per row), or "
        "the name of a data set on the Hub; repeat it for several corpora",
    )
    data.add_argument(
        "--language",
        required=True,
        action="append",
        metavar="LANG",
        help="language of each corpus, or one for all: en, de, ...",
    )
    data.add_argument(
        "--config", action="append", metavar="NAME", help="configuration of a data set on the Hub, one per corpus"
    )
    data.add_argument("--split", default="train", help="split of a data set on the Hub (default train)")
    data.add_argument("--corpus_revision", metavar="REV", help="commit or tag of a data set on the Hub")
    data.add_argument("--column", default="text", metavar="NAME", help="column that holds the text (default text)")
    _add_numbers(data, _DATA)

    training = parser.add_argument_group("training")
    _add_numbers(training, _TRAINING)
    training.add_argument(
        "--trainer",
        default="",
        metavar="KEY=VALUE,...",
        help="further transformers.TrainingArguments: bf16=true, report_to=wandb, use_cpu=true, ...",
    )
    parser.add_argument(
        "--finish",
        action="store_true",
        help="don't train further: test and save the best model of a stopped training",
    )
    parser.add_argument("--json", action="store_true", help="print the content of the model card as JSON")


def _add_numbers(group: argparse._ArgumentGroup, numbers: Mapping[str, _Number]) -> None:
    for flag, (kind, default, metavar, purpose) in numbers.items():
        group.add_argument(flag, type=kind, default=default, metavar=metavar, help=purpose)


def _trainer_arguments(text: str) -> dict[str, Any]:
    """``KEY=VALUE,...`` with values as JSON has them, else as text.

    >>> _trainer_arguments("bf16=true,report_to=wandb,warmup_steps=10")
    {'bf16': True, 'report_to': 'wandb', 'warmup_steps': 10}
    """
    parsed: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise BiasError(f"--trainer {part}: must be KEY=VALUE")
        try:
            parsed[key.strip()] = json.loads(value)
        except ValueError:
            parsed[key.strip()] = value
    return parsed


def _check(arguments: argparse.Namespace) -> None:
    for name, least in (
        ("max_pairs", 2), ("max_held_out", 2), ("batch_size", 1), ("accumulate", 1), ("cycles", 1), ("max_length", 8),
        ("evaluate_every", 1), ("patience", 1), ("train_layers", 0),
    ):  # fmt: skip
        value = getattr(arguments, name)
        if value is not None and value < least:
            raise BiasError(f"--{name} {value}: must be {least} or more")
    if not 0 < arguments.held_out < 0.5:
        raise BiasError(f"--held_out {arguments.held_out:g}: must be between 0 and 0.5")
    if arguments.max_steps == -1 and not 0 < arguments.epochs < math.inf:
        raise BiasError(f"--epochs {arguments.epochs:g}: must be a number above 0")
    if arguments.max_steps != -1 and arguments.max_steps < 1:
        raise BiasError(f"--max_steps {arguments.max_steps}: must be 1 or more")
    for name in ("body_rate", "head_rate"):
        value = getattr(arguments, name)
        if value is not None and not 0 < value < 1:
            raise BiasError(f"--{name} {value:g}: must be between 0 and 1")
    if not 0 <= arguments.gain < 1:
        raise BiasError(f"--gain {arguments.gain:g}: must be from 0 to 1")
    if not 0 <= arguments.seed < 2**32:
        raise BiasError(f"--seed {arguments.seed}: must be from 0 to {2**32 - 1}")
    for language in arguments.language:
        if not re.fullmatch("[a-z]{2,3}", language):
            raise BiasError(f"--language {language}: must be a code such as en, de, es, fr, tr")
    for flag in ("language", "config"):
        values = getattr(arguments, flag) or [None]
        if len(values) not in (1, len(arguments.corpus)):
            raise BiasError(f"--{flag} {values[-1]}: give one value for all, or one for each --corpus")
    if expanded(arguments.output).exists():
        raise BiasError(f"--output {arguments.output} exists already: name another folder")


def run(arguments: argparse.Namespace) -> int:
    """Train, and print the model card.

    Raises:
        BiasError: Bad usage, or a model or corpus that can't be had.
    """
    from lm_eval_bias.models.next_sentence.article_corpus import Corpus

    _check(arguments)
    trainer = _trainer_arguments(arguments.trainer)
    for source in arguments.corpus:
        Corpus(source, "").check()
    require_extra("train")
    if arguments.gguf_file:
        require_extra("gguf")
    for language in arguments.language:
        if language not in _LANGUAGES:
            print(
                f"lm-eval-bias: warning: --language {language}: not one of {', '.join(_LANGUAGES)}: general rules "
                "split its sentences unless sentencex has rules for it; check some of them, or name the right language",
                file=sys.stderr,
            )
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from lm_eval_bias.harness import distributed
    from lm_eval_bias.models.next_sentence import article_corpus, nsp_card, nsp_training

    logging.getLogger("transformers").setLevel(logging.ERROR)
    # one for all corpora, or one for each
    languages, configs = (
        names * (len(arguments.corpus) if len(names) == 1 else 1)
        for names in (arguments.language, arguments.config or [None])
    )
    corpora = [
        article_corpus.Corpus(source, language, arguments.column, arguments.split, config, arguments.corpus_revision)
        for source, language, config in zip(arguments.corpus, languages, configs, strict=True)
    ]
    values = {**vars(arguments), "longest": arguments.max_length, "layers": arguments.train_layers, "trainer": trainer}
    settings = nsp_training.Settings(
        **{field.name: values[field.name] for field in dataclasses.fields(nsp_training.Settings)}
    )
    try:
        card = nsp_training.train(
            corpora,
            settings,
            expanded(arguments.output),
            arguments.held_out,
            arguments.max_pairs,
            arguments.max_held_out,
            arguments.finish,
        )
    except Exception as error:
        if not is_full(error):
            raise
        resume = f"free some space, then run the same command again to resume ({arguments.output}.work)"
        raise BiasError(f"{arguments.output} cannot be written: {why(error)}: {resume}") from error
    if distributed.first():
        print(json.dumps(card, indent=2, ensure_ascii=False) if arguments.json else nsp_card.markdown(card))
        print(f"Saved in {arguments.output}; use it with --model hf-nsp --model_args pretrained={arguments.output}")
    return 0
