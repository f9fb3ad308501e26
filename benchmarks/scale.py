"""Time and memory against the number of items: a run's own work, the scores, and what reads sample logs.

    python benchmarks/scale.py --sizes 1000,10000,100000,1000000

Items are synthetic (``synthetic_items.py``): the real tasks' documents and one chance run's log lines, repeated with
keys of their own in a temporary folder. Every stage at every size is a process of its own. Time is the processor's, so
that other work on the machine doesn't count; memory is the process's peak while it works, less what it had after its
imports and, for ``tasks``, after its documents were made. No model is run: ``bias-chance``
answers. What takes more than the limits is said so.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import subprocess  # noqa: S404
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measuring import alone, peak
from synthetic_items import (
    DATE,
    TASKS,
    documents,
    prototypes,
    write_logs,
    write_results,
)

STAGES = ("tasks", "read", "rescore", "compare", "report", "leaderboard")
Work = Callable[[], object]


def tasks(benchmark: str, count: int, folder: Path) -> Work:
    """The harness's ``evaluate`` and its sample log."""
    from lm_eval.evaluator import evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    from lm_eval_bias.core.files import tasks_path
    from lm_eval_bias.harness.task import Documents
    from lm_eval_bias.models.chance import ChanceLM

    name = TASKS[benchmark]
    task = TaskManager(include_path=[str(tasks_path())], include_defaults=False).load(
        [name]
    )["tasks"][name]
    task.dataset = {
        split: Documents(documents(benchmark, count)) for split in task.dataset
    }

    def work() -> None:
        results = evaluate(
            lm=ChanceLM(),
            task_dict={"tasks": {name: task}, "groups": {}},
            bootstrap_iters=0,
        )
        tracker = EvaluationTracker(
            output_path=str(folder / f"tasks-{benchmark}-{count}")
        )
        tracker.date_id = DATE
        tracker.general_config_tracker.model_name_sanitized = "chance"
        tracker.save_results_samples(task_name=name, samples=results["samples"][name])

    return work


def read(benchmark: str, count: int, folder: Path) -> Work:
    """A sample log read line by line, nothing kept."""
    from lm_eval_bias.runs import sample_logs

    (log,) = (folder / f"{benchmark}-{count}" / "run1").glob("samples_*.jsonl")
    return lambda: sum(1 for _ in sample_logs.samples(log))


def _command(*words: object) -> Work:
    from lm_eval_bias.cli.main import main

    def work() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            status = main([str(word) for word in words])
        if status:
            raise SystemExit(f"{words}: exit status {status}")

    return work


def command(stage: str, benchmark: str, count: int, folder: Path) -> Work:
    """A command on one run, on two, or on that many models' result files."""
    runs = folder / f"{benchmark}-{count}"
    if stage == "rescore":
        return _command("rescore", runs / "run1", "--json")
    if stage == "leaderboard":
        return _command("leaderboard", runs, "-o", folder / "board.html")
    return _command(stage, runs / "run1", runs / "run2", "-o", folder / f"{stage}.html")


def one(stage: str, benchmark: str, count: int, folder: Path) -> None:
    """Measure one stage in this process and print what was found as JSON."""
    logging.disable(logging.WARNING)
    made = {"tasks": tasks, "read": read}
    work = (
        made[stage](benchmark, count, folder)
        if stage in made
        else command(stage, benchmark, count, folder)
    )
    before = peak(start=True)
    started = time.process_time()
    work()
    print(
        "\n"
        + json.dumps(
            {"seconds": time.process_time() - started, "before": before, "peak": peak()}
        )
    )


def row(
    stage: str, benchmark: str, count: int, folder: Path, memory: float, seconds: float
) -> list[str]:
    """One stage, measured in a process of its own."""
    named = [stage, benchmark, f"{count:,}"]
    try:
        done = alone(
            __file__, stage, benchmark, count, folder, seconds=seconds, memory=memory
        )
    except subprocess.TimeoutExpired:
        return [*named, f"more than {seconds:.0f} s"]
    if done.returncode:
        return [*named, done.stderr.strip().splitlines()[-1]]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    grown = 1024 * (found["peak"] - found["before"]) / count
    spent = found["seconds"]
    return [
        *named,
        f"{spent:.2f}",
        f"{1e6 * spent / count:.0f}",
        f"{found['peak']:.0f}",
        f"{grown:.2f}",
    ]


def main() -> None:
    """Measure all and print a table."""
    from tabulate import tabulate

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", default="1000,10000,100000,1000000", help="numbers of items"
    )
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--benchmarks", default=",".join((*TASKS, "models")))
    parser.add_argument(
        "--models", default="10,100,500", help="numbers of models of a leaderboard"
    )
    parser.add_argument(
        "--memory",
        type=float,
        default=12.0,
        help="GiB that a stage may take (default 12)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=900.0,
        help="that a stage may take (default 900)",
    )
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        stage, benchmark, count, place = args.one
        return one(stage, benchmark, int(count), Path(place))
    rows = []
    for benchmark in args.benchmarks.split(","):
        able = STAGES[-1:] if benchmark == "models" else STAGES[:-1]
        stages = [stage for stage in args.stages.split(",") if stage in able]
        for count in map(
            int, (args.models if benchmark == "models" else args.sizes).split(",")
        ):
            with tempfile.TemporaryDirectory(prefix="scale-") as place:
                folder = Path(place)
                if set(stages) - {"tasks"}:
                    prototypes(folder)
                    if benchmark == "models":
                        write_results(folder, count)
                    else:
                        write_logs(folder, benchmark, count)
                rows += [
                    row(stage, benchmark, count, folder, args.memory, args.seconds)
                    for stage in stages
                ]
    headers = [
        "stage",
        "benchmark",
        "items",
        "processor, s",
        "µs an item",
        "peak, MiB",
        "KiB an item",
    ]
    print(tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
