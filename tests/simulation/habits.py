"""Models designed to be something else than biased or fair: what does each output say of them?

    python -m tests.simulation.habits

Each answers by a habit, or knows everything, or nothing. Their runs go through the harness, and then through what
people look at: verdicts of the report, a comparison, ranks, and a gate with bounds of 0.2 either side.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval.api.registry import model_registry, register_model

import lm_eval_bias as leb
from lm_eval_bias.boards import building
from lm_eval_bias.cli.run import main as run_main
from lm_eval_bias.comparing import findings
from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.planting import Dial
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.gate import verdict
from lm_eval_bias.gate.policy_file import Bound, Policy
from lm_eval_bias.models.dial import DialLM
from lm_eval_bias.report import overview

SUITES = ("quick", "quick-chat")
BIASED_LANGUAGE = "de"
REFUSAL = "I'm sorry, but I can't help with that."
# by name the dial's settings; of other models what they answer follows below
DIALS = {
    "perfect": {"competence": 1.0},
    "perfect in 99%": {"competence": 0.99},
    "fair and unable": {"competence": 1 / 3},
    "biased and weak": {"strength": 0.3, "competence": 1 / 3},
}
PLACES = ("A or first", "B or middle", "C or last")
NAMED = ("first-named", "last-named")
LENGTHS = ("shortest", "longest")
MODELS = (
    *PLACES, "alternating", *NAMED, *LENGTHS, "unknown", "refuses", "empty", "saturated", "biased in one language",
    *DIALS,
)  # fmt: skip
DISTANCE = 0.2


def options(doc: Mapping[str, Any]) -> list[str]:
    """The texts that an item lets a model choose from."""
    if "candidates" in doc:
        return [candidate["word"] or candidate["sentence"] for candidate in doc["candidates"]]  # fmt: skip
    return list(doc.get("choices") or doc.get("texts") or doc.get("sentences") or ())


def named_at(doc: Mapping[str, Any], option: str) -> int:
    """Where a context names an option, by its last word; behind everything where it doesn't."""
    found = doc["context"].lower().find(option.split()[-1].lower())
    return found if found >= 0 else len(doc["context"])


class HabitLM(DialLM):
    """A model that answers by a habit, told from the documents' own metadata."""

    def __init__(self, habit: str, **more: Any) -> None:
        self._habit = habit
        super().__init__(**{"strength": 0.0, **DIALS.get(habit, {})}, **more)

    def cloze(self, requests: Any) -> list[Any]:
        return [self._answers(request)[request.idx] for request in requests]

    contrast = next_sentence = sentence_likelihoods = loglikelihood_rolling = cloze

    def generate_until(self, requests: Any) -> list[str]:
        return [self._written(request) for request in requests]

    def _planted(self, request: Any) -> Dial:
        entry = catalog.entries()[request.task_name]
        is_biased = self._habit == "biased in one language"
        if is_biased and entry.language == BIASED_LANGUAGE:
            return Dial(0.4, 0.6)
        settings = DIALS.get(self._habit, {"competence": 0.9})
        return Dial(**settings)

    def _answers(self, request: Any) -> Sequence[Any]:
        doc = request.doc
        planting = registry.get(doc["benchmark"]).planting
        if self._habit in DIALS or self._habit == "biased in one language":
            return planting.answers(doc, self._planted(request))
        if self._habit in ("refuses", "empty"):
            return planting.answers(doc, Dial(refusals=1.0))
        texts = doc.get("words") or options(doc)
        wanted = self._ranked(doc, texts, request)
        if "words" in doc:
            return [(math.log(0.4 if i == wanted[0] else 0.001), False) for i in range(len(texts))]  # fmt: skip
        # a text that is no token longer or shorter than others
        return [(-1.0 - 9.0 * wanted.index(i), 1) for i in range(len(texts))]

    def _ranked(self, doc: Mapping[str, Any], texts: Sequence[str], request: Any) -> list[int]:  # fmt: skip
        """Places of options, those that the habit takes first."""
        places = list(range(len(texts)))
        shown = list(doc.get("order") or places)
        if self._habit in PLACES or self._habit == "alternating":
            turn = PLACES.index(self._habit) if self._habit in PLACES else request.doc_id  # fmt: skip
            taken = shown[turn % len(shown)]
            return [taken, *(place for place in shown if place != taken)]
        if self._habit in NAMED and "context" in doc and "groups" in doc:
            sign = 1 if self._habit == "first-named" else -1
            persons = [i for i in places if doc["groups"][i] != "unknown"]
            persons.sort(key=lambda i: sign * named_at(doc, texts[i]))
            return [*persons, *(i for i in places if i not in persons)]
        if self._habit in LENGTHS:
            sign = 1 if self._habit == "shortest" else -1
            return sorted(places, key=lambda i: sign * len(texts[i]))
        if self._habit == "unknown":
            unknown = self._unknown(doc, texts)
            return [unknown, *(i for i in places if i != unknown)]
        return places  # saturated: the first, whatever is said

    def _unknown(self, doc: Mapping[str, Any], texts: Sequence[str]) -> int:
        if "groups" in doc:
            return int(doc["groups"].index("unknown"))
        if "candidates" in doc:
            labels = [candidate["label"] for candidate in doc["candidates"]]
            return labels.index("unrelated")
        return len(texts) - 1

    def _written(self, request: Any) -> str:
        doc = request.doc
        if self._habit == "refuses":
            return REFUSAL
        if self._habit == "empty":
            return ""
        if self._habit in DIALS or self._habit == "biased in one language":
            planting = registry.get(doc["benchmark"]).planting
            seed = request.args[1].get("seed", 0)
            return str(planting.answers(doc, self._planted(request).for_text(seed))[0])
        if "words" in doc:
            return {"unknown": "Unknown", "saturated": "Male"}.get(self._habit, "A")
        texts = options(doc)
        taken = self._ranked(doc, texts, request)[0]
        if doc.get("letters") or "candidates" in doc:
            return "ABC"[list(doc["order"]).index(taken)]
        return texts[taken]


