"""What most benchmarks share: items named by fields, a size that YAMLs tell, diagnostics in a module of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lm_eval_bias.core import Facts, run_data
from lm_eval_bias.core.benchmark import (
    Benchmark,
    Document,
    ItemKey,
    Lazy,
    Presentation,
    Size,
)
from lm_eval_bias.core.synthetic_bias import SyntheticBias

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import TaskRun
    from lm_eval_bias.core.verdicts import Diagnostic


Diagnostics = Callable[["TaskRun"], "Iterable[str | Diagnostic]"]


def presented(name: str, diagnostics: Diagnostics = lambda task: ()) -> Presentation:
    """Make a presentation with diagnostics and the paper's published scores (``results/published``)."""
    return Presentation(
        diagnostics=diagnostics, published=partial(run_data.published, name)
    )


def synthetic(module: str, *more: str) -> SyntheticBias:
    """Make a synthetic bias of a module's ``answers`` and ``expected``, and perhaps ``random_texts``."""
    return SyntheticBias(
        *(Lazy(f"{module}:{name}") for name in ("answers", "expected", *more))
    )


class SizedBenchmark(Benchmark):
    """A benchmark whose items are identified by fields and counted in its YAMLs.

    Attributes:
        identity: The fields of a document that make it the same item in another run.
        requests: How many each document makes.
        smallest: The smallest useful ``--limit``; ``None`` where that isn't known.
    """

    identity: Sequence[str] = ("id",)
    requests: int | None = None
    smallest: int | None = None

    def key(self, doc: Document) -> ItemKey:
        """Return the fields of its identity; empty texts where they are absent."""
        return tuple(str(doc.get(field, "")) for field in self.identity)

    def size(self, metadata: Facts) -> Size:
        """Return the number of documents from the task's YAML."""
        return Size(metadata.get("n_items"), self.requests, self.smallest)
