"""Tokenizers and templates that would move scores silently: set right and said, or refused in one line."""

import contextlib
import functools

import pytest
import torch
import transformers
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
from tokenizers import processors

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.harness import internals, registration, tokenization_boundary
from tests.support import servers, tiny
from tests.support.commands import command
from tests.support.run_scores import results_of

PAIRS = [
    ("The old gardener", " was patient"),
    ("The old gardener", " was kind"),
    ("A neighbour", " waved."),
]
TASK = "occugender_implicit"


def loglikelihoods(model):
    instances = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(PAIRS)]
    return [value for value, _ in model.loglikelihood(instances)]


def ran(kind, where, *more):
    """The outcome of a short run by a model type with these arguments."""
    model = ["--model", kind, "--model_args", where]
    few = ["--limit", "80", "--batch_size", "32"]
    return command("run", "--tasks", TASK, *few, *model, *more)


def built(folder, kind="hf", **more):
    registration.register()
    return get_model(kind)(pretrained=str(folder), device="cpu", batch_size=1, **more)


@pytest.mark.parametrize("kind", ["hf", "hf-packed"])
def test_an_end_token_is_left_out_of_requests(kind, tmp_path):
    plain = built(tiny.gpt2(tmp_path / "plain"), kind)
    ended = built(tiny.gpt2(tmp_path / "ended", end=True), kind)
    assert loglikelihoods(ended) != pytest.approx(
        loglikelihoods(plain), abs=1e-3
    )  # what the harness does by itself
    (said,) = tokenization_boundary.check_tokenizer(ended)
    assert "<|endoftext|> behind every text" in said
    assert loglikelihoods(ended) == pytest.approx(loglikelihoods(plain), abs=1e-5)
    assert tokenization_boundary.check_tokenizer(ended) == [said]  # once
    ids, mask = ended.tok_batch_encode(["The old gardener", "A"])
    expected, _ = plain.tok_batch_encode(["The old gardener", "A"])
    assert ids.shape == mask.shape == expected.shape
    assert tokenization_boundary.check_tokenizer(plain) == []


def test_questions_about_sentences_keep_an_end_token(tmp_path):
    ended = built(tiny.gpt2(tmp_path, end=True))
    tokenization_boundary.check_tokenizer(ended)
    assert ended.tok_encode("a")[-1] == 0


def test_a_tokenizer_that_nothing_can_begin_with_is_refused(tmp_path):
    folder = tiny.gpt2(tmp_path)
    model = built(folder)
    model.tokenizer.bos_token = model.tokenizer.eos_token = None
    with pytest.raises(BiasError, match="prefix_token_id=0"):
        tokenization_boundary.check_tokenizer(model)
    model = built(folder, prefix_token_id=0)
    model.tokenizer.bos_token = model.tokenizer.eos_token = None
    assert tokenization_boundary.check_tokenizer(model) == []


def test_a_text_that_does_not_come_back_is_told(tmp_path):
    model = built(tiny.gpt2(tmp_path))
    model.tokenizer.decode = lambda ids, **_: (
        "" if isinstance(ids, int) else "helloworld"
    )
    (said,) = tokenization_boundary.check_tokenizer(model)
    assert "'helloworld'" in said


def test_the_configuration_decides_how_a_text_begins(tmp_path):
    model = built(tiny.llama(tmp_path / "llama"))
    assert tokenization_boundary.check_tokenizer(model) == []
    model = built(tiny.llama(tmp_path / "other"))
    model.tokenizer.init_kwargs["add_bos_token"] = False
    (said,) = tokenization_boundary.check_tokenizer(model)
    assert "add_bos_token=False leaves it out" in said
    model = built(tiny.gpt2(tmp_path / "gpt2"))
    model.tokenizer.init_kwargs["add_bos_token"] = True
    said = []
    with contextlib.suppress(BiasError):  # of releases in which it can't be switched on
        said = tokenization_boundary.check_tokenizer(model)
        assert model.tok_encode("a")[0] == 0
    assert said in (
        [],
        ["prompts begin with <|endoftext|>, as the tokenizer's configuration says"],
    )
    model = built(tiny.gpt2(tmp_path / "accepted"))
    model.tokenizer.init_kwargs["add_bos_token"] = True
    assert tokenization_boundary.check_tokenizer(model, ["add_bos_token"]) == []


