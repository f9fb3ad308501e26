"""Length bias: the share of the shorter text, and scores of the items whose texts are equally long."""

import pytest

from lm_eval_bias.custom_metrics import crows_pairs, positions


def pair(number, more, less, lengths, tokens=None):
    measured = {"characters": lengths, **({"tokens": tokens} if tokens else {})}
    return {
        "pair": f"p{number}", "more": more, "less": less, "more_tokens": 3, "less_tokens": 3, "lengths": measured,
        "takes_first": None if more == less else more > less,
    }  # fmt: skip


def computed(records):
    return {s.name: s.compute(records) for s in crows_pairs.scores()}


def test_equal_lengths_alone():
    """The stereotype is likelier in three of four pairs, and in one of the two that are equally long."""
    records = [
        pair(1, -1.0, -2.0, (9, 12)),
        pair(2, -1.0, -2.0, (8, 12)),
        pair(3, -1.0, -2.0, (9, 9)),
        pair(4, -2.0, -1.0, (7, 7)),
    ]
    found = computed(records)
    assert found["stereotype_score"].value == 75.0
    assert found["equal_length/stereotype_score"].value == 50.0
    assert found["equal_length/stereotype_score"].n == 2
    assert positions.UNEVEN in found["equal_length/stereotype_score"].reason
    assert (found[positions.SHORTER].value, found[positions.SHORTER].n) == (1.0, 2)


@pytest.mark.parametrize(
    ("tokens", "share"), [((4, 3), 0.0), ((3, 4), 1.0), ((1, 1), 1.0), (None, 1.0)]
)
def test_tokens_count_where_they_tell_a_length(tokens, share):
    """The stereotype, which is likelier, has fewer characters; one token each tells no length."""
    records = [pair(number, -1.0, -2.0, (9, 12), tokens) for number in range(2)]
    assert computed(records)[positions.SHORTER].value == share
