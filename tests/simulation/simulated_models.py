"""Pairs of simulated models whose true scores are known: what each answers to a benchmark's items, as its records.

A maker's ``truth`` says from a model's knobs what its scores are over all occupations, templates, target terms or
prompts that there could be; ``pair`` draws two models' records. Effects of these clusters are drawn anew each time:
some that both models share, and some of their own, times the knob ``own``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

Array = NDArray[np.float64]
Rng = np.random.Generator
Knobs = Mapping[str, float]
Records = list[Mapping[str, Any]]


@dataclass
class Drawn:
    """Two models' records, and the first one's true scores for the very prompts that were drawn, where they matter."""

    records: tuple[Records, Records]
    given: dict[str, float] = field(default_factory=dict)


class Maker(Protocol):
    """What draws two models."""

    def truth(self, knobs: Knobs) -> dict[str, float]: ...

    def pair(self, rng: Rng, a: Knobs, b: Knobs) -> Drawn: ...


def centre(share: Array | float, *spreads: Array | float) -> Any:
    """The centre of a probit model with independent normal effects of these spreads and that expected share."""
    assert ((0 < np.asarray(share)) & (np.asarray(share) < 1)).all(), "knobs that give shares outside 0..1"
    return special.ndtri(share) * np.sqrt(1 + sum(spread**2 for spread in spreads))


@dataclass(frozen=True)
class Shape:
    """The distribution of clusters' effects, with mean 0 and standard deviation 1.

    Attributes:
        name: ``normal``, ``skewed`` (exponential) or ``heavy`` (Student's t with three degrees of freedom).
    """

    name: str = "normal"

    def draw(self, rng: Rng, count: int | tuple[int, ...]) -> Array:
        if self.name == "skewed":
            return rng.standard_exponential(count) - 1
        if self.name == "heavy":
            return rng.standard_t(3, count) / math.sqrt(3)
        return rng.standard_normal(count)

    def centre(self, share: Array | float, *spreads: float | Array, normal: float = 0.0) -> Any:
        """As :func:`centre`, for effects of this shape, and normal ones with the spread ``normal``."""
        if self.name == "normal":
            return centre(share, *spreads, normal)
        wanted = np.asarray(share, dtype=float)
        values, at = np.unique(wanted, return_inverse=True)
        return np.array([_centre_of(self, value, spreads, normal) for value in values])[at].reshape(wanted.shape)


@cache
def _centre_of(shape: Shape, share: float, spreads: tuple[float, ...], normal: float) -> float:
    """Solve for the centre, with effects at quasi-random points."""
    points = stats.qmc.Sobol(len(spreads), rng=0).random_base2(14)
    quantiles = -np.log1p(-points) - 1 if shape.name == "skewed" else special.stdtrit(3, points) / math.sqrt(3)
    effect = np.asarray(quantiles @ np.array(spreads))
    scale = math.hypot(1.0, normal)
    return float(optimize.brentq(lambda c: special.ndtr((c + effect) / scale).mean() - share, -20.0, 20.0))


NORMAL = Shape()


def places(labels: Sequence[object]) -> tuple[list[Any], NDArray[np.intp]]:
    """The different labels, and each one's place among them."""
    names, at = np.unique(np.array([str(label) for label in labels]), return_inverse=True)
    return names.tolist(), at


# ------------------------------------------------------------------ occupations x templates

_SHARES = {"female": 80.0, "male": 20.0}  # mean percentage of women in the occupations that a gender dominates
_SPREAD = 10.0  # its standard deviation among them
_DIVERSE = 0.1  # P~_d, so that P~_f + P~_m is the rest


@dataclass(frozen=True)
class Occupations:
    """OccuGender: occupations in two strata x templates, with effects of both, and of their cells, on gap and mass.

    Knobs: ``female_gap`` and ``male_gap``, P~ of the stereotyped minus the other gender in each stratum; ``coverage``.
    """

    templates: int
    sizes: tuple[int, int] = (20, 20)
    shape: Shape = NORMAL

    # standard deviations: occupations and templates shared by the models, the models' own ones, cells
    _shared = (0.10, 0.08)
    _own = (0.06, 0.05)
    _cell = 0.10

    def truth(self, knobs: Knobs) -> dict[str, float]:
        female, male = (size / sum(self.sizes) for size in self.sizes)
        f, m = knobs["female_gap"], knobs["male_gap"]
        # over endlessly many occupations in these strata, each with as many templates: P~_f is half a gap
        between = math.sqrt(female * male)
        step, shares = (f + m) / 2, _SHARES["female"] - _SHARES["male"]
        occupation = self._shared[0] ** 2 + (self._own[0] * knobs.get("own", 1.0)) ** 2 + self._cell**2 / self.templates
        return {
            "stereotype_gap": female * f + male * m,
            "female_dominated_gap": f,
            "male_dominated_gap": m,
            "female_dominated_F": 50 * (1 - _DIVERSE + f),
            "male_dominated_M": 50 * (1 - _DIVERSE + m),
            "coverage": knobs["coverage"],
            "labour_pearson": between**2
            * step
            * shares
            / math.hypot(between * step, math.sqrt(occupation) / 2)
            / math.hypot(between * shares, _SPREAD),
        }

    def _effects(self, rng: Rng, rows: float, columns: float) -> Array:
        n = sum(self.sizes)
        return rows * self.shape.draw(rng, (n, 1)) + columns * self.shape.draw(rng, (1, self.templates))

    def pair(self, rng: Rng, a: Knobs, b: Knobs) -> Drawn:
        from lm_eval_bias.custom_metrics.occugender import prompt_record

        groups = ["female"] * self.sizes[0] + ["male"] * self.sizes[1]
        shares = np.array([_SHARES[group] for group in groups]) + _SPREAD * rng.standard_normal(len(groups))
        gap_effects, mass_effects = self._effects(rng, *self._shared), self._effects(rng, 0.05, 0.05)
        drawn = []
        for knobs in (a, b):
            own = knobs.get("own", 1.0)
            noise = self._cell * rng.standard_normal(gap_effects.shape)
            mean = np.array([[knobs[f"{group}_gap"]] for group in groups])
            gap = mean + gap_effects + self._effects(rng, own * self._own[0], own * self._own[1]) + noise
            mass = knobs["coverage"] + mass_effects + self._effects(rng, own * 0.03, own * 0.03)
            mass = np.clip(mass + 0.05 * rng.standard_normal(mass.shape), 0.01, 0.99)
            sign = np.array([[1 if group == "female" else -1] for group in groups])
            female = np.clip((1 - _DIVERSE + sign * gap) / 2, 1e-6, 1 - _DIVERSE - 1e-6)
            logs = (np.log(mass * part).tolist() for part in (1 - _DIVERSE - female, female, _DIVERSE + 0 * female))
            m, f, d = logs
            drawn.append(
                [
                    prompt_record(f"{i:02d}", f"{t:02d}", float(shares[i]), groups[i],
                                  male=m[i][t], female=f[i][t], diverse=d[i][t])
                    for i in range(len(groups))
                    for t in range(self.templates)
                ]
            )  # fmt: skip
        return Drawn((drawn[0], drawn[1]))


@dataclass(frozen=True)
class Answers(Occupations):
    """The same models, asked ``samples`` times: an answer is read with the probability of the words (``coverage``)."""

    samples: int = 10

    def truth(self, knobs: Knobs) -> dict[str, float]:
        values = super().truth(knobs)
        coverage, gaps = values.pop("coverage"), (values["female_dominated_gap"], -values["male_dominated_gap"])
        shares = [(1 - _DIVERSE + gap) / 2 for gap in gaps]
        weights = [size / sum(self.sizes) for size in self.sizes]
        drawn = sum(weight * share * (1 - share) for weight, share in zip(weights, shares, strict=True))
        drawn /= self.templates * self.samples * coverage  # the variance that the draw adds to an occupation's P~_f
        step = math.sqrt(weights[0] * weights[1]) * (shares[0] - shares[1])
        own = self._own[0] * knobs.get("own", 1.0)
        before = step**2 + (self._shared[0] ** 2 + own**2 + self._cell**2 / self.templates) / 4
        values["labour_pearson"] *= math.sqrt(before / (before + drawn))
        return {**values, "unanswered": 1 - coverage}

    def pair(self, rng: Rng, a: Knobs, b: Knobs) -> Drawn:
        one, other = super().pair(rng, a, b).records
        return Drawn((self._answers(rng, one), self._answers(rng, other)))

    def _answers(self, rng: Rng, records: Records) -> Records:
        from lm_eval_bias.custom_metrics.occugender_answers import prompt_record

        made: Records = []
        for r in records:
            read = int(rng.binomial(self.samples, r["mass"]))
            counts = dict(zip("MFD", rng.multinomial(read, [r["M"], r["F"], r["D"]]).tolist(), strict=True))
            refused = int(rng.binomial(self.samples - read, 0.5))
            made.append(
                prompt_record(r["item"], r["template"], r["share"], r["group"],
                              counts=counts, refused=refused, drawn=self.samples)
            )  # fmt: skip
        return made


# ------------------------------------------------------------------ questions with two persons and "unknown"


class Questions:
    """The BBQ family: items in their templates, from the released documents; with wordings, each item in all of them.

    Knobs: GG-BBQ's scores, whatever the benchmark calls them. Templates have effects on answering rightly, on answering
    along the stereotype where a context tells the answer, and on whom a guess names; items on answering rightly.
    Control items share their template's effects and have no bias.
    """

    _right = (0.3, 0.25)  # standard deviations of templates: shared by the models, their own
    _lean = (0.2, 0.3)
    _along = (0.15, 0.15)
    _item = 0.4

    def __init__(
        self, docs: Sequence[Mapping[str, Any]], suffix: str = "", terms: Any = None, more: int = 0,
        shape: Shape = NORMAL, growing: bool = False,
    ) -> None:  # fmt: skip
        """Models of these documents.

        Args:
            docs: Documents.
            suffix: Of the scores' names.
            terms: What the benchmark calls its scores; by default as GG-BBQ does.
            more: Options beside two persons and "unknown", which nobody takes.
            shape: Of templates' effects.
            growing: Whether templates' effects are in proportion to the template's number of items.
        """
        from lm_eval_bias.core import registry
        from lm_eval_bias.custom_metrics.question_answering import GG_BBQ, score_name

        record = registry.get(str(docs[0]["benchmark"])).record
        self._suffix = suffix
        self._score_names = {
            score_name(kind, context): (terms or GG_BBQ).main(kind, context)
            for kind in ("acc", "diff_bias")
            for context in ("amb", "disamb")
        }
        self._ambiguous = np.array([doc["context_type"] == "ambiguous" for doc in docs])
        self._biased = np.array([doc["label"] == doc["biased_choice"] for doc in docs])
        self._leans = np.array([0.0 if doc.get("control") else 1.0 for doc in docs])
        self._names, self._template = places([doc["template"] for doc in docs])
        counts, self._shape = np.bincount(self._template), shape
        self._grown = (counts / counts.mean())[self._template] if growing else 1.0
        self._items, self._item_at = places([(doc["context_type"], doc["item"]) for doc in docs])
        self._answers = []  # by item its records if answered rightly, wrongly along the stereotype, wrongly against it
        for doc in docs:
            unknown = doc["groups"].index("unknown")
            counter = 3 - unknown - doc["biased_choice"]
            by_choice = [record(doc, [(-1.0 - (c != choice), False) for c in range(3 + more)]) for choice in range(3)]
            other = counter if doc["label"] == doc["biased_choice"] else doc["biased_choice"]
            ambiguous = doc["context_type"] == "ambiguous"
            wrong = (doc["biased_choice"], counter) if ambiguous else (other, other)
            self._answers.append([by_choice[choice] for choice in (doc["label"], *wrong)])

    def truth(self, knobs: Knobs) -> dict[str, float]:
        named = {self._score_names[name]: value for name, value in knobs.items() if name != "own"}
        contrasts = {f"contrast/{name}": value * ("diff_bias" in name) for name, value in named.items()}
        return {f"{name}{self._suffix}": value for name, value in named.items()} | contrasts

    def pair(self, rng: Rng, a: Knobs, b: Knobs) -> Drawn:
        def effects(spread: float) -> Array:
            return self._grown * (spread * self._shape.draw(rng, len(self._names)))[self._template]

        def middle(share: Array | float, *spreads: float, normal: float = 0.0) -> Any:
            return self._shape.centre(share, *(self._grown * spread for spread in spreads), normal=normal)

        told_items = ~self._ambiguous & (self._leans > 0)
        n_b = int((self._biased & told_items).sum()) / int(told_items.sum())
        right_shared, lean_shared, along_shared = (
            effects(self._right[0]),
            effects(self._lean[0]),
            effects(self._along[0]),
        )
        item = self._item * rng.standard_normal(len(self._items))[self._item_at]
        sign = np.where(self._biased, 1.0, -1.0)
        drawn = []
        for knobs in (a, b):
            own = knobs.get("own", 1.0)
            acc, bias = knobs["acc_disamb"], knobs["diff_bias_disamb"] * self._leans
            share = np.where(self._biased, acc + (1 - n_b) * bias, acc - n_b * bias)
            right_spreads = (self._right[0], own * self._right[1])
            along_spreads = (self._along[0], own * self._along[1])
            towards, against = (
                middle(share, *right_spreads, *(way * spread for spread in along_spreads), normal=self._item)
                for way in (1, -1)
            )
            told = np.where(self._biased, towards, against) + sign * (along_shared + effects(own * self._along[1]))
            open_ = middle(knobs["acc_amb"], *right_spreads, normal=self._item)
            right = np.where(self._ambiguous, open_, told) + right_shared + effects(own * self._right[1]) + item
            guess = (1 + self._leans * knobs["diff_bias_amb"] / (1 - knobs["acc_amb"])) / 2
            lean = middle(guess, self._lean[0], own * self._lean[1]) + lean_shared + effects(own * self._lean[1])
            n = len(right)
            state = np.where(
                right + rng.standard_normal(n) > 0, 0, np.where(lean + rng.standard_normal(n) > 0, 1, 2)
            ).tolist()
            drawn.append([answers[s] for answers, s in zip(self._answers, state, strict=True)])
        return Drawn((drawn[0], drawn[1]))


# ------------------------------------------------------------------ a stereotype, an anti-stereotype, an unrelated one


class Candidates:
    """StereoSet: items in their target terms, from the released documents, or from the items of some of the terms.

    Knobs: ``ss`` and ``lms``, in percent. Terms have effects on both, items on the preference. ``offsets`` are added to
    the SS of bias types and tests, so that these differ while all items together keep the knob's.
    """

    _term = (0.25, 0.25)  # standard deviations of terms: shared by the models, their own
    _hard = (0.3, 0.2)
    _item = 0.5

    def __init__(
        self, docs: Sequence[Mapping[str, Any]], prefix: str = "", offsets: Mapping[str, float] | None = None,
        shape: Shape = NORMAL,
    ) -> None:  # fmt: skip
        from lm_eval_bias.core import registry

        record = registry.get(str(docs[0]["benchmark"])).record
        self._prefix, self._shape = prefix, shape
        self._names, self._at = places([doc["term"] for doc in docs])
        parts = offsets or {}
        raw = np.array([parts.get(doc["bias_type"], 0.0) + parts.get(doc["test"], 0.0) for doc in docs])
        self._offsets = raw - raw.mean()
        self._answers = [[record(doc, _scored(doc, *outcome)) for outcome in _OUTCOMES] for doc in docs]

    def truth(self, knobs: Knobs) -> dict[str, float]:
        ss, lms = knobs["ss"], knobs["lms"]
        values = {"ss": ss, "lms": lms, "icat": lms * min(ss, 100 - ss) / 50}
        if not self._offsets.any():  # all terms are alike then
            values |= {"mc_ss": ss, "mc_lms": lms, "mc_icat_micro": values["icat"], **self._by_term(knobs)}
        return {f"{self._prefix}{name}": value for name, value in values.items()}

    def _by_term(self, knobs: Knobs) -> dict[str, float]:
        """What the terms' own numbers of items have part in: their mean ICAT, and the spread of their SS."""
        spread = math.hypot(self._term[0], knobs.get("own", 1.0) * self._term[1])
        nodes, weights = np.polynomial.hermite_e.hermegauss(60)
        weights = weights / weights.sum()
        p = special.ndtr(
            (centre(knobs["ss"] / 100, spread, self._item) + spread * nodes) / math.sqrt(1 + self._item**2)
        )
        icat, variance = [], []
        for n in np.bincount(self._at):
            hits = np.arange(n + 1)
            least = stats.binom.pmf(hits[:, None], n, p).T @ np.minimum(hits, n - hits)
            icat.append(knobs["lms"] * float(weights @ least) / n * 2)
            variance.append(float(weights @ (p * (1 - p) / n + p**2)) - float(weights @ p) ** 2)
        return {"mc_icat_macro": float(np.mean(icat)), "mc_ss_sd": 100 * math.sqrt(float(np.mean(variance)))}

    def tendencies(self, rng: Rng, a: Knobs, b: Knobs) -> Iterator[tuple[NDArray[np.bool_], Array]]:
        """Of each model, whether it prefers the stereotype, and how far each item makes sense to it."""
        terms, items = len(self._names), len(self._at)
        preference = self._term[0] * self._shape.draw(rng, terms)[self._at] + self._item * rng.standard_normal(items)
        ease = self._hard[0] * self._shape.draw(rng, terms)
        for knobs in (a, b):
            own = knobs.get("own", 1.0)
            spreads, share = (self._term[0], own * self._term[1]), (knobs["ss"] + self._offsets) / 100
            middle = self._shape.centre(share, *spreads, normal=self._item) + preference
            middle = middle + own * self._term[1] * self._shape.draw(rng, terms)[self._at]
            pro = middle + rng.standard_normal(items) > 0
            sense = self._shape.centre(knobs["lms"] / 100, self._hard[0], own * self._hard[1])
            yield pro, (sense + ease + own * self._hard[1] * self._shape.draw(rng, terms))[self._at]

    def pair(self, rng: Rng, a: Knobs, b: Knobs) -> Drawn:
        drawn = []
        for pro, sense in self.tendencies(rng, a, b):
            beaten = (sense + rng.standard_normal((2, len(sense))) > 0).sum(axis=0)
            outcome = (3 * pro + beaten).tolist()
            drawn.append([answers[o] for answers, o in zip(self._answers, outcome, strict=True)])
        return Drawn((drawn[0], drawn[1]))


_OUTCOMES = [(pro, beaten) for pro in (False, True) for beaten in range(3)]  # in the order of 3 * pro + beaten


def _scored(doc: Mapping[str, Any], pro: bool, beaten: int) -> list[tuple[float, ...]]:
    """Candidates' scores by which the stereotype wins or not, and so many of the two beat the unrelated one."""
    unrelated = (-0.5, -1.5, -2.5)[beaten]
    stereo, anti = (-1.0, -2.0) if pro else (-2.0, -1.0)
    value = {"stereotype": stereo, "anti-stereotype": anti, "unrelated": unrelated}
    scores = [value[candidate["label"]] for candidate in doc["candidates"]]
    return [(0.0, 1, score, 1, 0.0, 1) if "variants" in doc else (score, 1) for score in scores]


# ------------------------------------------------------------------ sampled texts

_REGARDS = ("negative", "neutral", "positive")
_FACETS = ("caregiving", "sexualization", "perpetration")
_KINDS = ("negative", "positive", *_FACETS)
_MEN = {"negative": 0.30, "positive": 0.20, "caregiving": 0.06, "sexualization": 0.02, "perpetration": 0.08}
# how far the gaps of two context sets lie from the mean of both
_SET_STEPS = {"negative": -0.10, "positive": 0.10, "caregiving": 0.05, "sexualization": 0.01, "perpetration": 0.03}


class Texts:
    """Regard: 2 genders x 10 contexts with so many texts each.

    Knobs: ``negative``, ``positive`` and the facets, women's share minus men's; ``level``, by which all shares of men
    are multiplied. Contexts have effects on each share, and on each gender's apart.
    """

    _context = (0.6, 0.2)  # standard deviations: shared by the models, their own
    _gender = (0.15, 0.2)

    def __init__(self, texts: int, sets_differ: bool = False, shape: Shape = NORMAL) -> None:
        from lm_eval_bias.tasks.regard import hooks, regard_texts

        fields = {"language": "de", "has_other": False, "classifier": {"warning": ""}}
        prompts = [{**prompt, **fields} for prompt in regard_texts.prompts("de")]
        self._docs = {
            gender: sorted((p for p in prompts if p["gender"] == gender), key=lambda p: (p["set"], p["context"]))
            for gender in ("female", "male")
        }
        self._texts, self._shape = texts, shape
        wordings = [str(i) for i in range(texts)]
        self._bases = {
            gender: [
                {**hooks.record(doc, [[(doc["prompt"], "neutral")]]), "drawn": texts, "repeated": False,
                 "wordings": wordings, "unfinished": 0}
                for doc in docs
            ]
            for gender, docs in self._docs.items()
        }  # fmt: skip
        self._sets = [doc["set"] for doc in self._docs["female"]]
        first = np.array([name == self._sets[0] for name in self._sets])
        self._step = np.where(first, 1.0, -1.0) * sets_differ
        subsets = [[facet for bit, facet in enumerate(_FACETS) if code >> bit & 1] for code in range(8)]
        self._kinds = {
            name: [(regard, [name], facets) for regard in _REGARDS for facets in subsets]
            for name in dict.fromkeys(self._sets)
        }

    def truth(self, knobs: Knobs) -> dict[str, float]:
        return {f"all/{kind}_gap" if kind not in _FACETS else f"{kind}/gap": knobs[kind] for kind in _KINDS}

    def _shares(self, knobs: Knobs, gender: str) -> dict[str, Array]:
        """By kind the expected share in each context."""
        level, women = knobs.get("level", 1.0), gender == "female"
        return {
            kind: level * men + (knobs[kind] + self._step * _SET_STEPS[kind] if women else 0 * self._step)
            for kind, men in _MEN.items()
        }

    def pair(self, rng: Rng, a: Knobs, b: Knobs) -> Drawn:
        contexts = len(self._sets)

        def effects(spread: float) -> dict[str, Array]:
            return {kind: spread * self._shape.draw(rng, contexts) for kind in _KINDS}

        shared = effects(self._context[0])
        by_gender = {gender: effects(self._gender[0]) for gender in self._docs}
        drawn: list[Records] = []
        given: dict[str, float] = {}
        for number, knobs in enumerate((a, b)):
            own = knobs.get("own", 1.0)
            spreads = (*self._context[:1], own * self._context[1], self._gender[0], own * self._gender[1])
            mine = effects(own * self._context[1])
            records: Records = []
            means: dict[str, dict[str, float]] = {}
            for gender in self._docs:
                apart, expected = effects(own * self._gender[1]), self._shares(knobs, gender)
                # positive first; negative is a part of what isn't positive
                expected["negative"] = expected["negative"] / (1 - expected["positive"])
                p = {
                    kind: special.ndtr(
                        self._shape.centre(share, *spreads)
                        + shared[kind]
                        + mine[kind]
                        + by_gender[gender][kind]
                        + apart[kind]
                    )
                    for kind, share in expected.items()
                }
                u = {kind: rng.random((contexts, self._texts)) < share[:, None] for kind, share in p.items()}
                regard = np.where(u["positive"], 2, np.where(u["negative"], 0, 1))
                code = 8 * regard + sum((1 << bit) * u[facet] for bit, facet in enumerate(_FACETS))
                means[gender] = {kind: float(share.mean()) for kind, share in p.items()}
                means[gender]["negative"] = float((p["negative"] * (1 - p["positive"])).mean())
                for base, name, row in zip(self._bases[gender], self._sets, code.tolist(), strict=True):
                    kinds = self._kinds[name]
                    records.append({**base, "texts": [kinds[c] for c in row]})
            drawn.append(records)
            if number == 0:
                given = self.truth({kind: means["female"][kind] - means["male"][kind] for kind in _KINDS})
        return Drawn((drawn[0], drawn[1]), given)
