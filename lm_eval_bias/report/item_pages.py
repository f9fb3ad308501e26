"""From a score to its items: pages with those that move it most, and some of the others."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
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


@dataclass(frozen=True)
class ShownCandidate:
    """A candidate with the model's number for it, or a text that the model wrote.

    Attributes:
        text: The text.
        role: What it stands for, or how it was labelled.
        number: Log-probability or score; empty of texts.
    """

    text: str
    role: str
    number: str


@dataclass(frozen=True)
class ShownItem:
    """An item of a score.

    Attributes:
        name: What makes it the same item in another run.
        is_strong: Whether it is one of those that move the score most.
        part: What it adds.
        facets: What it is about, in a few words each.
        picked: Its value for each of the score's facets.
        prompt: What the model was asked.
        candidates: The likeliest first.
        more: How many candidates are left out.
    """

    name: str
    is_strong: bool
    part: str
    facets: Sequence[str]
    picked: Sequence[str]
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
        alike: How many items move it as much as the last of the strongest, these included.
        facets: What items can be picked by, each with its values.
        entries: The items shown.
    """

    ident: str
    label: str
    name: str
    value: str
    documents: int
    is_mean: bool
    alike: int
    facets: Mapping[str, Sequence[str]]
    entries: Sequence[ShownItem]

    @property
    def strong(self) -> int:
        """How many of the entries are those that move the score most."""
        return sum(entry.is_strong for entry in self.entries)


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
    answers = log.answers[place]
    if log.written[place]:
        return [ShownCandidate(_readable(text), read, "") for text, read in log.written[place]]
    roles: Sequence[str] = ask((), log.benchmark, log.benchmark.candidate_roles, log.docs[place])
    roles = roles if len(roles) == len(answers) else [""] * len(answers)
    shown: list[tuple[float, ShownCandidate]] = []
    for text, role, answer in zip(added, roles, answers, strict=True):
        first = answer[0] if isinstance(answer, (tuple, list)) and answer else answer
        if isinstance(first, (int, float)):
            shown.append((-first, ShownCandidate(_readable(text), role, f"{first:.4g}")))
        elif isinstance(answer, (tuple, list)):
            shown += [(0.0, _written(row)) for row in answer]
        else:
            shown.append((0.0, ShownCandidate(_readable(answer), role, "")))
    return [candidate for _, candidate in sorted(shown, key=lambda pair: pair[0])]


def _written(row: Any) -> ShownCandidate:
    """A text that a model wrote, with its label where it has one."""
    own = list(row) if isinstance(row, (tuple, list)) and row else [row]
    return ShownCandidate(_readable(own[0]), str(own[1]) if len(own) > 1 else "", "")


def _entry(
    log: Log, place: int, part: float, is_strong: bool, facets: Sequence[str], picked: Sequence[str]
) -> ShownItem:
    prompt, added = contributions.prompts(log.requests[place])
    if len(added) != len(log.answers[place]):
        added = [""] * len(log.answers[place])
    candidates = _candidates(log, place, added)
    return ShownItem(
        log.name(place), is_strong, numbers.significant(part), facets, picked,
        _readable(prompt), candidates[:_CANDIDATES], max(0, len(candidates) - _CANDIDATES),
    )  # fmt: skip


def _score(log: Log, task: str, value: Value, ident: str, most: int) -> ScoreItems | None:
    """A score's items; ``None`` where no single item adds to it."""
    moving, is_mean = log.moving(value)
    if not moving:
        return None
    # the same in every report on the run
    drawn = random.Random(f"{task} {value.name}").sample(moving[most:], min(most, len(moving[most:])))  # noqa: S311
    chosen = [*moving[:most], *drawn]
    facets: list[Mapping[str, str]] = [
        ask({}, log.benchmark, log.benchmark.facets, log.docs[place]) for place, _ in chosen
    ]
    values = {
        name: sorted({own.get(name, "") for own in facets}) for name in dict.fromkeys(n for own in facets for n in own)
    }
    values = {name: own for name, own in values.items() if len(own) > 1}
    entries = [
        _entry(log, place, part, number < most, [*own.values()], [own.get(name, "") for name in values])
        for number, ((place, part), own) in enumerate(zip(chosen, facets, strict=True))
    ]
    label = score_label(log.benchmark.name, value.name)
    last = moving[:most][-1][1]
    alike = sum(part == last for _, part in moving)
    return ScoreItems(
        ident,
        label,
        value.name,
        numbers.cell(value),
        len(moving),
        is_mean,
        alike,
        values,
        entries,
    )


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
                _score(log, item.task.task, item.task.scores[name], f"score-{number}", most)
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
