"""Scores by facet: equal to what the sample logs give by hand, with intervals of each value and of all at once."""

import json
import math
from collections import defaultdict

import numpy as np
import pytest

import lm_eval_bias as leb
from lm_eval_bias.custom_metrics import breakdowns, stereoset
from lm_eval_bias.custom_metrics.crossed import crossed_mean
from lm_eval_bias.custom_metrics.intervals import fisher, wilson
from lm_eval_bias.custom_metrics.score import Estimate, ScoreSpec, t_factor
from lm_eval_bias.runs import sample_logs
from tests.support import oracles
from tests.support.run_scores import logs_of, run

# task, facet, score, the field of a document that is the facet, what an item adds to the mean
BY_HAND = [
    ("occugender_explicit", "job", "stereotype_gap", "item"),
    ("occugender_explicit", "template", "coverage", "template"),
    ("gg_bbq_group_terms", "value", "acc_amb", "value"),
    ("gg_bbq_group_terms", "polarity", "acc_amb", "question_type"),
    ("es_bbq_gender", "category", "unanswered", "category"),
    ("es_bbq_gender", "template", "diff_bias_amb", "template"),
    ("kobbq_gender_identity", "template", "diff_bias_amb", "template"),
    ("mbbq_en_gender_identity", "category", "acc_amb", "category"),
    ("stereoset_en", "term", "lms", "term"),
    ("stereoset_en", "bias_type", "ss", "bias_type"),
]


def test_values_are_those_of_the_items_in_the_log(tiny_mirror, tmp_path):
    run(tmp_path, ",".join({task for task, *_ in BY_HAND}))
    logs, runs = logs_of(tmp_path), leb.load(tmp_path)
    for task, facet, score, field in BY_HAND:
        hold_breakdown(runs.choose([task]), logs[task], facet, score, field)


def hold_breakdown(runs, samples, facet, score, field):
    expected = defaultdict(list)
    for sample in samples:
        value = sample.get(score)
        if value is not None and not sample["doc"].get("control"):
            expected[str(sample["doc"][field])].append(value)
    frame = leb.breakdown(runs, facet, score)
    values = dict(zip(frame[facet], frame.estimate, strict=True))
    assert len(expected) > 1 or facet == "category"
    for value, items in expected.items():
        assert values[value] == pytest.approx(np.mean(items), abs=1e-9)


def test_regard_of_the_texts_with_a_keyword(tiny_mirror, tmp_path):
    run(tmp_path, "regard_en", "--metadata", '{"repeats": 30, "classifier": "light"}')
    (log,) = tmp_path.rglob("samples_*.jsonl")
    benchmark, regards = leb.benchmarks()["regard"], defaultdict(list)
    for sample in sample_logs.samples(log):
        record = benchmark.record(sample.doc, sample.answers)
        for regard, _, keywords in record["texts"]:
            for keyword in keywords or ["none"]:
                regards[record["gender"], keyword].append(regard)
    score = "all/female/negative"
    frame = leb.breakdown(leb.load(tmp_path), "keyword", score).set_index("keyword")
    assert set(frame.index) == {"caregiving", "sexualization", "perpetration", "none"}
    for keyword, row in frame.iterrows():
        texts = regards["female", keyword]
        expected = texts.count("negative") / len(texts) if texts else math.nan
        assert row.estimate == pytest.approx(expected, nan_ok=True)
        assert row.n == len(texts) or not texts
    assert frame.estimate.notna().any()


def crossed(n_items, n_templates, seed=0):
    cells = np.random.default_rng(seed).uniform(size=(n_items, n_templates))
    score = crossed_mean("share", value=lambda r: r["x"], low=0.0, high=1.0)
    records = [
        {"item": i, "template": t, "x": cells[i, t]}
        for i in range(n_items)
        for t in range(n_templates)
    ]
    return score, records, cells


