"""The functions of ``import lm_eval_bias as leb``: load runs, read and compare their scores, write reports.

The commands do the same with the same code: the numbers are theirs. ``docs/python-api.md`` shows them in use. Use the
functions as ``lm_eval_bias.load`` and so on; where they lie can change.

Errors are :class:`lm_eval_bias.BiasError`: one line that says what was wrong, where, and what to do.
"""

from __future__ import annotations

import functools
import os
import string
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from lm_eval_bias.core import Facts, registry, safe_stream
from lm_eval_bias.core.answers import HOW_TO_SAVE
from lm_eval_bias.core.benchmark import Benchmark, Card
from lm_eval_bias.core.csv_text import flat
from lm_eval_bias.core.errors import BadOption, BiasError, printable
from lm_eval_bias.core.run_data import Problem, Run

if TYPE_CHECKING:
    from pandas import DataFrame

    from lm_eval_bias.report.board_reports import BoardReport
    from lm_eval_bias.report.comparison_reports import ComparisonReport
    from lm_eval_bias.report.methods import Methods
    from lm_eval_bias.report.run_reports import RunReport


P = ParamSpec("P")
T = TypeVar("T")

_KEPT: list[tempfile.TemporaryDirectory[str]] = []  # folders that go when Python ends
_STARRED = "\n* has a warning: see scores()"
_COUNTS = ("items", "n", "of", "clusters")
_NUMBERS = (
    "value", "estimate", "stderr", "interval_low", "interval_high", "range_low", "range_high", "neutral", "chance",
    "simultaneous_low", "simultaneous_high", "fixed_interval_low", "fixed_interval_high", "base_value", "other_value",
    "difference", "minimum_detectable", "dof", "p", "p_adjusted",
    "minimum_detectable_level",
)  # fmt: skip


