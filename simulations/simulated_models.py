"""Pairs of simulated models with the same known true scores: what each answers to a benchmark's items, as its records.

A maker's ``truth`` has its scores over all occupations, templates, target terms or prompts that there could be;
``pair`` draws two models' records. Effects of these clusters are drawn anew each time: some that both models share, and
some of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
from scipy import optimize, special, stats

Document = Mapping[str, Any]
Records = list[Any]
Knobs = Mapping[str, float]


class Maker(Protocol):
    """What draws two models."""

    truth: dict[str, float]

    def pair(self, rng: np.random.Generator) -> tuple[Records, Records]: ...


def unlike(maker: Any) -> Any:
    """Let two models share no effects: their own ones have the spread of both together."""
    for name in maker.spreads:
        setattr(maker, name, (0.0, math.hypot(*getattr(maker, name))))
    return maker


@dataclass(frozen=True)
class Shape:
    """The distribution of clusters' effects, with mean 0 and standard deviation 1.

    Attributes:
        name: ``normal``, ``skewed`` (exponential) or ``heavy`` (Student's t with three degrees of freedom).
    """

    name: str = "normal"

    def draw(self, rng: np.random.Generator, count: Any) -> Any:
        if self.name == "skewed":
            return rng.standard_exponential(count) - 1
        if self.name == "heavy":
            return rng.standard_t(3, count) / math.sqrt(3)
        return rng.standard_normal(count)

    def centre(self, share: Any, *spreads: Any, normal: float = 0.0) -> Any:
        """Of a probit model: effects of this shape and spreads, and a normal one, give that expected share."""
        if self.name == "normal":
            return special.ndtri(share) * np.sqrt(
                1 + normal**2 + sum(spread**2 for spread in spreads)
            )
        return np.vectorize(lambda own: _centre_of(self, float(own), spreads, normal))(
            share
        )


@cache
def _centre_of(
    shape: Shape, share: float, spreads: tuple[float, ...], normal: float
) -> float:
    """Solve for the centre, with effects at quasi-random points."""
    points = stats.qmc.Sobol(len(spreads), rng=0).random_base2(14)
    quantiles = (
        -np.log1p(-points) - 1
        if shape.name == "skewed"
        else special.stdtrit(3, points) / math.sqrt(3)
    )
    effect = np.asarray(quantiles @ np.array(spreads))
    scale = math.hypot(1.0, normal)
    return float(
        optimize.brentq(
            lambda c: special.ndtr((c + effect) / scale).mean() - share, -20.0, 20.0
        )
    )


NORMAL = Shape()


def places(labels: Sequence[object]) -> tuple[int, Any]:
    """The number of different labels, and each one's place among them."""
    names, at = np.unique([str(label) for label in labels], return_inverse=True)
    return len(names), at


# ------------------------------------------------------------------ occupations x templates


class Occupations:
    """OccuGender: 20 occupations in each of two strata x templates, with effects of both, and of their cells."""

    gaps = {"female": 0.4, "male": -0.1}  # P~ of the stereotyped minus the other gender
    coverage = 0.4
    labour = {
        "female": 80.0,
        "male": 20.0,
    }  # mean percentage of women in the occupations that a gender dominates
    spread = 10.0  # its standard deviation among them
    diverse = 0.1  # P~_d, so that P~_f + P~_m is the rest
    # standard deviations of occupations, templates and the mass of both (shared by the models, their own), of cells
    occupation, template, mass, cell = (0.10, 0.06), (0.08, 0.05), (0.05, 0.03), 0.10
    spreads = ("occupation", "template", "mass")

    def __init__(self, templates: int, shape: Shape = NORMAL) -> None:
        self.templates, self.shape = templates, shape
        self.strata = ["female"] * 20 + ["male"] * 20

    @property
    def truth(self) -> dict[str, float]:
        f, m = self.gaps.values()
        # over endlessly many occupations in these strata, each with as many templates: P~_f is half a gap
        occupation = math.hypot(*self.occupation) ** 2 + self.cell**2 / self.templates
        share, labour = (f + m) / 4, (self.labour["female"] - self.labour["male"]) / 2
        wide = math.hypot(share, math.sqrt(occupation) / 2) * math.hypot(
            labour, self.spread
        )
        return {
            "stereotype_gap": (f + m) / 2,
            "female_dominated_F": 50 * (1 - self.diverse + f),
            "male_dominated_M": 50 * (1 - self.diverse + m),
            "coverage": 100 * self.coverage,
            "labour_pearson": share * labour / wide,
        }

    def _share(self, gap: Any, sign: Any) -> Any:
        """The share of women among the gendered words."""
        share = 0.5 + sign * gap / (1 - self.diverse) / 2
        return np.clip(share, 1e-6, 1 - 1e-6)

    def _effects(self, rng: np.random.Generator, rows: float, columns: float) -> Any:
        return rows * self.shape.draw(rng, (40, 1)) + columns * self.shape.draw(
            rng, (1, self.templates)
        )

    def pair(self, rng: np.random.Generator) -> tuple[Records, Records]:
        shares = np.array(
            [self.labour[group] for group in self.strata]
        ) + self.spread * rng.standard_normal(40)
        gaps = self._effects(rng, self.occupation[0], self.template[0])
        masses = self._effects(rng, self.mass[0], self.mass[0])
        return self._model(rng, shares, gaps, masses), self._model(
            rng, shares, gaps, masses
        )

    def _model(
        self, rng: np.random.Generator, shares: Any, gaps: Any, masses: Any
    ) -> Records:
        from lm_eval_bias.custom_metrics.occugender import prompt_record

        noise = self.cell * rng.standard_normal(gaps.shape)
        mean = np.array([[self.gaps[group]] for group in self.strata])
        own = self._effects(rng, self.occupation[1], self.template[1])
        gap = mean + gaps + own + noise
        mass = (
            self.coverage
            + masses
            + self._effects(rng, self.mass[1], self.mass[1])
            + 0.05 * rng.standard_normal(gaps.shape)
        )
        mass = np.clip(mass, 0.01, 0.99)
        sign = np.array([[1 if group == "female" else -1] for group in self.strata])
        women = (1 - self.diverse) * self._share(gap, sign)
        male, female = np.log(mass * (1 - self.diverse - women)), np.log(mass * women)
        diverse = np.log(mass * self.diverse)
        return [
            prompt_record(f"{i:02d}", f"{t:02d}", float(shares[i]), self.strata[i],
                          male=float(male[i, t]), female=float(female[i, t]), diverse=float(diverse[i, t]))
            for i, t in np.ndindex(gaps.shape)
        ]  # fmt: skip


class Stereotyped(Occupations):
    """OccuGender with a model that stereotypes strongly: effects on the scale of logits."""

    diverse = 0.002

    def __init__(self, templates: int, share: float, shape: Shape = NORMAL) -> None:
        super().__init__(templates, shape)
        self.logit = math.log(share / (1 - share))

    @cached_property
    def truth(self) -> dict[str, float]:
        sizes = (*self.occupation, *self.template, self.cell)
        draws = [
            size * self.shape.draw(np.random.default_rng(k), 10**6)
            for k, size in enumerate(sizes)
        ]
        share = 100 * (1 - self.diverse) * float(np.mean(self._women(sum(draws))))
        gap = 2 * share / 100 - (1 - self.diverse)
        values = {"stereotype_gap": gap, "coverage": 100 * self.coverage}
        if self.logit == 0:  # with a bias it isn't known
            values["labour_pearson"] = 0.0
        return values | dict.fromkeys(("female_dominated_F", "male_dominated_M"), share)

    def _women(self, effects: Any) -> Any:
        return 1 / (1 + np.exp(-self.logit - 10 * effects))

    def _share(self, gap: Any, sign: Any) -> Any:
        mean = np.array([[self.gaps[group]] for group in self.strata])
        stereotyped = self._women(gap - mean)
        return np.clip(np.where(sign > 0, stereotyped, 1 - stereotyped), 1e-6, 1 - 1e-6)


class Diverse(Occupations):
    """OccuGender with a model whose share of diverse words is small and differs, on the scale of logits."""

    # standard deviations as above
    often, word = (0.6, 0.5), 0.5
    spreads = ()

    @cached_property
    def truth(self) -> dict[str, float]:
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        spread = math.sqrt(2 * sum(s**2 for s in self.often) + self.word**2)
        shares = special.expit(special.logit(self.diverse) + spread * nodes)
        share = 100 * float(weights @ shares / weights.sum())
        return dict.fromkeys(("female_dominated_D", "male_dominated_D"), share)

    def pair(self, rng: np.random.Generator) -> tuple[Records, Records]:
        shared = self._effects(rng, self.often[0], self.often[0])
        return self._of(rng, shared), self._of(rng, shared)

    def _of(self, rng: np.random.Generator, shared: Any) -> Records:
        from lm_eval_bias.custom_metrics.occugender import prompt_record

        def varied(shared: Any, spread: float) -> Any:
            own = self._effects(rng, spread, spread)
            return shared + own + self.word * rng.standard_normal((40, self.templates))

        diverse = special.expit(
            varied(special.logit(self.diverse) + shared, self.often[1])
        )
        women = special.expit(varied(0.0, self.often[0])) * (1 - diverse)
        mass = special.expit(varied(0.0, self.often[0]))
        words = {"diverse": diverse, "female": women, "male": 1 - diverse - women}
        logs = {word: np.log(mass * share) for word, share in words.items()}
        return [
            prompt_record(
                f"{i:02d}",
                f"{t:02d}",
                50.0,
                self.strata[i],
                **{word: float(log[i, t]) for word, log in logs.items()},
            )
            for i, t in np.ndindex(mass.shape)
        ]


class Answers(Occupations):
    """The same models, asked several times: an answer is read with the probability of the words (``coverage``)."""

    def __init__(self, templates: int, samples: int) -> None:
        super().__init__(templates)
        self.samples = samples

    @property
    def truth(self) -> dict[str, float]:
        values = super().truth
        shares = [
            (1 - self.diverse + gap) / 2
            for gap in (self.gaps["female"], -self.gaps["male"])
        ]
        drawn = sum(share * (1 - share) / 2 for share in shares)
        drawn /= (
            self.templates * self.samples * self.coverage
        )  # what the draw adds to an occupation's variance of P~_f
        occupation = math.hypot(*self.occupation) ** 2 + self.cell**2 / self.templates
        before = ((shares[0] - shares[1]) / 2) ** 2 + occupation / 4
        pearson = values["labour_pearson"] * math.sqrt(before / (before + drawn))
        return {**values, "labour_pearson": pearson, "unanswered": 1 - self.coverage}

    def _model(
        self, rng: np.random.Generator, shares: Any, gaps: Any, masses: Any
    ) -> Records:
        from lm_eval_bias.custom_metrics.occugender_answers import prompt_record

        made = []
        for r in super()._model(rng, shares, gaps, masses):
            read = int(rng.binomial(self.samples, r["mass"]))
            counts = dict(
                zip(
                    "MFD",
                    rng.multinomial(read, [r["M"], r["F"], r["D"]]).tolist(),
                    strict=True,
                )
            )
            refused = int(rng.binomial(self.samples - read, 0.5))
            made.append(
                prompt_record(r["item"], r["template"], r["share"], r["group"],
                              counts=counts, refused=refused, drawn=self.samples)
            )  # fmt: skip
        return made


# ------------------------------------------------------------------ questions with two persons and "unknown"


class Questions:
    """The BBQ family: items in their templates, from the released documents.

    Templates have effects on answering rightly, on answering along the stereotype where a context tells the answer, and
    on whom a guess names; items on answering rightly. Control items share their template's effects and have no bias.
    """

    levels = {  # accuracies without and with the needed information
        "low": (0.1, 0.4),
        "middle": (0.45, 0.6),
        "high": (0.85, 0.9),
        "ceiling": (0.97, 0.985),
    }
    spreads = ("right", "lean", "along")
    # standard deviations of templates (shared by the models, their own) and of items
    right, lean, along, item = (0.3, 0.25), (0.2, 0.3), (0.15, 0.15), 0.4

    def __init__(
        self,
        docs: Sequence[Document],
        level: str = "middle",
        shape: Shape = NORMAL,
        growing: bool = False,
    ) -> None:
        """Models of these documents; ``growing`` templates' effects are in proportion to their number of items."""
        from lm_eval_bias.core import registry

        amb, disamb = self.levels[level]
        biases = {
            "diff_bias_amb": 0.15 * (1 - amb),
            "diff_bias_disamb": 0.25 * (1 - disamb),
        }
        self.knobs = {"acc_amb": amb, "acc_disamb": disamb, **biases}
        benchmark = registry.get(str(docs[0]["benchmark"]))
        options = len(benchmark.hooks.continuations(docs[0]))
        self.truth = {}
        for name in benchmark.main:
            plain = name.removeprefix("contrast/").removesuffix("/mean")
            no_bias = name.startswith("contrast/acc")
            self.truth[name] = 0.0 if no_bias else self.knobs[plain]
        self.ambiguous = np.array([doc["context_type"] == "ambiguous" for doc in docs])
        self.biased = np.array([doc["label"] == doc["biased_choice"] for doc in docs])
        self.leans = np.array([0.0 if doc.get("control") else 1.0 for doc in docs])
        self.templates, self.template = places([doc["template"] for doc in docs])
        counts, self.shape = np.bincount(self.template), shape
        self.grown = (counts / counts.mean())[self.template] if growing else 1.0
        self.items, self.item_at = places(
            [(doc["context_type"], doc["item"]) for doc in docs]
        )
        self.answers = []  # by item its records if answered rightly, wrongly along the stereotype, wrongly against it
        for doc in docs:
            unknown = doc["groups"].index("unknown")
            counter = 3 - unknown - doc["biased_choice"]
            other = (
                counter
                if doc["label"] == doc["biased_choice"]
                else doc["biased_choice"]
            )
            wrong = (
                (doc["biased_choice"], counter)
                if doc["context_type"] == "ambiguous"
                else (other, other)
            )
            answered = []
            for choice in (doc["label"], *wrong):
                answered.append(
                    benchmark.record(
                        doc, [(-1.0 - (c != choice), False) for c in range(options)]
                    )
                )
            self.answers.append(answered)

    def _effects(self, rng: np.random.Generator, spread: float) -> Any:
        return (
            self.grown * (spread * self.shape.draw(rng, self.templates))[self.template]
        )

    def _centre(self, share: Any, *spreads: float, normal: float = 0.0) -> Any:
        return self.shape.centre(
            share, *(self.grown * spread for spread in spreads), normal=normal
        )

    def pair(self, rng: np.random.Generator) -> tuple[Records, Records]:
        shared = [
            self._effects(rng, spreads[0])
            for spreads in (self.right, self.lean, self.along)
        ]
        item = self.item * rng.standard_normal(self.items)[self.item_at]
        told = ~self.ambiguous & (self.leans > 0)
        along = (self.biased & told).sum() / told.sum()
        sign = np.where(self.biased, 1.0, -1.0)
        acc, bias = (
            self.knobs["acc_disamb"],
            self.knobs["diff_bias_disamb"] * self.leans,
        )
        share = np.where(self.biased, acc + (1 - along) * bias, acc - along * bias)
        towards, against = (
            self._centre(
                share,
                *self.right,
                *(way * spread for spread in self.along),
                normal=self.item,
            )
            for way in (1, -1)
        )
        open_ = self._centre(self.knobs["acc_amb"], *self.right, normal=self.item)
        middle = np.where(
            self.ambiguous, open_, np.where(self.biased, towards, against)
        )
        guess = (
            1 + self.leans * self.knobs["diff_bias_amb"] / (1 - self.knobs["acc_amb"])
        ) / 2
        drawn = []
        for _ in range(2):
            right, lean, stereotype = (
                both + self._effects(rng, spreads[1])
                for both, spreads in zip(
                    shared, (self.right, self.lean, self.along), strict=True
                )
            )
            certain = (
                middle + right + item + np.where(self.ambiguous, 0.0, sign * stereotype)
            )
            names = self._centre(guess, *self.lean) + lean
            is_right = certain + rng.standard_normal(len(item)) > 0
            first = names + rng.standard_normal(len(item)) > 0
            state = np.where(is_right, 0, np.where(first, 1, 2)).tolist()
            drawn.append(
                [answers[s] for answers, s in zip(self.answers, state, strict=True)]
            )
        return drawn[0], drawn[1]


class Stereotyping(Questions):
    """The BBQ family: always right where a context tells the answer; else "unknown", or the stereotype with a share.

    The shares of templates have a beta distribution with this mean and an intraclass correlation of 0.3. Models share
    nothing.
    """

    spreads = ()
    alike = 0.3

    def __init__(self, docs: Sequence[Document], share: float) -> None:
        super().__init__(docs)
        self.share = share
        known = {"acc_amb": 1 - share, "acc_disamb": 1.0}
        biases = {"diff_bias_amb": share, "diff_bias_disamb": 0.0}
        self.truth = {name: (known | biases)[name] for name in self.truth}

    def pair(self, rng: np.random.Generator) -> tuple[Records, Records]:
        return self._model(rng), self._model(rng)

    def _model(self, rng: np.random.Generator) -> Records:
        spread = (1 - self.alike) / self.alike
        own = rng.beta(self.share * spread, (1 - self.share) * spread, self.templates)
        leans = (
            self.ambiguous & (rng.random(len(self.template)) < own[self.template])
        ).tolist()
        return [
            answers[lean] for answers, lean in zip(self.answers, leans, strict=True)
        ]


# ------------------------------------------------------------------ a stereotype, an anti-stereotype, an unrelated one


class Candidates:
    """StereoSet: items in their target terms, from the released documents, with candidates that are scored apart.

    Terms have effects on SS and LMS, items on SS.
    """

    # standard deviations: of terms (shared, own) and items
    term, hard, item = (0.25, 0.25), (0.3, 0.2), 0.5
    spreads = ("term", "hard")
    levels = {  # LMS and SS
        "low": (60.0, 50.0),
        "middle": (86.0, 58.0),
        "high": (95.0, 80.0),
        "ceiling": (99.5, 98.0),
    }
    labels = ("stereotype", "anti-stereotype", "unrelated")

    def __init__(
        self,
        docs: Sequence[Document],
        level: str = "middle",
        shape: Shape = NORMAL,
    ) -> None:
        from lm_eval_bias.core import registry

        self.benchmark = registry.get(str(docs[0]["benchmark"]))
        self.shape, (self.lms, self.ss) = shape, self.levels[level]
        self.terms, self.at = places([doc["term"] for doc in docs])
        self.answers = [
            [self.record(doc, outcome) for outcome in range(6)] for doc in docs
        ]

    @property
    def truth(self) -> dict[str, float]:
        lms, ss, icat = self.benchmark.main
        return {
            lms: self.lms,
            ss: self.ss,
            icat: self.lms * min(self.ss, 100 - self.ss) / 50,
        }

    def record(self, doc: Document, outcome: int) -> Any:
        """By which the stereotype wins (from 3 on) or not, and as many as ``outcome % 3`` beat the unrelated one."""
        stereo, anti = (-1.0, -2.0) if outcome >= 3 else (-2.0, -1.0)
        value = dict(zip(self.labels, (stereo, anti, -0.5 - outcome % 3), strict=True))
        scores = [value[candidate["label"]] for candidate in doc["candidates"]]
        return self.benchmark.record(
            doc,
            [(0.0, 1, s, 1, 0.0, 1) if "variants" in doc else (s, 1) for s in scores],
        )

    def pair(self, rng: np.random.Generator) -> tuple[Records, Records]:
        items = len(self.at)
        shared = self.term[0] * self.shape.draw(rng, self.terms)[
            self.at
        ] + self.item * rng.standard_normal(items)
        ease = self.hard[0] * self.shape.draw(rng, self.terms)
        middle = self.shape.centre(self.ss / 100, *self.term, normal=self.item) + shared
        drawn = []
        for _ in range(2):
            own = middle + self.term[1] * self.shape.draw(rng, self.terms)[self.at]
            pro = own + rng.standard_normal(items) > 0
            sense = self.shape.centre(self.lms / 100, *self.hard) + ease
            sense = (sense + self.hard[1] * self.shape.draw(rng, self.terms))[self.at]
            outcome = self.outcomes(rng, pro, sense).tolist()
            drawn.append(
                [answers[o] for answers, o in zip(self.answers, outcome, strict=True)]
            )
        return drawn[0], drawn[1]

    def outcomes(self, rng: np.random.Generator, pro: Any, sense: Any) -> Any:
        """Of items, from whether the stereotype is preferred and how far an item makes sense to the model."""
        return 3 * pro + (sense + rng.standard_normal((2, len(sense))) > 0).sum(axis=0)


class Choices(Candidates):
    """StereoSet as a choice of one of the three candidates."""

    @property
    def truth(self) -> dict[str, float]:
        ss = 50 + (self.ss - 50) * self.lms / 100
        icat = self.lms * min(self.ss, 100 - self.ss) / 50
        return {"choice_lms": self.lms, "choice_ss": ss, "choice_icat": icat}

    def record(self, doc: Document, outcome: int) -> Any:
        shown = [doc["candidates"][i]["label"] for i in doc["order"]]
        return self.benchmark.record(
            doc, ["ABC"[shown.index(self.labels[outcome % 3])]]
        )

    def outcomes(self, rng: np.random.Generator, pro: Any, sense: Any) -> Any:
        return np.where(
            sense + rng.standard_normal(len(sense)) > 0, np.where(pro, 0, 1), 2
        )


# ------------------------------------------------------------------ sentences and pairs, each on its own


class Sentences:
    """EuroGEST: how far each sentence is given to men, with effects of the sentence.

    Stereotypes of men are given to them by ``gap`` more on the scale of logits, and stereotypes differ in steps.
    """

    # standard deviations of sentences (shared by the models, their own)
    sentence = (0.5, 0.4)
    spreads = ("sentence",)
    steps = 0.05
    gaps = {"low": 0.0, "middle": 0.2, "high": 1.0, "near an end": 0.2}
    end = -4.0  # the logit of a share near an end

    def __init__(
        self, docs: Sequence[Document], level: str = "middle", shape: Shape = NORMAL
    ) -> None:
        from lm_eval_bias.custom_metrics.eurogest import MALE, STEREOTYPES

        self.docs, self.shape = docs, shape
        self.sentences, self.at = places([doc["english"] for doc in docs])
        names = [name for name, _ in STEREOTYPES]
        self.stereotype = np.array([names.index(doc["stereotype"]) for doc in docs])
        self.of_men = np.array([group == MALE for _, group in STEREOTYPES])
        steps = self.steps * np.arange(len(names))
        start = self.end if level == "near an end" else 0.0
        self.logits = start + steps + np.where(self.of_men, self.gaps[level], 0.0)

    @cached_property
    def truth(self) -> dict[str, float]:
        shared, own = (
            spread * self.shape.draw(np.random.default_rng(k), 10**6)
            for k, spread in enumerate(self.sentence)
        )
        means = np.array(
            [special.expit(at + shared + own).mean() for at in self.logits]
        )
        male, female = (means[of].mean() for of in (self.of_men, ~self.of_men))
        odds = [self.logits[of].mean() for of in (self.of_men, ~self.of_men)]
        return {
            "stereotype_gap": male - female,
            "log_odds_gap": odds[0] - odds[1],
            "masculine_share": (male + female) / 2,
            "masculine_share_female": female,
        }

    def pair(self, rng: np.random.Generator) -> tuple[Records, Records]:
        from lm_eval_bias.core import registry

        benchmark = registry.get(str(self.docs[0]["benchmark"]))
        shared = self.sentence[0] * self.shape.draw(rng, self.sentences)
        drawn: list[Records] = []
        for _ in range(2):
            own = self.sentence[1] * self.shape.draw(rng, self.sentences)
            leans = self.leans(rng, (shared + own)[self.at]).tolist()
            drawn.append(
                [
                    benchmark.record(doc, [(lean, 1), (0.0, 1)])
                    for doc, lean in zip(self.docs, leans, strict=True)
                ]
            )
        return drawn[0], drawn[1]

    def leans(self, rng: np.random.Generator, effects: Any) -> Any:
        """How much likelier the first text of each item is, on the scale of logits."""
        return self.logits[self.stereotype] + effects


class Pairs(Sentences):
    """CrowS-Pairs: which sentence of each pair is likelier."""

    # the stereotyping one, shares of pairs
    levels = {"low": 0.5, "middle": 0.58, "high": 0.8, "ceiling": 0.98}

    def __init__(
        self, docs: Sequence[Document], level: str = "middle", shape: Shape = NORMAL
    ) -> None:
        self.docs, self.shape, self.share = docs, shape, self.levels[level]
        self.sentences, self.at = places([doc["frame"] for doc in docs])

    @cached_property
    def truth(self) -> dict[str, float]:
        return {"stereotype_score": 100 * self.share}

    def leans(self, rng: np.random.Generator, effects: Any) -> Any:
        centre = self.shape.centre(self.share, *self.sentence)
        return centre + effects + rng.standard_normal(len(effects))


# ------------------------------------------------------------------ sampled texts


class Texts:
    """Regard: 2 genders x 10 contexts with 100 texts each. Contexts have effects on each share, and on each gender's.

    The gaps of two context sets lie as far above and below the mean of both.
    """

    facets = ("caregiving", "sexualization", "perpetration")
    men = {
        "negative": 0.30,
        "positive": 0.20,
        "caregiving": 0.06,
        "sexualization": 0.02,
        "perpetration": 0.08,
    }
    gaps = {
        "negative": -0.05,
        "positive": 0.05,
        "caregiving": 0.08,
        "sexualization": 0.02,
        "perpetration": -0.04,
    }
    steps = {
        "negative": -0.10,
        "positive": 0.10,
        "caregiving": 0.05,
        "sexualization": 0.01,
        "perpetration": 0.03,
    }
    context, apart = (
        (0.6, 0.2),
        (0.15, 0.2),
    )  # standard deviations: shared by the models, their own
    spreads = ("context", "apart")
    texts = 100

    def __init__(self, often: int = 1, shape: Shape = NORMAL) -> None:
        """Models in whose texts facets are ``often`` times as frequent."""
        from lm_eval_bias.tasks.regard import hooks, regard_texts

        self.shape = shape
        self.men, self.gaps, self.steps = (
            {k: v * (often if k in self.facets else 1) for k, v in shares.items()}
            for shares in (self.men, self.gaps, self.steps)
        )
        self.truth = {}
        for kind, gap in self.gaps.items():
            self.truth[f"{kind}/gap" if kind in self.facets else f"all/{kind}_gap"] = (
                gap
            )
        fields = {"language": "de", "has_other": False, "classifier": {"warning": ""}}
        prompts = sorted(
            regard_texts.prompts("de"),
            key=lambda prompt: (prompt["set"], prompt["context"]),
        )
        self.bases = {"female": [], "male": []}
        for prompt in prompts:
            doc = {**prompt, **fields}
            drawn = {"drawn": self.texts, "repeated": False, "unfinished": 0}
            record = {**hooks.record(doc, [[(doc["prompt"], "neutral")]]), **drawn}
            record["wordings"] = [str(i) for i in range(self.texts)]
            self.bases[prompt["gender"]].append(record)
        self.sets = [
            prompt["set"] for prompt in prompts if prompt["gender"] == "female"
        ]
        self.step = np.array(
            [1.0 if name == self.sets[0] else -1.0 for name in self.sets]
        )

    def _effects(self, rng: np.random.Generator, spread: float) -> dict[str, Any]:
        return {
            kind: spread * self.shape.draw(rng, len(self.sets)) for kind in self.men
        }

    def pair(self, rng: np.random.Generator) -> tuple[Records, Records]:
        shared = self._effects(rng, self.context[0])
        by_gender = {gender: self._effects(rng, self.apart[0]) for gender in self.bases}
        drawn = []
        for _ in range(2):
            own = self._effects(rng, self.context[1])
            records: Records = []
            for gender, bases in self.bases.items():
                apart = self._effects(rng, self.apart[1])
                hit = {}
                for kind, share in self._shares(gender).items():
                    centre = self.shape.centre(share, *self.context, *self.apart)
                    effects = (
                        shared[kind] + own[kind] + by_gender[gender][kind] + apart[kind]
                    )
                    p = special.ndtr(centre + effects)
                    hit[kind] = rng.random((len(self.sets), self.texts)) < p[:, None]
                regard = np.where(
                    hit["positive"],
                    "positive",
                    np.where(hit["negative"], "negative", "neutral"),
                )
                for i, base in enumerate(bases):
                    texts = []
                    for n in range(self.texts):
                        found = [facet for facet in self.facets if hit[facet][i, n]]
                        texts.append((str(regard[i, n]), [self.sets[i]], found))
                    records.append({**base, "texts": texts})
            drawn.append(records)
        return drawn[0], drawn[1]

    def _shares(self, gender: str) -> dict[str, Any]:
        """By kind the expected share in each context; negative is a part of what isn't positive."""
        shares = {}
        for kind, men in self.men.items():
            women = men + self.gaps[kind] + self.step * self.steps[kind]
            shares[kind] = women if gender == "female" else men + 0 * self.step
        shares["negative"] = shares["negative"] / (1 - shares["positive"])
        return shares


class OwnPrompts:
    """A user's custom prompts: two groups without a difference, 20 texts a prompt.

    Clusters differ in their shares, and so, less, do prompts within clusters, on a logistic scale.
    """

    spreads = ()
    texts = 20

    def __init__(self, clusters: int, uneven: bool = False) -> None:
        """Models of so many clusters.

        ``uneven`` ones lack a group in every fourth cluster and have two prompts of the other where negative texts are
        frequent.
        """
        self.clusters, self.uneven = clusters, uneven
        measures = ("negative", "positive", "caregiving")
        self.truth = {f"{measure}/gap": 0.0 for measure in measures}

    def pair(self, rng: np.random.Generator) -> tuple[Records, Records]:
        return self._model(rng), self._model(rng)

    def _model(self, rng: np.random.Generator) -> Records:
        comparison = {
            "groups": ["g0", "g1"],
            "reference": "g0",
            "facets": ["caregiving"],
            "clusters": self.clusters,
        }
        made: Records = []
        for cluster in range(self.clusters):
            negative = rng.normal(-0.5, 0.8)
            second = not (self.uneven and cluster % 4 == 0)
            first = 2 if self.uneven and negative > -0.5 else 1
            for group in ["g0"] * first + ["g1"] * second:
                record = {
                    "group": group, "cluster": str(cluster), "comparison": comparison, "drawn": self.texts,
                    "texts": self._texts(rng, negative), "unfinished": 0, "has_other": False,
                    "wordings": [f"{len(made)} {n}" for n in range(self.texts)], "warning": "", "unlabelled": "",
                }  # fmt: skip
                made.append(record)
        return made

    def _texts(self, rng: np.random.Generator, negative: float) -> list[Any]:
        share = special.expit([negative + rng.normal(0, 0.5), rng.normal(-3, 0.5)])
        is_negative, is_rare = rng.random((2, self.texts)) < share[:, None]
        regard = np.where(is_negative, "negative", "positive").tolist()
        facets = [["caregiving"] * rare for rare in is_rare.tolist()]
        return list(zip(regard, facets, strict=True))
