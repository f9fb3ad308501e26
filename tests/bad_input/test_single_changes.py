"""One change to a run, its log, its record, its base or the policy: what alters a number or its origin is found."""

import json
import shutil

import pytest

from tests.support.commands import command
from tests.support.made_mirror import make_tiny_mirror
from tests.support.run_scores import run

LIKELIHOODS, WRITTEN = "stereoset_en", "gg_bbq_group_terms_gen"
PLAIN = "occugender_implicit"
ALLOW = "allow: [limit, chance_level, below_chance, unshown_ability, unanswered, habit, low_coverage, saturated]\n"
POLICY = f"""{ALLOW}bounds:
  - {{task: {PLAIN}, score: coverage, min: 0.01, on: point}}
  - {{task: {LIKELIHOODS}, score: lms, min: 1, on: point}}
  - {{task: {WRITTEN}, score: acc_amb, min: -0.1, max: 0.999, on: point}}
"""
ZEROS = "0" * 64


def wrote(part):
    return f"{part}: not as the run wrote it"


LINES = wrote(f"samples, {LIKELIHOODS}")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of three tasks."""
    with pytest.MonkeyPatch.context() as patch:
        make_tiny_mirror(tmp_path_factory.mktemp("mirror"), patch)
        folder = tmp_path_factory.mktemp("made") / "run"
        tasks = f"{PLAIN},{LIKELIHOODS},{WRITTEN}"
        run(folder, tasks, "--limit", "30", "--model_args", "strength=0.2", model="bias-dial")  # fmt: skip
        yield folder


def results_of(folder):
    (path,) = folder.rglob("results_*.json")
    return path


def log_of(folder, task):
    (path,) = folder.rglob(f"samples_{task}_*.jsonl")
    return path


def answers_of(folder):
    (path,) = folder.rglob("answers_*")
    return path


def without_answers(folder):
    for path in (log_of(folder, PLAIN), answers_of(folder)):
        path.unlink()


def edit(change):
    """Change a results file's content."""

    def apply(folder):
        path = results_of(folder)
        content = json.loads(path.read_text(encoding="utf-8"))
        change(content)
        path.write_text(json.dumps(content), encoding="utf-8")

    return apply


def edit_log(change, task=LIKELIHOODS):
    """Change a log's lines, as a list of samples."""

    def apply(folder):
        path = log_of(folder, task)
        samples = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        change(samples)
        text = "".join(f"{json.dumps(s, ensure_ascii=False)}\n" for s in samples)
        path.write_text(text, encoding="utf-8")

    return apply


def both(*changes):
    def apply(folder):
        for change in changes:
            change(folder)

    return apply


def drop(samples):
    del samples[3:6]


def fewer(content):
    content["n-samples"][LIKELIHOODS]["effective"] -= 3


def edit_hashes(change):
    return edit(lambda content: change(content["provenance"]["hashes"]))


def without_a_task(content):
    for name in ("results", "configs", "versions", "n-samples", "task_hashes"):
        content[name].pop(PLAIN)


def remove_log(folder):
    log_of(folder, PLAIN).unlink()


def of_task(task, **changes):
    def change(content):
        content["configs"][task].update(changes)

    return edit(change)


def of_inputs(task, **changes):
    def change(content):
        content["configs"][task]["metadata"]["inputs"].update(changes)

    return edit(change)


def scored(**changes):
    return edit(lambda c: c["results"][LIKELIHOODS].update(changes))


def config(**changes):
    return edit(lambda c: c["config"].update(changes))


def zero_pins(content):
    files = content["configs"][WRITTEN]["metadata"]["inputs"]["files"]
    files.update(dict.fromkeys(files, ZEROS))


def zero_data(content):
    data = content["provenance"]["tasks"][WRITTEN]["data"]
    data.update(dict.fromkeys(data, ZEROS))


def line_ends(folder):
    path = log_of(folder, LIKELIHOODS)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def order(folder):
    path = log_of(folder, LIKELIHOODS)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(reversed(lines)))


def last_line(folder):
    path = log_of(folder, LIKELIHOODS)
    path.write_bytes(path.read_bytes() + b"\n")


def renamed(folder):
    inner = results_of(folder).parent
    inner.rename(inner.with_name("another"))


def swapped(folder):
    ours, other = log_of(folder, LIKELIHOODS), log_of(folder, PLAIN)
    ours.write_bytes(other.read_bytes())


def cut(folder):
    path = log_of(folder, LIKELIHOODS)
    path.write_bytes(path.read_bytes()[:-30])


