"""How fast ``hf-packed`` answers, against ``hf``, vLLM and one forward per pair: ratios from one run.

    python tests/performance/speed.py --model_args pretrained=DIR --workloads occugender_explicit,gg_bbq --share 0.3

Each contestant loads the model in a process of its own and waits; one works at a time, in turn, on the very same
requests, from text to log-likelihoods. ``hf`` runs at each batch size once on a small part and with its best one from
then on. A matrix product is timed around every measurement: where it was slow, something else ran on the machine, and
the measurement is repeated. Prints a table (Markdown) and, with ``--output``, writes everything as JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import math
import multiprocessing
import os
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from measuring import processor

BATCH_SIZES = ("1", "8", "32", "64", "auto")
CALM = 0.6  # a measurement counts where the matrix product before and after reached this share of the best
HARNESS_FORMATS = ("endings", "letters")
TASKS = {
    "occugender_explicit": ["occugender_explicit"],
    "occugender_implicit": ["occugender_implicit"],
    "occugender": ["occugender_explicit", "occugender_implicit"],
    "gg_bbq": ["gg_bbq_group_terms"],
    "stereoset_en": ["stereoset_en"],
}
WORKLOADS = (*TASKS, *HARNESS_FORMATS, "nothing_shared")


@dataclass
class Measured:
    """One contestant on one workload.

    Attributes:
        seconds: Wall time of each round.
        memory: Peak so far, bytes: of the process on a CPU, of the allocator on a GPU.
        answers: ``(log-likelihood, is greedy)`` or a question's numbers, per request.
        part: The share of the requests it was measured on.
    """

    seconds: list[float] = field(default_factory=list)
    memory: int = 0
    answers: list[Any] = field(default_factory=list)
    part: float = 1.0

    @property
    def median(self) -> float:
        """Seconds for all requests (estimated where it was measured on a part)."""
        return statistics.median(self.seconds) / self.part


# --- what is asked -------------------------------------------------------------------------------------------------


def words(seed: int) -> Callable[[int], str]:
    """A source of texts of a number of common words."""
    common = (
        "the of and to in a is that for it was on are as with they at be this from have or by one had not but what all "
        "were when we there can an your which their said if do will each about how up out them then she many some so "
        "these would other into has more her two like him see time could no make than first been its who now people my "
        "made over did down only way find use may water long little very after words called just where most know"
    ).split()
    rng = random.Random(seed)  # noqa: S311
    return lambda n: " ".join(rng.choice(common) for _ in range(n))


def synthetic(name: str, count: int) -> list[tuple[str, str]]:
    """Pairs as two of the harness's multiple-choice formats make them, and pairs with nothing in common.

    ``endings``: four endings of about 20 words after a context of about 45 (as HellaSwag). ``letters``: five questions
    with answers, always the same, then one of about 60 words and four options, and its four letters (as MMLU).
    """
    text = words(7)
    if name == "nothing_shared":
        return [(text(30 + i % 20), " " + text(1 + i % 8)) for i in range(count)]
    pairs = []
    if name == "endings":
        for _ in range(count // 4):
            context = text(45)
            pairs += [(context, " " + text(20)) for _ in range(4)]
        return pairs

    def question() -> str:
        return f"{text(60)}\nA. {text(6)}\nB. {text(6)}\nC. {text(6)}\nD. {text(6)}\nAnswer:"

    shots = "\n\n".join(f"{question()} {letter}" for letter in "ABCDA")
    for _ in range(count // 4):
        asked = f"{shots}\n\n{question()}"
        pairs += [(asked, f" {letter}") for letter in "ABCD"]
    return pairs


def requests_of(workload: str, share: float) -> list[tuple[str, tuple[Any, ...], str]]:
    """``(request type, arguments, task)`` of a workload; of a task an evenly spread share of its documents."""
    if workload not in TASKS:
        count = {"endings": 800, "letters": 800, "nothing_shared": 400}[workload]
        return [("loglikelihood", pair, workload) for pair in synthetic(workload, max(8, round(count * share)))]
    manager, loaded = tasks_of(workload)
    found = []
    for name, task in loaded.items():
        kept = spread(len(task.eval_docs), share) if share < 1 else None
        task.build_all_requests(samples=kept, rank=0, world_size=1)
        found += [(i.request_type, i.args, name) for i in task.instances]
    return found


def spread(n: int, share: float) -> list[int]:
    """Indices of an evenly spread share of ``n`` documents."""
    return sorted({int(i / share) for i in range(max(1, math.floor(n * share)))})


def tasks_of(workload: str) -> tuple[Any, dict[str, Any]]:
    """The harness's task manager and the tasks of a workload."""
    from lm_eval.tasks import TaskManager

    from lm_eval_bias.core.files import tasks_path

    manager = TaskManager(include_path=[str(tasks_path())], include_defaults=False)
    return manager, {name: manager.load([name])["tasks"][name] for name in TASKS[workload]}


