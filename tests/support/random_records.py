"""Random records of every benchmark, and what can be done to them without a change of what they say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lm_eval_bias.custom_metrics import occugender_answers
from lm_eval_bias.custom_metrics.eurogest import STEREOTYPES
from lm_eval_bias.custom_metrics.regard import FACETS
from lm_eval_bias.custom_metrics.stereoset import VARIANTS
from lm_eval_bias.custom_metrics.stereoset_choices import (
    ANTI,
    NONE,
    REFUSED,
    STEREOTYPE,
    UNRELATED,
)

Record = dict[str, Any]
SWAPPED = {"biased": "counter", "counter": "biased", "female": "male", "male": "female", "a": "b", "b": "a",
           STEREOTYPE: ANTI, ANTI: STEREOTYPE}  # fmt: skip
CONFUSION = {
    "source": "made up",
    "counts": {"all": [[90, 5, 5], [5, 90, 5], [5, 5, 90]]},
}


def other(value):
    return SWAPPED.get(value, value)


@dataclass(frozen=True)
class Case:
    """A benchmark's random records.

    Attributes:
        make: The records of a random generator.
        clusters: The fields whose values are names alone.
        swap: A record with its two groups (or stereotype and opposite) exchanged.
        silence: A record of which the model gave nan, or a text that can't be read.
        once: Whether no record may occur twice.
    """

    make: Callable[[np.random.Generator], list[Record]]
    clusters: tuple[str, ...]
    swap: Callable[[Record], Record]
    silence: Callable[[Record], Record]
    once: bool = False


# ------------------------------------------------------------------------------------------- question answering

RIGHT = {"amb": "unknown", "b": "biased", "c": "counter"}


def compared(rng, takes_first):
    """Lengths of two texts, which are equal in one of three, and whether the stereotyped one is taken."""
    first, second = rng.integers(4, 7, 2).tolist()
    return {"lengths": {"characters": (first, second)}, "takes_first": takes_first}


def swapped_lengths(r):
    first, second = r["lengths"]["characters"]
    taken = r["takes_first"]
    turned = None if taken is None else not taken
    return {"lengths": {"characters": (second, first)}, "takes_first": turned}


TAKES = {"biased": True, "counter": False}


def questions(rng):
    """A product of templates, contexts, values and wordings, so that each wording has the same items."""
    made = []
    for template, kind, value, wording in itertools.product(
        "pqrst", RIGHT, ("work", "care"), (1, 2)
    ):
        answers = rng.choice(
            ["biased", "counter", "unknown", "none"], size=3, p=[0.35, 0.3, 0.25, 0.1]
        ).tolist()
        made.append({
            "context": "ambiguous" if kind == "amb" else "disambiguated", "answer": answers[0],
            "correct": answers[0] == RIGHT[kind], "biased_context": kind == "b", "template": template, "value": value,
            "category": value, "wording": wording,
            "by_rule": dict(zip(("bytes", "tokens"), answers[1:], strict=True)),
            "shown": rng.permutation(["biased", "counter", "unknown"]).tolist(), "lettered": True,
            **compared(rng, TAKES.get(answers[0])),
        })  # fmt: skip
    return made


def swapped_question(r):
    rules = {rule: other(answer) for rule, answer in r["by_rule"].items()}
    return {**r, "answer": other(r["answer"]), "biased_context": not r["biased_context"], "by_rule": rules,
            "shown": [*map(other, r["shown"])], **swapped_lengths(r)}  # fmt: skip


def silent_question(r):
    return {
        **r,
        "answer": "nan",
        "takes_first": None,
        "correct": False,
        "by_rule": dict.fromkeys(r["by_rule"], "nan"),
    }


def questions_with_controls(rng):
    made = []
    for control in (False, True):  # of the same items, by number
        more = ({"control": control, "item": f"q{k}"} for k in itertools.count())
        made += [
            {**r, **own, "directed": r["value"] == "work"}
            for r, own in zip(questions(rng), more, strict=False)
        ]
    return made


QUESTIONS = Case(questions, ("template",), swapped_question, silent_question)
WITH_CONTROLS = Case(
    questions_with_controls, ("template",), swapped_question, silent_question
)


# ------------------------------------------------------------------------------------------- pairs and choices


def pairs(rng):
    drawn = enumerate(rng.normal(-9, 2, size=(30, 2)).tolist())
    return [{"pair": f"p{i}", "bias_type": ("age", "gender")[i % 2], "more": more, "less": less,
             "more_tokens": 5, "less_tokens": 6, **compared(rng, more > less)}
            for i, (more, less) in drawn]  # fmt: skip


def swapped_pair(r):
    return {
        **r,
        **swapped_lengths(r),
        "more": r["less"],
        "less": r["more"],
        "more_tokens": r["less_tokens"],
        "less_tokens": r["more_tokens"],
    }


def speakers(rng):
    """Twelve sentences of each stereotype."""
    made = []
    for (name, group), i in itertools.product(STEREOTYPES, range(12)):
        share = float(rng.beta(3, 3))
        odds = math.log(share / (1 - share))
        made.append({"sentence": f"{name} {i}", "stereotype": name, "group": group, "share": share,
                     "log_odds": 2 * odds, "mean_log_odds": odds, "tokens": (2, 2)})  # fmt: skip
    return made


def taken(rng):
    options = ["biased", "counter", "unknown", "none"]
    made = []
    for i in range(60):
        answer = str(rng.choice(options, p=[0.4, 0.3, 0.2, 0.1]))
        about = {"sentence": f"s{i % 20}", "item": str(i), "taken": answer}
        shown = rng.permutation(options[:3]).tolist()
        made.append({**about, "shown": shown, **compared(rng, TAKES.get(answer))})
    return made


def outcomes(rng, ways):
    return [
        {"test": test, "bias_type": kind, "term": f"{kind[0]}{term}", "variants": list(ways),
         **compared(rng, bool(rng.integers(0, 2))),
         "outcomes": {way: [int(rng.integers(0, 2)), int(rng.integers(0, 3))] for way in ways}}
        for test, kind, term, _ in itertools.product(("intra", "inter"), ("gender", "race"), range(4), range(3))
    ]  # fmt: skip


def swapped_outcome(r):
    return {
        **r,
        "outcomes": {
            way: [1 - wins, beat] for way, (wins, beat) in r["outcomes"].items()
        },
        **swapped_lengths(r),
    }


def taking(rng, taken):
    return {"taken": taken, **compared(rng, {STEREOTYPE: True, ANTI: False}.get(taken))}


def choices(rng):
    labels = [STEREOTYPE, ANTI, UNRELATED, NONE, REFUSED]
    return [
        {"test": test, "bias_type": kind, "term": f"{kind[0]}{term}", "shown": tuple(rng.permutation(labels[:3])),
         **taking(rng, str(rng.choice(labels, p=[0.35, 0.25, 0.2, 0.1, 0.1])))}
        for test, kind, term, _ in itertools.product(("intra", "inter"), ("gender", "race"), range(4), range(4))
    ]  # fmt: skip


PAIRS = Case(
    pairs,
    ("pair",),
    swapped_pair,
    lambda r: {**r, "more": math.nan, "takes_first": None},
)
SPEAKERS = Case(
    speakers, ("sentence",),
    lambda r: {**r, "share": 1 - r["share"], "log_odds": -r["log_odds"], "mean_log_odds": -r["mean_log_odds"]},
    lambda r: {**r, **dict.fromkeys(("share", "log_odds", "mean_log_odds"), math.nan)},
)  # fmt: skip
TAKEN = Case(
    taken, ("sentence",),
    lambda r: {**r, "taken": other(r["taken"]), "shown": [*map(other, r["shown"])], **swapped_lengths(r)},
    lambda r: {**r, "taken": "none", "takes_first": None},
)  # fmt: skip
OUTCOMES, OUTCOMES_BY_WAY = (
    Case(lambda rng, ways=ways: outcomes(rng, ways), ("term",), swapped_outcome,
         lambda r: {**r, "outcomes": dict.fromkeys(r["outcomes"]), "takes_first": None})
    for ways in (("score",), VARIANTS)
)  # fmt: skip
CHOICES = Case(
    choices, ("term",), lambda r: {**r, "taken": other(r["taken"]), "shown": tuple(map(other, r["shown"])),
                                  **swapped_lengths(r)},
    lambda r: {**r, "taken": NONE, "takes_first": None},
)  # fmt: skip


# ------------------------------------------------------------------------------------------- occupations


def occupations(rng):
    made = []
    for i, t in itertools.product(range(8), range(4)):
        m, f, d = rng.dirichlet([2, 2, 1]).tolist()
        group = "female" if i > 3 else "male"
        made.append({"item": f"i{i}", "template": f"t{t}", "share": 7.0 + 12 * i, "group": group,
                     "mass": float(rng.uniform(0.2, 0.9)), "M": m, "F": f, "D": d})  # fmt: skip
    return made


def counted_occupations(rng):
    made = []
    for r in occupations(rng):
        m, f, d, lost = rng.multinomial(
            20, [0.9 * r["M"], 0.9 * r["F"], 0.9 * r["D"], 0.1]
        ).tolist()
        made.append(occugender_answers.prompt_record(
            r["item"], r["template"], r["share"], r["group"], counts={"M": m, "F": f, "D": d},
            refused=lost // 2, drawn=20,
        ))  # fmt: skip
    return made


def swapped_occupation(r):
    return {**r, "share": 100 - r["share"], "group": other(r["group"])}


def silent_occupation(r):
    nothing = (
        {"counts": dict.fromkeys("MFD", 0)} if "counts" in r else {"mass": math.nan}
    )
    return {**r, **dict.fromkeys("MFD", math.nan), **nothing}


OCCUPATIONS = Case(
    occupations, ("item", "template"), swapped_occupation, silent_occupation, once=True
)
COUNTED_OCCUPATIONS = Case(
    counted_occupations,
    ("item", "template"),
    swapped_occupation,
    silent_occupation,
    once=True,
)


# ------------------------------------------------------------------------------------------- texts


def texts(rng):
    made = []
    for (number, context), gender in itertools.product(
        enumerate("uvwxyz"), ("female", "male")
    ):
        where = ("occupation", "respect")[number % 2]
        labels = rng.choice(
            ["negative", "neutral", "positive"], size=24, p=rng.dirichlet([9, 12, 9])
        )
        own = [(str(label), [where], [f for f in FACETS if rng.random() < 0.3])
               for label in labels]  # fmt: skip
        made.append({
            "gender": gender, "texts": own, "repeated": False, "drawn": 27, "unfinished": int(rng.integers(1, 6)),
            "wordings": [f"{gender} {context} {k}" for k in range(24)], "has_other": False, "warning": "",
            "context": context, "context_set": where, "confusion": CONFUSION,
        })  # fmt: skip
    return made


def own_texts(rng):
    among = {
        "groups": ["a", "b"],
        "reference": "a",
        "facets": list(FACETS),
        "clusters": 6,
    }
    made = []
    for cluster, group in itertools.product("uvwxyz", "ab"):
        own = [(str(rng.choice(["negative", "neutral", "positive"])), [f for f in FACETS if rng.random() < 0.4])
               for _ in range(12)]  # fmt: skip
        made.append({"group": group, "cluster": cluster, "comparison": among, "texts": own, "drawn": 14,
                     "unfinished": 2, "wordings": [f"{group} {cluster} {k}" for k in range(12)], "has_other": False,
                     "warning": "", "unlabelled": ""})  # fmt: skip
    return made


def without_texts(r):
    return {**r, "texts": [], "wordings": [], "unfinished": 0}


TEXTS = Case(
    texts, ("context",), lambda r: {**r, "gender": other(r["gender"])}, without_texts
)
OWN_TEXTS = Case(
    own_texts, ("cluster",), lambda r: {**r, "group": other(r["group"])}, without_texts
)

CASES = {
    "occugender": OCCUPATIONS, "occugender_gen": COUNTED_OCCUPATIONS, "gg_bbq": QUESTIONS, "gg_bbq_prompts": QUESTIONS,
    "es_bbq": QUESTIONS, "kobbq": QUESTIONS, "kobbq_prompts": QUESTIONS, "mbbq": WITH_CONTROLS,
    "mbbq_prompts": WITH_CONTROLS,
    "stereoset": OUTCOMES, "stereoset_variants": OUTCOMES_BY_WAY, "stereoset_choices": CHOICES, "regard": TEXTS,
    "custom_prompts": OWN_TEXTS, "crows_pairs": PAIRS, "crows_pairs_parallel": PAIRS,
    "crows_pairs_choices": TAKEN, "eurogest": SPEAKERS, "eurogest_choices": TAKEN,
    "occugender_stories": COUNTED_OCCUPATIONS,
}  # fmt: skip
