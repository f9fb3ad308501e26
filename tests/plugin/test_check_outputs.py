"""The gate's findings for machines: JUnit XML, GitHub's annotations, a comment; the exit status stays what it was."""

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_bias.core.run_data import Problem, Run
from lm_eval_bias.gate.policy_file import Bound
from lm_eval_bias.gate.verdict import GateFinding
from lm_eval_bias.report import policy_outputs
from tests.support.made_runs import run_of, write

POLICY = """description: two bounds
allow: [inputs, version, below_chance, length_bias]
bounds:
  - {task: stereoset_en, score: ss, min: 0, max: 90, why: "a, b: 50% | c"}
  - {task: stereoset_en, score: lms, min: 99, why: "100%: all"}
"""


@pytest.fixture
def given_files(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    return write(tmp_path / "run.json", run_of(tasks=["stereoset_en"])), str(
        tmp_path / "policy.yaml"
    )


@pytest.fixture
def files(tmp_path):
    """The options for every form of output."""
    return ["--junit", tmp_path / "j.xml", "--markdown", tmp_path / "c.md"]


@settings(max_examples=30)
@given(st.text(), st.text(), st.text(), st.text())
def test_whatever_a_file_says_is_well_formed(task, score, why, problem):
    finding = GateFinding(
        task,
        score,
        False,
        Bound(task, score, low=1.0, place="p.yaml line 3"),
        problem,
        why=why,
    )
    run = Run(task, None, {})
    ElementTree.fromstring(
        policy_outputs.GateVerdict(
            "", [policy_outputs.RunVerdict(run, [finding])], [Problem("x", problem)]
        ).junit()
    )


def test_a_run_that_cannot_be_read_is_an_error_everywhere(
    given_files, files, tmp_path, said
):
    policy = POLICY.replace("min: 99", "min: 1")
    (tmp_path / "policy.yaml").write_text(policy)
    folder = tmp_path / "runs"
    write(folder / "run.json", run_of(tasks=["stereoset_en"]))
    (folder / "results_2026-01-02T03-04-05.678901.json").write_text("{")
    said("check", folder, "--policy", given_files[1], *files, status=1)
    root = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (
        root.get("errors"),
        root.get("failures"),
        len(list(root.iter("error"))),
    ) == ("1", "0", 1)
    assert "1 violated" in (tmp_path / "c.md").read_text()
