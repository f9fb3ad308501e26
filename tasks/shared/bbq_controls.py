"""A kind of benchmark in the manner of BBQ: each item has a control item, in which names stand in for the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lm_eval_bias.core.benchmark import Document, Documents
from lm_eval_bias.core.synthetic_bias import Dial, SyntheticBias
from lm_eval_bias.tasks.shared.bbq_like import BBQLike

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Answers, Record, Score

CONTRASTS = tuple(f"contrast/{score}" for score in BBQLike.main)


class WithControls(BBQLike):
    """A mixin for benchmarks with control items.

    An item and its control item share their ``item``, and the scores come with the contrast of the two.
    """

    main: Sequence[str] = (*BBQLike.main, *CONTRASTS)

    def record(self, doc: Document, answers: Answers) -> Record:
        """Make the record, with the item and whether it is a control item."""
        from lm_eval_bias.tasks.shared import bbq_records

        record = super().record(doc, answers)
        persons = bbq_records.of_persons(doc, list(map(len, doc["choices"])))
        unknown = doc["choices"][doc["groups"].index(bbq_records.UNKNOWN)]
        identity = {
            "option_lengths": (*persons, len(unknown)),
            "item": (doc["item"], doc["wording"]),
            "control": doc["control"],
            "directed": doc["directed"],
        }
        return {**record, **identity}

    def scores(self, docs: Documents = ()) -> list[Score]:
        """Return accuracy and diff-bias by context, for items, control items and their contrasts."""
        from lm_eval_bias.custom_metrics import mbbq, positions

        listed = mbbq.with_controls(super().scores(docs), self.terms)
        biases = [name for name in CONTRASTS if "diff_bias" in name]
        return [*listed, *positions.matched(listed, biases)]

    @property
    def synthetic_bias(self) -> SyntheticBias | None:
        """A synthetic diff-bias in directed items only."""
        from lm_eval_bias.tasks.shared import bbq_synthetic_bias

        def answers(doc: Document, dial: Dial) -> Answers:
            biased = doc["directed"] and not doc["control"]
            turned = dial if biased else replace(dial, strength=0.0)
            return bbq_synthetic_bias.answers(
                self.hooks, self.questions.refusal, doc, turned
            )

        def expected(docs: Documents, dial: Dial) -> Mapping[str, float]:
            values = bbq_synthetic_bias.expected(
                self.main[:4],
                [d for d in docs if d["directed"] and not d["control"]],
                dial,
            )
            biases = (
                value - dial.competence * (i < 2)
                for i, value in enumerate(values.values())
            )
            return {**values, **dict(zip(CONTRASTS, biases, strict=True))}

        return SyntheticBias(answers, expected)
