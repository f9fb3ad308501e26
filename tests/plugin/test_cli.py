"""The command line as a user sees it."""

import json
import re
import subprocess
import sys

import pytest

from lm_eval_bias.cli import main as cli
from lm_eval_bias.cli import setup
from lm_eval_bias.cli.main import main
from lm_eval_bias.core import catalog
from lm_eval_bias.core.errors import BiasError, extras
from lm_eval_bias.core.files import tasks_path
from tests.support.places import ROOT


@pytest.mark.parametrize("arguments", [[], ["--help"], ["path"], ["ls"], ["fetch", "--help"], ["rescore", "--help"]])
def test_light_commands_import_neither_torch_nor_the_harness(arguments):
    code = (
        "import sys, lm_eval_bias\n"
        "heavy = {'torch', 'transformers', 'datasets', 'lm_eval'}\n"
        "assert not {*heavy, 'numpy', 'scipy'} & set(sys.modules)\n"
        "from lm_eval_bias.cli.main import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        "assert not heavy & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_ls(capsys):
    assert main(["path"]) == main(["ls", "--all"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{tasks_path()}\n")
    assert all(name in out for name in catalog.entries())
    assert main(["ls", "--json"]) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert set(listed) == set(catalog.entries())
    assert (listed["occugender"]["items"], listed["gg_bbq"]["items"]) == (2000, 11868)
    bias = next(s for s in listed["gg_bbq_names"]["scores"] if s["name"] == "diff_bias_amb")
    assert (bias["range"], bias["neutral"]) == ([-1.0, 1.0], 0.0)


RUN = ["run", "--model", "bias-chance", "--tasks"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["rum"], "'rum'. Did you mean run"),
        (["translate"], "'translate'. Did you mean stereoset translate?"),
        (["stereoset", "tranlate"], "'stereoset tranlate'. Did you mean stereoset translate"),
        ([], "no command"),
        (["rescore", "gone"], "gone"),
        (RUN[:-1], "--tasks"),
        ([*RUN, "occugneder"], "occugender"),
        ([*RUN, "occugender*x"], "'occugender*x'"),
        ([*RUN, "occugender", "--log_samples"], "--output_path"),
        ([*RUN, "gg_bbq", "--metadata", '{"wording": 9}'], "wording=9"),
        ([*RUN, "occugender_implicit,hellaswag", "--metadata", '{"wrods": "pronouns"}'], "Did you mean words"),
        ([*RUN, "occugender", "--limit", "-1"], "--limit -1"),
        ([*RUN, "occugender", "--output_path", "/dev/null/x"], "/dev/null/x"),
        ([*RUN, "occugender", "--samples", '{"occugender_explicit": [1000]}'], "document 1000: they go from 0 to 999"),
        ([*RUN, "occugender", "--samples", '{"occugender_expl": [1]}'], "Did you mean occugender_explicit"),
        ([*RUN, "occugender", "--samples", "/nope.json"], "--samples /nope.json"),
        ([*RUN, "occugender", "--gen_kwargs", "{bad"], "JSON"),
        ([*RUN, "occugender", "--model_args", "bogus=1"], "bogus"),
        ([*RUN, "occugender", "--model", "hff"], "'hff'. Did you mean hf"),
        ([*RUN, "occugender", "--model", "hf", "--model_args", "dtype=float32"], "pretrained"),
        ([*RUN, "occugender", "--model", "hf", "--model_args", "pretrained=no-such/model"], "no-such/model"),
        ([*RUN, "occugender", "--model", "hf", "--model_args", "pretrained=FOLDER"], "FOLDER"),
        (["run", "--config", "FOLDER/run.yaml"], "'word'"),
    ],
)  # fmt: skip
def test_bad_usage_exits_with_2_and_one_line(arguments, names, capsys, tiny_mirror, tmp_path):
    (tmp_path / "run.yaml").write_text("tasks: [occugender_implicit]\nmodel: bias-chance\nmetadata: {word: pronouns}\n")
    assert main([argument.replace("FOLDER", str(tmp_path)) for argument in arguments]) == 2
    err = capsys.readouterr().err.strip().splitlines()
    assert err[-1].startswith("lm-eval-bias: error: ")
    assert names.replace("FOLDER", str(tmp_path)) in err[-1]
    assert not any("Traceback" in line for line in err)


def test_the_line_is_one_of_its_own_behind_an_unfinished_progress_bar(capsys, monkeypatch):
    from tqdm import tqdm

    def fail(arguments):
        raise BiasError("no way", tqdm(range(6), disable=False))

    monkeypatch.setattr("lm_eval_bias.cli.setup.TaskPath.run", fail)
    assert main(["path"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("lm-eval-bias: error: ('no way'")


def test_every_command_is_in_the_help_and_has_help_of_its_own(capsys):
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    assert len(cli.verbs()) == 12
    for command in {**cli.verbs(), **cli.own_commands()}:
        assert re.search(rf"^  {command} +[a-z]", listed, re.MULTILINE), command
        with pytest.raises(SystemExit) as error:
            main([*command.split(), "--help"])
        out = capsys.readouterr().out
        assert (error.value.code, re.split(r" [\[<-]", out, maxsplit=1)[0]) == (0, f"usage: lm-eval-bias {command}")


def test_run_has_the_flags_of_the_harness_and_its_suites(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    out = capsys.readouterr().out
    for flag in ("--apply_chat_template", "--use_cache", "--log_samples", "--metadata", "--batch_size", "--suite"):
        assert flag in out


def test_the_commands_of_a_benchmark_are_listed_under_its_name(capsys):
    assert main(["stereoset", "--help"]) == 0
    assert [line.split()[:3] for line in capsys.readouterr().out.splitlines()] == [
        ["lm-eval-bias", "stereoset", "translate"],
        ["lm-eval-bias", "stereoset", "validate"],
    ]


def test_a_flag_has_one_spelling(capsys):
    with pytest.raises(SystemExit) as error:
        main(["compare", "a", "b", "--all-scores"])
    assert error.value.code == 2
    assert "unrecognized arguments: --all-scores" in capsys.readouterr().err.strip().splitlines()[-1]


def test_extras_bring_what_they_are_asked_for():
    tomllib = pytest.importorskip("tomllib")
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"regard", "train", "translate", "gguf"} == set(extras())
    for extra, packages in extras().items():
        names = [re.match(r"[\w-]+", requirement).group() for requirement in listed[extra]]
        assert sorted(packages) == sorted("sklearn" if n == "scikit-learn" else n.replace("-", "_") for n in names)
        assert extra in listed["all"][0]


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("sentencex", "regard", ["run", "--tasks", "regard_de", "--model", "bias-chance"]),
        ("sklearn", "regard", ["regard", "classify", "texts.txt", "--language", "de"]),
        ("sentence_transformers", "regard", ["regard", "train"]),
        ("sentencex", "train", ["nsp", "train", "--model", "x", "--corpus", "x", "--language", "en", "-o", "nsp"]),
        (
            "gguf",
            "gguf",
            ["run", "--tasks", "occugender", "--model", "hf", "--model_args", "pretrained=x,gguf_file=y"],
        ),
    ],
)
def test_a_missing_extra_is_named(package, extra, arguments, capsys, monkeypatch, tmp_path, tiny_mirror):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("Die Frau lacht.\n")
    monkeypatch.setitem(sys.modules, package, None)
    assert main(arguments) == 2
    wanted = f'lm-eval-bias: error: {package} is not installed: pip install "lm-eval-bias[{extra}]"'
    assert capsys.readouterr().err.strip().splitlines()[-1] == wanted


def forget(monkeypatch, *modules):
    """Let modules be imported anew, for this test alone."""
    for name in [name for name in sys.modules if name.startswith(modules)]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize(
    ("model", "package", "asked", "says"),
    [
        ("vllm", "vllm", "--tasks occugender", 'vllm is not installed: pip install "lm-eval-bias[vllm]"'),
        ("vllm-packed", "vllm", "--suite quick", 'vllm is not installed: pip install "lm-eval-bias[vllm]"'),
        ("vllm-vlm", "ray", "--tasks occugender", "the package ray, which it needs, is not installed"),
    ],
)
def test_the_missing_package_of_a_model_type_is_named(model, package, asked, says, capsys, monkeypatch, tiny_mirror):
    forget(monkeypatch, "lm_eval.models.vllm", "lm_eval_bias.models.vllm_packed")
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["run", *asked.split(), "--model", model, "--model_args", "pretrained=x"]) == 2
    assert f"error: --model {model}: {says}" in capsys.readouterr().err


