"""Choose the items of the suites ``quick`` and ``quick-chat``, and write them as lists of places.

Among items that are alike in what is balanced, those with the smallest hash of seed and name are taken: a random choice
that depends on nothing else, so that the translations of an item are chosen together, or not at all.

    python -m simulations.suite_items      # writes lm_eval_bias/suite_items.yaml

A change of seed, rule or number is a new ``VERSION`` in lm_eval_bias/evaluation/suites.py: scores are of other items.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import yaml
from lm_eval.tasks import TaskManager

from lm_eval_bias.core import Facts, files, numbers
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.tasks.shared.bbq_records import ROLE_ORDERS, goes_along
from tests.support.places import ROOT

FILE = ROOT / "lm_eval_bias" / "suite_items.yaml"
HEAD = """\
# The items that the suites of suites.yaml take of a task: places of its documents, from 0, and of how many documents.
# Written by simulations/suite_items.py, which says how they were chosen.
"""
SEED = "quick-1"
Cell = tuple[object, ...]


def draw(name: object) -> str:
    """Sort key that puts items in a reproducible random order."""
    return hashlib.sha256(f"{SEED}:{name}".encode()).hexdigest()


def grouped(
    docs: Documents, key: Callable[[Facts], numbers.K]
) -> dict[numbers.K, list[int]]:
    """Group the indices of documents by what these have in common."""
    return numbers.grouped((key(doc), i) for i, doc in enumerate(docs))


def products(docs: Documents, number: int, *, items: int) -> list[int]:
    """Choose templates, and occupations of each group, and of these the whole product, as crossed errors need it.

    Args:
        docs: Of one task.
        number: How many templates; all where there are fewer.
        items: How many occupations of a group.
    """

    def first(names: Iterable[object], most: int) -> list[object]:
        return sorted(set(names), key=lambda name: draw(name))[:most]

    names = first((doc["template"] for doc in docs), number)
    groups = grouped(docs, lambda doc: doc["group"])
    for members in groups.values():
        names += first((docs[i]["item"] for i in members), items)
    return [
        i for i, doc in enumerate(docs) if {doc["template"], doc["item"]} <= set(names)
    ]


def per_cell(
    docs: Documents, number: int, *, cell: Sequence[str], name: str
) -> list[int]:
    """Choose as many items of every cell; the same ones in every language.

    Args:
        docs: Of one task.
        number: How many of a cell; all where there are fewer.
        cell: The fields that documents of a cell share.
        name: The field with an item's name, which it has in every language.
    """
    groups = grouped(docs, lambda doc: tuple(str(doc[field]) for field in cell))
    chosen = []
    for members in groups.values():
        chosen += sorted(members, key=lambda i: draw(docs[i][name]))[:number]
    return sorted(chosen)


def pairs_of_blocks(docs: Documents, number: int) -> list[int]:
    """Choose pairs of blocks that go along and against stereotypes, and show their options at the same places.

    Every template gives as many pairs, of orders of the options that were taken least so far.

    Args:
        docs: MBBQ's, with the block and the pair in which each item stands.
        number: How many pairs of a template; all where there are fewer.
    """
    templates: dict[str, dict[int, list[int]]] = {}
    for (template, pair), places in grouped(
        docs, lambda doc: (doc["template"], doc["pair"])
    ).items():
        ways = [
            (doc["control"], doc["label"] == doc["biased_choice"])
            for doc in (docs[i] for i in places)
            if doc["directed"] and doc["context_type"] == "disambiguated"
        ]
        if len(set(ways)) == 4:
            templates.setdefault(template, {})[pair] = places
    chosen = []
    taken = Counter[int]()
    # templates with one pair leave no choice and go first
    for pairs in sorted(templates.values(), key=len):
        left = sorted(pairs, key=lambda pair: draw(pair))
        for _ in range(min(number, len(left))):
            pair = min(left, key=lambda pair: taken[pair % len(ROLE_ORDERS)])
            left.remove(pair)
            taken[pair % len(ROLE_ORDERS)] += 1
            chosen += pairs[pair]
    return sorted(chosen)


def swapped_pairs(docs: Documents, number: int) -> list[int]:
    """Choose pairs of items of every term and test that show stereotype and anti-stereotype at swapped places.

    A model that always takes the same place prefers neither.

    Args:
        docs: StereoSet's, with the order in which prompts show the candidates.
        number: How many pairs a term and test; where an item has no other to go with, its pair has any.
    """
    swapped = {"stereotype": "anti-stereotype", "anti-stereotype": "stereotype"}
    shown = [
        [doc["candidates"][place]["label"] for place in doc["order"]] for doc in docs
    ]
    chosen = []
    for group in grouped(docs, lambda doc: (doc["term"], doc["test"])).values():
        left = sorted(group, key=lambda i: draw(docs[i]["id"]))
        for _ in range(min(number, len(left) // 2)):
            first = left.pop(0)
            wanted = [swapped.get(label, label) for label in shown[first]]
            second = next((i for i in left if shown[i] == wanted), left[0])
            left.remove(second)
            chosen += [first, second]
    return sorted(chosen)


def quadruples(docs: Documents, number: int) -> list[int]:
    """Choose whole quadruples (both questions and contexts), as many of every template, half in biased contexts.

    A template that has biased or counter-biased contexts only gives that many of these, one that has too few gives
    all. Biased and counter-biased contexts each show "unknown" equally often at every place, and so do those of a
    template as far as that allows it: whoever always takes one place gets no bias from it.

    Args:
        docs: In one or several wordings.
        number: How many a template, a multiple of 6.
    """
    items = grouped(docs, lambda doc: (doc["template"], doc["item"] // 2))
    strata: dict[tuple[str, bool], list[tuple[int, int]]] = {}
    orders = {}
    for name, indices in items.items():
        doc = docs[indices[0]]
        stratum = doc["template"], goes_along([docs[i] for i in indices])
        strata.setdefault(stratum, []).append(name)
        orders[name] = tuple(doc["order"])
    # small templates, which leave no choice, go first, so that the larger ones can make up for them
    ordered = sorted(
        strata.items(), key=lambda pair: (len(pair[1]), draw(pair[0]), pair[0])
    )
    templates = Counter(template for template, _ in strata)
    sample = []
    used = Counter[Cell]()
    for (template, direction), names in ordered:
        # what is to be used equally often, the most important first
        cells = {}
        for name in names:
            place = orders[name].index(2)
            cells[name] = [
                (direction, place),
                (template, direction, place),
                (direction, orders[name]),
            ]
        remaining = sorted(cells, key=lambda name: draw(name))
        for _ in range(min(number // templates[template], len(remaining))):
            name = min(remaining, key=lambda name: [used[c] for c in cells[name]])
            remaining.remove(name)
            used.update(cells[name])
            sample.append(name)
    return sorted(i for name in sample for i in items[name])


def versions(docs: Documents, number: int) -> list[int]:
    """Choose versions of every story, of which the others have the persons swapped; the first and last ones in turn.

    Every version has biased and counter-biased contexts in all orders, and every story is a cluster of its own.

    Args:
        docs: Of one task.
        number: How many versions of a story.
    """
    stories = numbers.grouped((doc["template"], _version(doc)) for doc in docs)
    chosen = set()
    for turn, story in enumerate(sorted(stories, key=lambda name: draw(name))):
        names = sorted(set(stories[story]), reverse=bool(turn % 2))
        chosen.update(names[:number])
    return [place for place, doc in enumerate(docs) if _version(doc) in chosen]


def _version(doc: Facts) -> str:
    """Return an item's category, story and version: ``gender_identity-001a``."""
    return "-".join(doc["item"].split("-")[:2])


