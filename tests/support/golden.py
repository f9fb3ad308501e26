"""What people read and what scores are, in scenarios: compared with ``tests/golden/pages``, or written there.

``python -m tests.support.golden`` writes it anew. Of pages of HTML it is the text; our version, and what digits of a
number depend on the machine, are left out.
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import io
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core import __version__, registry
from tests.support.made_mirror import make_tiny_mirror
from tests.support.made_runs import DATE, harness_folder, run_of, write
from tests.support.pages import Page
from tests.support.places import ROOT
from tests.support.random_records import CASES

FOLDER = ROOT / "tests" / "golden" / "pages"
MOST = 60  # lines of differences that a failing test shows
Texts = Iterator[tuple[str, str]]
POLICY = """description: for a test
allow: [chance_level]
bounds:
  - {task: stereoset_en, score: ss, max_distance_from_neutral: 10, why: no side is preferred}
  - {task: stereoset_en, score: lms, min: 20}
  - {task: stereoset_en, score: icat, min: 90, on: point}
  - {task: gg_bbq_names, score: diff_bias_amb, max: 0.3, on: evidence}
"""


def _said(*arguments: str, status: int = 0) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main(list(arguments)) == status
    return out.getvalue()


def _read(*names: str) -> Texts:
    for name in names:
        yield Path(name).name, Path(name).read_text(encoding="utf-8")


def _in_formats(stem: str, forms: str, *command: str) -> Texts:
    """What a command writes in several formats."""
    for form in forms.split():
        _said(
            *command,
            "-o",
            f"{stem}.{form}",
            *(("--format", "text") if form == "txt" else ()),
        )
        yield from _read(f"{stem}.{form}")


def _few_scores(content: dict) -> dict:
    """A run with the main scores alone, and two others that lack a value and an interval."""
    for task in content["tasks"].values():
        own = registry.get(task["benchmark"])
        kept = [
            *own.main,
            *[name for name in task["scores"] if name not in own.main][:2],
        ]
        task["scores"] = {
            name: task["scores"][name] for name in kept if name in task["scores"]
        }
        nothing, no_error = task["scores"][kept[-1]], task["scores"][kept[-2]]
        nothing |= {"value": None, "stderr": None, "interval": None, "note": "no items"}
        no_error |= {"stderr": None, "interval": None, "note": "nothing varied"}
    return content


def _with_warnings(content: dict) -> dict:
    """A run with something to beware of in all its parts."""
    content["provenance"] |= {
        "seeds": [None] * 4,
        "transformers": None,
        "chat_template": "abc",
    }
    gap, tasks = {"interval": [-0.9, 0.9], "dof": 2.0}, content["tasks"]
    tasks["occugender_implicit"] |= {"metadata": {"words": "pronouns"}, "documents": 40}
    tasks["occugender_implicit"]["scores"]["coverage"] |= {
        "value": 5.0,
        "interval": [4.0, 6.0],
    }
    tasks["occugender_implicit"]["scores"]["stereotype_gap"] |= gap
    tasks["stereoset_tr"]["scores"]["lms"] |= {"value": 55.0, "interval": [53.0, 57.0]}
    tasks["stereoset_tr"]["scores"]["ss"]["note"] = "a note of its own"
    return content


def _run() -> Texts:
    """What a run itself prints, of small files of our own."""
    command = (
        "run",
        "--model",
        "bias-chance",
        "--limit",
        "4",
        "--metadata",
        '{"repeats": 2, "classifier": "light"}',
    )
    tasks = "occugender_implicit,gg_bbq_group_terms,gg_bbq_group_terms_gen,stereoset_en_intra,regard_en"
    with pytest.MonkeyPatch.context() as patch:
        make_tiny_mirror(Path("mirror"), patch)
        yield "run.txt", _said(*command, "--tasks", tasks)
        yield (
            "run-all.txt",
            _said(*command[:5], "--tasks", "occugender_implicit", "--table", "all"),
        )


def _report() -> Texts:
    """One run of several benchmarks; one with a sample log, for its items; one with much to beware of."""
    yield from _run()
    warned = run_of(tasks=["occugender_implicit", "stereoset_tr", "regard_de"])
    write(Path("warned.json"), _few_scores(_with_warnings(warned)))
    for place, text in (
        ("results_x.json", '{"results": {'), ("unrelated.json", "[1, 2]"),
        ("results_old.json", '{"results": {"a": {}}, "configs": {}, "config": {}}'),
        (f"samples_stereoset_en_{DATE}.jsonl", ""),
    ):  # fmt: skip
        Path("bad", place).parent.mkdir(exist_ok=True)
        Path("bad", place).write_text(text, encoding="utf-8")
    Path("empty").mkdir()
    yield from _in_formats(
        "warned", "html", "report", "results_warned.json", "bad", "empty"
    )
    write(
        Path("run.json"),
        _few_scores(
            run_of(tasks=["occugender_implicit", "gg_bbq_names", "stereoset_en"])
        ),
    )
    yield from _in_formats(
        "report", "html md csv json tex", "report", "results_run.json"
    )
    harness_folder(Path("logged"), lean=-3.0)
    yield from _in_formats("logged", "html", "report", "logged")
    yield "rescored.txt", _said("rescore", "logged", "--table", "main")
    yield "card.txt", _said("ls", "--card", "occugender")
    yield "ls.txt", _said("ls")
    yield "help.txt", _said("--help")
    Path("policy.yaml").write_text(POLICY, encoding="utf-8")
    written = ("--markdown", "gate.md", "--junit", "gate.xml")
    yield (
        "gate.txt",
        _said(
            "check", "results_run.json", "--policy", "policy.yaml", *written, status=1
        ),
    )
    yield from _read("gate.md", "gate.xml")


def _comparison() -> Texts:
    """Two runs whose answers differ, and one that can't be compared with them."""
    for name, lean, version in (("one", 1.0, 1.0), ("two", -3.0, 1.0), ("three", 1.0, 0.9)):  # fmt: skip
        harness_folder(Path(name), model=name, lean=lean, version=version)
    yield from _in_formats(
        "compare", "html txt md csv json tex", "compare", "one", "two", "three"
    )