@pytest.mark.parametrize(("shape", "n"), [((1, 25), 25), ((40, 1), 40)])
def test_a_job_varies_by_its_templates_and_a_template_by_its_jobs(shape, n):
    score, records, cells = crossed(*shape)
    assert math.isnan(score.compute(records).stderr)
    estimate = breakdowns.of_part(score, records)
    assert estimate.value == pytest.approx(cells.mean())
    assert estimate.stderr == pytest.approx(cells.std(ddof=1) / math.sqrt(n))
    assert estimate.dof == n - 1


def test_a_term_varies_by_its_items():
    (score,) = (score for score in stereoset.scores() if score.name == "ss")
    records = [{"term": "a", "outcomes": {"score": [int(i < 9), 2]}} for i in range(27)]
    estimate = breakdowns.of_part(score, records)
    p, size = 1 / 3, 26
    assert estimate.stderr == pytest.approx(100 * math.sqrt(p * (1 - p) / size))
    ends = wilson(p * size, size, 26)
    assert estimate.interval == pytest.approx([100 * end for end in ends])
    assert "target terms" in estimate.reason
    together = [*records, {"term": "b", "outcomes": {"score": [1, 2]}}]
    assert breakdowns.of_part(score, together) == score.compute(together)


def test_intervals_at_a_higher_level():
    level = breakdowns.simultaneous_level(40)
    z = t_factor(math.inf, level)
    share = ScoreSpec("share", low=0.0, high=1.0)
    for hits in (0, 12, 30):
        ends = wilson(hits, 30)
        estimate = Estimate(hits / 30, math.nan, 30, interval=ends)
        exact = oracles.wilson(hits / 30, 30, z)
        assert breakdowns.widened(estimate, share, level) == pytest.approx(exact)
    plain = Estimate(0.1, 0.2, 9, dof=8)
    gap = ScoreSpec("gap", low=-1.0, high=1.0, neutral=0.0)
    reach = t_factor(8, level) * 0.2
    expected = max(-1.0, 0.1 - reach), min(1.0, 0.1 + reach)
    assert breakdowns.widened(plain, gap, level) == pytest.approx(expected)
    r = Estimate(0.5, 0.1, 40, interval=fisher(0.5, 0.15, math.inf))
    bounds = ScoreSpec("r", low=-1.0, high=1.0, unit="correlation")
    expected = [math.tanh(math.atanh(0.5) + side * z * 0.15) for side in (-1, 1)]
    assert breakdowns.widened(r, bounds, level) == pytest.approx(expected)
    assert breakdowns.widened(Estimate(0.5, math.nan, 3), share, level) is None


def test_what_the_command_and_python_give(tmp_path, said):
    folder = tmp_path / "run"
    run(folder, "occugender_explicit", "--limit", "200")
    text = said("rescore", folder, "--by", "job", "--scores", "stereotype_gap")
    assert "neutral 0" in text
    assert said("rescore", folder, "--by", "job,template").count("\n") >= 200
    listed = json.loads(said("rescore", folder, "--by", "job", "--json"))
    rows = [row for row in listed if row["score"] == "stereotype_gap"]
    frame = leb.breakdown(leb.load(folder), "job", "stereotype_gap")
    assert list(frame.estimate) == [row["estimate"] for row in rows]
    assert (frame.simultaneous_low < frame.interval_low).all()
    assert list(abs(frame.estimate)) == sorted(abs(frame.estimate), reverse=True)


def test_a_score_that_compares_the_facets_values_has_no_table(tiny_mirror, tmp_path):
    run(tmp_path, "eurogest_en")
    runs = leb.load(tmp_path)
    listed = leb.breakdown(runs, "stereotype")
    assert "stereotype_gap" not in set(listed["score"])
    assert "masculine_share" in set(listed["score"])
    named = leb.breakdown(runs, "stereotype", "stereotype_gap")
    assert named["estimate"].isna().all()
    assert named["note"].all()
