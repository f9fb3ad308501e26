"""What a benchmark is to the rest of the package: one object with everything that is particular to it.

A benchmark is a class of its own, derived from :class:`Benchmark`, whose one instance is called ``BENCHMARK`` and lies
in the module ``benchmark`` of the benchmark's package. The rest of the package asks that object and knows no benchmark
by name. ``docs/add-a-benchmark.md`` goes from an empty folder to a number in the report.

Importing this module, and the ``benchmark`` modules, costs milliseconds: what needs numpy or more is imported inside
the methods.
"""

from __future__ import annotations

import pkgutil
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.errors import BiasError, did_you_mean, fault, kind_of
from lm_eval_bias.core.files import parse_yaml

if TYPE_CHECKING:
    from lm_eval_bias.core.questions import Question
    from lm_eval_bias.core.run_data import Published, TaskRun
    from lm_eval_bias.core.synthetic_bias import SyntheticBias
    from lm_eval_bias.core.verdicts import Diagnostic
    from lm_eval_bias.custom_metrics.score import Answers, Record, Score

Document = Mapping[str, Any]
Documents = Sequence[Document]
ItemKey = tuple[str, ...]  # what makes a document the same item in another run
Split = Callable[["Record"], Mapping[str, "Record"]]
# roles of options
REQUIRED = "required"
DATA = "data"
SAMPLES = "samples"
SAMPLES_BY_DEFAULT = "samples by default"


class Lazy:
    """A function named by ``module:function``, whose module is imported when it is first called."""

    def __init__(self, name: str) -> None:
        """Store the address of the function."""
        self.name = name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Import the function and call it."""
        return pkgutil.resolve_name(self.name)(*arguments, **named)


class Card(NamedTuple):
    """A benchmark's card: what readers of its scores must know.

    What isn't known says so in its text; an empty text means that nothing was written.

    Attributes:
        measures: Its purpose: what its scores say.
        cannot: What they don't say.
        uncertainty: What its intervals rest on.
        differs: Where this implementation departs from the paper.
        paper: Citation.
        link: Where the paper is; empty if it has no stable address.
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
    """The requests of a document, where its task's YAML doesn't define them.

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
        [Documents, Sequence[Answers], str],
        tuple[Documents, Sequence[Answers]],
    ]


class Command(NamedTuple):
    """A command of ``lm-eval-bias``.

    Attributes:
        name: As it is typed, behind the benchmark's name where a benchmark brings it: ``stereoset translate``.
        help: What it does, in one line.
        function: Where its function stands (``package.module:function``), whose parameters are its arguments and flags,
            and whose docstring is their help (:mod:`lm_eval_bias.cli.signatures`); returns an exit status or ``None``.
    """

    name: str
    help: str
    function: str


class Condition(NamedTuple):
    """A condition by which a model's tasks can be compared: ``compare --by NAME``.

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


class SavedFiles(NamedTuple):
    """Files made elsewhere that ``rescore`` can read.

    Attributes:
        reader: Dotted name of a :class:`lm_eval_bias.core.answers.Reader`: ``module:NAME``.
    """

    reader: str


Extension = Command | Rewriting | Condition | SavedFiles


# the option of lettered tasks whose model writes: a server is sent the form of an answer
STRUCTURED = "structured"


class Options(NamedTuple):
    """The ``--metadata`` keys that a benchmark's tasks understand.

    Attributes:
        roles: Each key with its role, mostly ``""``: :data:`REQUIRED`, without which its tasks can't be run, such as a
            file of the user's (they are in no suite); :data:`DATA`, which replaces the pinned data, so that these
            aren't fetched; :data:`SAMPLES` or :data:`SAMPLES_BY_DEFAULT`, how many random texts of each prompt the
            scores rest on.
        check: Refuses values before a task is built, which takes the harness's import. It gets the metadata of a
            task's YAML, with what ``--metadata`` changes in it, and raises a BiasError. By default that is left to the
            function that makes the documents.
    """

    roles: Mapping[str, str] = MappingProxyType({})
    check: Callable[[Facts], object] = lambda metadata: None


