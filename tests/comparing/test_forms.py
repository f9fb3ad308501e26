"""Two forms of asking side by side: which tasks are forms, what is subtracted, and what the forms have in common."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from lm_eval_bias import registry
from lm_eval_bias.analysis import comparisons, differences, form_associations
from lm_eval_bias.benchmark import Form
from lm_eval_bias.cli.main import main
from lm_eval_bias.custom_metrics.agreement import agreement
from lm_eval_bias.custom_metrics.rank_correlations import rank_correlation
from lm_eval_bias.errors import BiasError
from lm_eval_bias.report import comparison_reports, form_parts, parts
from tests.comparing.toy import Toy, log, run_of, spread_over, task_run

BASE = spread_over("abcdef", values=(0.0, 1.0, 1.0))
OTHER = {**BASE, "a0": 1.0, "b1": 0.0, "c0": 1.0}


@pytest.fixture
def outcomes(toy, monkeypatch):
    """The toy benchmark, whose items come out high or low."""
    monkeypatch.setattr(Toy, "outcomes", ("high", "low"))
    monkeypatch.setattr(Toy, "outcome", lambda self, record: "high" if record["value"] > 0.5 else "low")
    monkeypatch.setattr(Toy, "clusters", lambda self, record: (record["trait"],))
    return toy


def _task(folder, name, values, **changes):
    return task_run(name, log(folder, name, values), documents=len(values), **changes)


def _compared(runs, **given):
    pairs = comparisons.pairs(runs, "form")
    findings = differences.find(pairs, by="form", draws=200, **given)
    return findings, form_associations.find(pairs, findings)


def test_a_task_and_its_generated_one_are_two_forms(outcomes, tmp_path):
    run = run_of(
        "model", _task(tmp_path, "toy_gen", OTHER), _task(tmp_path, "toy", BASE), _task(tmp_path, "alone", BASE)
    )
    (finding,), associations = _compared([run])
    assert (finding.subject, finding.base, finding.other) == ("toy", "log-likelihoods", "generated")
    assert finding.difference.value == pytest.approx((sum(OTHER.values()) - sum(BASE.values())) / 18)
    assert [one.measure for one in associations] == ["correlation", "agreement", "ac1", "kappa"]
    by_trait = [[sum(v for k, v in side.items() if k[0] == trait) / 3 for trait in "abcdef"] for side in (BASE, OTHER)]
    correlation, share, ac1, kappa = associations
    expected = rank_correlation(*by_trait)
    assert (correlation.score, correlation.n, correlation.of) == ("mean", 6, 6)
    assert correlation.value == pytest.approx(expected.value, nan_ok=True)
    sides = [["high" if value > 0.5 else "low" for value in side.values()] for side in (BASE, OTHER)]
    found = agreement(*sides, [(key[0],) for key in BASE], ("high", "low"))
    for one, name in ((share, "agreement"), (ac1, "ac1"), (kappa, "kappa")):
        assert (one.value, one.interval, one.n) == (found.estimates[name].value, found.estimates[name].interval, 18)
    assert ac1.note == f"unrelated answers with these shares would give {found.by_chance:.2f}"


def test_values_by_group_are_correlated(outcomes, tmp_path):
    rng = np.random.default_rng(2)
    first = {f"{trait}{k}": float(rng.random()) for trait in "abcdefgh" for k in range(3)}
    second = {key: value + float(rng.normal(0, 0.2)) for key, value in first.items()}
    _, associations = _compared([run_of("model", _task(tmp_path, "toy", first), _task(tmp_path, "toy_gen", second))])
    means = [
        [np.mean([v for k, v in side.items() if k[0] == trait]) for trait in "abcdefgh"] for side in (first, second)
    ]
    expected = rank_correlation(*means)
    assert associations[0].value == pytest.approx(expected.value)
    assert associations[0].interval == pytest.approx(expected.interval)


def test_items_without_an_outcome_are_told_beside_the_agreement(outcomes, tmp_path, monkeypatch):
    monkeypatch.setattr(Toy, "outcome", lambda self, record: {0.0: "low", 1.0: "high"}.get(record["value"], ""))
    unread = {key: 0.5 if key[0] in "ab" else value for key, value in OTHER.items()}
    _, associations = _compared([run_of("m", _task(tmp_path, "toy", BASE), _task(tmp_path, "toy_gen", unread))])
    assert [(one.n, one.of) for one in associations] == [(6, 6), (12, 18), (12, 18), (12, 18)]
    assert associations[1].value == pytest.approx(11 / 12)  # all but c0
    assert comparison_reports.association_row(associations[1])[4] == "12 of 18 items"


def test_one_form_alone_is_one_line(toy, tmp_path):
    alone = run_of("model", _task(tmp_path, "toy", BASE))
    of_another = run_of("another", _task(tmp_path, "toy_gen", BASE))
    for runs in ([alone], [alone, of_another]):
        with pytest.raises(BiasError, match="--by form: no task was run in two or more forms"):
            comparisons.pairs(runs, "form")


def test_runs_of_one_model_are_read_as_one_and_told_apart_from_others(toy, tmp_path):
    runs = [
        run_of(name, _task(tmp_path / name / task, task, BASE))
        for name in ("one", "two")
        for task in ("toy", "toy_gen")
    ]
    pairs = comparisons.pairs(runs, "form")
    assert [pair.subject for pair in pairs] == ["one: toy", "two: toy"]
    assert [pair.base.run.name for pair in pairs] == [pair.other.run.name for pair in pairs]
    swapped = comparisons.pairs(runs[:2], "form", base="generated")
    assert [(pair.subject, pair.base.label, pair.other.label) for pair in swapped] == [
        ("toy", "generated", "log-likelihoods")
    ]
    with pytest.raises(BiasError, match="--base free: no such form among log-likelihoods, generated"):
        comparisons.pairs(runs, "form", base="free")


def test_a_form_in_two_runs_is_refused_and_a_whole_task_stands_for_a_part(toy, tmp_path, monkeypatch):
    twice = [run_of("m", _task(tmp_path / folder, "toy", BASE)) for folder in "ab"]
    written = run_of("m", _task(tmp_path, "toy_gen", BASE))
    with pytest.raises(
        BiasError, match=r"toy \(log-likelihoods\) of m is in m.json and in m.json: name one of the two"
    ):
        comparisons.pairs([*twice, written], "form")

    def forms(self, task):
        own = Form("toy", "log-likelihoods", "toy", (lambda doc: True) if task.task == "part" else None)
        return [own] if task.task != "toy_gen" else [own._replace(name="generated")]

    monkeypatch.setattr(Toy, "forms", forms)
    part = run_of("m", _task(tmp_path, "part", BASE))
    for runs in ([part, twice[0], written], [twice[0], written, part]):
        (pair,) = comparisons.pairs(runs, "form")
        assert (pair.base.task.task, pair.other.task.task) == ("toy", "toy_gen")


def test_without_outcomes_there_is_no_agreement(toy, tmp_path):
    _, associations = _compared([run_of("model", _task(tmp_path, "toy", BASE), _task(tmp_path, "toy_gen", OTHER))])
    assert [one.measure for one in associations] == ["correlation"]


def test_other_names_meanings_and_chance_levels_are_said_and_not_subtracted(outcomes, toy, tmp_path, monkeypatch):
    variant = type("Written", (Toy,), {"name": "written", "main": ("mean",)})()
    by_name = {**registry.by_name(), "written": variant}
    monkeypatch.setattr(registry, "by_name", lambda: by_name)
    monkeypatch.setattr(
        Toy, "forms", lambda self, task: [Form("toy", task.task, "written" if task.task == "other" else "toy")]
    )
    run = run_of("model", _task(tmp_path, "toy", BASE), _task(tmp_path, "other", OTHER))
    plain = Toy.scores(toy)

    def compared(changed=None, **attributes):
        monkeypatch.setattr(
            type(variant), "scores", lambda self, docs=(), detailed=False: changed or plain, raising=False
        )
        for name, value in attributes.items():
            monkeypatch.setattr(type(variant), name, value, raising=False)
        return _compared([run])

    (finding,), _ = compared()
    assert finding.difference.value > 0
    (finding,), associations = compared([replace(plain[0], high=100.0)])
    assert finding.verdict == "its high is 9.0 for toy, 100.0 for other: can't be subtracted"
    assert math.isnan(finding.difference.value)
    assert (finding.base_value, finding.other_value) == (pytest.approx(12 / 18), pytest.approx(13 / 18))
    assert associations[0].measure == "correlation"  # orders need no common scale
    renamed = [replace(plain[0], name="written_mean")]
    (first, second), associations = compared(renamed, main=("written_mean",))
    assert first.verdict == "other: no such score"
    assert second.verdict == "toy: no such score"
    assert (first.score.name, second.score.name) == ("mean", "written_mean")
    assert [one.measure for one in associations] == ["agreement", "ac1", "kappa"]
    (finding,), associations = compared(renamed, counterparts={"written_mean": "mean"})
    assert finding.verdict == "it is mean for toy, written_mean for other: can't be subtracted"
    assert finding.other_value == pytest.approx(13 / 18)
    assert associations[0].score == "mean"
    monkeypatch.setattr(Toy, "knowledge", ("mean", 0.5))
    (finding,), _ = compared(main=("mean",), knowledge=("mean", 2 / 3))
    assert finding.verdict == "guessing gives 0.5 for toy, 0.667 for other: can't be subtracted"


def test_items_that_one_form_lacks_are_left_out_and_said(outcomes, tmp_path):
    fewer = {key: value for key, value in OTHER.items() if key != "f2"}
    (finding,), associations = _compared([run_of("m", _task(tmp_path, "toy", BASE), _task(tmp_path, "toy_gen", fewer))])
    assert (finding.items, finding.note) == (17, "1 unmatched items left out")
    assert associations[-1].n == 17
    none = spread_over("xyz")
    with pytest.raises(BiasError, match="other items: 18 and 3, none of them the same"):
        _compared([run_of("m", _task(tmp_path, "toy", BASE), _task(tmp_path, "toy_gen", none))])


def test_what_else_the_forms_differ_in_is_said(outcomes, tmp_path):
    tasks = [
        _task(tmp_path, name, BASE, metadata={"words": words, "tone": tone}, version=version)
        for name, words, tone, version in (("toy", "few", "plain", "1.0"), ("toy_gen", None, "plain", "3.0"))
    ]
    dtypes = ("float32", "bfloat16")
    runs = [run_of("m", own, dtype=dtype, model_args=f"a={dtype}") for own, dtype in zip(tasks, dtypes, strict=True)]
    (finding,), _ = _compared(runs)
    assert finding.note == (
        "the runs differ in model args (a=float32, a=bfloat16), dtype (float32, bfloat16); "
        "the forms also differ in words (few, none)"
    )
    other = replace(tasks[1], metadata={"dataset_used": {"sha256": "9" * 64}})
    with pytest.raises(BiasError, match="data sets: the published one and 999999999999"):
        _compared([run_of("m", tasks[0], other)])


def test_a_report_puts_the_forms_of_a_run_side_by_side(outcomes, tmp_path):
    tasks = [_task(tmp_path, "toy", BASE), _task(tmp_path, "toy_gen", OTHER)]
    items = parts.report_tasks([run_of("model", *tasks)])
    part = form_parts.side_by_side(items)
    scores, associations = part.tables
    assert [cell.whole for cell in scores.rows[0][:4]] == [
        "toy log-likelihoods, then generated",
        "mean",
        "0.6667",
        "0.7222",
    ]
    assert [row[1].text for row in associations.rows] == [
        "Spearman's correlation over groups of items",
        "share of items with the same outcome",
        "Gwet's AC1",
        "Cohen's kappa",
    ]
    assert form_parts.side_by_side(items[:1]) is None
    without = [replace(item, task=replace(item.task, samples=None)) for item in items]
    part = form_parts.side_by_side(without)
    assert part.tables == ()
    assert part.text[0].startswith("toy: generated and log-likelihoods can't be compared without the sample logs")
    tasks[0].samples.write_text("damaged")
    part = form_parts.side_by_side(items)
    assert part.tables == ()
    assert part.text[0].startswith("Not compared: ")


def test_forms_of_every_benchmark():
    gg_bbq, wordings = registry.get("gg_bbq"), registry.get("gg_bbq_prompts")

    def named(benchmark, task, **metadata):
        return [(form.group, form.name) for form in benchmark.forms(task_run(task, metadata=metadata))]

    assert named(gg_bbq, "gg_bbq_names") == [("gg_bbq_names", "log-likelihoods")]
    assert named(gg_bbq, "gg_bbq_names_gen", wording=4) == [("gg_bbq_names", "generated, wording 4 (letters)")]
    assert named(gg_bbq, "gg_bbq_names_paper_gen") == [("gg_bbq_names_paper", "generated")]
    assert named(wordings, "gg_bbq_names_prompts")[1:4] == [
        ("gg_bbq_names", "log-likelihoods"),
        ("gg_bbq_names", "log-likelihoods, wording 3"),
        ("gg_bbq_names", "log-likelihoods, wording 4 (letters)"),
    ]
    assert named(registry.get("stereoset"), "stereoset_de_gen") == [("stereoset_de", "generated")]
    assert named(registry.get("occugender"), "occugender_explicit") == [("occugender_explicit", "log-likelihoods")]
    stereoset = registry.get("stereoset")
    # [stereotype beats anti-stereotype, how many of both beat the unrelated one]
    for preferences, outcome in (([1, 2], "stereotype"), ([1, 1], "stereotype"), ([0, 1], "anti-stereotype"),
                                 ([0, 2], "anti-stereotype"), ([1, 0], "unrelated"), (None, "")):  # fmt: skip
        assert stereoset.outcome({"outcomes": {"score": preferences}}) == outcome
    assert stereoset.outcome({"taken": "unrelated"}) == "unrelated"
    occugender = registry.get("occugender")
    for shares, outcome in (((0.2, 0.7, 0.1), "female"), ((0.5, 0.5, 0.0), ""), ((0.1, 0.2, 0.7), "diverse"),
                            ((math.nan,) * 3, "")):  # fmt: skip
        assert occugender.outcome(dict(zip("MFD", shares, strict=True))) == outcome


@pytest.fixture
def made(tmp_path, tiny_mirror):
    """Runs of one model in six forms, in two folders."""
    root = tmp_path / "forms"
    for folder, tasks, extra in (
        ("likelihoods", "gg_bbq_group_terms,gg_bbq_group_terms_prompts", []),
        ("generated", "gg_bbq_group_terms_gen", []),
        ("letters", "gg_bbq_group_terms_gen", ["--metadata", '{"wording": 4}']),
    ):
        arguments = ["--model", "bias-chance", "--output_path", str(root / folder), "--log_samples"]
        assert main(["run", "--tasks", tasks, *arguments, *extra]) == 0
    return root


def _said(capsys, *arguments):
    capsys.readouterr()
    assert main([*map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_command_in_every_format_and_with_one_form(made, capsys):
    folders = [made / "likelihoods", made / "generated", made / "letters"]
    command = ["compare", *folders, "--by", "form", "--draws", "200"]
    text = _said(capsys, *command)
    assert "gg_bbq_group_terms: generated against log-likelihoods (" in text
    assert "gg_bbq_group_terms: log-likelihoods, wording 4 (letters) against log-likelihoods (" in text
    assert "gg_bbq_group_terms: what generated and log-likelihoods have in common" in text
    assert "Gwet's AC1" in text
    data = json.loads(_said(capsys, *command, "--format", "json"))
    assert {row["other"] for row in data["differences"]} == {
        "generated", "generated, wording 4 (letters)",
        "log-likelihoods, wording 1", "log-likelihoods, wording 3", "log-likelihoods, wording 4 (letters)",
        "log-likelihoods, wording 5",
    }  # fmt: skip
    generated = [row for row in data["associations"] if row["other"] == "generated"]
    assert [row["measure"] for row in generated[-3:]] == ["agreement", "ac1", "kappa"]
    assert sum(row["measure"] == "correlation" for row in generated) == 4
    rows = list(csv.DictReader(io.StringIO(_said(capsys, *command, "--format", "csv"))))
    assert len(rows) == len(data["differences"]) + len(data["associations"])
    assert {row["measure"] for row in rows} == {"difference", "correlation", "agreement", "ac1", "kappa"}
    assert "| Gwet's AC1" in _said(capsys, *command, "--format", "md")
    assert "% gg_bbq_group_terms: what generated" in _said(capsys, *command, "--format", "latex")
    report = _said(capsys, "report", made / "likelihoods", "--format", "md")
    assert "gg\\_bbq\\_group\\_terms (log-likelihoods, then log-likelihoods, wording 5)" in report
    assert "What the forms have in common" in report
    assert "What the forms have in common" not in _said(capsys, "report", made / "generated", "--format", "md")
    assert main(["compare", str(made / "generated"), "--by", "form"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "no task was run in two or more forms" in error
