"""A run in four steps: prepare, ask, record, save. Python calls them, and so does the command line."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lm_eval_bias.core import Data, Facts, catalog, redaction
from lm_eval_bias.core.errors import BiasError, fault, kind_of, one_line
from lm_eval_bias.core.files import (
    UNFINISHED,
    why,
    writable,
    writing,
)
from lm_eval_bias.core.numbers import plain
from lm_eval_bias.evaluation import planned, preflight, suites
from lm_eval_bias.evaluation.planned import Planned
from lm_eval_bias.harness import (
    distributed,
    internals,
    registration,
    running,
    servers,
    tokenization_boundary,
)
from lm_eval_bias.harness.running import HarnessRun, Results, Samples
from lm_eval_bias.runs import answer_files, provenance, sample_logs
from lm_eval_bias.scoring import questions

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluationTracker, EvaluatorConfig

logger = logging.getLogger("lm_eval.bias")


@dataclass(frozen=True)
class RunRequest:
    """A request to run an evaluation.

    Attributes:
        flags: The harness's options of ``run`` by name; what is left out has the harness's default.
        suite: A suite in place of tasks; ``None`` without one.
        language: Codes of languages, joined by commas, whose tasks of the suite are wanted; ``None`` for all.
        name: The model's in reports; ``None`` names it by its checkpoint.
        command: The command as it was given, without keys and tokens; empty if there was none.
    """

    flags: Facts
    suite: str | None = None
    language: str | None = None
    name: str | None = None
    command: Sequence[str] = ()


@dataclass(frozen=True)
class FinishedRun:
    """A finished run, with its files and texts.

    Attributes:
        config: Its flags.
        results: Its results, with what they depend on, and without keys and tokens.
        samples: Its answers.
        saved: The results file; ``None`` where it wasn't saved.
    """

    config: EvaluatorConfig
    results: Results
    samples: Samples
    saved: Path | None = None


def evaluate(
    request: RunRequest,
    on_progress: Callable[[str], None] = lambda text: None,
    on_model_loaded: Callable[[], None] = lambda: None,
    on_finish: Callable[[FinishedRun], None] = lambda finished: None,
) -> Path | None:
    """Run an evaluation, and save what its flags ask for.

    Args:
        request: What to measure.
        on_progress: Is called with what begins now.
        on_model_loaded: Is called when the model is loaded.
        on_finish: Is called with the finished run, even where it couldn't be saved.

    Returns:
        The results file; ``None`` where none was saved, and on all ranks but the first.

    Raises:
        BiasError: Bad usage or input; or the run couldn't be finished, or its files couldn't be written or pushed.
    """
    untested = registration.require_harness()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if untested and distributed.first():
        logger.warning("%s", untested)
    run = prepare(request, on_progress)
    harness_run = HarnessRun(run.config, run.manager)
    results = ask(run, harness_run, on_model_loaded)
    if results is None:
        return None
    finished = record(request, run, results)
    return _saved(harness_run, finished, on_finish)


def prepare(request: RunRequest, on_progress: Callable[[str], None]) -> Planned:
    """Check flags, find and build the tasks, and choose their items; no model is loaded.

    Raises:
        BiasError: Bad usage or input, or data that can't be had.
    """
    config = internals.configuration(request.flags)
    redaction.learn(asdict(config))
    folders = [config.include_path] if config.include_path else []
    run = Planned(config, catalog.entries(folders), request.flags.get("device"))
    preflight.check(preflight.FLAGS, run)
    config.tasks = planned.without_tags(config.tasks, run.entries)
    if request.language is not None and request.suite is None:
        raise BiasError("--language goes with --suite: name tasks without it")
    suite = request.suite and suites.chosen(run, request.suite, request.language)
    preflight.check(preflight.MODEL_TYPE, run)
    if suite:
        suite = suites.fitted(suite, run)
    run.name_tasks()
    preflight.check(preflight.NAMES, run)
    run.load_tasks()
    preflight.check(preflight.TASKS, run)
    if suite:
        suites.choose_items(suite, run)
        on_progress(suites.describe(suite))
    if not config.output_path:
        on_progress(
            "Nothing will be saved: --output_path FOLDER saves scores and answers, and --log_samples the texts, too"
        )
    given = redaction.arguments(config.model_args) or "no arguments"
    on_progress(f"Loading {config.model} ({given})")
    return run


def ask(
    run: Planned, harness_run: HarnessRun, on_model_loaded: Callable[[], None]
) -> Results | None:
    """Load and check the model, and let the harness run and score the tasks.

    Args:
        run: A run that is prepared.
        harness_run: The same, as the harness has it.
        on_model_loaded: Is called when the model is loaded.

    Returns:
        The results as the harness returns them, with ``from_cache``: how many answers came from a file of
        ``--use_cache``, and when that was begun. ``None`` on all ranks but the first.

    Raises:
        BiasError: The model can't be loaded, or fails.
    """
    config = run.config
    with internals.shadowed(questions, "expected", run.asks):
        run.model = harness_run.load()
        # after the model was loaded: only then is it known which commit a name stands for
        begun = config.use_cache and provenance.claim_cache(
            config.use_cache,
            config.model,
            config.model_args,
            config.apply_chat_template,
        )
        with harness_run.answering():
            preflight.check(preflight.MODEL, run)
        on_model_loaded()
        with servers.counting_kept() as kept:
            results = harness_run.ask()
    if results is not None:
        results["from_cache"] = {"answers": len(kept), "begun": begun or ""}
    return results


def record(request: RunRequest, run: Planned, results: Results) -> FinishedRun:
    """Add provenance to the results, take the samples out, and mask keys and tokens."""
    samples = running.samples_in_order(results.pop("samples"))
    from_cache = results.pop("from_cache")
    block: Data = {"model": {}}
    try:
        block = provenance.block(results)
    except Exception as error:  # from here on nothing may lose the scores
        fault(f"what the run was made by is not recorded ({kind_of(error)})")
    model = block["model"]
    model["tokenization_boundary"] = tokenization_boundary.notes(
        run.model
    ) + servers.notes(run.model)
    model |= servers.facts(run.model)
    if request.name:
        model["name"] = request.name
    block["cache"] = from_cache
    results["provenance"] = block
    # the harness mixes the model's arguments into each task's metadata
    results = redaction.of_results(results)
    for key in ("config", "configs", "provenance"):
        results[key] = plain(results[key])
    results["provenance"]["command"] = list(request.command)  # which has its stars
    results = writable(redaction.masked(results))  # a path may be no UTF-8
    return FinishedRun(run.config, results, redaction.masked(samples))


def _saved(
    harness_run: HarnessRun,
    finished: FinishedRun,
    on_finish: Callable[[FinishedRun], None],
) -> Path | None:
    """Save and report a run; its scores are printed even if saving fails."""
    config = finished.config
    failures: list[Exception] = []
    try:
        saved, failures = save(
            harness_run.tracker, finished.results, finished.samples, config.log_samples
        )
        finished = replace(finished, saved=saved)
    finally:
        logged = finished.samples if config.log_samples else None
        running.send(harness_run.services, finished.results, logged)
        on_finish(finished)
    if failures:
        text = one_line(failures[0])
        text = f"not pushed to the Hub: {text} (everything is saved in {config.output_path})"
        raise BiasError(f"--hf_hub_log_args: {text}")
    return finished.saved


def save(
    tracker: EvaluationTracker, results: Results, samples: Samples, log: bool = True
) -> tuple[Path | None, list[Exception]]:
    """Let the harness save a run in a temporary folder, then move complete files to their place, the results last.

    Args:
        tracker: The harness's.
        results: The run's.
        samples: Its answers, which are saved without their texts in any case.
        log: Whether to save sample logs.

    Returns:
        The results file, and errors from the Hub.

    Raises:
        BiasError: Some files couldn't be written; the whole ones are kept.
    """
    place = tracker.output_path
    if not place:
        return None, []
    target: Path | None = None
    missing = number = 1 + len(results["configs"]) * log
    with writing(f"--output_path {place}"):
        os.makedirs(place, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=place, prefix=UNFINISHED, ignore_cleanup_errors=True
        ) as folder:
            tracker.output_path = folder
            failures = running.save(tracker, results, samples, log)
            ready = _ready(Path(folder), log)
            whole = [file for file in ready if _is_whole(file, samples)]
            if not any(file.suffix == ".json" for file in whole):
                whole = [file for file in whole if file.suffix != ".txt"]
            for file in whole:
                target = Path(place, file.relative_to(folder))
                _put(file, target)
                missing -= file.suffix in (".json", ".jsonl")
    if missing:
        reason = f" ({why(failures[0])})" if failures else ""
        raise BiasError(
            f"--output_path {place}: {missing} of {number} files "
            f"could not be written{reason}; with --use_cache FILE the same command resumes it"
        )
    return target, failures  # the results come last


def _ready(folder: Path, log: bool) -> list[Path]:
    """Add the answers and the checksums to a run's files, and list all, the results last."""
    logs = list(folder.rglob("*.jsonl"))
    results = list(folder.rglob("*.json"))
    files = [*logs] if log else []
    for file in results:
        try:
            files.append(answer_files.write(file, logs))
        except Exception as error:  # nothing may lose the scores
            text = f"the answers are not saved without their texts ({kind_of(error)})"
            logger.warning("%s", text)
    for one in () if log else logs:
        one.unlink()
    for file in results:
        with contextlib.suppress(OSError):  # where the disk is full
            files.append(provenance.write_sums(file))
    return files + results


def _put(file: Path, target: Path) -> None:
    """Move a complete file to its place."""
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(file, target)


def _is_whole(file: Path, samples: Samples) -> bool:
    """Return whether a log has one line per sample, or a results file is complete JSON."""
    if file.suffix not in (".json", ".jsonl"):
        return True
    with file.open("rb+") as written:
        # where blocks are allocated late, a full disk shows only now
        os.fsync(written.fileno())
        if file.suffix == ".jsonl":
            count = sum(line.endswith(b"\n") for line in written)
            return count == len(samples[sample_logs.task_of(file)])
        try:
            return isinstance(json.load(written), dict)
        except ValueError:
            return False