def test_every_argument_of_the_harness_is_passed_on():
    import inspect

    from lm_eval import simple_evaluate
    from lm_eval.config.evaluate_config import EvaluatorConfig

    from lm_eval_bias.harness import running

    given = running.arguments(EvaluatorConfig(seed=[1, 2, 3, 4]), simple_evaluate, "model", "manager", "tracker")
    assert set(inspect.signature(simple_evaluate).parameters) - set(given) == {"bootstrap_iters"}
    assert (given["random_seed"], given["fewshot_random_seed"]) == (1, 4)


def test_doctor_on_versions_and_data(monkeypatch, tmp_path):
    versions = {"lm_eval": "0.4.5", "torch": "9.0", "transformers": "5.0"}
    monkeypatch.setattr("importlib.metadata.version", lambda name: versions[name])
    monkeypatch.setenv("LM_EVAL_BIAS_DATA", str(tmp_path))
    texts = {text: status for status, text in setup.examine_installation()}
    assert set(texts.values()) <= {"ok", "note", "problem"}
    assert texts["lm_eval 0.4.5 is older than 0.4.12: pip install -U lm_eval"] == "problem"
    assert any(s == "note" and "torch 9.0 is newer" in t for t, s in texts.items())
    assert any(s == "problem" and "lacks or changes" in t for t, s in texts.items())
