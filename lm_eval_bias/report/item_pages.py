"""From a score to its items: pages with those that move it most, and some of the others."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import quote

from lm_eval_bias.core import numbers, registry
from lm_eval_bias.core.answers import DAMAGE
from lm_eval_bias.core.errors import BiasError, ask
from lm_eval_bias.core.files import progress
from lm_eval_bias.core.page_parts import ReportTask
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.wording import score_label, short
from lm_eval_bias.report import parts, templates
from lm_eval_bias.runs import contributions
from lm_eval_bias.runs.contributions import Log

_CANDIDATES = 12  # candidates or texts of an item
_LONGEST = 2000  # characters of a text


class ShownCandidate(NamedTuple):
    """A candidate with what it stands for and its log-probability or score, or a text of the model's with its label."""

    text: str
    role: str = ""
    number: str = ""


@dataclass(frozen=True)
class ShownItem:
    """An item of a score.

    Attributes:
        name: What makes it the same item in another run.
        is_strong: Whether it is one of those that move the score most.
        part: What it adds.
        facets: What it is about, in a few words each.
        prompt: What the model was asked.
        candidates: The likeliest first.
        more: How many candidates are left out.
    """

    name: str
    is_strong: bool
    part: str
    facets: Sequence[str]
    prompt: str
    candidates: Sequence[ShownCandidate]
    more: int


@dataclass(frozen=True)
class ScoreItems:
    """A score with its items.

    Attributes:
        ident: For links.
        label: What people call it.
        name: Its technical name.
        value: Its value with the interval.
        documents: How many items enter it.
        is_mean: Whether it is the mean of their values.
        entries: The items shown.
    """

    ident: str
    label: str
    name: str
    value: str
    documents: int
    is_mean: bool
    entries: Sequence[ShownItem]


@dataclass
class ItemPages:
    """The pages of a report's items.

    Attributes:
        files: Their texts, by name.
        links: From a task's ident and a score to its place in them.
        reasons: Why tasks have none, by ident.
    """

    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, dict[str, str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def _readable(text: object) -> str:
    return short(str(text).strip(), _LONGEST)


def _candidates(log: Log, place: int, added: Sequence[str]) -> list[ShownCandidate]:
    if log.written[place]:
        return [ShownCandidate(_readable(text), read) for text, read in log.written[place]]
    answers = log.answers[place]
    added = added if len(added) == len(answers) else [""] * len(answers)
    roles: Sequence[str] = ask((), log.benchmark, log.benchmark.candidate_roles, log.docs[place])
    roles = roles if len(roles) == len(answers) else [""] * len(answers)
    shown: list[tuple[float, ShownCandidate]] = []
    for text, role, answer in zip(added, roles, answers, strict=True):
        rows = list(answer) if isinstance(answer, (tuple, list)) else [answer]
        if rows and isinstance(rows[0], (int, float)):
            shown.append((-rows[0], ShownCandidate(_readable(text), role, f"{rows[0]:.4g}")))
        else:
            shown.append((0.0, ShownCandidate(_readable(answer), role)))
    return [candidate for _, candidate in sorted(shown, key=itemgetter(0))]


def of_score(log: Log, task: str, value: Value, ident: str, most: int) -> ScoreItems | None:
    """A score's items; ``None`` where no single item adds to it.

    Args:
        log: The task's sample log.
        task: The task.
        value: The score.
        ident: For links.
        most: How many of those that move it most, and how many of the others, drawn at random.
    """
    moving, is_mean = log.moving(value)
    if not moving:
        return None
    # the same in every report on the run
    drawn = random.Random(f"{task} {value.name}").sample(moving[most:], min(most, len(moving[most:])))  # noqa: S311
    entries = []
    for number, (place, part) in enumerate([*moving[:most], *drawn]):
        facets: Mapping[str, str] = ask({}, log.benchmark, log.benchmark.facets, log.docs[place])
        prompt, added = contributions.prompts(log.requests[place])
        candidates = _candidates(log, place, added)
        more = max(0, len(candidates) - _CANDIDATES)
        about = (log.name(place), number < most, numbers.significant(part), list(facets.values()))
        entries.append(ShownItem(*about, _readable(prompt), candidates[:_CANDIDATES], more))
    label, cell = score_label(log.benchmark.name, value.name), numbers.cell(value)
    return ScoreItems(ident, label, value.name, cell, len(moving), is_mean, entries)


def _names(task: TaskRun) -> list[str]:
    """The scores whose items are shown: the main ones, and the share of unanswered items if there are some."""
    names, silent = parts.main_names(task)[: parts.MAIN], registry.get(task.benchmark).unanswered
    are_some = silent in task.scores and task.scores[silent].value > 0
    return [*names, silent] if are_some and silent not in names else names


def build(tasks: Sequence[ReportTask], most: int, folder: str, page: str) -> ItemPages:
    """The items of tasks with a sample log, a page each; a log that can't be read is a reason, no error.

    Args:
        tasks: Of the report.
        most: How many items of each kind a score shows.
        folder: The folder that the pages are for, beside the report.
        page: The report's file name.
    """
    pages = ItemPages()
    for item in progress(tasks, "Items of tasks"):
        if not item.task.scores:  # withheld, as the page says
            continue
        if item.task.samples is None:
            pages.reasons[item.ident] = "no sample log (run with --log_samples and give the run's folder)"
            continue
        try:
            log = Log(item.task.samples)
            scores = [
                of_score(log, item.task.task, item.task.scores[name], f"score-{number}", most)
                for number, name in enumerate(_names(item.task), start=1)
            ]
        except DAMAGE as error:
            pages.reasons[item.ident] = str(
                error if isinstance(error, BiasError) else f"its sample log is damaged ({error})"
            )
            continue
        name = f"{item.ident}.html"
        shown = [score for score in scores if score is not None]
        pages.links[item.ident] = {score.name: f"{quote(folder)}/{name}#{score.ident}" for score in shown}
        pages.files[name] = templates.render(
            "items.html.j2", title=f"Items: {item.label}", scores=shown, back=f"../{quote(page)}"
        )
    return pages
