"""Published bias benchmarks for EleutherAI's lm-evaluation-harness, with uncertainty.

Importing this package is cheap and brings in neither torch nor the harness; see ``lm-eval-bias --help``.
"""

import os.path as _path

__version__ = "0.1.0"

# In a checkout, tasks and custom_metrics are siblings of this folder and not in it. After a plain `pip install .`
# that folder shadows the installed package when Python starts there, so look beside it too.
_here = _path.dirname(_path.abspath(__file__))
if not _path.isdir(_path.join(_here, "tasks")) and _path.isfile(
    _path.join(_path.dirname(_here), "tasks", "__init__.py")
):
    __path__.append(_path.dirname(_here))

from lm_eval_bias.benchmark import Benchmark  # noqa: E402 (needs the path)

__all__ = ["Benchmark", "__version__"]
