"""What this package uses of the harness beyond its documented interface, compared with the installed release.

A failure says what changed and which module has to follow.
"""

import hashlib
import importlib
import importlib.metadata
import inspect
import json
import logging
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from lm_eval import simple_evaluate
from lm_eval.api import registry
from lm_eval.api.group import Group
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM, CachingLM, TemplateLM
from lm_eval.loggers import EvaluationTracker

from lm_eval_bias.cli.signatures import Parser
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.evaluation import preflight
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


def test_cache_hooks_keep_answers_in_a_dictionary_on_disk(tmp_path):
    class Model(LM):
        def loglikelihood(self, requests):
            return [(-1.0, True)] * len(requests)

        loglikelihood_rolling = generate_until = loglikelihood

        def own_kind(self, requests):
            return [2.0] * len(requests)

    where = f"{DOOR}.internals, .servers, lm_eval_bias.scoring"
    wanted = hashlib.sha256(
        json.dumps(["loglikelihood", "a", " b"]).encode()
    ).hexdigest()
    key = internals.request_key("loglikelihood", ("a", " b"))
    holds(
        key == wanted,
        "hash_args names answers otherwise: old files of --use_cache are lost",
        where,
    )
    model = Model()
    cached = CachingLM(model, str(tmp_path / "cache.db"))
    store = getattr(model.cache_hook, "dbdict", None)
    holds(
        hasattr(store, "commit") and hasattr(store, "get"),
        "a cache hook has no dbdict with get and commit",
        where,
    )
    model.cache_hook.add_partial("loglikelihood", ("a", " b"), (-3.0, False))
    store.commit()
    holds(store.get(key) == (-3.0, False), "add_partial differs", where)
    request = [Instance("own_kind", {}, ("a",), 0)]
    holds(
        cached.own_kind(request) == [2.0],
        "CachingLM doesn't pass other kinds of requests through",
        where,
    )


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


def test_flags_configuration_and_the_logger():  # what it says of unknown tasks: the refusals
    where = f"{DOOR}.internals.run_parser, .configuration, lm_eval_bias.cli.run"
    parser = internals.run_parser(Parser())
    holds(
        internals.key_values("a=1,b=x") == {"a": 1, "b": "x"},
        "KEY=VALUE pairs are read otherwise",
        where,
    )
    words = ["--model", "hf", "--tasks", "no_such_task", "--seed", "3"]
    config = internals.configuration(vars(parser.parse_args(words)))
    read = (
        "model model_args tasks limit samples batch_size max_batch_size device use_cache cache_requests write_out "
        "check_integrity log_samples predict_only system_instruction apply_chat_template fewshot_as_multiturn "
        "gen_kwargs num_fewshot include_path metadata seed show_config output_path hf_hub_log_args "
        "wandb_args wandb_config_args"
    )
    for name in read.split():
        holds(
            hasattr(config, name),
            f"a run's configuration has no {name}",
            f"{where}, .harness.running, .evaluation",
        )
    holds(
        config.seed == [3] * 4,
        "one --seed isn't four seeds",
        f"{DOOR}.running.arguments",
    )
    holds(
        config.device == preflight._ANY_GPU,
        f"{config.device} is the default device",
        "lm_eval_bias.evaluation",
    )
    given = parser.parse_args(
        ["--samples", '{"a": [1]}', "--gen_kwargs", "a=1,b=2", "c=3"]
    )
    holds(given.samples == {"a": [1]}, "--samples is read otherwise", where)
    holds(
        given.gen_kwargs == {"a": 1, "b": 2, "c": 3}, "pairs are read otherwise", where
    )
    holds(type(parser) is Parser, "flags are parsed by another class", where)
    internals.set_up_logging(logging.INFO)
    where = f"{DOOR}.internals.held_back"
    holds(
        bool(logging.getLogger("lm_eval").handlers),
        "the logger lm_eval has no handlers of its own",
        where,
    )
    holds(
        not logging.getLogger("lm_eval").propagate,
        "what lm_eval logs goes to the root's handlers",
        where,
    )


