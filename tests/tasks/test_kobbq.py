"""KoBBQ against its files and a scorer written from the definitions."""

import math
import random
from collections import Counter

import pytest

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.answers import REFUSED, UNPARSED
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.kobbq import hooks
from lm_eval_bias.tasks.kobbq.benchmark import SAMPLES


def test_samples_categories_and_stories(mirror):
    docs = hooks.dataset(fixed={"prompt": "all"})["test"]
    assert len(docs) == 2_280 * 3 * 5 == catalog.entries()["kobbq_prompts"].items
    per_story = Counter(
        doc["template"]
        for doc in docs
        if doc["wording"] == 1 and doc["order"] == [0, 1, 2]
    )
    assert Counter(per_story.values()) == {8: 253, 16: 16}
    for category, number in SAMPLES.items():
        assert (
            len(hooks.dataset(category)["test"])
            == 3 * number
            == catalog.entries()[f"kobbq_{category}"].items
        )
    block = 8 * 3 * 5  # of a story; any beginning of whole ones is balanced
    for end in (block, 5 * block, len(docs)):
        contexts = Counter(
            doc["label"] == doc["biased_choice"]
            for doc in docs[:end]
            if doc["label"] < 2
        )
        assert contexts[True] == contexts[False]


# by Eqs. 1-4 from the file's own columns; of answers that are options the denominators are the authors'
LIKELIHOODS = {
    "acc_amb": 0.38976608187134504, "acc_disamb": 0.5216374269005848, "diff_bias_amb": 0.20029239766081872,
    "diff_bias_disamb": 0.2011695906432749, "diff_bias_amb_bound": 0.6102339181286549,
    "diff_bias_disamb_bound": 0.9567251461988304, "unanswered": 0,
}  # fmt: skip
WRITTEN = {
    "acc_amb": 0.3286549707602339, "acc_disamb": 0.42923976608187137, "diff_bias_amb": 0.16169590643274853,
    "diff_bias_disamb": 0.18713450292397654, "diff_bias_amb_bound": 0.671345029239766,
    "diff_bias_disamb_bound": 0.8584795321637427, "unanswered": 0.17076023391812867,
    "acc_amb_in_choice": 0.39647266313932983, "acc_disamb_in_choice": 0.5174480084596405,
    "diff_bias_amb_in_choice": 0.19506172839506172, "diff_bias_disamb_in_choice": 0.23106865213514732,
}  # fmt: skip


@pytest.mark.parametrize("generated", [False, True])
def test_scores_are_those_of_the_definitions(generated, mirror):
    own, rng = registry.get("kobbq"), random.Random(7)
    docs = hooks.dataset(fixed={"answers": "generated"} if generated else {})["test"]
    records = []
    for doc in docs:
        options = [doc["label"], doc["biased_choice"], 0, 1, 2, *[None] * generated]
        choice = rng.choice(options)
        answers = [(-float(i != choice), False) for i in range(3)]
        if generated:
            letter = UNPARSED if choice is None else "ABC"[doc["order"].index(choice)]
            answers = [letter]
        records.append(own.record(doc, answers))
    found = {score.name: score.compute(records) for score in own.scores(docs)}
    expected = WRITTEN if generated else LIKELIHOODS
    for name, value in expected.items():
        assert found[name].value == pytest.approx(value, abs=1e-12)
    refused = [own.record(doc, [REFUSED]) for doc in docs]
    (in_choice,) = (s for s in own.scores(docs) if s.name == "acc_amb_in_choice")
    nothing = in_choice.compute(refused)
    assert math.isnan(nothing.value)
    assert nothing.reason == "no item has a single answer"


@pytest.mark.parametrize("prompt", [0, 6, "2", True, 1.0])
def test_unknown_prompts_are_refused(prompt):
    for metadata in ({"prompt": prompt}, {"prompt": 2, "fixed": {"prompt": "all"}}):
        with pytest.raises(BiasError, match="--metadata prompt"):
            registry.get("kobbq").options.check(metadata)
