"""The Python interface: its signatures, that its numbers are the commands', and that its page runs."""

import inspect
import pkgutil
import pydoc
import re
import shlex
import subprocess
import sys

import pytest

import lm_eval_bias as leb
from lm_eval_bias.cli.main import main
from lm_eval_bias.core import registry
from tests.support.made_runs import run_of, write
from tests.support.places import ROOT

PAGE = (ROOT / "docs" / "python-api.md").read_text(encoding="utf-8")
SHELL, PYTHON = (
    re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, flags=re.M | re.S)
    for kind in ("sh", "python")
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The page's runs, made by its commands."""
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("LM_EVAL_BIAS_CACHE", str(folder / "cache"))
        for line in SHELL[0].splitlines():
            assert main(shlex.split(line)[1:]) == 0
    return folder / "results"


def test_the_interface():
    """A change here is a change of the interface: it belongs into the changelog."""
    functions = {
        "benchmarks",
        "breakdown",
        "card",
        "compare",
        "comparison",
        "evaluate",
        "items",
        "leaderboard",
        "load",
        "extract_choice",
        "scores",
    }
    classes = {"Benchmark", "BiasError", "Card", "Problem", "Run", "Runs"}
    assert set(leb.__all__) == {*functions, *classes, "__version__"}
    assert {*functions, *classes, "__version__"} <= set(dir(leb))
    assert "evaluate(model" in pydoc.render_doc(leb, renderer=pydoc.plaintext)
    parameters = [name for name in inspect.signature(leb.compare).parameters]
    assert parameters == "runs by base scores unpaired".split()
    # importing a module of that name would put it in the function's place
    assert not {module.name for module in pkgutil.iter_modules(leb.__path__)} & set(
        leb.__all__
    )


def test_runs(tmp_path):
    for shift, name in enumerate("ab"):
        write(tmp_path / name / "run.json", run_of(tasks=["regard_en"], shift=shift))
    broken = tmp_path / "b" / "results_2026-01-02T03-04-05.678901.json"
    broken.write_text("{")
    with pytest.warns(UserWarning, match=broken.name) as warned:
        runs = leb.load(tmp_path)
    assert [warning.filename for warning in warned] == [__file__]
    assert [run.name for run in runs] == ["tiny (a)", "tiny (b)"]
    assert [problem.path.name for problem in runs.problems] == [broken.name]
    assert runs["tiny (b)"] is runs[1] is runs[-1] is runs.runs[1]
    assert runs[:1] == leb.Runs(runs.runs[:1], runs.problems, (tmp_path,))
    with pytest.raises(leb.BiasError, match="'tiny'"):
        runs["tiny"]
    with pytest.raises(AttributeError):
        runs.problems = ()
    assert leb.scores(runs[1]).equals(leb.scores([runs[1]]))
    with pytest.raises(leb.BiasError, match="'tiny'"):
        leb.scores(
            [
                *leb.load(tmp_path / "a" / "results_run.json"),
                *leb.load(tmp_path / "b" / "results_run.json"),
            ]
        )


def test_errors_name_parameters(results, tmp_path):
    runs = leb.load(results)
    (log,) = (results / "one").rglob("samples_*")
    refused = {
        lambda: leb.load(): "load()",
        lambda: leb.load(tmp_path / "none"): str(tmp_path / "none"),
        lambda: leb.scores(str(results)): "lm_eval_bias.load(PATH)",
        lambda: leb.scores([]): "no run",
        lambda: leb.compare(runs, "runs"): "by='runs'",
        lambda: leb.compare(runs, scores=["coverage", "x"]): "scores='x'",
        lambda: runs.report().write(tmp_path / "r.txt"): "r.txt",
        lambda: runs.report().write(log, "md"): log.name,
        lambda: runs.report(["x"]): "scores='x'",
        lambda: leb.card("stereset"): "'stereset'. Did you mean stereoset",
    }
    for call, message in refused.items():
        with pytest.raises(leb.BiasError, match=re.escape(message)) as error:
            call()
        assert "-o " not in str(error.value)
        assert str(error.value).isprintable()
    assert list(tmp_path.iterdir()) == []
    assert dict(leb.benchmarks()) == registry.by_name()
    assert leb.card("stereoset_de") is leb.card("stereoset")


def test_the_page_runs(results):
    code = "\n".join([*PYTHON, "import sys", "assert 'torch' not in sys.modules"])
    command = [sys.executable, "-W", "error", "-c", code]
    ran = subprocess.run(command, cwd=results.parent, capture_output=True, text=True)  # noqa: S603
    assert ran.returncode == 0, ran.stderr
    for comment in re.findall(r"^print\(.*\)  # (.*)$", PAGE, flags=re.M):
        assert comment in ran.stdout


def test_a_model_is_run_from_python(tmp_path, tiny_mirror, capsys):
    one = leb.evaluate(
        "bias-chance", "occugender_implicit", limit=80, output_path=tmp_path / "one"
    )
    two = leb.evaluate(
        "bias-dial",
        ["occugender_implicit"],
        limit=80,
        strength=0.5,
        output_path=tmp_path / "two",
    )
    assert [run.name for run in (*one, *two)] == [
        "bias-chance",
        "bias-dial (strength=0.5)",
    ]
    assert leb.compare([one[0], two[0]]).paired.all()
    assert "occugender_implicit" not in capsys.readouterr().out  # the run is the answer
    for wrong in (
        {"tasks": "occugender_x*"},
        {},
        {"tasks": "occugender", "flags": ["--no-such-flag"]},
    ):
        with pytest.raises(leb.BiasError):
            leb.evaluate("bias-chance", output_path=tmp_path / "none", **wrong)


def test_results_in_memory_are_read_like_files(tmp_path, tiny_mirror):
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    from lm_eval_bias.core.files import tasks_path
    from lm_eval_bias.harness import registration

    registration.register()
    tasks = TaskManager(include_path=str(tasks_path()), include_defaults=False)
    results = simple_evaluate(
        model="bias-chance", tasks=["occugender_implicit"], task_manager=tasks, limit=80
    )
    runs = leb.load(
        results,
        write(tmp_path / "other.json", run_of("other", ["occugender_implicit"])),
    )
    assert [run.name for run in runs] == ["bias-chance", "other"]
    gap = leb.scores(runs[:1]).set_index("score").value["stereotype_gap"]
    assert gap == results["results"]["occugender_implicit"]["stereotype_gap,none"]
    assert runs[0].tasks["occugender_implicit"].samples is not None
