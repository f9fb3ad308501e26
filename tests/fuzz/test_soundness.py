"""Scores outside their range are refused, in one line that says where and what."""

from __future__ import annotations

import json
import math
import re
import shutil

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.runs import run_discovery, soundness
from tests.support.fuzzing import command, refused
from tests.support.made_runs import harness_folder, run_file, write

TASK, SCORE = "occugender_explicit", "stereotype_gap"
POLICY = f"bounds:\n  - {{task: {TASK}, score: {SCORE}, max: 0.99, on: point}}\n"


def value(number):
    return lambda results, metric: results.update({f"{SCORE},none": number})


def stderr(number):
    return lambda results, metric: results.update({f"{SCORE}_stderr,none": number})


def meaning(**fields):
    return lambda results, metric: metric.update(fields)


IMPOSSIBLE = [
    (value(777.0), "it is 777, outside of its range of -1 to 1"),
    (value(-1.0001), "it is -1.0001, outside"),
    (value(math.inf), "it is inf, outside"),
    (stderr(-0.1), "its standard error is -0.1"),
    (meaning(interval=[0.2, -0.2]), "its interval [0.2, -0.2] "),
    (meaning(interval=[-1.5, 0.5]), "its interval [-1.5, 0.5] "),
    (meaning(interval=[math.nan, 0.5]), "its interval [nan, 0.5] "),
    (meaning(fixed_interval=[0.5, 0.1]), "its interval of the items as given [0.5, 0.1] "),
    (meaning(range=[1, -1], interval=None), "it is "),
]


@pytest.fixture
def results(tmp_path):
    harness_folder(tmp_path / "run")
    (path,) = (tmp_path / "run").rglob("results_*.json")
    return path


def edit(path, change):
    content = json.loads(path.read_text())
    metric = next(m for m in content["configs"][TASK]["metric_list"] if m["metric"] == SCORE)
    change(content["results"][TASK], metric)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(("change", "says"), IMPOSSIBLE)
def test_what_cannot_be_is_refused_with_its_place(results, change, says):
    assert run_discovery.read([results])
    edit(results, change)
    with pytest.raises(BiasError) as refusal:
        run_discovery.read([results])
    assert f"{results}: {TASK}: {SCORE}: {says}" in str(refusal.value)


@pytest.mark.parametrize(
    "change",
    [
        value(-1.0 - 1e-15),  # rounding at the end of the range
        meaning(interval=[-1.0 - 1e-15, 1.0 + 1e-15]),
        stderr("N/A"),
        stderr(0.0),  # of older versions: no certainty, but no damage
    ],
)
def test_what_can_be_is_read(results, change):
    edit(results, lambda scores, metric: metric.update(interval=None))
    edit(results, change)
    (run,), problems = run_discovery.read([results])
    assert SCORE in run.tasks[TASK].scores
    assert not problems


def test_a_run_file_is_held_to_the_same(tmp_path):
    content = run_file(tasks=["stereoset_en"])
    content["tasks"]["stereoset_en"]["scores"]["ss"] |= {"value": 777.0, "interval": [759.2, 100]}
    with pytest.raises(BiasError, match="stereoset_en: ss: it is 777, outside of its range of 0 to 100"):
        run_discovery.read([write(tmp_path / "odd.json", content)])


@pytest.mark.parametrize("verb", ["report", "check"])
def test_every_command_reads_the_good_ones_and_names_the_bad_one(verb, results, tmp_path, capsys):
    edit(results, value(777.0))
    for shift, name in enumerate(("good", "fine")):
        harness_folder(tmp_path / name, version=0.5, shift=shift)  # by which other scores may come of the same log
    (tmp_path / "policy.yaml").write_text(POLICY)
    more = ["--format", "md"] if verb == "report" else ["--policy", str(tmp_path / "policy.yaml")]
    status = main([verb, *(str(tmp_path / name) for name in ("run", "good", "fine")), *more])
    output = capsys.readouterr()
    assert status == (1 if verb == "check" else 0), output.err
    assert output.out
    (line,) = [line for line in output.err.splitlines() if "777" in line]
    assert f"{results}: {TASK}: {SCORE}: it is 777, outside of its range of -1 to 1" in line


