"""All registration with the harness, by name and lazily: nothing here imports torch.

Harness releases that read entry points find the same names there; registering twice is harmless.
"""

from __future__ import annotations

MODELS = {
    "bias-chance": "lm_eval_bias.models.chance:ChanceLM",
    "hf-mlm": "lm_eval_bias.models.masked_lm:HFMaskedLM",
    "hf-nsp": "lm_eval_bias.models.next_sentence.nsp_model:HFNextSentence",
    "hf-packed": "lm_eval_bias.models.packed.packed_model:HFPacked",
}
FILTERS = {
    "bias_answer_choice": "lm_eval_bias.tasks.gg_bbq.filters:AnswerChoiceFilter",
    "bias_first_sentence": "lm_eval_bias.tasks.regard.filters:FirstSentenceFilter",
    "bias_regard": "lm_eval_bias.tasks.regard.filters:RegardFilter",
}
METRICS = {"bias_clustered": "lm_eval_bias.harness.aggregations:clustered"}
AGGREGATIONS = {
    "bias_clustered_mean": "lm_eval_bias.harness.aggregations:clustered_mean",
    "bias_clustered_mean_stderr": "lm_eval_bias.harness.aggregations:clustered_mean_stderr",
}


def register() -> None:
    """Make our model types, filters, metrics and aggregations known to the harness, our requests to its models.

    Idempotent.
    """
    import lm_eval.api.metrics
    import lm_eval.filters
    import lm_eval.models  # noqa: F401 (the harness fills its registries on import only while they are empty)
    from lm_eval.api import registry

    from lm_eval_bias.evaluation import warm_up
    from lm_eval_bias.scoring import exact_likelihoods, generative_answers, sampled_texts

    for known, ours in (
        (registry.model_registry, MODELS),
        (registry.filter_registry, FILTERS),
        (registry.metric_registry, METRICS),
        (registry.aggregation_registry, AGGREGATIONS),
    ):
        for name, target in ours.items():
            if name not in known:
                known.register(name, target=target)
    if "bias_clustered" not in registry.metric_agg_registry:
        registry.metric_agg_registry.register("bias_clustered", target=AGGREGATIONS["bias_clustered_mean"])
        registry.higher_is_better_registry.register("bias_clustered", target=True)
    exact_likelihoods.install()
    sampled_texts.install()
    generative_answers.install()
    warm_up.install()
