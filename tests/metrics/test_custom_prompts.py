"""Differences between groups in the texts after a user's prompts: by hand, against slow versions, and what can't be."""

import math
import random
from functools import partial

import pytest

from lm_eval_bias.custom_metrics import custom_prompts as m
from lm_eval_bias.custom_metrics import text_shares
from lm_eval_bias.custom_metrics.text_shares import Row
from tests.support.oracles import reason_of

NEGATIVE = "negative"
gap_of = partial(m.estimate, is_gap=True)


def comparison(groups, reference=None):
    return {
        "groups": list(groups),
        "reference": reference or groups[0],
        "facets": ["care"],
        "clusters": 0,
    }


def record(group, cluster, texts, among, **more):
    """A prompt's texts, each a regard, and whether it has the keyword."""
    rows = [(regard, ["care"] if has else []) for regard, has in texts]
    return {"group": group, "cluster": cluster, "comparison": among, "texts": rows, "drawn": len(rows), "unfinished": 0,
            "wordings": [f"{group} {cluster} {n}" for n in range(len(rows))], "has_other": False, "warning": "",
            "unlabelled": "", **more}  # fmt: skip


def prompts(shares, reference=None, texts=10):
    """Prompts of which so many of 10 texts are negative, by group and cluster."""
    among = comparison(list(shares), reference)
    return [
        record(
            group,
            cluster,
            [("negative" if i < hits else "positive", False) for i in range(texts)],
            among,
        )
        for group, own in shares.items()
        for cluster, hits in own.items()
    ]


def random_prompts(groups, clusters, seed=0, texts=8):
    rng, among = random.Random(seed), comparison(groups)
    kinds = ("negative", "neutral", "positive")
    return [
        record(
            g,
            f"c{c}",
            [(rng.choice(kinds), rng.random() < 0.4) for _ in range(texts)],
            among,
        )
        for c in range(clusters)
        for g in groups
    ]


def by_name(records):
    return {score.name: score.compute(records) for score in m.scores(records)}


def test_a_gap_of_balanced_prompts_is_the_difference_of_shares_with_both_its_intervals():
    records = prompts({"a": {"x": 2, "y": 4, "z": 4}, "b": {"x": 4, "y": 3, "z": 9}})
    rows = [Row(0, c, "", n, 10) for c, n in (("x", 4), ("y", 3), ("z", 9))]
    rows += [Row(1, c, "", n, 10) for c, n in (("x", 2), ("y", 4), ("z", 4))]
    found = gap_of(records, measure=NEGATIVE, groups=["b"])
    assert found == text_shares.difference(rows)
    assert found.value == pytest.approx(0.2, abs=1e-12)
    assert found.stderr == pytest.approx(
        0.3 / math.sqrt(3), abs=1e-12
    )  # of the differences 0.2, -0.1 and 0.5
    assert m.estimate(records, measure=NEGATIVE, groups=["b"]) == text_shares.share(
        rows[:3]
    )


def test_a_frame_that_one_group_has_more_often_is_no_difference_between_groups():
    # in x 8 of 10 texts are negative whatever the group, in y 2 of 10; a has x twice
    records = [
        *prompts({"a": {"x": 8, "y": 2}, "b": {"x": 8, "y": 2}}),
        *prompts({"a": {"x": 8}}),
    ]
    shares = [
        m.estimate(records, measure=NEGATIVE, groups=[group]).value for group in "ab"
    ]
    assert shares == pytest.approx([18 / 30, 10 / 20], abs=1e-12)
    found = gap_of(records, measure=NEGATIVE, groups=["b"])
    assert (found.value, found.n) == (pytest.approx(0.0, abs=1e-12), 50)
    # a has 20 texts of 30 in x, b 10 of 20: each side's x weighs 1/2, its y 1/3
    records = [
        *prompts({"a": {"x": 8, "y": 2}, "b": {"x": 9, "y": 5, "z": 10}}),
        *prompts({"a": {"x": 8}}),
    ]
    assert gap_of(records, measure=NEGATIVE, groups=["b"]).value == pytest.approx(
        0.6 * 0.1 + 0.4 * 0.3, abs=1e-12
    )
    # clusters without one side are left out
    records = prompts({"a": {"x": 2, "y": 4}, "b": {"x": 4, "y": 7, "z": 10}})
    found = gap_of(records, measure=NEGATIVE, groups=["b"])
    assert found.value == pytest.approx(0.25, abs=1e-12)
    assert found.reason == "1 of 3 clusters left out: no texts of b, or of a"
    apart = prompts({"a": {"x": 2}, "b": {"y": 4}})
    gap = partial(gap_of, measure=NEGATIVE, groups=["b"])
    assert reason_of(gap, apart) == "no cluster has texts of b and of a"


def test_more_groups_are_each_compared_with_the_reference_and_together():
    records = random_prompts("abc", 10)
    scores = by_name(records)
    alone = gap_of(
        [r for r in records if r["group"] != "c"], measure=NEGATIVE, groups=["b"]
    )
    assert scores["negative/gap/b"] == alone
    gaps = [scores[f"negative/gap/{group}"].value for group in "bc"]
    assert scores["negative/gap"].value == pytest.approx(
        sum(gaps) / 2, abs=1e-12
    )  # as balanced as these are
    assert "negative/gap/b" not in by_name(random_prompts("ab", 10))
    for own, whom in (
        (records, "the other groups together minus a"),
        ([], "group minus reference"),
    ):
        gap = {s.name: s for s in m.scores(own)}["negative/gap"]
        assert whom in gap.summary
        assert ("cancel" in gap.summary) is bool(own)
    for score in m.scores(records):  # what prompts add to a gap is the gap on average
        if "/gap" in score.name:
            parts = [
                part for r in records if (part := score.contribution(r)) is not None
            ]
            assert sum(parts) / len(parts) == pytest.approx(
                scores[score.name].value, abs=1e-12
            )
            assert len(parts) == (20 if "/gap/" in score.name else 30)


def test_missing_texts_and_regards_are_said():
    why = "no regard: classifiers are for de and en"
    among = comparison("ab")
    records = [
        record(g, f"c{c}", [("", c % 2 == 0)] * 4, among, unlabelled=why)
        for c in range(4)
        for g in "ab"
    ]
    scores = by_name(records)
    assert {scores[name].reason for name in ("negative/a", "positive/gap")} == {why}
    assert scores["care/a"].value == 0.5
    (gap,) = (s for s in m.scores(records) if s.name == "negative/gap")
    assert reason_of(gap.design, records) == why
    records = prompts({"a": {"x": 2, "y": 4}, "b": {"x": 4, "y": 7}})
    records[2:] = [{**r, "texts": [], "wordings": []} for r in records[2:]]
    assert by_name(records)["negative/b"].reason == "no texts of b left of 20"
    assert by_name(records)["dropped"].value == 0.5
    assert (
        by_name([{**r, "drawn": len(r["texts"])} for r in records])["negative/b"].reason
        == "no texts of b"
    )
    gone = [
        {**r, "texts": [], "wordings": []} if r["group"] == "a" else r
        for r in prompts({"a": {"x": 2}, "b": {"x": 4}})
    ]
    assert by_name(gone)["negative/gap"].reason == "no texts of a left of 10"
