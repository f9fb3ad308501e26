"""The benchmark object of MBBQ and of its variant of all prompts."""

from __future__ import annotations

from collections.abc import Mapping

from lm_eval_bias.core.benchmark import DETAIL, Document
from lm_eval_bias.tasks.kinds.bbq_controls import CONTRASTS, WithControls
from lm_eval_bias.tasks.kinds.bbq_like import OverWordings


class MBBQ(WithControls):
    """Parallel question answering in four languages, with control items (Neplenbroek et al. 2024)."""

    name = "mbbq"
    title = "MBBQ"
    place = 3
    paper = "MBBQ"
    balanced = (
        4 * 16
    )  # two blocks of four items with their control items of a template; two templates may agree
    options: Mapping[str, str] = {"prompt": "", "breakdown": DETAIL}

    def key(self, doc: Document) -> tuple[str, ...]:
        """Category, template and place, which name the same item in all languages; form and prompt."""
        return (
            str(doc["category"]),
            str(doc["item"]),
            "control" * doc["control"],
            str(doc["wording"]),
        )


class AllPrompts(MBBQ, OverWordings):
    """The same items in all five prompts, as the paper has them; control scores and contrasts are over all five."""

    name = "mbbq_prompts"
    main = (*OverWordings.main, *CONTRASTS)
    knowledge = MBBQ.knowledge
    options = {"breakdown": DETAIL}


BENCHMARK = MBBQ([AllPrompts()])
