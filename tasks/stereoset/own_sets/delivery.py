"""What comes out of a translation: the data set, its tasks, its data card."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import read_bytes, write_whole
from lm_eval_bias.tasks.stereoset.own_sets import set_card, set_tasks, sets
from lm_eval_bias.tasks.stereoset.own_sets.engines import Engine
from lm_eval_bias.tasks.stereoset.own_sets.sets import DataSet
from lm_eval_bias.tasks.stereoset.own_sets.translating import Outcome, provenance
from lm_eval_bias.tasks.stereoset.released_sets import LANGUAGES


def deliver(folder: Path, outcome: Outcome, engine: Engine) -> tuple[dict[str, Any], str]:
    """Write the items that are ready, with what makes tasks of them.

    Returns:
        Their provenance, and how to run them (nothing where no item is ready).

    Raises:
        BiasError: Something cannot be written.
    """
    path = folder / f"stereoset_{outcome.language}.json"
    made = provenance(outcome, engine, datetime.datetime.now(datetime.timezone.utc).date().isoformat())
    items = outcome.translations
    try:
        if not items:
            path.unlink(missing_ok=True)
            return made, ""
        made = _with_its_date(path, DataSet(outcome.language, items, made))
        if outcome.language in LANGUAGES:
            how = f'lm-eval-bias run --tasks stereoset_{outcome.language} --metadata \'{{"dataset": "{path}"}}\' ...'
        else:
            set_tasks.write(folder, path, DataSet(outcome.language, items, made))
            how = f"lm-eval-bias run --include_path {folder} --tasks stereoset_{outcome.language} ..."
        readme = folder / "README.md"
        if not readme.exists() or read_bytes(readme).startswith(set_card.MARK.encode()):  # not somebody else's
            write_whole(readme, set_card.markdown(made, outcome.language, sets.digest(path), how).encode())
    except OSError as error:
        raise BiasError(f"{folder} cannot be written: {error.strerror}") from error
    return made, how


def _with_its_date(path: Path, data_set: DataSet) -> dict[str, Any]:
    """Write a data set unless it is there already, but for the day: its hash stands in its tasks and in results."""
    if path.exists():
        try:
            there = sets.read(path)
        except BiasError:
            there = DataSet(data_set.language, [], {})
        undated = {**there.provenance, "date": data_set.provenance["date"]}
        if (there.items, undated) == (data_set.items, data_set.provenance):
            return there.provenance
    sets.write(path, data_set)
    return data_set.provenance