def asked(sample, number):
    sample["arguments"][f"gen_args_{number}"]["arg_0"] = "Q"


def raw(samples):
    samples[0]["resps"][0][0][0] = "-0.5"


def both_answers(samples):
    samples[0]["resps"][0][0][0] = samples[0]["filtered_resps"][0][0] = "-0.5"


def written(samples):
    samples[0]["resps"][0][0] += " und noch etwas"


def refuse(samples):
    samples[0].update(filtered_resps=["[refused]"])


def other_release(content):
    content["provenance"]["packages"]["lm-eval-bias"] = "9"


CHANGES = {
    # of the log
    "a question": (edit_log(lambda s: s[0]["doc"].update(context="It rains.")), "document 0: its doc isn't what"),
    "a question to answer": (edit_log(lambda s: s[1]["doc"].update(question="Wer?"), WRITTEN), "1: its doc isn't"),
    "a prompt": (edit_log(lambda s: asked(s[0], 0), PLAIN), "its prompt isn't what"),
    "a later prompt": (edit_log(lambda s: asked(s[0], 1), PLAIN), wrote(f"samples, {PLAIN}")),
    "a target": (edit_log(lambda s: s[0].update(target="Der Mann"), WRITTEN), "its target isn't what"),
    "a raw answer": (edit_log(raw), "its raw answers (resps) aren't"),
    "both answers": (edit_log(both_answers), LINES),
    "a raw text": (edit_log(written, WRITTEN), wrote(f"samples, {WRITTEN}")),
    "what was read of a text": (edit_log(refuse, WRITTEN), wrote(f"samples, {WRITTEN}")),
    "a hash of a document": (edit_log(lambda s: s[2].update(doc_hash=ZEROS)), "document 2: its doc isn't what"),
    "hashes that are gone": (edit_log(lambda s: [one.pop("doc_hash") for one in s]), "its doc isn't"),
    "dropped documents": (edit_log(drop), "they can't be recomputed"),
    "dropped, and counted": (both(edit_log(drop), edit(fewer)), "results' task_hashes"),
    "a document twice": (edit_log(lambda s: s.append(s[0])), "appears twice"),
    "another number": (edit_log(lambda s: s[0].update(doc_id=99)), LINES),
    "another task's log": (swapped, "they can't be recomputed"),
    "a log that is cut": (cut, "truncated or damaged"),
    "answers and a log that are gone": (without_answers, "has no saved answers"),
    "the answers alone": (lambda folder: answers_of(folder).unlink(), wrote("answers")),
    "an answer": (lambda folder: answers_of(folder).write_bytes(b"PAR1"), wrote("answers")),
    # of the scores
    "a value": (scored(**{"ss,none": 50.0}), "ss has the value"),
    "an error": (scored(**{"ss_stderr,none": 0.1}), "ss has the standard error"),
    "a score that is gone": (edit(lambda c: c["results"][LIKELIHOODS].pop("icat,none")), "icat is not in the file"),
    "fewer documents": (edit(fewer), "they can't be recomputed"),
    # of the record
    "task hashes that are none": (edit(lambda c: c.update(task_hashes=None)), wrote(f"task_hashes, {PLAIN}")),
    "task hashes": (edit(lambda c: c["task_hashes"].update({LIKELIHOODS: ZEROS})), "task_hashes"),
    "a hash of a log": (edit_hashes(lambda h: h.update({f"samples, {PLAIN}": ZEROS})), wrote(f"samples, {PLAIN}")),
    "a hash that is gone": (edit_hashes(lambda h: h.pop("date")), wrote("date")),
    "no hashes": (edit_hashes(lambda h: h.clear()), "lacks the provenance"),
    "a task that is gone": (both(edit(without_a_task), remove_log), wrote(f"results, {PLAIN}")),
    "the date": (edit(lambda c: c.update(date=c["date"] + 86400)), wrote("date")),
    "hashes of files read": (edit(zero_pins), "inputs has SHA-256 00000"),
    "hashes of data": (edit(zero_data), "provenance has SHA-256 00000"),
    "data that are gone": (edit(lambda c: c["provenance"]["tasks"].pop(WRITTEN)), "provenance has SHA-256 None"),
    "the packaged files": (of_inputs(PLAIN, package_content=ZEROS), "the benchmark's own files differ"),
    "no documents' hash": (edit(lambda c: c["configs"][PLAIN]["metadata"]["inputs"].pop("scored")), "which inputs"),
    "doc_to_text": (of_task(PLAIN, doc_to_text="{{question}}"), "doc_to_text is '{{question}}', of the packaged task"),
    "doc_to_choice": (of_task(PLAIN, doc_to_choice="['he']"), "doc_to_choice is"),
    "a description": (of_task(PLAIN, description="Be fair."), "description is 'Be fair.'"),
    "a delimiter": (of_task(PLAIN, target_delimiter=""), "target_delimiter is"),
    "the data's function": (of_task(PLAIN, custom_dataset="mine.dataset"), "custom_dataset is 'mine.dataset'"),
    "the model's type": (config(model="hf"), wrote("config, model")),
    "the model's arguments": (config(model_args={"strength": 0.0}), wrote("config, model_args")),
    "an argument that is gone": (config(model_args={}), wrote("config, model_args")),
    "a limit that is gone": (config(limit=None), wrote("config, limit")),
    "no packages": (edit(lambda c: c["provenance"].pop("packages")), wrote("provenance, packages")),
    "no tasks": (edit(lambda c: c["provenance"].update(tasks=None)), "missing or damaged"),
    "no raw answers": (edit_log(lambda s: s[0].pop("resps")), LINES),
    "no filter": (edit_log(lambda s: s[0].pop("filter")), LINES),
    "no provenance": (edit(lambda c: c.pop("provenance")), "it lacks the provenance"),
    "another release": (edit(lambda c: c.update(lm_eval_version="0.4.0")), wrote("lm_eval_version")),
    "our release": (edit(other_release), wrote("provenance, packages")),
    "a version": (edit(lambda c: c["versions"].update({PLAIN: 0.5})), "task version 0.5"),
    "a template": (edit(lambda c: c.update(chat_template_sha=ZEROS)), "chat template"),
    "a system instruction": (edit(lambda c: c.update(system_instruction="Be fair")), "system instruction"),
    "the machine": (edit(lambda c: c["provenance"]["machine"].update(threads=64)), wrote("provenance, machine")),
    "cached answers": (edit(lambda c: c["provenance"].pop("cache")), wrote("provenance, cache")),
    # harmless
    "a log whose answers are there": (lambda folder: log_of(folder, PLAIN).unlink(), ""),
    "the order of lines": (order, ""),
    "line ends": (line_ends, ""),
    "an empty line": (last_line, ""),
    "the folder's name": (renamed, ""),
    "the form of the JSON": (edit(lambda c: None), ""),
}  # fmt: skip


