"""What comes out of a translation: the data set, its tasks, its data card."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from lm_eval_bias import __version__
from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import read_bytes, write_whole, writing
from lm_eval_bias.tasks.stereoset.own_sets import set_card, set_files, set_tasks
from lm_eval_bias.tasks.stereoset.own_sets.review_decisions import REVIEWED, reviewed
from lm_eval_bias.tasks.stereoset.own_sets.review_sheet import version
from lm_eval_bias.tasks.stereoset.own_sets.set_files import DataSet
from lm_eval_bias.tasks.stereoset.own_sets.translation_engines import Engine
from lm_eval_bias.tasks.stereoset.own_sets.translation_run import Outcome
from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES, TESTS, count_items


def write(folder: Path, outcome: Outcome, engine: Engine) -> tuple[dict[str, Any], str]:
    """Write the items that are ready, with what makes tasks of them.

    Returns:
        Their provenance, and the command that runs them (empty where no item is ready).

    Raises:
        BiasError: Something cannot be written.
    """
    language = outcome.language
    path = folder / f"stereoset_{language}.json"
    data_set = DataSet(language, outcome.translations, _provenance(outcome, engine))
    with writing(folder):
        if not data_set.items:
            path.unlink(missing_ok=True)
            return data_set.provenance, ""
        data_set = _written(path, data_set)
        if language in LANGUAGES:
            command = f'lm-eval-bias run --tasks stereoset_{language} --metadata \'{{"dataset": "{path}"}}\' ...'
        else:
            set_tasks.write(folder, path, data_set)
            command = f"lm-eval-bias run --include_path {folder} --tasks stereoset_{language} ..."
        readme = folder / "README.md"
        if not readme.exists() or read_bytes(readme).startswith(set_card.MARK.encode()):  # not somebody else's
            card = set_card.markdown(data_set.provenance, language, set_files.digest(path), command)
            write_whole(readme, card.encode())
    return data_set.provenance, command


def _written(path: Path, data_set: DataSet) -> DataSet:
    """Write a data set unless it is there already, but for the day: its hash stands in its tasks and in results."""
    if path.exists():
        try:
            present = set_files.read(path)
        except BiasError:
            present = DataSet(data_set.language, [], {})
        undated = {**present.provenance, "date": data_set.provenance["date"]}
        if (present.items, undated) == (data_set.items, data_set.provenance):
            return present
    set_files.write(path, data_set)
    return data_set


def _provenance(outcome: Outcome, engine: Engine) -> dict[str, Any]:
    """What made the data set, as plain data."""
    source = outcome.source
    ready, every = count_items(outcome.translations), count_items(source.items)
    states = {name: state for name, state in outcome.states.items() if not state.open}
    corrected = [name for name in states if name in outcome.decisions and outcome.decisions[name].corrected]
    return {
        "made by": f"lm-eval-bias {__version__} translate stereoset",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "source": {"name": source.name, "language": source.language, "sha256": source.files},
        "engine": engine.about(),
        "blank protected by": outcome.placeholders,
        "items": outcome.counts,
        "coverage": {
            test: {kind: [ready[test, kind], every[test, kind]] for kind in BIAS_TYPES if every[test, kind]}
            for test in TESTS
            if every[test, "all"]
        },
        REVIEWED: reviewed(corrected, {name: version(state.texts) for name, state in states.items() if state.accepted}),
    }
