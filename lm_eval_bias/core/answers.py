"""Saved answers: the documents and answers of a task in a file, and what reads such a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
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
