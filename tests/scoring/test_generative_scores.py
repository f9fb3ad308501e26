"""The generative scores of a next sentence where a part has no tokens; ``test_families.py`` has their values."""

import math

import pytest

from lm_eval_bias.scoring.generative_scores import next_sentence_scores


@pytest.mark.parametrize(
    ("place", "undefined"),
    [
        (0, {"gen_full", "gen_orig", "gen_full_ratio"}),  # no context
        (1, {"gen", "gen_full", "gen_pmi", "gen_full_ratio"}),  # no candidate after it
        (2, {"gen_orig", "gen_pmi", "gen_full_ratio"}),  # no candidate alone
    ],
)
def test_scores_that_need_a_part_without_tokens_are_undefined(place, undefined):
    parts = [-6.0, 3, -8.0, 2, -15.0, 3]
    whole = next_sentence_scores(parts)
    parts[2 * place : 2 * place + 2] = [0.0, 0]
    for name, value in next_sentence_scores(parts).items():
        assert math.isnan(value) == (name in undefined), name
        assert name in undefined or value == whole[name]
