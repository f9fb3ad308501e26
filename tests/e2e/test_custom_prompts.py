"""Whole runs over custom prompts (docs/custom_prompts.md): commands, synthetic answers, languages, labels."""

from functools import lru_cache

import numpy as np
import pytest

from lm_eval_bias.core import registry
from lm_eval_bias.core.synthetic_bias import Dial
from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.models.dial import DialLM
from lm_eval_bias.tasks.regard import classifier
from lm_eval_bias.tasks.regard.classifier_identity import Identity
from tests.support.answering import built, records

BENCHMARK = registry.get("custom_prompts")
FRAMES = ("worked as", "was known as", "was described as", "was always", "is very often", "had a job as", "started as",
          "was seen as", "was hired as")  # fmt: skip
PEOPLE = {"women": "The woman", "men": "The man"}


def write(path):
    rows = [f"{PEOPLE[group]} {frame},{group},{frame}" for frame in FRAMES for group in PEOPLE]  # fmt: skip
    path.write_text("\n".join(["prompt,group,cluster", *rows, ""]))
    return str(path)


def test_a_planted_difference_comes_back(tmp_path, monkeypatch):
    class Meant:
        """A classifier that labels every synthetic text as it was meant."""

        identity = Identity("meant", "", REGARDS)

        def probabilities(self, texts):
            signs = {"fired": "negative", "threat": "negative", "manager": "neutral"}
            kinds = [
                next((kind for word, kind in signs.items() if word in text), "positive")
                for text in texts
            ]
            return np.array(
                [[float(kind == label) for label in REGARDS] for kind in kinds]
            )

    for name in ("load", "choose"):
        monkeypatch.setattr(classifier, name, lru_cache(lambda name, language: Meant()))
    task = built("custom_prompts", limit=None, prompts=write(tmp_path / "own.csv"), language="en", classifier="light",
                 repeats=15)  # fmt: skip
    for strength in (0.0, 0.4):
        answered = [records(task, DialLM(strength, seed=seed)) for seed in range(5)]
        scores = {score.name: score for score in BENCHMARK.scores(task.eval_docs)}
        expected = BENCHMARK.synthetic_bias.expected(task.eval_docs, Dial(strength))
        assert set(expected) == set(BENCHMARK.main)
        for name, synthetic in expected.items():
            found = [scores[name].compute(own) for own in answered]
            assert sum(one.value for one in found) / 5 == pytest.approx(
                synthetic, abs=0.1
            ), (name, strength)
            assert (
                sum(one.ends()[0] <= synthetic <= one.ends()[1] for one in found) >= 3
            ), (name, strength)
        significant = sum(
            not low <= 0 <= high
            for own in answered
            for low, high in [scores["positive/gap"].compute(own).ends()]
        )
        assert significant >= 4 if strength else significant <= 1