@pytest.fixture
def checked(made, tmp_path):
    """What ``check --strict`` makes of a changed run, or of a changed base."""

    def check(change, *more):
        folder = shutil.copytree(made, tmp_path / "changed")
        change(folder)
        policy = tmp_path / "policy.yaml"
        policy.write_text(POLICY)
        return command("check", str(folder), "--policy", str(policy), "--strict", *more)

    return check


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_to_a_run_is_found(name, checked):
    change, says = CHANGES[name]
    outcome = checked(change, "--json")
    (judged,) = json.loads(outcome.out)["runs"]
    found = [f["says"] for f in judged["findings"] if not f["holds"]]
    assert outcome.status == bool(says), found
    assert any(says in text and "\n" not in text for text in found) or not says, found


@pytest.mark.parametrize(
    "name", ["a question", "a raw answer", "dropped, and counted", "hashes of data"]
)
def test_a_change_to_the_base_is_found(name, made, tmp_path):
    change, says = CHANGES[name]
    base = shutil.copytree(made, tmp_path / "base")
    change(base)
    policy = tmp_path / "policy.yaml"
    policy.write_text(ALLOW)
    arguments = ["check", str(made), "--base", str(base), "--policy", str(policy), "--strict", "--json"]  # fmt: skip
    outcome = command(*arguments)
    (judged,) = json.loads(outcome.out)["runs"]
    found = {f["score"]: f["says"] for f in judged["findings"] if not f["holds"]}
    assert outcome.status == 1
    assert any(says in text for text in found.values()), found
    assert any(score.startswith("base: ") for score in found)


def test_a_plain_run_may_be_allowed(checked, tmp_path, made):
    folder = shutil.copytree(made, tmp_path / "plain")
    edit(lambda content: content.pop("provenance"))(folder)
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("allow: [", "allow: [provenance, "))
    outcome = command("check", str(folder), "--policy", str(policy), "--strict")
    assert outcome.status == 0, outcome
    assert "30 of 1,000 items" in outcome.out
