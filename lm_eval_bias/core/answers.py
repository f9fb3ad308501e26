"""Saved answers: the documents and answers of a task in a file, and what reads such a file."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import writable
from lm_eval_bias.custom_metrics.score import Answers, Record

# what a written answer is read as where it gives none
REFUSED = "[refused]"
EMPTY = "[empty]"
ENDLESS = "[unfinished thoughts]"
SEVERAL = "[several answers]"
UNPARSED = "[unparsed]"
NOT_SINGLE = "[no single answer]"
UNANSWERED = (REFUSED, EMPTY, ENDLESS, SEVERAL, UNPARSED, NOT_SINGLE)
# how a text ended, by the words of servers: while the model still wrote, by a filter or a refusal, or with an error
CUT, BLOCKED, FAILED = ("cut", "blocked", "failed")
_ENDS = {
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), CUT),
    **dict.fromkeys(
        ("content_filter", "prohibited_content", "refusal", "safety"), BLOCKED
    ),
    "error": FAILED,
}
# characters of an answer that are looked at: of a longer one the first and the last half
LONGEST_READ = 8_000
HOW_TO_SAVE = "lm-eval-bias run saves them, plain lm_eval with --log_samples"
_BEHIND = "\x1e"  # between a text and why it ended, on its way from a model and in the file of --use_cache


class Text(str):
    """A generated text with its finish reason.

    Attributes:
        finish: In the words of what wrote it, such as ``stop`` or ``length``; empty if it is unknown.
    """

    finish: str

    def __new__(cls, text: str, finish: str = "") -> Text:
        """Make a text."""
        made = super().__new__(cls, writable(text))
        made.finish = finish
        return made


def with_finish(text: str, finish: str) -> str:
    """Append the finish reason to a text, so that both are stored as one; :func:`apart` splits them.

    >>> apart(with_finish("B", "length")).finish, apart("B").finish
    ('length', '')
    """
    return f"{text}{_BEHIND}{finish}" if finish else text


def apart(text: str) -> Text:
    """Split a text and its finish reason, joined by :func:`with_finish`."""
    written, mark, finish = text.rpartition(_BEHIND)
    return Text(written, finish) if mark else Text(text)


def finish_of(text: object) -> str:
    """Return a text's finish reason; empty if unknown."""
    return getattr(text, "finish", "")


def ended(text: object) -> str:
    """Return the kind of an abnormal end, :data:`CUT`, :data:`BLOCKED` or :data:`FAILED`; empty for others."""
    return _ENDS.get(finish_of(text).lower(), "")


def reading(text: str, read: Callable[[str, bool], str]) -> str:
    """Extract the answer of a text; a truncated text counts only if it states one, an empty blocked one is a refusal.

    Args:
        text: What the model wrote, without its thoughts.
        read: Reads it, and is told whether it was cut.

    >>> reading(Text("", "content_filter"), lambda text, cut: "B"), reading(Text("", "stop"), lambda text, cut: "B")
    ('[refused]', 'B')
    """
    end = ended(text)
    is_bare = not text.strip() or finish_of(text) == "refusal"
    if end == BLOCKED and is_bare:
        return REFUSED
    is_cut = end in (CUT, BLOCKED)
    found = read(str(text), is_cut)
    return ENDLESS if is_cut and found in UNANSWERED else found


def endings(prompts: Iterable[tuple[Sequence[str], object]]) -> dict[str, int]:
    """Count how the texts of a task ended.

    Args:
        prompts: Of each, its texts and its filtered answer (:func:`written`).

    Returns:
        ``texts``; how many were cut, blocked or failed; ``unfinished``, the cut ones that say no answer; ``long``,
        those of which only the beginning and the end may be read; and where all draws of every prompt are one text,
        ``alike``, how many these are.
    """
    counts = Counter[str]()
    draws = set()
    for texts, answer in prompts:
        for text, (_, read) in zip(texts, written([texts], [answer]), strict=False):
            counts[ended(text)] += 1
            counts["unfinished"] += ended(text) == CUT and read in UNANSWERED
            counts["long"] += len(str(text)) > LONGEST_READ
        counts["texts"] += len(texts)
        draws.add((len(texts), len(set(texts))))
    numbers, different = zip(*draws, strict=True)
    if max(different) == 1 < min(numbers):
        counts["alike"] = max(numbers)
    del counts[""]
    return dict(counts)


def finish_reasons(texts: Sequence[Sequence[object]]) -> list[list[str]]:
    """Return the finish reasons of the texts of some requests; empty if none is known."""
    reasons = [list(map(finish_of, of_one)) for of_one in texts]
    return reasons if any(map(any, reasons)) else []