def test_task_managers_read_named_folders_and_tasks_make_requests():
    where = f"{DOOR}.internals.task_manager, lm_eval_bias.evaluation.steps"
    manager = internals.task_manager([tasks_path()], {})
    holds(
        "occugender" in manager.all_tasks and "hellaswag" not in manager.all_tasks,
        "all_tasks differs",
        where,
    )
    loaded = manager.load(["occugender"])
    holds({"tasks", "groups"} <= set(loaded), "load gives no tasks and groups", where)
    group = loaded["groups"]["occugender"]
    holds(
        isinstance(group, Group) and len(list(group.get_all_tasks())) == 2,
        "get_all_tasks of a group",
        where,
    )
    is_there = (internals.tasks_folder() / "manager.py").is_file()
    holds(is_there, "the tasks don't lie in lm_eval/tasks", f"{DOOR}.linking")
    where = f"{DOOR}.task"
    task = loaded["tasks"]["occugender_implicit"]
    task.build_all_requests(limit=2)
    holds(
        task.instances is task._instances and task.instances,
        "a task's requests are not in _instances",
        where,
    )
    holds(
        task._filters and hasattr(task._filters[0], "apply"),
        "a task's filters are not in _filters",
        where,
    )
    with pytest.raises(ValueError, match=internals.NO_DOCUMENTS):
        super(type(task), task).build_all_requests(limit=2, rank=5, world_size=6)


@pytest.fixture
def harness_run(tmp_path):
    """The tracker and results of a run by the harness with a model that was built before."""
    registration.register()
    model = internals.model_class("bias-chance").create_from_arg_obj(
        {}, {"batch_size": 1}
    )
    manager = internals.task_manager([tasks_path()], {})
    tasks = list(
        manager.load(["occugender_implicit", "occugender_explicit"])["tasks"].values()
    )
    tracker = EvaluationTracker(output_path=str(tmp_path))
    more = {
        "task_manager": manager,
        "evaluation_tracker": tracker,
        "limit": 2,
        "model_args": {"seed": 1},
    }
    more["use_cache"] = str(tmp_path / "answers")
    return tracker, simple_evaluate(model=model, tasks=tasks, **more)


def test_a_run_of_the_harness(harness_run, tmp_path):
    tracker, results = harness_run
    where = f"{DOOR}.running"
    holds(
        "stereotype_gap,none" in results["results"]["occugender_implicit"],
        "results are named otherwise",
        where,
    )
    holds(
        "stereotype_gap_stderr,none" in results["results"]["occugender_implicit"],
        "no Stderr column of ours",
        where,
    )
    for key in ("configs", "config", "samples", "date"):
        holds(key in results, f"results have no {key}", where)
    holds("batch_sizes" in results["config"], "results have no batch_sizes", where)
    cached = (tmp_path / "answers_rank0.db").is_file()
    holds(
        cached,
        "--use_cache names its files otherwise",
        "lm_eval_bias.runs.provenance.claim_cache",
    )
    where = f"{DOOR}.internals.name_model"
    holds(
        tracker.general_config_tracker.model_source == "CUSTOM",
        "a built model has another source",
        where,
    )
    internals.name_model(
        results, tracker, SimpleNamespace(device="cpu"), "bias-chance", {"seed": 1}
    )
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    (path,) = Path(tracker.output_path).rglob("results_*.json")
    written = json.loads(path.read_text())
    holds(
        written["model_source"] == written["config"]["model"] == "bias-chance",
        "the name isn't saved",
        where,
    )
    holds(
        path.parent.name == written["model_name"] == "bias-chance",
        "the folder is called otherwise",
        where,
    )
    holds(written["config"]["device"] == "cpu", "the device isn't saved", where)
    tracker.save_results_samples(
        task_name="occugender_implicit", samples=samples["occugender_implicit"]
    )
    where = f"{DOOR}.running.save"
    holds(
        [*path.parent.glob("samples_occugender_implicit*.jsonl")],
        "no samples file",
        where,
    )
    for name in (
        "push_results_to_hub",
        "push_samples_to_hub",
        "recreate_metadata_card",
        "output_path",
        "api",
    ):
        holds(hasattr(tracker, name), f"a tracker has no {name}", where)
    holds(
        "stereotype_gap" in running.tables(results, ()),
        "make_table differs",
        f"{DOOR}.running.tables",
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
