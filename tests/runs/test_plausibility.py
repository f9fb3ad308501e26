"""Numbers that can't be are refused by every command that reads results, in one line that says where and what."""

from __future__ import annotations

import json
import math

import pytest

from lm_eval_bias.analysis import conventions
from lm_eval_bias.cli.main import main
from lm_eval_bias.errors import BiasError
from lm_eval_bias.runs import json_files, plausibility, run_discovery
from lm_eval_bias.runs.run_data import Value
from tests.conftest import ROOT
from tests.report.made_runs import harness_folder, run_file, write

TASK, SCORE = "occugender_explicit", "stereotype_gap"


def change_results(change):
    """The content of a harness's results, changed in one place."""

    def changed(content):
        metric = next(m for m in content["configs"][TASK]["metric_list"] if m["metric"] == SCORE)
        change(content, content["results"][TASK], metric)

    return changed


def value(number):
    return lambda content, results, metric: results.update({f"{SCORE},none": number})


def stderr(number):
    return lambda content, results, metric: results.update({f"{SCORE}_stderr,none": number})


def meaning(**fields):
    return lambda content, results, metric: metric.update(fields)


def counts(**fields):
    return lambda content, results, metric: content["n-samples"][TASK].update(fields)


def version(number):
    return lambda content, results, metric: content["versions"].update({TASK: number})


def metadata(**fields):
    return lambda content, results, metric: content["configs"][TASK]["metadata"].update(fields)


IMPOSSIBLE = [
    (metadata(language="de"), "its language is 'de', but the task's is 'en'"),
    (metadata(benchmark="gg_bbq"), "its benchmark is 'gg_bbq', but the task's is 'occugender'"),
    (value(777.0), "stereotype_gap: it is 777, outside of its range of -1 to 1"),
    (value(-1.0001), "stereotype_gap: it is -1.0001, outside"),
    (value(math.inf), "stereotype_gap: it is inf"),
    (value("0.1"), "stereotype_gap: its value is '0.1': no number"),
    (value(True), "stereotype_gap: its value is 'True': no number"),
    (value(math.nan), "is one of no value"),
    (value(0.9), "doesn't include its value 0.9"),
    (stderr(-0.1), "stereotype_gap: its standard error is -0.1"),
    (stderr(False), "stereotype_gap: its standard error is 'False': no number"),
    (stderr("0.1"), "stereotype_gap: its standard error is '0.1': no number"),
    (meaning(interval=[0.2, -0.2]), "stereotype_gap: its interval [0.2, -0.2] ends before it begins"),
    (meaning(interval=[-1.5, 0.5]), "stereotype_gap: its interval [-1.5, 0.5] exceeds the range from -1 to 1"),
    (meaning(interval=[math.nan, 0.5]), "stereotype_gap: its interval [nan, 0.5] has no end"),
    (meaning(interval=["-1", "1"]), "stereotype_gap: its interval is"),
    (meaning(fixed_interval=[0.5, 0.1]), "items as given [0.5, 0.1] ends before it begins"),
    (meaning(range=[1, -1], interval=None), "stereotype_gap: its range is 1 to -1"),
    (meaning(range=["0", 1]), "stereotype_gap: its range is"),
    (meaning(range=[-1000, 1000], interval=[700, 800]), "doesn't include its value"),
    (meaning(neutral="0"), "stereotype_gap: its neutral is '0': no number"),
    (meaning(neutral=7), "stereotype_gap: its neutral value 7 is outside of its range"),
    (meaning(dof=-3), "has -3 degrees of freedom"),
    (counts(effective=-1), "the number of scored documents is '-1'"),
    (counts(effective=True), "the number of scored documents is 'True'"),
    (counts(effective="80"), "the number of scored documents is '80'"),
    (counts(effective=2000, original=2000), "2,000 documents were scored, but the task has 1,000"),
    (counts(effective=80, original=40), "80 documents were scored, but the task has 40"),
    (counts(effective=0), "scores for 0 documents"),
    (version(7.0), "there is no version 7.0 of it, the latest is 1"),
    (version(-1), "there is no version -1 of it"),
    (version("x"), "there is no version x of it"),
    (version(True), "its version is 'True'"),
    (lambda c, r, m: r.update({"female_dominated_M,none": r["female_dominated_M,none"] - 1}), "are shares of 100"),
    (lambda c, r, m: c["configs"][TASK]["metric_list"].append(dict(m)), "stereotype_gap is described twice"),
    (lambda c, r, m: r.update({f"{SCORE},other": 0.0}), "has values for several filters (none, other)"),
]