def test_scores_of_unknown_benchmarks_are_held_to_their_own_ranges():
    soundness.check_scores("somebody's", {"x": Value("x", 777.0)})
    with pytest.raises(BiasError, match="x: it is 777"):
        soundness.check_scores("somebody's", {"x": Value("x", 777.0, low=0.0, high=1.0)})


def test_a_score_that_some_models_take_beyond_its_range(tmp_path):
    # words of one, two and more tokens, each unmasked one by one: their probabilities are of several distributions
    content = run_file(tasks=[TASK])
    coverage = content["tasks"][TASK]["scores"]["coverage"]
    coverage |= {"value": 1.2, "interval": [1.1, 1.0]}
    assert run_discovery.read([write(tmp_path / "masked.json", content)])
    coverage["value"] = 777.0
    with pytest.raises(BiasError, match="coverage: it is 777"):
        run_discovery.read([write(tmp_path / "odd.json", content)])


def change(path, edit):
    """Rewrite a log with what is made of its lines."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    edit(lines)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def mixed(small_run, tmp_path):
    return shutil.copytree(small_run, tmp_path / "mixed")


def test_logs_in_another_order(mixed):
    change(next(mixed.rglob("samples_stereoset_en_2*")), lambda lines: lines.reverse())
    outcome = command("rescore", str(mixed))
    assert (outcome.status, outcome.err) == (0, "")


def relabelled(lines):
    """Stereotypes for unrelated candidates."""
    names = {"stereotype": "unrelated", "unrelated": "stereotype"}
    for candidate in (candidate for line in lines for candidate in line["doc"]["candidates"]):
        candidate["label"] = names.get(candidate["label"], candidate["label"])


def reworded(lines):
    lines[0]["arguments"]["gen_args_0"]["arg_1"] += "!"


@pytest.mark.parametrize("edit", [relabelled, reworded])
def test_the_log_of_other_documents(edit, mixed):
    change(next(mixed.rglob("samples_stereoset_en_2*")), edit)
    assert "its samples have other documents or prompts than the run (results_" in refused(mixed, "rescore", str(mixed))


LINE = '{"doc": {"benchmark": "%s"}, "filtered_resps": [], "doc_id": %s}\n'
DAMAGED = {
    "cut": (lambda raw: raw[:-20], " line 8: "),
    "cut at a line": (lambda raw: raw[: raw[:-1].rindex(b"\n") + 1], "7 documents, but the run scored 8"),
    "not UTF-8": (lambda raw: raw[:-20] + b"\xff", "not UTF-8 after line 7"),
    "no object": (lambda raw: b"[]\n", " line 1: "),
    "no answers": (lambda raw: raw.replace(b'"filtered_resps"', b'"x"', 1), " line 1: "),
    "odd answers": (lambda raw: raw.replace(b'"filtered_resps": [', b'"filtered_resps": [["x"], ', 1), " line 1: "),
    "twice": (lambda raw: raw.replace(b'"doc_id": 1,', b'"doc_id": 0,', 1), " line 2: document 0 appears twice"),
    "no number": (lambda raw: raw.replace(b'"doc_id": 0,', b'"doc_id": "0",', 1), " line 1: "),
    "another's": (lambda raw: (LINE % ("mmlu", 0)).encode(), " line 1: "),
    "nothing": (lambda raw: b"\n", ""),
    "no fields": (lambda raw: raw.replace(b'"candidates":', b'"x":', 1), "document 0: "),
    "deep": (lambda raw: b"[" * 100_000, " line 1: "),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_logs(kind, mixed):
    damage, says = DAMAGED[kind]
    log = next(mixed.rglob("samples_stereoset_en_2*"))
    log.write_bytes(damage(log.read_bytes()))
    assert f"{log}{says}" in refused(mixed, "rescore", str(log)).replace(f"{log}: ", str(log))


def test_logs_of_others_in_a_folder_are_passed_over(mixed):
    log = next(mixed.rglob("samples_stereoset_en_2*"))
    (other := log.with_name(log.name.replace("stereoset_en", "mmlu"))).write_text(LINE % ("mmlu", 0))
    outcome = command("rescore", str(mixed), "--json")
    assert (outcome.status, len(json.loads(outcome.out))) == (0, 4)
    (line,) = outcome.err.splitlines()
    assert f"skipped: {other} line 1: " in line
    assert str(other) in refused(mixed, "rescore", str(other))


# ---- check --strict computes every score again from the samples


@pytest.fixture
def folder(small_run, tmp_path):
    allowed = "[limit, samples, inputs, seeds, repeats, classifier, chance_level]"
    bound = "{task: stereoset_en, score: ss, max: 99.9, on: point}"
    (tmp_path / "policy.yaml").write_text(f"bounds: [{bound}]\nallow: {allowed}\n")
    return shutil.copytree(small_run, tmp_path / "run")


def strict(folder, *more):
    done = command("check", str(folder), "--policy", str(folder.parent / "policy.yaml"), "--json", *more)
    findings = json.loads(done.out)["runs"][0]["findings"]
    return done.status, {f["task"]: f["says"] for f in findings if f["score"] == "samples"}


def edited(folder, change):
    (path,) = folder.rglob("results_*.json")
    content = json.loads(path.read_text())
    change(content, content["results"]["stereoset_en"])
    path.write_text(json.dumps(content))


def test_what_a_run_wrote_is_what_its_samples_give(folder):
    status, says = strict(folder, "--strict")
    assert (status, says) == (0, dict.fromkeys(says, ""))
    assert strict(folder)[1] == {}  # asked for alone


def meaning(content):
    return {metric["metric"]: metric for metric in content["configs"]["stereoset_en"]["metric_list"]}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c, r: r.update({"ss,none": r["ss,none"] + 0.25}), "ss has the value"),
        (lambda c, r: r.update({"ss_stderr,none": r["ss_stderr,none"] / 2}), "ss has the standard error"),
        (lambda c, r: (r.update({"lms,none": math.nan}), meaning(c)["lms"].update(interval=None)), "lms has the value"),
        (lambda c, r: meaning(c)["ss"].update(dof=1000.0), "ss has the degrees of freedom 1000"),
        (lambda c, r: meaning(c)["ss"].update(interval=[0.0, 100.0]), "ss has the interval's lower end 0"),
        (lambda c, r: r.pop("icat,none"), "icat is not in the file"),
        (lambda c, r: (r.update({"own,none": 1.0}), meaning(c)["icat"].update(metric="own")), "own is not a score of"),
    ],
)
def test_a_file_that_says_anything_else_is_a_violation(change, says, folder):
    edited(folder, change)
    assert strict(folder)[0] == 0
    status, found = strict(folder, "--strict")
    assert status == 1
    assert says in found["stereoset_en"]
    assert not any(problem for task, problem in found.items() if task != "stereoset_en")


def test_rounding_is_no_difference(folder):
    edited(folder, lambda c, r: r.update({"ss,none": r["ss,none"] * (1 + 1e-12)}))
    assert strict(folder, "--strict")[0] == 0


def test_without_a_log_nobody_can_tell(folder):
    next(folder.rglob("samples_regard_en*")).unlink()
    assert strict(folder)[0] == 0
    status, found = strict(folder, "--strict")
    assert status == 1
    assert "--log_samples" in found["regard_en"]


def test_a_log_of_other_documents_is_a_violation(folder):
    log = next(folder.rglob("samples_stereoset_en*"))
    other = {'"stereotype"': '"anti-stereotype"', '"anti-stereotype"': '"stereotype"'}
    text = re.sub('"(?:anti-)?stereotype"', lambda found: other[found[0]], log.read_text(encoding="utf-8"))
    log.write_text(text, encoding="utf-8")
    assert strict(folder)[0] == 0
    status, found = strict(folder, "--strict")
    assert (status, "other documents" in found["stereoset_en"]) == (1, True)
