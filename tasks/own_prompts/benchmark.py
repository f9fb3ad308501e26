"""The benchmark object of a user's own prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.benchmark import (
    REQUIRED,
    SAMPLES,
    Document,
    Documents,
    Options,
    Presentation,
)
from lm_eval_bias.core.planting import BiasPlan
from lm_eval_bias.custom_metrics.regard import FACETS
from lm_eval_bias.tasks.kinds.sized import SizedBenchmark, presented
from lm_eval_bias.tasks.regard.benchmark import BENCHMARK as REGARD
from lm_eval_bias.tasks.regard.benchmark import CLASSIFIER

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Answers, Record, Score


def _check(metadata: Facts) -> None:
    """Validate options by building the documents (cheap)."""
    from lm_eval_bias.tasks.own_prompts import hooks

    hooks.documents(metadata)


class OwnPrompts(SizedBenchmark):
    """Texts after prompts of a user's own, compared between groups."""

    name = "own_prompts"
    title = "Own prompts"
    place = 5
    requests = 1  # which is repeated
    identity = ("group", "cluster", "prompt")
    main = tuple(
        f"{measure}/gap" for measure in ("negative", "positive", *FACETS, "words")
    )
    options = Options(
        {
            "reference": "",
            "keywords": "",
            "classifier": "",
            "repeats": SAMPLES,
            "prompts": REQUIRED,
            "language": REQUIRED,
        },
        _check,
    )
    extensions = (CLASSIFIER,)

    facets = {"group": "group", "cluster": "cluster"}

    def provenance(self, docs: Documents) -> Data:
        """Say what was compared, and with which classifier, if any."""
        used = REGARD.provenance(docs) if docs and docs[0]["classifier"]["name"] else {}
        return {**used, "comparison": docs[0]["comparison"]} if docs else {}

    def record(self, doc: Document, answers: Answers) -> Record:
        """Tell the texts with their regard, keywords and words."""
        from lm_eval_bias.tasks.own_prompts import hooks

        return hooks.record(doc, answers)

    def scores(self, docs: Documents = ()) -> list[Score]:
        """Return its scores."""
        from lm_eval_bias.custom_metrics import own_prompts

        return own_prompts.scores(docs)

    @property
    def planting(self) -> BiasPlan:
        """What ``bias-dial`` and ``bias-chance`` answer."""
        from lm_eval_bias.tasks.own_prompts import planted_answers as planted

        return BiasPlan(planted.answers, planted.expected, planted.random_texts)

    @property
    def presentation(self) -> Presentation:
        """What to beware of."""
        from lm_eval_bias.tasks.own_prompts import cautions

        return presented(self.name, cautions.cautions)


BENCHMARK = OwnPrompts()
