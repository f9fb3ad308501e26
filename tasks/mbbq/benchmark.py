"""The benchmark object of MBBQ and of its variant of all prompts."""

from __future__ import annotations

from collections.abc import Mapping

from lm_eval_bias.core.benchmark import DETAIL, Document, LeftOut, Sampling
from lm_eval_bias.tasks.kinds import sampling
from lm_eval_bias.tasks.kinds.bbq_controls import CONTRASTS, WithControls
from lm_eval_bias.tasks.kinds.bbq_like import OverWordings

GENDER = tuple(f"mbbq_{language}_gender_identity" for language in ("en", "es", "nl", "tr"))
PARTS = {task: Sampling("blocks", sampling.blocks, 1, 368 if "_es_" in task else 384) for task in GENDER}


class MBBQ(WithControls):
    """Parallel question answering in four languages, with control items (Neplenbroek et al. 2024)."""

    name = "mbbq"
    title = "MBBQ"
    place = 3
    paper = "MBBQ"
    balanced = 4 * 16  # two blocks of four items with their control items of a template; two templates may agree
    options: Mapping[str, str] = {"prompt": "", "breakdown": DETAIL}
    standard = GENDER
    quick = PARTS
    quick_chat = {"mbbq_en_gender_identity_gen": PARTS[GENDER[0]]}
    left_out = {
        **dict.fromkeys(("quick", "standard"), LeftOut("all of MBBQ but gender")),
        "quick-chat": LeftOut("MBBQ in other languages than English, and all of it but gender"),
    }

    def key(self, doc: Document) -> tuple[str, ...]:
        """Category, template and place, which name the same item in all languages; form and prompt."""
        return (str(doc["category"]), str(doc["item"]), "control" * doc["control"], str(doc["wording"]))


class AllPrompts(MBBQ, OverWordings):
    """The same items in all five prompts, as the paper has them; control scores and contrasts are over all five."""

    name = "mbbq_prompts"
    main = (*OverWordings.main, *CONTRASTS)
    knowledge = MBBQ.knowledge
    options = {"breakdown": DETAIL}


BENCHMARK = MBBQ([AllPrompts()])
