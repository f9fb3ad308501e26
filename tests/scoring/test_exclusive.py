"""Log-likelihoods that no distribution has: no run scores them, and no cache keeps them."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.harness import internals, registration, servers
from lm_eval_bias.scoring import token_likelihoods
from tests.support.servers import Kept

TEXTS = st.text("ab", max_size=4)


def slowest(probabilities):
    """The largest sum over all sets of which no member begins another."""
    sums = [0.0]
    for size in range(1, len(probabilities) + 1):
        for chosen in itertools.combinations(probabilities, size):
            if not any(a != b and b.startswith(a) for a in chosen for b in chosen):
                sums.append(math.fsum(probabilities[text] for text in chosen))
    return max(sums)


@given(st.dictionaries(TEXTS, st.floats(0, 1), max_size=7))
def test_the_largest_sum_is_that_of_all_exclusive_sets(probabilities):
    assert servers.largest_sum(probabilities) == pytest.approx(slowest(probabilities), abs=1e-12)


P = math.log(0.6)
CASES = {
    "one begins the other": ([("c", " he", P), ("c", " hers", P)], ""),
    "two contexts": ([("c", " he", P), ("d", " she", P)], ""),
    "the same again": ([("c", " he", P), ("c", " he", P)], ""),
    "case, which a tokenizer may not see": ([("c", " He", P), ("c", " he", P)], ""),
    "accents": ([("c", " Zoë", P), ("c", " Zoe", P)], ""),
    "rounding": ([("c", " he", math.log(0.52)), ("c", " she", math.log(0.53))], ""),
    "none": ([("c", " he", -math.inf), ("c", " she", math.nan)], ""),
    "certain": ([("c", " he", 0.0), ("c", " she", -800.0)], ""),
    "two": ([("c", " he", P), ("c", " she", P)], "(he, she) with probabilities that sum to 120%"),
    "longer ones": ([("c", " he", -9.0), ("c", " hers", P), ("c", " here", P)], "sum to 120%"),
    "tokens": ([((0,), (1,), P), ((0,), (2, 1), P), ((0,), (1, 7), -1.0)], "(tokens (1,), tokens (2, 1), "),
    "above 0": ([("c", " he", 0.2)], "0.2, above 0"),
    "infinite": ([("c", " he", math.inf)], "inf, above 0"),
    "all 0": ([("c", word, 0.0) for word in (" he", " she", " they")], "sum to 300%"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_distribution_can_give(name):
    answers, says = CASES[name]
    found = servers.problem(answers)
    assert says in found
    assert bool(found) is bool(says)


def model(value):
    """A model of a few tokens that gives every token the same log-probability."""
    from lm_eval.api.model import TemplateLM

    registration.register()

    class Constant(TemplateLM):
        eot_token_id = prefix_token_id = 0

        def tok_encode(self, string, **kwargs):
            return [ord(letter) for letter in string]

        def _loglikelihood_tokens(self, requests, **kwargs):
            return [(value * len(continuation), False) for _, _, continuation in requests]

        loglikelihood_rolling = generate_until = None

    made = Constant()
    made.cache_hook.dbdict = Kept()
    return made


def exactly(model, *words):
    from lm_eval.api.instance import Instance

    return model.exact_loglikelihood([Instance("exact_loglikelihood", {}, ("c", word), 0) for word in words])


def test_neither_texts_nor_tokens_are_believed_and_none_are_kept():
    constant = model(0.0)
    with pytest.raises(BiasError, match=r"Constant gives .*\(he, she\) with .* sum to 200%: check it"):
        exactly(constant, " he", " she")
    with pytest.raises(BiasError, match=r"\(tokens \(1,\), tokens \(2,\)\) with .* sum to 200%"):
        token_likelihoods.loglikelihoods(constant, [([0], [1]), ([0], [2])])
    assert constant.cache_hook.dbdict == {}


def test_a_cache_of_impossible_answers_is_emptied():
    constant = model(-5.0)
    for word in (" he", " she"):
        constant.cache_hook.dbdict[internals.request_key("loglikelihood", ("c", word))] = (0.0, False)
    with pytest.raises(BiasError, match="sum to 200%"):
        exactly(constant, " he", " she")
    assert exactly(constant, " he", " she") == [(-15.0, False), (-20.0, False)]


def test_the_dummy_of_the_harness_answers_at_random_and_runs(tiny_mirror, tmp_path, capsys):
    from lm_eval import simple_evaluate, utils

    tasks = ["occugender_implicit", "gg_bbq_group_terms"]
    manager = internals.task_manager([tasks_path()], {}, include_defaults=False)
    results = simple_evaluate(model="dummy", tasks=tasks, limit=8, task_manager=manager)
    assert all(name in utils.make_table(results) for name in (*tasks, "stereotype_gap", "acc_amb"))
    run = ["run", "--model", "dummy", "--tasks", ",".join(tasks), "--limit", "8", "--log_samples"]
    assert main([*run, "--output_path", str(tmp_path)]) == 0
    assert main(["rescore", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["report", str(tmp_path), "--format", "md"]) == 0
    assert capsys.readouterr().out.count("; chance level: dummy answers at random.") == 2