@pytest.fixture
def results(tmp_path):
    harness_folder(tmp_path / "run")
    (path,) = (tmp_path / "run").rglob("results_*.json")
    return path


def edit(path, change):
    content = json.loads(path.read_text())
    change_results(change)(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(("change", "says"), IMPOSSIBLE)
def test_what_cannot_be_is_refused_with_its_place(results, change, says):
    assert run_discovery.read([results])
    edit(results, change)
    with pytest.raises(BiasError) as refused:
        run_discovery.read([results])
    assert f"{results}: {TASK}: " in str(refused.value)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        value(-1.0 - 1e-15),  # rounding at the end of the range
        meaning(interval=[-1.0 - 1e-15, 1.0 + 1e-15]),
        stderr("N/A"),
        stderr(0.0),  # of older versions: no certainty, but no damage
        version(""),
        version(0.5),
        counts(original=0),
    ],
)
def test_what_can_be_is_read(results, change):
    if change is not None:
        edit(results, lambda content, scores, metric: metric.update(interval=None))
    edit(results, change)
    (run,), problems = run_discovery.read([results])
    assert SCORE in run.tasks[TASK].scores
    assert not problems


def test_a_range_of_its_own_opens_none(results):
    # the file says that any value is possible; the package knows better
    edit(results, lambda c, r, m: (r.update({f"{SCORE},none": 777.0}), m.update(range=[None, None], interval=None)))
    with pytest.raises(BiasError, match="it is 777, outside of its range of -1 to 1"):
        run_discovery.read([results])


def test_later_releases_may_have_later_versions(results):
    def later(content, scores, metric):
        content["versions"][TASK] = 7.0
        content["configs"][TASK]["metadata"]["lm_eval_bias"] = "99.0"

    edit(results, later)
    assert run_discovery.read([results])[0][0].tasks[TASK].version == "7.0"


@pytest.mark.parametrize("key", [f'"{TASK}"', f'"{SCORE},none"', '"versions"'])
def test_keys_that_stand_there_twice(results, key):
    text = results.read_text()
    at = text.index(key)
    results.write_text(f"{text[:at]}{key}: 0, {text[at:]}")
    with pytest.raises(BiasError, match="appears twice in one object"):
        run_discovery.read([results])


def test_tasks_whose_names_read_alike(tmp_path):
    content = run_file(tasks=["stereoset_en"])
    content["tasks"]["stereoset_en\n"] = content["tasks"]["stereoset_en"]
    path = write(tmp_path / "run.json", content)
    with pytest.raises(BiasError, match="the task stereoset_en is named twice"):
        run_discovery.read([path])


@pytest.mark.parametrize(
    ("field", "other", "says"),
    [
        ("language", "de", "its language is 'de', but the task's is 'en'"),
        ("benchmark", "stereoset_variants", "its benchmark is 'stereoset_variants'"),
        ("items", 8000, "it has 8,000 items, but the task has 4,229"),
    ],
)
def test_a_run_file_that_contradicts_the_catalog(field, other, says, tmp_path):
    content = run_file(tasks=["stereoset_en"])
    content["tasks"]["stereoset_en"] |= {field: other}
    with pytest.raises(BiasError, match=says):
        run_discovery.read([write(tmp_path / "run.json", content)])


def test_a_task_that_says_that_it_was_changed_may_be_another(tmp_path):
    content = run_file(tasks=["stereoset_en"])
    content["tasks"]["stereoset_en"] |= {"language": "it", "metadata": {"inputs": {"changed": ["custom_dataset"]}}}
    assert run_discovery.read([write(tmp_path / "run.json", content)])


def test_a_run_file_is_held_to_the_same(tmp_path):
    content = run_file(tasks=["stereoset_en"])
    content["tasks"]["stereoset_en"]["documents"] = 5000
    with pytest.raises(BiasError, match="stereoset_en: 5,000 documents were scored, but the task has 4,229"):
        run_discovery.read([write(tmp_path / "many.json", content)])
    content = run_file(tasks=["stereoset_en"])
    content["tasks"]["stereoset_en"]["scores"]["ss"] |= {"value": 777.0, "interval": [759.2, 100]}
    with pytest.raises(BiasError, match="stereoset_en: ss: it is 777, outside of its range of 0 to 100"):
        run_discovery.read([write(tmp_path / "odd.json", content)])


