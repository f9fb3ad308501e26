"""What fails in one benchmark is named and left out: commands about others go on, and a run keeps its answers."""

import json
import re

import pytest

from tests.support.commands import command
from tests.support.run_scores import results_of

FAIL = "\n\ndef fail(*a, **k):\n    raise RuntimeError('age')\n\n\nreal = AgeStereotypes.scores\n"
FAILED = r" failed \(RuntimeError: age\)"
TWO = (
    "--tasks",
    "age_pairs,occugender_implicit",
    "--model",
    "bias-chance",
    "--limit",
    "16",
    "--log_samples",
)


def scores_with(change):
    return f"AgeStereotypes.scores = lambda s, *a, **k: [dataclasses.replace(o, {change}) for o in real(s, *a, **k)]\n"


@pytest.fixture
def run(installed, tmp_path):
    """A run of its tasks beside one of this package's."""
    assert command("run", *TWO, "--output_path", str(tmp_path / "run")).status == 0
    return tmp_path / "run"


def test_a_part_that_fails_does_not_end_a_page_on_others(package, run, tmp_path):
    def shown(name):
        found = command(name, str(run), "-o", str(tmp_path / "page.html"))
        assert found.status == 2
        assert "occugender_implicit" in (tmp_path / "page.html").read_text()
        return found.err.rstrip()

    for part in (
        "diagnostics",
        "withheld",
        "published",
    ):
        package(more=f"{FAIL}AgeStereotypes.presentation = Presentation({part}=fail)\n")
        warned = shown("leaderboard" if part == "published" else "report")
        assert re.fullmatch(
            rf"lm-eval-bias: warning: the benchmark age_stereotypes: .*{FAILED}", warned
        ), part
    own = package()
    (own / "data" / "card.yaml").write_text("measures: Age.\ncosts: None.\n")
    warned = shown("report")
    assert str(own / "data" / "card.yaml") in warned
    assert "'costs'" in warned


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("AgeStereotypes.name = 'occugender'\n", r"another one is named occugender"),
        (
            "BENCHMARK = 'none'\n",
            r"benchmark:BENCHMARK.* is left out \(.*not an instance of lm_eval_bias.Benchmark",
        ),
        (
            "",
            r"age_stereotypes are left out \(.*broken.yaml: the key 'language' is missing\)",
        ),
    ],
)
def test_others_are_listed(more, says, package):
    own = package(more=more)
    if not more:
        (own / "broken.yaml").write_text(
            "task: broken\nmetadata: {benchmark: age_stereotypes}\n"
        )
    found = command("ls", "--all")
    assert found.status == 2
    assert "occugender_implicit" in found.out
    assert re.search(says, found.err)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("AgeStereotypes.record = fail\n", "document slow/At the station: record"),
        (scores_with("statistic=fail"), "the score old_share"),
        (scores_with("contribution=fail"), "document slow/At the station: old_share"),
    ],
)
def test_an_error_keeps_the_answers_of_a_run(change, says, package, tmp_path):
    package(more=FAIL + change)
    found = command("run", *TWO, "--output_path", str(tmp_path / "run"))
    assert found.status == 2
    assert re.search(
        rf"^lm-eval-bias: warning: age_pairs: {says}{FAILED}$", found.err, re.MULTILINE
    )
    (log,) = tmp_path.rglob("samples_age_pairs_*.jsonl")
    assert len(log.read_text().splitlines()) == 16
    results = results_of(tmp_path / "run")
    if "contribution" in change:  # the log lacks it, and the score needs it not
        assert 0 <= results["results"]["age_pairs"]["old_share,none"] <= 100
        return
    assert results["results"]["age_pairs"]["old_share,none"] == "N/A"
    note = next(
        m["note"]
        for m in results["configs"]["age_pairs"]["metric_list"]
        if m["metric"] == "old_share"
    )
    assert re.search(FAILED, note)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (scores_with("statistic=lambda r: Estimate(123.0, 3.0, 24)"),
         "old_share: it is 123, outside of its range of 0 to 100"),
        ("record = AgeStereotypes.record\n"
         "AgeStereotypes.record = lambda s, d, a: {**record(s, d, a), 'old': math.nan}\n",
         "no main score has a value: "),
    ],
)  # fmt: skip
def test_a_run_publishes_nothing_that_no_score_can_be(change, says, package, tmp_path):
    package(more=f"{FAIL}from lm_eval_bias.authoring import Estimate\n{change}")
    arguments = ["--tasks", "age_pairs", "--model", "bias-chance", "--log_samples"]
    found = command("run", *arguments, "--output_path", str(tmp_path))
    assert found.status == 2
    assert f"lm-eval-bias: warning: age_pairs: {says}" in found.err
    assert results_of(tmp_path)["results"]["age_pairs"]["old_share,none"] == "N/A"
    if says.startswith("old_share"):
        (scored,) = json.loads(command("rescore", str(tmp_path), "--json").out)
        assert scored["scores"]["old_share"]["value"] is None
        assert says in scored["scores"]["old_share"].values()
