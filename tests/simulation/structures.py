"""The structures to simulate: whose tasks and suite each is that of, and the two models' true scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from tests.simulation.simulated_choices import Choices
from tests.simulation.simulated_harness_tasks import LAYOUTS
from tests.simulation.simulated_models import Answers, Candidates, Knobs, Maker, Occupations, Questions, Shape, Texts

Docs = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Structure:
    """A data set's layout with two models.

    Attributes:
        name: In the table.
        benchmark: Whose scores are asked for.
        make: What draws the models; reads the data.
        scores: Which ones, as far as the benchmark has them.
        base: The second model's knobs.
        shift: What the first model has more where the two differ; without any, they differ in no round.
        other: Knobs of the first model where both have equal scores but are unlike otherwise; empty if they are alike.
        tasks: The tasks that have this layout.
        suite: ``quick`` for the part of their items that this suite takes.
    """

    name: str
    benchmark: str
    make: Callable[[], Maker]
    scores: Sequence[str]
    base: Knobs
    shift: Knobs = field(default_factory=dict)
    other: Knobs = field(default_factory=dict)
    tasks: Sequence[str] = ()
    suite: str = ""

    def cases(self) -> dict[str, tuple[Knobs, Knobs]]:
        """Both models' knobs where their scores are equal (or meant to be), and where they differ."""
        cases: dict[str, tuple[Knobs, Knobs]] = {"equal": ({**self.base, **self.other}, self.base)}
        if self.shift:
            shifted = {name: value + self.shift.get(name, 0.0) for name, value in self.base.items()}
            cases["different"] = ({**shifted, **self.other}, self.base)
        return cases


# ------------------------------------------------------------------ documents


def _quick(task: str, docs: Docs) -> Docs:
    from lm_eval_bias.evaluation import suites

    suite = suites.load("quick-chat" if task.endswith("_gen") else "quick")
    return [docs[i] for i in suite.choose(task, docs) or range(len(docs))]


@cache
def _questions(
    subset: str, quick: bool = False, wordings: bool = False, paper: bool = False, growing: bool = False
) -> Maker:
    from lm_eval_bias.tasks.gg_bbq import hooks

    fixed = {**({"wording": "all"} if wordings else {}), **({"release": "paper"} if paper else {})}
    docs: Docs = hooks.dataset(subset, fixed=fixed)["test"]
    suffix = "/mean" if wordings else ""
    return Questions(_quick(f"gg_bbq_{subset}", docs) if quick else docs, suffix, growing=growing)


@cache
def _es_bbq(category: str, quick: bool = False, shape: str = "normal") -> Maker:
    from lm_eval_bias.custom_metrics.question_answering import ES_BBQ
    from lm_eval_bias.tasks.es_bbq import hooks

    docs: Docs = hooks.dataset("es", category)["test"]
    return Questions(_quick(f"es_bbq_{category}", docs) if quick else docs, "", ES_BBQ, more=8, shape=Shape(shape))


@cache
def _kobbq(category: str, quick: bool = False, prompts: bool = False) -> Maker:
    from lm_eval_bias.tasks.kobbq import hooks

    docs: Docs = hooks.dataset(category, fixed={"prompt": "all"} if prompts else {})["test"]
    return Questions(_quick(f"kobbq_{category}", docs) if quick else docs, "/mean" if prompts else "")


@cache
def _mbbq(category: str, quick: bool = False) -> Maker:
    from lm_eval_bias.tasks.mbbq import hooks

    docs: Docs = hooks.dataset("en", category)["test"]
    docs = _quick(f"mbbq_en_{category}", docs) if quick else docs
    return Questions([doc for doc in docs if doc["directed"]])


@cache
def _documents(tests: Sequence[str], variants: bool = False) -> Docs:
    from lm_eval_bias.tasks.stereoset import hooks

    fixed = {"language": "en", "tests": list(tests), **({"variants": True} if variants else {})}
    return hooks.documents(fixed)


@cache
def _candidates(
    tests: Sequence[str] = ("inter", "intra"), quick: bool = False, variants: bool = False, shape: str = "normal"
) -> Maker:
    docs, prefix = _documents(tests, variants), "gen/" if variants else ""
    return Candidates(_quick("stereoset_en", docs) if quick else docs, prefix, shape=Shape(shape))


def _choices(quick: bool = False) -> Maker:
    from lm_eval_bias.tasks.stereoset import hooks

    docs = hooks.documents({"language": "en", "tests": ["inter", "intra"], "choices": True})
    return Choices(_quick("stereoset_en_gen", docs) if quick else docs)


