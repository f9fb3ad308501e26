"""The benchmark object of MBBQ and of its variant of all prompts."""

from __future__ import annotations

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import STRUCTURED, Document, ItemKey, Options
from lm_eval_bias.tasks.mbbq.wordings import NUMBERS
from lm_eval_bias.tasks.shared.bbq_controls import WithControls
from lm_eval_bias.tasks.shared.bbq_like import (
    Questions,
    keeps_released_order,
)


def _check(metadata: Facts) -> None:
    """Refuse an unknown prompt or order of the options."""
    NUMBERS.chosen(metadata)
    keeps_released_order(metadata)


class MBBQ(WithControls):
    """Parallel question answering in four languages, with control items (Neplenbroek et al. 2024)."""

    name = "mbbq"
    title = "MBBQ"
    place = 3
    questions = Questions(
        # two blocks of four items with their control items of a template; two templates may agree
        balanced=4 * 16,
    )
    facets = {**WithControls.facets, "category": "category", "wording": "wording"}
    options = Options({"prompt": "", "released_order": "", STRUCTURED: ""}, _check)

    hooks_module = "lm_eval_bias.tasks.mbbq.hooks"

    def key(self, doc: Document) -> ItemKey:
        """Return category, template and index, equal in all languages, and form and prompt."""
        return (
            str(doc["category"]),
            str(doc["item"]),
            "control" * doc["control"],
            str(doc["wording"]),
        )


BENCHMARK = MBBQ([MBBQ(all_wordings=True)])
