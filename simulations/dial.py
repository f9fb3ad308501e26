"""Does every main score recover a synthetic bias, and does anything else move it?

    python -m simulations.dial --seeds 1000

Each seed is one run of ``bias-dial`` on a benchmark's real documents: its answers, their records and the main scores
with their intervals, without the harness around them. The clusters' deviations are drawn anew with every seed, so that
an interval has to cover the synthetic value and not what the clusters of one run happen to have.

What else could move a score are habits that have nothing to do with content: a share of the answers (of the
probability, where that is the answer) takes the option shown first, the shortest one or the one of the most frequent
words. The others show a bias so much larger that all together show the strength.
"""

from __future__ import annotations

import argparse
import logging
import math
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from lm_eval_bias.core import registry
from lm_eval_bias.core.benchmark import samples_texts
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.synthetic_bias import Dial, uniform
from lm_eval_bias.tasks.occugender.synthetic_answers import COVERAGE
from lm_eval_bias.tasks.regard.synthetic_answers import texts_in

STRENGTHS = (-0.4, 0.0, 0.4)
MOVED = 0.01  # of a score's range: what counts as moved, if it is more than chance too
SAMPLES = 10  # texts a prompt, where texts are written
HABITS = ("position", "length", "frequency")
SETTINGS: tuple[dict[str, float], ...] = (
    {},
    {"competence": 0.75},
    {"coverage": 0.2},
    {"position": 0.3},
    {"length": 0.3},
    {"frequency": 0.3},
    {"refusals": 0.3},
)


@dataclass(frozen=True)
class Habits(Dial):
    """A dial with one habit at most, and OccuGender's coverage."""

    position: float = 0.0
    length: float = 0.0
    frequency: float = 0.0
    coverage: float = COVERAGE

    @property
    def habit(self) -> str:
        return next((name for name in HABITS if getattr(self, name)), "")

    @property
    def share(self) -> float:
        return getattr(self, self.habit) if self.habit else 0.0

    def takes(self, item: Sequence[str]) -> bool:
        return self.draw("habit", *item) < self.share

    def diluted(self) -> Habits:
        return replace(self, strength=self.strength / (1.0 - self.share))

    def first(self, texts: Sequence[str], item: Sequence[str]) -> list[int]:
        """Places of texts, those that the habit takes first."""

        def key(i: int) -> tuple[float, float]:
            by = len(texts[i]) if self.habit == "length" else -frequency(texts[i])
            return by, self.draw("tie", i, *item)

        return sorted(range(len(texts)), key=key)


def frequency(text: str) -> float:
    """A made-up frequency of a text, from 0 to 1, the same in every run."""
    return uniform("frequency", text.lower())


def answers(doc: Mapping[str, Any], dial: Habits) -> Sequence[Any]:
    """A document's answers, with its benchmark's synthetic bias, or by position."""
    benchmark: Any = registry.get(doc["benchmark"])
    if "words" in doc:
        return _words(doc, dial, benchmark.synthetic_bias.answers)
    if "gender" in doc:
        return _text(doc, dial, benchmark.synthetic_bias.answers)
    if pair := doc.get("texts") or doc.get("sentences"):
        if dial.habit in ("", "position") or not dial.takes(pair):
            return benchmark.synthetic_bias.answers(doc, dial.diluted())
        first = dial.first(pair, pair)[0]
        return [(math.log(0.998 if i == first else 0.002), 1) for i in range(2)]
    if "candidates" in doc:
        item = (
            doc["context"],
            *(candidate["sentence"] for candidate in doc["candidates"]),
        )
        if dial.habit == "position":  # candidates are scored apart: none has one
            return benchmark.synthetic_bias.answers(doc, dial)
    else:
        item = (benchmark.hooks.prompt(doc), *doc["choices"])
    if not dial.takes(item):
        return benchmark.synthetic_bias.answers(doc, dial.diluted())
    if "candidates" in doc:
        texts = [
            candidate["word"] or candidate["sentence"]
            for candidate in doc["candidates"]
        ]
        first = dial.first(texts, item)
        return [((3.0 - first.index(i)) / 4.0, 1) for i in range(len(texts))]
    taken = (
        doc["order"][0]
        if dial.habit == "position"
        else dial.first(doc["choices"], item)[0]
    )
    number = len(benchmark.hooks.continuations(doc))
    return [(math.log(0.998 if i == taken else 0.001), False) for i in range(number)]


def _words(doc: Mapping[str, Any], dial: Habits, synthetic: Any) -> Sequence[Any]:
    share = 0.0 if dial.habit == "position" else dial.share
    strength = dial.strength / (1.0 - share)
    noise = min(
        (1.0 - abs(dial.strength)) * dial.noise / (1.0 - share) / (1.0 - abs(strength)),
        1.0,
    )
    content = [
        math.exp(value)
        for value, _ in synthetic(doc, replace(dial, strength=strength, noise=noise))
    ]
    least = min(map(len, doc["words"]))
    weights = [
        frequency(word) if dial.habit == "frequency" else float(len(word) == least)
        for word in doc["words"]
    ]
    found = []
    for own, weight in zip(content, weights, strict=True):
        mixed = (1.0 - share) * own + share * sum(content) * weight / sum(weights)
        found.append((math.log(max(mixed * dial.coverage / COVERAGE, 1e-304)), False))
    return found


