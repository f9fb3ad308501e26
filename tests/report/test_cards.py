"""Cards and names of scores: complete for every benchmark of this package, and read by people and programs."""

import json
import re

import pytest

from lm_eval_bias.core import registry
from lm_eval_bias.core.benchmark import Benchmark, Card
from lm_eval_bias.core.wording import score_label
from tests.support.made_runs import DOCS, HOSTILE, run_file, write
from tests.support.pages import check_closed, made

CARDS = {benchmark.name: benchmark.card for benchmark in registry.benchmarks()}


@pytest.mark.parametrize("name", CARDS)
def test_every_field_was_written(name):
    card = CARDS[name]
    for field, value in card._asdict().items():
        assert value or field == "link", field
    assert not isinstance(card.flaws, str)
    assert sum(bool(re.search(r"\d", flaw)) for flaw in card.flaws) >= 2, "flaws come with their numbers"


@pytest.mark.parametrize("name", [name for name in CARDS if (registry.get(name).folder / "sources.json").is_file()])
def test_licences_are_those_of_the_pinned_files(name):
    files = json.loads((registry.get(name).folder / "sources.json").read_text(encoding="utf-8"))["files"]
    for licence in {one["licence"] for one in files}:
        for part in licence.replace("none stated", "states none").split("; StereoSet itself is "):
            assert part.lower() in CARDS[name].licence.lower().replace("none stated", "states none"), part


def test_a_card_for_people_and_programs(said):
    text, card = said("ls", "--card", "stereoset"), CARDS["stereoset"]
    assert max(map(len, text.splitlines())) <= 100
    assert all(str(value) in " ".join(text.split()) for value in card._replace(flaws=" - ".join(card.flaws)))
    # a variant, a task and a group lead to the same card
    for name in ("stereoset_choices", "stereoset_de_intra", "stereoset_gen"):
        assert said("ls", "--card", name) == text
    data, card = json.loads(said("ls", "--card", "regard", "--json")), CARDS["regard"]
    assert (data["flaws"], data["licence"], data["link"]) == (list(card.flaws), card.licence, None)


def test_a_card_with_what_every_card_must_have(said, toy, tmp_path):
    said("ls", "--card", "toy", status=2)
    toy.options, toy.card = {}, Card("Manners.", "More.", "Guesses.", "Nothing.", "X")
    assert "Population\n  not recorded\n" in said("ls", "--card", "toy")
    content = run_file(tasks=["gg_bbq_names"])
    content["tasks"]["gg_bbq_names"]["benchmark"] = "toy"
    found = check_closed(made([write(tmp_path / "run.json", content)], tmp_path))
    assert "Manners." in found.said
    assert "Licence" not in found.said


@pytest.mark.parametrize("name", registry.by_name())
def test_every_score_has_a_name_of_its_own_for_people(name):
    benchmark = registry.get(name)
    scores = [*benchmark.scores(), *benchmark.scores(DOCS.get(name, []), detailed=True)]
    labels = {score.name: score_label(name, score.name) for score in scores}
    assert len(set(labels.values())) == len(labels)
    for score, label in labels.items():
        assert label != Benchmark.score_label(benchmark, score), score
        assert label[0].islower(), label
        assert "_" not in label, label
        assert len(label) < 100, label


@pytest.mark.parametrize("name", registry.by_name())
def test_a_name_that_no_score_has_breaks_nothing(name):
    for score in ("", "/", "a/b/c/d", HOSTILE, "value/", "x_dominated_", "all/"):
        assert isinstance(score_label(name, score), str)
    assert score_label("nobody's", "a_score") == "a_score"


@pytest.mark.parametrize("name", registry.by_name())
def test_every_main_score_of_bias_says_what_its_sides_mean(name):
    benchmark = registry.get(name)
    scores = {score.name: score for score in [*benchmark.scores(), *benchmark.scores(DOCS.get(name, []))]}
    biased = {
        main for main in benchmark.main if scores[main].neutral is not None and scores[main].higher_is_better is None
    }
    assert biased <= set(benchmark.leanings)
    assert set(benchmark.leanings) <= {score for own in registry.by_name().values() for score in own.main}
