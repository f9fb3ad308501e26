"""Saved answers: the documents and answers of a task in a file, and what reads such a file."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.errors import BiasError

# what a written answer is read as where it gives none
REFUSED = "[refused]"
EMPTY = "[empty]"
ENDLESS = "[unfinished thoughts]"
SEVERAL = "[several answers]"
UNREADABLE = "[unreadable]"
NOT_SINGLE = "[no single answer]"
UNANSWERED = (REFUSED, EMPTY, ENDLESS, SEVERAL, UNREADABLE, NOT_SINGLE)
# why texts end, in servers' words: the model was still writing; a filter, or the model itself, refused; none came
CUT = {"length", "max_tokens", "max_output_tokens", "model_length"}
BLOCKED = {"blocklist", "content_filter", "prohibited_content", "refusal", "safety"}
FAILED = "error"
_BEHIND = "\x1e"  # between a text and why it ended, on its way from a model and in the file of --use_cache
_WHOLE = re.compile(r".*[.!?。\n]", re.DOTALL)  # the sentences that end


def with_finish(text: str, finish: str) -> str:
    """Put behind a text why it ended, so that both are kept as one; :meth:`Text.apart` takes them apart."""
    return f"{text}{_BEHIND}{finish}" if finish else text


class Text(str):
    """A text that a model wrote, which knows why it ended.

    Attributes:
        finish: In the words of what wrote it, such as ``stop`` or ``length``; empty where that isn't known.
    """

    finish: str

    def __new__(cls, text: str, finish: str = "") -> Text:
        """Make a text."""
        made = super().__new__(cls, text)
        made.finish = finish
        return made

    @classmethod
    def apart(cls, text: str) -> Text:
        """Take apart what :func:`with_finish` joined.

        >>> text = Text.apart(with_finish("B", "length"))
        >>> text, text.finish, Text.apart("B").finish
        ('B', 'length', '')
        """
        written, _, finish = text.rpartition(_BEHIND)
        return cls(written, finish) if _BEHIND in text else cls(text)


def filtered(
    steps: Iterable[Any], answers: Sequence[Any], docs: Sequence[Any]
) -> list[Any]:
    """Apply filters one after another; where one changes texts, these still know why they ended.

    Args:
        steps: The filters.
        answers: Of each document, its texts.
        docs: The documents.
    """
    for step in steps:
        changed = list(step.apply(answers, docs))
        answers = [_as_ended(*pair) for pair in zip(changed, answers, strict=True)]
    return list(answers)


def _as_ended(changed: Any, texts: Sequence[Any]) -> Any:
    """Return texts that a filter has changed with why they ended; anything else as it is."""
    are_texts = isinstance(changed, list) and all(isinstance(t, str) for t in changed)
    if not are_texts or len(changed) != len(texts):
        return changed
    return [
        Text(text, getattr(before, "finish", ""))
        for text, before in zip(changed, texts, strict=True)
    ]


def finish_of(text: Any) -> str:
    """Return why a text ended, in small letters; empty where that isn't known."""
    return str(getattr(text, "finish", "")).lower()


def reading(text: str, read: Callable[[str], str], is_running: bool = False) -> str:
    r"""Read a text: one that was cut only if it states an answer, in sentences that end; a blocked one is a refusal.

    Args:
        text: What the model wrote, without its thoughts.
        read: Reads it.
        is_running: Whether a text says its answer by all of its words, so that a part says it, too.

    >>> reading(Text("Answer: B.\\nThe op", "length"), str.strip), reading(Text("", "content_filter"), str.strip)
    ('Answer: B.', '[refused]')
    """
    finish = finish_of(text)
    is_blocked = finish in BLOCKED
    if finish == "refusal" or (is_blocked and not text.strip()):
        return REFUSED
    if not is_blocked and finish not in CUT:
        return read(text)
    whole = _WHOLE.match(text)
    found = read(text if is_running else whole[0] if whole else "")
    return ENDLESS if found in UNANSWERED else found


