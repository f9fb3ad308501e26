"""What a benchmark is to the rest of the package: one object with everything that is particular to it.

A benchmark is a class of its own, derived from :class:`Benchmark`, whose one instance is called ``BENCHMARK`` and lies
in the module ``benchmark`` of the benchmark's package. The rest of the package asks that object and knows no benchmark
by name. ``docs/add-a-benchmark.md`` goes from an empty folder to a number in the report.

Importing this module, and the ``benchmark`` modules, costs milliseconds: what needs numpy or more is imported inside
the methods.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lm_eval_bias.core.errors import BiasError, fault, kind_of
from lm_eval_bias.core.files import parse_yaml

if TYPE_CHECKING:
    from lm_eval_bias.core.answers import Reader
    from lm_eval_bias.core.page_parts import Part, ReportTask
    from lm_eval_bias.core.planting import Planting
    from lm_eval_bias.core.questions import Question
    from lm_eval_bias.core.run_data import Published, Remark, TaskRun
    from lm_eval_bias.custom_metrics.score import Record, Score

Document = Mapping[str, Any]
REQUIRED, DETAIL, DATA = "required", "detail", "data"  # roles of options


class Card(NamedTuple):
    """What readers of a page must know of a benchmark.

    What isn't known says so in its text; an empty text means that nothing was written.

    Attributes:
        measures: Its purpose: what its scores say.
        cannot: What they don't say.
        uncertainty: What its intervals rest on.
        differs: Where this implementation departs from the paper.
        paper: Citation.
        link: Where the paper is; empty where it has no stable address.
        citation: The paper's fields in BibTeX; empty where it has none.
        population: Whom the items are about, and where they come from.
        languages: Of the items, and how they came into them.
        size: How many items there are, and of what.
        licence: Of the data, as their repository states it.
        flaws: What is known to be wrong with the items or the scores, each with its number.
        use: What it is meant for.
        misuse: What it must not be used for.
    """

    measures: str
    cannot: str
    uncertainty: str
    differs: str
    paper: str
    link: str = ""
    citation: Mapping[str, str] = MappingProxyType({})
    population: str = ""
    languages: str = ""
    size: str = ""
    licence: str = ""
    flaws: Sequence[str] = ()
    use: str = ""
    misuse: str = ""


class Size(NamedTuple):
    """The size of a task; ``None`` for what isn't known.

    Attributes:
        items: How many documents it has.
        requests: How many requests a document makes, of which those for texts may be repeated.
        smallest: The smallest useful ``--limit``: the first documents of which everything that scores balance, and two
            clusters, are a part, so that main scores have intervals.
    """

    items: int | None
    requests: int | None = None
    smallest: int | None = None


class Asking(NamedTuple):
    """How a document is asked beyond what its task's YAML says.

    Attributes:
        questions: Questions of the benchmark's own, in place of the harness's requests.
        counts_tokens: Whether answers must tell their number of tokens: ``(log-likelihood, is greedy, tokens)``;
            ``None``: where the model type can tell. Of tasks whose requests are the harness's ``multiple_choice``.
        begins_by_instruction: The document with a prompt that says how the answer has to begin (``gen_prefix``), for
            chat templates and servers that don't let an answer be begun; ``None``: the beginning is sent all the same.
    """

    questions: Sequence[Question] = ()
    counts_tokens: bool | None = False
    begins_by_instruction: Document | None = None


class Rewriting(NamedTuple):
    """A flag of ``rescore`` that scores saved answers in another way.

    Attributes:
        flag: Without the dashes.
        metavar: What stands for its value in the help.
        help: What it does, beginning with the benchmark's name.
        change: Changes the documents of a task and the answers of each, given the flag's value.
    """

    flag: str
    metavar: str
    help: str
    change: Callable[
        [Sequence[Document], Sequence[Sequence[Any]], str],
        tuple[Sequence[Document], Sequence[Sequence[Any]]],
    ]


class Command(NamedTuple):
    """A command of ``lm-eval-bias``.

    Attributes:
        name: As it is typed, behind the benchmark's name where a benchmark brings it: ``stereoset translate``.
        help: What it does, in one line.
        module: Dotted name of the module with ``add_arguments(parser)`` and ``run(arguments) -> exit status``, or of a
            class with these (``module:Class``).
    """

    name: str
    help: str
    module: str


class Condition(NamedTuple):
    """What tasks of one run can be compared by: ``compare --by NAME``.

    Attributes:
        name: For ``--by``; a document's field of this name may differ between the levels, all others must not.
        help: What is compared, in a few words.
        base: The level that the others are compared with by default.
        example: Which tasks have several levels.
        level: A task of a run to the group that it is compared within and its level there, or ``None``.
    """

    name: str
    help: str
    base: str
    example: str
    level: Callable[[TaskRun], tuple[str, str] | None]


Extension = Command | Rewriting | Condition


def without_language(task: str, language: str) -> str:
    """A task's name with ``*`` in place of its language; empty for one without it.

    >>> without_language("stereoset_de_inter", "de"), without_language("ca_bbq_age", "ca"), without_language("a", "en")
    ('stereoset_*_inter', '*_bbq_age', '')
    """
    code = re.escape(language)
    stem = re.sub(rf"^{code}|(?<=_){code}(?=_|$)", "*", task, count=1)
    return stem if language and stem != task else ""


class Benchmark(ABC):
    """Everything that is particular to one benchmark.

    ``name``, :meth:`record` and :meth:`scores` are what defines it; everything else has a default that can be seen: a
    benchmark without sentences gets a plain line per score, one without a card says that it has none.

    Attributes:
        name: The ``benchmark`` field of its documents and of its YAMLs' metadata.
        title: Its name for people; ``name`` if empty.
        main: The scores that findings rest on: what runs are compared and ranked by; all headline scores if empty.
        derived: Main scores that are functions of other main ones: pages show them, ``compare`` takes them when asked.
        unanswered: The score that is the share of documents without an answer, 0 to 1; empty where a model always
            answers. Reports warn of a run in which it is large, and gates refuse it.
        knowledge: The score that tells whether a model understands the items, and what it is by guessing; reports say
            so in front of the other scores where a model does no better. ``None`` where none does.
        options: ``--metadata`` keys that its tasks understand, each with its role, mostly ``""``: :data:`REQUIRED`,
            without which its tasks can't be run, such as a file of the user's (they are in no suite); :data:`DETAIL`,
            which adds the full breakdown of the scores to a run's own table; :data:`DATA`, which replaces the pinned
            data, so that these aren't fetched.
        place: Where it stands in listings: lower first, alike ones by name.
        variants: Other sets of scores over the same kind of documents, each with a ``name`` of its own. They share this
            benchmark's section in a report.
        harness_tasks: Tasks of the harness that it describes but doesn't own, each with the metadata that a YAML of its
            own would have (``language``, ``measures``, ``asks``). Their scores come from the sample log.
        samples_texts: Whether its scores rest on random samples of texts: ``"never"``, ``"always"``, so that a model
            must sample, or ``"by default"``: the likeliest text will do (``--gen_kwargs do_sample=false``), and one is
            written per document then.
        extensions: What it adds to commands: commands of its own, flags of ``rescore`` for its saved answers, and
            what its tasks can be compared by within a run, beside languages.
    """

    name: str
    title: str = ""
    main: Sequence[str] = ()
    derived: Sequence[str] = ()
    unanswered: str = ""
    knowledge: tuple[str, float] | None = None
    options: Mapping[str, str] = {}
    place: int = 100
    harness_tasks: Mapping[str, Mapping[str, Any]] = {}
    samples_texts: Literal["never", "always", "by default"] = "never"
    extensions: Sequence[Extension] = ()

    def __init__(self, variants: Sequence[Benchmark] = ()) -> None:
        """A benchmark with other sets of scores over its documents."""
        self.variants = variants

    # ------------------------------------------------------------------ documents and answers

    @abstractmethod
    def record(self, doc: Document, answers: Sequence[Any]) -> Record:
        """What the scores need to know of a document and the model's answers to its requests.

        Args:
            doc: The document.
            answers: One (filtered) answer a request: ``(log-likelihood, is greedy)``, a text, or what a question of
                the benchmark's own is answered with.

        Raises:
            BiasError: The answers don't belong to the document.
        """

    def key(self, doc: Document) -> tuple[str, ...]:
        """What makes a document the same item in another run, in another language or under another instruction.

        The default is its field ``id``.
        """
        return (str(doc["id"]),)

    def asking(self, doc: Document) -> Asking:
        """How a document is asked beyond what its task's YAML says.

        Such as by questions that each model family answers in its own way; the default is the harness's requests.
        """
        return Asking()

    def provenance(self, docs: Sequence[Document]) -> dict[str, Any]:
        """What a result file says about how the scores of these documents came about, beside their metadata."""
        return {}

    def size(self, metadata: Mapping[str, Any]) -> Size:
        """How many documents a task has, and how many requests each makes, from the metadata of its YAML alone.

        The default is the metadata's ``n_items``, and that nothing else is known.
        """
        return Size(metadata.get("n_items"))

    def check_options(self, metadata: Mapping[str, Any]) -> None:
        """Refuse values of :attr:`options` before a task is built, which takes the harness's import.

        The default leaves that to the function that makes the documents.

        Args:
            metadata: Of a task's YAML, with what ``--metadata`` changes in it.

        Raises:
            BiasError: The first value that can't be.
        """
        return None

    def read_answer(self, raw: Any) -> Any:
        """An answer from a sample log, in which the harness has written every number as text.

        The default is a tuple of numbers, or a text, as the model gave them.

        Raises:
            ValueError: It is no answer.
        """
        return (
            tuple(_number(str(part)) for part in raw)
            if isinstance(raw, list)
            else str(raw)
        )

    @property
    def planting(self) -> Planting | None:
        """What models without weights answer: how a bias of known size is planted, for ``bias-dial``, and random texts.

        A plain attribute will do. ``None``, the default: ``bias-dial`` refuses the benchmark, and ``bias-chance``
        writes one of a document's ``choices``, or a letter.
        """
        return None

    # ------------------------------------------------------------------ scores

    @abstractmethod
    def scores(
        self, docs: Sequence[Document] = (), detailed: bool = False
    ) -> list[Score]:
        """The scores of a task with these documents (or records); without any, all that have a name without them.

        Args:
            docs: Documents or records.
            detailed: Whether the full breakdown is wanted, where there is one.
        """

    # ------------------------------------------------------------------ what people read

    @cached_property
    def card(self) -> Card | None:
        """What readers of a page must know: ``data/card.yaml`` in its folder, by default.

        ``None`` where nothing was written, and where that can't be read, which is a fault. A plain attribute will do.
        """
        file = self.folder / "data" / "card.yaml"
        try:
            return (
                Card(**parse_yaml(file.read_text(encoding="utf-8"), str(file)))
                if file.is_file()
                else None
            )
        except (BiasError, OSError, TypeError, UnicodeError) as error:
            fault(
                f"the benchmark {self.name}: its card in {file} is left out ({kind_of(error)})"
            )
            return None

    def facets(self, doc: Document) -> Mapping[str, str]:
        """What readers pick a document's item by, such as its group, template or target; by default nothing."""
        return {}

    def score_label(self, score: str) -> str:
        """What people call a score, for example "women in female-dominated jobs"; by default its name in words."""
        return score.replace("_", " ").replace("/", ", ")

    def sentences(self, task: TaskRun, beside_tables: bool = False) -> list[str]:
        """What a task's scores say; where it is nothing, as by default, pages have a plain line per main score.

        Args:
            task: The task.
            beside_tables: Whether the output has tables of its own, so that none is needed here.

        Raises:
            KeyError: A score that is spoken of is missing.
        """
        return []

    def figures(self, tasks: Sequence[ReportTask]) -> list[Part]:
        """Figures and tables of its section in a page, beside those that every benchmark has."""
        return []

    def cautions(self, task: TaskRun) -> Iterable[str | Remark]:
        """What readers must know before they believe a task's scores, found in these.

        A ``Remark("low_coverage", text)`` says that the scores describe too little of what the model would answer:
        gates refuse the run then. Chance level and unanswered documents are found without it.
        """
        return ()

    def withheld(self, task: TaskRun) -> str:
        """Why a task's scores must not be shown; empty if they may."""
        return ""

    def published(self) -> Iterable[Published]:
        """The scores that papers print, by task and model."""
        return ()

    # ------------------------------------------------------------------ files

    def readers(self) -> Sequence[Reader]:
        """Files made elsewhere that ``rescore`` can read."""
        return ()

    @property
    def folder(self) -> Path:
        """Where its YAMLs lie, and ``sources.json`` where its data are pinned: beside its module."""
        return Path(str(sys.modules[type(self).__module__].__file__)).parent


