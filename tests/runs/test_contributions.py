"""From a score to its items: what each adds, those that move it most first."""

from dataclasses import replace

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.runs import contributions, run_discovery
from lm_eval_bias.runs.harness_results import estimated
from tests.support.made_runs import harness_folder


@pytest.fixture
def log(tmp_path):
    (run,), _ = run_discovery.read([harness_folder(tmp_path)])
    return contributions.Log(run.tasks["occugender_explicit"].samples)


def value_of(log, name):
    score = log.scores[name]
    return estimated(score, score.compute(log.records))


def test_means_are_those_of_their_items(log):
    averaged = 0
    for name in log.scores:
        value = value_of(log, name)
        parts = log.moving(value)
        if parts.are_averaged:
            averaged += 1
            assert contributions.average(parts.by_place) == pytest.approx(value.value)
        else:  # derivatives: around the score
            assert not parts.by_place or contributions.average(parts.by_place) == pytest.approx(value.value, abs=1e-5)
    assert averaged > 5


def test_the_first_move_it_away_from_neutral(log):
    gap = value_of(log, "stereotype_gap")
    assert gap.value > gap.neutral
    for neutral, sign in ((0.0, 1), (1.0, -1)):
        parts = [sign * part for _, part in log.moving(replace(gap, neutral=neutral)).by_place]
        assert parts == sorted(parts, reverse=True)
        assert parts[0] > parts[-1]
    distances = [abs(part - gap.value) for _, part in log.moving(replace(gap, neutral=None)).by_place]
    assert distances == pytest.approx(sorted(distances, reverse=True), abs=1e-9)


def test_a_score_that_is_not_there(log):
    with pytest.raises(BiasError, match="stereotype_gapp"):
        log.moving(replace(value_of(log, "stereotype_gap"), name="stereotype_gapp"))
