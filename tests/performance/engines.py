"""Processor time of ``vllm-packed`` against ``vllm``, ``hf-packed`` and ``hf`` on the same requests: ratios of one run.

    python tests/performance/engines.py --model_args pretrained=DIR --share 0.2
    python tests/performance/engines.py --model_args pretrained=DIR,dtype=bfloat16 --shape 8b --share 1  # on a GPU

Needs an environment with vLLM (``tests/backends/vllm_cpu.sh`` makes one without a GPU). One model after the other is
loaded in a process of its own, which isn't counted, and answers all workloads; time is that of the processor, of the
process and all that it started, on a GPU wall time; memory is then all that the device has in use. ``--shape`` takes
random weights of a larger model's shape: times don't depend on what weights say. Prints a table (Markdown) and, with
``--output``, writes JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import speed
import tokens

MODELS = ("hf", "hf-packed", "vllm", "vllm-packed")
WORKLOADS = ("occugender_explicit", "occugender_implicit", "gg_bbq", "stereoset_en")
SHAPES = {  # of Llama 3.2 1B and 3.1 8B; the tiny one shows that the script runs
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
             "num_key_value_heads": 1},
    "1b": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
           "num_key_value_heads": 8, "tie_word_embeddings": True},
    "8b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 8},
}  # fmt: skip
_TICKS = os.sysconf("SC_CLK_TCK")


def tree_seconds(root: int) -> float:
    """Processor seconds of a process and all that it started and that still run."""
    seconds, children = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        pid = int(path.parent.name)
        seconds[pid] = sum(map(int, fields[11:15])) / _TICKS
        children.setdefault(int(fields[1]), []).append(pid)
    total, waiting = 0.0, [root]
    while waiting:
        pid = waiting.pop()
        total += seconds.get(pid, 0.0)
        waiting += children.get(pid, [])
    return total


def make_random(shape: str, arguments: dict[str, Any], folder: str) -> None:
    """Save a model with random weights of a shape, with the tokenizer of another one, and print its parameters."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments["pretrained"])
    tokenizer.save_pretrained(folder)
    config = transformers.LlamaConfig(
        **SHAPES[shape], vocab_size=len(tokenizer), max_position_embeddings=8192,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    torch.manual_seed(20261123)
    torch.set_default_dtype(getattr(torch, arguments["dtype"]))
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(folder)
    print(f"  {shape}: {model.num_parameters():,} parameters", file=sys.stderr, flush=True)


def parameters_of(folder: str) -> int:
    """Numbers in a model's files of weights."""
    import math

    from safetensors import safe_open

    total = 0
    for path in Path(folder).glob("*.safetensors"):
        with safe_open(path, framework="pt") as weights:
            total += sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118
    return total


def in_own_process(target: Any, *args: Any) -> Any:
    """What a function gives in a process that ends, with the device's memory, behind it."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(target, args)


def contestant(
    name: str, arguments: dict[str, Any], batch_size: int, workloads: dict[str, list[Any]], pipe: Any
) -> None:
    """Load a model, answer each workload once, and send what it took."""
    speed.quiet()
    os.environ["TQDM_DISABLE"] = ""  # vLLM 0.32 divides by the time that its progress bar shows
    import torch
    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import get_model

    from lm_eval_bias.harness.registration import register

    register()
    on_gpu = torch.cuda.is_available()
    given = {**arguments, "batch_size": "auto" if name.startswith("vllm") else batch_size}
    if not name.startswith("vllm"):
        given["device"] = "cuda" if on_gpu else "cpu"
    lm = get_model(name)(**given)
    counts = {"run": 0, "trie": 0}
    if name == "vllm-packed":
        answers_to = lm._answers

        def counted(plan: Any, silent: bool) -> Any:
            found = answers_to(plan, silent)
            counts["run"], counts["trie"] = counts["run"] + found[1], counts["trie"] + plan.nodes
            return found

        lm._answers = counted
    for workload, requests in workloads.items():
        counts.update(run=0, trie=0)
        answers: list[Any] = [None] * len(requests)
        wall, processor = time.perf_counter(), tree_seconds(os.getpid())
        for wanted in sorted({request[0] for request in requests}):
            chosen = [i for i, request in enumerate(requests) if request[0] == wanted]
            instances = [Instance(wanted, {}, requests[i][1], 0) for i in chosen]
            for i, answer in zip(chosen, getattr(lm, wanted)(instances), strict=True):
                answers[i] = answer
        wall, processor = time.perf_counter() - wall, tree_seconds(os.getpid()) - processor
        free, existing = torch.cuda.mem_get_info() if on_gpu else (0, 0)
        pipe.send((workload, {"seconds": wall if on_gpu else processor, "wall": wall, "memory": existing - free,
                              "run": counts["run"], "trie": counts["trie"]}, answers))  # fmt: skip
    pipe.send(None)
    if name.startswith("vllm"):  # its engine would wait for more
        lm.model.llm_engine.engine_core.shutdown()
    os._exit(0)


def table(report: dict[str, Any]) -> str:
    """The report as Markdown."""
    models = report["models"]
    lines = [
        f"{report['machine']}; {report['model']} with {report['parameters']:,} parameters in {report['dtype']}; "
        f"{report['share']:.0%} of the items; seconds of {report['time']}; matrix products reach "
        f"{report['peak'] / 1e12:.2f} TFLOP/s at best.",
        "",
        "| workload | requests | "
        + " | ".join(models)
        + " | vllm-packed against vllm | tokens run a token of the trie "
        "(the least) | useful share of the peak | largest difference from vllm | largest drift of a score |",
        "|---|---:" + "|---:" * len(models) + "|---:|---:|---|---:|---|",
    ]
    for workload, found in report["workloads"].items():
        seconds = {name: found["models"][name]["seconds"] for name in models}
        packed = found["models"]["vllm-packed"]
        lines.append(
            f"| {workload} | {found['requests']:,} | "
            + " | ".join(f"{seconds[name]:.1f}" for name in models)
            + f" | **{seconds['vllm'] / seconds['vllm-packed']:.1f}×** | {packed['run'] / max(1, packed['trie']):.2f} "
            f"({found['least'] / max(1, packed['trie']):.2f}) "
            "| "
            + ", ".join(f"{found['useful'] / found['models'][name]['wall'] / report['peak']:.2f}" for name in models)
            + " "
            f"| {found['difference']['largest']:.0e} | {found['drift'][1]:.0e} ({found['drift'][0]}) |"
        )
    memory = {name: max(own["models"][name]["memory"] for own in report["workloads"].values()) for name in models}
    if any(memory.values()):
        lines += ["", "Device memory in use: " + ", ".join(f"{name} {n / 2**30:.1f} GiB" for name, n in memory.items())]
    return "\n".join(lines)


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model_args", required=True, help="of all model types: pretrained=...,...")
    parser.add_argument("--vllm_args", default="max_model_len=1024,enforce_eager=True", help="of vLLM's beside")
    parser.add_argument("--shape", choices=SHAPES, help="random weights of this shape; pretrained= has the tokenizer")
    parser.add_argument("--block", type=int, default=32, help="tokens of a block of vLLM's cache: on a GPU mostly 16")
    parser.add_argument("--batch_size", type=int, default=32, help="of hf and hf-packed")
    parser.add_argument("--models", default=",".join(MODELS), help="vllm and vllm-packed have to be among them")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--share", type=float, default=0.2, help="share of the items of each workload")
    parser.add_argument("--output", help="a JSON file")
    options = parser.parse_args()
    from lm_eval.utils import simple_parse_args_string

    from lm_eval_bias.harness.registration import register

    register()
    workloads = {name: speed.requests_of(name, options.share) for name in options.workloads.split(",")}
    answers: dict[str, dict[str, Any]] = {name: {} for name in workloads}
    facts: dict[str, dict[str, Any]] = {name: {} for name in workloads}
    models = options.models.split(",")
    given = simple_parse_args_string(f"dtype=float32,{options.model_args}")
    made = tempfile.TemporaryDirectory()
    if options.shape:
        in_own_process(make_random, options.shape, given, made.name)
        given["pretrained"] = made.name
    for name in models:
        arguments = {**given, **(simple_parse_args_string(options.vllm_args) if name.startswith("vllm") else {})}
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=contestant, args=(name, arguments, options.batch_size, workloads, theirs)
        )
        process.start()
        theirs.close()
        try:
            while (found := ours.recv()) is not None:
                workload, facts[workload][name], answers[workload][name] = found
                print(
                    f"  {name:12} {workload:20} {facts[workload][name]['seconds']:8.1f} s", file=sys.stderr, flush=True
                )
        except EOFError:
            raise SystemExit(f"{name} ended by itself") from None
        process.join()
    import torch

    on_gpu = torch.cuda.is_available()
    report: dict[str, Any] = {
        "machine": speed.machine(), "share": options.share, "models": models, "workloads": {},
        "model": options.shape or Path(given["pretrained"]).name, "parameters": parameters_of(given["pretrained"]),
        "dtype": given["dtype"], "peak": in_own_process(speed.matrix_products, given["dtype"]),
        "time": "wall time" if on_gpu else "processor time",
    }  # fmt: skip
    for workload, requests in workloads.items():
        own = {name: speed.scores_of(workload, requests, answers[workload][name], options.share)
               for name in ("vllm", "vllm-packed")}  # fmt: skip
        drift = {key: abs(own["vllm-packed"][key] - value) for key, value in own["vllm"].items() if value == value}
        pairs = speed.encoded(requests, {"pretrained": given["pretrained"], "device": "cpu", "batch_size": 1})
        engine = tokens.of_an_engine(pairs, options.block)
        trie = facts[workload]["vllm-packed"]["trie"]
        report["workloads"][workload] = {
            "requests": len(requests),
            "least": engine["least"],
            "useful": 2.0 * report["parameters"] * trie,
            "models": facts[workload],
            "difference": speed.differences(answers[workload]["vllm-packed"], answers[workload]["vllm"]),
            "drift": max(drift.items(), key=lambda item: item[1], default=("no score", 0.0)),
        }
    if options.output:
        Path(options.output).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(table(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