def _public(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a public function: its errors are one line, as on a terminal, and name parameters as Python does."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except BiasError as error:
            message = error.in_python if isinstance(error, BadOption) else error
            error.args = (printable(message),)
            raise

    return call


@dataclass(frozen=True, repr=False)
class Runs(Sequence[Run]):
    """A sequence of runs with unique names: ``runs[0]``, ``runs["name"]``; a slice is a sequence of runs, too.

    Notebooks and terminals show their main scores as a table.

    Attributes:
        runs: The runs.
        problems: Files that were passed over, and why.
        paths: What was read.
    """

    runs: tuple[Run, ...]
    problems: tuple[Problem, ...] = ()
    paths: tuple[Path, ...] = ()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return replace(self, runs=self.runs[index])
        if isinstance(index, str):
            by_name = {run.name: run for run in self.runs}
            if index not in by_name:
                known = ", ".join(by_name)
                raise BiasError(f"no run is called {index!r}. Runs: {known}")
            return by_name[index]
        return self.runs[index]

    def __len__(self) -> int:
        return len(self.runs)

    @_public
    def choose(
        self, tasks: str | Sequence[str] = (), language: str | Sequence[str] = ()
    ) -> Runs:
        """Return the runs with some of their tasks; comparisons, ranks and corrections then cover these tasks only.

        Args:
            tasks: Names of tasks, groups and tags, or patterns such as ``mbbq_*``; all by default.
            language: ISO 639-1 codes; all by default.

        Returns:
            Runs whose ``problems`` name what was left out.

        Raises:
            BiasError: No run has such a task, or one in such a language.
        """
        from lm_eval_bias.runs.choosing import choose

        kept, left_out = choose(self.runs, names(tasks), names(language))
        return Runs(tuple(kept), (*self.problems, *left_out), self.paths)

    def _shown(self) -> DataFrame:
        """Set the main scores in a table: a row per task and score, a column per run."""
        frame = scores(self)
        frame = frame[frame.main]
        texts = []
        for row in frame.itertuples():
            ends = f" [{row.interval_low:.4g}, {row.interval_high:.4g}]"
            mark = " *" if row.warning or row.no_claim_reason else ""
            texts.append(f"{row.value:.4g}{ends}{mark}".replace(" [nan, nan]", ""))
        table = frame.assign(value=texts).pivot_table(
            "value", ["task", "score"], "run", aggfunc="first", sort=False
        )
        return table.fillna("")

    def __repr__(self) -> str:
        if not self.runs:
            return "<no runs>"
        text = str(self._shown())
        return text + _STARRED * ("*" in text)

    def _repr_html_(self) -> str:
        if not self.runs:
            return "<p>no runs</p>"
        table = self._shown().to_html()
        return table + f"<p>{_STARRED.strip()}</p>" * ("*" in table)

    @_public
    def report(self, scores: str | Sequence[str] = ()) -> RunReport:
        """Make the report that ``report`` writes: a page that needs no network, or tables for papers and programs.

        Args:
            scores: Names of scores in tables and pictures; each benchmark's main ones by default.

        Returns:
            What a notebook shows as a page; ``.write(FILE)`` and ``.html()``, ``.markdown()``, ``.latex()``,
            ``.csv()``, ``.json()`` are its formats. A file is written whole or not at all, and never over a run that
            was read.

        Raises:
            BiasError: An unknown score, or no run.
        """
        from lm_eval_bias.report import run_reports

        shown = self._with_scores(scores)
        return run_reports.RunReport(shown, self.problems, self._inputs())

    def _with_scores(self, scores: str | Sequence[str]) -> Sequence[Run]:
        """Return the runs with these scores in tables and pictures, or as they are."""
        from lm_eval_bias.report import run_reports

        runs = _several(self)
        return run_reports.choose(runs, names(scores)) if scores else runs

    def _inputs(self) -> list[Path]:
        """List the input files, which outputs must not overwrite."""
        inputs = list(self.paths)
        for run in self.runs:
            inputs.append(run.path)
            for task in run.tasks.values():
                inputs += task.saved_files
        return inputs

    @_public
    def figures(
        self,
        folder: str | os.PathLike[str],
        scores: str | Sequence[str] = (),
    ) -> list[str]:
        """Write figures as SVG and PDF into a folder, as ``report --figures`` does.

        Args:
            folder: The folder.
            scores: Names of scores; each benchmark's main ones by default.

        Returns:
            The names of the files.

        Raises:
            BiasError: The folder can't be written, or there is no run.
        """
        from lm_eval_bias.report import run_reports

        shown = self._with_scores(scores)
        return run_reports.write_figures(shown, os.fspath(folder))

    @_public
    def methods(self) -> Methods:
        """Make the methods paragraphs of a paper on the runs, as ``methods`` writes them.

        Returns:
            What a notebook shows; ``.markdown()``, ``.latex()`` and ``.write(FILE)`` are its formats.

        Raises:
            BiasError: There is no run.
        """
        from lm_eval_bias.report.methods import Methods

        return Methods(_several(self), self.problems, self._inputs())

    @_public
    def cite(self) -> str:
        """Return BibTeX for the sources of the runs, as ``cite`` does.

        Raises:
            BiasError: There is no run.
        """
        from lm_eval_bias.report import citing

        return citing.bibtex(citing.of_runs(_several(self))) + "\n"


def _several(runs: Run | Iterable[Run]) -> Runs:
    """Any runs as :class:`Runs`.

    Raises:
        BiasError: No run, something else, or two of one name, which would be taken for one.
    """
    if isinstance(runs, Runs):
        several = runs
    else:
        several = Runs((runs,) if isinstance(runs, Run) else tuple(runs))
        if not all(isinstance(run, Run) for run in several):
            raise BiasError(
                f"runs={str(runs)[:80]!r}: not runs: read them first with lm_eval_bias.load(PATH)"
            )
        called = [run.name for run in several]
        if repeated := [name for name in called if called.count(name) > 1]:
            raise BiasError(
                f"two runs are called {repeated[0]!r}: read all runs in one call, lm_eval_bias.load(PATH, PATH)"
            )
    if not several:
        raise BiasError("there is no run to read or write")
    return several


def names(given: str | Iterable[str]) -> tuple[str, ...]:
    """Return unique names from a list, or from one text with commas.

    Raises:
        BiasError: A text without any.

    >>> names("ss, icat,ss")
    ('ss', 'icat')
    """
    every = given.split(",") if isinstance(given, str) else given
    listed = tuple(dict.fromkeys(filter(None, map(str.strip, every))))
    if isinstance(given, str) and not listed:
        raise BiasError(f"{given!r} holds no name: leave it out for the usual ones")
    return listed


def _frame(
    rows: Sequence[Facts],
    columns: Sequence[str] | None = None,
    texts: Sequence[str] = (),
) -> DataFrame:
    """Build a data frame whose numeric columns hold numbers or ``nan``; columns named in ``texts`` stay as they are."""
    import pandas

    frame = pandas.DataFrame(map(flat, rows), columns=columns)
    kinds = {
        **dict.fromkeys(_NUMBERS, "float64"),
        **dict.fromkeys(_COUNTS, "Int64"),
        "paired": "boolean",
    }
    present = set(frame).difference(texts)
    return frame.astype({name: kinds[name] for name in kinds.keys() & present})


@_public
def evaluate(
    model: str = "hf",
    tasks: str | Sequence[str] = (),
    /,
    *,
    suite: str | None = None,
    limit: float | None = None,
    output_path: str | os.PathLike[str] | None = None,
    options: Mapping[str, object] = MappingProxyType({}),
    **model_args: object,
) -> Runs:
    """Run a model as ``lm-eval-bias run`` does, and read the run.

    Args:
        model: Model type, such as ``hf``, ``hf-packed`` or ``local-chat-completions``.
        tasks: Names of tasks and groups; or give a ``suite``.
        suite: ``quick``, ``standard``, ...
        limit: The first so many documents of each task.
        output_path: Where results and sample logs stay; by default in a folder that goes when Python ends.
        options: Further options of the harness, by the names of its flags: ``{"apply_chat_template": True}``.
        **model_args: Of the model, such as ``pretrained="gpt2"``.

    Raises:
        BiasError: Bad usage, or a run that failed.
    """
    from lm_eval_bias.evaluation import steps

    place = _temporary_folder() if output_path is None else os.fspath(output_path)
    named = [tasks] if isinstance(tasks, str) else list(tasks)
    flags = {
        **options,
        "model": model,
        "model_args": model_args,
        "tasks": named,
        "limit": limit,
        "output_path": place,
        "log_samples": True,
    }
    with safe_stream.safe_streams():
        made = steps.evaluate(steps.RunRequest(flags, suite))
    return _read([str(made)])


@_public
def load(*paths: str | os.PathLike[str] | Mapping[str, object]) -> Runs:
    """Read runs, as every command does.

    Args:
        *paths: Run folders (searched to any depth), the harness's ``results_*.json``, or
            what ``lm_eval.simple_evaluate`` returned.

    Returns:
        The runs in the order of the paths, each once. Runs of one model have names that distinguish them. Files that
        can't be read are in ``.problems``, with a warning each.

    Raises:
        BiasError: A path that doesn't exist, a file named itself that can't be read, or no run at all.
    """
    if not paths:
        raise BiasError("load() needs a path: a run folder or a file")
    return _read(
        [
            _in_a_folder(path) if isinstance(path, Mapping) else os.fspath(path)
            for path in paths
        ]
    )


def _temporary_folder() -> str:
    """Make a temporary folder that is deleted when Python exits."""
    _KEPT.append(tempfile.TemporaryDirectory(prefix="lm-eval-bias-"))
    return _KEPT[-1].name


def _in_a_folder(results: Mapping[str, object]) -> str:
    """Write in-memory results into a temporary folder; return its path."""
    from lm_eval_bias.harness import running

    folder = _temporary_folder()
    running.keep(dict(results), folder)
    return folder


def read(paths: Sequence[str], by_file: bool = False) -> Runs:
    """Read runs as :func:`load` does, but without warnings; with ``by_file`` each file is a run of its own.

    Raises:
        BiasError: What :func:`load` raises.
    """
    from lm_eval_bias.runs import run_discovery

    runs, problems = run_discovery.read(paths, by_file)
    return Runs(tuple(runs), tuple(problems), tuple(map(Path, paths)))


def _read(paths: Sequence[str]) -> Runs:
    runs = read(paths)
    for problem in runs.problems:
        warnings.warn(f"skipped: {printable(problem)}", stacklevel=4)
    return runs


@_public
def scores(runs: Run | Iterable[Run]) -> DataFrame:
    """Return a data frame of all scores, one row per run, task and score (a superset of ``report --format csv``).

    ===================================== ============================================================================
    ``run``, ``task``, ``benchmark``,     the run's name, what it ran, and its benchmark or variant
    ``language``                          ISO 639-1 code
    ``documents``, ``items``              how many documents were scored, and how many the task has (``<NA>``: unknown)
    ``score``                             its name
    ``value``, ``stderr``                 in ``unit``; ``nan`` where there is none, and ``note`` says why
    ``interval_low``, ``interval_high``   95% interval within the range; ``nan`` without one
    ``range_low``, ``range_high``         smallest and largest possible value, perhaps infinite
    ``neutral``                           the value that means "no bias"; ``nan`` where none exists
    ``chance``                            the value that guessing gives, of an ability; ``nan`` where it isn't known
    ``unit``, ``direction``               of the value, and what values on either side of ``neutral`` mean
    ``n``                                 how many records the score rests on (``<NA>``: not recorded)
    ``warning``                           what to know of the task before believing the score, such as chance level
    ``claim``                             what the score says, in words; empty for an ability
    ``no_claim_reason``                   why it says nothing, or can't be called near neutral; empty if it can
    ``note``                              why the value is ``nan``, or what to beware of
    ``fixed_interval_low``, ``..._high``  95% interval for exactly these items; ``interval`` is for items like them
    ``dof``                               degrees of freedom of ``stderr``; infinite where a normal quantile is meant
    ``main``                              whether it is one of the scores that findings rest on
    ===================================== ============================================================================

    Scores that a benchmark withholds (:meth:`Benchmark.withheld`) have no row, as in every report.

    Args:
        runs: From :func:`load`, or some of them.

    Raises:
        BiasError: No runs.

    >>> from lm_eval_bias.core.benchmark import UnknownBenchmark
    >>> from lm_eval_bias.core.run_data import TaskRun, Value
    >>> gap = Value("gap", 0.25, 0.05, interval=(0.15, 0.35), low=-1.0, high=1.0, neutral=0.0)
    >>> mine = UnknownBenchmark("mine")
    >>> task = TaskRun("my_task", mine, "en", "1.0", documents=80, items=100, metadata={}, scores={"gap": gap})
    >>> frame = scores(Run("tiny", Path("tiny.json"), {"my_task": task}))
    >>> print(frame[["run", "score", "value", "interval_low", "interval_high", "neutral"]].to_string(index=False))
     run score  value  interval_low  interval_high  neutral
    tiny   gap   0.25          0.15           0.35      0.0
    """
    from lm_eval_bias.report import run_reports

    rows = list(run_reports.records(_several(runs)))
    return _frame(rows, run_reports.COLUMNS)


@_public
def extract_choice(
    text: str, options: Sequence[str], language: str, *, cut: bool = False
) -> str:
    """Return the option that an answer chooses, by the grammar that all ``_gen`` tasks with options use.

    The rule stands in ``docs/chat_models.md``. Thoughts are cut first. Hold it against labels of your own.

    Args:
        text: What a model wrote.
        options: The options' texts in the order of their letters, A, B, C and so on.
        language: Two letters, of the question; English answers are understood in every language.
        cut: Whether the text was cut off (a server's finish reason ``length`` or ``content_filter``): then it is read
            only if it states a choice firmly, else it is ``[unfinished thoughts]``.

    Returns:
        The letter, or why there is none: ``[refused]``, ``[empty]``, ``[unfinished thoughts]``, ``[several answers]``
        (it takes more than one) or ``[unparsed]`` (it takes none).

    Raises:
        BiasError: A language without words, or no 2 to 12 options.

    >>> options = ["The woman", "The man", "Not known"]
    >>> extract_choice("The text doesn't say who it was, so the answer is C.", options, "en")
    'C'
    >>> extract_choice("It would be a cliché to assume that it was the woman.", options, "en")
    '[unparsed]'
    """
    from lm_eval_bias.scoring import answer_extraction, free_answers

    if (
        isinstance(options, str)
        or not 2 <= len(options) <= answer_extraction.MOST_OPTIONS
    ):
        raise BadOption(
            "options",
            options,
            f"must be a list of 2 to {answer_extraction.MOST_OPTIONS} texts",
        )
    known = answer_extraction.languages()
    if language not in known:
        raise BadOption(
            "language", language, f"no words for it. Known: {', '.join(known)}"
        )
    answer = free_answers.without_thoughts(text)
    lettered = map(
        answer_extraction.Option,
        string.ascii_uppercase,
        ((option,) for option in options),
    )
    return answer_extraction.reader(tuple(lettered), language).read(answer, cut)


@_public
def items(run: Run, task: str) -> DataFrame:
    """Return a task's items with the model's answers, one row per item, from its sample log (``--log_samples``).

    Args:
        run: From :func:`load`.
        task: Its name.

    Returns:
        ``key``, what names it; the facets that ``rescore --by`` knows; ``prompt``, as it was sent; of
        written answers ``text`` and ``extracted``, what
        is read from it by today's rules; the benchmark's record of the answer
        (``docs/add-a-benchmark.md``), such as ``answer`` or ``share``; and a column for each score that means over
        items, with the item's contribution to it, in its unit (``nan`` where it has none).

    Raises:
        BiasError: The run has no such task or no log of it, or the log is damaged.
    """
    import pandas

    from lm_eval_bias.report import item_pages
    from lm_eval_bias.runs import items as saved

    listed = saved.items(saved.of_task(run, task))
    return pandas.DataFrame(list(map(item_pages.row, listed)))


@_public
def breakdown(
    runs: Run | Iterable[Run],
    by: str | Sequence[str],
    scores: str | Sequence[str] = (),
) -> DataFrame:
    """Return scores by a facet of the items, such as ``job``, one row per value (the rows of ``rescore --by``).

    Args:
        runs: From :func:`load`; those with saved answers are read.
        by: A facet, or two; ``ls --card NAME`` lists a benchmark's. Tasks without it are passed over.
        scores: Names; each benchmark's main scores by default.

    Returns:
        Task, facets, score, ``n`` (number of items), ``estimate``, ``stderr``, the 95% interval of each value and the
        ``simultaneous`` one, which holds for all values of a score and task at once. The furthest from the neutral
        value come first. ``warning``: what stands before the whole task's score.

    Raises:
        BiasError: No saved answers, or none that have the facet or score.
    """
    from lm_eval_bias.report import breakdown_tables
    from lm_eval_bias.runs import breakdowns

    tasks = [task for run in _several(runs) for task in run.tasks.values()]
    files = [(task.samples or task.answers, task.task) for task in tasks]
    saved = [(str(file), task) for file, task in files if file]
    if not saved:
        raise BiasError(f"these runs have no saved answers: {HOW_TO_SAVE}")
    facets = names(by)
    paths = list(dict.fromkeys(path for path, _ in saved))
    computed = breakdowns.breakdowns(paths, facets, names(scores), wanted=saved)
    return _frame(list(breakdown_tables.records(computed)), texts=facets)


@_public
def compare(
    runs: Run | Iterable[Run],
    by: str = "run",
    base: str | None = None,
    scores: str | Sequence[str] = (),
    *,
    unpaired: bool = False,
) -> DataFrame:
    """Return paired differences, one row per comparison and score, followed by what could not be compared.

    These are the rows of ``compare --format csv``.

    Pairs of runs need the same items, and their saved answers.

    ======================================== =========================================================================
    ``family``                               ``primary``: tested in the first family of scores; ``other``; or ``not
                                             compared``, without numbers but with a ``reason``
    ``task``, ``base``, ``other``, ``score`` the task or tasks, the two sides, the score
    ``base_value``, ``other_value``          of the items that both sides have
    ``difference``, ``stderr``, ``dof``      other minus base, in ``unit``
    ``interval_low``, ``interval_high``      95% interval of the difference, clustered
    ``p``, ``p_adjusted``, ``correction``    of the ``test``, and corrected for the tests of its family
    ``minimum_detectable``                   the true difference that is found with a probability of 80% at the level
                                             ``minimum_detectable_level``
    ``clusters``                             how many independent groups of items (templates, ...) it rests on
    ``paired``, ``items``                    whether item by item, and on how many of these the score rests
    ``outcome``                              of the other: ``better``, ``worse`` or ``not shown``
    ``finding``, ``reason``, ``note``        what it says, why a number is ``nan``, what to beware of
    ``summary``, ``range_low``, ...          what the score is; ``range_high``, ``neutral``, ``direction``, ``unit`` too
    ======================================== =========================================================================

    Args:
        runs: From :func:`load`, or some of them.
        by: ``run``; or ``language`` or a condition such as ``instruction``, of each model.
        base: What the others are compared with: by default the first run, no instruction, English.
        scores: Names of scores; by default each benchmark's main ones.
        unpaired: Compare as independent what shares no items, seeds or versions.

    Raises:
        BiasError: Nothing to compare, sides that can't be compared, or an unknown name.
    """
    made = comparison(runs, by, base, scores, unpaired=unpaired)
    return _frame(list(made.records()))


@_public
def comparison(
    runs: Run | Iterable[Run],
    by: str = "run",
    base: str | None = None,
    scores: str | Sequence[str] = (),
    *,
    unpaired: bool = False,
) -> ComparisonReport:
    """Compare runs as :func:`compare` does; return a report.

    Args:
        runs: From :func:`load`, or some of them.
        by: As for :func:`compare`, like all others.
        base: What the others are compared with.
        scores: Names of scores.
        unpaired: Compare as independent what shares no items, seeds or versions.

    Returns:
        What a notebook shows as a page; ``str()`` is its text, ``.write(FILE)`` and ``.html()``, ``.markdown()``,
        ``.latex()``, ``.csv()``, ``.json()`` its other formats.

    Raises:
        BiasError: Nothing to compare, sides that can't be compared, or an unknown name.
    """
    from lm_eval_bias.comparing import findings
    from lm_eval_bias.report import comparison_reports

    known = findings.axes()
    if by not in known:
        raise BadOption("by", by, f"unknown. Known: {', '.join(known)}")
    choice = findings.Choice(by, base, names(scores), unpaired)
    several = _several(runs)
    compared, left_out = findings.compare(several, choice)
    left_out += findings.not_chosen(several.problems)
    return comparison_reports.ComparisonReport(compared, left_out, several)


@_public
def leaderboard(
    *paths: str | os.PathLike[str],
    tasks: str | Sequence[str] = (),
    language: str | Sequence[str] = (),
) -> BoardReport:
    """List runs beside the models of the papers, as ``leaderboard`` does.

    Args:
        *paths: Folders with result files, at any depth.
        tasks: As for :meth:`Runs.choose`.
        language: As for :meth:`Runs.choose`.

    Returns:
        What a notebook shows as a page; ``str()`` is its text, ``.write(FILE)`` and so on its other formats.

    Raises:
        BiasError: There is no run.
    """
    from lm_eval_bias.boards import building, models
    from lm_eval_bias.report import board_reports

    every = read([os.fspath(path) for path in paths], by_file=True)
    runs = every.choose(tasks, language)
    problems = [*runs.problems, *building.foreign(every)]
    return board_reports.BoardReport(models.models(runs), problems)


@_public
def benchmarks() -> Mapping[str, Benchmark]:
    """Return all benchmarks and their variants by name, including those of other installed packages.

    Raises:
        BiasError: One that can't be loaded.

    >>> benchmarks()["occugender"].title
    'OccuGender'
    """
    return MappingProxyType(registry.by_name())


@_public
def card(name: str) -> Card:
    """Return a benchmark's card: what it measures, its limits, the groups it covers, licence, known flaws and use.

    Args:
        name: A benchmark, variant, task or group.

    Raises:
        BiasError: There is none of that name, or it has no card.

    >>> card("occugender_explicit").link
    'https://arxiv.org/abs/2212.10678'
    """
    from lm_eval_bias.report import listings

    return listings.with_card(name)[1]
