"""What a benchmark of your own is written with: the one address that stays, whatever moves inside the package.

``docs/add-a-benchmark.md`` shows the names in use. What needs numpy is imported when it is first asked for, so that
listing benchmarks stays instant.
"""

from typing import TYPE_CHECKING

from lm_eval_bias.core.benchmark import (
    DATA,
    REQUIRED,
    SAMPLES,
    SAMPLES_BY_DEFAULT,
    Asking,
    Benchmark,
    Card,
    Command,
    Condition,
    Options,
    Presentation,
    Rewriting,
    SavedFiles,
    Size,
)  # fmt: skip
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import Cloze, Contrast, NextSentence
from lm_eval_bias.core.run_data import Published, PublishedCell
from lm_eval_bias.core.synthetic_bias import SyntheticBias
from lm_eval_bias.core.verdicts import Diagnostic
from lm_eval_bias.custom_metrics.score import Design, Estimate, Score, Undefined

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.clusters import (
        clustered_mean,
        difference_of,
        differing_in,
        share_of,
        tabulate,
    )
    from lm_eval_bias.custom_metrics.crossed import crossed_mean

__all__ = [
    "Asking", "Benchmark", "BiasError", "SyntheticBias", "Card", "Cloze", "Command", "Condition",
    "Contrast", "DATA", "Design", "Diagnostic", "Estimate", "NextSentence", "Options",
    "Presentation", "Published", "PublishedCell", "REQUIRED", "Rewriting", "SAMPLES", "SAMPLES_BY_DEFAULT",
    "SavedFiles", "Score", "Size", "Undefined", "clustered_mean", "crossed_mean", "difference_of",
    "differing_in", "share_of", "tabulate",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lm_eval_bias.custom_metrics import clusters, crossed

    return getattr(crossed if name == "crossed_mean" else clusters, name)
