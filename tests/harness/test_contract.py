"""What this package uses of the harness beyond its documented interface, compared with the installed release.

A failure says what changed and which module has to follow.
"""

import importlib
import importlib.metadata
import inspect

import pytest
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker

from lm_eval_bias.harness import internals, registration, running
from lm_eval_bias.scoring import sampled_texts

VERSION = importlib.metadata.version("lm_eval")
DOOR, PACKED = "lm_eval_bias.harness", "lm_eval_bias.models.packed.packed_model"


def holds(condition, what, module):
    """Fail with what changed in the harness and what depends on it."""
    assert condition, (
        f"lm_eval {VERSION} is not what lm_eval_bias was written for: {what} ({module} depends on it)"
    )


def named(path):
    """What ``module:attribute.attribute`` or a module names."""
    module, _, attributes = path.partition(":")
    found = importlib.import_module(module)
    for attribute in attributes.split(".") if attributes else ():
        found = getattr(found, attribute)
    return found


TEMPLATE, TASK = "lm_eval.api.model:TemplateLM", "lm_eval.api.task:ConfigurableTask"
HF = "lm_eval.models.huggingface:HFLM"
APIS, OPENAI = "lm_eval.models.api_models", "lm_eval.models.openai_completions"
CLIENT, METRICS = (
    f"{OPENAI}:LocalCompletionsAPI",
    ("metric_agg_registry", "higher_is_better_registry"),
)
HOOKS = (
    "aggregation higher_is_better process_results override_metric download test_docs dump_config resolve_field"
).split()
BUILD = "limit samples rank world_size cache_requests system_instruction apply_chat_template tokenizer_name".split()
CALLS = (
    "outputs=outputs, tokens=inputs, ctxlens=ctxlens",
    "(messages=inputs, generate=False)",
    "self.get_batched_requests(",
    "tqdm(",
)
ATTRIBUTES = (
    "tokenizer_backend max_retries base_url auth_token _header api_key header verify_certificate timeout "
    "eos_string tokenizer tokenized_requests max_length _concurrent _batch_size _seed cache_hook"
).split()
METHODS = (
    "model_call get_batched_requests create_message _create_payload parse_logprobs parse_generations decode_batch"
).split()
SETTINGS = "softmax_dtype logits_cache _get_backend mixed_precision_dtype".split()
# what is asked of something of the harness, the names or words, who depends on it
CONTRACTS = [
    (
        "has",
        "lm_eval.api.registry",
        [*internals.REGISTRIES.values(), *METRICS],
        f"{DOOR}.internals.registries",
    ),
    ("has", "lm_eval.api.registry", ["get_filter"], f"{DOOR}.internals.filter_of"),
    (
        "has",
        TEMPLATE,
        [internals.ENCODE_PAIR, internals.LOGLIKELIHOOD_TOKENS],
        f"{DOOR}.internals",
    ),
    ("has", CLIENT, METHODS, f"{DOOR}.servers"),
    ("has", OPENAI, sampled_texts._SERVED, "lm_eval_bias.scoring.sampled_texts"),
    ("has", TASK, HOOKS, f"{DOOR}.task"),
    ("takes", f"{TASK}.build_all_requests", BUILD, f"{DOOR}.task"),
    (
        "takes",
        f"{TASK}.doc_iterator",
        ["rank", "limit", "world_size", "samples"],
        f"{DOOR}.task",
    ),
    (
        "takes",
        f"{CLIENT}.model_call",
        ["messages", "generate", "gen_kwargs"],
        f"{DOOR}.servers",
    ),
    (
        "takes",
        f"{CLIENT}.get_batched_requests",
        ["requests", "cache_keys", "generate", "ctxlens"],
        f"{DOOR}.servers",
    ),
    (
        "takes",
        f"{HF}._loglikelihood_tokens",
        ["requests", "disable_tqdm", "override_bs"],
        PACKED,
    ),
    (
        "takes",
        f"{HF}.tok_decode",
        ["skip_special_tokens"],
        "lm_eval_bias.scoring.sampled_texts",
    ),
    (
        "says",
        f"{HF}.generate_until",
        ["self.tok_decode(cont_toks)"],
        "lm_eval_bias.scoring.sampled_texts",
    ),
    (
        "says",
        "lm_eval.models.utils:postprocess_generated_text",
        ["generation.split(term)[0]"],
        "lm_eval_bias.scoring.sampled_texts",
    ),
    (
        "says",
        HF,
        [f"self.{internals.DETECT_BATCH_SIZE}"],
        "lm_eval_bias.scoring.sampled_texts",
    ),
    (
        "says",
        HF,
        [f"self.{name}" for name in SETTINGS],
        f"{PACKED}, lm_eval_bias.scoring.token_likelihoods",
    ),
    (
        "says",
        APIS,
        [*CALLS, *(f"self.{name}" for name in ATTRIBUTES)],
        f"{DOOR}.servers",
    ),
]


@pytest.mark.parametrize(("kind", "path", "names", "module"), CONTRACTS)
def test_what_the_harness_has_takes_and_says(kind, path, names, module):
    if path.partition(":")[0] in (APIS, OPENAI):
        pytest.importorskip("tenacity", reason="needs lm-eval[api]")
    found = named(path)
    inside = {
        "has": lambda name: hasattr(found, name),
        "takes": lambda name: name in inspect.signature(found).parameters,
        "says": lambda name: name in inspect.getsource(found),
    }[kind]
    for name in names:
        holds(inside(name), f"{path} {kind} no {name}", module)


def test_clients_of_servers():
    pytest.importorskip("tenacity", reason="needs lm-eval[api]")
    client = named(CLIENT)
    own = client.parse_generations.__module__
    holds(own == OPENAI, f"parse_generations is defined in {own}", f"{DOOR}.servers")
    holds(
        internals.is_client(client),
        "clients have no _create_payload",
        f"{DOOR}.internals.is_client",
    )


def test_samples_as_they_are_logged():
    logged = internals.as_logged({"a": ("b", 1)}, [(-1.5, False), "He."])
    assert logged == [{"a": ["b", 1]}, [["-1.5", "False"], "He."]]


def test_a_tracker_says_what_it_cannot_write_while_it_handles_the_error(
    tmp_path, caplog
):
    (tmp_path / "file").write_text("")
    tracker = EvaluationTracker(output_path=str(tmp_path / "file"))
    tracker.general_config_tracker.log_experiment_args(
        "m", {"pretrained": "m"}, None, None, False
    )
    failures = running.save(tracker, {"configs": {}}, None)
    where = f"{DOOR}.running.save"
    holds(
        failures and isinstance(failures[0], OSError),
        f"what failed is told otherwise: {failures}",
        where,
    )
    assert "Could not save" not in caplog.text


def test_every_request_of_ours_is_a_method_of_models():
    registration.register()
    for _, name, _ in registration.requests():
        holds(
            callable(getattr(LM, name, None)),
            f"LM has no {name}",
            f"{DOOR}.registration",
        )
