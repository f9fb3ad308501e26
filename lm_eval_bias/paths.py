"""Where the package's task files lie."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def tasks_path() -> Path:
    """Folder with the task YAMLs: what ``lm_eval --include_path`` takes.

    Raises:
        FileNotFoundError: The installed package holds no tasks (a broken install).
    """
    path = Path(str(resources.files("lm_eval_bias.tasks")))
    if not any(path.glob("*/benchmark.py")):
        raise FileNotFoundError(f"{path} holds no tasks: install lm-eval-bias again")
    return path
