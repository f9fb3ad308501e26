"""A user's own prompts as the rest of the package sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lm_eval_bias.core.benchmark import REQUIRED, Benchmark, Card, Document, deferred
from lm_eval_bias.core.planting import Planting
from lm_eval_bias.custom_metrics.regard import FACETS
from lm_eval_bias.tasks.regard.benchmark import BENCHMARK as REGARD

_TEXTS = dict(negative="negative texts", positive="positive texts", **{f: f"{f} words" for f in FACETS}, words="words")
_REQUIRED = dict.fromkeys(("prompts", "language"), REQUIRED)


class OwnPrompts(Benchmark):
    """Texts after prompts of a user's own, compared between groups."""

    name = "own_prompts"
    title = "Own prompts"
    place = 5
    main = tuple(f"{measure}/gap" for measure in _TEXTS)
    leanings = {
        f"{name}/gap": (f"more {texts} in the compared groups", f"more {texts} in the reference group")
        for name, texts in _TEXTS.items()
    }
    options = {"reference": "", "keywords": "", "classifier": "", "repeats": "", **_REQUIRED}
    samples_texts = "always"
    left_out = {"full": "own_prompts, which needs a file of prompts"}
    card = Card(
        measures="How texts differ between groups, after prompts that differ only in the group: regard (by a "
        "classifier), keywords of facets, and number of words.",
        cannot="What the file lacks: other groups, situations and wordings, and whether its prompts differ only in the "
        "group. Scores describe these prompts alone. Regard alone misleads: the caring woman counts as positive.",
        uncertainty="Intervals and tests are for prompts like these: clusters (sentence frames) vary. A second "
        "interval (fixed_interval) is for these prompts, where only texts vary.",
        differs="No paper has these scores. Texts are sampled, cut and labelled as in Regard.",
        paper="After Kraft et al. (2022), Measuring Gender Bias in German Language Generation, and Sheng et al. "
        "(2019), The Woman Worked as a Babysitter",
        population="The groups in the user's file.",
        languages="Any; classifiers and keywords are included only for German and English.",
        size="The prompts in the user's file, 100 texts each. Findings rest on its clusters: use twenty or more.",
        licence="The user's own file.",
        flaws=(
            "Of 100 texts, sbert labels about 22 otherwise than people do; errors may differ between groups.",
            "Without any true difference, tests reject in 2 to 6% of 600 simulated rounds.",
        ),
        use="Comparing models, or groups, after prompts from your own use case.",
        misuse="Comparing scores of different files. Conclusions about what the file lacks.",
    )
    rewritings = tuple(way for way in REGARD.rewritings if way.flag == "classifier")
    check_options = deferred("lm_eval_bias.tasks.own_prompts.hooks:documents")
    planting = Planting(
        deferred("lm_eval_bias.tasks.own_prompts.planted_answers:answers"),
        deferred("lm_eval_bias.tasks.own_prompts.planted_answers:expected"),
    )
    record = deferred("lm_eval_bias.tasks.own_prompts.hooks:record")
    scores = deferred("lm_eval_bias.custom_metrics.own_prompts:scores")
    requests, read_answer = REGARD.requests, REGARD.read_answer

    def key(self, doc: Document) -> tuple[str, ...]:
        """Group, cluster and prompt."""
        return (str(doc["group"]), str(doc["cluster"]), str(doc["prompt"]))

    def provenance(self, docs: Sequence[Document]) -> dict[str, Any]:
        """What was compared, and the classifier that was used, if any."""
        used = REGARD.provenance(docs) if docs and docs[0]["classifier"]["name"] else {}
        return {**used, "comparison": docs[0]["comparison"]} if docs else {}

    def random_texts(self, doc: Document) -> Sequence[str]:
        """A few continuations, English ones where the language has none."""
        from lm_eval_bias.tasks.regard.regard_texts import CHANCE

        return CHANCE.get(doc["language"], CHANCE["en"])

    def facets(self, doc: Document) -> dict[str, str]:
        """The group and the cluster."""
        return {"group": str(doc["group"]), "cluster": str(doc["cluster"])}

    score_label = deferred("lm_eval_bias.tasks.own_prompts.sentences:score_label")
    sentences = deferred("lm_eval_bias.tasks.own_prompts.sentences:sentences")
    cautions = deferred("lm_eval_bias.tasks.own_prompts.sentences:cautions")


BENCHMARK = OwnPrompts()
