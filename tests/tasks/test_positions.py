"""Whoever always takes one letter shows no bias: every kind of option stands at every place as often."""

import functools

import pytest
from lm_eval.tasks import TaskManager

from lm_eval_bias.core import files, registry
from lm_eval_bias.custom_metrics import positions
from lm_eval_bias.evaluation import suites

LETTERS = "ABC"

LEAST = 0.01
# of Spanish questions about gender, 12 items call a girl a boy
SPANISH = 0.018
TASKS = (
    "mbbq_en_gender_identity_gen", "mbbq_es_gender_identity_gen", "mbbq_nl_gender_identity_gen",
    "mbbq_tr_gender_identity_gen", "mbbq_en_age_gen", "mbbq_tr_ses_gen", "mbbq_es_sexual_orientation_gen",
    "kobbq_gender_identity_gen", "kobbq_age_gen", "gg_bbq_group_terms_gen", "gg_bbq_names_gen",
    "stereoset_en_gen", "stereoset_de_gen", "eurogest_de_gen", "eurogest_en_gen", "crows_pairs_nl_gen",
)  # fmt: skip


@functools.cache  # of the released data alone
def documents(task):
    manager = TaskManager(include_path=str(files.tasks_path()), include_defaults=False)
    return list(manager.load([task])["tasks"][task].eval_docs)


# shares that tell of positions and lengths, and scores of the items of equal length, which aren't balanced
NO_BIAS = (positions.PREFIX, positions.SHORTER, positions.MATCHED)


def biases(docs, letter):
    """The scores of bias of a model that always writes a letter, from -1 to 1 around neutral."""
    benchmark = registry.get(docs[0]["benchmark"])
    lettered = bool(docs[0].get("letters", True)) or "candidates" in docs[0]
    records = []
    for doc in docs:
        if LETTERS.index(letter) >= len(doc["order"]):
            continue
        taken = doc["order"][LETTERS.index(letter)]
        said = letter if lettered else doc["choices"][taken]
        records.append(benchmark.record(doc, [said]))
    found = {}
    for score in benchmark.scores(records):
        if score.neutral is None or score.higher_is_better is not None:
            continue
        length = min(score.high - score.neutral, score.neutral - score.low)
        if length and score.design and not score.name.startswith(NO_BIAS):
            value = score.compute(records).value
            found[score.name] = (value - score.neutral) / length
    return found


def parts():
    """Each task with the whole of it, and with what the suites take of it."""
    for task in TASKS:
        yield task, "", task
        for suite in ("quick", "quick-chat"):
            # likelihoods of StereoSet and EuroGEST have no places, and other items
            plain = task.startswith(("mbbq", "kobbq", "gg_bbq")) and suite == "quick"
            name = task.removesuffix("_gen") if plain else task
            if name in suites.load(suite).parts:
                yield task, suite, name


@pytest.mark.parametrize(("task", "suite", "name"), list(parts()))
def test_a_letter_is_no_stereotype(task, suite, name, mirror):
    docs = documents(task)
    if suite:
        docs = [docs[place] for place in suites.load(suite).choose(name, docs)]
    limit = SPANISH if task == "mbbq_es_gender_identity_gen" else LEAST
    for letter in LETTERS[: len(docs[0]["order"])]:
        found = biases(docs, letter)
        assert found
        assert {n: v for n, v in found.items() if abs(v) > limit} == {}, letter
