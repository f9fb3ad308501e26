"""The floor: plain data, benchmarks and tasks, errors and files.

In comes what benchmarks, YAMLs and files say; out go objects that every room above knows: ``Benchmark``, ``Entry``,
``TaskRun``, ``Value``, ``BiasError``. It must not know the harness, a model, or any benchmark by name, and it imports
nothing that stands above it.
"""

from collections.abc import Mapping
from typing import Any

Facts = Mapping[str, Any]  # what somebody says of something, by name
Data = dict[str, Any]  # the same while it is collected
__version__ = "0.3.0"