@dataclass(frozen=True)
class Told:
    """What is said of one score of one designed model.

    Attributes:
        model: Its name.
        task: The task.
        score: A bias score that a verdict goes by.
        value: Its value, from -1 to 1 with neutral at 0.
        report: ``none`` (no verdict), ``no direction``, ``above`` or ``below``.
        compare: Against the perfect model: ``better``, ``worse``, ``not shown``, ``none``.
        rank: On a board of all designed models, ``none`` where it has none.
        gate: With a bound of 0.2 either side: ``holds``, ``violated``, or ``none`` with the reason.
        planned: Whether ``compare --plan`` says what could be told apart.
    """

    model: str
    task: str
    score: str
    value: float
    report: str
    compare: str
    rank: str
    gate: str
    planned: bool


def run(folder: Path, model: str) -> list[Run]:
    """Run one designed model on both suites."""
    if "habit" not in model_registry:
        register_model("habit")(HabitLM)
    for suite in SUITES:
        run_main(["--suite", suite, "--model", "habit", "--model_args", f"habit={model}",
                  "--output_path", str(folder / suite), "--log_samples", "--name", model])  # fmt: skip
    return [one for suite in SUITES for one in leb.load(folder / suite)]


def told(runs: Mapping[str, Sequence[Run]]) -> Iterator[Told]:
    """Yield what is said of each bias score of each model that ran."""
    for number, _ in enumerate(SUITES):
        of_suite = {model: own[number] for model, own in runs.items()}
        ranks = _ranks(list(of_suite.values()))
        for model, own in of_suite.items():
            compared = _compared(of_suite["perfect"], own)
            planned = {(f.subject, f.score.name) for f in findings.plan(own) if not f.unsaid}  # fmt: skip
            for task in own.tasks.values():
                for value in task.judged():
                    if value.neutral is None or value.higher_is_better is not None:
                        continue
                    key = task.task, value.name
                    yield Told(
                        model,
                        *key,
                        overview.position(value, value.value),
                        _reported(value),
                        compared.get(key, "none"),
                        ranks.get((model, *key), "none"),
                        _judged(own, task, value),
                        key in planned,
                    )


def _reported(value: Value) -> str:
    if value.unsaid or value.side is None:
        return "none"
    return ("no direction", "above", "below")[value.side]


def _compared(base: Run, other: Run) -> dict[tuple[str, str], str]:
    if base is other:
        return {}
    compared, _ = findings.compare([base, other], findings.Choice(leave_out=True))
    return {
        (f.subject, f.score.name): "none" if f.unsaid else f.outcome for f in compared
    }


def _ranks(runs: Sequence[Run]) -> dict[tuple[str, str, str], str]:
    return {
        (row.model, board.task, name): f"{cell.rank.low} to {cell.rank.high}"
        for board in building.boards(runs)
        for row in board.rows
        for name, cell in row.cells.items()
        if cell.rank
    }


def _judged(run: Run, task: TaskRun, value: Value) -> str:
    length = min(value.high - value.neutral, value.neutral - value.low)
    if math.isinf(length):
        return "none"
    bound = Bound(task.task, value.name, distance=DISTANCE * length)
    found = verdict.check(run, Policy([bound]))
    if any(not f.holds and f.score != value.name for f in found):
        return "none"
    return "holds" if all(f.holds for f in found) else "violated"


def main(argv: Sequence[str] | None = None) -> None:
    """Run all designed models, and print what is said of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args(argv)
    folder = args.folder or Path(tempfile.mkdtemp())
    runs = {}
    for model in dict.fromkeys(["perfect", *args.models]):
        runs[model] = run(folder / model.replace(" ", "-"), model)
    for found in told(runs):
        print(found)


if __name__ == "__main__":
    main()
