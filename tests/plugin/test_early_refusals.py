"""What a run can refuse at once it refuses before anything large is imported, or before a model is loaded."""

import json
import subprocess
import sys

HF = "run --model hf --model_args pretrained=gpt2"
REFUSALS = [
    ("--tasks occugender --metadata words=/no/such/file", "'/no/such/file'"),
    ("--tasks occugender --metadata word_probability=x", "word_probability='x'"),
    ("--tasks occugender,hellaswag --metadata words=/no/such/file", "'/no/such/file'"),
    ("--tasks gg_bbq --metadata wording=9", "wording=9"),
    ("--tasks gg_bbq --metadata by_value=x", "by_value"),
    ("--tasks stereoset_de --metadata bos=x", "bos='x'"),
    ("--tasks stereoset_en --metadata dataset=/no/such", "/no/such"),
    ("--tasks regard_en --metadata repeats=x", "repeats='x'"),
    ("--tasks regard_en --metadata classifier=lihgt", "Did you mean light?"),
    ("--tasks occugender --model_args pretrained=/no/such", "/no/such"),
    ('--tasks gg_bbq_names --samples {"gg_bbq_names":[-1]}', "gg_bbq_names"),
]
LARGE = ("torch", "transformers", "datasets", "lm_eval.tasks", "lm_eval.evaluator")


def test_refused_before_anything_large_is_imported(tiny_mirror, tmp_path):
    script = (
        "import json, sys\n"
        "from lm_eval_bias.cli.main import main\n"
        "for arguments in json.loads(sys.argv[1]):\n"
        "    print(main(arguments), [name for name in json.loads(sys.argv[2]) if name in sys.modules])\n"
    )
    arguments = [
        json.dumps([f"{HF} {line}".split() for line, _ in REFUSALS]),
        json.dumps(LARGE),
    ]
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=200, cwd=tmp_path
    )
    assert done.stdout.splitlines() == ["2 []"] * len(REFUSALS), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(REFUSALS)
    for line, (_, text) in zip(lines, REFUSALS, strict=True):
        assert text in line
