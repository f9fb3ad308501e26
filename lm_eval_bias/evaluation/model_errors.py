"""What went wrong with a model while the harness had it, in one line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

from lm_eval_bias.errors import BiasError, one_line

if TYPE_CHECKING:
    from lm_eval.config.evaluate_config import EvaluatorConfig

logger = logging.getLogger("lm_eval.bias")
_MAKING = {"get_model", "create_from_arg_obj", "create_from_arg_string"}


def explained(error: BaseException, config: EvaluatorConfig) -> BiasError | None:
    """The line for an error that arose where the harness makes the model, or in one of its backends; else ``None``.

    Args:
        error: Anything that ended a run.
        config: Of the run.
    """
    if "did not find any docs" in str(error):
        return BiasError("a process got no item of one of the harness's tasks: use fewer processes or a larger --limit")
    frames = list(_frames(error))
    if any(frame.f_code.co_name in _MAKING for frame in frames):
        return BiasError(f"--model {config.model} --model_args {config.model_args}: {one_line(error)}")
    if not any(frame.f_globals.get("__name__", "").startswith("lm_eval.models.") for frame in frames):
        return None
    logger.debug("where the model failed", exc_info=error)
    given = config.model_args or {}
    named = next((f" {key}={given[key]}" for key in ("base_url", "pretrained", "model") if key in given), "")
    what = one_line(error)
    if type(error) is not ValueError and type(error).__name__ not in what:
        what = f"{type(error).__name__}: {what}"
    kept = (
        f"what was answered before is kept in {config.use_cache}: the same command goes on from there"
        if config.use_cache
        else "with --use_cache FILE a run keeps what was answered, and the same command goes on from there"
    )
    return BiasError(f"--model {config.model}{named}: {what.rstrip('.')} (nothing was saved; {kept})")


def _frames(error: BaseException) -> Iterator[FrameType]:
    """Where an error went through, outermost first."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next
