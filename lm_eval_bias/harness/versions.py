"""Which releases of the harness and of what it runs on this package works with."""

from __future__ import annotations

import importlib.metadata

from lm_eval_bias.core.errors import BiasError

# lowest supported and highest tested release
SUPPORTED = {"lm_eval": ("0.4.12", "0.4.13"), "torch": ("2.2", "2.13.0"), "transformers": ("4.56", "5.23.0")}
BEYOND = {"lm_eval": "0.5"}  # another architecture: metrics, scorers and task formats are not the ones of 0.4


def examine(package: str) -> tuple[str, str]:
    """How a package's installed version stands to the supported ones: ``ok``, ``note`` or ``problem``, and a line."""
    from packaging.version import Version

    lowest, tested = SUPPORTED[package]
    try:
        installed = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "problem", f"{package} is not installed: pip install lm-eval-bias"
    public = Version(Version(installed).public)
    if public < Version(lowest):
        return "problem", f"{package} {installed} is older than {lowest}: pip install -U {package}"
    beyond = BEYOND.get(package)
    if beyond and public.release >= Version(beyond).release:
        return "problem", (
            f"{package} {installed} is too new: lm-eval-bias works with {lowest} and later versions below {beyond}: "
            f"pip install '{package}>={lowest},<{beyond}'"
        )
    if public > Version(tested):
        return "note", f"{package} {installed} is newer than {tested}, the newest release tested here"
    return "ok", f"{package} {installed}"


def require_harness() -> str:
    """Refuse a harness that is not supported.

    Returns:
        What is to be said of one that is newer than any that was tested; empty for others.

    Raises:
        BiasError: It is too old, too new or not there.
    """
    status, text = examine("lm_eval")
    if status == "problem":
        raise BiasError(text)
    return text if status == "note" else ""
