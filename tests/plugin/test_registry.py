"""Names registered with the harness: all that installed packages declare as entry points, each as it is declared."""

import importlib
import importlib.metadata

import pytest
from lm_eval.api.model import LM, TemplateLM

from lm_eval_bias.harness import internals, registration
from tests.support.places import ROOT


def in_pyproject(group):
    tomllib = pytest.importorskip("tomllib")
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "entry-points"
    ].get(group, {})


@pytest.mark.parametrize("group", internals.REGISTRIES)
def test_what_is_declared_is_there_and_registered(group):
    registration.register()
    known = internals.registries()[group]
    for name, target in in_pyproject(group).items():
        module, _, attribute = target.partition(":")
        own = getattr(importlib.import_module(module), attribute)
        assert callable(own)
        assert known.get(name) is own


def test_tasks_entry_point():
    (target,) = in_pyproject("lm_eval.tasks").values()
    spec = importlib.util.find_spec(target)  # as the harness resolves it
    assert "tasks" in spec.submodule_search_locations[0]
    (entry,) = importlib.metadata.entry_points(
        group="lm_eval.tasks", name="lm_eval_bias"
    )
    assert entry.value == target, (
        "the package is installed as it was before: pip install -e . again"
    )


def test_nothing_of_the_harness_is_replaced():
    before = {cls: dict(vars(cls)) for cls in (LM, TemplateLM)}
    registration.register()
    for cls, members in before.items():
        assert members.items() <= vars(cls).items()