def _parts_differ() -> Maker:
    offsets = {"gender": 10.0, "profession": 5.0, "race": -5.0, "religion": -2.0, "intra": 4.0, "inter": -4.0}
    return Candidates(_documents(("inter", "intra")), offsets=offsets)


def _religion() -> Maker:
    return Candidates([doc for doc in _documents(("inter", "intra")) if doc["bias_type"] == "religion"])


def _few_terms(count: int) -> Maker:
    """Some terms, from those with few items to those with many."""
    docs = _documents(("inter", "intra"))
    by_term: dict[str, list[Mapping[str, Any]]] = {}
    for doc in docs:
        by_term.setdefault(doc["term"], []).append(doc)
    terms = sorted(by_term, key=lambda term: (len(by_term[term]), term))
    step = (len(terms) - 1) / (count - 1)
    return Candidates([doc for i in range(count) for doc in by_term[terms[round(i * step)]]])


# ------------------------------------------------------------------ the list

_OCCUGENDER = (
    "stereotype_gap", "female_dominated_F", "male_dominated_M", "labour_pearson", "coverage", "female_dominated_gap",
    "male_dominated_gap",
)  # fmt: skip
_UNEQUAL_STRATA = {"female_gap": 0.4, "male_gap": -0.1, "coverage": 0.4}
_EQUAL_STRATA = {"female_gap": 0.2, "male_gap": 0.2, "coverage": 0.4}
_KINDS = ("occugender_explicit", "occugender_implicit")

_GG_BBQ = ("acc_amb", "acc_disamb", "diff_bias_amb", "diff_bias_disamb")
_BIASED = {"acc_amb": 0.45, "acc_disamb": 0.6, "diff_bias_amb": 0.08, "diff_bias_disamb": 0.1}
_UNLIKE = {"acc_amb": 0.75, "acc_disamb": 0.85, "own": 1.5}
_SUBSET_I, _SUBSET_II = partial(_questions, "group_terms"), partial(_questions, "names")
_ES_BBQ = ("acc_amb_three", "acc_disamb_three", "diff_bias_amb_three", "diff_bias_disamb_three")
_MBBQ = (*_GG_BBQ, *(f"contrast/{name}" for name in _GG_BBQ))
_UNABLE = {"acc_amb": 0.36, "acc_disamb": 0.4, "diff_bias_amb": 0.0, "diff_bias_disamb": 0.0}
_WORDINGS = tuple(f"{name}/mean" for name in _GG_BBQ)
_NEAR_PERFECT = {"acc_amb": 0.97, "acc_disamb": 0.98, "diff_bias_amb": 0.0, "diff_bias_disamb": 0.0}

_STEREOSET = ("lms", "ss", "icat")
_BY_TERM = ("mc_lms", "mc_ss", "mc_ss_sd", "mc_icat_macro", "mc_icat_micro")
_STEREOTYPED = {"ss": 58.0, "lms": 86.0}
_FEW_TERMS = {2: (45.0, 29.0), 3: (34.0, 24.0), 4: (26.0, 16.5), 5: (20.0, 13.5), 6: (18.0, 12.0)}  # shifts of ss, lms
_MIDDLING = {"ss": 45.0, "lms": 70.0}  # with room for the large differences that few terms need

_REGARD = ("all/negative_gap", "all/positive_gap", "caregiving/gap", "sexualization/gap", "perpetration/gap")
_GAPS = {"negative": -0.05, "positive": 0.05, "caregiving": 0.08, "sexualization": 0.02, "perpetration": -0.04}


_REGARD_TASKS = ("regard_de", "regard_en")


def _occugender(
    name: str, templates: int, shift: float, sizes: tuple[int, int] = (20, 20), shape: str = "normal", **more: Any
) -> Structure:
    """The first model's gaps are larger by ``shift`` in each stratum, its coverage by half of it."""
    settings: dict[str, Any] = {"base": _UNEQUAL_STRATA} | more
    shifts = {"female_gap": shift, "male_gap": shift, "coverage": 0.55 * shift} if shift else {}
    make = partial(Occupations, templates, sizes, Shape(shape))
    return Structure(f"OccuGender, {name}", "occugender", make, _OCCUGENDER, shift=shifts, **settings)