def options_for(benchmark: Benchmark, role: str) -> list[str]:
    """The options that have a role."""
    return [option for option, own in benchmark.options.items() if own == role]


def repeats(benchmark: Benchmark, metadata: Mapping[str, Any]) -> int | None:
    """The samples per prompt that a task's metadata asks for; ``None`` where that is no option, or not asked for.

    Raises:
        BiasError: It is no positive whole number.
    """
    if "repeats" not in benchmark.options or "repeats" not in metadata:
        return None
    value = metadata["repeats"]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BiasError(
            f"--metadata repeats={value!r}: must be a whole number of 1 or more"
        )
    return value


def detailed(benchmark: Benchmark, metadata: Mapping[str, Any]) -> bool:
    """Whether a task's metadata asks for the full breakdown.

    Raises:
        BiasError: The key holds neither true nor false.
    """
    for option in options_for(benchmark, DETAIL):
        value = metadata.get(option, False)
        if not isinstance(value, bool):
            raise BiasError(f"--metadata {option}={value!r}: must be true or false")
        return value
    return False


def _number(text: str) -> bool | int | float:
    """A number of a sample log.

    >>> _number("-1.5"), _number("False"), _number("3")
    (-1.5, False, 3)
    """
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.lstrip("-").isdigit() else float(text)