class Presentation(NamedTuple):
    """A benchmark's additions to reports, boards and comparisons.

    Attributes:
        diagnostics: What readers must know before they believe a task's scores, found in these. A
            ``Diagnostic("low_coverage", text)`` says that the scores describe too little of what the model would
            answer: nothing is called near neutral then. Chance level and unanswered documents are found without it.
        withheld: Why a task's scores must not be shown; empty if they may.
        shares: Scores that one figure shows as stacked shares: their names, by what each row is called.
        beside_main: Further scores for tables of the main ones, and for comparisons by a condition.
        published: The scores that papers print, by task and model.
        across_languages: The scores that its languages are compared by, the primary one first; the main ones if empty.
    """

    diagnostics: Callable[[TaskRun], Iterable[str | Diagnostic]] = lambda task: ()
    withheld: Callable[[TaskRun], str] = lambda task: ""
    shares: Callable[[], Mapping[str, Sequence[str]]] = dict
    published: Callable[[], Iterable[Published]] = lambda: ()
    beside_main: Sequence[str] = ()
    across_languages: Sequence[str] = ()


def without_language(task: str, language: str) -> str:
    """Write a task's name with ``*`` in place of its language; empty for one without it.

    >>> without_language("stereoset_de_inter", "de"), without_language("ca_bbq_age", "ca"), without_language("a", "en")
    ('stereoset_*_inter', '*_bbq_age', '')
    """
    code = re.escape(language)
    stem = re.sub(rf"^{code}|(?<=_){code}(?=_|$)", "*", task, count=1)
    return stem if language and stem != task else ""


class Benchmark(ABC):
    """A benchmark: its documents' records, scores, options and presentation.

    ``name``, :meth:`record` and :meth:`scores` are what defines it; everything else has a default that can be seen: one
    without a card says that it has none.

    A score that is called ``unanswered`` is the share of documents without an answer, 0 to 1: reports warn of a run in
    which it is large, and gates refuse it. Where there is none, a model always answers.

    Attributes:
        name: The ``benchmark`` field of its documents and of its YAMLs' metadata.
        earlier_names: What it was called in earlier releases, as their results say.
        title: Its name for people; ``name`` if empty.
        place: Where it stands in listings: lower first, alike ones by name.
        main: The scores that findings rest on: what runs are compared and ranked by; all headline scores if empty.
        primary: By patterns of tasks, the scores that ``compare`` tests as the first family.
        options: The ``--metadata`` keys that its tasks understand.
        clusters: What items are independent between, in the plural, such as ``templates``. A YAML's ``n_clusters`` says
            how many a task has.
        facets: What items differ in, by name, such as ``template``: the field of a document that tells it, or a
            function that splits a record of several texts by what these differ in. ``rescore --by`` takes them.
        halves: Endings of the names of tasks that are parts of a larger one: where each was run apart, ``rescore`` also
            scores all of their items.
        variants: Other sets of scores over the same kind of documents, each with a ``name`` of its own. They share this
            benchmark's section in a report.
        family: The benchmark that a variant belongs to; another one itself.
        extensions: What it adds to commands: commands of its own, flags of ``rescore`` for its saved answers, what
            a model's tasks can be compared by, beside languages, tasks of the harness and files made elsewhere.
    """

    name: str
    title: str = ""
    place: int = 100
    earlier_names: Sequence[str] = ()
    main: Sequence[str] = ()
    primary: Mapping[str, Sequence[str]] = MappingProxyType({})
    options: Options = Options()
    clusters: str = "clusters"
    facets: Mapping[str, str | Split] = MappingProxyType({})
    halves: Sequence[str] = ()
    extensions: Sequence[Extension] = ()

    def __init__(self, variants: Sequence[Benchmark] = ()) -> None:
        """Make a benchmark with other sets of scores over its documents."""
        self.variants = variants
        self.family: Benchmark = self
        for variant in variants:
            variant.family = self

    @property
    def heading(self) -> str:
        """Its title, or its family's; without one its name."""
        return self.title or self.family.title or self.name

    @abstractmethod
    def record(self, doc: Document, answers: Answers) -> Record:
        """Return the record of a document and the model's answers, from which scores are computed.

        Args:
            doc: The document.
            answers: One (filtered) answer a request: ``(log-likelihood, is greedy)``, a text, or what a question of
                the benchmark's own is answered with.

        Raises:
            BiasError: The answers don't belong to the document.
        """

    @abstractmethod
    def scores(self, docs: Documents = ()) -> list[Score]:
        """Return the scores for these documents (or records). Without any, those whose names don't depend on data.

        Args:
            docs: Documents or records.
        """

    @property
    def synthetic_bias(self) -> SyntheticBias | None:
        """The answers of ``bias-dial`` (a synthetic bias of known size) and the random texts of ``bias-chance``.

        ``None``: ``bias-dial`` refuses the benchmark, and ``bias-chance`` writes one of a document's ``choices``, or a
        letter.
        """
        return None

    @property
    def presentation(self) -> Presentation:
        """Additions to reports, boards and comparisons."""
        return Presentation()

    def key(self, doc: Document) -> ItemKey:
        """Return the key that identifies an item across runs, languages and instructions.

        The default is its field ``id``.
        """
        return (str(doc["id"]),)

    def asking(self, doc: Document) -> Asking:
        """Return how a document is asked beyond what its task's YAML says.

        Such as by questions that each model family answers in its own way; the default is the harness's requests.
        """
        return Asking()

    def provenance(self, docs: Documents) -> Data:
        """Return further metadata for the results file about how the scores of these documents were computed."""
        return {}

    def size(self, metadata: Facts) -> Size:
        """Return how many documents a task has, and how many requests each makes, from its YAML's metadata alone.

        The default is the metadata's ``n_items``, and that nothing else is known.
        """
        return Size(metadata.get("n_items"))


