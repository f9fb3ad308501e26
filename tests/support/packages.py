"""Packages of others, as if they were installed: on the path, with the entry points of their distribution."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from lm_eval_bias.core import catalog, errors, registry
from lm_eval_bias.evaluation import suites
from lm_eval_bias.harness import linking, registration
from lm_eval_bias.runs import logged_texts


def forget(*packages: str) -> None:
    """Let the next command look for packages anew; the modules of those that are named are imported again."""
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]
    errors.FAULTS.clear()
    importlib.invalidate_caches()
    known = (
        registry._found,
        registry.benchmarks,
        registry.by_name,
        registry.published,
        catalog.packaged,
    )
    for cached in (
        *known,
        registration.declared,
        suites.load,
        linking.found_by_harness,
        logged_texts._filters,
    ):
        cached.cache_clear()


def install(
    monkeypatch: pytest.MonkeyPatch, folder: Path, group: str, points: Mapping[str, str]
) -> None:
    """Put a folder of packages on the path, with a distribution that has entry points."""
    info = folder / "other-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(folder))
    forget(*points)
