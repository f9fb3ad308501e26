"""Time and memory against the number of items: a run's own work, the scores, and what reads sample logs.

    python tests/performance/scale.py --sizes 1000,10000,100000,1000000 --output scale.json

Items are synthetic (``synthetic_items.py``): the real tasks' documents and one chance run's log lines, repeated with
keys of their own in a temporary folder. Every stage at every size is a process of its own. Time is the processor's, so
that other work on the machine doesn't count; memory is the process's peak while it works, less what it had after its
imports and, for ``tasks`` and ``metrics``, after its documents or records were made. No model is run: ``bias-chance``
answers. A size whose time or memory would exceed the limits, were it to grow linearly, is left out and said so. What
``--output`` holds already isn't measured again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import shutil
import subprocess  # noqa: S404
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from measuring import alone, peak
from synthetic_items import DATE, TASKS, documents, prototypes, records, write_logs, write_results

STAGES = ("tasks", "metrics", "read", "rescore", "compare", "report", "leaderboard")
Parts = dict[str, float]


class Clock:
    """Processor seconds by part; a part within another one is taken out of it."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.seconds: Parts = {}
        self._within: list[float] = []

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time a part."""
        self._within.append(0.0)
        started = time.process_time()
        try:
            yield
        finally:
            spent = time.process_time() - started
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


# --- stages: each gives seconds by part ----------------------------------------------------------------------------


def tasks(benchmark: str, count: int, folder: Path) -> Callable[[], Parts]:
    """The harness's ``evaluate`` and its sample log, with what is ours in it and what the model's."""
    from lm_eval.evaluator import evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    from lm_eval_bias.core.files import tasks_path
    from lm_eval_bias.harness.score_aggregation import Aggregation
    from lm_eval_bias.harness.task import Documents
    from lm_eval_bias.models.chance import ChanceLM

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


def metrics(benchmark: str, count: int, folder: Path) -> Callable[[], Parts]:
    """Every score of records in memory, the full breakdown; the three that take longest, and the rest."""
    from scipy import stats  # noqa: F401 (its import takes a second)

    from lm_eval_bias.core import registry

    given = records(benchmark, count)
    scores = registry.get(benchmark).scores(given, detailed=True)

    def work() -> Parts:
        spent: Parts = {}
        for score in scores:
            started = time.process_time()
            score.compute(given)
            spent[score.name] = time.process_time() - started
        most = sorted(spent, key=lambda name: -spent[name])[:3]
        rest = sum(seconds for name, seconds in spent.items() if name not in most)
        return {**{name: spent[name] for name in most}, f"{len(scores) - len(most)} others": rest}

    return work


def read(benchmark: str, count: int, folder: Path) -> Callable[[], Parts]:
    """A sample log read line by line, nothing kept."""
    from lm_eval_bias.runs import sample_logs

    (log,) = (folder / f"{benchmark}-{count}" / "run1").glob("samples_*.jsonl")

    def work() -> Parts:
        started = time.process_time()
        for _ in sample_logs.samples(log):
            pass
        return {"samples": time.process_time() - started}

    return work


def _command(argv: list[str], inner: dict[str, tuple[Any, str]]) -> Parts:
    """A command of ours, and what of its time goes into some functions."""
    from lm_eval_bias.cli.main import main

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
    from lm_eval_bias.report import rescored_tables  # noqa: F401
    from lm_eval_bias.runs import sample_logs

    inner = {"JSON": (sample_logs, "_line")}
    return lambda: _command(["rescore", str(folder / f"{benchmark}-{count}" / "run1"), "--json"], inner)


def compare(benchmark: str, count: int, folder: Path) -> Callable[[], Parts]:
    """``compare`` of two runs."""
    from lm_eval_bias.comparing import findings
    from lm_eval_bias.runs import sample_logs

    runs = [str(folder / f"{benchmark}-{count}" / name) for name in ("run1", "run2")]
    inner = {
        "JSON": (sample_logs, "_line"),
        "test": (findings, "paired"),
        "read": (findings, "why_not_paired"),
    }
    return lambda: _command(["compare", *runs, "-o", str(folder / "compare.txt")], inner)


def report(benchmark: str, count: int, folder: Path) -> Callable[[], Parts]:
    """``report`` of two runs as a page."""
    from lm_eval_bias.runs import sample_logs
    from lm_eval_bias.tasks.occugender import figures as occupations  # noqa: F401

    runs = [str(folder / f"{benchmark}-{count}" / name) for name in ("run1", "run2")]
    inner = {"JSON": (sample_logs, "_line"), "log": (occupations, "_records")}
    return lambda: _command(["report", *runs, "-o", str(folder / "report.html")], inner)


def leaderboard(benchmark: str, count: int, folder: Path) -> Callable[[], Parts]:
    """``leaderboard`` of that many models' result files, as a page."""
    from lm_eval_bias.boards import building, rank_intervals
    from lm_eval_bias.runs import run_discovery as read

    inner = {"reading": (read, "read"), "ranks": (rank_intervals, "intervals"), "tables": (building, "boards")}
    where = str(folder / f"leaderboard-models-{count}")
    return lambda: _command(["leaderboard", where, "-o", str(folder / "board.html")], inner)


