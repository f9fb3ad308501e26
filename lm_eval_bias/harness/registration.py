"""Registration with the harness, by name and lazily: nothing here imports torch.

What is registered is declared once, as entry points in the groups that the harness's main branch reads by itself
(pyproject.toml). Releases that don't read them get them from here, those of other packages too.
"""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Callable
from functools import cache
from typing import Any

from lm_eval_bias.harness import internals, versions

logger = logging.getLogger("lm_eval.bias")


@cache
def declared() -> tuple[importlib.metadata.EntryPoint, ...]:
    """The entry points of all installed packages in the harness's groups for components."""
    points = tuple(e for group in internals.REGISTRIES for e in importlib.metadata.entry_points(group=group))
    if not any(map(_is_ours, points)):
        logger.warning(
            "lm-eval-bias is not installed, so the harness doesn't know its model types and filters: run 'pip install "
            "-e .' in its folder"
        )
    return points


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
    versions.require_harness()
    registries = internals.registries()
    for entry in declared():
        if entry.name not in registries[entry.group]:
            # as text: a module that registers its class as well is then no second claim to the name
            registries[entry.group].register(entry.name, target=entry.value)
        if entry.name == "bias_clustered_mean":
            internals.set_metric_defaults("bias_clustered", entry.value, higher_is_better=True)
    for base, name, method in requests():
        if name not in vars(base):
            setattr(base, name, method)


def requests() -> list[tuple[type, str, Callable[..., Any]]]:
    """Our kinds of requests as methods: the base class of the harness's models that gets one, its name, the method."""
    from lm_eval.api.model import LM, TemplateLM

    from lm_eval_bias.scoring import exact_likelihoods, generative_answers, sampled_texts

    with_texts: dict[str, Callable[..., Any]] = {
        **exact_likelihoods.METHODS,
        **sampled_texts.METHODS,
        **generative_answers.METHODS,
    }
    with_tokens: dict[str, Callable[..., Any]] = {**exact_likelihoods.TOKEN_METHODS, **generative_answers.TOKEN_METHODS}
    return [
        (base, name, method)
        for base, methods in ((LM, with_texts), (TemplateLM, with_tokens))
        for name, method in methods.items()
    ]
