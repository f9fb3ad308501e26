"""A run: tasks and model are checked and built, the harness evaluates, results are saved whole and told."""

from __future__ import annotations

import fnmatch
import json
import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core import Data, redaction
from lm_eval_bias.core.errors import (
    BiasError,
    did_you_mean,
    fault,
    kind_of,
    one_line,
)
from lm_eval_bias.core.files import UNFINISHED, why, writing
from lm_eval_bias.core.numbers import plain
from lm_eval_bias.core.questions import KINDS
from lm_eval_bias.evaluation import preflight, suites
from lm_eval_bias.harness import (
    border,
    distributed,
    internals,
    linking,
    running,
    servers,
)
from lm_eval_bias.harness.running import Results, Samples
from lm_eval_bias.runs import provenance, sample_logs
from lm_eval_bias.scoring import questions
from lm_eval_bias.scoring.free_answers import opening_of_thoughts

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig

logger = logging.getLogger("lm_eval.bias")


def load_tasks(config: EvaluatorConfig, entries: preflight.Entries) -> Any:
    """Put the named tasks into the configuration, ours built, the harness's by name; return their manager."""
    names = preflight.split_tasks(config.tasks)
    folders = linking.missing_folders()
    if config.include_path:  # of two tasks of one name the later is taken
        folders.append(config.include_path)
    # the harness's thousands of YAMLs are only read for its own tasks
    if not preflight.only_ours(names, entries):
        problem = linking.stale_links()
        if problem:
            logger.warning("link: %s", problem)
        if problem or not linking.stubs():
            config.include_path = folders
        try:
            return config.process_tasks(config.metadata)
        except ValueError as error:
            name = str(error).removeprefix("Tasks not found: ")
            raise BiasError(
                f"no task named {name}, neither here nor in the harness.{did_you_mean(name, entries)}"
            ) from error
    manager = internals.task_manager(folders, config.metadata)
    matched = {}
    known = [name for name in manager.all_tasks if name not in manager.all_tags]
    for name in names:
        matches = fnmatch.filter(known, name)
        if not matches:
            raise BiasError(f"no task matches {name!r}.{did_you_mean(name, known)}")
        matched.update(dict.fromkeys(matches))
    for name in list(matched):
        for member in entries[name].members if name in entries else ():
            matched.pop(member, None)  # it comes with its group
    config.tasks = []
    for name in matched:
        try:  # built here, so that bad metadata or a bad YAML shows before a model is loaded
            loaded = manager.load([name])
        except Exception as error:
            entry = entries.get(name)
            if entry is None or isinstance(error, BiasError | MemoryError):
                raise
            logger.debug("where the task failed", exc_info=error)
            raise BiasError(
                f"{entry.path}: the task {name} can't be built: {one_line(error)}"
            ) from error
        config.tasks.append(loaded["groups"].get(name) or loaded["tasks"][name])
    preflight.check_samples(config, config.tasks)
    return manager


def evaluate(
    config: EvaluatorConfig,
    entries: preflight.Entries,
    suite: suites.Suite | None,
    ready: Callable[[], None],
    tell: Callable[[Results, Samples | None, bool], None],
    model_name: str | None = None,
    command: Sequence[str] = (),
) -> Path | None:
    """Run the evaluation, and save what the flags ask for; return the results file, ``None`` where none was saved.

    Args:
        config: The configuration, with checked flags.
        entries: All known tasks, by name.
        suite: The suite that the run is of, if any.
        ready: Called when the model is loaded.
        tell: Called with the results, the samples if they are logged, and whether both could be saved.
        model_name: The model's in reports; ``None`` names it by its checkpoint.
        command: The command as it was given, without keys and tokens.

    Raises:
        BiasError: The run couldn't be finished, or its files couldn't be written or pushed.
    """
    named = preflight.named_entries(config, entries)
    manager = load_tasks(config, entries)
    preflight.check_requests(config, named)
    if suite is not None:
        samples = {}
        for name, task in preflight.tasks_of(config.tasks).items():
            task.config.metadata["suite"] = suite.label(name, task.eval_docs)
            indices = suite.choose(name, task.eval_docs)
            if indices is not None:
                samples[name] = indices
        config.samples = samples or None
        if distributed.first():
            print(suites.describe(suite), flush=True)
    if distributed.first():
        if not config.output_path:
            print(
                "Nothing will be saved: --output_path FOLDER saves the scores, and --log_samples the answers, too"
            )
        print(
            f"Loading {config.model} ({redaction.arguments(config.model_args) or 'no arguments'})",
            flush=True,
        )
    asks = preflight.request_kinds(named)
    tracker, dashboards = running.loggers(config)
    with internals.shadowed(questions, "expected", asks):
        model = running.build_model(config)
        begun = ""
        if config.use_cache:
            # after the model was loaded: only then is it known which commit a name stands for
            begun = provenance.claim_cache(
                config.use_cache,
                config.model,
                config.model_args,
                config.apply_chat_template,
            )
        with running.answering(model, config):
            border_facts = _looked_at(model, config, manager, asks)
        ready()
        with servers.counting_kept() as kept:
            results = running.evaluate(config, model, manager, tracker)
    if results is None:
        return None
    logged = results.pop("samples", None)
    answers = running.samples_in_order(logged) if config.log_samples else None
    told: Data = {"border": border_facts + servers.notes(model)}
    told |= servers.told(model)
    if model_name:
        told["name"] = model_name
    block: Data = {"model": {}}
    try:
        block = provenance.block(results)
    except Exception as error:  # from here on nothing may lose the scores
        fault(f"what the run was made by is not recorded ({kind_of(error)})")
    block["model"] |= told
    if begun:
        block["cache"] = {"answers": len(kept), "begun": begun}
    results["provenance"] = block
    # the harness mixes the model's arguments into each task's metadata
    results = redaction.of_results(results)
    for key in ("config", "configs", "provenance"):
        results[key] = plain(results[key])
    results["provenance"]["command"] = list(command)  # which has its stars
    results, answers = redaction.masked(results), redaction.masked(answers)
    saved = None
    try:
        saved, failures = save(tracker, results, answers)
    finally:  # the scores in any case: they may be all that is left of the run
        if config.show_config:
            print(json.dumps(results, indent=2, default=str, ensure_ascii=False))
        running.send(dashboards, results, answers)
        tell(results, answers, saved is not None)
    if failures:
        text = f"not pushed to the Hub: {one_line(failures[0])} (everything is saved in {config.output_path})"
        raise BiasError(f"--hf_hub_log_args: {text}")
    return saved


