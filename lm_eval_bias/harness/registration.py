"""Registration with the harness, by name and lazily: nothing here imports torch.

What is registered is declared once, as entry points in the groups that the harness's main branch reads by itself
(pyproject.toml). Releases that don't read them get them from here, those of other packages too.
"""

from __future__ import annotations

import importlib.metadata
import logging
from functools import cache

from lm_eval_bias.harness import internals, versions

logger = logging.getLogger("lm_eval.bias")


@cache
def declared() -> tuple[importlib.metadata.EntryPoint, ...]:
    """The entry points of all installed packages in the harness's groups for components."""
    found = tuple(e for group in internals.REGISTRIES for e in importlib.metadata.entry_points(group=group))
    if not any(map(_is_ours, found)):
        logger.warning(
            "lm-eval-bias is used without being installed: the harness can't know its model types and filters "
            "(pip install -e . in its folder)"
        )
    return found


def _is_ours(entry: importlib.metadata.EntryPoint) -> bool:
    return entry.value.startswith("lm_eval_bias.")


def model_types() -> list[str]:
    """The names of this package's model types."""
    return [entry.name for entry in declared() if entry.group == "lm_eval.models" and _is_ours(entry)]


def register() -> None:
    """Make declared model types, filters, metrics and aggregations known to the harness, our requests to its models.

    Idempotent; a name that the harness knows stays what it is.

    Raises:
        BiasError: The installed harness is not supported.
    """
    from lm_eval_bias.scoring import exact_likelihoods, questions, sampled_texts

    versions.require_harness()
    registries = internals.registries()
    for entry in declared():
        if entry.name not in registries[entry.group]:
            # as text: a module that registers its class as well is then no second claim to the name
            registries[entry.group].register(entry.name, target=entry.value)
        if entry.name == "bias_clustered_mean":
            internals.set_metric_defaults("bias_clustered", entry.value, higher_is_better=True)
    exact_likelihoods.install()
    sampled_texts.install()
    questions.install()