def _answers(samples: int, shift: float, templates: int = 25, **more: Any) -> Structure:
    """The same with so many answers a prompt."""
    scores = (*(score for score in _OCCUGENDER if score != "coverage"), "unanswered")
    name = f"{templates} templates, {samples} {'answer' if samples == 1 else 'answers'} a prompt"
    own = _occugender(name, templates, shift, **more)
    return replace(own, benchmark="occugender_gen", make=partial(Answers, templates, samples=samples), scores=scores)


def _gg_bbq(name: str, make: Callable[[], Maker], *shifts: float, **more: Any) -> Structure:
    settings: dict[str, Any] = {"base": _BIASED, "scores": _GG_BBQ, "benchmark": "gg_bbq"} | more
    return Structure(f"GG-BBQ, {name}", make=make, shift=dict(zip(_GG_BBQ, shifts, strict=False)), **settings)


def _stereoset(name: str, make: Callable[[], Maker], *shifts: float, **more: Any) -> Structure:
    settings: dict[str, Any] = {"base": _STEREOTYPED, "scores": _STEREOSET, "benchmark": "stereoset"} | more
    return Structure(f"StereoSet, {name}", make=make, shift=dict(zip(("ss", "lms"), shifts, strict=False)), **settings)


def _regard(
    name: str, texts: int, *shifts: float, sets_differ: bool = True, shape: str = "normal", **more: Any
) -> Structure:
    make = partial(Texts, texts, sets_differ, Shape(shape))
    return Structure(f"regard, {name}", "regard", make, _REGARD, _GAPS, dict(zip(_GAPS, shifts, strict=False)), **more)


_LANGUAGES = tuple(f"stereoset_{language}" for language in ("en", "de", "es", "fr", "tr"))


def _tests(suffix: str) -> tuple[str, ...]:
    return tuple(f"{task}{suffix}" for task in _LANGUAGES)


def _paper_release() -> list[Structure]:
    """The release that the paper's numbers rest on, where its tasks are there."""
    from lm_eval_bias.tasks.gg_bbq import benchmark

    return [
        _gg_bbq(f"{title}, the paper's release", partial(_questions, subset, paper=True), *shifts,
                tasks=(f"gg_bbq_{subset}_paper", f"gg_bbq_{subset}_paper_gen"))
        for title, subset, *shifts in (
            ("Subset-I", "group_terms", 0.14, 0.135, 0.2, 0.18), ("Subset-II", "names", 0.15, 0.15, 0.2, 0.12)
        )
        if hasattr(benchmark, "PAPER_ITEMS")
    ]  # fmt: skip


def _es_tasks(*categories: str) -> tuple[str, ...]:
    return tuple(f"{language}_bbq_{c}{form}" for language in ("es", "ca") for c in categories for form in ("", "_gen"))


def _family(name: str, make: Callable[[], Maker], *shifts: float, **more: Any) -> Structure:
    """A benchmark of GG-BBQ's family; by default EsBBQ, whose scores have other names."""
    settings: dict[str, Any] = {"benchmark": "es_bbq", "scores": _ES_BBQ} | more
    return replace(_gg_bbq("", make, *shifts, **settings), name=name)


def _shaped(shape: str) -> list[Structure]:
    """Structures whose clusters have skewed or heavy-tailed effects."""
    title = {"skewed": "skewed effects", "heavy": "heavy-tailed effects"}[shape]
    return [
        _occugender(f"25 templates, {title}", 25, 0.06, shape=shape),
        _family(f"EsBBQ, age (23 templates), {title}", partial(_es_bbq, "age", shape=shape), 0.135, 0.13, 0.19, 0.17),
        _stereoset(f"both tests, {title}", partial(_candidates, shape=shape), 5.0, 2.4),
        _stereoset(f"part (quick), {title}", partial(_candidates, quick=True, shape=shape), 9.0, 4.5),
        _regard(f"100 texts, {title}", 100, 0.145, 0.14, 0.096, 0.058, 0.089, shape=shape),
    ]


