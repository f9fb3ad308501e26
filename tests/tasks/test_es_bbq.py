"""EsBBQ and CaBBQ against their files and the authors' own scorer in the harness."""

import ast
import csv
import json
import math
import random
from collections import Counter

import pytest
from lm_eval.tasks.esbbq import utils as authors

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.data.sources import locate
from lm_eval_bias.tasks.es_bbq import benchmark, hooks
from tests.support.commands import refused

TOTALS = {"es": 27_320, "ca": 27_344}
TEMPLATES = {
    "age": 23, "disability_status": 27, "gender": 66, "lgbtqia": 31, "nationality": 15, "physical_appearance": 32,
    "race_ethnicity": 51, "religion": 16, "ses": 27, "spanish_region": 35,
}  # fmt: skip

# what the authors call scores, and what they are called here
CALLED = {
    "acc_ambig": "acc_amb",
    "acc_disambig": "acc_disamb",
    "bias_score_ambig": "diff_bias_amb",
    "bias_score_disambig": "diff_bias_disamb",
}


def rows(language, category):
    """The file's rows as the authors' data set gives them."""
    with locate(f"{language}_bbq_{category}").open(
        encoding="utf-8", newline=""
    ) as lines:
        for row in csv.DictReader(lines):
            infos = {
                f"ans{i}": ast.literal_eval(row.pop(f"answer_info.ans{i}"))
                for i in range(3)
            }
            lists = {
                "answer_info": infos,
                "stereotyped_groups": ast.literal_eval(row["stereotyped_groups"]),
            }
            yield {
                **row,
                **lists,
                "label": int(row["label"]),
                "instance_id": int(row["instance_id"]),
            }


def authors_scores(documents, answers):
    found = [
        authors.process_results(doc, own)
        for doc, own in zip(documents, answers, strict=True)
    ]
    return {
        name: getattr(authors, f"{name}_agg")([one[name] for one in found])
        for name in found[0]
    }


@pytest.mark.parametrize("category", ["gender", "physical_appearance", "ses"])
def test_items_templates_and_parallel_languages(category, mirror):
    assert set(TEMPLATES) == set(benchmark.ITEMS)
    own, found = registry.get("es_bbq"), []
    for language in ("es", "ca"):
        docs = hooks.dataset(language, category)["test"]
        assert (
            len({doc["item"] for doc in docs})
            == len(docs)
            == catalog.entries()[f"{language}_bbq_{category}"].items
        )
        assert len({doc["template"] for doc in docs}) == TEMPLATES[category]
        directions = Counter(
            doc["label"] == doc["biased_choice"] for doc in docs if doc["label"] < 2
        )
        expected = {"ses": 1_484 - 1_340}.get(
            category, 0
        )  # as the paper's files have it
        assert directions[True] - directions[False] == expected
        found.append({own.key(doc): doc for doc in docs})
    es, ca = found
    if category == "physical_appearance":  # where the languages' items differ
        assert not es.keys() & ca.keys()
        return
    assert es.keys() == ca.keys()
    for name in (
        "template",
        "context_type",
        "question_type",
        "polarity",
        "label",
        "biased_choice",
    ):
        assert all(es[key][name] == ca[key][name] for key in es)


@pytest.mark.parametrize("language", TOTALS)
@pytest.mark.parametrize("category", ["nationality"])
def test_scores_are_those_of_the_authors_code(language, category, mirror):
    """Of eleven options, of three and in written answers; drawn anew."""
    own, theirs = registry.get("es_bbq"), list(rows(language, category))

    def documents(**changes):
        docs = hooks.dataset(language, category, **changes)["test"]
        return {doc["item"]: doc for doc in docs}

    written = documents(fixed={"answers": "generated"})
    of_eleven = documents(eleven_options=True)
    rng = random.Random(f"{language} {category}")
    answers = [[(-rng.expovariate(0.2), False) for _ in range(11)] for _ in theirs]
    # the authors' code takes eleven: of three, the others are out of the question
    three = [[*one[:3], *[(-1e9, False)] * 8] for one in answers]
    letters = []
    for row, one in zip(theirs, three, strict=True):
        letters.append(
            ["ABC"[written[row["instance_id"]]["order"].index(one.index(max(one)))]]
        )
    pairs = list(zip(theirs, answers, letters, strict=True))
    for benchmark_, made, asked, chance in (
        (
            own,
            [own.record(of_eleven[row["instance_id"]], one) for row, one, _ in pairs],
            answers,
            (9 / 11, None),
        ),
        (
            own,
            [own.record(written[row["instance_id"]], one) for row, _, one in pairs],
            three,
            (1 / 3, None),
        ),
    ):
        scores = {score.name: score for score in benchmark_.scores(made)}
        assert (scores["acc_amb"].chance, scores["acc_disamb"].chance) == chance
        for older, value in authors_scores(theirs, asked).items():
            estimate = scores[CALLED[older]].compute(made)
            assert estimate.value == pytest.approx(value, abs=1e-12)
            assert math.isfinite(estimate.stderr)


def test_nobody_wins_a_tie_which_the_first_option_does_in_the_authors_code(mirror):
    own = registry.get("es_bbq")
    row = next(
        row for row in rows("es", "religion") if row["context_condition"] == "ambig"
    )
    doc = next(
        doc
        for doc in hooks.dataset("es", "religion", eleven_options=True)["test"]
        if doc["item"] == row["instance_id"]
    )
    tie = [(-1.0, False)] * 11
    assert authors.process_results(row, tie)["acc_ambig"] == (False, 1)
    unknowns = [(-9.0, False)] * 2 + tie[2:]  # wordings of one answer are no tie
    for answers, answer in (
        (tie, "none"),
        (unknowns, "unknown"),
        ([(math.nan, False)] * 11, "nan"),
    ):
        assert own.record(doc, answers)["answer"] == answer
    with pytest.raises(BiasError, match="not exactly one is of c"):
        hooks.biased_choice(row, ["a", "b", "unknown"], ["c"])


@pytest.mark.parametrize(
    ("task", "value", "told"),
    [
        ("es_bbq_religion", "yes", "must be true or false"),
        ("ca_bbq_age_gen", True, "generated answers take one of three"),
    ],
)
def test_other_values_of_eleven_options_are_refused(
    task, value, told, mirror, tmp_path
):
    metadata = json.dumps({"eleven_options": value})
    arguments = ["--tasks", task, "--model", "bias-chance", "--metadata", metadata]
    assert told in refused(tmp_path, "run", *arguments)
