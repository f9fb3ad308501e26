"""Models designed to be something else than biased or fair: what does each output say of them?

    python -m tests.simulation.habits

Each answers by a habit, or knows everything, or nothing. Their runs go through the harness, and then through what
people look at: verdicts of the report, a comparison, ranks, and a gate with bounds of 0.2 either side.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lm_eval.api.registry import model_registry, register_model

import lm_eval_bias as leb
from lm_eval_bias.boards import building, models
from lm_eval_bias.cli.run import main as run_main
from lm_eval_bias.comparing import findings
from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.planting import Dial, uniform
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.gate import verdict
from lm_eval_bias.gate.policy_file import Bound, Policy
from lm_eval_bias.models.dial import DialLM
from lm_eval_bias.report import overview
from lm_eval_bias.runs import sample_logs

SUITES = ("quick", "quick-chat")
BIASED_LANGUAGE = "de"
SEED = 1  # of the noise, by which one score in twenty seems biased with any seed
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
FAIR = ("perfect", "perfect in 99%", "fair and unable")
DISTANCE = 0.2
NO_ABILITY = ("occugender", "eurogest")


def options(doc: Mapping[str, Any]) -> list[str]:
    """The texts that an item lets a model choose from."""
    if "candidates" in doc:
        return [candidate["word"] or candidate["sentence"] for candidate in doc["candidates"]]  # fmt: skip
    return list(doc.get("choices") or doc.get("texts") or doc.get("sentences") or ())


def language(task: str) -> str:
    """The language of a task of the catalogue."""
    return str(catalog.entries()[task].language)


def named_at(doc: Mapping[str, Any], option: str) -> int:
    """Where a context names an option, by its last word; behind everything where it doesn't."""
    found = doc["context"].lower().find(option.split()[-1].lower())
    return found if found >= 0 else len(doc["context"])


def applies(model: str, doc: Mapping[str, Any]) -> bool:
    """Whether a designed model differs from a fair one about a document."""
    if model in (*PLACES, "alternating"):
        # EsBBQ's prompts show no options
        return bool(doc.get("order")) and doc["benchmark"] != "es_bbq"
    if model in NAMED:
        return "groups" in doc
    if model == "unknown":
        return "groups" in doc or "order" in doc or doc.get("kind") == "explicit"
    if model == "saturated":
        return "texts" in doc or "words" in doc
    if model in ("refuses", "empty"):  # one of two texts is always likelier
        return "texts" not in doc and "sentences" not in doc
    return True


class HabitLM(DialLM):
    """A model that answers by a habit, told from the documents' own metadata, and fairly where it has none."""

    def __init__(self, habit: str, **more: Any) -> None:
        self._habit = habit
        super().__init__(0.0, **more)

    def cloze(self, requests: Any) -> list[Any]:
        """Answer each request by the habit."""
        return [self._answers(request)[request.idx] for request in requests]

    contrast = next_sentence = sentence_likelihoods = loglikelihood_rolling = cloze

    def generate_until(self, requests: Any) -> list[str]:
        """Write each answer by the habit."""
        return [self._written(request) for request in requests]

    def _planted(self, request: Any) -> Dial:
        """The dial of what isn't a habit."""
        dial: dict[str, float] = {"competence": 1.0}
        if self._habit == "biased in one language":
            if language(request.task_name) == BIASED_LANGUAGE:
                dial = {"strength": 0.4, "competence": 0.6}
        if self._habit in ("refuses", "empty"):
            dial = {"refusals": 1.0}
        return Dial(**DIALS.get(self._habit, dial), seed=SEED)

    def _is_planted(self, doc: Mapping[str, Any]) -> bool:
        planted = self._habit in (*DIALS, "biased in one language")
        return planted or not applies(self._habit, doc)

    def _answers(self, request: Any) -> Sequence[Any]:
        doc = request.doc
        if self._is_planted(doc) or self._habit in ("refuses", "empty"):
            planting = registry.get(doc["benchmark"]).planting
            return planting.answers(doc, self._planted(request))
        texts = doc.get("words") or options(doc)
        wanted = self._ranked(doc, texts, request)
        if "words" in doc:
            return [
                (math.log(0.4 if place == wanted[0] else 0.001), False)
                for place in range(len(texts))
            ]
        # characters from where texts differ, of which each is as likely
        same = len(os.path.commonprefix(list(texts)))
        tokens = [1 + len(text[same:]) for text in texts]
        return [
            (-(1.0 + 9.0 * wanted.index(place)) * tokens[place], tokens[place])
            for place in range(len(texts))
        ]

    def _ranked(
        self, doc: Mapping[str, Any], texts: Sequence[str], request: Any
    ) -> list[int]:
        """Places of options, those that the habit takes first."""
        places = list(range(len(texts)))
        shown = list(doc.get("order") or places)
        if self._habit in PLACES or self._habit == "alternating":
            turn = request.doc_id + 1
            if self._habit in PLACES:
                turn = PLACES.index(self._habit)
            taken = shown[turn % len(shown)]
            return sorted(places, key=lambda place: place != taken)
        if self._habit in NAMED:
            sign = 1 if self._habit == "first-named" else -1
            return sorted(
                places,
                key=lambda place: (
                    doc["groups"][place] == "unknown",
                    sign * named_at(doc, texts[place]),
                ),
            )
        if self._habit in LENGTHS:
            sign = 1 if self._habit == "shortest" else -1
            return sorted(
                places,
                key=lambda place: (sign * len(texts[place]), uniform(*texts, place)),
            )
        if self._habit == "frequent words":
            return sorted(
                places, key=lambda place: -uniform("frequency", texts[place].lower())
            )
        if self._habit == "unknown":
            unknown = self._unknown(doc, texts)
            return sorted(places, key=lambda place: place != unknown)
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
        if self._habit in ("refuses", "empty"):
            return REFUSAL if self._habit == "refuses" else ""
        if self._is_planted(doc):
            planting = registry.get(doc["benchmark"]).planting
            turn = request.args[1].get("seed", 0)
            return str(planting.answers(doc, self._planted(request).for_text(turn))[0])
        if "words" in doc:
            if self._habit in LENGTHS:
                return str(doc["words"][self._ranked(doc, doc["words"], request)[0]])
            return {"unknown": "Unknown", "saturated": "Male"}[self._habit]
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
        planned: Whether ``plan`` says what could be told apart.
        primary: Whether comparisons test it first.
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
    primary: bool


