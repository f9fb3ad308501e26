"""Exports made and written whole: what ``export`` and the Python interface share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence

from lm_eval_bias import output_files
from lm_eval_bias.errors import BiasError
from lm_eval_bias.exports import formats
from lm_eval_bias.exports.bundle import Bundle, Settings
from lm_eval_bias.exports.formats import Format
from lm_eval_bias.files import expanded, whole_folder, writing
from lm_eval_bias.runs import printable_runs
from lm_eval_bias.runs.run_data import Problem, Run


def refuse_foreign(form: str, given: Iterable[str], brought: Mapping[str, Iterable[str]]) -> None:
    """Refuse options that mean nothing for a format: they would seem to have been heeded.

    Args:
        form: The format's name.
        given: Names of the options that were given.
        brought: The options of the formats that benchmarks bring, by format.

    Raises:
        BiasError: The first of them.
    """
    takes = {
        **{one.name: set(one.takes) for one in formats.FORMATS},
        **{name: set(own) for name, own in brought.items()},
    }
    for option in sorted(set(given) - takes[form]):
        takers = ", ".join(name for name, options in takes.items() if option in options)
        raise BiasError(f"--{option.replace('_', '-')} has no effect with --to {form}: it is for {takers}")


def check(form: Format, place: str, inputs: Sequence[str], flag: str = "-o") -> None:
    """Refuse a place that can't be written or holds something else, before the work for it is done.

    Args:
        form: The format.
        place: A file, or a new folder.
        inputs: Files and folders that are read.
        flag: What names the place.

    Raises:
        BiasError: The first thing that is wrong.
    """
    if not form.is_folder:
        output_files.check_place(place, inputs, flag)
        return
    path = expanded(place)
    with writing(place):
        if os.path.lexists(path) and (not path.is_dir() or any(path.iterdir())):
            raise BiasError(f"{flag} {place}: exists already: name a new folder")
    output_files.refuse_inputs(place, inputs, flag)


def make(
    form: Format,
    runs: Sequence[Run],
    problems: Sequence[Problem],
    name: str | None = None,
    scores: str | None = None,
    no_items: bool = False,
    organization: str | None = None,
    relationship: str | None = None,
    dataset: str | None = None,
) -> Bundle:
    """An export, made now or at the time that ``SOURCE_DATE_EPOCH`` says.

    Args:
        form: The format.
        runs: Runs as they were read.
        problems: What was passed over.
        name: The model's name; ``None`` takes each run's own.
        scores: ``main``, ``all`` or ``None`` for the format's default.
        no_items: Whether records of single items stay out.
        organization: Who evaluated.
        relationship: Theirs to the model's developer.
        dataset: Hub data set whose leaderboard results are for.

    Raises:
        BiasError: The runs or settings don't fit the format.
    """
    settings = Settings(
        name=name,
        main_only=form.main_only if scores is None else scores == "main",
        with_items=not no_items,
        organization=organization or "",
        relationship=relationship or Settings().relationship,
        dataset=dataset or "",
        now=_now(),
    )
    return form.make(printable_runs.presentable(printable_runs.runs(runs)), problems, settings)


def _now() -> float:
    """When the export is made: ``SOURCE_DATE_EPOCH``, as builds that can be repeated set it, else now.

    Raises:
        BiasError: The variable is no number.
    """
    value = os.environ.get("SOURCE_DATE_EPOCH")
    if not value:
        return time.time()
    if not value.isascii() or not value.isdigit() or len(value) > 11:
        raise BiasError(f"SOURCE_DATE_EPOCH={value[:40]!r}: must be whole seconds since 1970")
    return float(value)


def write(made: Bundle, form: Format, place: str) -> None:
    """Write an export to its file or new folder, whole or not at all.

    Raises:
        BiasError: The place can't be written.
    """
    if not form.is_folder:
        output_files.write(made.files[""], place)
        return
    with writing(place), whole_folder(expanded(place).absolute()) as folder:
        for name, text in made.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode("utf-8", "backslashreplace"))
        if made.store is not None:
            made.store(folder)
        folder.chmod(0o755)
