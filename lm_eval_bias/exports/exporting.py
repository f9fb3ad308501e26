"""The formats of ``export``, and writing them whole: what the command and the Python interface share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded, write_together, writing
from lm_eval_bias.core.run_data import Problem, Run
from lm_eval_bias.exports import every_eval_ever, hub_metadata
from lm_eval_bias.exports.directed_scores import Export, MeasureSettings
from lm_eval_bias.runs.harness_results import presentable

RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")


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
    "model-card": Format(
        "a section for a model card, with the Hub's model-index", "main", ("name", "scores", "allow_trial")
    ),
    "hf-eval-results": Format("the Hub's .eval_results/*.yaml", "main", ("name", "scores", "dataset", "allow_trial")),
}  # fmt: skip


def check(
    form: str, given: Iterable[str], brought: Mapping[str, Iterable[str]], place: str, inputs: Sequence[str], flag: str
) -> None:
    """Refuse an option that means nothing for a format, and a file that can't be written or is an input.

    ``brought`` are the options of benchmarks' own formats.
    """
    takes = {**{name: one.takes for name, one in FORMATS.items()}, **brought}
    for option in given:
        if option not in takes[form]:
            takers = ", ".join(name for name, options in takes.items() if option in options)
            raise BiasError(f"--{option.replace('_', '-')} has no effect with --to {form}: it is for {takers}")
    if form not in brought and not FORMATS[form].is_folder:
        files.check_place(place, inputs, flag)


def write(
    form: str, place: str, runs: Sequence[Run], problems: Sequence[Problem], options: Mapping[str, Any]
) -> Export:
    """Write runs as they were read to a file or folder, whole or not at all; options are fields of :class:`Settings`.

    Raises:
        BiasError: The runs or options don't fit the format, or the place can't be written.
    """
    makers = {"eee": every_eval_ever.make, "model-card": hub_metadata.model_card}
    settings = MeasureSettings(**{"scores": FORMATS[form].scores, **options})
    made = makers.get(form, hub_metadata.eval_results)(presentable(runs), problems, settings)
    contents = {expanded(place) / name: text.encode("utf-8", "backslashreplace") for name, text in made.files.items()}
    with writing(place):
        write_together(contents)
    return made
