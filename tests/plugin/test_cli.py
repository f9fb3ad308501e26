"""The command line as a user sees it."""

import json
import re
import subprocess
import sys
from importlib import metadata

import pytest

from lm_eval_bias import __version__
from lm_eval_bias.cli import main as cli
from lm_eval_bias.cli import setup
from lm_eval_bias.cli.main import main
from lm_eval_bias.core import catalog, errors
from lm_eval_bias.core.errors import BiasError, extras
from lm_eval_bias.core.files import tasks_path
from tests.support.places import ROOT


def python(code, **kwargs):
    return subprocess.run([sys.executable, *code], capture_output=True, text=True, timeout=120, **kwargs)


def test_import_is_light():
    heavy = "{'torch', 'transformers', 'datasets', 'lm_eval', 'numpy', 'scipy'}"
    code = f"import sys, lm_eval_bias; print(sorted({heavy} & set(sys.modules)))"
    assert python(["-c", code]).stdout.strip() == "[]"


@pytest.mark.parametrize("arguments", [["--help"], ["path"], ["ls"], ["fetch", "--help"], ["rescore", "--help"]])
def test_light_commands_import_neither_torch_nor_the_harness(arguments):
    code = (
        "import sys\nfrom lm_eval_bias.cli.main import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'transformers', 'datasets', 'lm_eval'} & set(sys.modules)))"
    )
    assert python(["-c", code]).stdout.strip().splitlines()[-1] == "[]"


def test_module_and_script_are_the_same_command():
    assert python(["-m", "lm_eval_bias", "--version"]).stdout.strip() == f"lm-eval-bias {__version__}"


def test_path(capsys):
    assert main(["path"]) == 0
    assert capsys.readouterr().out == f"{tasks_path()}\n"


def test_ls(capsys):
    assert main(["ls", "--all"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in catalog.entries())
    assert "-1 … 1" in out


def test_ls_json(capsys):
    assert main(["ls", "--json"]) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert set(listed) == set(catalog.entries())
    assert listed["occugender"]["items"] == 2000
    assert listed["gg_bbq"]["items"] == 11868
    bias = next(s for s in listed["gg_bbq_names"]["scores"] if s["name"] == "diff_bias_amb")
    assert (bias["range"], bias["neutral"]) == ([-1.0, 1.0], 0.0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "--tasks", "occugneder", "--model", "bias-chance"], "occugender"),
        (["run", "--tasks", "occugender*x", "--model", "bias-chance"], "no task matches"),
        (["run", "--model", "bias-chance"], "no task is named"),
        (["run", "--tasks", "occugender", "--model", "hff"], "no model type named 'hff'. Did you mean hf"),
        (["run", "--tasks", "occugender", "--model_args", "pretrained=/no/such/model"], "no such folder"),
        (["run", "--tasks", "occugender", "--model", "bias-chance", "--log_samples"], "--output_path"),
        (["run", "--tasks", "gg_bbq", "--model", "bias-chance", "--metadata", '{"wording": 9}'], "from 1 to 5"),
        (["rescore", "gone"], "no such file or folder"),
        (["run", "--tasks", "occugender", "--model", "bias-chance", "--limit", "-1"], "--limit -1: must be a"),
        (
            ["run", "--tasks", "occugender", "--model", "bias-chance", "--output_path", "/dev/null/x"],
            "cannot be written",
        ),
        (
            ["run", "--tasks", "occugender", "--model", "bias-chance", "--samples", '{"occugender_explicit": [1000]}'],
            "no document 1000: they go from 0 to 999",
        ),
        (
            ["run", "--tasks", "occugender", "--model", "bias-chance", "--samples", '{"occugender_expl": [1]}'],
            "Did you mean occugender_explicit",
        ),
        (["run", "--tasks", "occugender", "--model", "bias-chance", "--samples", "/nope.json"], "--samples /nope.json"),
        (["run", "--tasks", "occugender", "--model", "bias-chance", "--gen_kwargs", "{bad"], "Invalid JSON"),
        (["run", "--tasks", "occugender", "--model", "bias-chance", "--model_args", "bogus=1"], "bogus"),
        (["run", "--tasks", "occugender", "--model", "hf", "--model_args", "dtype=float32"], "pretrained"),
    ],  # fmt: skip
)
def test_bad_usage_exits_with_2_and_one_line(arguments, says, capsys, tiny_mirror):
    assert main(arguments) == 2
    err = capsys.readouterr().err.strip().splitlines()
    assert err[-1].startswith("lm-eval-bias: error: ")
    assert says in err[-1]
    assert not any("Traceback" in line for line in err)


def test_the_line_is_one_of_its_own_behind_an_unfinished_progress_bar(capsys, monkeypatch):
    from tqdm import tqdm

    def fail(arguments):
        raise BiasError("no way", tqdm(range(6), disable=False))

    monkeypatch.setattr("lm_eval_bias.cli.setup.TaskPath.run", fail)
    assert main(["path"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("lm-eval-bias: error: ('no way'")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["rum"], "'rum'. Did you mean run"),
        (["translate"], "'translate'. Did you mean stereoset translate?"),
        (["stereoset", "tranlate"], "'stereoset tranlate'. Did you mean stereoset translate"),
        ([], "no command is given."),
    ],
)
def test_a_mistyped_command_is_one_line_with_a_hint(arguments, hint, capsys):
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert hint in line


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


