"""A real model: SmolLM2-135M-Instruct, from the package that carries it."""

import json
import math
import random

import pytest

from lm_eval_bias.cli import main

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def plain(smollm2):
    """An independent scorer: plain transformers, one forward a word."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = dict(part.split("=", 1) for part in smollm2.split(","))
    tokenizer = AutoTokenizer.from_pretrained(where["pretrained"], gguf_file=where["gguf_file"])
    model = AutoModelForCausalLM.from_pretrained(
        where["pretrained"], gguf_file=where["gguf_file"], dtype=torch.float32
    ).eval()

    @torch.no_grad()
    def score(context, continuation):
        whole = tokenizer(context + continuation).input_ids
        start = len(tokenizer(context).input_ids)
        logs = model(torch.tensor([whole])).logits[0].log_softmax(-1)
        return sum(logs[i - 1, whole[i]].item() for i in range(start, len(whole))), len(whole) - start

    return score


def run(smollm2, out, tasks, *extra):
    arguments = ["run", "--tasks", tasks, "--model", "hf", "--model_args", smollm2, "--device", "cpu", "--log_samples"]
    assert main([*arguments, "--output_path", str(out), *extra]) == 0
    return {
        path.name.split("samples_")[1].rsplit("_", 1)[0]: [json.loads(line) for line in path.open(encoding="utf-8")]
        for path in out.rglob("samples_*.jsonl")
    }


def assert_agree(samples, plain, tolerance=1e-4):
    compared = 0
    for sample in samples:
        for request, (answer, *_) in zip(sample["arguments"].values(), sample["filtered_resps"], strict=True):
            expected, _ = plain(request["arg_0"], request["arg_1"])
            assert float(answer) == pytest.approx(expected, abs=tolerance), request
            compared += 1
    return compared


def test_a_few_prompts_agree_with_plain_transformers(smollm2, plain, tmp_path):
    chosen = json.dumps({"occugender_explicit": [3, 777], "occugender_implicit": [0, 501, 999]})
    samples = run(smollm2, tmp_path, "occugender", "--samples", chosen, "--batch_size", "16")
    assert assert_agree(samples["occugender_explicit"], plain) == 52
    assert assert_agree(samples["occugender_implicit"], plain) == 18


def test_word_probability_is_the_sum_of_products(smollm2, plain, tmp_path):
    (sample,) = run(smollm2, tmp_path, "occugender_explicit", "--limit", "1")["occugender_explicit"]
    masses = {"male": 0.0, "female": 0.0, "diverse": 0.0}
    for word, gender in zip(sample["doc"]["words"], sample["doc"]["genders"], strict=True):
        masses[gender] += math.exp(plain(sample["arguments"]["gen_args_0"]["arg_0"], f" {word}")[0])  # Eq. 5
    share = masses["female"] / sum(masses.values())  # Eq. 6
    assert sample["female_dominated_F"] == pytest.approx(100 * share, abs=1e-3)
    assert sample["coverage"] == pytest.approx(sum(masses.values()), abs=1e-6)


def test_geometric_mean_uses_the_real_token_counts(smollm2, plain, tmp_path):
    metadata = '{"word_probability": "geometric_mean"}'
    (sample,) = run(smollm2, tmp_path, "occugender_explicit", "--limit", "1", "--metadata", metadata)[
        "occugender_explicit"
    ]
    context = sample["arguments"]["gen_args_0"]["arg_0"]
    counts = set()
    for word, (loglikelihood, _, tokens) in zip(sample["doc"]["words"], sample["filtered_resps"], strict=True):
        expected, number = plain(context, f" {word}")
        assert int(tokens) == number
        assert float(loglikelihood) == pytest.approx(expected, abs=1e-4)
        counts.add(number)
    assert len(counts) > 1
    assert main(["rescore", str(tmp_path)]) == 0


def test_chat_template_of_the_model(smollm2, plain, tmp_path):
    samples = run(smollm2, tmp_path, "occugender", "--limit", "1", "--apply_chat_template")
    explicit, implicit = samples["occugender_explicit"][0], samples["occugender_implicit"][0]
    asked = explicit["arguments"]["gen_args_0"]
    assert asked["arg_0"].endswith("Answer with one word.\nA:<|im_end|>\n<|im_start|>assistant\n")
    assert asked["arg_1"] == "Male"
    begun = implicit["arguments"]["gen_args_0"]
    assert begun["arg_0"].endswith("<|im_start|>assistant\nI recently met a skincare specialist.")
    assert begun["arg_1"] == " He"
    assert_agree([explicit, implicit], plain)


def test_generated_answers(smollm2, tmp_path, tiny_mirror):
    samples = run(smollm2, tmp_path, "gg_bbq_group_terms_gen", "--limit", "2", "--gen_kwargs", "max_gen_toks=8")
    made = samples["gg_bbq_group_terms_gen"]
    assert all(sample["filtered_resps"][0] in [*sample["doc"]["choices"], "[no single answer]"] for sample in made)


def test_gg_bbq_agrees_with_plain_transformers(smollm2, plain, tmp_path, tiny_mirror):
    samples = run(smollm2, tmp_path, "gg_bbq_group_terms", "--limit", "4", "--batch_size", "4")
    assert assert_agree(samples["gg_bbq_group_terms"], plain) == 12


@pytest.mark.slow
def test_100_prompts_of_each_task_agree(smollm2, plain, tmp_path, mirror):
    draw = random.Random(20261121)
    sizes = {"occugender_explicit": 1000, "occugender_implicit": 1000, "gg_bbq_group_terms": 968}
    chosen = {task: sorted(draw.sample(range(size), 100)) for task, size in sizes.items()}
    samples = run(smollm2, tmp_path, ",".join(sizes), "--samples", json.dumps(chosen), "--batch_size", "32")
    assert assert_agree(samples["occugender_explicit"], plain) == 2600
    assert assert_agree(samples["occugender_implicit"], plain) == 600
    assert assert_agree(samples["gg_bbq_group_terms"], plain) == 300


@pytest.mark.slow
def test_scores_do_not_depend_on_the_batch_size(smollm2, tmp_path):
    found = {}
    for size in (1, 8, 64):
        out = tmp_path / str(size)
        run(smollm2, out, "occugender_debias_implicit_none", "--batch_size", str(size))
        (path,) = out.rglob("results_*.json")
        found[size] = json.loads(path.read_text())["results"]["occugender_debias_implicit_none"]
    for size in (8, 64):
        for name, value in found[1].items():
            if isinstance(value, float):
                assert found[size][name] == pytest.approx(value, abs=1e-3), (size, name)
