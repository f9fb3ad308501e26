"""Prompts that a model's window cuts: a fact in the results, a warning before the scores, a violation in the gate."""

import json

import pytest

from lm_eval_bias.harness import internals
from tests.support import tiny
from tests.support.commands import command
from tests.support.run_scores import results_of

LIMIT = ["--limit", "80", "--batch_size", "32", "--log_samples"]
LIKELIHOODS, WRITTEN = "occugender_explicit", "occugender_explicit_gen"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.gpt2(tmp_path_factory.mktemp("model"))


def told(folder, task):
    return results_of(folder)["configs"][task]["metadata"].get("cut_prompts")


def ran(out, task, kind, where, *more):
    found = command(
        "run", "--tasks", task, "--model", kind, "--model_args", where, *LIMIT,
        "--output_path", str(out), *more,
    )  # fmt: skip
    assert found.status == 0, found.err
    return found.out


def lengths(folder, task, out):
    """How many tokens the prompts of a run have, each with its longest continuation, by an encoding of their own."""
    import transformers

    encode = transformers.AutoTokenizer.from_pretrained(folder).encode
    (path,) = out.rglob(f"samples_{task}_*.jsonl")
    for line in path.read_text(encoding="utf-8").splitlines():
        requests = json.loads(line)["arguments"].values()
        texts = [
            "".join(part for part in given.values() if isinstance(part, str))
            for given in requests
        ]
        yield max(len(encode(text)) for text in texts)


@pytest.mark.parametrize(
    ("kind", "window"), [("hf", 50), ("hf-packed", 50), ("hf", 96)]
)
def test_of_log_likelihoods(kind, window, folder, tmp_path):
    where = f"pretrained={folder},max_length={window},dtype=float32"
    said = ran(tmp_path, LIKELIHOODS, kind, where, "--device", "cpu")
    found = list(lengths(folder, LIKELIHOODS, tmp_path))
    # the last token is predicted, and not read
    cut = [length for length in found if length > window + 1]
    assert told(tmp_path, LIKELIHOODS) == (
        {"documents": len(cut), "longest": max(cut), "read": window + 1}
        if cut
        else None
    )
    assert (f"{len(cut)} of 80 prompts were cut" in said) == bool(cut)


def test_of_written_answers(folder, tmp_path):
    where = f"pretrained={folder},dtype=float32"
    more = ["--device", "cpu", "--gen_kwargs", "do_sample=false,max_gen_toks=20"]
    ran(tmp_path, WRITTEN, "hf", where, *more)
    found = list(lengths(folder, WRITTEN, tmp_path))
    cut = [length for length in found if length > 96 - 20]
    assert cut
    assert told(tmp_path, WRITTEN) == {
        "documents": len(cut),
        "longest": max(cut),
        "read": 76,
    }


def test_what_each_kind_of_model_reads():
    """Of a window of 60 tokens; kinds are known by name."""
    for name, more, read in (
        ("HFLM", {}, 61),
        ("VLLM", {}, 59),
        ("TemplateLM", {}, 60),  # a server's client
        ("TemplateLM", {"tokenized_requests": False}, None),
        ("HFLM", {"backend": "seq2seq"}, None),
    ):
        base = type("TemplateLM", (), {"max_length": 60})
        model = type(name, (base,), more)()
        assert internals.window(model) == read, (name, more)
