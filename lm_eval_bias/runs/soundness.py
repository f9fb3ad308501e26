"""What ``check --strict`` compares in a log: the scores that it gives, and its lines with the hashes in them.

Files are believed as far as their form goes; their numbers can be recomputed, and what they say twice can be compared.
Who changes all places in the same way isn't found.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping

from lm_eval_bias.core import Facts
from lm_eval_bias.core.answers import requests_of
from lm_eval_bias.core.catalog import NO_FILTER
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.runs import answer_files, sample_logs

# relative, below 1 absolute
ROUNDING = 1e-9  # sums in another order, on another machine
_OF_ROOTS = 1e-7  # errors, as releases to 0.3.0 took roots of what such sums leave


def is_close(first: float, second: float, rounding: float = ROUNDING) -> bool:
    """Tell whether two numbers are the same but for rounding, or both ``nan``."""
    if math.isnan(first):
        return math.isnan(second)
    return math.isclose(first, second, rel_tol=rounding, abs_tol=rounding)


def _numbers(value: Value) -> dict[str, float]:
    """Return all numbers of a score by name; ``nan`` for those that it doesn't have."""
    low, high = value.interval or (math.nan, math.nan)
    fixed_low, fixed_high = value.fixed_interval or (math.nan, math.nan)
    return {
        "value": value.value,
        "standard error": value.stderr,
        "degrees of freedom": math.nan if math.isnan(value.stderr) else value.dof,
        "interval's lower end": low,
        "interval's upper end": high,
        "interval of the items as given's lower end": fixed_low,
        "interval of the items as given's upper end": fixed_high,
    }


def _difference(given: Value, computed: Value) -> str:
    """Describe the first number that differs; empty where none does."""
    again = _numbers(computed)
    for name, ours in _numbers(given).items():
        theirs = again[name]
        if not is_close(ours, theirs, ROUNDING if name == "value" else _OF_ROOTS):
            return f"{given.name} has the {name} {ours:.10g}, but from its samples {theirs:.10g}"
    return ""


def differences(given: Mapping[str, Value], computed: Mapping[str, Value]) -> list[str]:
    """List how a results file's scores differ from those that its samples give, a line for each score."""
    lines = [
        _difference(value, computed[name])
        for name, value in given.items()
        if name in computed
    ]
    # a run on a part of the items has breakdowns by what that part lacks, as nan
    lines += [
        f"{name} is not a score of its samples"
        for name, value in given.items()
        if name not in computed and not math.isnan(value.value)
    ]
    lines += [f"{name} is not in the file" for name in computed if name not in given]
    return list(filter(None, lines))


_HASHED = ("doc", "prompt", "target")


def _hashes(texts: Iterable[str]) -> list[str]:
    """Hash texts as the harness does."""
    encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
    return [hashlib.sha256(text).hexdigest() for text in encoded]


def log_faults(task: TaskRun, content: Facts) -> Iterator[str]:
    """Yield in what a task's saved answers aren't as the hashes and the raw answers beside them say.

    Args:
        task: The task.
        content: The results file's, whose ``task_hashes`` have one hash of all these hashes.
    """
    rows = []
    for _, sample in sample_logs.lines(task.samples) if task.samples else ():
        number = sample["doc_id"]
        prompt = requests_of(sample)[0][0]
        if isinstance(prompt, list):  # the messages of a chat, as one text
            prompt = prompt[0]
        document = json.dumps(sample["doc"], indent=2, ensure_ascii=False)
        hashes = _hashes([document, prompt, str(sample.get("target"))])
        rows.append((number, "".join(hashes)))
        for name, digest in zip(_HASHED, hashes, strict=True):
            if digest != sample.get(f"{name}_hash"):
                yield f"document {number}: its {name} isn't what its {name}_hash says"
        raw = [one[0] for one in sample["resps"]]
        if sample["filter"] == NO_FILTER and raw != sample["filtered_resps"]:
            yield f"document {number}: its raw answers (resps) aren't the scored ones (filtered_resps)"
    if task.answers and not task.samples:
        file = answer_files.AnswerFile.of(task.answers)
        rows += [(number, "".join(given)) for number, given in file.hashes(task.task)]
    # several processes of plain lm_eval write another order
    ways = _hashes("".join(said for _, said in way) for way in (rows, sorted(rows)))
    written = content.get("task_hashes", {}).get(task.task)
    if written not in (None, *ways):
        yield "its documents, prompts and targets aren't those of the results' task_hashes"