def finish_reasons(texts: Sequence[Sequence[Any]]) -> list[list[str]]:
    """Return why each text of some requests ended; nothing where no text tells it."""
    reasons = [[getattr(text, "finish", "") for text in of_one] for of_one in texts]
    return reasons if any(map(any, reasons)) else []


def texts_of(logged: Facts) -> list[list[Any]]:
    """Return the texts of each request of a logged sample, which know why they ended where the log tells it."""
    texts = logged["resps"]
    reasons = logged.get("finish_reasons")
    if not reasons:
        return list(texts)
    return [list(map(Text, *pair)) for pair in zip(texts, reasons, strict=True)]


def written(texts: Any, answers: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the texts that a model wrote for a document, each with what it was read as; none where it wrote none.

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


def endings(prompts: Iterable[tuple[Sequence[Any], Any]]) -> dict[str, int]:
    """Count how the texts of a task ended.

    Args:
        prompts: Of each, its texts and its filtered answer (:func:`written`).

    Returns:
        ``texts``; ``cut``; ``unfinished``, those of them that say no answer; ``blocked``; ``failed``; and ``alike``,
        where all draws of every prompt are one text, how many these are.
    """
    counts = dict.fromkeys(("texts", "cut", "unfinished", "blocked", "failed"), 0)
    draws = []
    for texts, answer in prompts:
        counts["texts"] += len(texts)
        for text, (_, read) in zip(texts, written([texts], [answer]), strict=False):
            finish = finish_of(text)
            is_cut = finish in CUT
            counts["cut"] += is_cut
            counts["unfinished"] += is_cut and read in UNANSWERED
            counts["blocked"] += finish in BLOCKED
            counts["failed"] += finish == FAILED
        draws.append((len(texts), len(set(texts))))
    sampled = [different for number, different in draws if number > 1]
    if len(sampled) > 1 and set(sampled) == {1}:
        counts["alike"] = max(number for number, _ in draws)
    return counts


def requests_of(logged: Facts) -> list[list[Any]]:
    """Return the arguments of each request of a logged sample.

    >>> requests_of({"arguments": {"gen_args_0": {"arg_0": "A vet?", "arg_1": " He"}}})
    [['A vet?', ' He']]
    """
    return [list(given.values()) for given in logged.get("arguments", {}).values()]


class NotOurs(BiasError):
    """A sample log of a task that this package doesn't have."""


class NotConcerned(NotOurs):
    """Saved answers of a benchmark that nothing was asked about."""


@dataclass(frozen=True)
class SavedPart:
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
        part: What it belongs to.
        doc: The document.
        answers: Its requests' filtered answers.
        logged: All that a sample log has of it.
    """

    part: SavedPart
    doc: Data
    answers: list[Any]
    logged: Facts = {}

    @property
    def written(self) -> list[tuple[str, str]]:
        """The texts that the model wrote, each with what it was read as."""
        return written(self.logged.get("resps"), self.answers)


SavedSamples = Iterator[SavedSample]


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
def errors_in(part: SavedPart, at: str) -> Iterator[None]:
    """Prefix errors with the file and the place they come from."""
    try:
        yield
    except BiasError as error:
        raise BiasError(f"{part.path}: {error}") from error
    except DAMAGE as error:
        problem = f"no field {error}" if isinstance(error, KeyError) else str(error)
        raise BiasError(
            f"{part.path}: {at}: {problem}: damaged, or logged by another version of {part.benchmark}"
        ) from error


@dataclass(frozen=True)
class Reader:
    """A file format.

    Attributes:
        name: For messages.
        matches: Whether a path looks like this format, by its name.
        samples: The file's documents and answers one by one, given the language where one was named.
    """

    name: str
    matches: Callable[[Path], bool]
    samples: Callable[[Path, str | None], SavedSamples]
