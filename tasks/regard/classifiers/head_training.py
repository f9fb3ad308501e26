"""Training of a regard head on sentence vectors, and the folder that a trained one is saved in."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import write_whole
from lm_eval_bias.tasks.regard.classifiers import classifier_card, cross_validation, heads, regard_corpus, training_data
from lm_eval_bias.tasks.regard.classifiers.head_networks import RECIPES


@dataclass(frozen=True)
class Trained:
    """A head with what is known about it.

    Attributes:
        head: What the recipe keeps.
        card: Evaluation, data, recipe: what the model card says.
    """

    head: heads.Head
    card: classifier_card.Card

    @property
    def passed(self) -> bool | None:
        """Whether the bias check was passed; ``None`` where it could not be made."""
        return self.card["bias_check"]["passed"]


def train_on(data: training_data.TrainingData, seeds: int = 5, encoder: str = "", recipe: str = "paper") -> Trained:
    """Train and evaluate on ``seeds`` times five folds; keep what the recipe keeps of the first seed.

    Args:
        data: Vectors and labels.
        seeds: How often; the head is made of the first one's folds.
        encoder: Its name, so that the head can be used; empty if unknown.
        recipe: Key into :data:`head_networks.RECIPES`.

    Raises:
        BiasError: Too few rows of a class, or no test row.
    """
    head, card = cross_validation.evaluate(RECIPES[recipe], data, seeds, encoder)
    info = {"encoder": encoder, "data": data.name, "data_sha256": data.sha256, "recipe": recipe}
    if card["bias_check"]["passed"] is not True:
        info["warning"] = classifier_card.bias_sentence(card["bias_check"]).rstrip(".")
    return Trained(replace(head, info=info), card)


def train(
    rows: regard_corpus.Corpus, encode: training_data.Encode, seeds: int = 5, encoder: str = "", recipe: str = "paper"
) -> Trained:
    """:func:`train_on` a corpus's vectors; the head remembers some by which its encoder can be told again."""
    trained = train_on(training_data.from_corpus(rows, encode), seeds, encoder, recipe)
    trained.head.info["probe"] = heads.probe(encode)
    return trained


def save(folder: Path, trained: Trained) -> None:
    """Write head, card (JSON) and model card (Markdown) into a folder.

    Raises:
        BiasError: It cannot be written.
    """
    text = json.dumps(trained.card, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    heads.save(folder, trained.head)
    try:
        write_whole(folder / "card.json", text.encode())
        write_whole(folder / "README.md", classifier_card.markdown(trained.card).encode())
    except OSError as error:
        raise BiasError(f"{folder} cannot be written: {error.strerror}") from error
