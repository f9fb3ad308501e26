"""Bad input to every command: one line on standard error, status 2, nothing written, nothing of our insides shown."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from tests.support.commands import refused
from tests.support.made_mirror import make_tiny_mirror
from tests.support.made_runs import run_of, write

INSIDES = (
    "object at 0x", "<function", "functools", "__init__", "Traceback", "Error:", "Error(", "NoneType", "namedtuple",
    "<class", "lm_eval.", "dict_keys", "argparse", "._cli", "positional argument", "is not subscriptable", "PosixPath",
    "[Errno", "not supported between", "unhashable", "has no attribute", "_arg_type", "must be str", "expected str",
)  # fmt: skip
OWN_TASK = """class: !function lm_eval_bias.harness.task.BiasTask
custom_dataset: !function lm_eval_bias.tasks.occugender.hooks.dataset
test_split: test
output_type: multiple_choice
doc_to_text: !function lm_eval_bias.tasks.occugender.hooks.prompt
doc_to_choice: words
doc_to_target: ""
task: my_task
metadata:
  benchmark: occugender
  language: en
  measures: nothing
  kind: explicit
"""
TABLE = Path(__file__).with_name("refusals.tsv")
CASES = [
    line.split("\t")
    for line in TABLE.read_text().splitlines()
    if not line.startswith("#")
]
CONFIGS = {
    "bogus": {"bogus_key": 1},
    "tasks": {"tasks": 3},
    "samples": {"samples": "GONE"},
    "word": {"metadata": {"word": "pronouns"}},
    "limit": {"tasks": [], "limit": 5},
    "device": {
        "model": "hf-packed",
        "model_args": "pretrained=a/b",
        "device": "cuda:9",
    },
}
BOUND = {"task": "stereoset_en", "score": "ss", "max": 60}
POLICIES = {
    "good": {"bounds": [BOUND]},
}


OWN = {
    "whole": OWN_TASK,
    "benchmark": OWN_TASK.replace("  benchmark: occugender\n", ""),
    "function": OWN_TASK.replace("hooks.dataset", "hooks.no_such_function"),
    "bogus": f"{OWN_TASK}bogus: 1\n",
}
CANDIDATES = [
    {"id": f"c{label}", "word": word, "sentence": f"Lei è {word}.", "gold_label": label}
    for label, word in (
        ("stereotype", "buona"),
        ("anti-stereotype", "cattiva"),
        ("unrelated", "carta"),
    )
]
ITEM = {
    "id": "i1",
    "target": "lei",
    "bias_type": "gender",
    "context": "Lei è BLANK.",
    "sentences": CANDIDATES,
}
BINARY = bytes(range(256)) * 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory, small_run):
    """A folder with what command lines name, made once: nothing may change it."""
    tmp_path = tmp_path_factory.mktemp("given")
    for name in ("EMPTY", "OUT"):
        (tmp_path / name).mkdir()
    shutil.copytree(small_run, tmp_path / "LOGS")
    for name in ("RUN", "SECOND"):
        write(tmp_path / f"{name}.json", run_of(tasks=("stereoset_en",)))
    configs = {
        name: {"tasks": ["occugender"], "model": "bias-chance", **content}
        for name, content in CONFIGS.items()
    }
    files = {
        "FILE": "x\n",
        "BINARY": BINARY,
        "BINARY.json": BINARY,
        "EMPTYTABLE.csv": "text,gender\n",
        "DOGS.csv": "text,gender\nEin Hund.,f\n",
        "MAN.csv": "text,gender\nDer Mann galt als klug.,f\n",
        "TABLE.csv": "text,gender\nDie Frau lacht.,female\n",
        "SET.json": json.dumps({"language": "it", "data": {"intrasentence": [ITEM]}}),
        "CONFIG/list.yaml": "- a\n",
        **{
            f"CONFIG/{name}.yaml": yaml.safe_dump(content)
            for name, content in configs.items()
        },
        **{
            f"POLICY/{name}.yaml": yaml.safe_dump(content)
            for name, content in POLICIES.items()
        },
        **{f"OWN/{name}/my_task.yaml": content for name, content in OWN.items()},
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
    with pytest.MonkeyPatch.context() as patch:
        make_tiny_mirror(tmp_path / "mirror", patch)
        yield tmp_path


@pytest.fixture
def place(folder, monkeypatch):
    """The working folder."""
    monkeypatch.setenv("LM_EVAL_BIAS_DATA", str(folder / "mirror"))
    monkeypatch.chdir(folder)
    return folder


FILES = {
    "TABLE": "TABLE.csv",
    "DOGS": "DOGS.csv",
    "SET": "SET.json",
    "SECOND": "results_SECOND.json",
}
FILES["RUN"] = "results_RUN.json"


def words(line):
    """A command line's words; those in capitals name the fixture's files."""
    given = []
    for word in shlex.split(line):
        for name, file in FILES.items():
            word = word[: -len(name)] + file if word.endswith(name) else word
        given.append(word)
    return given


@pytest.mark.parametrize(
    ("line", "says"), [pytest.param(*case, id=case[0] or "nothing") for case in CASES]
)
def test_bad_input_is_refused_in_one_line(line, says, place):
    refusal = refused(place, *words(line))
    assert (FILES.get(says, says) if says in shlex.split(line) else says) in refusal
    assert [inside for inside in INSIDES if inside in refusal] == []
    assert len(refusal) < 2200
