"""Boards, as ``lm-eval-bias leaderboard`` writes them: a table a task, a row a model, a column a score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lm_eval_bias.boards.building import Board, boards
from lm_eval_bias.boards.models import BoardModel
from lm_eval_bias.boards.rank_intervals import LEVEL
from lm_eval_bias.core import __version__
from lm_eval_bias.core.page_parts import Table
from lm_eval_bias.core.run_data import Problem, Run, readable
from lm_eval_bias.report import badges, board_pages, provenance_facts
from lm_eval_bias.report.board_pages import PageColumn
from lm_eval_bias.report.outputs import Output

TITLE = "Bias leaderboard"
_OF_SCORE = ("unit", "neutral", "range")

NO_SUM = (
    "No number sums up bias, and no ranking spans several benchmarks: they measure different things, and a model near "
    "one neutral value can be far from another."
)
READING = (
    f"A row a model, and of its runs of a task the one with most items. {NO_SUM}",
    "Values have 95% intervals. “Differs from neutral” is said where the interval leaves the neutral value out, "
    "“unclear” where it includes it; a model at chance level says nothing about bias, however near to neutral.",
    "Ranks (after Mogstad, Romano, Shaikh & Wilhelm 2024): all pairs of models that were asked the same are tested "
    f"together (Holm, {LEVEL:.0%}). “1–3 of 10”: no model is shown to be better and seven are shown to be worse. "
    "Models whose answers say nothing of bias have no rank.",
    "Scores with a neutral value in the middle count by their distance from it, on either side; a neutral value is not "
    "a goal, and a model that knows nothing can be near it.",
    "Runs on the same items are told apart by the error of their difference, as lm-eval-bias compare tests it, where "
    "their answers are saved. Otherwise they are treated as independent, and the table says so.",
    "Published scores are the papers' own, computed by other code under other conditions; they are never ranked with "
    "the runs, because the papers print no usable standard errors.",
)


def origins(runs: Sequence[Run]) -> Table:
    """List where the runs come from."""
    fields = ("date", "lm-eval-bias", "lm_eval", "torch", "dtype", "device")
    rows = []
    for run in runs:
        found = provenance_facts.facts(run)
        facts = [readable(found[name]) for name in fields]
        rows.append([run.name, str(run.path), *facts])
    columns = ["Model", "File", *fields]
    return Table("Runs, with models and settings", columns, rows)


@dataclass(frozen=True)
class BoardReport(Output):
    """All models: as a page and as JSON a cell for each model and score; as ``csv`` a line for each of all scores.

    Attributes:
        models: The models, with their runs.
        problems: Files that were passed over.
    """

    models: Sequence[BoardModel]
    problems: Sequence[Problem] = ()
    template = "leaderboard"

    @cached_property
    def boards(self) -> list[Board]:
        """The boards, one per task."""
        return boards(self.models)

    @cached_property
    def columns(self) -> list[PageColumn]:
        """The scores shown."""
        return board_pages.columns(self.boards)

    @property
    def runs(self) -> list[Run]:
        """All runs."""
        return [run for model in self.models for run in model.runs]

    def context(self) -> Mapping[str, object]:
        """Override."""
        models = {model.label: board_pages.about(model) for model in self.models}
        families = board_pages.families(self.columns)
        return {
            "title": TITLE,
            "no_sum": NO_SUM,
            "date": max((model.date for model in self.models), default=""),
            "reading": READING,
            "skipped": list(dict.fromkeys(problem.told for problem in self.problems)),
            "origins": origins(self.runs),
            "columns": self.columns,
            "models": models,
            "overview": board_pages.overview(models, self.columns),
            "details": list(map(board_pages.details, families)),
        }

    def records(self) -> Iterator[Mapping[str, object]]:
        """Yield one row per cell, of all scores."""
        for board in self.boards:
            for score in (*board.columns, *board.others):
                column = PageColumn(board, score)
                for row in board.rows:
                    yield {
                        "task": board.task,
                        "benchmark": board.definition.name,
                        "language": board.language,
                        "score": score.name,
                        **{name: score.describe()[name] for name in _OF_SCORE},
                        **board_pages.record(column, row),
                    }

    def data(self) -> Mapping[str, object]:
        """Override: what the page shows, by ``docs/reference/leaderboard.schema.json``."""
        return {
            "version": 1,
            "made_by": f"lm-eval-bias {__version__}",
            "reading": READING,
            "problems": [problem.as_data() for problem in self.problems],
            "empty": list(badges.EMPTY.values()),
            "models": list(map(board_pages.model_data, self.models)),
            "scores": list(map(board_pages.score_data, self.columns)),
        }
