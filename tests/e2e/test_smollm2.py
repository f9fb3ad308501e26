"""A real model: SmolLM2-135M-Instruct, from the package that carries it."""

import random

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.model]


def arguments_of(smollm2):
    return dict(part.split("=", 1) for part in smollm2.split(","))


@pytest.fixture(scope="module")
def packed(smollm2):
    from lm_eval_bias.models.packed.packed_model import HFPacked

    return HFPacked(**arguments_of(smollm2), device="cpu", batch_size=16)


@pytest.fixture(scope="module")
def plain(smollm2):
    """Plain transformers, one forward a word, or a context where it is one token; float32 rounds by up to 1e-4 here."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = arguments_of(smollm2)["pretrained"]
    tokenizer = AutoTokenizer.from_pretrained(where)
    model = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32).eval()
    behind = {}

    @torch.no_grad()
    def score(context, continuation):
        whole = tokenizer(context + continuation).input_ids
        number = len(whole) - len(tokenizer(context).input_ids)
        if number == 1:
            if tuple(whole[:-1]) not in behind:
                logits = model(torch.tensor([whole[:-1]]), logits_to_keep=1).logits[
                    0, 0
                ]
                behind[tuple(whole[:-1])] = logits.log_softmax(-1)
            return behind[tuple(whole[:-1])][whole[-1]].item(), 1
        # only the positions that predict the word go through the vocabulary: a fifth of the time
        logs = (
            model(torch.tensor([whole]), logits_to_keep=number + 1)
            .logits[0]
            .log_softmax(-1)
        )
        return sum(
            logs[k, token].item() for k, token in enumerate(whole[-number:])
        ), number

    @torch.no_grad()
    def by_token(text):
        ids = tokenizer(text).input_ids
        logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        first = (
            model(torch.tensor([[tokenizer.bos_token_id]])).logits[0, 0].log_softmax(-1)
        )
        return [first[ids[0]].item()] + [
            logs[k - 1, ids[k]].item() for k in range(1, len(ids))
        ]

    score.by_token = by_token
    score.length = lambda text: len(tokenizer(text).input_ids)
    return score


def evaluate(lm, *tasks, metadata=None, **options):
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    from lm_eval_bias.core.files import tasks_path
    from lm_eval_bias.harness import registration

    registration.register()
    manager = TaskManager(
        include_path=str(tasks_path()), include_defaults=False, metadata=metadata
    )
    return simple_evaluate(model=lm, tasks=list(tasks), task_manager=manager, **options)


def assert_agree(samples, plain):
    compared = 0
    for sample in samples:
        for (context, continuation), (answer, *_) in zip(
            sample["arguments"], sample["filtered_resps"], strict=True
        ):
            expected, _ = plain(context, continuation)
            assert answer == pytest.approx(expected, abs=2e-4), (context, continuation)
            compared += 1
    return compared


def test_prompts_of_each_task_agree(packed, plain, mirror):
    draw = random.Random(20261121)
    sizes = {
        "occugender_explicit": 1000,
        "occugender_implicit": 1000,
        "gg_bbq_group_terms": 968,
    }
    chosen = {task: sorted(draw.sample(range(size), 5)) for task, size in sizes.items()}
    samples = evaluate(packed, *sizes, samples=chosen)["samples"]
    assert packed.method is not None
    assert assert_agree(samples["occugender_explicit"], plain) == 5 * 26
    assert assert_agree(samples["occugender_implicit"], plain) == 5 * 6
    assert assert_agree(samples["gg_bbq_group_terms"], plain) == 5 * 3
