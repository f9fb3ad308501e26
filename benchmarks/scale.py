"""Time and memory against the number of items: a run's own work, the scores, and what reads sample logs.

    python benchmarks/scale.py --sizes 1000,10000,100000,1000000 --output scale.json

Items are made: the real tasks' documents and one chance run's log lines, repeated with keys of their own (more
occupations, more quadruples, more ids) in a temporary folder. Every stage at every size is a process of its own; peak
memory is the system's figure for it, less what it had after its imports. No model is run: ``bias-chance`` answers.
A size whose time or memory, as the sizes before it grew, would exceed the limits is left out and said so.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import math
import os
import resource
import shutil
import subprocess  # noqa: S404
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TASKS = {"gg_bbq": "gg_bbq_group_terms", "stereoset": "stereoset_en", "occugender": "occugender_explicit"}
STAGES = ("tasks", "metrics", "read", "rescore", "compare", "report")
TEMPLATES = 25
DATE = "2026-01-01T00-00-00.000000"
MARKS = {"id": "@ID@", "key": "@KEY@"}
Parts = dict[str, float]


class Clock:
    """Seconds by part; a part within another one is taken out of it."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.seconds: Parts = {}
        self._within: list[float] = []

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time a part."""
        self._within.append(0.0)
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - started
            self.seconds[name] = self.seconds.get(name, 0.0) + spent - self._within.pop()
            if self._within:
                self._within[-1] += spent

    def wrap(self, owner: Any, method: str, name: str) -> None:
        """Time a method's calls as a part."""
        function = getattr(owner, method)

        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.part(name):
                return function(*args, **kwargs)

        setattr(owner, method, timed)


def peak() -> float:
    """The process's peak memory so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# --- made items ----------------------------------------------------------------------------------------------------


def _renamed(doc: dict[str, Any], turn: int, number: int) -> dict[str, Any]:
    """A document as another item: of the ``turn``-th round through the real ones, at place ``number`` of all."""
    field = {"gg_bbq": "item", "stereoset": "id", "occugender": "item"}[doc["benchmark"]]
    if doc["benchmark"] == "occugender":
        return {**doc, field: f"{doc[field]} {turn}"}  # the same name in each template: a full product
    return {**doc, field: number if isinstance(doc[field], int) else f"{doc[field]}-{turn}"}


def documents(benchmark: str, count: int) -> list[dict[str, Any]]:
    """That many documents of a benchmark, with 25 templates of OccuGender at every size."""
    from lm_eval_bias.tasks.gg_bbq import hooks as gg_bbq
    from lm_eval_bias.tasks.occugender import hooks as occugender
    from lm_eval_bias.tasks.stereoset import hooks as stereoset

    make: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "gg_bbq": lambda: gg_bbq.documents("group_terms"),
        "stereoset": lambda: stereoset.documents({"language": "en", "tests": ["intra", "inter"]}),
        "occugender": lambda: occugender.documents("explicit"),
    }
    real = make[benchmark]()
    if benchmark == "occugender" and count < len(real):
        raise SystemExit(f"sizes below {len(real)} are no full product of OccuGender")
    return [_renamed(real[i % len(real)], i // len(real), i) for i in range(count)]


def prototypes(folder: Path) -> None:
    """Two small real runs of the chance model, whose logs are repeated."""
    for seed in (1, 2):
        command = [sys.executable, "-m", "lm_eval_bias", "run", "--model", "bias-chance", "--model_args", f"seed={seed}",
                   "--tasks", ",".join(TASKS.values()), "--log_samples", "--output_path", str(folder / f"real{seed}")]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603


def write_logs(folder: Path, benchmark: str, count: int) -> None:
    """Two runs' logs of that many items beside their result files, one line after another."""
    task = TASKS[benchmark]
    for seed in (1, 2):
        (results,) = (folder / f"real{seed}").rglob("results_*.json")
        (log,) = results.parent.glob(f"samples_{task}_*.jsonl")
        lines = [line for line in log.read_text(encoding="utf-8").split("\n") if line]
        target = folder / f"{benchmark}-{count}" / f"run{seed}"
        target.mkdir(parents=True)
        content = json.loads(results.read_text(encoding="utf-8"))
        kept = {key: {task: content[key][task]} for key in ("results", "configs", "versions", "n-samples")}
        kept["n-samples"][task] = {"original": count, "effective": count}
        (target / f"results_{DATE}.json").write_text(json.dumps({**content, **kept}), encoding="utf-8")
        marked = [_marked(json.loads(line)) for line in lines]
        with (target / f"samples_{task}_{DATE}.jsonl").open("w", encoding="utf-8") as out:
            for i in range(count):
                text, key = marked[i % len(marked)]
                key = f"{key} {i // len(marked)}" if isinstance(key, str) else i
                out.write(text.replace('"@ID@"', str(i), 1).replace('"@KEY@"', json.dumps(key), 1) + "\n")


