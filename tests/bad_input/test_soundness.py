"""Scores outside their range are refused, in one line that says where and what."""

from __future__ import annotations

import json
import math
import re
import shutil

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.runs import run_discovery
from tests.support.commands import command, refused
from tests.support.made_runs import edited, harness_folder, run_of, write

TASK, SCORE = "occugender_explicit", "stereotype_gap"
POLICY = f"bounds:\n  - {{task: {TASK}, score: {SCORE}, max: 0.99, on: point}}\n"


def value(number):
    return lambda results, metric: results.update({f"{SCORE},none": number})


def stderr(number):
    return lambda results, metric: results.update({f"{SCORE}_stderr,none": number})


def meaning(**fields):
    return lambda results, metric: metric.update(fields)


@pytest.fixture
def results(tmp_path):
    """A run's folder, its result file, and what changes a score in it."""
    folder = harness_folder(tmp_path / "run")
    (path,) = (tmp_path / "run").rglob("results_*.json")

    def change(how):
        def of_score(content):
            metric = next(m for m in content["configs"][TASK]["metric_list"] if m["metric"] == SCORE)
            how(content["results"][TASK], metric)

        edited(folder, of_score)

    return path, change


@pytest.mark.parametrize(("change", "says"), [
    (value(777.0), "it is 777, "),
    (value(-1.0001), "it is -1.0001, "),
    (value(math.inf), "it is inf, "),
    (stderr(-0.1), "its standard error is -0.1"),
    (meaning(interval=[0.2, -0.2]), "its interval [0.2, -0.2] "),
    (meaning(interval=[-1.5, 0.5]), "its interval [-1.5, 0.5] "),
    (meaning(interval=[math.nan, 0.5]), "its interval [nan, 0.5] "),
    (meaning(fixed_interval=[0.5, 0.1]), "its interval of the items as given [0.5, 0.1] "),
    (meaning(range=[1, -1], interval=None), "it is "),
])  # fmt: skip
def test_what_cannot_be_is_refused_with_its_place(results, change, says):
    path, edit = results
    edit(change)
    with pytest.raises(BiasError, match=re.escape(f"{path}: {TASK}: {SCORE}: {says}")):
        run_discovery.read([path])


@pytest.mark.parametrize("change", [
    value(-1.0 - 1e-15),  # rounding at the end of the range
    meaning(interval=[-1.0 - 1e-15, 1.0 + 1e-15]),
    stderr("N/A"),
    stderr(0.0),  # of older versions: no certainty, but no damage
])  # fmt: skip
def test_what_can_be_is_read(results, change):
    path, edit = results
    edit(meaning(interval=None))
    edit(change)
    (run,), problems = run_discovery.read([path])
    assert SCORE in run.tasks[TASK].scores
    assert not problems


@pytest.mark.parametrize(("task", "score", "cell"), [
    ("stereoset_en", "ss", {"value": 100, "interval": [90, 100]}),
    # of words of several tokens, each unmasked one by one: probabilities of several distributions may exceed 1
    (TASK, "coverage", {"value": 1.2, "interval": [1.1, 1.0]}),
])  # fmt: skip
def test_ranges_hold_for_every_benchmark(task, score, cell, tmp_path):
    content = run_of(tasks=[task])
    content["tasks"][task]["scores"][score] |= cell
    assert run_discovery.read([write(tmp_path / "good.json", content)])
    content["tasks"][task]["scores"][score]["value"] = 777.0
    with pytest.raises(BiasError, match=f"{task}: {score}: it is 777"):
        run_discovery.read([write(tmp_path / "odd.json", content)])


@pytest.mark.parametrize("verb", ["report", "check"])
def test_every_command_reads_the_good_ones_and_names_the_bad_one(verb, results, tmp_path):
    path, edit = results
    edit(value(777.0))
    for shift, name in enumerate(("good", "fine")):
        harness_folder(tmp_path / name, version=0.5, shift=shift)  # by which other scores may come of the same log
    (tmp_path / "policy.yaml").write_text(POLICY)
    more = ["--format", "md"] if verb == "report" else ["--policy", str(tmp_path / "policy.yaml")]
    outcome = command(verb, *(str(tmp_path / name) for name in ("run", "good", "fine")), *more)
    assert outcome.status == (1 if verb == "check" else 0), outcome.err
    assert outcome.out
    assert f"{path}: {TASK}: {SCORE}: it is 777" in outcome.err


