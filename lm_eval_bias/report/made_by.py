"""Words for what runs were made by. In come records; out go texts by the names of ``labels.yaml``."""

from __future__ import annotations

import json
from typing import Any

from lm_eval_bias.core import Data, what_counts
from lm_eval_bias.core.content_hashes import of_files
from lm_eval_bias.core.run_data import Run, readable
from lm_eval_bias.core.run_record import RunRecord
from lm_eval_bias.core.what_counts import shown
from lm_eval_bias.runs import measurement

_NOT_SHOWN = ("name", "file", "command")  # they stand elsewhere


def _of_record(record: RunRecord) -> Data:
    """Write the facts of a file; ``None`` for what it doesn't say."""
    found: Data = {}
    for fact in what_counts.facts().values():
        if not fact.field.startswith("task.") and fact.name not in _NOT_SHOWN:
            found[fact.name] = fact.of(record)
    arguments = {**found["model_args"], **found.pop("placement")}
    arguments |= found.pop("template_arguments")
    found["model_args"] = arguments and shown(arguments)
    build = found.pop("torch_build")
    if build:
        found["torch"] += f"+{build}"
    found["weights"] = "; ".join(map(" ".join, found["weights"].items()))
    if found["served"]:
        found["served"] = f"{', '.join(found['served'])} (not proven)"
    if found["cached"]:
        found["cached"] = f"{found['cached'].answers:,} of {found['cached'].begun}"
    found["machine"] = ", ".join(found["machine"])
    found["border"] = "; ".join(found["border"])
    found["sent"] = "; ".join(map(json.dumps, found["sent"]))
    found["gen_kwargs"] = found["gen_kwargs"] and json.dumps(found["gen_kwargs"])
    found["seeds"] = list(found["seeds"])
    places = {"/".join(path.split("/")[:2]) for path in record.files}
    found["data"] = "; ".join(sorted(places))
    found["data_files"] = record.files and of_files(record.files)
    return {name: value or None for name, value in found.items()}


def _joined(values: list[Any]) -> Any:
    """Return the fact that all files of a run share, or list what they say."""
    if all(value == values[0] for value in values):
        return values[0]
    return "; ".join(dict.fromkeys(map(readable, values)))


def facts(run: Run) -> Data:
    """Write what a run was made by, by the names of ``labels.yaml``; ``None`` for what its files don't say."""
    records = [_of_record(record) for record in run.records or [RunRecord()]]
    found = {name: _joined([one[name] for one in records]) for name in records[0]}
    unproven = measurement.unproven_files(run)
    if unproven:
        found["unproven"] = "; ".join(unproven)
    return found
