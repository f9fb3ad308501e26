"""What a model has to read for our tasks: requests, tokens asked, and tokens that no backend can avoid.

    python tests/performance/tokens.py --pretrained DIR --parameters 70e9

No weights are loaded: the tasks' requests are encoded with the model's tokenizer and counted. "Distinct" is what ``hf``
runs, one forward for requests that differ in their last token alone; "in the trie" is what ``hf-packed`` runs, every
common beginning once. ``vllm-packed`` runs more, since an engine's cache holds whole blocks: counted on a cache that
forgets nothing, beside the least that any prompts need with such blocks. With ``--parameters``, floating-point
operations by 2 × parameters × tokens. Sampled texts are their prompts and at most the new tokens that the task allows.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from measuring import encoded, quiet

STANDARD = (
    "occugender_explicit,occugender_implicit,gg_bbq_group_terms,gg_bbq_names,es_bbq_gender,ca_bbq_gender,"
    "kobbq_gender_identity,mbbq_en_gender_identity,mbbq_es_gender_identity,mbbq_nl_gender_identity,mbbq_tr_gender_identity,"
    "stereoset_en,stereoset_de,stereoset_es,stereoset_fr,stereoset_tr,regard_de,regard_en"
)


def run_with_cache(prompts: Iterable[Sequence[int]], block: int) -> int:
    """Tokens that an engine runs whose prefix cache holds every whole block of the prompts before."""
    held: set[tuple[int, ...]] = set()
    run = 0
    for prompt in map(tuple, prompts):
        blocks = range(block, len(prompt), block)  # never the last token
        run += len(prompt) - max((size for size in blocks if prompt[:size] in held), default=0)
        held.update(prompt[:size] for size in range(block, len(prompt) + 1, block))
    return run


def of_an_engine(seen: Sequence[tuple[tuple[int, ...], Sequence[int]]], block: int) -> dict[str, int]:
    """Tokens that ``vllm-packed`` runs, and the least that any prompts can do with which reach each token's context.

    Args:
        seen: All tokens but the last, and the continuation, per request.
        block: Tokens of a block of the engine's cache.
    """
    from lm_eval_bias.models import cached_prefixes

    pairs = [(ids[: len(ids) + 1 - len(end)], tuple(end)) for ids, end in seen]
    reached = sorted({ids for ids, _ in seen})
    leaves = [ids for ids, after in zip(reached, [*reached[1:], ()], strict=True) if after[: len(ids)] != ids]
    run = run_with_cache((prompt.tokens for prompt in cached_prefixes.plan(pairs, block).prompts), block)
    return {"vllm_packed": run, "least": run_with_cache(leaves, block)}


def counted(task: Any, arguments: dict[str, Any], block: int) -> dict[str, int]:
    """One task's figures."""
    from lm_eval_bias.models import prefix_trie

    task.build_all_requests(rank=0, world_size=1)
    requests = [(i.request_type, i.args, "") for i in task.instances]
    if task.OUTPUT_TYPE == "generate_until":
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(arguments["pretrained"])
        read = [len(tokenizer(args[0])["input_ids"]) for _, args, _ in requests]
        samples = len(requests) * task.config.repeats
        new = int(requests[0][1][1].get("max_gen_toks") or requests[0][1][1]["max_new_tokens"])
        written = sum(read) * task.config.repeats + samples * new
        return {"items": len(task.eval_docs), "requests": samples, "asked": written, "distinct": written,
                "trie": sum(read) + samples * new, "longest": max(read) + new,
                "vllm_packed": written, "least": sum(read) + samples * new}  # fmt: skip
    pairs = encoded(requests, arguments)
    seen = [ids for ids, _ in pairs]
    sequences, _ = prefix_trie.arrange(seen)
    return {
        "items": len(task.eval_docs),
        "requests": len(requests),
        "asked": sum(map(len, seen)),
        "distinct": int(sequences.lengths.sum()),
        "trie": sequences.trie_size,
        "longest": max(map(len, seen)),
        **of_an_engine(pairs, block),
    }


def main() -> None:
    """Count and print a table."""
    from lm_eval.tasks import TaskManager
    from tabulate import tabulate

    from lm_eval_bias.core.files import tasks_path
    from lm_eval_bias.harness.registration import register

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pretrained", required=True, help="model folder; its tokenizer and configuration are read")
    parser.add_argument("--tasks", default=STANDARD)
    parser.add_argument("--parameters", type=float, help="of the model that the operations are for")
    parser.add_argument("--block", type=int, default=16, help="tokens of a block of the engine's cache")
    parser.add_argument("--output", metavar="FILE", help="the table as JSON")
    args = parser.parse_args()
    quiet()
    register()
    manager = TaskManager(include_path=[str(tasks_path())], include_defaults=False)
    arguments = {"pretrained": args.pretrained, "device": "cpu", "batch_size": 1}
    found: dict[str, dict[str, int]] = {}
    for name in args.tasks.split(","):
        found[name] = counted(manager.load([name])["tasks"][name], arguments, args.block)
        print(name, found[name], file=sys.stderr, flush=True)
    total = {key: sum(own[key] for own in found.values()) for key in next(iter(found.values()))}
    total["longest"] = max(own["longest"] for own in found.values())
    rows = []
    for name, own in {**found, "in all": total}.items():
        numbers = [f"{own[key]:,}" for key in ("items", "requests", "asked", "distinct", "trie")]
        numbers += [f"{own['asked'] / own['trie']:.1f}", f"{own['vllm_packed']:,}"]
        row = [name, *numbers, *(f"{own[key] / own['trie']:.2f}" for key in ("vllm_packed", "least")), own["longest"]]
        if args.parameters:
            row += [f"{2 * args.parameters * own[key]:.1e}" for key in ("asked", "vllm_packed", "trie")]
        rows.append(row)
    headers = ["task", "items", "requests", "tokens asked", "distinct", "in the trie", "asked : trie"]
    headers += ["vllm-packed", "vllm-packed : trie", "least : trie", "longest"]
    headers += ["operations, asked", "… vllm-packed", "… in the trie"] if args.parameters else []
    print(tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True))
    if args.output:
        Path(args.output).write_text(json.dumps({**found, "in all": total}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