def change(path, edit):
    """Rewrite a log with what is made of its lines."""
    edit(lines := [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def mixed(small_run, tmp_path):
    return shutil.copytree(small_run, tmp_path / "mixed")


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


OF_ANOTHER = '{"doc": {"benchmark": "mmlu"}, "filtered_resps": [], "doc_id": 0}\n'
DAMAGED = {
    "cut": (lambda raw: raw[:-20], " line 8: "),
    "cut at a line": (lambda raw: raw[: raw[:-1].rindex(b"\n") + 1], "7 documents, but the run scored 8"),
    "not UTF-8": (lambda raw: raw[:-20] + b"\xff", " line 8: not UTF-8"),
    "no object": (lambda raw: b"[]\n", " line 1: "),
    "no answers": (lambda raw: raw.replace(b'"filtered_resps"', b'"x"', 1), " line 1: "),
    "odd answers": (lambda raw: raw.replace(b'"filtered_resps": [', b'"filtered_resps": [["x"], ', 1), " line 1: "),
    "twice": (lambda raw: raw.replace(b'"doc_id": 1,', b'"doc_id": 0,', 1), " line 2: document 0 appears twice"),
    "another's": (lambda raw: OF_ANOTHER.encode(), " line 1: "),
    "nothing": (lambda raw: b"\n", ""),
    "no fields": (lambda raw: raw.replace(b'"candidates":', b'"x":', 1), "document 0: "),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_logs(kind, mixed):
    damage, says = DAMAGED[kind]
    log = next(mixed.rglob("samples_stereoset_en_2*"))
    log.write_bytes(damage(log.read_bytes()))
    assert f"{log}{says}" in refused(mixed, "rescore", str(log)).replace(f"{log}: ", str(log))


def test_logs_of_others_in_a_folder_are_passed_over(mixed):
    log = next(mixed.rglob("samples_stereoset_en_2*"))
    other = log.with_name(log.name.replace("stereoset_en", "mmlu"))
    other.write_text(OF_ANOTHER)
    change(log, lambda lines: lines.reverse())  # neither their order matters, nor that the part's hash isn't told
    edited(mixed, lambda content: [one["metadata"]["inputs"].pop("scored", 0) for one in content["configs"].values()])
    outcome = command("rescore", str(mixed), "--json")
    assert (outcome.status, len(json.loads(outcome.out))) == (0, 4)
    assert f"skipped: {other} line 1: " in outcome.err
    assert str(other) in refused(mixed, "rescore", str(other))


# ---- check --strict computes every score again from the samples


@pytest.fixture
def strict(mixed, tmp_path):
    """The status of ``check``, without and with ``--strict``, and what it says of each task's samples."""
    allowed = "[limit, samples, inputs, seeds, repeats, classifier, chance_level]"
    bound = "{task: stereoset_en, score: ss, max: 99.9, on: point}"
    (tmp_path / "policy.yaml").write_text(f"bounds: [{bound}]\nallow: {allowed}\n")

    def check():
        arguments = ["check", str(mixed), "--policy", str(tmp_path / "policy.yaml"), "--json"]
        plain, found = command(*arguments), command(*arguments, "--strict")
        findings = [json.loads(one.out)["runs"][0]["findings"] for one in (plain, found)]
        assert "samples" not in {f["score"] for f in findings[0]}
        return plain.status, found.status, {f["task"]: f["says"] for f in findings[1] if f["score"] == "samples"}

    return check


@pytest.mark.parametrize(("change", "says"), [
    (lambda r, m: r.update({"ss,none": r["ss,none"] * (1 + 1e-12)}), ""),  # rounding
    (lambda r, m: r.update({"ss,none": r["ss,none"] + 0.25}), "ss has the value"),
    (lambda r, m: r.update({"ss_stderr,none": r["ss_stderr,none"] / 2}), "ss has the standard error"),
    (lambda r, m: (r.update({"lms,none": math.nan}), m["lms"].update(interval=None)), "lms has the value"),
    (lambda r, m: m["ss"].update(dof=1000.0), "ss has the degrees of freedom 1000"),
    (lambda r, m: m["ss"].update(interval=[0.0, 100.0]), "ss has the interval's lower end 0"),
    (lambda r, m: r.pop("icat,none"), "icat is not in the file"),
    (lambda r, m: (r.update({"own,none": 1.0}), m["icat"].update(metric="own")), "own is not a score of"),
])  # fmt: skip
def test_a_file_that_says_anything_else_is_a_violation(change, says, strict, mixed):
    def of_stereoset(content):
        metrics = {metric["metric"]: metric for metric in content["configs"]["stereoset_en"]["metric_list"]}
        change(content["results"]["stereoset_en"], metrics)

    edited(mixed, of_stereoset)
    plain, status, found = strict()
    assert (plain, status) == (0, bool(says))
    assert says in found.pop("stereoset_en")
    assert found == dict.fromkeys(found, "") != {}


def test_without_a_log_nobody_can_tell_and_a_log_of_other_documents_is_a_violation(strict, mixed):
    next(mixed.rglob("samples_regard_en*")).unlink()
    change(next(mixed.rglob("samples_stereoset_en_2*")), relabelled)
    *status, found = strict()
    assert status == [0, 1]
    assert "--log_samples" in found["regard_en"]
    assert "other documents" in found["stereoset_en"]