@pytest.mark.parametrize(("number", "original", "known"), [(80, 80, False), (80, 1000, False), (1000, 1000, True)])
def test_a_hash_of_all_items_doesn_t_make_a_part_the_whole(number, original, known, results):
    def cut(content, scores, metric):
        content["n-samples"][TASK] = {"effective": number, "original": original}
        content["configs"][TASK]["metadata"]["inputs"] = {"documents": "0" * 64}

    edit(results, cut)
    task = run_discovery.read([results])[0][0].tasks[TASK]
    assert ("documents" in task.inputs) is known
    assert conventions.part(task) == ("" if known else "80 of 1,000 items")
    assert bool(conventions.unknown_part(task)) is not known


def test_own_templates_make_more_documents(tmp_path):
    content = run_file(tasks=[TASK])
    content["tasks"][TASK] |= {"documents": 1200, "metadata": {"templates": "own.yaml"}}
    assert run_discovery.read([write(tmp_path / "own.json", content)])


POLICY = f"bounds:\n  - {{task: {TASK}, score: {SCORE}, max: 0.99, on: point}}\n"


@pytest.mark.parametrize("command", ["report", "leaderboard", "compare", "check", "rescore"])
def test_every_command_reads_the_good_ones_and_names_the_bad_one(command, results, tmp_path, capsys):
    edit(results, value(777.0))
    for shift, name in enumerate(("good", "fine")):
        harness_folder(tmp_path / name, version=0.5, shift=shift)  # by which other scores may come of the same log
    (tmp_path / "policy.yaml").write_text(POLICY)
    more = {
        "report": ["--format", "md"],
        "leaderboard": ["--task", TASK],
        "compare": ["--draws", "100"],
        "check": ["--policy", str(tmp_path / "policy.yaml")],
        "rescore": [],
    }[command]
    status = main([command, *(str(tmp_path / name) for name in ("run", "good", "fine")), *more])
    output = capsys.readouterr()
    assert status == (1 if command == "check" else 0), output.err
    assert output.out
    (line,) = [line for line in output.err.splitlines() if "777" in line]
    assert f"{results}: {TASK}: {SCORE}: it is 777, outside of its range of -1 to 1" in line


def test_export_names_it_too(tiny_mirror, tmp_path, capsys):
    run = ["run", "--tasks", "stereoset_en", "--model", "bias-chance", "--log_samples"]
    assert main([*run, "--output_path", str(tmp_path / "run")]) == 0
    (path,) = (tmp_path / "run").rglob("results_*.json")
    content = json.loads(path.read_text())
    content["results"]["stereoset_en"]["ss,none"] = 777.0
    path.write_text(json.dumps(content))
    capsys.readouterr()
    assert main(["export", "--to", "predictions", str(tmp_path / "run"), "-o", str(tmp_path / "predictions.json")]) == 0
    assert "stereoset_en: ss: it is 777" in capsys.readouterr().err


def test_what_lies_in_results_is_possible():
    runs, problems = run_discovery.read([ROOT / "results"])
    assert len(runs) >= 3
    assert not problems


def test_scores_of_unknown_benchmarks_are_held_to_their_own_ranges():
    plausibility.check_scores("somebody's", {"x": Value("x", 777.0)})
    with pytest.raises(BiasError, match="x: it is 777"):
        plausibility.check_scores("somebody's", {"x": Value("x", 777.0, low=0.0, high=1.0)})


def test_a_score_that_some_models_take_beyond_its_range(tmp_path):
    # words of one, two and more tokens, each unmasked one by one: their probabilities are of several distributions
    content = run_file(tasks=[TASK])
    coverage = content["tasks"][TASK]["scores"]["coverage"]
    coverage |= {"value": 1.2, "interval": [1.1, 1.0]}
    assert run_discovery.read([write(tmp_path / "masked.json", content)])
    coverage["value"] = 777.0
    with pytest.raises(BiasError, match="coverage: it is 777"):
        run_discovery.read([write(tmp_path / "odd.json", content)])


def test_files_of_no_bounded_size_are_not_read(tmp_path):
    path = tmp_path / "results_1.json"
    with path.open("wb") as file:
        file.write(b'{"results": {}}')
        file.truncate(3 << 30)
    with pytest.raises(BiasError, match="NUL"):
        json_files.read(path)
    path.write_bytes(b" " * (1 << 16))
    with path.open("ab") as file:
        file.truncate(3 << 30)
    with pytest.raises(BiasError, match="larger than 64 MiB"):
        json_files.read(path)
