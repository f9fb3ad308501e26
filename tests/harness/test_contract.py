"""What this package uses of the harness beyond its documented interface, compared with the installed release.

A failure says what changed and which module has to follow.
"""

import importlib
import importlib.metadata
import inspect
import json
import re
from types import SimpleNamespace

import pytest
from lm_eval.api import registry
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM, TemplateLM
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


def test_registries_take_names_of_what_they_load_later():
    where = f"{DOOR}.internals.registries, .registration"
    own = registry.Registry("test")
    own.register("later", target="json:dumps")
    holds(
        "later" in own and list(own) == ["later"],
        "a Registry doesn't know a name that was registered",
        where,
    )
    holds(
        own.get("later") is json.dumps,
        "a Registry doesn't load a target 'module:attribute'",
        where,
    )
    for group, known in internals.registries().items():
        holds(
            len(known) > 3 or group == "lm_eval.filters",
            f"the registry of {group} isn't filled on import",
            where,
        )
    with pytest.raises(ValueError, match="no-such-model"):
        internals.model_class("no-such-model")


def test_models_of_token_ids():
    seen = []

    class Model(TemplateLM):
        eot_token_id = prefix_token_id = 0

        def tok_encode(self, string, **kwargs):
            return [ord(c) for c in string]

        def _loglikelihood_tokens(self, requests, **kwargs):
            seen.extend(requests)
            return [(-1.0, True)] * len(requests)

        loglikelihood_rolling = generate_until = None

    where = f"{DOOR}.internals.encode_pair, .loglikelihood_tokens, lm_eval_bias.scoring"
    model = Model.__new__(Model)
    holds(
        internals.encode_pair(model, "ab", "c") == ([97, 98], [99]),
        "_encode_pair divides otherwise",
        where,
    )
    with internals.shadowed(
        model, internals.ENCODE_PAIR, lambda context, continuation: ([1], [2])
    ):
        model.loglikelihood([Instance("loglikelihood", {}, ("ab", "c"), 0)])
    holds(
        seen == [(("ab", "c"), [1], [2])],
        "loglikelihood no longer asks _encode_pair, then the token ids",
        where,
    )


@pytest.mark.parametrize(("arguments", "folder"), [
    ({"pretrained": "openai-community/gpt2"}, "openai-community__gpt2"),
    ({"model": "org/a", "base_url": "http://localhost"}, "org__a"),
    ({"pretrained": "{here}/.venv/a model"}, r"a_model-[0-9a-f]{8}"),
    ({"pretrained": "{here}/.hidden"}, r"hidden-[0-9a-f]{8}"),
    ({"pretrained": "/"}, r"model-[0-9a-f]{8}"),
    ({"pretrained": "gpt2", "peft": "{here}/adapter"}, r"adapter-[0-9a-f]{8}"),
    ({"seed": 1}, "hf"),
])  # fmt: skip
def test_a_folder_is_called_like_its_model(arguments, folder, tmp_path):
    arguments = {
        key: str(value).replace("{here}", str(tmp_path))
        for key, value in arguments.items()
    }
    tracker = EvaluationTracker(output_path=str(tmp_path))
    tracker.general_config_tracker.log_experiment_args(
        "CUSTOM", arguments or "", None, None, False
    )
    results = {"config": {"device": "cuda:0"}}
    internals.name_model(
        results, tracker, SimpleNamespace(device=None), "hf", arguments
    )
    assert re.fullmatch(folder, tracker.general_config_tracker.model_name_sanitized)


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


def test_a_tag_of_several_folders_is_no_task_that_takes_anothers_place(
    tmp_path, caplog
):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        text = f"task: {folder}\ntag: both\ndataset_path: x\n"
        (tmp_path / folder / "own.yaml").write_text(text)
    manager = internals.task_manager([tmp_path / "a", tmp_path / "b"])
    assert set(manager.all_tasks) == {"a", "b", "both"}
    assert not caplog.records
    internals.task_manager([tmp_path / "a", tmp_path / "a"])
    assert "overrides existing task" in caplog.text