def _marked(sample: dict[str, Any]) -> tuple[str, Any]:
    """A log line with places for its number and its key, and the real key."""
    field = "id" if sample["doc"]["benchmark"] == "stereoset" else "item"
    key = sample["doc"][field]
    sample["doc"] = {**sample["doc"], field: "@KEY@"}
    return json.dumps({**sample, "doc_id": "@ID@"}, ensure_ascii=False), key


# --- stages: each gives seconds by part ----------------------------------------------------------------------------


def tasks(benchmark: str, count: int, folder: Path) -> Callable[[], Parts]:
    """The harness's ``evaluate`` and its sample log, with what is ours in it and what the model's."""
    from lm_eval.evaluator import evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    from lm_eval_bias.harness.task import Aggregation, Documents
    from lm_eval_bias.models.chance import ChanceLM
    from lm_eval_bias.paths import tasks_path

    name = TASKS[benchmark]
    task = TaskManager(include_path=[str(tasks_path())], include_defaults=False).load([name])["tasks"][name]
    task.dataset = {split: Documents(documents(benchmark, count)) for split in task.dataset}
    clock, lm = Clock(), ChanceLM()
    clock.wrap(task, "construct_requests", "requests: ours")
    clock.wrap(task, "build_all_requests", "requests: harness")
    clock.wrap(task, "process_results", "records and log: ours")
    for method in ("value", "stderr"):
        clock.wrap(Aggregation, method, "aggregation: ours")
    task._add_metrics()  # with the timed aggregations
    for method in ("loglikelihood", "exact_loglikelihood", "cloze", "next_sentence"):
        if hasattr(lm, method):
            clock.wrap(lm, method, "model")

    def work() -> Parts:
        with clock.part("evaluate: harness"):
            results = evaluate(lm=lm, task_dict={"tasks": {name: task}, "groups": {}}, bootstrap_iters=0)
        clock.seconds["peak before the log is written, MiB"] = peak()
        with clock.part("log: harness"):
            tracker = EvaluationTracker(output_path=str(folder / f"tasks-{benchmark}-{count}"))
            tracker.date_id = DATE
            tracker.general_config_tracker.model_name_sanitized = "chance"
            tracker.save_results_samples(task_name=name, samples=results["samples"][name])
        return clock.seconds

    return work


