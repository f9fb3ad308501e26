"""What people call the scores."""

import pytest

from lm_eval_bias.core import registry
from lm_eval_bias.core.benchmark import Benchmark
from lm_eval_bias.core.wording import score_label
from tests.support.made_runs import DOCS, HOSTILE


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