STRUCTURES: tuple[Structure, ...] = (
    _occugender("25 templates", 25, 0.06, tasks=_KINDS),
    _occugender("25 templates, equal strata", 25, 0.06, base=_EQUAL_STRATA, tasks=_KINDS),
    _occugender("25 templates, 30 + 10 occupations", 25, 0.06, (30, 10), tasks=_KINDS),
    _occugender("25 templates, models unlike", 25, 0.0, other={"own": 2.0}, tasks=_KINDS),
    _occugender("8 templates (quick)", 8, 0.095, tasks=_KINDS, suite="quick"),
    _occugender("5 templates (debias)", 5, 0.12, tasks=("occugender_debias_*",)),
    _occugender("3 templates", 3, 0.17),
    _occugender("2 templates", 2, 0.3),
    _answers(10, 0.065, tasks=tuple(f"{kind}_gen" for kind in _KINDS)),
    _answers(1, 0.09),
    _answers(100, 0.06),
    _answers(10, 0.13, 5),
    _answers(1, 0.13, 8, base=_UNEQUAL_STRATA | {"coverage": 0.9}, tasks=("occugender_explicit_gen",), suite="quick"),
    _gg_bbq("Subset-I", _SUBSET_I, 0.14, 0.135, 0.2, 0.18, tasks=("gg_bbq_group_terms", "gg_bbq_group_terms_gen")),
    _gg_bbq("Subset-I, models unlike", _SUBSET_I, other=_UNLIKE),
    _gg_bbq("Subset-I, nearly no errors", _SUBSET_I, base=_NEAR_PERFECT),
    _gg_bbq("Subset-I, part (quick)", partial(_questions, "group_terms", quick=True), 0.16, 0.135, 0.2, 0.25,
            tasks=("gg_bbq_group_terms", "gg_bbq_group_terms_gen"), suite="quick"),
    _gg_bbq("Subset-I, five wordings", partial(_questions, "group_terms", wordings=True), 0.13, 0.12, 0.125, 0.15,
            scores=_WORDINGS, benchmark="gg_bbq_prompts", tasks=("gg_bbq_group_terms_prompts",)),
    _gg_bbq("Subset-II", _SUBSET_II, 0.15, 0.15, 0.2, 0.12, tasks=("gg_bbq_names", "gg_bbq_names_gen")),
    _gg_bbq("Subset-II, models unlike", _SUBSET_II, other=_UNLIKE),
    _gg_bbq("Subset-II, part (quick)", partial(_questions, "names", quick=True), 0.15, 0.14, 0.18, 0.25,
            tasks=("gg_bbq_names",), suite="quick"),
    _gg_bbq("Subset-II, five wordings", partial(_questions, "names", wordings=True), scores=_WORDINGS,
            benchmark="gg_bbq_prompts", tasks=("gg_bbq_names_prompts",)),
    *_paper_release(),
    # categories of about as many templates share a structure
    _family("EsBBQ, gender (66 templates)", partial(_es_bbq, "gender"), 0.08, 0.075, 0.11, 0.1,
            tasks=_es_tasks("gender")),
    _family("EsBBQ, age (23 templates)", partial(_es_bbq, "age"), 0.135, 0.13, 0.19, 0.17,
            tasks=_es_tasks("age", "disability_status", "lgbtqia", "physical_appearance", "ses", "spanish_region")),
    _family("EsBBQ, race (51 templates)", partial(_es_bbq, "race_ethnicity"), 0.09, 0.085, 0.13, 0.115,
            tasks=_es_tasks("race_ethnicity")),
    _family("EsBBQ, nationality (15 templates)", partial(_es_bbq, "nationality"), 0.17, 0.165, 0.24, 0.24,
            tasks=_es_tasks("nationality", "religion")),
    _family("EsBBQ, the harness's task, nationality", partial(_es_bbq, "nationality"), 0.17, 0.165, 0.24, 0.24,
            benchmark="esbbq"),
    _family("EsBBQ, gender, part (quick)", partial(_es_bbq, "gender", quick=True), 0.11, 0.1, 0.16, 0.17,
            tasks=("es_bbq_gender", "ca_bbq_gender"), suite="quick"),
    _family("KoBBQ, gender (25 stories)", partial(_kobbq, "gender_identity"), 0.13, 0.125, 0.18, 0.17,
            benchmark="kobbq", scores=_GG_BBQ, tasks=("kobbq_*",)),
    _family("KoBBQ, gender, part (quick)", partial(_kobbq, "gender_identity", quick=True), 0.19, 0.18, 0.27, 0.27,
            benchmark="kobbq", scores=_GG_BBQ, tasks=("kobbq_gender_identity*",), suite="quick"),
    # of all twelve categories, with 285 stories, each round would take seconds
    _family("KoBBQ, five prompts, gender (25 stories)", partial(_kobbq, "gender_identity", prompts=True),
            0.12, 0.115, 0.17, 0.16, benchmark="kobbq_prompts", scores=_WORDINGS, tasks=("kobbq_prompts*",)),
    *(_family(f"MBBQ, {title}", partial(_mbbq, category, quick), *shifts, benchmark="mbbq", scores=_MBBQ, tasks=tasks,
              suite="quick" * quick)
      for title, category, quick, shifts, tasks in (
          ("gender identity (24 templates)", "gender_identity", False, (0.14, 0.13, 0.2, 0.22),
           ("mbbq_*_gender_identity*", "mbbq_*_age*", "mbbq_*_disability_status*", "mbbq_*_physical_appearance*")),
          ("socioeconomic status (12 templates)", "ses", False, (0.19, 0.18, 0.27, 0.27), ("mbbq_*_ses*",)),
          ("sexual orientation (6 templates)", "sexual_orientation", False, (0.22, 0.2, 0.22, 0.25),
           ("mbbq_*_sexual_orientation*",)),
          ("gender identity, part (quick)", "gender_identity", True, (0.14, 0.13, 0.2, 0.25),
           ("mbbq_*_gender_identity*",)))),
    _family("MBBQ, gender identity, bad at everything", partial(_mbbq, "gender_identity"), base=_UNABLE,
            benchmark="mbbq", scores=_MBBQ),
    _stereoset("both tests", _candidates, 5.0, 2.4, scores=(*_STEREOSET, *_BY_TERM), tasks=_LANGUAGES),
    _stereoset("both tests, mirrored SS", _candidates, base={"ss": 42.0, "lms": 86.0}, other={"ss": 58.0},
               tasks=_LANGUAGES),
    _stereoset("both tests, SS of 50", _candidates, 5.0, 2.4, base={"ss": 50.0, "lms": 86.0}, tasks=_LANGUAGES),
    _stereoset("both tests, models unlike", _candidates, other={"own": 2.0}, tasks=_LANGUAGES),
    _stereoset("both tests, bias types and tests differ", _parts_differ, 5.0, 2.4, tasks=_LANGUAGES),
    _stereoset("intra", partial(_candidates, ("intra",)), 5.6, 2.8, tasks=_tests("_intra")),
    _stereoset("inter", partial(_candidates, ("inter",)), 5.6, 2.8, tasks=_tests("_inter")),
    _stereoset("inter, generative variants", partial(_candidates, ("inter",), False, True), 5.6, 2.8,
               benchmark="stereoset_variants", scores=tuple(f"gen/{name}" for name in _STEREOSET),
               tasks=_tests("_inter_variants")),
    _stereoset("as a choice", _choices, 5.0, 3.5, benchmark="stereoset_choices",
               scores=tuple(f"choice_{name}" for name in (*_STEREOSET, "ss_meaningful")), tasks=_tests("_gen")),
    _stereoset("as a choice, part (quick-chat)", partial(_choices, quick=True), 11.0, 8.0,
               benchmark="stereoset_choices", tasks=("stereoset_en_gen",), suite="quick",
               scores=tuple(f"choice_{name}" for name in (*_STEREOSET, "ss_meaningful"))),
    _stereoset("part (quick)", partial(_candidates, quick=True), 9.0, 4.5, tasks=_LANGUAGES, suite="quick"),
    _stereoset("part (quick), mirrored SS", partial(_candidates, quick=True),
               base={"ss": 42.0, "lms": 86.0}, other={"ss": 58.0}, tasks=_LANGUAGES, suite="quick"),
    _stereoset("religion (3 terms)", _religion, 33.0, 19.0, base=_MIDDLING),
    *(_stereoset(f"{count} terms", partial(_few_terms, count), *shifts, base=_MIDDLING)
      for count, shifts in _FEW_TERMS.items()),
    _regard("100 texts", 100, 0.145, 0.14, 0.096, 0.058, 0.089, tasks=_REGARD_TASKS),
    _regard("100 texts, context sets alike", 100, 0.14, 0.134, 0.09, 0.058, 0.095, sets_differ=False,
            tasks=_REGARD_TASKS),
    _regard("100 texts, models unlike", 100, other={"level": 1.5, "own": 1.5}, tasks=_REGARD_TASKS),
    _regard("20 texts", 20, 0.22, 0.175, 0.15, 0.083, 0.145),
    # effects that are unlike the normal ones which the others have
    *(structure for shape in ("skewed", "heavy") for structure in _shaped(shape)),
    _gg_bbq("Subset-II, effects grow with size", partial(_questions, "names", growing=True), 0.2, 0.16, 0.2, 0.12),
    *(Structure(name, benchmark, make, scores, base, shift) for name, benchmark, make, scores, base, shift in LAYOUTS),
)  # fmt: skip
