"""What a run can refuse at once it refuses before anything large is imported, and without the harness's index."""

import json
import subprocess
import sys
from collections import defaultdict

import pytest

from lm_eval_bias.benchmark import Benchmark, repeats
from lm_eval_bias.errors import BiasError
from lm_eval_bias.harness import task_names
from lm_eval_bias.runs import cache_ownership

HF = ("--model", "hf", "--model_args", "pretrained=gpt2")
REFUSALS = [
    ([*HF, "--tasks", "occugender", "--metadata", "words=/no/such/file"], "no word set named '/no/such/file'"),
    ([*HF, "--tasks", "occugender", "--metadata", "word_probability=x"], "word_probability='x': must be one of"),
    (
        [*HF, "--tasks", "occugender,hellaswag", "--metadata", "words=/no/such/file"],
        "no word set named '/no/such/file'",
    ),
    ([*HF, "--tasks", "gg_bbq", "--metadata", "wording=9"], "wording=9: must be a number"),
    ([*HF, "--tasks", "gg_bbq", "--metadata", "by_value=x"], "by_value='x': must be true or false"),
    ([*HF, "--tasks", "stereoset_de", "--metadata", "bos=x"], "bos='x': must be one of"),
    ([*HF, "--tasks", "stereoset_en", "--metadata", "dataset=/no/such"], "/no/such: cannot be read"),
    ([*HF, "--tasks", "regard_en", "--metadata", "repeats=x"], "repeats='x': must be a whole number"),
    ([*HF, "--tasks", "regard_en", "--metadata", "classifier=lihgt"], "Did you mean light?"),
    (["--model", "hf", "--model_args", "pretrained=/no/such", "--tasks", "occugender"], "no such folder"),
    ([*HF, "--tasks", "accuracy"], "no task named accuracy"),
    ([*HF, "--tasks", "nonsense*"], "no task named nonsense*"),
    ([*HF, "--tasks", "occugender,*onsens?q"], "no task named *onsens?q"),
    ([*HF, "--tasks", "gg_bbq_names", "--samples", '{"gg_bbq_names": [-1]}'], "no document -1"),
    ([*HF, "--tasks", "gg_bbq_names", "--samples", '{"gg_bbq_names": [1.0]}'], "no document 1.0"),
    (
        [*HF, "--tasks", "gg_bbq_names", "--samples", '{"gg_bbq": [1]}'],
        "--samples names 'gg_bbq', which is not among --tasks",
    ),
    ([*HF, "--tasks", "gg_bbq", "--use_cache", "others"], "holds answers of another model"),
]
LARGE = ("torch", "transformers", "datasets", "lm_eval.tasks", "lm_eval.evaluator")


def test_refused_before_anything_large_is_imported(tiny_mirror, tmp_path):
    script = (
        "import json, sys\n"
        "from lm_eval_bias.cli.main import main\n"
        "for arguments in json.loads(sys.argv[1]):\n"
        "    print(main(['run', *arguments]), [name for name in json.loads(sys.argv[2]) if name in sys.modules])\n"
    )
    cache_ownership.claim(str(tmp_path / "others"), "hf", {"pretrained": "gpt3"})
    arguments = [json.dumps([arguments for arguments, _ in REFUSALS]), json.dumps(LARGE)]
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=tmp_path)
    assert done.stdout.splitlines() == ["2 []"] * len(REFUSALS), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(REFUSALS)
    for line, (_, text) in zip(lines, REFUSALS, strict=True):
        assert text in line


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("task: my_name\n", True),
        ('- task: "my_name"\n', True),
        ("group: my_name # so it is called\n", True),
        ("tag: [other, my_name]\n", True),
        ("tag:\n  - other\n  - my_name\n", True),
        ("tag: [other,\n  my_name]\n", True),
        ("task:\n  my_name\n", True),
        ("{task: my_name, output_type: multiple_choice}\n", True),
        ("metric: my_name\n", False),
        ("    - metric: my_name\n", False),
        ("description: a task like my_name\n", False),
        ("doc_to_text: |\n  What is the my_name of it?\n", False),
        ("# tag: my_name\n", False),
        ("include: my_name.yaml\n", False),
        ("task: not_my_name\n", False),
    ],
)
def test_a_name_that_stands_in_a_yaml_isnt_a_task_yet(text, known, tmp_path):
    (tmp_path / "one.yaml").write_text(text)
    assert task_names.unknown(["my_name"], [tmp_path]) == ([] if known else ["my_name"])


@pytest.mark.parametrize(
    ("pattern", "known"),
    [
        ("my_*", True),
        ("*_name", True),
        ("*y*a?e", True),
        ("m[xyz]_name", True),
        ("my_name*", True),
        ("[m]*", True),
        ("*", True),
        ("my_*_name", False),
        ("*_*_*", False),
        ("?y_nam", False),
        ("y_*", False),
        ("tas*", False),
        ("*cription", False),
        ("my_names[", False),
    ],
)
def test_a_pattern_that_fits_no_name_of_a_yaml(pattern, known, tmp_path, monkeypatch):
    monkeypatch.setattr(task_names.internals, "tasks_folder", lambda: tmp_path)
    (tmp_path / "one.yaml").write_text("task: my_name\ndescription: a_b_c description\n")
    assert task_names.unknown([pattern], []) == ([] if known else [pattern])


def test_a_pattern_of_many_wildcards_takes_no_time(tmp_path, monkeypatch):
    monkeypatch.setattr(task_names.internals, "tasks_folder", lambda: tmp_path)
    (tmp_path / "one.yaml").write_text(f"task: {'a' * 3000}\n")
    assert task_names.unknown(["a*" * 20 + "b", "*b"], []) == ["a*" * 20 + "b", "*b"]
    assert task_names.unknown(["a*" * 20 + "a"], []) == []


def test_tags_of_base_files_without_an_ending_are_known(tmp_path):
    (tmp_path / "base").write_text("tag: my_name\n")
    (tmp_path / "_base_yaml_0.5k").write_text("tag: other_name\n")
    (tmp_path / "one.yaml").write_text("include: base\ntask: one\n")
    assert task_names.unknown(["my_name", "other_name", "third_name"], [tmp_path]) == ["third_name"]
    assert task_names.unknown(["acp_gen_2shot"], []) == []  # of the harness's own


@pytest.mark.slow
def test_every_name_of_the_harness_may_be_one():
    from lm_eval.tasks import TaskManager

    entries = TaskManager()._index
    assert len(entries) > 10_000
    by_folder, rest = defaultdict(list), []
    for name, entry in entries.items():
        (rest if entry.yaml_path is None else by_folder[entry.yaml_path.parent]).append(name)
    for folder, names in by_folder.items():  # all at once would take hours
        texts = [path.read_bytes() for path in folder.glob("*.yaml")]
        rest += [
            n
            for n in names
            if not any(n.encode() in t and task_names._may_name(task_names._pattern(n)[1], t) for t in texts)
        ]
    assert len(rest) < 2_000
    assert task_names.unknown(rest, []) == []


def test_repeats_are_an_option_of_benchmarks_that_have_it():
    class Plain(Benchmark):
        record = scores = None

    class Sampled(Plain):
        options = ("repeats",)

    assert repeats(Plain(), {"repeats": "x"}) is None
    assert repeats(Sampled(), {}) is None
    assert repeats(Sampled(), {"repeats": 3}) == 3
    for value in (0, True, "3", 2.0):
        with pytest.raises(BiasError, match="must be a whole number of 1 or more"):
            repeats(Sampled(), {"repeats": value})
