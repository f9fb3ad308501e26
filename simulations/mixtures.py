"""Models that answer a share of the items by a habit: is a bias said where there is one, and only there?

    python -m simulations.mixtures

Each model answers by a habit in a share of the items, and in the others as a fair, stereotyped, perfect or unable one.
The answers are made of the documents alone, and judged as those of a run, without the harness around them.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.run_data import Run, TaskRun, Value, values_of
from lm_eval_bias.core.synthetic_bias import Dial, uniform
from lm_eval_bias.core.verdicts import side_of
from lm_eval_bias.custom_metrics import positions
from lm_eval_bias.gate import verdict
from lm_eval_bias.gate.policy_file import Bound
from lm_eval_bias.runs import diagnostics
from simulations import coverage, position_bias

HABITS = (
    *position_bias.PLACES,
    *position_bias.NAMED,
    *position_bias.LENGTHS,
    "frequent words",
)
SHARES = (0.3, 0.6, 0.7, 0.92, 1.0)
RESTS = {
    "fair": Dial(0.0, 0.5),
    "stereotyped": Dial(1.0, 0.0, noise=0.0),
    "perfect": Dial(0.0, 1.0),
    "unable": Dial(0.0, 1 / 3),
}
# how often such a model says that it isn't known, in ambiguous contexts and in others; else it takes the stereotype
CAUTIOUS = {"cautious 88/96": (0.88, 0.96), "cautious 93/97": (0.93, 0.97)}
DISTANCE = (
    0.2  # of a gate's bound, as a share of the way from the neutral value to an end
)
# tasks in which nothing has to be understood
NO_ABILITY = ("crows_pairs", "eurogest")
BIASED, NEUTRAL, UNABLE = "biased", "neutral", "unable"


def _hooks(name: str) -> Any:
    from importlib import import_module

    return import_module(f"lm_eval_bias.tasks.{name}")


def _mbbq(category: str) -> Sequence[Any]:
    return _hooks("mbbq.hooks").dataset("en", category)["test"]


TASKS: Mapping[str, Callable[[], Sequence[Any]]] = {
    "gg_bbq_group_terms": coverage.gg_bbq,
    "gg_bbq_names": lambda: coverage.gg_bbq("names"),
    "es_bbq_gender": coverage.es_bbq,
    "kobbq_gender_identity": coverage.kobbq,
    "mbbq_en_gender_identity": lambda: _mbbq("gender_identity"),
    "mbbq_en_disability_status": lambda: _mbbq("disability_status"),
    "stereoset_en": coverage.stereoset,
    "stereoset_en_gen": coverage.choices,
    "crows_pairs_en": lambda: _hooks("crows_pairs.hooks").dataset("en")["test"],
    "crows_pairs_fr": lambda: _hooks("crows_pairs.hooks").dataset("fr")["test"],
    "crows_pairs_nl": coverage.crows_pairs,
    "crows_pairs_en_gen": lambda: _hooks("crows_pairs.hooks").choices("en")["test"],
    "eurogest_de": lambda: coverage.eurogest(quick=True),
    "eurogest_en_gen": lambda: _hooks("eurogest.choices").dataset(
        "en", fixed={"column": "GEST_sentence"}
    )["test"],
}


@cache
def documents(task: str) -> Sequence[Any]:
    """The documents of a task, read once."""
    return TASKS[task]()


@dataclass(frozen=True)
class Mixture:
    """A designed model.

    Attributes:
        habit: One of :data:`HABITS`, or of :data:`CAUTIOUS`.
        share: Of the items that are answered by it.
        rest: One of :data:`RESTS`, by which the others are answered.
        seed: Of the draws.
    """

    habit: str
    share: float = 1.0
    rest: str = "fair"
    seed: int = 1

    @property
    def truth(self) -> str:
        """Whether it is biased, has no bias that could be seen, or knows nothing."""
        if self.habit in CAUTIOUS or (self.rest == "stereotyped" and self.share < 1):
            return BIASED
        return UNABLE if self.share == 1 or self.rest == "unable" else NEUTRAL

    def answers(self, doc: Any) -> Sequence[Any]:
        """What it answers to a document, a request each."""
        item = (self.seed, json.dumps(doc, sort_keys=True, default=str))
        draw = uniform("habit", *item)
        dial = RESTS["stereotyped"]
        if self.habit in CAUTIOUS:
            open_, given = CAUTIOUS[self.habit]
            share = open_ if doc["context_type"] == "ambiguous" else given
            if draw < share:
                return _by_habit("unknown", doc)
        elif draw < self.share and position_bias.applies(self.habit, doc):
            return _by_habit(self.habit, doc)
        else:
            dial = RESTS[self.rest]
        competence = dial.competence
        if dial.strength and doc.get("context_type") == "disambiguated":
            competence = 0.5  # the stereotype is right in one of two
        if dial.strength and "candidates" in doc:
            competence = 1.0
        dial = Dial(dial.strength, competence, dial.noise, seed=self.seed)
        synthetic_bias = registry.get(doc["benchmark"]).synthetic_bias
        return synthetic_bias.answers(doc, dial)


@cache
def _model(habit: str) -> position_bias.HabitLM:
    return position_bias.HabitLM(habit)


def _by_habit(habit: str, doc: Any) -> Sequence[Any]:
    request = SimpleNamespace(doc=doc, doc_id=0, args=("", {}), task_name="")
    model = _model(habit)
    if is_written(doc):
        return [model._written(request)]
    return model._answers(request)


def is_written(doc: Any) -> bool:
    """Whether a text is written, and not scored."""
    written = ("_choices",)
    return bool(doc.get("generated")) or doc["benchmark"].endswith(written)


def measured(model: Mixture, task: str) -> TaskRun:
    """The task's scores of a model, with what is known of its answers."""
    docs = documents(task)
    benchmark = registry.get(docs[0]["benchmark"])
    records = [benchmark.record(doc, model.answers(doc)) for doc in docs]
    wanted = (*benchmark.main, *benchmark.presentation.beside_main)
    telling = (
        "unanswered",
        "refused",
        positions.PREFIX,
        positions.SHORTER,
        positions.MATCHED,
    )
    scores = [
        score
        for score in benchmark.scores(records)
        if score.name in wanted or score.floor or score.name.startswith(telling)
    ]
    entry = catalog.entries()[task]
    alone = TaskRun(
        task, benchmark, entry.language, "1", len(docs), len(docs), {}, values_of(scores, records)
    )  # fmt: skip
    return diagnostics.applied(Run("model", Path(), {task: alone})).tasks[task]


