"""The releases of the harness that are supported, and registration with it: by name and lazily, without torch.

Components are declared once, as entry points in the groups that the harness's main branch reads by itself
(pyproject.toml). Here they are registered with releases that don't read them, those of other packages too.
"""

from __future__ import annotations

import importlib.metadata
import logging
from functools import cache

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.harness import internals, servers

logger = logging.getLogger("lm_eval.bias")
# lowest supported and highest tested release
SUPPORTED = {
    "lm_eval": ("0.4.13", "0.4.13"),
    "torch": ("2.6", "2.13.0"),
    "transformers": ("4.57.1", "5.23.0"),
}
# another architecture: metrics, scorers and task formats are not those of 0.4
BEYOND = {"lm_eval": "0.5"}


@cache
def declared() -> tuple[importlib.metadata.EntryPoint, ...]:
    """Collect the entry points of all installed packages in the harness's groups for components."""
    points = tuple(
        entry
        for group in internals.REGISTRIES
        for entry in importlib.metadata.entry_points(group=group)
    )
    if not any(map(_is_ours, points)):
        logger.warning(
            "lm-eval-bias is not installed, so the harness doesn't know its model types and filters: run 'pip install "
            "-e .' in its folder"
        )
    return points


def _is_ours(entry: importlib.metadata.EntryPoint) -> bool:
    return entry.value.startswith("lm_eval_bias.")


def model_types() -> list[str]:
    """List the names of this package's model types."""
    return [
        entry.name
        for entry in declared()
        if entry.group == "lm_eval.models" and _is_ours(entry)
    ]


def register() -> None:
    """Register declared model types, filters, metrics and aggregations, and add our requests to the harness's models.

    This is idempotent; names that the harness knows already are left as they are.

    Raises:
        BiasError: The installed harness is not supported.
    """
    require_harness()
    registries = internals.registries()
    for entry in declared():
        if entry.name not in registries[entry.group]:
            # as text: a module that registers its class as well is then no second claim to the name
            registries[entry.group].register(entry.name, target=entry.value)
    for base, name, method in requests():
        if name not in vars(base):
            setattr(base, name, method)


def requests() -> list[tuple[type, str, servers.Method]]:
    """List this package's request types: the harness's base class, the method's name, and the method."""
    from lm_eval.api.model import LM, TemplateLM

    from lm_eval_bias.scoring import request_methods, sampled_texts

    methods = {**request_methods.METHODS, **sampled_texts.METHODS}
    of_all = [(LM, *method) for method in methods.items()]
    return of_all + [
        (TemplateLM, *method) for method in request_methods.TOKEN_METHODS.items()
    ]


def examine(package: str) -> tuple[str, str]:
    """Check a package's version against the supported ones: ``ok``, ``note`` or ``problem``, and a line."""
    from packaging.version import Version

    lowest, tested = SUPPORTED[package]
    try:
        installed = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "problem", f"{package} is not installed: pip install lm-eval-bias"
    public = Version(Version(installed).public)
    if public < Version(lowest):
        return (
            "problem",
            f"{package} {installed} is older than {lowest}: pip install -U {package}",
        )
    beyond = BEYOND.get(package)
    if beyond and public.release >= Version(beyond).release:
        return "problem", (
            f"{package} {installed} is too new: lm-eval-bias works with {lowest} and later versions below {beyond}: "
            f"pip install '{package}>={lowest},<{beyond}'"
        )
    if public > Version(tested):
        return (
            "note",
            f"{package} {installed} is newer than {tested}, the newest release tested here",
        )
    return "ok", f"{package} {installed}"


def require_harness() -> str:
    """Refuse a harness that is not supported.

    Returns:
        A note on a harness that is newer than any that was tested; empty for others.

    Raises:
        BiasError: The harness is too old, too new or not installed.
    """
    status, text = examine("lm_eval")
    if status == "problem":
        raise BiasError(text)
    return text if status == "note" else ""