# --- measuring -----------------------------------------------------------------------------------------------------


def one(stage: str, benchmark: str, count: int, folder: Path) -> None:
    """Measure one stage in this process and print what was found as JSON."""
    logging.disable(logging.WARNING)
    work = globals()[stage](benchmark, count, folder)
    before = peak(start=True)
    started = time.process_time()
    parts = work()
    found = {"seconds": time.process_time() - started, "before": before, "peak": peak(), "parts": parts}
    print("\n" + json.dumps(found))


def measured(
    stage: str, benchmark: str, count: int, folder: Path, memory: float, seconds: float
) -> dict[str, Any] | str:
    """One stage in a process of its own; why there is nothing, as text."""

    try:
        done = alone(__file__, stage, benchmark, count, folder, seconds=seconds, memory=memory)
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
    if all(entry["items"] >= count for entry in same):
        return None
    last = max((entry for entry in same if entry["items"] < count), key=lambda entry: int(entry["items"]))
    if "left out" in last:
        return f"see {last['items']:,}"
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
    parser.add_argument("--benchmarks", default=",".join((*TASKS, "regard", "models")))
    parser.add_argument("--models", default="10,100,500", help="numbers of models of a leaderboard")
    parser.add_argument("--memory", type=float, default=12.0, help="GiB that a stage may take (default 12)")
    parser.add_argument("--seconds", type=float, default=900.0, help="that a stage may take (default 900)")
    parser.add_argument("--output", metavar="FILE", help="everything as JSON")
    parser.add_argument(
        "--folder", help="work there, and find there the small runs of another time (default: temporary)"
    )
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        stage, benchmark, count, folder = args.one
        return one(stage, benchmark, int(count), Path(folder))
    found: list[dict[str, Any]] = []
    output = Path(args.output) if args.output else None
    if output and output.is_file():
        found = json.loads(output.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="scale-") as temporary:
        folder = Path(args.folder or temporary)
        for benchmark in args.benchmarks.split(","):
            can = {"regard": ("metrics",), "models": ("leaderboard",)}.get(benchmark, STAGES[:-1])
            stages = [stage for stage in args.stages.split(",") if stage in can]
            for count in map(int, (args.models if benchmark == "models" else args.sizes).split(",")):
                known = {
                    entry["stage"] for entry in found if (entry["benchmark"], entry["items"]) == (benchmark, count)
                }
                left = {
                    stage: _beyond(found, stage, benchmark, count, args.memory, args.seconds)
                    for stage in stages
                    if stage not in known
                }
                if any(not why for stage, why in left.items() if stage not in ("tasks", "metrics")):
                    prototypes(folder)
                    (write_results if benchmark == "models" else partial(write_logs, benchmark=benchmark))(
                        folder, count=count
                    )
                for stage, why in left.items():
                    result = why or measured(stage, benchmark, count, folder, args.memory, args.seconds)
                    entry = {"stage": stage, "benchmark": benchmark, "items": count}
                    found.append({**entry, **(result if isinstance(result, dict) else {"left out": result})})
                    if output:
                        output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
                for used in folder.glob(f"*{benchmark}-{count}"):
                    shutil.rmtree(used)
    headers = ["stage", "benchmark", "items", "processor, s", "µs an item", "peak, MiB", "KiB an item", "of the time"]
    found.sort(key=lambda entry: (STAGES.index(entry["stage"]), entry["benchmark"], entry["items"]))
    print(tabulate([_row(entry) for entry in found], headers=headers, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