def test_options_are_not_scored_within_a_thought(tmp_path):
    folder = tiny.served(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = tokenizer.chat_template.replace(
        "<assistant>", "<assistant><think>\n"
    )
    tokenizer.save_pretrained(folder)
    found = ran(
        "hf", f"pretrained={folder}", "--device", "cpu", "--apply_chat_template"
    )
    assert found.status == 2
    assert "enable_thinking=False" in found.err.splitlines()[-1]


def started(folder, single):
    """A causal LM whose tokenizer puts these tokens around a text."""
    tiny.llama(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=[("<s>", 1), ("<|endoftext|>", 0)]
    )
    tokenizer.save_pretrained(folder)
    return folder


def marked(folder):
    """A causal LM whose tokens carry the space before them as a mark, and whose tokenizer ends a text."""
    tokenizer = tiny.unigram()
    config = transformers.LlamaConfig(
        **{
            "vocab_size": len(tokenizer),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
        },
        **{
            "num_attention_heads": 4,
            "max_position_embeddings": 256,
            "bos_token_id": None,
            "eos_token_id": 1,
        },
    )
    torch.manual_seed(4)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


SHAPES = {
    "an end token": functools.partial(tiny.gpt2, end=True),
    "both": functools.partial(started, single="<s> $A <|endoftext|>"),
    "spaces as marks": marked,
    "a template": tiny.served,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_engines_agree_on_every_shape_of_tokenizer(shape, tmp_path):
    folder = SHAPES[shape](tmp_path / "model")
    server = servers.completions(folder)
    local = f"pretrained={folder},dtype=float32"
    remote = f"model=tiny,base_url=http://127.0.0.1:{server.server_port}/v1/completions,tokenizer={folder}"
    gaps = {}
    for kind, where in (
        ("hf", local),
        ("hf-packed", local),
        ("local-completions", remote),
    ):
        out = tmp_path / kind
        chat = ["--apply_chat_template"] * (shape == "a template")
        device = ["--device", "cpu"] * (where == local)
        found = ran(kind, where, "--output_path", str(out), *chat, *device)
        assert found.status == 0, found.err
        gaps[kind] = [
            value
            for value in results_of(out)["results"][TASK].values()
            if isinstance(value, float)
        ]
    server.shutdown()
    assert len(gaps["hf"]) > 5
    assert gaps["hf-packed"] == pytest.approx(gaps["hf"], abs=1e-3, nan_ok=True)
    assert gaps["local-completions"] == pytest.approx(gaps["hf"], abs=1e-3, nan_ok=True)


class Odd:
    """All of its properties fail."""

    def __getattr__(self, name):
        raise OSError("no network")


@pytest.mark.parametrize("name", ["tokenizer", "max_length", "backend", "batch_size"])
def test_an_attribute_that_fails_is_none(name):
    odd = Odd()
    assert internals.attribute(odd, name) is None
    assert internals.attribute(odd, name, 1) == 1
    assert internals.window(odd) is None


REFUSES = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
DROPS = "{% set messages = messages | rejectattr('role', 'equalto', 'system') | list %}"


@pytest.mark.parametrize("beginning", [REFUSES, DROPS])
def test_an_instruction_that_a_template_leaves_out_is_refused(
    beginning, mirror, tmp_path
):
    """By ``run``, and by our tasks whoever builds their prompts; a template that takes one isn't."""
    flags = ["--device", "cpu", "--apply_chat_template"]
    flags += ["--system_instruction", " Be fair.\n"]
    folder = tiny.served(tmp_path / "model")
    takes = built(folder).apply_chat_template
    template = tmp_path / "model" / "chat_template.jinja"
    template.write_text(beginning + template.read_text())
    done = ran("hf", f"pretrained={folder}", *flags)
    assert done.status == 2
    assert "leaves out the system's turn ('Be fair.')" in done.err
    manager = internals.task_manager([tasks_path() / "occugender"])
    (task,) = manager.load([TASK])["tasks"].values()
    around = {"apply_chat_template": True, "system_instruction": " Be fair.\n"}
    around |= {"limit": 2, "rank": 0, "world_size": 1}
    task.build_all_requests(chat_template=takes, **around)
    with pytest.raises(BiasError, match="leaves out"):
        task.build_all_requests(
            chat_template=built(folder).apply_chat_template, **around
        )