CHOICES: dict[str, dict[str, Callable[[Documents], list[int]]]] = {
    "quick": {
        **dict.fromkeys(
            ("occugender_explicit", "occugender_implicit"),
            partial(products, number=16, items=10),
        ),
        **dict.fromkeys(
            ("gg_bbq_group_terms", "gg_bbq_names"), partial(quadruples, number=6)
        ),
        **dict.fromkeys(
            ("es_bbq_gender", "ca_bbq_gender"),
            partial(
                per_cell,
                number=3,
                cell=("template", "context_type", "question_type", "polarity"),
                name="item",
            ),
        ),
        "kobbq_gender_identity": partial(versions, number=1),
        **{
            f"mbbq_{language}_gender_identity": partial(pairs_of_blocks, number=1)
            for language in ("en", "es", "nl", "tr")
        },
        **{
            f"stereoset_{language}": partial(
                per_cell, number=3, cell=("term", "test"), name="id"
            )
            for language in ("en", "de", "es", "fr", "tr")
        },
        **{
            f"eurogest_{language}": partial(
                per_cell, number=12, cell=("stereotype",), name="id"
            )
            for language in ("en", "de", "es", "fr", "nl", "tr", "ca")
        },
    },
    "quick-chat": {
        "occugender_explicit_gen": partial(products, number=16, items=10),
        "gg_bbq_group_terms_gen": partial(quadruples, number=6),
        "kobbq_gender_identity_gen": partial(versions, number=1),
        "mbbq_en_gender_identity_gen": partial(pairs_of_blocks, number=1),
        **dict.fromkeys(
            ("stereoset_en_gen", "stereoset_de_gen"), partial(swapped_pairs, number=1)
        ),
        "eurogest_de_gen": partial(
            per_cell, number=2, cell=("stereotype", "order"), name="id"
        ),
    },
}


def ranges(places: Sequence[int]) -> str:
    """Write ascending places as ranges: ``0-3,7``."""
    texts = []
    for _, run in itertools.groupby(enumerate(places), lambda pair: pair[1] - pair[0]):
        first, *rest = [place for _, place in run]
        texts.append(f"{first}-{rest[-1]}" if rest else str(first))
    return ",".join(texts)


def written() -> str:
    """Return the file's text: what equals another task's list refers to it."""
    manager = TaskManager(include_path=str(files.tasks_path()), include_defaults=False)
    known: dict[str, dict[str, object]] = {}
    suites: dict[str, dict[str, dict[str, object]]] = {}
    for suite, choices in CHOICES.items():
        suites[suite] = {}
        for task, choose in choices.items():
            docs = list(manager.load([task])["tasks"][task].eval_docs)
            part = {"of": len(docs), "items": ranges(choose(docs))}
            suites[suite][task] = known.setdefault(str(part), part)
    return HEAD + yaml.safe_dump(suites, sort_keys=False, width=10**6)


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