class UnknownBenchmark(Benchmark):
    """A stand-in for a benchmark that this version doesn't know; it has no options, main scores or labels."""

    def __init__(self, name: str) -> None:
        """Stand for the benchmark of that name."""
        super().__init__()
        self.name = name

    def record(self, doc: Document, answers: Answers) -> Record:
        """Refuse: its answers can't be read."""
        raise BiasError(f"no benchmark named {self.name!r} is known to this version")

    def scores(self, docs: Documents = ()) -> list[Score]:
        """Refuse: its scores can't be computed."""
        raise BiasError(f"no benchmark named {self.name!r} is known to this version")


def folder_of(benchmark: Benchmark) -> Path:
    """Return the folder of a benchmark's YAMLs and of ``sources.json``, which pins its data."""
    return Path(str(sys.modules[type(benchmark).__module__].__file__)).parent


def read_card(benchmark: Benchmark) -> Card | None:
    """Read ``data/card.yaml`` in the benchmark's folder; ``None`` where there is none.

    Raises:
        BiasError: It can't be read, or has a key that no card has, or lacks one.
    """
    file = folder_of(benchmark) / "data" / "card.yaml"
    if not file.is_file():
        return None
    try:
        content = parse_yaml(file.read_text(encoding="utf-8"), str(file))
        for key in content:
            if key not in Card._fields:
                known = ", ".join(Card._fields)
                hint = did_you_mean(key, Card._fields)
                raise BiasError(
                    f"{file}: the key {key!r} is unknown.{hint} Known: {known}"
                )
        return Card(**content)
    except (OSError, TypeError, UnicodeError) as error:
        raise BiasError(f"{file}: {kind_of(error)}") from error


@cache
def card_of(benchmark: Benchmark) -> Card | None:
    """Return the benchmark's card, from ``data/card.yaml`` in its folder.

    ``None`` where nothing was written, and where that can't be read, which is a fault.
    """
    try:
        return read_card(benchmark)
    except BiasError as error:
        fault(f"the benchmark {benchmark.name}: its card is left out ({error})")
        return None


LANGUAGE = "language"  # a facet of every benchmark: its tasks differ in it


def facet_names(benchmark: Benchmark) -> list[str]:
    """List the facets of a benchmark's items."""
    return [*benchmark.facets, LANGUAGE]


def facets_of(benchmark: Benchmark, doc: Document) -> dict[str, str]:
    """Return the facets that a document states itself."""
    return {
        name: str(doc[field])
        for name, field in benchmark.facets.items()
        if isinstance(field, str) and field in doc
    }


def samples_texts(benchmark: Benchmark) -> str:
    """Return whether a benchmark's scores need sampled texts.

    :data:`SAMPLES`: always, so that a model must sample. :data:`SAMPLES_BY_DEFAULT`: the likeliest text will do
    (``--gen_kwargs do_sample=false``), and one is written per document then. Empty: never.
    """
    roles = set(benchmark.options.roles.values())
    return next((r for r in (SAMPLES, SAMPLES_BY_DEFAULT) if r in roles), "")


def options_for(benchmark: Benchmark, role: str) -> list[str]:
    """Return the options that have a role."""
    return [name for name, its in benchmark.options.roles.items() if its == role]


def repeats(benchmark: Benchmark, metadata: Facts) -> int | None:
    """Return the samples per prompt that a task's metadata asks for; ``None`` where it asks for none.

    Raises:
        BiasError: It is no positive whole number.
    """
    if not samples_texts(benchmark) or "repeats" not in metadata:
        return None
    value = metadata["repeats"]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BiasError(
            f"--metadata repeats={value!r}: must be a whole number of 1 or more"
        )
    return value
