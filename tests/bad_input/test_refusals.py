"""Bad input to every command: one line on standard error, status 2, nothing written, nothing of our insides shown."""

from __future__ import annotations

import json
import shlex
import shutil

import pytest
import yaml

from tests.support.commands import refused
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
    ("rum", "Did you mean run"),
    ("translate", "Did you mean stereoset translate?"),
    ("stereoset tranlate", "Did you mean stereoset translate"),
    ("ls --bogus", "--bogus"),
    ("doctor --benchmark occugneder", "Did you mean occugender"),
    ("path gone", "no benchmark named 'gone'"),
    ("fetch gone", "no data named 'gone'"),
    # ---- run: names of tasks
    ("run --tasks , --model bias-chance", "no task is named"),
    ("run --model bias-chance", "no task is named"),
    ("run --tasks 'occugender_x*' --model bias-chance", "no task matches 'occugender_x*'"),
    # ---- run: flags
    (f"{RUN} --limit nan", "--limit nan"),
    (f"{RUN} --limit 0", "--limit 0"),
    (f"{RUN} --limit ten", "ten"),
    (f"{RUN} --include_path GONE", "--include_path GONE"),
    ("run --tasks my_task --model bias-chance --include_path OWN/benchmark", "benchmark"),
    ("run --tasks my_task --model bias-chance --include_path OWN/doc_to_choice", "doc_to_choice"),
    ("run --tasks my_task --model bias-chance --include_path OWN/function", "no_such_function"),
    ("run --tasks my_task --model bias-chance --include_path OWN/bogus", "bogus"),
    ("run --tasks my_tusk --model bias-chance --include_path OWN/whole", "Did you mean my_task"),
    (f"{RUN} --output_path FILE/x", "--output_path FILE/x"),
    (f"{RUN} --log_samples", "--output_path"),
    (f"{RUN} --samples GONE", "--samples GONE"),
    (f"{RUN} --samples '{{\"occugender_explicit\": []}}'", "--samples occugender_explicit"),
    (f"{RUN} --samples '{{\"occugender_explicit\": [9999]}}'", "no document 9999"),
    (f"{RUN} --samples '{{\"occugender_explicit\": [1]}}' --limit 3", "--limit"),
    (f"{RUN} --samples '{{\"gg_bbq\": [1]}}'", "gg_bbq"),
    (f"{RUN} --samples '{{\"occugender_expl\": [1]}}'", "Did you mean occugender_explicit"),
    (f"{RUN} --metadata bad", "bad"),
    (f"{RUN} --metadata wrods=pronouns", "Did you mean words"),
    (f"{RUN} --metadata templates=BINARY", "BINARY"),
    ("run --tasks gg_bbq_names --model bias-chance --metadata wording=9", "wording=9"),
    ("run --tasks stereoset_de --model bias-chance --metadata dataset=SET", "SET"),
    ("run --tasks stereoset_en --model bias-chance --metadata bos=9", "bos"),
    ("run --tasks regard_de --model bias-chance --metadata repeats=0", "repeats"),
    (f"{RUN} --gen_kwargs bad", "--gen_kwargs"),
    (f"{RUN} --gen_kwargs '{{bad'", "JSON"),
    ("run --tasks regard_de --model bias-chance --gen_kwargs temperature=0", "temperature"),
    (f"{RUN} --batch_size many", "--batch_size many"),
    (f"{RUN} --seed x", "--seed"),
    (f"{RUN} --seed=-1", "Seed must be between 0 and"),
    ("run --tasks stereoset_en --model bias-chance --num_fewshot 2", "--num_fewshot"),
    ("run --tasks stereoset_en --model bias-chance --apply_chat_template", "--apply_chat_template"),
    ("run --tasks stereoset_en --model bias-chance --system_instruction x", "--system_instruction"),
    (f"{RUN} --fewshot_as_multiturn true", "apply_chat_template"),
    (f"{RUN} --use_cache FILE/x", "--use_cache FILE/x"),
    (f"{RUN} --trackio_args bad", "--trackio_args"),
    (f"{RUN} --suite quick", "--suite quick"),
    ("run --suite quack --model bias-chance", "Did you mean quick"),
    ("run --suite quick --tasks occugender_explicit --model bias-chance", "--tasks"),
    ("run --suite quick --config CONFIG/limit.yaml", "--limit"),
    ("run --suite quick --samples '{\"a\": [1]}' --model bias-chance", "--samples"),
    ("run --suite '' --model bias-chance", "--suite"),
    # ---- run: models
    ("run --tasks occugender --model hff", "Did you mean hf"),
    ("run --tasks occugender --model ''", "--model"),
    ("run --tasks occugender", "pretrained="),
    ("run --tasks occugender --model hf-packed", "--model hf-packed --model_args: pretrained="),
    ("run --tasks stereoset_en --model hf-mlm", "--model hf-mlm --model_args: pretrained="),
    ("run --tasks stereoset_en_inter --model hf-nsp", "--model hf-nsp --model_args: pretrained="),
    ("run --tasks occugender --model hf --model_args pretrained=GONE", "pretrained=GONE"),
    ("run --tasks occugender --model hf --model_args pretrained=EMPTY", "EMPTY"),
    ("run --tasks occugender --model hf --model_args pretrained=FILE", "FILE"),
    ("run --tasks occugender --model hf --model_args pretrained=no-such/model", "no-such/model"),
    ("run --tasks occugender --model hf --model_args gpt2", "gpt2"),
    ("run --tasks stereoset_en --model hf-mlm --model_args pretrained=x,bogus=1", "bogus"),
    (f"{RUN} --model_args bogus=1", "bogus"),
    (f"{RUN} --model_args seeds=1", "Did you mean seed"),
    ("run --tasks occugender --model vllm", "vllm"),
    ("run --tasks stereoset_en --model hf --model_args pretrained=a/b --device cdua", "--device cdua: "),
    ("run --tasks stereoset_en --model hf-mlm --model_args pretrained=a/b --device mps:5", "--device mps:5: "),
    # ---- run: --config
    ("run --config CONFIG/device.yaml", "--device cuda:9: "),
    ("run --config GONE", "GONE"),
    ("run --config CONFIG/bogus.yaml", "bogus_key"),
    ("run --config CONFIG/list.yaml", "list.yaml"),
    ("run --config CONFIG/tasks.yaml", "tasks"),
    ("run --config CONFIG/word.yaml", "'word'"),
    ("run --config CONFIG/samples.yaml", "--samples GONE"),
    # ---- rescore
    ("rescore", "PATH"),
    ("rescore LOGS --words nonsense", "no word set named 'nonsense'"),
    ("rescore LOGS --classifier nonsense", "classifier 'nonsense': unknown"),
    ("rescore TEXTS --language xx", "--language xx: unknown"),
    # ---- compare
    ("compare", "RUN"),
    ("compare LOGS", "one run"),
    ("compare LOGS LOGS --by nonsense", "nonsense"),
    ("compare LOGS --by language --base xx", "--by language"),
    ("compare LOGS SECOND --unpaired --scores sss", "--scores sss"),
    ("compare LOGS SECOND --base gpt2", "--base gpt2"),
    ("compare LOGS GONE", "GONE"),
    ("compare LOGS SECOND --all-scores", "--all-scores"),
    # ---- report
    ("report", "RUN"),
    ("report LOGS", "-o"),
    ("report LOGS -o OUT/r.pdf", ".pdf"),
    ("report LOGS -o GONE/r.html", "GONE/r.html"),
    ("report LOGS SECOND --name x -o OUT/r.html", "--name"),
    ("report LOGS -o OUT/r.html --items -1", "--items -1"),
    ("report EMPTY -o OUT/r.html", "EMPTY"),
    # ---- leaderboard
    ("leaderboard", "RUNS_DIR"),
    ("leaderboard LOGS -o OUT/b.docx", ".docx"),
    ("leaderboard EMPTY", "EMPTY"),
    ("leaderboard LOGS -o GONE/b.md", "GONE/b.md"),
    ("leaderboard LOGS -o OUT/board", "OUT/board"),
    # ---- check
    ("check", "--policy"),
    ("check --policy POLICY/good.yaml", "RUN"),
    ("check RUN", "--policy"),
    ("check RUN --policy GONE", "GONE"),
    ("check GONE --policy POLICY/good.yaml", "GONE"),
    ("check LOGS --policy POLICY/task.yaml", "no_such_task"),
    ("check LOGS --policy POLICY/score.yaml", "no_such_score"),
    # ---- export, plot
    ("export", "--to"),
    ("export LOGS --to eee", "-o"),
    ("export LOGS --to nonsense", "nonsense"),
    ("export LOGS --to predictions -o OUT/p.json --language xx", "xx"),
    ("export LOGS --to predictions -o OUT/p.json --variant xx", "--variant"),
    ("export LOGS --to hf-eval-results -o OUT/e", "--dataset"),
    ("ls --card nonsense", "nonsense"),
    ("ls --card regard --suites", "--suites"),
    # ---- classify, train-regard, train-nsp
    ("regard classify", "FILE"),
    ("regard classify EMPTYFILE.txt --language de", "no texts"),
    ("regard classify TEXTS --language xx", "xx"),
    ("regard classify TEXTS --classifier light -o OUT/x.xlsx", "x.xlsx"),
    ("regard classify TABLE --column nonsense", "nonsense"),
    ("nsp train", "--model"),
    ("nsp train --model x --corpus ./GONE --language en -o OUT/n", "./GONE"),
    ("nsp train --model x --corpus EMPTY --language english -o OUT/n", "--language english"),
    ("nsp train --model x --corpus EMPTY --language en --held_out nan -o OUT/n", "--held_out nan"),
    ("nsp train --model x --corpus EMPTY --language en --head_rate 0 -o OUT/n", "--head_rate 0"),
    ("nsp train --model x --corpus EMPTY --language en --batch_size 0 -o OUT/n", "--batch_size 0"),
    ("nsp train --model x --corpus EMPTY --language en --language de --language es -o OUT/n", "--language"),
    # ---- translate, validate
    ("stereoset translate", "--to"),
    ("stereoset translate --to italian --engine file:TABLE -o OUT/it", "italian"),
    ("stereoset translate --to it --engine nonsense -o OUT/it", "nonsense"),
    ("stereoset translate --to it --engine hf: -o OUT/it", "hf:"),
    ("stereoset translate --to it --engine file:TABLE -o OUT/it --limit 0", "--limit 0"),
    ("stereoset translate --to it --engine file:TABLE -o OUT/it --batch_size 0", "--batch_size 0"),
    ("stereoset validate", "FILE"),
    ("gg_bbq validate SET", "gg_bbq"),
    ("stereoset validate SET --source none --language xx", "'xx'"),
    ("stereoset validate SET --source none --tasks FILE", "FILE"),
    ("stereoset validate de --tasks OUT", "de is published"),
    # ---- options without a value
    ("compare LOGS --scores ' , '", "--scores"),
    ("compare LOGS --base ''", "--base"),
    ("report LOGS -o x.md --name ' '", "--name"),
    ("rescore LOGS --language ''", "--language"),
    ("export LOGS --to predictions -o x.json --variant ''", "--variant"),
    ("regard classify LOGS --classifier ''", "--classifier"),
    ("nsp train --revision ''", "--revision"),
    ("stereoset validate LOGS --tasks ''", "--tasks"),
    (f"{RUN} --system_instruction ''", "--system_instruction"),
    # ---- options of others, and files that are read
    ("export LOGS --to model-card --no-items -o OUT/x", "--no-items"),
    ("export LOGS --to eee --dataset a/b -o OUT/x", "--dataset"),
    ("export LOGS --to hf-eval-results --dataset 'a b' -o OUT/x", "--dataset"),
    ("check RUN --policy POLICY/good.yaml --json --github", "--github"),
    ("check RUN --policy POLICY/good.yaml --junit RUN", "--junit RUN"),
    ("check RUN --policy POLICY/good.yaml --markdown POLICY/good.yaml", "--markdown POLICY/good.yaml"),
    ("check RUN --policy POLICY/good.yaml --junit OUT/x --markdown OUT/x", "--markdown"),
    ("leaderboard RUN -o RUN", "-o RUN"),
    ("regard classify TABLE --classifier light -o ./TABLE", "--output ./TABLE"),
    ("regard classify TEXTS --classifier sbrt --language de", "Did you mean sbert"),
    ("run --tasks stereoset_en_inter --model bias-chance --model_args bos=all", "--model_args bos="),
]  # fmt: skip
CONFIGS = {
    "bogus": {"bogus_key": 1},
    "tasks": {"tasks": 3},
    "samples": {"samples": "GONE"},
    "word": {"metadata": {"word": "pronouns"}},
    "limit": {"tasks": [], "limit": 5},
    "device": {"model": "hf-packed", "model_args": "pretrained=a/b", "device": "cuda:9"},
}
BOUND = {"task": "stereoset_en", "score": "ss", "max": 60}
POLICIES = {
    "good": {"bounds": [BOUND]},
    "task": {"bounds": [{**BOUND, "task": "no_such_task"}]},
    "score": {"bounds": [{**BOUND, "score": "no_such_score"}]},
}


