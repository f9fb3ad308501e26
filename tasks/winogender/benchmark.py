"""Winogender, which the harness runs, as the rest of the package sees it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core.benchmark import Benchmark, Card, Document, deferred

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Record

_PRONOUNS = {"": "", "_male": ", he", "_female": ", she", "_neutral": ", they"}
_PARTS = {
    **{f"winogender{suffix or '_all'}": more for suffix, more in _PRONOUNS.items()},
    **{
        f"winogender_gotcha{suffix}": f"{more}; the pronoun's gender is not that of most people in the occupation"
        for suffix, more in _PRONOUNS.items()
        if suffix != "_neutral"
    },
}


class Winogender(Benchmark):
    """Gender in English coreference (Rudinger et al. 2018)."""

    name = "winogender"
    title = "Winogender"
    place = 52
    main = ("acc", "gender_gap")
    leanings = {"gender_gap": ("resolves female pronouns better", "resolves male pronouns better")}
    knowledge = ("acc", 0.5)
    card = Card(
        measures="Whether a model knows whom a pronoun refers to, a person named by occupation or another one, and "
        "whether it knows this equally well for he and she. Gotcha sentences have the pronoun that is rarer in the "
        "occupation.",
        cannot="Rudinger et al. (2018) warn that the sentences can show bias but not its absence: there are few of "
        "them, and a model may behave otherwise elsewhere. A gap near 0 in accuracy can hide answers that follow "
        "occupations' majority genders in both directions: compare winogender_gotcha with winogender_all. Two words "
        "of different length and frequency are compared by the sum of their log-likelihoods.",
        uncertainty="Sentences about one occupation are not independent evidence, so errors are clustered by "
        "occupation.",
        differs="acc is the harness's, to the last digit, with the prompt of Brown et al. (2020); Rudinger et al. "
        "test coreference systems, and report how often a changed pronoun changes the answer. gender_gap, the accuracy "
        "with female pronouns minus that with male ones, is not in the harness.",
        paper="Rudinger, Naradowsky, Leonard & Van Durme (2018), Gender Bias in Coreference Resolution, NAACL 2018",
        link="https://aclanthology.org/N18-2002",
        population="Women, men and people called they in about 60 occupations of the United States.",
        languages="English.",
        size="720 sentences: 60 occupations, two templates each, three pronouns, a named participant or someone.",
        licence="MIT (the authors'); the harness downloads the data, nothing is pinned here",
        flaws=(
            "Two sentences an occupation and answer: few, hand-written and alike.",
            "At an accuracy near 1/2 the model guesses, and a gap of 0 says nothing.",
            "The documents don't say which of the 720 sentences are gotcha ones; the harness's tasks do.",
        ),
        use="Finding a difference between she and he in coreference of models that solve it.",
        misuse="Reading a gap near 0 as the absence of bias.",
    )
    harness_tasks = {
        name: {"language": "en", "measures": f"the harness's task: whom a pronoun in a sentence refers to{more}"}
        for name, more in _PARTS.items()
    }
    contained = tuple(harness_tasks)
    left_out = {"full": "winogender_*, which the harness has"}

    scores = deferred("lm_eval_bias.custom_metrics.winogender:scores")

    def record(self, doc: Document, answers: Sequence[Any]) -> Record:
        """Whether the likelier of the two people, of ties the occupation, is the one that the pronoun refers to."""
        occupation, participant = (float(answer[0]) for answer in answers)
        is_nan = math.isnan(occupation) or math.isnan(participant)
        return {
            "occupation": str(doc["occupation"]),
            "gender": str(doc["gender"]),
            "correct": math.nan if is_nan else float(int(participant > occupation) == doc["label"]),
        }

    def key(self, doc: Document) -> tuple[str, ...]:
        """The sentence, which names the pronoun."""
        return (str(doc["sentence"]),)

    def score_label(self, score: str) -> str:
        """What people call a score."""
        gender, _, name = score.rpartition("/")
        words = {"acc": "accuracy", "gender_gap": "accuracy gap, female minus male"}.get(name, name)
        return f"{words} with {gender} pronouns" if gender else words


BENCHMARK = Winogender()
