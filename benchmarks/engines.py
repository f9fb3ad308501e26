"""``hf-packed`` against ``hf`` on the same requests: times of one run.

    OMP_NUM_THREADS=1 python benchmarks/engines.py --model_args pretrained=DIR
    python benchmarks/engines.py --model_args pretrained=DIR,dtype=bfloat16 --shape 8b  # on a GPU
    python benchmarks/engines.py --model_args pretrained=DIR --shape 270m  # a vocabulary of 262,144 tokens

Each model type is loaded in a process of its own, which isn't counted, and answers all workloads (``workloads.py``).
``hf`` first tries batch sizes on a part of each workload; its best one counts. Time is that of the processor, of the
process and all that it started; on a GPU it is wall time. ``--shape`` takes random weights of a larger model's shape,
since times don't depend on what weights say. Prints a table (Markdown).

    python benchmarks/engines.py --plan 100000 --length 2000

says what it takes to lay out so many requests of so many tokens, without a model.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import measuring
import workloads

MODELS = ("hf", "hf-packed")
BATCH_SIZES = "1,8,32"
SHAPES = {  # of Gemma 3 270M, whose vocabulary is large, and Llama 3.2 1B and 3.1 8B; tiny: does the script run?
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
             "num_key_value_heads": 1},
    "270m": {"hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 4,
             "num_key_value_heads": 1, "head_dim": 256, "tie_word_embeddings": True, "vocab_size": 262144},
    "1b": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
           "num_key_value_heads": 8, "tie_word_embeddings": True},
    "8b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 8},
}  # fmt: skip


def make_random(shape: str, arguments: dict[str, Any], folder: str) -> None:
    """Save a model with random weights of a shape, with the tokenizer of another one."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments["pretrained"])
    tokenizer.save_pretrained(folder)
    config = transformers.LlamaConfig(
        **{"vocab_size": len(tokenizer), **SHAPES[shape]}, max_position_embeddings=8192,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    torch.manual_seed(20261123)
    torch.set_default_dtype(getattr(torch, arguments["dtype"]))
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(folder)
    print(
        f"  {shape}: {model.num_parameters():,} parameters", file=sys.stderr, flush=True
    )


def in_own_process(target: Any, *args: Any) -> Any:
    """What a function gives in a process that ends, with the device's memory, behind it."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(target, args)


def count_tokens(lm: Any, counts: dict[str, int]) -> None:
    """Count the tokens that a model runs, padding included."""

    def seen(_: Any, given: tuple[Any, ...], __: Any) -> None:
        counts["run"] += given[0].numel()

    lm.model.get_input_embeddings().register_forward_hook(seen)


def contestant(
    name: str,
    arguments: dict[str, Any],
    sizes: list[int],
    asked: dict[str, list[measuring.Request]],
    pipe: Any,
) -> None:
    """Load a model, answer each workload once, and send what it took."""
    measuring.quiet()
    import torch
    from lm_eval.api.registry import get_model

    from lm_eval_bias.harness.registration import register

    register()
    on_gpu = torch.cuda.is_available()
    device = "cuda" if on_gpu else "cpu"
    given = {**arguments, "batch_size": sizes[0], "device": device}

    def clock() -> float:
        return time.perf_counter() if on_gpu else measuring.of_tree(os.getpid())[0]

    started = clock()
    lm = get_model(name)(**given)
    loading = clock() - started
    counts = {"run": 0}
    count_tokens(lm, counts)

    def timed(requests: list[measuring.Request]) -> tuple[float, list[Any]]:
        started = clock()
        answers = measuring.answers_of(lm, requests)
        return clock() - started, answers

    measuring.answers_of(
        lm, [("loglikelihood", ("The first request takes", " longer"), "")]
    )
    for workload, requests in asked.items():
        size = sizes[0]
        if name == "hf" and len(sizes) > 1:
            part, found = requests[: max(16, len(requests) // 8)], {}
            for tried in sizes:
                lm.batch_size_per_gpu = tried
                found[tried] = timed(part)[0]
            size = lm.batch_size_per_gpu = min(found, key=found.__getitem__)
        counts.update(run=0)
        measuring.peak(start=True)
        seconds, answers = timed(requests)
        free, existing = torch.cuda.mem_get_info() if on_gpu else (0, 0)
        memory = (
            (existing - free) / 2**30 if on_gpu else measuring.of_tree(os.getpid())[1]
        )
        pipe.send(
            (
                workload,
                {
                    "seconds": seconds,
                    "memory": memory,
                    "run": counts["run"],
                    "size": size,
                    "loading": loading,
                },
                answers,
            )
        )
    pipe.send(None)
    os._exit(0)


def compared(answers: dict[str, list[Any]]) -> dict[str, dict[str, float]]:
    """How far each model type's answers are from the first one's, in nats, and how many greedy flags differ."""
    base, *others = answers
    found = {}
    for name in others:
        pairs = list(zip(answers[name], answers[base], strict=True))
        largest = max(abs(own[0] - plain[0]) for own, plain in pairs)
        found[name] = {
            "largest": largest,
            "flags": sum(own[1] != plain[1] for own, plain in pairs),
        }
    return found


def table(report: dict[str, Any]) -> str:
    """The report as Markdown."""
    models = report["models"]
    first = next(iter(report["workloads"].values()))["models"]
    loading = ", ".join(f"{name} {first[name]['loading']:.1f} s" for name in models)
    lines = [
        f"{report['machine']}; {report['model']} in {report['dtype']}; {report['share']:.0%} of the items; seconds of "
        f"{report['time']}, without loading ({loading}).",
        "In brackets, by how much a packed type is faster than the plain one.",
        "",
        f"| workload | tokens asked : in the trie | {' | '.join(models)} | largest difference | "
        "greedy flags that differ | tokens run a token of the trie | memory, GiB |",
        "|---|---:" + "|---:" * len(models) + "|---:|---|---|---|",
    ]
    for found in report["workloads"].values():
        own = found["models"]
        cells = []
        for name in models:
            plain = (
                own.get(name.removesuffix("-packed"), own[name])["seconds"]
                / own[name]["seconds"]
            )
            cells.append(
                f"{own[name]['seconds']:.1f}"
                + (f" (**{plain:.1f}×**)" if name.endswith("-packed") else "")
            )
        run = ", ".join(
            f"{own[name]['run'] / found['trie']:.2f}" if own[name]["run"] else "–"
            for name in models
        )
        memory = ", ".join(f"{own[name]['memory']:.1f}" for name in models)
        pairs = found["compared"].values()
        largest = ", ".join(f"{pair['largest']:.0e}" for pair in pairs)
        differ = ", ".join(str(pair["flags"]) for pair in pairs)
        lines.append(
            f"| {found['likeness']} ({found['requests']:,} requests) | {found['asked'] / found['trie']:.1f} : 1 | "
            f"{' | '.join(cells)} | {largest} | {differ} | {run} | {memory} |"
        )
    return "\n".join(lines)


def fewest(sequences: list[list[int]]) -> int:
    """The number of tokens if what all sequences share is run once."""
    from lm_eval_bias.models.packed.rows import PackedRow

    return len(PackedRow(sorted(map(list, set(map(tuple, sequences))))).tokens)


def plan_only(count: int, length: int) -> str:
    """How long the layout of so many requests takes: four one-token answers to a prompt, half of which is shared."""
    from lm_eval_bias.models.packed import rows

    rng = random.Random(1)  # noqa: S311
    shots = [[rng.randrange(50_000) for _ in range(length // 2)] for _ in range(50)]
    prompts: list[list[int]] = []
    for number in range(count // 4):
        own = [rng.randrange(50_000) for _ in range(length - length // 2)]
        prompts.append(shots[number % 50] + own)
    before, started = measuring.peak(), time.perf_counter()
    measuring.peak(start=True)
    prompts.sort()
    run = sum(
        len(row.tokens) for part in rows.lay_out(prompts, 2048, 1e-4) for _, row in part
    )
    seconds, more = time.perf_counter() - started, (measuring.peak() - before) / 1024
    return (
        f"{count:,} requests of {length:,} tokens: {run:,} are run; laid out in "
        f"{seconds:.1f} s with {more:.2f} GiB beside the {before / 1024:.1f} GiB of the requests"
    )


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model_args", default="", help="of all model types: pretrained=...,..."
    )
    parser.add_argument(
        "--shape",
        choices=SHAPES,
        help="random weights of this shape; pretrained= has the tokenizer",
    )
    parser.add_argument(
        "--batch_sizes",
        default=BATCH_SIZES,
        help="that hf tries (default: %(default)s)",
    )
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--workloads", default=",".join(workloads.WORKLOADS))
    parser.add_argument(
        "--share", type=float, default=1.0, help="share of the items of each workload"
    )
    parser.add_argument("--plan", type=int, help="only lay out so many requests")
    parser.add_argument("--length", type=int, default=2000, help="their tokens")
    options = parser.parse_args()
    if options.plan:
        print(plan_only(options.plan, options.length))
        return 0
    if not options.model_args:
        parser.error("--model_args: which model?")
    from lm_eval.utils import simple_parse_args_string
    from transformers import AutoTokenizer

    from lm_eval_bias.harness.registration import register

    measuring.quiet()
    register()
    models, names = options.models.split(","), options.workloads.split(",")
    given = simple_parse_args_string(f"dtype=float32,{options.model_args}")
    made = tempfile.TemporaryDirectory()
    if options.shape:
        in_own_process(make_random, options.shape, given, made.name)
        given["pretrained"] = made.name
    tokenizer = AutoTokenizer.from_pretrained(given["pretrained"])
    asked = {
        name: workloads.requests_of(name, options.share, tokenizer) for name in names
    }
    answers: dict[str, dict[str, Any]] = {name: {} for name in names}
    facts: dict[str, dict[str, Any]] = {name: {} for name in names}
    sizes = [int(size) for size in options.batch_sizes.split(",")]
    for name in models:
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=contestant, args=(name, given, sizes, asked, theirs)
        )
        process.start()
        theirs.close()
        try:
            while (found := ours.recv()) is not None:
                workload, facts[workload][name], answers[workload][name] = found
                print(
                    f"  {name:12} {workload:20} {found[1]['seconds']:8.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
        except EOFError:
            raise SystemExit(f"{name} ended by itself") from None
        process.join()
    import torch

    report: dict[str, Any] = {
        "machine": measuring.machine(), "share": options.share, "models": models, "workloads": {},
        "model": options.shape or Path(given["pretrained"]).name, "dtype": given["dtype"],
        "time": "wall time" if torch.cuda.is_available() else "processor time",
    }  # fmt: skip
    for workload, requests in asked.items():
        pairs = measuring.encoded(
            requests,
            {"pretrained": given["pretrained"], "device": "cpu", "batch_size": 1},
        )
        form = workloads.FORMS.get(workload)
        report["workloads"][workload] = {
            "likeness": form.likeness if form else workload,
            "requests": len(requests),
            "asked": sum(len(ids) for ids, _ in pairs),
            "trie": fewest([ids for ids, _ in pairs]),
            "models": facts[workload],
            "compared": compared(answers[workload]),
        }
    print(table(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
