"""The formats of ``export``, and writing them whole: what the command and the Python interface share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lm_eval_bias import files
from lm_eval_bias.errors import BiasError
from lm_eval_bias.exports.directed_scores import LeftOut
from lm_eval_bias.files import expanded, write_together, writing
from lm_eval_bias.runs.run_data import Problem, Run, presentable

RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")


class Export(NamedTuple):
    """What an export writes.

    Attributes:
        files: Texts by their path below the output; the one under the empty path is the output itself.
        scores: How many scores go out.
        left_out: Those that don't, and why.
        remarks: What else to know of it, a sentence each.
    """

    files: Mapping[str, str]
    scores: int
    left_out: Sequence[LeftOut] = ()
    remarks: Sequence[str] = ()


class Settings(NamedTuple):
    """What the user says beyond the run.

    Attributes:
        scores: ``main`` or ``all``.
        name: The model's name; ``None`` takes each run's own.
        no_items: Whether records of single items stay out.
        organization: Who ran the evaluation.
        relationship: What they are to the model's developer, one of :data:`RELATIONSHIPS`.
        dataset: Hub data set whose leaderboard results are for; empty where none was named.
        now: When the export is made, in seconds since 1970.
    """

    scores: str
    name: str | None = None
    no_items: bool = False
    organization: str = "unknown"
    relationship: str = "other"
    dataset: str = ""
    now: float = 0.0


class Format(NamedTuple):
    """A format: what it is in one line, which scores go out by default, which options mean something for it."""

    help: str
    scores: str
    takes: Sequence[str]
    is_folder: bool = False


FORMATS = {
    "eee": Format(
        "Every Eval Ever 0.3.0, with items where there are sample logs", "all",
        ("name", "scores", "no_items", "organization", "relationship"), is_folder=True,
    ),
    "model-card": Format("a section for a model card, with the Hub's model-index", "main", ("name", "scores")),
    "hf-eval-results": Format("the Hub's .eval_results/*.yaml", "main", ("name", "scores", "dataset")),
}  # fmt: skip


def refuse_foreign(form: str, given: Iterable[str], brought: Mapping[str, Iterable[str]]) -> None:
    """Refuse the first option that means nothing for a format; ``brought`` are options of benchmarks' own formats."""
    takes = {**{name: set(one.takes) for name, one in FORMATS.items()}, **{n: set(own) for n, own in brought.items()}}
    for option in sorted(set(given) - takes[form]):
        takers = ", ".join(name for name, options in takes.items() if option in options)
        raise BiasError(f"--{option.replace('_', '-')} has no effect with --to {form}: it is for {takers}")


def check_place(form: str, place: str, inputs: Sequence[str], flag: str = "-o") -> None:
    """Refuse a place that can't be written or is an input, before the work for it is done."""
    if not FORMATS[form].is_folder:
        files.check_place(place, inputs, flag)
    elif os.path.lexists(path := expanded(place)) and not path.is_dir():
        raise BiasError(f"{flag} {place}: is a file: name a folder")


def make(form: str, runs: Sequence[Run], problems: Sequence[Problem], options: Mapping[str, Any]) -> Export:
    """Make an export of runs as they were read, with the fields of :class:`Settings` that were given.

    Raises:
        BiasError: The runs or options don't fit the format.
    """
    from lm_eval_bias.exports import every_eval_ever, hub_metadata

    makers = {"eee": every_eval_ever.make, "model-card": hub_metadata.model_card}
    settings = Settings(**{"scores": FORMATS[form].scores, "now": time.time(), **options})
    return makers.get(form, hub_metadata.eval_results)(presentable(runs), problems, settings)


def write(made: Export, form: str, place: str) -> None:
    """Write an export to its file, or into its folder, whole or not at all.

    Raises:
        BiasError: The place can't be written.
    """
    if not FORMATS[form].is_folder:
        files.write(made.files[""], place)
        return
    folder = expanded(place)
    with writing(place):
        write_together({folder / name: text.encode("utf-8", "backslashreplace") for name, text in made.files.items()})