def _leaderboard() -> Texts:
    """Three runs beside a paper's models."""
    for number, name in enumerate(("first", "second", "third")):
        content = run_of(
            name, ["occugender_explicit", "gg_bbq_names"], shift=11 * number
        )
        write(Path("runs") / f"{name}.json", _few_scores(content))
    yield from _in_formats("board", "html txt md csv json", "leaderboard", "runs")


def _scores() -> Texts:
    """What scores are, in data."""
    fields = (
        "low",
        "high",
        "neutral",
        "chance",
        "unit",
        "higher_is_better",
        "has_stderr",
        "headline",
        "largest",
    )
    rows = [["benchmark", "score", *fields, "is_compared"]]
    for name, case in CASES.items():
        for score in registry.get(name).scores(case.make(np.random.default_rng(0))):
            told = [str(getattr(score, one)) for one in fields]
            rows.append([name, score.name, *told, str(score.design is not None)])
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    yield "scores.csv", out.getvalue()


SCENARIOS: dict[str, Callable[[], Texts]] = {
    "report": _report, "comparison": _comparison, "leaderboard": _leaderboard, "scores": _scores,
}  # fmt: skip


def _steady(name: str, text: str) -> str:
    if name.endswith(".html"):
        text = Page(text).lines
    if name.endswith(".json"):
        text = json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
        for brackets in (
            r"\[\s[^\[\]{}]*\]",
            r"\{\s[^{}]*\}",
        ):  # what holds nothing else stands on one line
            text = re.sub(brackets, lambda inner: " ".join(inner[0].split()), text)
    text = re.sub(
        r"(?<![\w.-])-?\d+\.\d{6,}(e-?\d+)?",
        lambda number: f"{round(float(number[0]), 9) + 0.0:.6g}",
        text,
    )
    return re.sub(rf"\b{re.escape(__version__)}\b", "VERSION", text)


def made(scenario: str) -> dict[str, str]:
    """What people read in a scenario, by the name of its file."""
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        return {
            name.replace(".html", ".html.txt"): _steady(name, text)
            for name, text in SCENARIOS[scenario]()
        }


def differences(scenario: str) -> str:
    """How what is made now differs from what was recorded; empty where it doesn't."""
    found = made(scenario)
    recorded = {
        path.name: path.read_text(encoding="utf-8")
        for path in (FOLDER / scenario).iterdir()
    }
    lines: list[str] = []
    for name in sorted({*found, *recorded}):
        before, after = (
            texts.get(name, "").splitlines() for texts in (recorded, found)
        )
        lines += difflib.unified_diff(
            before, after, f"{name}, recorded", f"{name}, now", n=1, lineterm=""
        )
    more = [f"and {len(lines) - MOST} more lines"] if len(lines) > MOST else []
    return "\n".join([*lines[:MOST], *more])


if __name__ == "__main__":
    for scenario in SCENARIOS:
        texts = made(scenario)
        shutil.rmtree(FOLDER / scenario, ignore_errors=True)
        for name, text in texts.items():
            (FOLDER / scenario).mkdir(parents=True, exist_ok=True)
            (FOLDER / scenario / name).write_text(text, encoding="utf-8")