OWN = {
    "whole": OWN_TASK,
    "benchmark": OWN_TASK.replace("  benchmark: occugender\n", ""),
    "doc_to_choice": OWN_TASK.replace("doc_to_choice: words\n", ""),
    "function": OWN_TASK.replace("hooks.dataset", "hooks.no_such_function"),
    "bogus": f"{OWN_TASK}bogus: 1\n",
}
CANDIDATES = [
    {"id": f"c{label}", "word": word, "sentence": f"Lei è {word}.", "gold_label": label}
    for label, word in (("stereotype", "buona"), ("anti-stereotype", "cattiva"), ("unrelated", "carta"))
]
ITEM = {"id": "i1", "target": "lei", "bias_type": "gender", "context": "Lei è BLANK.", "sentences": CANDIDATES}
BINARY = bytes(range(256)) * 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory, small_run):
    """A folder with what command lines name, made once: nothing may change it."""
    tmp_path = tmp_path_factory.mktemp("given")
    for name in ("EMPTY", "OUT"):
        (tmp_path / name).mkdir()
    shutil.copytree(small_run, tmp_path / "LOGS")
    run = json.dumps(run_file(tasks=("stereoset_en",)))
    configs = {name: {"tasks": ["occugender"], "model": "bias-chance", **content} for name, content in CONFIGS.items()}
    files = {
        "FILE": "x\n",
        "EMPTYFILE.txt": "",
        "BINARY": BINARY,
        "BINARY.json": BINARY,
        "TEXTS.txt": "Die Frau lacht.\n",
        "TABLE.csv": "text,gender\nDie Frau lacht.,female\n",
        "RUN.json": run,
        "SECOND.json": run,
        "SET.json": json.dumps({"language": "it", "data": {"intrasentence": [ITEM]}}),
        "CONFIG/list.yaml": "- a\n",
        **{f"CONFIG/{name}.yaml": yaml.safe_dump(content) for name, content in configs.items()},
        **{f"POLICY/{name}.yaml": yaml.safe_dump(content) for name, content in POLICIES.items()},
        **{f"OWN/{name}/my_task.yaml": content for name, content in OWN.items()},
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
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
    """A command line's words; those in capitals name the fixture's files."""
    given = []
    for word in shlex.split(line):
        for name, file in FILES.items():
            word = word[: -len(name)] + file if word.endswith(name) else word
        given.append(word)
    return given


@pytest.mark.parametrize(("line", "says"), [pytest.param(*case, id=case[0] or "nothing") for case in CASES])
def test_bad_input_is_refused_in_one_line(line, says, place):
    refusal = refused(place, *words(line))
    assert (FILES.get(says, says) if says in shlex.split(line) else says) in refusal
    assert [inside for inside in INSIDES if inside in refusal] == []
    assert len(refusal) < 2200