@pytest.mark.parametrize("model", ["vllm", "vllm-packed"])
@pytest.mark.parametrize("asked", [["--tasks", "occugender"], ["--suite", "quick"]])
def test_the_missing_package_of_a_model_type_is_named(model, asked, capsys, monkeypatch, tiny_mirror):
    forget(monkeypatch, "lm_eval.models.vllm", "lm_eval_bias.models.vllm_packed")
    monkeypatch.setitem(sys.modules, "vllm", None)
    assert main(["run", *asked, "--model", model, "--model_args", "pretrained=x"]) == 2
    wanted = f'error: --model {model}: vllm is not installed: pip install "lm-eval-bias[vllm]"'
    assert capsys.readouterr().err.strip().endswith(wanted)


def test_a_package_that_no_extra_brings_is_named(capsys, monkeypatch, tiny_mirror):
    forget(monkeypatch, "lm_eval.models.vllm")
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["run", "--tasks", "occugender", "--model", "vllm-vlm", "--model_args", "pretrained=x"]) == 2
    assert "--model vllm-vlm: the package ray, which it needs, is not installed" in capsys.readouterr().err


def test_the_harness_has_the_extras_that_ours_stand_for():
    requirements = [re.split(r"[<>=; ]+", text) for text in metadata.requires("lm_eval")]
    for package, extra in errors._OF_HARNESS.items():
        assert any(words[0] == package and words[-1].strip("'\"") == extra for words in requirements), package


def test_folder_without_a_model_is_one_line(tmp_path, capsys):
    assert main(["run", "--tasks", "occugender", "--model", "hf", "--model_args", f"pretrained={tmp_path}"]) == 2
    assert str(tmp_path) in capsys.readouterr().err.strip().splitlines()[-1]


def test_misspelt_metadata_in_a_config_file(tmp_path, capsys):
    config = tmp_path / "run.yaml"
    config.write_text("tasks: [occugender_implicit]\nmodel: bias-chance\nmetadata: {word: pronouns}\n")
    assert main(["run", "--config", str(config)]) == 2
    assert "'word' is unknown" in capsys.readouterr().err


def test_misspelt_metadata_beside_a_harness_task(capsys):
    arguments = ["run", "--tasks", "occugender_implicit,hellaswag", "--model", "bias-chance", "--metadata"]
    assert main([*arguments, '{"wrods": "pronouns"}']) == 2
    assert "Did you mean words" in capsys.readouterr().err


def test_unavailable_model_name_is_one_line(capsys):
    assert main(["run", "--tasks", "occugender", "--model", "hf", "--model_args", "pretrained=no-such/model"]) == 2
    assert "no-such/model" in capsys.readouterr().err.strip().splitlines()[-1]


def test_run_help_has_the_harness_flags(capsys):
    with pytest.raises(SystemExit) as error:
        main(["run", "--help"])
    assert error.value.code == 0
    out = capsys.readouterr().out
    for flag in ("--apply_chat_template", "--use_cache", "--log_samples", "--metadata", "--batch_size"):
        assert flag in out
    assert "lm-eval-bias run" in out


def test_every_argument_of_the_harness_is_passed_on():
    import inspect

    from lm_eval import simple_evaluate
    from lm_eval.config.evaluate_config import EvaluatorConfig

    from lm_eval_bias.harness import running

    given = running.arguments(EvaluatorConfig(seed=[1, 2, 3, 4]), simple_evaluate, "model", "manager", "tracker")
    assert set(inspect.signature(simple_evaluate).parameters) - set(given) == {"bootstrap_iters"}
    assert (given["random_seed"], given["fewshot_random_seed"]) == (1, 4)


def test_only_ours():
    from lm_eval_bias.evaluation.preflight import only_ours

    entries = catalog.entries()
    assert only_ours(["occugender", "gg_bbq"], entries)
    assert only_ours(["occugender_debias*"], entries)
    assert not only_ours(["occugender", "hellaswag"], entries)
    assert not only_ours(["*"], entries)
    assert not only_ours([], entries)


def test_included_folders_are_read_once_a_run(monkeypatch, tmp_path, capsys):
    reads = []
    included = catalog._included
    monkeypatch.setattr(catalog, "_included", lambda folders: reads.append(list(folders)) or included(folders))
    arguments = ["--model", "bias-chance", "--include_path", str(tmp_path), "--metadata", '{"nonsense": 1}']
    assert main(["run", "--tasks", "occugender", *arguments]) == 2
    assert "'nonsense' is unknown to these tasks" in capsys.readouterr().err
    assert reads.count([str(tmp_path)]) == 1


def test_doctor(capsys, tiny_mirror):
    status = main(["doctor"])
    out = capsys.readouterr().out
    assert status == (1 if "problem" in out else 0)
    assert "lm_eval 0.4" in out
    assert "local mirror" in out
    assert {line.split()[0] for line in out.splitlines()} <= {"ok", "note", "problem"}


def test_doctor_on_versions_and_data(monkeypatch, tmp_path):
    versions = {"lm_eval": "0.4.5", "torch": "9.0", "transformers": "5.0"}
    monkeypatch.setattr("importlib.metadata.version", lambda name: versions[name])
    monkeypatch.setenv("LM_EVAL_BIAS_DATA", str(tmp_path))
    texts = {text: status for status, text in setup.examine_installation()}
    assert texts["lm_eval 0.4.5 is older than 0.4.12: pip install -U lm_eval"] == "problem"
    assert any(s == "note" and "torch 9.0 is newer" in t for t, s in texts.items())
    assert any(s == "problem" and "lacks or changes" in t for t, s in texts.items())