def _text(doc: Mapping[str, Any], dial: Habits, synthetic: Any) -> Sequence[Any]:
    """By ``length`` a text is twice as long, by ``frequency`` it is one and the same neutral text without keywords."""
    (text,) = synthetic(doc, dial.diluted() if dial.habit == "frequency" else dial)
    if dial.habit in ("", "position") or not text or not dial.takes((doc["prompt"],)):
        return [text]
    texts, whole = texts_in(doc["language"]), text.removesuffix(".")
    when = whole[whole.rindex(texts["when"].partition("{")[0]) :]
    longer = (
        f"{whole}{texts['longer']}"
        if dial.habit == "length"
        else f" {texts['common']}{when}"
    )
    return [longer + text[len(whole) :]]


@cache
def documents(name: str) -> list[dict[str, Any]]:
    """The documents that a benchmark is tried on."""
    from lm_eval_bias.tasks.crows_pairs import hooks as crows_pairs
    from lm_eval_bias.tasks.es_bbq import hooks as es_bbq
    from lm_eval_bias.tasks.eurogest import hooks as eurogest
    from lm_eval_bias.tasks.gg_bbq import hooks as gg_bbq
    from lm_eval_bias.tasks.kobbq import hooks as kobbq
    from lm_eval_bias.tasks.mbbq import hooks as mbbq
    from lm_eval_bias.tasks.occugender import hooks as occugender
    from lm_eval_bias.tasks.regard import hooks as regard
    from lm_eval_bias.tasks.stereoset import hooks as stereoset

    make = {
        "occugender": lambda: occugender.documents("implicit", first_templates=10),
        "gg_bbq": lambda: gg_bbq.dataset("group_terms")["test"],
        "es_bbq": lambda: es_bbq.dataset("es", "race_ethnicity")["test"],
        "kobbq": lambda: kobbq.dataset("gender_identity")["test"],
        "mbbq": lambda: mbbq.dataset("en", "gender_identity")["test"],
        "stereoset": lambda: stereoset.documents(
            {"language": "en", "tests": ["intra", "inter"]}
        )[:1500],
        "eurogest": lambda: eurogest.dataset({"column": "German"}, language="de")[
            "test"
        ][:960],
        "crows_pairs_parallel": lambda: crows_pairs.dataset("nl")["test"],
        "regard": lambda: regard.dataset({"language": "de"}, classifier="light")[
            "test"
        ],
    }
    return list(make[name]())


NAMES = (
    "occugender",
    "gg_bbq",
    "es_bbq",
    "kobbq",
    "mbbq",
    "stereoset",
    "eurogest",
    "crows_pairs_parallel",
    "regard",
)


def main_scores(name: str) -> list[Any]:
    benchmark = registry.get(name)
    return [
        score
        for score in benchmark.scores(documents(name))
        if score.name in benchmark.main
    ]


def records(name: str, dial: Habits) -> list[Any]:
    """Those of a run."""
    benchmark, docs = registry.get(name), documents(name)
    if not samples_texts(benchmark):
        return [benchmark.record(doc, answers(doc, dial)) for doc in docs]
    from lm_eval_bias.tasks.regard.hooks import FirstSentenceFilter, RegardFilter

    texts = [
        [str(answers(doc, dial.for_text(n))[0]) for n in range(SAMPLES)] for doc in docs
    ]
    labelled = RegardFilter().apply(FirstSentenceFilter().apply(texts, docs), docs)
    return [
        benchmark.record(doc, [answer])
        for doc, answer in zip(docs, labelled, strict=True)
    ]


def run(name: str, dial: Habits) -> list[tuple[float, float, bool]]:
    """Of each main score the synthetic value, that of a run, and whether its interval holds the synthetic one."""
    benchmark: Any = registry.get(name)
    given, found = records(name, dial), []
    expected = benchmark.synthetic_bias.expected(documents(name), dial)
    for score in main_scores(name):
        estimate, synthetic = score.compute(given), expected[score.name]
        ends = estimate.ends()
        found.append(
            (
                synthetic,
                estimate.value,
                ends is not None and ends[0] <= synthetic <= ends[1],
            )
        )
    return found


def main() -> None:
    """Simulate and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--benchmarks", nargs="*", default=NAMES, choices=NAMES)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    args = parser.parse_args()
    logging.getLogger("lm_eval.bias").setLevel(logging.ERROR)
    for name in args.benchmarks:
        try:
            scores = main_scores(
                name
            )  # reads the documents before the processes are forked
        except BiasError as error:
            print(f"without {name}: {error}")
            continue
        with multiprocessing.get_context("fork").Pool(args.processes) as pool:
            for strength in STRENGTHS:
                dials = [Habits(strength, seed=seed) for seed in range(args.seeds)]
                found = np.array(pool.map(partial(run, name), dials), dtype=float)
                for score, (synthetic, value, covered) in zip(
                    scores, found.mean(axis=0), strict=True
                ):
                    print(
                        f"{name} {score.name}: synthetic {synthetic:.3g}, recovered {value:.3g}, {100 * covered:.1f}%"
                    )
            plain = [
                Habits(seed=seed, strength=0.0)
                for seed in range(max(args.seeds // 10, 5))
            ]
            values = []
            for setting in SETTINGS:
                found = np.array(
                    pool.map(
                        partial(run, name), [replace(dial, **setting) for dial in plain]
                    ),
                    dtype=float,
                )
                values.append(found[:, :, 1])
        for setting, own in zip(SETTINGS[1:], values[1:], strict=True):
            shifts = own - values[0]
            errors = shifts.std(axis=0, ddof=1) / math.sqrt(len(plain))
            for score, shift, error in zip(
                scores, shifts.mean(axis=0), errors, strict=True
            ):
                if abs(shift) > max(MOVED * (score.high - score.low), 4 * error):
                    print(
                        f"{name} {score.name}: {setting} moves it by {shift:+.3g}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
