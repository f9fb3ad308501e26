"""``explain``: what a score means, its items and its verdict, from a run and its sample log."""

import math
from dataclasses import replace

import numpy as np
import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.report import explanations
from lm_eval_bias.runs import contributions, run_discovery, sample_logs
from lm_eval_bias.runs.run_data import Value


def value(low, high, neutral=0.0, better=None, point=None):
    middle = (low + high) / 2 if point is None else point
    return Value("s", middle, 0.1, (low, high), low=-1.0, high=1.0, neutral=neutral, higher_is_better=better)


def _score_of(run_folder, name="stereotype_gap"):
    (run,), _ = run_discovery.read([run_folder])
    (task,) = run.tasks.values()
    return task.scores[name]


def test_a_score_is_explained_from_its_meaning_to_its_limits(run_folder, capsys):
    assert main(["explain", str(run_folder), "stereotype_gap"]) == 0
    out = capsys.readouterr().out
    titles = [line for line in out.splitlines() if line and not line.startswith(" ")]
    assert titles[0].startswith("stereotype_gap of occugender_explicit, ")
    assert titles[1:5] == ["What it means", "In this run", "How it was computed", titles[4]]
    assert titles[4] == "The items that move it most (texts may offend), 3 of 120"
    assert titles[5:] == ["What would change the verdict", "What it can't support"]
    assert "neutral at 0" in out
    assert "From 120 scored items, as the mean of their values." in out
    assert "a limited run" in out or "trial run" in out
    assert "The whole interval is above 0" in out
    assert "Nothing about stereotypes other than occupations" in out
    assert out.count("Q: ") == 3


def test_items_are_those_that_add_most(run_folder):
    log = next(run_folder.rglob("samples_*.jsonl"))
    found = contributions.strongest(log, _score_of(run_folder), 5)
    from lm_eval_bias import registry

    benchmark = registry.get("occugender")
    gaps = {}
    for _, doc, answers in sample_logs.first_filter(log):
        record = benchmark.record(doc, answers)
        sign = 1 if record["group"] == "female" else -1
        gaps[" / ".join(benchmark.key(doc))] = sign * (record["F"] - record["M"])
    ordered = sorted(gaps, key=lambda name: (-gaps[name], name))[:5]
    assert [item.name for item in found.items] == ordered
    assert [item.part for item in found.items] == pytest.approx([gaps[name] for name in ordered])
    assert found.documents == 120
    assert found.are_averaged
    assert _score_of(run_folder).value == pytest.approx(math.fsum(gaps.values()) / 120)
    for item in found.items:
        assert len(item.requests) == len(item.answers) == 26
        assert all(item.name.split(" / ")[1] in request[0] for request in item.requests)


def test_of_a_score_below_neutral_the_lowest_items_are_shown(run_folder):
    log = next(run_folder.rglob("samples_*.jsonl"))
    found = contributions.strongest(log, replace(_score_of(run_folder), neutral=2.0), 2)
    assert found.items[0].part <= found.items[1].part <= _score_of(run_folder).value


def test_what_items_add_to_a_correlation_is_how_they_pull_at_it(run_folder, capsys):
    log = contributions.Log(next(run_folder.rglob("samples_*.jsonl")))
    value = _score_of(run_folder, "labour_pearson")
    parts = dict(log.parts(value).by_place)
    assert len(parts) == 120
    shares = {str(record["item"]): record["share"] for record in log.records}
    by_item = {item: [p for p, r in enumerate(log.records) if r["item"] == item] for item in shares}

    def correlation(weights):
        means = [
            math.fsum(weights[p] * log.records[p]["F"] for p in places) / math.fsum(weights[p] for p in places)
            for places in by_item.values()
        ]
        items = [math.fsum(weights[p] for p in places) for places in by_item.values()]
        table = np.cov(means, list(shares.values()), aweights=items)
        return table[0, 1] / math.sqrt(table[0, 0] * table[1, 1])

    assert correlation(np.ones(120)) == pytest.approx(value.value)
    for place in (0, 7, 64, 119):
        ends = []
        for step in (-1e-3, 1e-3):
            weights = np.ones(120)
            weights[place] += step
            ends.append(correlation(weights))
        assert parts[place] == pytest.approx(value.value + 120 * (ends[1] - ends[0]) / 2e-3, abs=1e-3)
    assert main(["explain", str(run_folder), "labour_pearson"]) == 0
    out = capsys.readouterr().out
    assert "The score is not a plain mean of the items' values." in " ".join(out.split())


def test_a_score_that_has_no_parts_shows_no_items(run_folder, capsys):
    assert main(["explain", str(run_folder), "variance_items"]) == 0
    assert "no single item contributes to this score by itself" in capsys.readouterr().out


def test_by_default_the_score_that_is_furthest_off(run_folder, capsys):
    assert main(["explain", str(run_folder), "--items", "0"]) == 0
    out = capsys.readouterr().out
    (run,), _ = run_discovery.read([run_folder])
    (task,) = run.tasks.values()
    assert out.startswith(f"{explanations.chosen(task)} of occugender_explicit")
    assert "The items" not in out


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (value(0.1, 0.3), "The whole interval is above 0; its nearer end is 0.1 away. An interval 2.0 times wider"),
        (value(-0.3, -0.1), "The whole interval is below 0; its nearer end is 0.1 away."),
        (value(-0.1, 0.3), "The interval includes 0: there is no clear direction. With this value, a clear one "
                           "would take an interval 2.0 times narrower, from about 4 times the evidence."),
        (value(-0.2, 0.2), "there is no clear direction. With this value, a clear one would take another value."),
        (value(0.1, 0.3, neutral=None), "It has no neutral value"),
        (value(0.1, 0.3, neutral=1.0, better=True), "1 is best."),
    ],
)  # fmt: skip
def test_what_would_change_the_verdict(one, says):
    assert says in " ".join(explanations._verdict(one))


def test_a_value_that_could_not_be_computed_has_no_verdict():
    missing = Value("s", math.nan, note="only one template", neutral=0.0)
    assert list(explanations._verdict(missing)) == []


def test_a_run_without_a_log_says_so(run_folder, tmp_path, capsys):
    results = next(run_folder.rglob("results_*.json"))
    (tmp_path / results.name).write_bytes(results.read_bytes())
    assert main(["explain", str(tmp_path), "stereotype_gap"]) == 0
    assert "None to show: the run has no sample log (--log_samples)." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["stereotype_gp"], "no score named 'stereotype_gp'"),
        (["--task", "occugender_implicit"], "--task occugender_implicit: not in this run, which has occugender_exp"),
        (["--items", "-1"], "--items -1: must be 0 or more"),
    ],
)
def test_refusals(run_folder, arguments, says, capsys):
    assert main(["explain", str(run_folder), *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
