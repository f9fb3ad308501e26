"""Names registered with the harness, now and through entry points on its main branch."""

import importlib
import importlib.metadata

import pytest
from lm_eval.api import registry

from lm_eval_bias.harness import aggregations, registration

GROUPS = {
    "lm_eval.models": registration.MODELS,
    "lm_eval.filters": registration.FILTERS,
    "lm_eval.metrics": registration.METRICS,
    "lm_eval.aggregations": registration.AGGREGATIONS,
}


@pytest.mark.parametrize("group", GROUPS)
def test_entry_points_are_what_is_registered(group):
    declared = {
        entry.name: entry.value
        for entry in importlib.metadata.entry_points(group=group)
        if entry.value.startswith("lm_eval_bias.")
    }
    assert declared == GROUPS[group]
    for target in declared.values():
        module, _, name = target.partition(":")
        assert callable(getattr(importlib.import_module(module), name))


def test_tasks_entry_point():
    (entry,) = importlib.metadata.entry_points(group="lm_eval.tasks", name="lm_eval_bias")
    assert entry.load()().name == "tasks"


def test_registration_is_idempotent_and_resolves():
    registration.register()
    registration.register()
    assert registry.get_model("bias-chance").__name__ == "ChanceLM"
    assert registry.get_filter("bias_answer_choice").__name__ == "AnswerChoiceFilter"
    assert registry.get_aggregation("bias_clustered_mean") is aggregations.clustered_mean
    assert registry.get_metric_aggregation("bias_clustered") is aggregations.clustered_mean
    assert registry.get_metric("bias_clustered")((1.0, "a")) == (1.0, "a")


def test_nothing_of_the_harness_is_replaced():
    from lm_eval.api.model import LM, TemplateLM

    before = {cls: dict(vars(cls)) for cls in (LM, TemplateLM)}
    registration.register()
    for cls, members in before.items():
        for name, member in members.items():
            assert vars(cls)[name] is member