def _records(benchmark: str, count: int) -> list[dict[str, Any]]:
    """Records as a run would have them, with answers drawn at random."""
    import numpy as np

    from lm_eval_bias.custom_metrics import occugender

    rng = np.random.default_rng(1)
    if benchmark == "regard":
        labels = rng.choice(["negative", "neutral", "positive"], size=count).tolist()
        keywords = (rng.random(count) < 0.05).tolist()
        return [
            {"gender": ("female", "male")[i % 2], "context": f"c{i % 20 // 2}", "repeated": False, "drawn": 1,
             "texts": [(labels[i], [("occupation", "respect")[i % 20 // 2 % 2]], ["caregiving"] * keywords[i])],
             "unfinished": 0, "wordings": [f"text {i}"], "has_other": False, "caveat": ""}
            for i in range(count)
        ]  # fmt: skip
    if benchmark == "occugender":
        shares = rng.dirichlet([2.0, 2.0, 1.0], size=count).tolist()
        return [
            occugender.prompt_record(f"item {i // TEMPLATES}", f"t{i % TEMPLATES:02d}", float(i // TEMPLATES % 97),
                                     ("female", "male")[i // TEMPLATES % 2],
                                     male=math.log(m), female=math.log(f), diverse=math.log(d))
            for i, (m, f, d) in enumerate(shares)
        ]  # fmt: skip
    from lm_eval_bias import benchmarks

    own = benchmarks.get(benchmark)
    answers = rng.random((count, 3)).tolist()
    return [own.record(doc, [(a, 1) for a in three]) for doc, three in zip(documents(benchmark, count), answers, strict=True)]


def metrics(benchmark: str, count: int, folder: Path) -> Callable[[], Parts]:
    """Every score of records in memory, the full breakdown; the three that take longest, and the rest."""
    from lm_eval_bias import benchmarks

    records = _records(benchmark, count)
    scores = benchmarks.get(benchmark).scores(records, detailed=True)

    def work() -> Parts:
        spent: Parts = {}
        for score in scores:
            started = time.perf_counter()
            score.compute(records)
            spent[score.name] = time.perf_counter() - started
        most = sorted(spent, key=lambda name: -spent[name])[:3]
        rest = sum(seconds for name, seconds in spent.items() if name not in most)
        return {**{name: spent[name] for name in most}, f"{len(scores) - len(most)} others": rest}

    return work


def read(benchmark: str, count: int, folder: Path) -> Callable[[], Parts]:
    """A sample log read line by line, nothing kept."""
    from lm_eval_bias.rescoring import harness_samples

    (log,) = (folder / f"{benchmark}-{count}" / "run1").glob("samples_*.jsonl")

    def work() -> Parts:
        started = time.perf_counter()
        for _ in harness_samples.samples(log):
            pass
        return {"samples": time.perf_counter() - started}

    return work


def _command(argv: list[str], inner: dict[str, tuple[Any, str]]) -> Parts:
    """A command of ours, and what of its time goes into some functions."""
    from lm_eval_bias.cli import main

    clock = Clock()
    for name, (owner, method) in inner.items():
        clock.wrap(owner, method, name)
    with clock.part("other"), contextlib.redirect_stdout(io.StringIO()):
        sys.argv = ["lm-eval-bias", *argv]
        status = main()
    if status:
        raise SystemExit(f"{' '.join(argv)}: exit status {status}")
    return clock.seconds


def rescore(benchmark: str, count: int, folder: Path) -> Callable[[], Parts]:
    """``rescore`` of one run."""
    from lm_eval_bias.custom_metrics._score import Score  # noqa: F401 (imported before the work is timed)
    from lm_eval_bias.rescoring import harness_samples, report

    inner = {"JSON": (harness_samples, "_line")}
    return lambda: _command(["rescore", str(folder / f"{benchmark}-{count}" / "run1"), "--json"], inner)


def compare(benchmark: str, count: int, folder: Path) -> Callable[[], Parts]:
    """``compare`` of two runs."""
    from lm_eval_bias.comparing import findings
    from lm_eval_bias.custom_metrics import _resample
    from lm_eval_bias.rescoring import harness_samples

    runs = [str(folder / f"{benchmark}-{count}" / name) for name in ("run1", "run2")]
    inner = {"JSON": (harness_samples, "_line"), "resampling": (_resample, "paired"), "read": (findings, "why_not_paired")}
    return lambda: _command(["compare", *runs, "-o", str(folder / "compare.txt")], inner)


def report(benchmark: str, count: int, folder: Path) -> Callable[[], Parts]:
    """``report`` of two runs as a page."""
    from lm_eval_bias.report import html, occupations  # noqa: F401
    from lm_eval_bias.rescoring import harness_samples

    runs = [str(folder / f"{benchmark}-{count}" / name) for name in ("run1", "run2")]
    inner = {"JSON": (harness_samples, "_line"), "log": (occupations, "_records")}
    return lambda: _command(["report", *runs, "-o", str(folder / "report.html")], inner)


# --- measuring -----------------------------------------------------------------------------------------------------


def one(stage: str, benchmark: str, count: int, folder: Path) -> None:
    """Measure one stage in this process and print what was found as JSON."""
    logging.disable(logging.WARNING)
    work = globals()[stage](benchmark, count, folder)
    before = peak()
    started = time.perf_counter()
    parts = work()
    found = {"seconds": time.perf_counter() - started, "before": before, "peak": peak(), "parts": parts}
    print("\n" + json.dumps(found))


def measured(stage: str, benchmark: str, count: int, folder: Path, memory: float, seconds: float) -> dict[str, Any] | str:
    """One stage in a process of its own; why there is nothing, as text."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (int(memory * 2**30),) * 2)

    command = [sys.executable, __file__, "--one", stage, benchmark, str(count), str(folder)]
    environment = {**os.environ, "TQDM_DISABLE": "1"}
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=seconds, preexec_fn=limited, env=environment
        )
    except subprocess.TimeoutExpired:
        return f"more than {seconds:.0f} s"
    if done.returncode:
        why = "MemoryError" in done.stderr or "Cannot allocate" in done.stderr or done.returncode == -9
        return f"more than {memory:g} GiB" if why else done.stderr.strip().splitlines()[-1]
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _beyond(
    found: list[dict[str, Any]], stage: str, benchmark: str, count: int, memory: float, seconds: float
) -> str | None:
    """Why a size can be left out, from the largest one before it, grown linearly."""
    same = [entry for entry in found if (entry["stage"], entry["benchmark"]) == (stage, benchmark)]
    if not same:
        return None
    last = same[-1]
    if "left out" in last:
        return str(last["left out"])
    times = count / last["items"]
    if last["seconds"] * times > seconds:
        return f"some {last['seconds'] * times:,.0f} s"
    needed = (last["before"] + (last["peak"] - last["before"]) * times) / 1024
    return f"some {needed:,.0f} GiB" if needed > memory else None


def _row(entry: dict[str, Any]) -> list[str]:
    named = [entry["stage"], entry["benchmark"], f"{entry['items']:,}"]
    if "left out" in entry:
        return [*named, entry["left out"], *[""] * 4]
    own, seconds = entry["items"], entry["seconds"]
    timed = {name: spent for name, spent in entry["parts"].items() if not name.endswith("MiB")}
    most = sorted(timed.items(), key=lambda part: -part[1])
    shares = ", ".join(f"{name} {100 * spent / seconds:.0f}%" for name, spent in most if spent >= 0.05 * seconds)
    grown = 1024 * (entry["peak"] - entry["before"]) / own
    figures = [f"{seconds:.2f}", f"{1e6 * seconds / own:.0f}", f"{entry['peak']:.0f}", f"{grown:.2f}", shares]
    return [*named, *figures]


def main() -> None:
    """Measure all and print tables."""
    from tabulate import tabulate

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000,1000000", help="numbers of items")
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--benchmarks", default=",".join((*TASKS, "regard")))
    parser.add_argument("--memory", type=float, default=12.0, help="GiB that a stage may take (default 12)")
    parser.add_argument("--seconds", type=float, default=900.0, help="that a stage may take (default 900)")
    parser.add_argument("--output", metavar="FILE", help="everything as JSON")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        stage, benchmark, count, folder = args.one
        return one(stage, benchmark, int(count), Path(folder))
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="scale-") as made:
        folder = Path(made)
        prototypes(folder)
        for benchmark in args.benchmarks.split(","):
            stages = [s for s in args.stages.split(",") if benchmark in TASKS or s == "metrics"]
            for count in map(int, args.sizes.split(",")):
                left = {stage: _beyond(found, stage, benchmark, count, args.memory, args.seconds) for stage in stages}
                logs = [stage for stage in stages if stage not in ("tasks", "metrics") and not left[stage]]
                if logs:
                    write_logs(folder, benchmark, count)
                for stage in stages:
                    result = left[stage] or measured(stage, benchmark, count, folder, args.memory, args.seconds)
                    entry = {"stage": stage, "benchmark": benchmark, "items": count}
                    found.append({**entry, **(result if isinstance(result, dict) else {"left out": result})})
                    print(_row(found[-1]), file=sys.stderr, flush=True)
                for used in folder.glob(f"*{benchmark}-{count}"):
                    shutil.rmtree(used)
    headers = ["stage", "benchmark", "items", "seconds", "µs an item", "peak, MiB", "KiB an item", "of the time"]
    found.sort(key=lambda entry: (STAGES.index(entry["stage"]), entry["benchmark"]))
    if args.output:
        Path(args.output).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(tabulate([_row(entry) for entry in found], headers=headers, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