@dataclass(frozen=True)
class Said:
    """What is said of a score of a model; ``wrong`` where that is wrong, with the reason."""

    truth: str
    habit: str
    share: float
    rest: str
    task: str
    score: str
    value: float
    low: float
    high: float
    claim: str
    reason: str
    gate: bool
    wrong: str


def said(model: Mixture, task: str) -> Iterator[Said]:
    """Yield what is said of each score of bias."""
    run = measured(model, task)
    truth = model.truth
    if truth == UNABLE and task.startswith(NO_ABILITY):
        truth = NEUTRAL
    for value in run.with_verdicts():
        is_ability = value.neutral is None or value.higher_is_better is not None
        if is_ability or not value.interval:
            continue
        told = value.verdict
        passes = _passes(task, value)
        wrong = ""
        if truth == BIASED:
            shown = side_of(value) if value.pole or value.favours else 0
            if shown > 0 and told.side != 1:
                wrong = "not said"
        elif told.side:
            wrong = "said"
        if truth == UNABLE and passes:
            wrong = "near"
        about = truth, model.habit, model.share, model.rest, task, value.name
        measured_at = value.value, *value.interval
        yield Said(*about, *measured_at, told.claim, told.reason, passes, wrong)


def _passes(task: str, value: Value) -> bool:
    length = min(value.high - value.neutral, value.neutral - value.low)
    if math.isinf(length):
        return False
    bound = Bound(task, value.name, distance=DISTANCE * length)
    return verdict.judge(bound, task, value).passes


def mixtures(seed: int) -> list[Mixture]:
    """All models, those of one habit alone once."""
    models = [Mixture(habit, seed=seed) for habit in HABITS]
    for habit in HABITS:
        for share in SHARES[:-1]:
            models += [Mixture(habit, share, rest, seed) for rest in RESTS]
    return models + [Mixture(habit, seed=seed) for habit in CAUTIOUS]


def told(task: str, seed: int, only: Sequence[str] = ()) -> list[Said]:
    """List what is said of each score of each model that differs from a fair one about a task."""
    found: list[Said] = []
    doc = documents(task)[0]
    for model in mixtures(seed):
        if only and model.habit not in only:
            continue
        if model.habit in CAUTIOUS and "context_type" not in doc:
            continue
        if model.habit in CAUTIOUS or position_bias.applies(model.habit, doc):
            found += said(model, task)
    return found


def row(task: str, found: Sequence[Said]) -> str:
    """Write how often a bias is said that isn't there, isn't said that shows, or an unable model passes a gate."""
    wrong = Counter(one.wrong for one in found)
    counts = Counter(one.truth for one in found)
    cells = [
        f"{wrong['said']} of {counts[NEUTRAL] + counts[UNABLE]}",
        f"{wrong['not said']} of {counts[BIASED]}",
        f"{wrong['near']} of {counts[UNABLE]}",
    ]
    return f"| {task} | {' | '.join(cells)} |"


def main(argv: Sequence[str] | None = None) -> None:
    """Print how often something wrong is said, by task."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--habits", nargs="*", default=())
    parser.add_argument("--json", type=Path, help="a file for every score")
    args = parser.parse_args(argv)
    every = []
    print(
        "| task | a lean said of an unbiased model | a lean not said | near neutral, though unable |"
    )
    print("|---|---|---|---|")
    for task in args.tasks:
        found = told(task, args.seed, args.habits)
        print(row(task, found), flush=True)
        every += found
    if args.json:
        args.json.write_text(json.dumps([asdict(one) for one in every], indent=1))


if __name__ == "__main__":
    main()
