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


def turned(self, doc, answers):
    made = record(self, doc, answers)
    return {**made, "old": 100.0 - made["old"]}

"""
# a mistake that takes more code, and the lines that name it
LONGER = {
    "turned round, and no bias is simulated": (
        "AgeStereotypes.synthetic_bias = None\nAgeStereotypes.record = turned\n",
        "old_share: it is 0 where all answers say 'takes the old for it', 100 where they say 'takes the young for "
        "it': turn its favours round, or what record.*",
    ),
    "a record that can't be kept": (
        "AgeStereotypes.record = lambda self, doc, answers: {**record(self, doc, answers), 'seen': {1}}\n",
        r"record\(\): TypeError: JSON has no set: records are texts, numbers, lists, .*",
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
        r"old_share: it is \S+ of random answers to 24 documents, its interval 0 to 1.*",
    ),
    "a number in place of an estimate": (
        "changed(statistic=lambda first: lambda records: 50.0)\n",
        r"old_share: .*it is 50.0, not an Estimate\)",
    ),
    "another number is compared": (
        "estimated(value=12.0, interval=None)\n",
        r"old_share: it is 12, and \S+ by its design, which compare goes by",
    ),
    "the order counts": (
        "changed(statistic=lambda first: lambda r: first.design(r[:7]).estimate(), design=lambda first: None)\n"
        "changed(design=lambda first: None, statistic=lambda first: lambda r: __import__('lm_eval_bias.authoring')"
        ".authoring.Estimate(r[0]['old'] / 2 + r[5]['old'] / 4 + r[2]['old'] / 8, 3.0, 24))\n",
        r"old_share: it is \S+, and \S+ in another order",
    ),
    "no JSON in a result": (
        "AgeStereotypes.provenance = lambda self, docs: {'when': {1}}\n",
        r"TypeError: .*not JSON serializable.*",
    ),
    "a facet that fails": (
        "AgeStereotypes.facets = {'text': lambda record: record['texts']}\n",
        r"KeyError: 'texts'",
    ),
    "its words are swapped, though a bias is simulated": (
        "changed(favours=lambda first: first.favours[::-1])\n",
        r"old_share: it is 0 where all answers say 'takes the young for it', 100 where they say .*",
    ),
    "chance isn't what random answers give": (
        "able(chance=95.0)\n",
        r"old_share: random answers give \S+, its chance is 95",
    ),
    "an ability that everybody has": (
        "able()\ngraded = AgeStereotypes.record\n"
        "AgeStereotypes.record = lambda s, d, a: {**graded(s, d, a), 'old': 100.0}\n",
        r"old_share: it is 100 of random answers, which know nothing",
    ),
    "an ability that is best where it is worst": (
        "able(higher_is_better=False)\n",
        r"old_share: its best value is 100, but its higher_is_better is False",
    ),
    "a third of the labels is wrong": (
        "able(gold=lambda doc: label(doc) != (doc['trait'] in ('slow', 'wise')))\n",
        r"old_share: a model that is always right gets 66.7, not 100",
    ),
    "the right option is always the first": (
        "able()\nplain = documents.dataset\n"
        "def listed(**facts):\n"
        "    docs = plain(**facts)['test']\n"
        "    return {'test': [{**d, 'context': f'{d[\"context\"]} (old one. or young one.)'} for d in docs]}\n"
        "documents.dataset = listed\n",
        r"the right one of its options is number 0 in every prompt: shuffle them",
    ),
    "one cluster": (
        "import lm_eval_bias.authoring as a\nchanged(statistic=lambda first: None, design=lambda first: "
        "lambda r: a.tabulate(['all'] * len(r), [(o['old'], 1) for o in r], a.share_of))\n",
        r"old_share: all its items are one cluster: an interval needs several",
    ),
    "a cluster for each item": (
        "import lm_eval_bias.authoring as a\nchanged(statistic=lambda first: None, design=lambda first: "
        "lambda r: a.tabulate(range(len(r)), [(o['old'], 1) for o in r], a.share_of))\n",
        r"old_share: each item is a cluster, though several share 'At the .*'",
    ),
    "drawn at random": (
        "AgeStereotypes.record = lambda s, d, a: {**record(s, d, a), 'old': draws.choice((0.0, 100.0))}\n",
        r"record\(\): the same answers give another record each time: what is drawn needs a seed",
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
    assert any(re.fullmatch(rf"(.*/)?{line}", text) for text in problems), problems
    assert len(problems) <= 12, problems


@pytest.mark.parametrize("name", LONGER)
def test_a_longer_mistake_is_one_line(name, package):
    more, line = LONGER[name]
    package(more=CHANGED + more)
    found = command("doctor", "--benchmark", "age_stereotypes")
    check(found, rf"[\w.]+:\d+: age_pairs\S*( .*)?: {line}")


def test_without_a_synthetic_bias_it_says_that_it_is_not_checked(package):
    package(more="AgeStereotypes.synthetic_bias = None\n")
    found = command("doctor", "--benchmark", "age_stereotypes")
    assert found.status == 0
    (note,) = lines_of(found, "note")
    text = "whether its scores follow a bias wasn't checked: add one (Benchmark.synthetic_bias)"
    assert note.endswith(f": age_pairs, age_pairs_gen, age_ratings: {text}")


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
