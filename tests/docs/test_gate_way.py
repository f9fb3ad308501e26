"""The way through docs/gate.md, as printed, with three models in the place of the candidate."""

import json
import re
import shlex
from pathlib import Path

import pytest
import transformers

from tests.support import doc_pages, tiny
from tests.support.commands import command
from tests.support.run_scores import run

GATE = "docs/gate.md"
# what a model is asked; broken logits are seen in log-likelihoods, silence in texts
ASKED = "occugender_implicit,gg_bbq_group_terms"
WRITTEN = "gg_bbq_group_terms_gen"
GOOD = "strength=0.05,competence=0.9"


def printed(start):
    """The words of the page's commands that begin so, without where they write."""
    lines = doc_pages.text(GATE).splitlines()
    found = [shlex.split(line)[1:] for line in lines if line.startswith(start)]
    return [[word for word in words if word != ">"] for words in found]


@pytest.fixture(scope="module")
def equal_logits(tmp_path_factory):
    """A model to which everything is equally likely."""
    folder = tiny.gpt2(tmp_path_factory.mktemp("broken") / "model", positions=1024)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    for weights in model.parameters():
        weights.data.zero_()
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def week(tmp_path, monkeypatch, mirror):
    """Run the accepted model, and another as the candidate, where the page's files lie."""
    monkeypatch.chdir(tmp_path)
    for file, body in doc_pages.blocks(GATE, "yaml"):
        if file and "/" not in file:
            Path(file).write_text(body, encoding="utf-8")

    def make(tasks, model, arguments):
        more = ["--limit", "400"]
        run(Path("accepted"), tasks, *more, "--model_args", GOOD, model="bias-dial")
        if arguments:
            more += ["--model_args", arguments]
        run(Path("candidate"), tasks, *more, model=model)

    return make


@pytest.mark.parametrize(
    ("tasks", "model", "arguments", "says"),
    [
        pytest.param(ASKED, "bias-dial", f"{GOOD},seed=1", "", id="equal"),
        pytest.param(
            ASKED,
            "bias-dial",
            "strength=0.05,competence=0.6,seed=3",
            "acc_disamb",
            id="strongly noisy",
        ),
        # its likeliest token is the first one, which ends every text
        pytest.param(WRITTEN, "hf", "broken", "unanswered", id="silent"),
    ],
)
def test_three_models_on_the_way_through_the_page(
    tasks, model, arguments, says, week, equal_logits
):
    if arguments == "broken":
        arguments = f"pretrained={equal_logits},dtype=float32"
    week(tasks, model, arguments)
    against, evidence = printed("lm-eval-bias check candidate --base accepted")
    first = command(*against)
    assert first.status == bool(says), first.out
    told = " ".join(first.out.split())
    assert not says or re.search(rf"VIOLATED .*{says}", told), first.out
    written = command(*evidence[:-1])  # its last word is the file
    assert written.status == bool(says)
    (judged,) = json.loads(written.out)["runs"]
    proven = {f["score"]: f for f in judged["findings"] if "provenance" in f["score"]}
    assert [f["passes"] for f in proven.values()] == [True, True], (
        proven
    )  # run and base