def texts_of(logged: Facts) -> list[list[Any]]:
    """Return the texts of each request of a logged sample, with finish reasons where the log has them."""
    reasons = logged.get("finish_reasons")
    if not reasons:
        return list(logged["resps"])
    pairs = zip(logged["resps"], reasons, strict=True)
    return [list(map(Text, *pair)) for pair in pairs]


def written(texts: Any, answers: Answers) -> list[tuple[str, str]]:
    """Return a document's generated texts, each with its extracted answer; empty without texts.

    Args:
        texts: As logged: a list of texts per request.
        answers: The filtered answer of each request: what its first text was read as, or for every text a list that
            ends with that.

    >>> written([["Sorry!"]], ["[refused]"]), written([["He.", "She."]], [[["He", "male"], ["She", "female"]]])
    ([('Sorry!', '[refused]')], [('He.', 'male'), ('She.', 'female')])
    """
    if not texts or len(texts) != 1 or len(answers) != 1:
        return []
    read = [answers[0]]
    if not isinstance(answers[0], str):
        read = [row[-1] for row in answers[0] if isinstance(row, list)]
    return [
        (str(text or ""), str(reading))
        for text, reading in zip(texts[0], read, strict=False)
    ]


def requests_of(logged: Facts) -> list[list[Any]]:
    """Return the arguments of each request of a logged sample.

    >>> requests_of({"arguments": {"gen_args_0": {"arg_0": "A vet?", "arg_1": " He"}}})
    [['A vet?', ' He']]
    """
    return [list(given.values()) for given in logged.get("arguments", {}).values()]


class NotOurs(BiasError):
    """Raised for a sample log of a task that this package doesn't have."""


class NotConcerned(NotOurs):
    """Raised for saved answers of a benchmark that the flags don't concern."""


@dataclass(frozen=True)
class SavedTask:
    """One task under one filter in a file of saved answers.

    Attributes:
        path: The file.
        task: Task name.
        filter: The harness's filter name.
        definition: Its :class:`~lm_eval_bias.core.benchmark.Benchmark` or variant.
    """

    path: Path
    task: str
    filter: str
    definition: (
        Any  # a benchmark's pages show answers: naming its type would be a circle
    )

    @property
    def benchmark(self) -> str:
        """The name of its benchmark or variant."""
        return self.definition.name


class SavedSample(NamedTuple):
    """A saved document.

    Attributes:
        saved_task: What it belongs to.
        doc: The document.
        answers: Its requests' filtered answers.
        logged: All that a sample log has of it.
    """

    saved_task: SavedTask
    doc: Data
    answers: Answers
    logged: Facts = {}

    @property
    def written(self) -> list[tuple[str, str]]:
        """The generated texts, each with its extracted answer."""
        return written(self.logged.get("resps"), self.answers)


class SavedRecord(NamedTuple):
    """A benchmark's record of a saved answer, with the identity of its document but without texts.

    Attributes:
        saved_task: What it belongs to.
        number: The document's number in its task.
        key: What names the document, in another run, too.
        doc_hash: Of the document, without the fields that conditions are named by.
        facets: What scores can be broken down by.
        record: The benchmark's record.
    """

    saved_task: SavedTask
    number: int
    key: tuple[str, ...]
    doc_hash: str
    facets: Mapping[str, str]
    record: Record


SavedSamples = Iterator[SavedSample]


class OtherVersion(BiasError):
    """Raised for saved answers that this version can't read: logged by another version, or damaged."""


# what reading a document raises whose fields are gone or something else
DAMAGE = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    OSError,
)


@contextlib.contextmanager
def errors_in(part: SavedTask, at: str) -> Iterator[None]:
    """Prefix errors with the file and the place of their cause."""
    try:
        with damage_in(part, at):
            yield
    except OtherVersion:
        raise
    except BiasError as error:
        raise BiasError(f"{part.path}: {error}") from error


@contextlib.contextmanager
def damage_in(part: SavedTask, at: str) -> Iterator[None]:
    """Turn errors of damaged answers into one line with the file and the place."""
    try:
        yield
    except BiasError:
        raise
    except DAMAGE as error:
        problem = f"no field {error}" if isinstance(error, KeyError) else str(error)
        raise OtherVersion(
            f"{part.path}: {at}: {problem}: damaged, or logged by another version of {part.benchmark}"
        ) from error


@dataclass(frozen=True)
class Reader:
    """A file format.

    Attributes:
        name: For messages.
        matches: Whether a path looks like this format, by its name.
        samples: The file's documents and answers one by one, given the language where one was named; records where it
            has no texts.
    """

    name: str
    matches: Callable[[Path], bool]
    samples: Callable[[Path, str | None], SavedSamples | Iterator[SavedRecord]]
