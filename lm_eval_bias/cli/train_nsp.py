"""``lm-eval-bias nsp train``: teach a model to tell whether a sentence follows another."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os

from lm_eval_bias.core.errors import BiasError, require_extra
from lm_eval_bias.core.files import expanded, is_full, why
from lm_eval_bias.models.next_sentence.nsp_settings import NUMBERS, Corpus, TrainingSettings

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("--model", required=True, metavar="NAME", help="causal or T5 model: a folder or a name on the Hub")
    add("--revision", metavar="REV", help="revision of the model on the Hub")
    add("-o", "--output", required=True, metavar="DIR", help="new folder for the trained model; must not exist")
    add("--finish", action="store_true", help="test and save the best model of a stopped training; don't train further")
    add = parser.add_argument_group("corpora, each option once for all or once for each").add_argument
    add(
        "--corpus", required=True, action="append", metavar="SOURCE", help="folder of .txt files (one article per "
        "file), a .jsonl, .csv or .parquet file (one article per row), or the name of a data set on the Hub"
    )  # fmt: skip
    add("--language", required=True, action="append", metavar="LANG", help="language: en, de, ...")
    add("--config", action="append", metavar="NAME", help="configuration of a data set on the Hub")
    add("--corpus_revision", metavar="REV", help="commit or tag of a data set on the Hub")
    add("--column", default="text", metavar="NAME", help="column that holds the text (default text)")
    add = parser.add_argument_group("training").add_argument
    for option in NUMBERS:
        default = "" if option.default is None else f" (default {option.default:g})"
        kind = float if "float" in str(option.type) else int
        add(f"--{option.name}", type=kind, default=option.default, help=f"{option.metadata['help']}{default}")
    add("--trainer", default="", metavar="KEY=VALUE,...",
        help="further transformers.TrainingArguments: bf16=true, report_to=wandb, use_cpu=true, ...")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Train, and print how well the model does.

    Raises:
        BiasError: Bad usage, or a model or corpus that can't be had.
    """
    from lm_eval_bias.harness import internals

    if bare := [part for part in arguments.trainer.split(",") if part and "=" not in part]:
        raise BiasError(f"--trainer {bare[0]}: must be KEY=VALUE")
    count, each = len(arguments.corpus), []
    for flag in ("language", "config"):
        values = getattr(arguments, flag) or [None]
        if len(values) not in (1, count):
            raise BiasError(f"--{flag} {values[-1]}: give one value for all, or one for each --corpus")
        each.append(values if len(values) == count else values * count)
    options = {option.name: getattr(arguments, option.name) for option in NUMBERS}
    trainer = internals.key_values(arguments.trainer)
    settings = TrainingSettings(arguments.model, (), arguments.revision, trainer, **options)
    corpora = tuple(
        Corpus(source, language, config, arguments.column, arguments.corpus_revision)
        for source, language, config in zip(arguments.corpus, *each, strict=True)
    )
    settings = dataclasses.replace(settings, corpora=corpora)
    require_extra("train")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from lm_eval_bias.harness import distributed
    from lm_eval_bias.models.next_sentence import nsp_training

    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        record = nsp_training.train(settings, expanded(arguments.output), arguments.finish)
    except Exception as error:
        if not is_full(error):
            raise
        resume = f"free some space, then run the same command again to resume ({arguments.output}.work)"
        raise BiasError(f"{arguments.output} cannot be written: {why(error)}: {resume}") from error
    if distributed.first():
        print(f"Right on articles it has never seen: {nsp_training.percent(record['test'])} (chance: 50%).")
        print(f"Saved in {arguments.output}; use it with --model hf-nsp --model_args pretrained={arguments.output}")
    return 0