def _looked_at(
    model: Any, config: EvaluatorConfig, manager: Any, asks: Sequence[str]
) -> list[str]:
    """Look at a model's tokenizer and template; return sentences about what was found.

    Raises:
        BiasError: The model would be sent another text, or options would be scored within a thought.
    """
    prompt = ""
    if config.apply_chat_template and hasattr(model, "apply_chat_template"):
        prompt = str(model.apply_chat_template([{"role": "user", "content": "Hello."}]))
    mark = opening_of_thoughts(prompt)
    if mark and _output_types(config, manager) - {"generate_until"}:
        raise BiasError(
            f"--apply_chat_template: this model's template opens a thought ({mark}), in which options would be scored: "
            "add --model_args enable_thinking=False, or run the tasks whose names end in _gen"
        )
    if mark and "max_gen_toks" not in config.gen_kwargs:
        logger.warning(
            "this model's template opens a thought (%s), which rarely ends within the tasks' limit: give it room with "
            "--gen_kwargs max_gen_toks=4096",
            mark,
        )
    if set(asks) & set(KINDS) and not internals.is_client(model):
        # sentences lack the start token that a template may bring; the harness adds no second one to prompts
        prompt = ""
    return border.check_tokenizer(model, config.model_args, prompt)


def _output_types(config: EvaluatorConfig, manager: Any) -> set[str]:
    """Return the output types of all tasks of a run that use a chat template.

    The harness's tasks, still names, are loaded for it.
    """
    tasks = []
    for task in config.tasks:
        if isinstance(task, str):
            tasks.extend(manager.load([task])["tasks"].values())
        else:
            tasks.append(task)
    return {
        task.OUTPUT_TYPE
        for task in preflight.tasks_of(tasks).values()
        if not (task.config.metadata or {}).get("asks")
    }


def save(
    tracker: Any, results: Results, samples: Samples | None
) -> tuple[Path | None, list[Exception]]:
    """Let the harness save a run in a folder of its own, and move the whole files to their place, the results last.

    Returns:
        The results file, and errors from the Hub.

    Raises:
        BiasError: Some files couldn't be written; the whole ones are kept.
    """
    place = tracker.output_path
    if not place:
        return None, []
    target: Path | None = None
    root, name = os.path.split(place) if place.endswith(".json") else (place, "")
    missing = number = 1 + (0 if samples is None else len(results["configs"]))
    with writing(f"--output_path {place}"):
        os.makedirs(root or ".", exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=root or ".", prefix=UNFINISHED, ignore_cleanup_errors=True
        ) as folder:
            tracker.output_path = os.path.join(folder, name)
            failures = running.save(tracker, results, samples)
            files = list(Path(folder).rglob("*.json*"))
            for file in sorted(files, key=lambda file: file.suffix == ".json"):
                if _is_whole(file, (samples or {}).get(sample_logs.task_of(file))):
                    target = Path(root, file.relative_to(folder))
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(file, target)
                    missing -= 1
    if missing:
        reason = f" ({why(failures[0])})" if failures else ""
        raise BiasError(
            f"--output_path {place}: {missing} of {number} files "
            f"could not be written{reason}; with --use_cache FILE the same command resumes it"
        )
    return target, failures  # the results come last


def _is_whole(file: Path, samples: list[Any] | None) -> bool:
    """Tell whether a log has a line for each sample; without samples, whether the file is whole JSON."""
    with file.open("rb+") as written:
        # where blocks are allocated late, a full disk shows only now
        os.fsync(written.fileno())
        if samples is not None:
            return sum(line.endswith(b"\n") for line in written) == len(samples)
        try:
            return isinstance(json.load(written), dict)
        except ValueError:
            return False
