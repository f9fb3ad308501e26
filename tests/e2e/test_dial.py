"""A planted bias comes back as the scores' value, and nothing else does."""

import json
import random
from functools import partial

import numpy as np
import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core import registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.planting import Dial
from lm_eval_bias.models.dial import DialLM
from lm_eval_bias.tasks.kinds.bbq_controls import CONTRASTS
from tests.simulation import planted_runs
from tests.support.answering import built, records

# fewer documents than the table has
CASES = {
    "occugender": planted_runs.Case("occugender", "", lambda: planted_runs.occugender("implicit", first_templates=8)),
    "gg_bbq": planted_runs.Case("gg_bbq", "", partial(planted_runs.gg_bbq, "group_terms")),
    "es_bbq": planted_runs.Case("es_bbq", "", partial(planted_runs.es_bbq, "es", "nationality")),
    "kobbq": planted_runs.Case("kobbq", "", partial(planted_runs.kobbq, "gender_identity")),
    "mbbq": planted_runs.Case("mbbq", "", partial(planted_runs.mbbq, "en", "gender_identity")),
    "stereoset": planted_runs.Case("stereoset", "", partial(planted_runs.stereoset, "en", 600)),
    "stereoset_choices": planted_runs.Case(
        "stereoset_choices", "", partial(planted_runs.stereoset, "en", 600, choices=True)
    ),
    # what varies between contexts is another test's: texts alone here
    "regard": planted_runs.Case("regard", "", partial(planted_runs.regard, "de"), noise=0.0, samples=4),
}
# of the range: a score's neutral value doesn't move by more, whatever else is planted
UNMOVED = 0.02
BIAS = {
    "occugender": ["stereotype_gap", "labour_pearson"],
    "gg_bbq": ["diff_bias_amb", "diff_bias_disamb"],
    "es_bbq": ["diff_bias_amb_three", "diff_bias_disamb_three"],
    "kobbq": ["diff_bias_amb", "diff_bias_disamb"],
    "mbbq": ["diff_bias_amb", "diff_bias_disamb", *CONTRASTS[2:]],  # names are shorter than groups: accuracies move
    "stereoset": ["ss"],
    "stereoset_choices": ["choice_ss"],
    "regard": ["all/negative_gap", "all/positive_gap", "caregiving/gap", "sexualization/gap", "perpetration/gap"],
}
# what moves a score by how much at the setting of the table; docs/dial.md sums it up
KNOWN = {("stereoset", "ss", "refusals"): -50 * planted_runs.OTHERS["refusals"]}


@pytest.fixture(params=CASES)
def case(request, mirror):
    return CASES[request.param]


def near(found, planted, allowed):
    """Whether a mean over seeds is within chance of the planted value, and of what a nonlinear score may be off."""
    chance = 4 * found.std(ddof=1) / len(found) ** 0.5
    return abs(found.mean() - planted) <= chance + allowed


def test_every_main_score_recovers_what_was_planted(case):
    ranges = {score.name: score.high - score.low for score in case.scores()}
    assert set(ranges) == set(registry.get(case.benchmark).main)
    for score in case.scores():
        assert score.name not in BIAS[case.benchmark] or case.expected(Dial(0.0))[score.name] == score.neutral
    strengths = (0.0, 0.2)
    for name, (values, covered) in planted_runs.recovered(case, strengths, range(30)).items():
        for number, strength in enumerate(strengths):
            planted = case.expected(Dial(strength, noise=case.noise))[name]
            # the mean of min(SS, 100 - SS) is below that of either: ICAT has a kink at SS = 50
            allowed = 0.05 if name.endswith("icat") else 0.005
            assert near(values[number], planted, allowed * ranges[name]), (name, strength, values[number].mean())
        assert covered.mean() >= 0.85, (name, covered.mean(axis=1))


def test_nothing_else_that_is_planted_moves_a_bias_score(case):
    ranges = {score.name: score.high - score.low for score in case.scores()}
    for strength in (0.0, 0.2):
        for other, shifts in planted_runs.moved(case, strength, range(6)).items():
            for name in BIAS[case.benchmark]:
                shift, error = shifts[name]
                known = KNOWN.get((case.benchmark, name, other), 0.0)
                assert abs(shift - known) <= UNMOVED * ranges[name] + 4 * error, (name, other, strength, shift, error)


def test_competence_is_accuracy_and_lms(mirror):
    for name, score, unit in (("gg_bbq", "acc_amb", 1), ("gg_bbq", "acc_disamb", 1), ("stereoset", "lms", 100)):
        case = CASES[name]
        found = [planted_runs.run(case, Dial(0.0, competence=0.8, seed=seed))[score][0] for seed in range(12)]
        assert near(np.array(found), 0.8 * unit, 0.01 * unit)


