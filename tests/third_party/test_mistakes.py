"""``doctor --benchmark`` finds nothing wrong with the package, and each deliberate mistake in it in one line."""

import re
from pathlib import Path

import pytest

from tests.support.commands import command

TABLE = Path(__file__).with_name("mistakes.tsv")
ROWS = [
    line.replace("\\n", "\n").split("\t")
    for line in TABLE.read_text().splitlines()
    if not line.startswith("#")
]
MISTAKES = {name: parts for name, *parts in ROWS}


CHANGED = """

import random

draws = random.Random(1)

real = AgeStereotypes.scores
record = AgeStereotypes.record


def changed(**fields):
    def scores(self, docs=()):
        first, *others = real(self, docs)
        return [dataclasses.replace(first, **{k: of(first) for k, of in fields.items()}), *others]
    AgeStereotypes.scores = scores


def estimated(**fields):
    def of(first):
        return lambda records: dataclasses.replace(first.design(records).estimate(), **fields)
    changed(statistic=of)


def label(doc):
    return sum(map(ord, doc["id"])) % 2


def right(doc, dial):
    is_right = dial.draw(doc["id"]) < dial.competence
    texts = ["old one", "young one"]
    if dial.writes:
        return [texts[label(doc) == is_right]]
    return [(-1.0 - (label(doc) == is_right), False), (-1.0 - (label(doc) != is_right), False)]


def able(gold=label, **fields):
    # the score is how often the answer is the label's, which a synthetic competence makes it
    AgeStereotypes.synthetic_bias = SyntheticBias(right, lambda docs, dial: {})

    def graded(self, doc, answers):
        made = record(self, doc, answers)
        return {**made, "old": made["old"] if gold(doc) == 0 else 100.0 - made["old"]}

    AgeStereotypes.record = graded
    told = {"favours": None, "direction": "", "neutral": 100.0, "chance": 50.0, "higher_is_better": True, **fields}
    changed(**{name: lambda first, value=value: value for name, value in told.items()})


"""
# a mistake that takes more code, and the lines that name it
LONGER = {
    "a record that can't be kept": (
        "AgeStereotypes.record = lambda self, doc, answers: {**record(self, doc, answers), 'seen': {1}}\n",
        r"record\(\): what it returns can't be saved as the run's answers",
    ),
    "an infinite estimate": (
        "estimated(value=math.inf)\n",
        r"old_share: .*it is inf with the error \S+: both must be finite, and the error not below 0.*",
    ),
    "an error below 0": (
        "estimated(stderr=-3.0)\n",
        r"old_share: .*it is \S+ with the error -3: .*",
    ),
    "an interval beside the value": (
        "estimated(interval=(0.0, 1.0))\n",
        r"old_share: it is \S+ of random answers, its interval 0 to 1",
    ),
    "a number in place of an estimate": (
        "changed(statistic=lambda first: lambda records: 50.0)\n",
        r"old_share: it is 50.0, not an Estimate",
    ),
    "chance isn't what random answers give": (
        "able(chance=95.0)\n",
        r"old_share: random answers give \S+, its chance is 95",
    ),
    "an ability that everybody has": (
        "able()\ngraded = AgeStereotypes.record\n"
        "AgeStereotypes.record = lambda s, d, a: {**graded(s, d, a), 'old': 100.0}\n",
        r"old_share: random answers give 100, its chance is 50",
    ),
    "an ability that is best where it is worst": (
        "able(higher_is_better=False)\n",
        r"old_share: its best value is 100, but its higher_is_better is False",
    ),
    "a third of the labels is wrong": (
        "able(gold=lambda doc: label(doc) != (doc['trait'] in ('slow', 'wise')))\n",
        r"old_share: a model that is always right gets 66.7, not 100",
    ),
    "one cluster": (
        "import lm_eval_bias.authoring as a\nchanged(statistic=lambda first: None, design=lambda first: "
        "lambda r: a.tabulate(['all'] * len(r), [(o['old'], 1) for o in r], a.share_of))\n",
        r"old_share: all its items are one cluster: an interval needs several",
    ),
    "drawn at random": (
        "AgeStereotypes.record = lambda s, d, a: {**record(s, d, a), 'old': draws.choice((0.0, 100.0))}\n",
        r"rescore gives other scores than run: .*",
    ),
}


def test_a_sound_ability_is_no_mistake(package):
    package(more=CHANGED + "able()\n")
    found = command("doctor", "--benchmark", "age_stereotypes")
    assert found.out.startswith("ok"), found.out


def lines_of(found, status):
    """The lines of one status, without it."""
    return [
        text.removeprefix(status).strip()
        for text in found.out.splitlines()
        if text.startswith(status)
    ]


def check(found, line):
    problems = lines_of(found, "problem")
    assert found.status == 1
    assert any(re.fullmatch(line, text) for text in problems), problems
    assert len(problems) <= 12, problems


@pytest.mark.parametrize("name", LONGER)
def test_a_longer_mistake_is_one_line(name, package):
    more, line = LONGER[name]
    package(more=CHANGED + more)
    found = command("doctor", "--benchmark", "age_stereotypes")
    check(found, rf"age_pairs\S*( .*)?: (bias-chance: )?{line}")


def test_without_a_synthetic_bias_it_says_that_it_is_not_checked(package):
    package(more="AgeStereotypes.synthetic_bias = None\n")
    found = command("doctor", "--benchmark", "age_stereotypes")
    assert found.status == 0
    (note,) = lines_of(found, "note")
    text = "whether its scores follow a bias wasn't checked: add one (Benchmark.synthetic_bias)"
    assert note == f"age_pairs, age_pairs_gen, age_ratings: {text}"


@pytest.mark.parametrize("name", ["", *MISTAKES])
def test_a_mistake_is_one_line(name, package):
    *edit, line = MISTAKES.get(name, ("",))
    package(*edit)
    found = command("doctor", "--benchmark", "age_stereotypes")
    if not name:
        assert (found.status, found.out) == (
            0,
            "ok       age_stereotypes: no mistake found; tasks that were run: 3\n",
        )
        return
    check(found, line)
