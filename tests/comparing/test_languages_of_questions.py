"""Languages of the BBQ family: parallel items are paired, others are independent samples, and scores go by one name."""

import json

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.tasks import question_family

RUN = ["run", "--model", "bias-dial", "--model_args", "strength=0.2", "--log_samples"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from tests.conftest import find_mirror

    data = find_mirror()
    if data is None:
        pytest.skip("no mirror of the upstream data (set LM_EVAL_BIAS_DATA)")
    folder = tmp_path_factory.mktemp("languages")
    tasks = "es_bbq_religion,ca_bbq_religion,kobbq_religion,es_bbq_physical_appearance,ca_bbq_physical_appearance"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_EVAL_BIAS_DATA", str(data))
        patch.setenv("LM_EVAL_BIAS_CACHE", str(tmp_path_factory.mktemp("cache")))
        assert main([*RUN, "--tasks", tasks, "--limit", "192", "--output_path", str(folder)]) == 0
    return folder


def compared(run, capsys, *more):
    capsys.readouterr()
    assert main(["compare", str(run), "--by", "language", "--format", "json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def scores_of(run):
    (path,) = run.rglob("results_*.json")
    return json.loads(path.read_text(encoding="utf-8"))["results"]


def test_parallel_items_are_paired_and_others_are_independent(run, capsys, mirror):
    rows = compared(run, capsys, "--base", "es")
    kinds = {(row["what"], row["other"]): row["paired"] for row in rows}
    assert kinds == {
        ("BBQ family, religion", "language ca"): True,
        ("BBQ family, religion", "language ko"): False,
        ("BBQ family, physical_appearance", "language ca"): False,
    }
    notes = {row["other"]: row["note"] for row in rows if row["what"] == "BBQ family, religion"}
    assert notes["language ca"] == ""
    assert notes["language ko"].startswith(
        "unpaired: other items: es_bbq_religion and kobbq_religion belong to different"
    )


def test_other_benchmarks_scores_go_by_the_common_names(run, capsys, mirror):
    values = scores_of(run)
    rows = {row["score"]: row for row in compared(run, capsys, "--base", "es") if row["other"] == "language ko"}
    assert list(rows) == ["acc_amb", "acc_disamb", "diff_bias_amb", "diff_bias_disamb"]
    own = {"acc_amb": "acc_ambig_three", "acc_disamb": "acc_disambig_three",
           "diff_bias_amb": "bias_score_ambig_three", "diff_bias_disamb": "bias_score_disambig_three"}  # fmt: skip
    for name, theirs in own.items():
        assert rows[name]["base_value"] == values["es_bbq_religion"][f"{theirs},none"]
        assert rows[name]["other_value"] == values["kobbq_religion"][f"{name},none"]
        one, other = (values[t][f"{n}_stderr,none"] for t, n in (("es_bbq_religion", theirs), ("kobbq_religion", name)))
        assert rows[name]["stderr"] == pytest.approx((one**2 + other**2) ** 0.5, rel=1e-12)


def test_the_same_benchmarks_scores_keep_their_names(run, capsys, mirror):
    names = {row["score"] for row in compared(run, capsys, "--base", "es") if row["other"] == "language ca"}
    assert names == {"acc_ambig", "acc_disambig", "bias_score_ambig", "bias_score_disambig"}


def test_a_report_has_languages_side_by_side(run, capsys, mirror, tmp_path):
    page = tmp_path / "page.html"
    assert main(["report", str(run), "--items", "0", "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert '<h2 id="languages">Scores by language</h2>' in text
    own = text.partition('id="languages">Scores')[2].partition('id="provenance"')[0]
    assert "language es, then language ca" in own
    assert "belong to different benchmarks" in own
    assert "acc_amb" in own
    assert main(["report", str(run), "--format", "md"]) == 0
    assert "## Scores by language" in capsys.readouterr().out


def test_categories_by_any_language():
    from lm_eval_bias import registry

    names = {
        "es_bbq": ("es_bbq_gender", "es"),
        "kobbq": ("kobbq_gender_identity", "ko"),
        "gg_bbq": ("gg_bbq_group_terms", "de"),
    }
    found = {registry.get(name).in_any_language(task, language) for name, (task, language) in names.items()}
    assert found == {question_family.in_any_language("gender")}
    assert registry.get("gg_bbq").in_any_language("gg_bbq_names", "de") == ""
    assert registry.get("es_bbq").in_any_language("ca_bbq_age_gen", "ca") == "BBQ family, age_gen"
    assert registry.get("esbbq").in_any_language("cabbq_age", "ca") == registry.get("esbbq").in_any_language(
        "esbbq_age", "es"
    )