# --- who answers ---------------------------------------------------------------------------------------------------


def quiet() -> None:
    """No progress bars and no chatter of libraries."""
    os.environ["TQDM_DISABLE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    logging.disable(logging.WARNING)


def pairwise(lm: Any) -> None:
    """Make a backend score one pair a forward with plain code, as the papers' scripts do."""
    import torch

    def each(requests: Sequence[Any], disable_tqdm: bool = False, override_bs: int | None = None) -> list[Any]:
        answers = []
        for _, context, continuation in requests:
            ids = torch.tensor([[*context, *continuation]], device=lm.device)
            with torch.no_grad():
                log_probs = torch.log_softmax(lm.model(ids).logits.float(), -1)[0, -len(continuation) - 1 : -1]
            target = ids[0, -len(continuation) :]
            total = log_probs.gather(-1, target[:, None]).sum()
            answers.append((float(total), bool((log_probs.argmax(-1) == target).all())))
        return answers

    lm._loglikelihood_tokens = each


def contestant(name: str, arguments: dict[str, Any], pipe: Any) -> None:
    """Load a model, then answer ``(batch size, requests)`` until told ``None``."""
    quiet()
    import torch
    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import get_model

    from lm_eval_bias.harness.registration import register

    register()
    given = dict(arguments)
    if name == "packed bfloat16":
        given["dtype"] = "bfloat16"
    if name == "hf":
        given["logits_cache"] = True  # its default, with StereoSet's and OccuGender's requests kept apart as in a run
    kind = {"vllm": "vllm", "hf": "hf", "pairwise": "hf"}.get(name, "hf-packed")
    if kind == "vllm":
        given.pop("device", None)
    started = time.perf_counter()
    lm = get_model(kind)(**given)
    if name == "pairwise":
        lm.logits_cache = False
        pairwise(lm)
    facts: dict[str, Any] = {"load": time.perf_counter() - started}
    if name == "packed":
        facts.update(cost_of(lm.model))
        facts["max_length"] = lm.max_length
    pipe.send(facts)
    while (order := pipe.recv()) is not None:
        batch_size, requests = order
        if kind == "hf":
            lm.batch_size_per_gpu = batch_size if batch_size == "auto" else int(batch_size)
            lm.max_batch_size = 64
        started = time.perf_counter()
        answers: list[Any] = [None] * len(requests)
        for wanted in sorted({request[0] for request in requests}):
            chosen = [i for i, request in enumerate(requests) if request[0] == wanted]
            instances = [Instance(wanted, {}, requests[i][1], 0) for i in chosen]
            for i, answer in zip(chosen, getattr(lm, wanted)(instances), strict=True):
                answers[i] = answer
        seconds = time.perf_counter() - started
        if torch.cuda.is_available():
            memory = torch.cuda.max_memory_allocated()
        else:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        pipe.send((seconds, memory, answers))


def cost_of(model: Any) -> dict[str, Any]:
    """Operations of a token's matrix products, and of its attention to another; the sizes of the projection."""
    embeddings, head = model.get_input_embeddings().weight, model.get_output_embeddings()
    tables = {id(embeddings), id(getattr(head, "weight", None))}
    text = model.config.get_text_config()
    return {
        "token": 2.0 * sum(p.numel() for p in model.parameters() if id(p) not in tables),
        "pair": 4.0 * text.hidden_size * text.num_hidden_layers,
        "vocabulary": embeddings.shape[0],
        "width": embeddings.shape[1],
    }


def matrix_products(dtype: str) -> float:
    """Operations per second of the best of four matrix products in a dtype."""
    import torch

    size = 8192 if torch.cuda.is_available() else 1536
    a = torch.ones(size, size, device="cuda" if torch.cuda.is_available() else "cpu", dtype=getattr(torch, dtype))
    rates = []
    for _ in range(4):
        started = time.perf_counter()
        (a @ a)[0, 0].item()
        rates.append(2 * size**3 / (time.perf_counter() - started))
    return max(rates)


class Field:
    """The contestants' processes, and the probe that watches the machine."""

    def __init__(self, names: Sequence[str], arguments: dict[str, Any]) -> None:
        """Start them, one after another."""
        context = multiprocessing.get_context("spawn")
        self.peak = 0.0
        self.pipes, self.facts, self._processes = {}, {}, []
        for name in names:
            ours, theirs = context.Pipe()
            process = context.Process(target=contestant, args=(name, arguments, theirs), daemon=True)
            process.start()
            theirs.close()
            self.facts[name] = ours.recv()
            self.pipes[name] = ours
            self._processes.append(process)
        self.probe()

    def probe(self) -> float:
        """Operations per second of a float32 matrix product now; the best of all is the peak."""
        rate = matrix_products("float32")
        self.peak = max(self.peak, rate)
        return rate

    def measure(self, name: str, batch_size: str, requests: list[Any], into: Measured, tries: int = 2) -> None:
        """One calm measurement; the last try counts whatever the machine did, and says so."""
        for left in reversed(range(tries)):
            before = self.probe()
            self.pipes[name].send((batch_size, [request[:2] for request in requests]))
            try:
                seconds, into.memory, into.answers = self.pipes[name].recv()
            except EOFError:
                raise SystemExit(
                    f"{name} ended by itself at batch size {batch_size} (mostly too little memory): leave that size "
                    "out with --batch_sizes"
                ) from None
            calm = min(before, self.probe()) / self.peak
            if calm >= CALM or not left:
                into.seconds.append(seconds)
                note = "" if calm >= CALM else f" (the machine was busy: {calm:.0%} of its best)"
                print(f"  {name:16} batch {batch_size:>4}: {seconds:8.2f} s{note}", file=sys.stderr, flush=True)
                return
            print(f"  {name}: repeated, something else was running ({calm:.0%})", file=sys.stderr, flush=True)
            time.sleep(5)

    def close(self) -> None:
        """End the processes."""
        for pipe in self.pipes.values():
            pipe.send(None)
        for process in self._processes:
            process.join()


# --- what it amounts to --------------------------------------------------------------------------------------------


def encoded(requests: list[Any], arguments: dict[str, Any]) -> list[tuple[tuple[int, ...], list[int]]]:
    """What a backend is given for requests: ``(all tokens that are run, the continuation)`` each, without weights."""
    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import get_model

    class Recording(get_model("hf")):  # type: ignore[misc]
        def _create_model(self, *args: Any, **kwargs: Any) -> None:
            import torch

            self._model = torch.nn.Identity()
            self._model.config, self._model.tie_weights = self._config, lambda: None

        def _loglikelihood_tokens(self, asked: Any, *args: Any, **kwargs: Any) -> list[tuple[float, bool]]:
            seen.extend(((*context, *continuation)[:-1], continuation) for _, context, continuation in asked)
            return [
                (-100.0 - number, False) for number, _ in enumerate(asked)
            ]  # as of probabilities, which are checked

    seen: list[Any] = []
    lm = Recording(**{**arguments, "logits_cache": False})
    for wanted in sorted({request[0] for request in requests}):
        getattr(lm, wanted)([Instance(wanted, {}, request[1], 0) for request in requests if request[0] == wanted])
    return seen


def work(requests: list[Any], facts: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Tokens asked, tokens of the trie, and the operations that cannot be avoided."""
    from lm_eval_bias.models.prefix_trie import arrange

    seen = encoded(requests, arguments)
    sequences, _ = arrange([ids for ids, _ in seen])
    fresh = sequences.lengths - sequences.shared
    depths = sum(int(n * s + n * (n + 1) // 2) for n, s in zip(fresh, sequences.shared, strict=True))
    needed = {ids[: len(ids) - i] for ids, continuation in seen for i in range(len(continuation))}
    return {
        "requests": len(requests),
        "asked": sum(len(ids) for ids, _ in seen),
        "trie": sequences.trie_size,
        "operations": sequences.trie_size * facts["token"]
        + depths * facts["pair"]
        + len(needed) * 2.0 * facts["width"] * facts["vocabulary"],
    }


def differences(found: list[Any], wanted: list[Any]) -> dict[str, float]:
    """Largest and mean difference of answers, and the share of equal ``is_greedy``."""
    gaps = [abs(a[0] - b[0]) for a, b in zip(found, wanted, strict=True)]
    same = [a[1] == b[1] for a, b in zip(found, wanted, strict=True)]
    return {"largest": max(gaps), "mean": statistics.fmean(gaps), "greedy": statistics.fmean(same)}


def scores_of(workload: str, requests: list[Any], answers: list[Any], share: float) -> dict[str, float]:
    """The tasks' scores from saved answers, through the harness."""
    from lm_eval import evaluate
    from lm_eval.api.model import LM

    known = {(kind, repr(args), task): answer for (kind, args, task), answer in zip(requests, answers, strict=True)}

    class Replay(LM):
        def __getattribute__(self, name: str) -> Any:
            if name in kinds:
                return lambda instances: [known[name, repr(i.args), i.task_name] for i in instances]
            return super().__getattribute__(name)

        loglikelihood = loglikelihood_rolling = generate_until = lambda self, requests: []

    kinds = {kind for kind, *_ in requests}
    _, loaded = tasks_of(workload)
    samples = {name: spread(len(task.eval_docs), share) for name, task in loaded.items()} if share < 1 else None
    results = evaluate(lm=Replay(), task_dict=loaded, samples=samples, bootstrap_iters=0)
    return {
        f"{task}/{score.split(',')[0]}": value
        for task, scores in results["results"].items()
        for score, value in scores.items()
        if isinstance(value, float) and "_stderr" not in score
    }


def machine() -> str:
    """The machine, in words."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{processor()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, no GPU"


def run(options: argparse.Namespace) -> dict[str, Any]:
    """All workloads, all contestants."""
    from lm_eval_bias.harness.registration import register

    register()
    arguments = dict(part.split("=", 1) for part in options.model_args.split(",") if part)
    arguments = {"device": options.device, "dtype": "float32", **arguments}
    names = ["hf", "packed", "packed bfloat16", "pairwise"]
    names += ["vllm"] if find_spec("vllm") else []
    names = [name for name in names if name not in options.without.split(",")]
    field_ = Field(names, arguments)
    report: dict[str, Any] = {"machine": machine(), "model": options.model_args, "workloads": {}, "contestants": names}
    print(f"machine: {report['machine']}; loaded: {', '.join(names)}", file=sys.stderr)
    for workload in options.workloads.split(","):
        requests = requests_of(workload, options.share)
        print(f"{workload}: {len(requests)} requests", file=sys.stderr, flush=True)
        by_task = [list(group) for _, group in itertools.groupby(requests, key=lambda request: request[2])]
        part = [r for group in by_task for r in group[: max(24, round(len(group) * options.part))]]
        searched = {}
        for batch_size in options.batch_sizes.split(","):
            tried = Measured()
            field_.measure("hf", batch_size, part, tried)
            searched[batch_size] = tried.seconds[0]
        best = min(searched, key=searched.__getitem__)
        few = requests[:: max(1, len(requests) // options.pairs)]
        measured = {name: Measured() for name in names}
        for _ in range(options.rounds):
            for name in names:
                mine = few if name == "pairwise" else requests
                measured[name].part = len(mine) / len(requests)
                field_.measure(name, best, mine, measured[name])
        found = summary(workload, requests, measured, field_, arguments, options)
        report["workloads"][workload] = {"hf_batch_size": best, "hf_search": searched, **found}
        report["peak"] = field_.peak
        if options.output:
            partial = Path(f"{options.output}.part")
            partial.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            partial.replace(options.output)
    field_.close()
    return report


def summary(
    workload: str,
    requests: list[Any],
    measured: dict[str, Measured],
    field_: Field,
    arguments: dict[str, Any],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """One workload's figures."""
    done = work(requests, field_.facts["packed"], arguments)
    hf = measured["hf"]
    found: dict[str, Any] = {
        **done,
        "share": options.share if workload in TASKS else None,
        "seconds": {name: m.seconds for name, m in measured.items()},
        "ratio": {name: hf.median / m.median for name, m in measured.items()},
        "useful": {name: done["operations"] / m.median for name, m in measured.items()},
        "memory": {name: m.memory for name, m in measured.items()},
        "difference": {
            name: differences(m.answers, hf.answers) for name, m in measured.items() if name not in ("hf", "pairwise")
        },
    }
    if workload in TASKS:
        base = scores_of(workload, requests, hf.answers, options.share)
        found["score_drift"] = {}
        for name in ("packed", "packed bfloat16"):
            if name in measured:
                other = scores_of(workload, requests, measured[name].answers, options.share)
                drift = {key: abs(other[key] - base[key]) for key in base if base[key] == base[key]}
                found["score_drift"][name] = dict(sorted(drift.items(), key=lambda item: -item[1])[:5])
    return found


def table(report: dict[str, Any]) -> str:
    """The report as Markdown."""
    peak = report["peak"]
    lines = [
        f"{report['machine']}; float32 matrix products reach {peak / 1e9:,.0f} GFLOP/s at best.",
        "",
        "| workload | requests | tokens asked : run | hf, best batch size | hf-packed "
        "| useful share of peak, hf → packed "
        "| peak memory, hf → packed | largest difference | hf-packed in bfloat16, its mean (largest) difference "
        "| one pair a forward |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, found in report["workloads"].items():
        ratio, memory, useful = found["ratio"], found["memory"], found["useful"]
        rough = found["difference"].get("packed bfloat16")
        part = f" ({found['share']:.0%} of the items)" if (found["share"] or 1) < 1 else ""
        lines.append(
            f"| {name}{part} | {found['requests']:,} | {found['asked'] / found['trie']:.2f} : 1 "
            f"| {statistics.median(found['seconds']['hf']):.1f} s at {found['hf_batch_size']} "
            f"| **{ratio['packed']:.2f}×** | {useful['hf'] / peak:.2f} → {useful['packed'] / peak:.2f} "
            f"| {memory['hf'] / 2**30:.2f} → {memory['packed'] / 2**30:.2f} GiB "
            f"| {found['difference']['packed']['largest']:.0e} "
            + (
                f"| {ratio['packed bfloat16']:.1f}×, {rough['mean']:.2f} ({rough['largest']:.1f}) nats "
                if rough
                else "| – "
            )
            + (f"| {ratio['pairwise']:.2f}× |" if "pairwise" in ratio else "| – |")
        )
    lines += ["", "Largest drift of a score against hf:"]
    for name, found in report["workloads"].items():
        for who, drift in found.get("score_drift", {}).items():
            score, value = next(iter(drift.items()), ("no score", 0.0))
            lines.append(f"- {name}, {who}: {value:.2g} ({score})")
    return "\n".join(lines)


def plan_only(count: int) -> str:
    """How long the layout of so many requests takes, without a model: five one-word answers to prompts of 40 tokens."""
    from lm_eval_bias.models.packed import trie_walk
    from lm_eval_bias.models.prefix_trie import arrange

    rng = random.Random(1)  # noqa: S311
    inputs: list[list[int]] = []
    for _ in range(count // 5):
        prompt = [rng.randrange(50_000) for _ in range(40)]
        inputs += [[*prompt, *(rng.randrange(50_000) for _ in range(word % 3))] for word in range(5)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    sequences, _ = arrange(inputs)
    arranged = time.perf_counter() - started
    needed = np.full(len(sequences), 2)
    layout = trie_walk.strands_of(sequences, 8, 128)
    walked = sum(len(trie_walk.Strand(sequences, *strand, needed)) for strand in layout.strands)
    seconds = time.perf_counter() - started
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    return (
        f"{len(inputs):,} requests, {sum(map(len, inputs)):,} tokens: planned in {seconds:.1f} s ({arranged:.1f} s of "
        f"it sorting), {more:.2f} GiB more memory; {len(layout.strands)} strands run "
        f"{walked / sequences.trie_size:.3f} of the trie's tokens"
    )


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model_args", help="as for lm_eval: pretrained=...,...")
    parser.add_argument("--plan", type=int, help="only plan so many requests")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help=f"some of {', '.join(WORKLOADS)}")
    parser.add_argument("--share", type=float, default=1.0, help="share of the items of each workload")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch_sizes", default=",".join(BATCH_SIZES), help="of hf; the best one races")
    parser.add_argument("--part", type=float, default=0.05, help="share of the requests to find it on")
    parser.add_argument("--pairs", type=int, default=100, help="pairs for the one-pair-a-forward script")
    parser.add_argument("--without", default="", help="contestants to leave out")
    parser.add_argument("--output", help="a JSON file")
    options = parser.parse_args()
    unknown = [name for name in options.workloads.split(",") if name not in WORKLOADS]
    if unknown or not 0 < options.share <= 1:
        print(f"no such workload: {', '.join(unknown)}" if unknown else "--share: from 0 to 1", file=sys.stderr)
        return 2
    if options.plan:
        print(plan_only(options.plan))
        return 0
    if not options.model_args:
        print("--model_args: which model?", file=sys.stderr)
        return 2
    quiet()
    print(table(run(options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
