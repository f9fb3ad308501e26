"""Input that looks odd and is taken: byte order marks, line ends, doubled names, sets of one test, cells like sums."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from lm_eval_bias.core import catalog
from tests.support.fuzzing import command, refused
from tests.support.made_runs import run_file

RUN = ["run", "--tasks", "occugender_implicit", "--model", "bias-chance", "--limit", "1"]


def stereoset(test):
    """A set of our own in Italian with one item of one test."""
    words = {"stereotype": "buona", "anti-stereotype": "cattiva", "unrelated": "carta"}
    candidates = [
        {"id": f"c{label}", "word": word, "sentence": f"Lei è {word}.", "gold_label": label}
        for label, word in words.items()
    ]
    context = "Lei è BLANK." if test == "intra" else "Arriva lei."
    item = {"id": "i1", "target": "lei", "bias_type": "gender", "context": context, "sentences": candidates}
    return {"language": "it", "data": {f"{test}sentence": [item]}}


@pytest.mark.parametrize(
    ("test", "tasks"),
    [("intra", ["stereoset_it_intra"]), ("inter", ["stereoset_it_inter", "stereoset_it_inter_variants"])],
)
def test_a_set_of_one_test_tells_the_names_of_its_tasks(test, tasks, tmp_path, tiny_mirror):
    (tmp_path / "own.json").write_text(json.dumps(stereoset(test)))
    written = command(
        "stereoset", "validate", str(tmp_path / "own.json"), "--source", "none", "--tasks", f"{tmp_path}/t"
    )
    assert f"tasks written: {', '.join(tasks)}\n" in written.out
    assert f"--tasks {tasks[0]} ...\n" in written.out
    line = refused(
        tmp_path, "run", "--include_path", f"{tmp_path}/t", "--tasks", "stereoset_it", "--model", "bias-chance"
    )
    assert "no task named stereoset_it, neither here nor in the harness. Did you mean stereoset_tr" in line
    if test == "inter":
        run = command("run", "--include_path", f"{tmp_path}/t", "--tasks", tasks[0], "--model", "bias-chance")
        assert (run.status, tasks[0] in run.out) == (0, True)


@pytest.mark.parametrize(
    "line",
    [
        "run --tasks occugender --limit nan",
        "run --tasks occugender --include_path gone --model hf --model_args pretrained=gpt2",
        "run --tasks occugender --metadata wrods=x",
        "run --tasks occugender --model hff",
        "run --tasks occugender --batch_size many --model hf --model_args pretrained=gpt2",
        "compare a b --by nothing",
        "rescore gone",
        "check gone --policy gone",
        "regard classify gone.txt",
        "nsp train --model x --corpus gone --language en --epochs nan -o new",
        "stereoset translate --to it --engine nonsense -o it",
    ],
)
def test_what_needs_no_model_is_refused_before_anything_heavy_is_imported(line, tmp_path):
    heavy = "{'torch', 'transformers', 'datasets', 'lm_eval.tasks', 'scipy.stats', 'matplotlib', 'sklearn'}"
    code = (
        "import sys\nfrom lm_eval_bias.cli.main import main\n"
        f"try:\n    status = main({line.split()!r})\nexcept SystemExit as stop:\n    status = stop.code\n"
        f"print(status, sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.stdout == "2 []\n", done
    assert len(done.stderr.splitlines()) == 1


def test_files_of_every_system_and_doubled_names_are_taken(tmp_path, tiny_mirror):
    def write(name, *lines):
        (tmp_path / name).write_bytes(("\ufeff" + "\r\n".join(lines) + "\r\n").encode())
        return str(tmp_path / name)

    config = write("c.yaml", "tasks: [occugender_implicit, occugender_implicit]", "model: bias-chance")
    items = write("items.csv", "item,female_share", "vet,61.5", "cook,38")
    samples = tmp_path / "s.json"
    samples.write_text('{"occugender_implicit": [0]}')
    outcome = command("run", "--config", config, "--metadata", f"items={items}", "--samples", str(samples))
    assert outcome.status == 0, outcome
    assert outcome.out.count("\noccugender_implicit  ") == 1  # a row of the table
    (tmp_path / "run.json").write_text(json.dumps(run_file(tasks=("stereoset_en",))))
    policy = write("p.yaml", "bounds:", "- {task: stereoset_en, score: ss, max: 60}")
    assert command("check", str(tmp_path / "run.json"), "--policy", policy).status in (0, 1)


def test_what_a_configuration_says_is_not_printed_by_a_refusal(tmp_path):
    (tmp_path / "c.yaml").write_text("tasks: [occugender_implicit]\nmodel: bias-chance\nlimit: 1\n")
    refused(tmp_path, "run", "--config", str(tmp_path / "c.yaml"), "--metadata", "wrods=x")


def test_what_a_run_logs_is_shown_unless_it_is_refused(tiny_mirror, tmp_path):
    assert "--limit SHOULD ONLY BE USED FOR TESTING" in command(*RUN).err
    refused(tmp_path, *RUN, "--metadata", "wrods=x")


def test_a_refused_run_makes_no_folder(tmp_path):
    refused(tmp_path, *RUN, "--output_path", str(tmp_path / "new" / "folder"), "--metadata", "wrods=x")


def test_every_packaged_task_has_the_keys_that_an_own_one_needs():
    for entry in catalog.packaged().values():
        if entry.kind == "task" and entry.path is not None:
            catalog._check_keys(catalog.read_yaml(entry.path))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read and write everything")
def test_what_may_not_be_read_or_written_is_refused(tmp_path):
    (tmp_path / "locked").mkdir()
    (tmp_path / "secret.yaml").write_text("bounds: []\n")
    (tmp_path / "secret.yaml").chmod(0)
    (tmp_path / "locked").chmod(0o555)
    for flag in ("--output_path", "--use_cache"):
        assert flag in refused(tmp_path, *RUN, flag, str(tmp_path / "locked" / "new" / "x"))
    assert "secret.yaml" in refused(tmp_path, "run", "--config", str(tmp_path / "secret.yaml"))
    assert "secret.yaml" in refused(tmp_path, "check", str(tmp_path), "--policy", str(tmp_path / "secret.yaml"))
