"""Words for what runs were made by. In come records; out go texts by the names of ``labels.yaml``."""

from __future__ import annotations

import json
from typing import Any

from lm_eval_bias.core import Data
from lm_eval_bias.core.content_hashes import of_files
from lm_eval_bias.core.run_data import Run, readable
from lm_eval_bias.core.run_record import RunRecord
from lm_eval_bias.core.what_counts import shown
from lm_eval_bias.runs import measurement


def _of_record(record: RunRecord) -> Data:
    """Write the facts of a file; ``None`` for what it doesn't say."""
    model = record.model
    code = record.code
    arguments = model.arguments, model.placement, record.prompt.template_arguments
    given = {key: value for some in arguments for key, value in some.items()}
    torch = "+".join(filter(None, (code.torch, code.torch_build)))
    weights = "; ".join(f"{kind} {proof}" for kind, proof in model.weights.items())
    served = f"{', '.join(model.served)} (not proven)" if model.served else None
    sent = "; ".join(map(json.dumps, record.sampling.sent))
    cached = record.cache and f"{record.cache.answers:,} of {record.cache.begun}"
    places = sorted({"/".join(path.split("/")[:2]) for path in record.files})
    generation = record.sampling.generation
    return {
        "date": record.date,
        "lm-eval-bias": code.lm_eval_bias,
        "lm_eval": code.lm_eval,
        "transformers": code.transformers,
        "torch": torch or None,
        "python": code.python,
        "model": model.kind,
        "model_args": shown(given) if given else "",
        "model_revision": model.revision,
        "parameters": model.parameters,
        "dtype": model.dtype,
        "device": record.machine.device,
        "batch_size": record.machine.batch_size,
        "chat_template": record.prompt.template,
        "system_instruction": record.prompt.system_instruction,
        "limit": record.limit,
        "gen_kwargs": json.dumps(generation) if generation else None,
        "seeds": list(record.seeds),
        "machine": ", ".join(record.machine.parts) or None,
        "threads": record.machine.threads,
        "tokenizers": code.tokenizers,
        "vllm": code.vllm,
        "numpy": code.numpy,
        "weights": weights or None,
        "served": served,
        "sent": sent or None,
        "cached": cached,
        "border": "; ".join(record.prompt.border) or None,
        "data": "; ".join(places) or None,
        "data_files": of_files(record.files) if record.files else None,
    }


def _joined(values: list[Any]) -> Any:
    """Return the fact that all files of a run share, or list what they say."""
    if all(value == values[0] for value in values):
        return values[0]
    return "; ".join(dict.fromkeys(map(readable, values)))


def facts(run: Run) -> Data:
    """Write what a run was made by, by the names of ``labels.yaml``; ``None`` for what its files don't say."""
    records = [_of_record(record) for record in run.records or [RunRecord()]]
    found = {key: _joined([one[key] for one in records]) for key in records[0]}
    unproven = measurement.unproven_files(run)
    if unproven:
        found["unproven"] = "; ".join(unproven)
    return found
