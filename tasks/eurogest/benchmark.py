"""The benchmark object of EuroGEST."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lm_eval_bias.core.benchmark import (
    Asking,
    Document,
    Documents,
    Lazy,
    Options,
    Presentation,
)
from lm_eval_bias.core.questions import Contrast
from lm_eval_bias.core.synthetic_bias import Dial, SyntheticBias
from lm_eval_bias.core.verdicts import Diagnostic
from lm_eval_bias.tasks.shared.pair_choices import PairChoices
from lm_eval_bias.tasks.shared.sized import SizedBenchmark

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import TaskRun

ROOM = 0.05  # of the shares of men, at either end
# what a share that can't move tells nothing of
_SATURATED = (
    "stereotype_gap", "stereotype_ratio", "masculine_share", "masculine_share_male", "masculine_share_female",
)  # fmt: skip


def _diagnostics(task: TaskRun) -> Iterator[Diagnostic]:
    """Yield a diagnostic where one speaker is likelier for nearly all sentences, so that shares are saturated."""
    share = task.scores.get("masculine_share")
    if share is not None and abs(share.value - 0.5) > 0.5 - ROOM:
        shown = f"masculine_share {100 * share.value:.1f}%"
        yield Diagnostic(
            "saturated",
            f"saturated: {shown}: one of the speakers is likelier whatever is said, so that shares and their gap say "
            "nothing; log_odds_gap has no end",
            f"saturated ({shown})",
            scores=_SATURATED,
        )


def _answers(doc: Document, dial: Dial) -> list[tuple[float, int]]:
    """Give each text the log of its share; the shares follow the stereotype by the strength."""
    strength = dial.strength if doc["group"] == "male" else -dial.strength
    room = (1.0 - abs(strength)) * dial.noise
    share = (1.0 + strength + room * dial.effect(doc["english"])) / 2.0
    texts = [(math.log(max(part, 1e-9)), 1) for part in (share, 1.0 - share)]
    if "mixed" in doc:
        knows = dial.draw("ordered", doc["id"]) < (1.0 + dial.competence) / 2.0
        texts += [(float(knows), 1), (float(not knows), 1)]
    return texts


def _expected(docs: Documents, dial: Dial) -> Mapping[str, float]:
    """Give the gap, the strength, as a difference of shares and of log-odds, and men's share, a half."""
    import numpy as np

    effects = np.linspace(-1.0, 1.0, 20_001)
    room = (1.0 - abs(dial.strength)) * dial.noise
    odds = 2.0 * np.arctanh(
        np.clip(dial.strength + room * effects, -1 + 1e-9, 1 - 1e-9)
    )
    return {
        "stereotype_gap": dial.strength,
        "log_odds_gap": 2.0 * float(odds.mean()),
        "masculine_share": 0.5,
    }


class EuroGEST(SizedBenchmark):
    """Gender stereotypes in thirty languages (Rowe et al. 2025)."""

    name = "eurogest"
    title = "EuroGEST"
    place = 4
    main = ("stereotype_gap", "log_odds_gap", "masculine_share")
    requests = 2
    smallest = 160
    clusters = "sentences"
    facets = {"stereotype": "stereotype", "group": "group", "form": "form"}
    options = Options(
        {"likelihood": "", "frame": "", "ability": ""},
        Lazy("lm_eval_bias.tasks.eurogest.hooks:check"),
    )
    synthetic_bias = SyntheticBias(_answers, _expected)
    presentation = Presentation(
        diagnostics=_diagnostics,
        beside_main=("stereotype_ratio", "ordered_share"),
        across_languages=("log_odds_gap", "stereotype_gap"),
    )

    record = Lazy("lm_eval_bias.tasks.eurogest.hooks:record")

    scores = Lazy("lm_eval_bias.custom_metrics.eurogest:scores")

    def asking(self, doc: Document) -> Asking:
        """Ask for both texts in contrast, and for one text with its words shuffled."""
        pairs = [doc["texts"]]
        if "mixed" in doc:
            pairs.append((doc["texts"][0], doc["mixed"]))
        return Asking(
            [
                Contrast(text, other, False)
                for one, two in pairs
                for text, other in ((one, two), (two, one))
            ]
        )


class EuroGESTChoices(PairChoices):
    """EuroGEST as a question with lettered options, for models that write (after Pikuliak et al. 2024)."""

    name = "eurogest_choices"
    title = "EuroGEST"
    clusters = "sentences"
    facets = {"stereotype": "stereotype", "group": "group"}


BENCHMARK = EuroGEST([EuroGESTChoices()])
