"""Bad input to every command: one line on standard error, status 2, nothing written, nothing of our insides shown."""

from __future__ import annotations

import json
import shlex
import shutil
from types import SimpleNamespace

import pytest
import yaml

from lm_eval_bias.core.errors import BiasError, check_arguments
from lm_eval_bias.evaluation import preflight
from lm_eval_bias.harness import internals, registration
from tests.support.fuzzing import refused
from tests.support.made_mirror import make_tiny_mirror
from tests.support.made_runs import run_file

INSIDES = (
    "object at 0x", "<function", "functools", "__init__", "Traceback", "Error:", "Error(", "NoneType", "namedtuple",
    "<class", "lm_eval.", "dict_keys", "argparse", "_cli", "positional argument", "is not subscriptable", "PosixPath",
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
RUN = "run --tasks occugender --model bias-chance"
# a command line, and what its refusal has to say; words in capitals are files of the fixture below
CASES = [
    # ---- the command itself
    ("", "no command"),
    ("rum", "rum"),
    ("--bogus", "--bogus"),
    ("RUN", "RUN"),
    ("ls --bogus", "--bogus"),
    ("ls extra", "extra"),
    ("path gone", "no benchmark named 'gone'"),
    ("path occugender gg_bbq", "gg_bbq"),
    ("path ''", "no benchmark named ''"),
    ("link extra", "extra"),
    ("link --force", "--force"),
    ("doctor --bogus", "--bogus"),
    ("doctor extra", "extra"),
    ("fetch gone", "no data named 'gone'"),
    ("fetch ''", "no data named ''"),
    ("fetch occugneder", "no data named"),
    # ---- run: names of tasks
    ("run --tasks occugneder --model bias-chance", "Did you mean occugender"),
    ("run --tasks '' --model bias-chance", "--tasks: is empty"),
    ("run --tasks , --model bias-chance", "no task is named"),
    ("run --tasks", "--tasks"),
    ("run --model bias-chance", "no task is named"),
    ("run --tasks 'occugender_x*' --model bias-chance", "no task matches 'occugender_x*'"),
    ("run --tasks gone.yaml --model bias-chance", "gone.yaml"),
    # ---- run: flags
    (f"{RUN} --bogus 1", "--bogus"),
    (f"{RUN} extra", "extra"),
    (f"{RUN} --limit nan", "--limit nan"),
    (f"{RUN} --limit inf", "--limit inf"),
    (f"{RUN} --limit=-1", "--limit -1"),
    (f"{RUN} --limit 0", "--limit 0"),
    (f"{RUN} --limit 1.5", "--limit 1.5"),
    (f"{RUN} --limit ten", "ten"),
    (f"{RUN} --limit ''", "--limit"),
    (f"{RUN} --limit", "--limit"),
    (f"{RUN} --include_path GONE", "--include_path GONE"),
    (f"{RUN} --include_path FILE", "--include_path FILE"),
    ("run --tasks my_task --model bias-chance --include_path OWN/metadata", "metadata"),
    ("run --tasks my_task --model bias-chance --include_path OWN/benchmark", "benchmark"),
    ("run --tasks my_task --model bias-chance --include_path OWN/custom_dataset", "custom_dataset"),
    ("run --tasks my_task --model bias-chance --include_path OWN/test_split", "test_split"),
    ("run --tasks my_task --model bias-chance --include_path OWN/output_type", "output_type"),
    ("run --tasks my_task --model bias-chance --include_path OWN/doc_to_text", "doc_to_text"),
    ("run --tasks my_task --model bias-chance --include_path OWN/doc_to_choice", "doc_to_choice"),
    ("run --tasks my_task --model bias-chance --include_path OWN/function", "no_such_function"),
    ("run --tasks my_task --model bias-chance --include_path OWN/module", "no_such_module"),
    ("run --tasks my_task --model bias-chance --include_path OWN/bogus", "bogus"),
    ("run --tasks my_tusk --model bias-chance --include_path OWN/whole", "Did you mean my_task"),
    (f"{RUN} --output_path ''", "--output_path"),
    (f"{RUN} --output_path FILE", "--output_path FILE"),
    (f"{RUN} --output_path FILE/x", "--output_path FILE/x"),
    (f"{RUN} --output_path /dev/null/x", "--output_path /dev/null/x"),
    (f"{RUN} --log_samples", "--output_path"),
    (f"{RUN} --predict_only", "--output_path"),
    (f"{RUN} --samples GONE", "--samples GONE"),
    (f"{RUN} --samples BINARY", "codec can't decode"),
    (f"{RUN} --samples EMPTY", "--samples EMPTY"),
    (f"{RUN} --samples '[1]'", "--samples"),
    (f"{RUN} --samples '{{bad'", "--samples"),
    (f"{RUN} --samples '{{\"occugender_explicit\": 1}}'", "--samples occugender_explicit"),
    (f"{RUN} --samples '{{\"occugender_explicit\": []}}'", "--samples occugender_explicit"),
    (f"{RUN} --samples '{{\"occugender_explicit\": [true]}}'", "--samples occugender_explicit"),
    (f"{RUN} --samples '{{\"occugender_explicit\": [9999]}}'", "no document 9999"),
    (f"{RUN} --samples '{{\"occugender_explicit\": [1]}}' --limit 3", "--limit"),
    (f"{RUN} --samples '{{\"gg_bbq\": [1]}}'", "gg_bbq"),
    (f"{RUN} --metadata bad", "bad"),
    (f"{RUN} --metadata '{{bad'", "{bad"),
    (f"{RUN} --metadata '[1]'", "--metadata"),
    (f"{RUN} --metadata 3", "--metadata"),
    (f"{RUN} --metadata wrods=pronouns", "Did you mean words"),
    (f"{RUN} --metadata words=nonsense", "nonsense"),
    (f"{RUN} --metadata words=3", "words"),
    (f"{RUN} --metadata items=GONE", "GONE"),
    (f"{RUN} --metadata items=EMPTY", "EMPTY"),
    (f"{RUN} --metadata items=BINARY", "BINARY"),
    (f"{RUN} --metadata templates=BINARY", "BINARY"),
    ("run --tasks gg_bbq_names --model bias-chance --metadata wording=9", "from 1 to 5"),
    ("run --tasks gg_bbq_names --model bias-chance --metadata wording=one", "wording"),
    ("run --tasks stereoset_de --model bias-chance --metadata dataset=GONE", "GONE"),
    ("run --tasks stereoset_de --model bias-chance --metadata dataset=BINARY", "BINARY"),
    ("run --tasks stereoset_de --model bias-chance --metadata dataset=SET", "SET"),
    ("run --tasks stereoset_en --model bias-chance --metadata bos=9", "bos"),
    ("run --tasks regard_de --model bias-chance --metadata repeats=0", "repeats"),
    ("run --tasks regard_de --model bias-chance --metadata classifier=nonsense", "nonsense"),
    (f"{RUN} --gen_kwargs bad", "--gen_kwargs"),
    ("run --tasks regard_de --model bias-chance --gen_kwargs temperature=0", "temperature"),
    ("run --tasks regard_de --model bias-chance --gen_kwargs do_sample=false", "do_sample"),
    (f"{RUN} --batch_size 0", "--batch_size 0"),
    (f"{RUN} --batch_size many", "--batch_size many"),
    (f"{RUN} --batch_size auto:x", "--batch_size auto:x"),
    (f"{RUN} --batch_size ''", "--batch_size"),
    (f"{RUN} --max_batch_size many", "many"),
    (f"{RUN} --seed x", "--seed"),
    (f"{RUN} --seed 1,2", "--seed"),
    (f"{RUN} --seed=-1", "Seed must be between 0 and"),
    (f"{RUN} --num_fewshot many", "many"),
    ("run --tasks stereoset_en --model bias-chance --num_fewshot 2", "--num_fewshot"),
    ("run --tasks stereoset_en --model bias-chance --apply_chat_template", "--apply_chat_template"),
    ("run --tasks stereoset_en --model bias-chance --system_instruction x", "--system_instruction"),
    (f"{RUN} --fewshot_as_multiturn true", "apply_chat_template"),
    (f"{RUN} --cache_requests maybe", "maybe"),
    (f"{RUN} --use_cache FILE/x", "--use_cache FILE/x"),
    (f"{RUN} --verbosity 3", "--verbosity 3"),
    (f"{RUN} --hf_hub_log_args bogus=1", "--hf_hub_log_args"),
    (f"{RUN} --wandb_args bad", "--wandb_args"),
    (f"{RUN} --trackio_args bad", "--trackio_args"),
    (f"{RUN} --suite quick", "--suite quick"),
    ("run --suite quack --model bias-chance", "Did you mean quick"),
    ("run --suite '' --model bias-chance", "--suite"),
    ("run --suite quick --limit 3 --model bias-chance", "--limit"),
    ("run --suite quick --samples '{\"a\": [1]}' --model bias-chance", "--samples"),
    # ---- run: models
    ("run --tasks occugender --model hff", "Did you mean hf"),
    ("run --tasks occugender --model ''", "--model"),
    ("run --tasks occugender", "pretrained="),
    ("run --tasks occugender --model hf --model_args dtype=float32", "pretrained="),
    ("run --tasks occugender --model hf --model_args pretrained=GONE", "pretrained=GONE"),
    ("run --tasks occugender --model hf --model_args pretrained=EMPTY", "EMPTY"),
    ("run --tasks occugender --model hf --model_args pretrained=FILE", "FILE"),
    ("run --tasks occugender --model hf --model_args pretrained=no-such/model", "no-such/model"),
    ("run --tasks occugender --model hf --model_args gpt2", "gpt2"),
    ("run --tasks occugender --model hf-packed", "pretrained="),
    ("run --tasks stereoset_en --model hf-mlm", "pretrained="),
    ("run --tasks stereoset_en_inter --model hf-nsp", "pretrained="),
    ("run --tasks stereoset_en --model hf-mlm --model_args pretrained=x,bogus=1", "bogus"),
    (f"{RUN} --model_args bogus=1", "bogus"),
    (f"{RUN} --model_args seeds=1", "Did you mean seed"),
    ("run --tasks occugender --model vllm", "vllm"),
    # ---- run: --config
    ("run --config GONE", "GONE"),
    ("run --config EMPTY", "EMPTY"),
    ("run --config BINARY", "BINARY"),
    ("run --config CONFIG/bogus.yaml", "bogus_key"),
    ("run --config CONFIG/list.yaml", "list.yaml"),
    ("run --config CONFIG/limit.yaml", "limit"),
    ("run --config CONFIG/tasks.yaml", "tasks"),
    ("run --config CONFIG/model.yaml", "model"),
    ("run --config CONFIG/metadata.yaml", "metadata"),
    ("run --config CONFIG/samples.yaml", "samples"),
    ("run --config CONFIG/samples_file.yaml", "--samples GONE"),
    ("run --config CONFIG/num_fewshot.yaml", "num_fewshot"),
    # ---- rescore
    ("rescore", "PATH"),
    ("rescore GONE", "GONE"),
    ("rescore EMPTY", "EMPTY"),
    ("rescore ''", "path is empty"),
    ("rescore FILE", "FILE"),
    ("rescore BINARY", "BINARY"),
    ("rescore LOOP", "LOOP"),
    ("rescore LOGS --words nonsense", "no word set named 'nonsense'"),
    ("rescore LOGS --classifier nonsense", "classifier 'nonsense': unknown"),
    ("rescore LOGS --bogus", "--bogus"),
    ("rescore TEXTS --language xx", "--language xx: unknown"),
    # ---- compare
    ("compare", "RUN"),
    ("compare GONE LOGS", "GONE"),
    ("compare LOGS", "one run"),
    ("compare EMPTY EMPTY", "EMPTY"),
    ("compare LOGS LOGS --by nonsense", "nonsense"),
    ("compare LOGS LOGS --format nonsense", "nonsense"),
    ("compare LOGS LOGS --correction nonsense", "nonsense"),
    ("compare LOGS LOGS --all-scores", "--all-scores"),
    ("compare LOGS --by language --base xx", "--by language"),
    # ---- report
    ("report", "RUN"),
    ("report LOGS", "-o"),
    ("report GONE -o OUT/r.html", "GONE"),
    ("report EMPTY -o OUT/r.html", "EMPTY"),
    ("report LOGS -o OUT/r.pdf", ".pdf"),
    ("report LOGS -o ''", "-o"),
    ("report LOGS -o FILE/r.html", "FILE/r.html"),
    ("report LOGS -o GONE/r.html", "GONE/r.html"),
    ("report LOGS --format pdf -o x", "pdf"),
    ("report LOGS SECOND --name x -o OUT/r.html", "--name"),
    ("report LOGS -o", "-o"),
    # ---- leaderboard
    ("leaderboard", "RUNS_DIR"),
    ("leaderboard GONE", "GONE"),
    ("leaderboard EMPTY", "EMPTY"),
    ("leaderboard LOGS -o OUT/b.docx", ".docx"),
    ("leaderboard LOGS -o GONE/b.md", "GONE/b.md"),
    ("leaderboard LOGS --format x", "'x'"),
    # ---- check
    ("check", "--policy"),
    ("check LOGS", "--policy"),
    ("check --policy POLICY/good.yaml", "RUN"),
    ("check LOGS --policy GONE", "GONE"),
    ("check LOGS --policy EMPTY", "EMPTY"),
    ("check LOGS --policy BINARY", "BINARY"),
    ("check LOGS --policy ''", "--policy"),
    ("check GONE --policy POLICY/good.yaml", "GONE"),
    ("check LOGS --policy POLICY/bogus.yaml", "bogus"),
    ("check LOGS --policy POLICY/text.yaml", "text.yaml"),
    ("check LOGS --policy POLICY/empty.yaml", "empty.yaml"),
    ("check LOGS --policy POLICY/none.yaml", "none.yaml"),
    ("check LOGS --policy POLICY/bound.yaml", "bound.yaml"),
    ("check LOGS --policy POLICY/number.yaml", "number.yaml"),
    ("check LOGS --policy POLICY/nan.yaml", "nan.yaml"),
    ("check LOGS --policy POLICY/order.yaml", "order.yaml"),
    ("check LOGS --policy POLICY/task.yaml", "no_such_task"),
    ("check LOGS --policy POLICY/score.yaml", "no_such_score"),
    ("check LOGS --policy POLICY/broken.yaml", "broken.yaml"),
    ("check LOGS --policy POLICY/share.yaml", "share.yaml"),
    # ---- export, plot
    ("export", "--to"),
    ("export LOGS --to eee", "-o"),
    ("export GONE --to predictions -o OUT/p.json", "GONE"),
    ("export EMPTY --to predictions -o OUT/p.json", "EMPTY"),
    ("export LOGS --to predictions -o OUT/p.json --language xx", "xx"),
    ("export LOGS --to predictions -o OUT/p.json --variant xx", "--variant"),
    ("export LOGS --to predictions -o FILE/p.json", "FILE/p.json"),
    ("export LOGS --to nonsense", "nonsense"),
    ("export GONE --to eee -o OUT/e", "GONE"),
    ("export LOGS --to eee -o FILE/e", "FILE/e"),
    ("export LOGS --to hf-eval-results -o OUT/e", "--dataset"),
    ("ls --card nonsense", "nonsense"),
    ("ls --card regard --suites", "--suites"),
    # ---- classify, train-regard, train-nsp
    ("regard classify", "FILE"),
    ("regard classify GONE.txt", "GONE.txt"),
    ("regard classify EMPTY", "EMPTY"),
    ("regard classify EMPTYFILE.txt --language de", "no texts"),
    ("regard classify TEXTS --language xx", "xx"),
    ("regard classify TEXTS --classifier nonsense", "nonsense"),
    ("regard classify TEXTS --classifier head:GONE", "GONE"),
    ("regard classify TEXTS --classifier light -o OUT/x.xlsx", "x.xlsx"),
    ("regard classify TEXTS --classifier light -o GONE/x.csv", "GONE/x.csv"),
    ("regard classify TABLE --column nonsense", "nonsense"),
    ("regard train --language xx", "xx"),
    ("regard train -o FILE", "FILE"),
    ("nsp train", "--model"),
    ("nsp train --model x --corpus GONE --language en -o FILE", "FILE"),
    ("nsp train --model x --corpus ./GONE --language en -o OUT/n", "./GONE"),
    ("nsp train --model x --corpus EMPTY --language en -o OUT/n", "EMPTY"),
    ("nsp train --model x --corpus EMPTY --language english -o OUT/n", "--language english"),
    ("nsp train --model x --corpus EMPTY --language en --held_out nan -o OUT/n", "--held_out nan"),
    ("nsp train --model x --corpus EMPTY --language en --epochs nan -o OUT/n", "--epochs nan"),
    ("nsp train --model x --corpus EMPTY --language en --epochs inf -o OUT/n", "--epochs inf"),
    ("nsp train --model x --corpus EMPTY --language en --gain nan -o OUT/n", "--gain nan"),
    ("nsp train --model x --corpus EMPTY --language en --head_rate 0 -o OUT/n", "--head_rate 0"),
    ("nsp train --model x --corpus EMPTY --language en --batch_size 0 -o OUT/n", "--batch_size 0"),
    ("nsp train --model x --corpus EMPTY --language en --train_layers=-1 -o OUT/n", "--train_layers -1"),
    ("nsp train --model x --corpus EMPTY --language en --seed x -o OUT/n", "'x'"),
    ("nsp train --model x --corpus EMPTY --language en --trainer bad -o OUT/n", "--trainer bad"),
    ("nsp train --model x --corpus EMPTY --language en --language de --language es -o OUT/n", "--language"),
    ("nsp train --model x --corpus EMPTY --language tlh -o OUT/n", "EMPTY"),
    ("nsp train --model x --corpus BINARY --language en -o OUT/n", "BINARY"),
    # ---- translate, validate
    ("stereoset translate", "--to"),
    ("gg_bbq translate --to it", "gg_bbq"),
    ("stereoset translate --to italian --engine file:TABLE -o OUT/it", "italian"),
    ("stereoset translate --to en --engine file:TABLE -o OUT/it", "--to en"),
    ("stereoset translate --to it --engine nonsense -o OUT/it", "nonsense"),
    ("stereoset translate --to it --engine file:GONE -o OUT/it", "GONE"),
    ("stereoset translate --to it --engine hf: -o OUT/it", "hf:"),
    ("stereoset translate --to it --engine command:x -o OUT/it", "command:x"),
    ("stereoset translate --to it --engine file:TABLE -o FILE", "FILE"),
    ("stereoset translate --to it --engine file:TABLE -o OUT/it --limit 0", "--limit 0"),
    ("stereoset translate --to it --engine file:TABLE -o OUT/it --limit x", "'x'"),
    ("stereoset translate --to it --engine file:TABLE -o OUT/it --batch_size 0", "--batch_size 0"),
    ("stereoset validate", "FILE"),
    ("gg_bbq validate SET", "gg_bbq"),
    ("stereoset validate GONE", "GONE"),
    ("stereoset validate EMPTY", "EMPTY"),
    ("stereoset validate BINARY.json", "BINARY.json"),
    ("stereoset validate FILE", "FILE"),
    ("stereoset validate SET --source GONE", "GONE"),
    ("stereoset validate SET --source none --language xx", "'xx'"),
    ("stereoset validate SET --source none --tasks FILE", "FILE"),
    ("stereoset validate de --tasks OUT", "de is published"),
]  # fmt: skip
CONFIGS = {
    "bogus": {"bogus_key": 1},
    "limit": {"limit": "ten"},
    "tasks": {"tasks": 3},
    "model": {"model": [1]},
    "metadata": {"metadata": [1]},
    "samples": {"samples": [1]},
    "samples_file": {"samples": "GONE"},
    "num_fewshot": {"num_fewshot": "many"},
}
BOUND = {"task": "stereoset_en", "score": "ss", "max": 60}
POLICIES = {
    "good": {"bounds": [BOUND]},
    "bogus": {"bounds": [BOUND], "bogus": 1},
    "empty": {"bounds": []},
    "none": {},
    "bound": {"bounds": [{"task": "stereoset_en"}]},
    "number": {"bounds": [{**BOUND, "max": "sixty"}]},
    "nan": {"bounds": [{**BOUND, "max": float("nan")}]},
    "order": {"bounds": [{**BOUND, "min": 70}]},
    "task": {"bounds": [{**BOUND, "task": "no_such_task"}]},
    "score": {"bounds": [{**BOUND, "score": "no_such_score"}]},
    "share": {"bounds": [BOUND], "min_documents_share": 2},
}


def _without(key):
    lines, kept, skipping = OWN_TASK.splitlines(keepends=True), "", False
    for line in lines:
        skipping = line.strip().startswith(f"{key}:") or (skipping and key == "metadata" and line.startswith(" "))
        kept += "" if skipping else line
    return kept


@pytest.fixture(scope="module")
def folder(tmp_path_factory, small_run):
    """A folder with what command lines name, made once: nothing may change it."""
    tmp_path = tmp_path_factory.mktemp("given")
    for name in ("EMPTY", "OUT", "CONFIG", "POLICY", "OWN"):
        (tmp_path / name).mkdir()
    (tmp_path / "FILE").write_text("x\n")
    (tmp_path / "EMPTYFILE.txt").write_text("")
    for name in ("BINARY", "BINARY.json"):
        (tmp_path / name).write_bytes(bytes(range(256)) * 20)
    (tmp_path / "LOOP").symlink_to("LOOP")
    (tmp_path / "TEXTS.txt").write_text("Die Frau lacht.\n")
    (tmp_path / "TABLE.csv").write_text("text,gender\nDie Frau lacht.,female\n")
    (tmp_path / "RUN.json").write_text(json.dumps(run_file(tasks=("stereoset_en",))))
    (tmp_path / "SECOND.json").write_text(json.dumps(run_file(tasks=("stereoset_en",))))
    shutil.copytree(small_run, tmp_path / "LOGS")
    candidates = [
        {"id": f"c{label}", "word": word, "sentence": f"Lei è {word}.", "gold_label": label}
        for label, word in (("stereotype", "buona"), ("anti-stereotype", "cattiva"), ("unrelated", "carta"))
    ]
    item = {"id": "i1", "target": "lei", "bias_type": "gender", "context": "Lei è BLANK.", "sentences": candidates}
    (tmp_path / "SET.json").write_text(json.dumps({"language": "it", "data": {"intrasentence": [item]}}))
    for name, content in CONFIGS.items():
        full = {"tasks": ["occugender"], "model": "bias-chance", **content}
        (tmp_path / "CONFIG" / f"{name}.yaml").write_text(yaml.safe_dump(full))
    (tmp_path / "CONFIG" / "list.yaml").write_text("- a\n")
    for name, content in POLICIES.items():
        (tmp_path / "POLICY" / f"{name}.yaml").write_text(yaml.safe_dump(content))
    (tmp_path / "POLICY" / "text.yaml").write_text("sixty\n")
    (tmp_path / "POLICY" / "broken.yaml").write_text("bounds: [\n")
    own = {key: _without(key) for key in (
        "metadata", "benchmark", "custom_dataset", "test_split", "output_type", "doc_to_text", "doc_to_choice",
    )}  # fmt: skip
    own["whole"] = OWN_TASK
    own["function"] = OWN_TASK.replace("hooks.dataset", "hooks.no_such_function")
    own["module"] = OWN_TASK.replace("occugender.hooks", "occugender.no_such_module")
    own["bogus"] = f"{OWN_TASK}bogus: 1\n"
    for name, content in own.items():
        (tmp_path / "OWN" / name).mkdir()
        (tmp_path / "OWN" / name / "my_task.yaml").write_text(content)
    with pytest.MonkeyPatch.context() as patch:
        make_tiny_mirror(tmp_path / "mirror", patch)
        yield tmp_path


@pytest.fixture
def place(folder, monkeypatch):
    """The working folder."""
    monkeypatch.setenv("LM_EVAL_BIAS_DATA", str(folder / "mirror"))
    monkeypatch.chdir(folder)
    return folder


FILES = {"TEXTS": "TEXTS.txt", "TABLE": "TABLE.csv", "SET": "SET.json", "SECOND": "SECOND.json", "RUN": "RUN.json"}


def words(line):
    """A command line's words; those in capitals name the fixture's files, LONG a name of 5,000 letters."""
    given = []
    for word in shlex.split(line):
        for name, file in FILES.items():
            word = word[: -len(name)] + file if word.endswith(name) and not word.endswith(file) else word
        given.append("x" * 5000 if word == "LONG" else word)
    return given


@pytest.mark.parametrize(("line", "says"), [pytest.param(*case, id=case[0] or "nothing") for case in CASES])
def test_bad_input_is_refused_in_one_line(line, says, place):
    refusal = refused(place, *words(line))
    assert (FILES.get(says, says) if says in shlex.split(line) else says) in refusal
    assert [inside for inside in INSIDES if inside in refusal] == []
    assert len(refusal) < 2200


def test_every_model_type_says_which_argument_is_missing(tiny_mirror):
    registration.register()
    needing = {}
    for name in list(internals.registries()["lm_eval.models"]):
        try:
            preflight._model_class(SimpleNamespace(model=name, model_args={}))
        except BiasError as error:
            needing[name] = str(error)
    for name, text in needing.items():
        assert text.startswith(f"--model {name}")
        if "already registered" not in text:  # three aliases of 0.4.13 that the harness itself can't load
            assert [inside for inside in INSIDES if inside in text] == []
    for name in ("hf", "hf-packed", "hf-mlm", "hf-nsp"):
        assert needing[name] == f"--model {name} --model_args: pretrained= is missing"
    assert not {"bias-chance", "bias-dial", "dummy"} & set(needing)


def test_arguments_that_are_handed_on_are_left_to_who_gets_them():
    class Base:
        def __init__(self, model, size=1): ...

    class Handing(Base):
        def __init__(self, path, **others): ...

    check_arguments(Handing, ["path", "model", "anything"], "--model_args")
    with pytest.raises(BiasError, match="--model_args: model= is missing"):
        check_arguments(Handing, ["path"], "--model_args")
    with pytest.raises(BiasError, match="sizes= is unknown. Did you mean size[?] Known: model, size"):
        check_arguments(Base, ["model", "sizes"], "--model_args")
