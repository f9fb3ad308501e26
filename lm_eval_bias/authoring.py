"""What a benchmark of one's own is written with: the one address that stays, whatever moves inside the package.

``docs/add-a-benchmark.md`` shows the names in use. Each is imported when it is first asked for, so that listing
benchmarks stays instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lm_eval_bias.core.benchmark import DATA as DATA
    from lm_eval_bias.core.benchmark import DETAIL as DETAIL
    from lm_eval_bias.core.benchmark import REQUIRED as REQUIRED
    from lm_eval_bias.core.benchmark import Asking as Asking
    from lm_eval_bias.core.benchmark import Benchmark as Benchmark
    from lm_eval_bias.core.benchmark import Card as Card
    from lm_eval_bias.core.benchmark import Command as Command
    from lm_eval_bias.core.benchmark import Condition as Condition
    from lm_eval_bias.core.benchmark import ExportFormat as ExportFormat
    from lm_eval_bias.core.benchmark import LeftOut as LeftOut
    from lm_eval_bias.core.benchmark import Rewriting as Rewriting
    from lm_eval_bias.core.benchmark import Sampling as Sampling
    from lm_eval_bias.core.benchmark import Size as Size
    from lm_eval_bias.core.errors import BiasError as BiasError
    from lm_eval_bias.core.page_parts import Cell as Cell
    from lm_eval_bias.core.page_parts import Column as Column
    from lm_eval_bias.core.page_parts import Part as Part
    from lm_eval_bias.core.page_parts import Table as Table
    from lm_eval_bias.core.planting import Planting as Planting
    from lm_eval_bias.core.published_scores import Published as Published
    from lm_eval_bias.core.published_scores import PublishedCell as PublishedCell
    from lm_eval_bias.core.questions import Cloze as Cloze
    from lm_eval_bias.core.questions import NextSentence as NextSentence
    from lm_eval_bias.core.run_data import Remark as Remark
    from lm_eval_bias.custom_metrics.clusters import clustered_mean as clustered_mean
    from lm_eval_bias.custom_metrics.crossed import crossed_mean as crossed_mean
    from lm_eval_bias.custom_metrics.score import Estimate as Estimate
    from lm_eval_bias.custom_metrics.score import Score as Score

_HOMES = {
    "core.benchmark": (
        "Asking", "Benchmark", "Card", "Command", "Condition", "ExportFormat", "LeftOut", "Rewriting", "Sampling",
        "Size", "DATA", "DETAIL", "REQUIRED",
    ),
    "core.errors": ("BiasError",),
    "core.page_parts": ("Cell", "Column", "Part", "Table"),
    "core.planting": ("Planting",),
    "core.published_scores": ("Published", "PublishedCell"),
    "core.questions": ("Cloze", "NextSentence"),
    "core.run_data": ("Remark",),
    "custom_metrics.clusters": ("clustered_mean",),
    "custom_metrics.crossed": ("crossed_mean",),
    "custom_metrics.score": ("Estimate", "Score"),
}  # fmt: skip
__all__ = [name for names in _HOMES.values() for name in names]  # noqa: PLE0605


def __getattr__(name: str) -> object:
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"lm_eval_bias.{home}"), name)
