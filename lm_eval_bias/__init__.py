"""Published bias benchmarks for EleutherAI's lm-evaluation-harness, with uncertainty.

Importing this package is cheap and brings in neither torch nor the harness; see ``lm-eval-bias --help``.
"""

import os.path as _path
from typing import TYPE_CHECKING

# In a checkout, tasks and custom_metrics are siblings of this folder and not in it. After a plain `pip install .`
# that folder shadows the installed package when Python starts there, so look beside it too.
_here = _path.dirname(_path.abspath(__file__))
if not _path.isdir(_path.join(_here, "tasks")) and _path.isfile(
    _path.join(_path.dirname(_here), "tasks", "__init__.py")
):
    __path__.append(_path.dirname(_here))

from lm_eval_bias.core import __version__  # noqa: E402 (found by the line above)

if TYPE_CHECKING:
    from lm_eval_bias.api import Runs as Runs
    from lm_eval_bias.api import benchmarks as benchmarks
    from lm_eval_bias.api import breakdown as breakdown
    from lm_eval_bias.api import card as card
    from lm_eval_bias.api import compare as compare
    from lm_eval_bias.api import comparison as comparison
    from lm_eval_bias.api import evaluate as evaluate
    from lm_eval_bias.api import extract_choice as extract_choice
    from lm_eval_bias.api import items as items
    from lm_eval_bias.api import leaderboard as leaderboard
    from lm_eval_bias.api import load as load
    from lm_eval_bias.api import scores as scores
    from lm_eval_bias.core.benchmark import Benchmark as Benchmark
    from lm_eval_bias.core.benchmark import Card as Card
    from lm_eval_bias.core.errors import BiasError as BiasError
    from lm_eval_bias.core.run_data import Problem as Problem
    from lm_eval_bias.core.run_data import Run as Run

__all__ = [
    "Benchmark", "BiasError", "Card", "Problem", "Run", "Runs", "__version__", "benchmarks", "breakdown", "card",
    "compare", "comparison", "evaluate", "items", "leaderboard", "load", "extract_choice", "scores",
]  # fmt: skip
_HOMES = {
    "Benchmark": "core.benchmark",
    "BiasError": "core.errors",
}  # what is asked for without the rest


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(
        import_module(f"{__name__}.{_HOMES.get(name, 'api')}"), name
    )  # imported when it is asked for


def __dir__() -> list[str]:  # what notebooks complete and help() lists
    return [*globals(), *__all__]
