"""Cards and names of scores: complete for every benchmark of this package, and read by people and programs."""

import json
import re

import pytest

from lm_eval_bias.core import registry
from lm_eval_bias.core.benchmark import card_of, folder_of
from tests.support.made_runs import DOCS

CARDS = {benchmark.name: card_of(benchmark) for benchmark in registry.benchmarks()}


@pytest.mark.parametrize("name", CARDS)
def test_every_field_was_written(name):
    card = CARDS[name]
    for field, value in card._asdict().items():
        assert value or field == "link", field
    assert not isinstance(card.flaws, str)
    assert sum(bool(re.search(r"\d", flaw)) for flaw in card.flaws) >= 2, (
        "flaws come with their numbers"
    )


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in CARDS
        if (folder_of(registry.get(name)) / "sources.json").is_file()
    ],
)
def test_licences_are_those_of_the_pinned_files(name):
    files = json.loads(
        (folder_of(registry.get(name)) / "sources.json").read_text(encoding="utf-8")
    )["files"]
    for licence in {one["licence"] for one in files}:
        for part in licence.replace("none stated", "states none").split(
            "; StereoSet itself is "
        ):
            assert part.lower() in CARDS[name].licence.lower().replace(
                "none stated", "states none"
            ), part


@pytest.mark.parametrize("name", registry.by_name())
def test_every_score_has_a_name_of_its_own_for_people(name):
    benchmark = registry.get(name)
    scores = [*benchmark.scores(), *benchmark.scores(DOCS.get(name, []))]
    labels = {score.name: score.label for score in scores}
    assert len(set(labels.values())) == len(labels)
    for label in labels.values():
        assert label[0].islower(), label
        assert "_" not in label, label
        assert len(label) < 100, label


@pytest.mark.parametrize("name", registry.by_name())
def test_every_main_score_of_bias_says_what_its_sides_mean(name):
    benchmark = registry.get(name)
    scores = {
        score.name: score
        for score in [*benchmark.scores(), *benchmark.scores(DOCS.get(name, []))]
    }
    for main in benchmark.main:
        is_biased = (
            scores[main].neutral is not None and scores[main].higher_is_better is None
        )
        assert (scores[main].favours is not None) == is_biased, main
