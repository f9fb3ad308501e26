"""A synthetic bias comes back as the scores' value; over many seeds ``simulations/dial.py`` measures it."""

import json

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.synthetic_bias import Dial
from tests.support.answering import built

WHOLE = "occugender_implicit gg_bbq_group_terms es_bbq_nationality kobbq_religion mbbq_en_gender_identity"


@pytest.mark.parametrize("task", [*WHOLE.split(), "stereoset_de_inter"])
def test_a_run_gives_the_scores_of_the_planted_answers(task, mirror, tmp_path, said):
    arguments = [
        "--model_args",
        "strength=0.25,seed=3",
        "--output_path",
        tmp_path,
        "--log_samples",
    ]
    said("run", "--tasks", task, "--model", "bias-dial", *arguments)
    (entry,) = json.loads(said("rescore", tmp_path, "--json"))
    whole = built(task, limit=None)
    benchmark, docs, dial = whole.benchmark, whole.eval_docs, Dial(0.25, seed=3)
    records = [
        benchmark.record(doc, benchmark.synthetic_bias.answers(doc, dial))
        for doc in docs
    ]
    expected = benchmark.synthetic_bias.expected(docs, dial)
    for score in whole.scores:
        if score.name in benchmark.main:
            value = entry["scores"][score.name]["value"]
            assert value == pytest.approx(score.compute(records).value, abs=1e-9)
            assert abs(value - expected[score.name]) < 0.1 * (score.high - score.low)


def test_a_bias_beyond_the_room_is_refused(tiny_mirror):
    task, dial = built("gg_bbq_group_terms"), Dial(0.3, competence=0.9)
    with pytest.raises(BiasError, match="leave room for 0.1 either way"):
        task.benchmark.synthetic_bias.answers(task.eval_docs[0], dial)
