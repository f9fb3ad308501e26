"""``lm-eval-bias nsp train``: teach a model to tell whether a sentence follows another."""

from __future__ import annotations

import logging
import os

from lm_eval_bias.core.errors import BiasError, require_extra
from lm_eval_bias.core.files import expanded, is_full, why
from lm_eval_bias.models.next_sentence.nsp_settings import TrainingSettings


def train(*, settings: TrainingSettings, output: str) -> None:
    r"""Train a next-sentence head for --model hf-nsp.

    Args:
        output (DIR): new folder for the trained model; must not exist

    The defaults follow Öztürk et al. (2023), section 5.2: 64 pairs an update,
    learning rate 5e-6 and 1e-3 for the head (causal) or 1e-4 (T5, mT5), cosine
    schedule with restarts, 1% warm-up, gradients clipped at 1.0. To resume a
    stopped training, run the same command again.

    Examples:
      lm-eval-bias nsp train --model gpt2 --corpus articles/ --language en -o gpt2-nsp
      lm-eval-bias nsp train --model google/mt5-base --corpus wikimedia/wikipedia --config 20231101.de --language de \
          --max_pairs 1000000 --trainer bf16=true -o mt5-nsp
      lm-eval-bias nsp train --model ai-forever/mGPT --corpus en/ --language en --corpus de/ --language de -o mgpt-nsp
      accelerate launch --num_processes 4 -m lm_eval_bias nsp train --model ... --corpus ... -o ...
      lm-eval-bias run --tasks stereoset_en_inter --model hf-nsp --model_args pretrained=gpt2-nsp
    """
    from lm_eval_bias.harness import distributed

    require_extra("train", "sentencex")
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
