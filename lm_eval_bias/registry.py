"""The benchmarks that are known, by name."""

from __future__ import annotations

from lm_eval_bias.benchmark import Benchmark
from lm_eval_bias.errors import BiasError

_ALL = [
    Benchmark(
        "occugender",
        "lm_eval_bias.tasks.occugender.hooks",
        "lm_eval_bias.custom_metrics.occugender:scores",
        ("items", "templates", "words", "word_probability", "instruction", "instruction_position", "first_templates"),
        ("stereotype_gap", "female_dominated_F", "male_dominated_M", "labour_pearson", "coverage"),
    ),
    Benchmark(
        "gg_bbq",
        "lm_eval_bias.tasks.gg_bbq.hooks",
        "lm_eval_bias.custom_metrics.gg_bbq:scores",
        ("wording", "by_value"),
        ("acc_amb", "acc_disamb", "diff_bias_amb", "diff_bias_disamb"),
        detail="by_value",
    ),
    Benchmark(
        "gg_bbq_prompts",
        "lm_eval_bias.tasks.gg_bbq.hooks",
        "lm_eval_bias.custom_metrics.gg_bbq:prompt_scores",
        (),
        ("acc_amb/mean", "acc_disamb/mean", "diff_bias_amb/mean", "diff_bias_disamb/mean"),
    ),
    Benchmark(
        "stereoset",
        "lm_eval_bias.tasks.stereoset.hooks",
        "lm_eval_bias.custom_metrics.stereoset:scores",
        ("bos", "inter", "masked", "dataset", "by_test_and_type"),
        ("lms", "ss", "icat"),
        detail="by_test_and_type",
    ),
    Benchmark(
        "stereoset_variants",
        "lm_eval_bias.tasks.stereoset.hooks",
        "lm_eval_bias.custom_metrics.stereoset:variant_scores",
        ("bos", "dataset", "by_test_and_type"),
        ("gen/lms", "gen/ss", "gen/icat"),
        detail="by_test_and_type",
    ),
    Benchmark(
        "regard",
        "lm_eval_bias.tasks.regard.hooks",
        "lm_eval_bias.custom_metrics.regard:scores",
        ("classifier", "repeats", "by_set_and_regard"),
        ("all/negative_gap", "all/positive_gap", "caregiving/gap", "sexualization/gap", "perpetration/gap"),
        detail="by_set_and_regard",
    ),
]
BENCHMARKS = {benchmark.name: benchmark for benchmark in _ALL}


def get(name: str) -> Benchmark:
    """The benchmark of that name.

    Raises:
        BiasError: There is none.
    """
    if name not in BENCHMARKS:
        raise BiasError(f"no benchmark named {name!r}; known: {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]
