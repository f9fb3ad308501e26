"""Published bias benchmarks for EleutherAI's lm-evaluation-harness, with uncertainty.

Importing this package is cheap and brings in neither torch nor the harness; see ``lm-eval-bias --help``.
"""

import os.path as _path
from typing import TYPE_CHECKING

__version__ = "0.2.0.dev0"

# In a checkout, tasks and custom_metrics are siblings of this folder and not in it. After a plain `pip install .`
# that folder shadows the installed package when Python starts there, so look beside it too.
_here = _path.dirname(_path.abspath(__file__))
if not _path.isdir(_path.join(_here, "tasks")) and _path.isfile(
    _path.join(_path.dirname(_here), "tasks", "__init__.py")
):
    __path__.append(_path.dirname(_here))

if TYPE_CHECKING:
    from lm_eval_bias.benchmark import Benchmark as Benchmark

__all__ = ["Benchmark", "__version__"]


def __getattr__(name: str) -> object:
    if name == "Benchmark":  # imported when it is asked for
        from lm_eval_bias.benchmark import Benchmark

        return Benchmark
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