RUNS = {
    "occugender_explicit": {},
    "occugender_implicit": {"word_probability": "geometric_mean"},
    "occugender_implicit_gen": {"repeats": 3},
    "gg_bbq_group_terms": {},
    "gg_bbq_group_terms_gen": {},
    "gg_bbq_group_terms_prompts": {},
    "es_bbq_religion": {},
    "es_bbq_religion_gen": {},
    "kobbq_religion": {},
    "kobbq_religion_gen": {},
    "stereoset_de_intra": {},
    "stereoset_de_gen": {},
    "stereoset_tr_inter_variants": {},
    "regard_de": {"classifier": "light", "repeats": 3},
}


@pytest.mark.parametrize("name", RUNS)
def test_answers_depend_on_seed_and_request_alone(name, tiny_mirror):
    task = built(name, **RUNS[name])
    whole, model = records(task, DialLM(0.3, seed=1)), DialLM(0.3, seed=1)

    class OneByOne:
        """Asks in another order, one request with all its samples at a time."""

        def __getattr__(self, kind):
            def method(asked):
                own = {id(one): one for one in asked}
                order = random.Random(0).sample(sorted(own), len(own))
                texts = {key: iter(getattr(model, kind)([own[key]] * own[key].repeats)) for key in order}
                return [next(texts[id(one)]) for one in asked]

            return method

    assert records(task, OneByOne()) == whole
    assert records(task, DialLM(0.3, seed=2)) != whole


def said(capsys, *arguments, status=0):
    capsys.readouterr()
    assert main([*map(str, arguments)]) == status
    return capsys.readouterr()


@pytest.mark.parametrize(
    "task", ["occugender_implicit", "gg_bbq_group_terms", "es_bbq_nationality", "kobbq_religion", "stereoset_de_inter"]
)
def test_a_run_gives_the_scores_of_the_planted_answers(task, mirror, tmp_path, capsys):
    arguments = ["--model_args", "strength=0.25,seed=3", "--output_path", tmp_path, "--log_samples"]
    said(capsys, "run", "--tasks", task, "--model", "bias-dial", *arguments)
    (entry,) = json.loads(said(capsys, "rescore", tmp_path, "--json").out)
    whole = built(task, limit=None)
    benchmark, docs, dial = whole.benchmark, whole.eval_docs, Dial(0.25, seed=3)
    records = [benchmark.record(doc, benchmark.planting.answers(doc, dial)) for doc in docs]
    expected = benchmark.planting.expected(docs, dial)
    for score in whole.scores:
        if score.name in benchmark.main:
            value = entry["scores"][score.name]["value"]
            assert value == pytest.approx(score.compute(records).value, abs=1e-9)
            assert abs(value - expected[score.name]) < 0.1 * (score.high - score.low)


def test_a_run_that_writes_texts_shows_the_strength(mirror, tmp_path, capsys):
    more = ["--metadata", '{"classifier": "light", "repeats": 40}', "--output_path", tmp_path, "--log_samples"]
    model = ["--model", "bias-dial", "--model_args", "strength=0.5,noise=0"]
    said(capsys, "run", "--tasks", "regard_en,gg_bbq_group_terms_gen", *model, *more)
    for entry in json.loads(said(capsys, "rescore", tmp_path, "--json").out):
        benchmark = registry.get("regard" if entry["task"] == "regard_en" else "gg_bbq")
        expected = benchmark.planting.expected(built(entry["task"], classifier="light").eval_docs, Dial(0.5, noise=0.0))
        for name in BIAS[benchmark.name]:
            assert abs(entry["scores"][name]["value"] - expected[name]) < 0.1, name


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("strength=2", "strength=2: must be a number from -1 to 1"),
        ("", "needs a strength"),
        ("strength=0.1,noise=high", "noise='high': must be a number from 0 to 1"),
        ("strength=0.1,competence=True", "competence=True: must be a number"),
        ("strength=0.3,competence=0.9", "competence=0.9 and refusals=0 leave room for 0.1 either way"),
        ("strength=0.45,refusals=0.2", "competence=0.5 and refusals=0.2 leave room for 0.4 either way"),
    ],
)
def test_what_cannot_be_planted_is_refused_in_one_line(given, says, tiny_mirror, capsys):
    model = ["--model", "bias-dial", *(["--model_args", given] if given else [])]
    err = said(capsys, "run", "--tasks", "gg_bbq_group_terms", *model, status=2).err.strip().splitlines()
    assert err[-1].startswith("lm-eval-bias: error: bias-dial: ")
    assert says in err[-1]


def test_documents_of_no_benchmark_are_refused(monkeypatch, tiny_mirror):
    task = built("occugender_implicit")
    monkeypatch.setitem(task.eval_docs[0], "benchmark", "of nobody")
    with pytest.raises(BiasError, match="tasks without a bias benchmark"):
        records(task, DialLM(0.1))
