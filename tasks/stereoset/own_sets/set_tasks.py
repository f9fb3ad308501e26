"""Tasks over a data set of one's own: its items for a task, and task YAMLs for a language that is not published."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded, tasks_path, write_whole, writing
from lm_eval_bias.tasks.stereoset.own_sets import set_files
from lm_eval_bias.tasks.stereoset.own_sets.set_files import DataSet
from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES, TEST_NAMES, Item, check_items, count_items

_TESTS_BY_ENDING = {"": ["inter", "intra"], "_inter": ["inter"], "_inter_variants": ["inter"], "_intra": ["intra"]}


@lru_cache(maxsize=4)
def _read(path: str, language: str, digest: str) -> DataSet:
    """Read a data set whose items can be scored; the tasks of a language share it (a changed file has a new digest)."""
    data_set = set_files.read(path, language)
    check_items(data_set.items, path)
    return data_set


def load(file: Any, fixed: Mapping[str, Any]) -> tuple[list[Item], dict[str, str]]:
    """Return the items of a task's tests from a file, and which file that was.

    Args:
        file: Its path.
        fixed: What the task's YAML sets: ``language``, ``tests`` and perhaps ``dataset`` with the ``sha256`` that the
            file had when the task was written.

    Raises:
        BiasError: It can't be read or scored, is in another language, has no items of a test, or was changed.
    """
    if not isinstance(file, str) or not file:
        raise BiasError(f"--metadata dataset={file!r}: must be the path of a data set ('stereoset validate')")
    path = str(expanded(file).absolute())
    anew = f"write the tasks again: lm-eval-bias stereoset validate {path} --tasks DIR"
    pinned = fixed.get("dataset") or {}
    is_pinned = pinned.get("file") == file
    try:
        digest = set_files.digest(Path(path))
    except BiasError as error:
        raise BiasError(f"{error}: put it back, or {anew}" if is_pinned else str(error)) from error
    if is_pinned and digest != pinned["sha256"]:
        raise BiasError(f"{path} was changed since the task was written for it: {anew}")
    data_set = _read(path, fixed["language"], digest)
    for test in fixed["tests"]:
        if test not in data_set.tests:
            other = f"stereoset_{data_set.language}_{data_set.tests[0]}"
            raise BiasError(f"{path} has no items {TEST_NAMES[test]}: run the task of the other test, {other}")
    items = [item for test in fixed["tests"] for item in data_set.items if item["test"] == test]
    return items, {"file": path, "sha256": digest}


def provenance(file: Mapping[str, str], language: str) -> dict[str, Any]:
    """Return what a result file says about a set: its file, its SHA-256, and what the set says about itself."""
    data_set = _read(file["file"], language, file["sha256"])
    counts = count_items(data_set.items)
    return {**file, "items": {t: counts[t, "all"] for t in data_set.tests}, "provenance": data_set.provenance}


def write(folder: str | Path, file: str | Path, data_set: DataSet) -> list[Path]:
    """Write the task YAMLs of a language that is not published into a folder, which is made if it isn't there.

    Returns:
        The files: ``stereoset_<language>.yaml`` where there are both tests, and those of each test.

    Raises:
        BiasError: The language has tasks already, the items can't be scored, or the folder can't be written.
    """
    language = data_set.language
    if language in LANGUAGES:
        own = f'--metadata \'{{"dataset": "{file}"}}\''
        raise BiasError(f"{file}: {language} already has tasks: run them with {own} instead of writing new ones")
    check_items(data_set.items, str(file))
    path = expanded(file).absolute()
    base = (tasks_path() / "stereoset" / "_stereoset_base_yaml").read_text(encoding="utf-8")
    head = "# Written by 'lm-eval-bias stereoset validate FILE --tasks DIR', again when FILE changes.\n"
    paths = []
    with writing(folder):
        expanded(folder).mkdir(parents=True, exist_ok=True)
        for ending, tests in _TESTS_BY_ENDING.items():
            if not set(tests) <= set(data_set.tests):
                continue
            variants, where = ending == "_inter_variants", " and ".join(TEST_NAMES[test] for test in reversed(tests))
            scores = "five generative scores from one run" if variants else "LMS, SS, ICAT, data of your own"
            kinds = [{"inter": "next_sentence", "intra": "cloze"}[test] for test in tests]
            fixed = {"language": language, "tests": tests, **({"variants": True} if variants else {})}
            metadata = {
                "version": 1.0,
                "benchmark": "stereoset_variants" if variants else "stereoset",
                "language": language,
                "n_items": sum(item["test"] in tests for item in data_set.items),
                "measures": f"Stereotypes in {language!r} {where}: {scores}",
                "asks": ["sentence_likelihoods"] if variants else kinds,
                "fixed": {**fixed, "dataset": {"file": str(path), "sha256": set_files.digest(path)}},
            }
            task = {"task": f"stereoset_{language}{ending}", "metadata": metadata}
            paths.append(expanded(folder) / f"{task['task']}.yaml")
            write_whole(paths[-1], f"{head}{base}{yaml.safe_dump(task, sort_keys=False, width=1000)}".encode())
    return paths