def run(folder: Path, model: str) -> list[Run]:
    """Run one designed model on both suites."""
    if "habit" not in model_registry:
        register_model("habit")(HabitLM)
    for suite in SUITES:
        run_main(["--suite", suite, "--model", "habit", "--model_args", f"habit={model}",
                  "--output_path", str(folder / suite), "--log_samples", "--name", model])  # fmt: skip
    return [leb.load(folder / suite)[0] for suite in SUITES]


def told(runs: Mapping[str, Sequence[Run]]) -> Iterator[Told]:
    """Yield what is said of each bias score of each model that ran."""
    for number, _ in enumerate(SUITES):
        of_suite = {model: own[number] for model, own in runs.items()}
        ranks = _ranks(list(of_suite.values()))
        for model, own in of_suite.items():
            compared = _compared(of_suite["perfect"], own)
            planned = {(f.subject, f.score.name) for f in findings.detectable(own) if not f.unsaid}  # fmt: skip
            for task in own.tasks.values():
                docs = sample_logs.first_filter(task.samples)
                if not applies(model, next(iter(docs)).doc):
                    continue
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
                        value.name in catalog.primary(task.task, task.definition),
                    )


def _reported(value: Value) -> str:
    side = value.verdict.side
    return "none" if side is None else ("no direction", "above", "below")[side]


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
        for board in building.boards(models.models(runs))
        for row in board.rows
        for name, cell in row.cells.items()
        if cell.rank
    }


def _judged(run: Run, task: TaskRun, value: Value) -> str:
    length = min(value.high - value.neutral, value.neutral - value.low)
    if math.isinf(length):
        return "none"
    bound = Bound(task.task, value.name, distance=DISTANCE * length)
    found = verdict.check(run, Policy([bound], allow=("trial_run",)))
    if any(not f.holds and f.score != value.name for f in found):
        return "none"
    return "holds" if all(f.holds for f in found) else "violated"


def wrong(told: Sequence[Told]) -> list[Told]:
    """List what shouldn't be said: a habit is neither biased nor fair, a perfect model is neither suspect nor last.

    A fair model's intervals miss in one of twenty scores, and so may what is said of it. OccuGender and EuroGEST have
    no ability beside the bias: who takes the same of two texts whatever is said, or names nobody, has none there.
    """
    found = []
    for model in MODELS:
        own = [one for one in told if one.model == model]
        claims = [one for one in own if one.report in ("above", "below")]
        claims += [one for one in own if one.compare in ("better", "worse")]
        if model == "biased in one language":
            claims = [c for c in claims if language(c.task) != BIASED_LANGUAGE]
        if model != "biased and weak":
            found += claims if len(claims) > 1 + 0.05 * len(own) else []
        if model not in (*FAIR, "biased in one language", "biased and weak"):
            able = [one for one in own if not one.task.startswith(NO_ABILITY)]
            found += [o for o in able if o.gate == "holds" or o.rank != "none"]
        if model in FAIR[:2]:
            found += [o for o in own if o.primary and o.gate == "violated"]
            found += [o for o in own if not o.rank.startswith(("1 ", "none"))]
    return list(dict.fromkeys(found))


def table(told: Sequence[Told]) -> str:
    """Write a line for each designed model: how many bias scores it has, and what is said of them."""
    from tabulate import tabulate

    rows = []
    for model in MODELS:
        own = [one for one in told if one.model == model]
        spoken = [abs(one.value) for one in own if one.report != "none"]
        counts = {
            "bias scores": len(own),
            "no verdict": sum(one.report == "none" for one in own),
            "no clear direction": sum(one.report == "no direction" for one in own),
            "leans": sum(one.report in ("above", "below") for one in own),
            "largest value with a verdict": f"{max(spoken, default=0.0):.2f}",
            "compared: worse": sum(one.compare == "worse" for one in own),
            "ranked": sum(one.rank != "none" for one in own),
            "first": sum(one.rank.startswith("1 ") for one in own),
            "gate holds": sum(one.gate == "holds" for one in own),
            "violated": sum(one.gate == "violated" for one in own),
            "no verdict of the gate": sum(one.gate == "none" for one in own),
            "planned": sum(one.planned for one in own),
        }
        rows.append({"model": model, **counts})
    return tabulate(rows, "keys", "github")


def main(argv: Sequence[str] | None = None) -> None:
    """Run all designed models, and print what is said of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path, help="a file for every cell")
    args = parser.parse_args(argv)
    folder = args.folder or Path(tempfile.mkdtemp())
    runs = {}
    for model in dict.fromkeys(["perfect", *args.models]):
        runs[model] = run(folder / model.replace(" ", "-"), model)
    said = list(told(runs))
    if args.json:
        args.json.write_text(json.dumps([asdict(one) for one in said], indent=1))
    print(table(said))
    for one in wrong(said):
        print("wrong:", one)


if __name__ == "__main__":
    main()
