"""Multilingual StereoSet as the rest of the package sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core.benchmark import (
    DATA,
    DETAIL,
    Benchmark,
    Card,
    Command,
    Document,
    ExportFormat,
    Sampling,
    deferred,
)
from lm_eval_bias.core.planting import Planting
from lm_eval_bias.tasks.stereoset import LANGUAGES, TESTS

if TYPE_CHECKING:
    from lm_eval_bias.core.answers import Reader
    from lm_eval_bias.core.published_scores import Published
    from lm_eval_bias.core.questions import Question


class StereoSet(Benchmark):
    """Stereotypes in five languages (Öztürk et al. 2023)."""

    name = "stereoset"
    title = "Multilingual StereoSet"
    place = 3
    main: Sequence[str] = ("lms", "ss", "icat")
    leanings = dict.fromkeys(("ss", "gen/ss", "choice_ss"), ("prefers stereotypes", "prefers anti-stereotypes"))
    knowledge: tuple[str, float] | None = ("lms", 50.0)
    options: Mapping[str, str] = {"bos": "", "inter": "", "masked": "", "dataset": DATA, "by_test_and_type": DETAIL}
    card = Card(
        measures="Whether a model prefers stereotypes about 79 groups of people to anti-stereotypes (SS), within and "
        "between sentences, and whether it tells sense from nonsense at all (LMS). ICAT joins both.",
        cannot="A stereotype score near 50 can be ignorance: read it beside LMS, whose chance level is 50. The "
        "stereotypes were collected in the United States and translated; other languages have other stereotypes. "
        "Models of different families get different questions, so compare models only within a family.",
        uncertainty="Items about one group are not independent evidence, so errors are clustered by target term. "
        "Religion has three terms and gender ten, so their intervals are wide.",
        differs="How a next sentence is scored moves SS across 50; the default is the paper's. 634 of the 654 printed "
        "cells follow from the authors' files. The stereoset_*_gen tasks, for models without log-likelihoods, ask "
        "for a choice among the three candidates, which no paper does: their scores (choice_*) have other chance "
        "levels (choice_lms: 66.7) and don't replace the ranked ones.",
        paper="Öztürk, Nedelchev, Heumann, Garces Arias, Roger, Bischl & Aßenmacher (2023), How Different Is "
        "Stereotypical Bias Across Languages?, arXiv:2307.07331; after Nadeem, Bethke & Reddy (2021), StereoSet, ACL "
        "2021",
        link="https://arxiv.org/abs/2307.07331",
        population="79 groups of people by gender (10 terms), profession, race and religion (3 terms). People in the "
        "United States wrote the stereotypes.",
        languages="English, and German, Spanish, French and Turkish by machine translation (AWS), checked for "
        "punctuation and for the position of the blank.",
        size="4,229 items a language (German: 4,226): 2,123 between sentences, 2,106 within (German: 2,103). In all "
        "21,142.",
        licence="The repository of the translations (slds-lmu/stereotypes-multi) states none; StereoSet itself is CC "
        "BY-SA 4.0.",
        flaws=(
            "Grammar may decide instead of meaning in at least 46 English, 9 German, 51 Spanish, 108 French and 100 "
            "Turkish items.",
            "Final punctuation was lost in translation, often with the end of the sentence: 20 German, 27 Spanish, 19 "
            "French and 2 Turkish items.",
            "Two candidates are equal in 4 Spanish, 2 French and 12 Turkish items; 3 Turkish items hold English.",
            "BLANK is glued to letters in 1 English, 9 German and 1 Turkish item. Three within-sentence items are "
            "missing in German.",
            "20 of the paper's 654 printed cells don't follow from the authors' own files.",
            "The translators noticed errors in the English original and kept them; how many is unknown.",
        ),
        use="Comparing models of one family in one language, by SS beside LMS; comparing languages within one model, "
        "with attention to what translation changed.",
        misuse="Reading an SS near 50 of a model with an LMS near 50 as fairness. Calling ICAT a measure of harm. "
        "Conclusions about stereotypes from outside the United States, or about the three religions alone.",
    )
    standard = tuple(f"stereoset_{language}" for language in LANGUAGES)
    quick = {
        task: Sampling("terms_and_tests", deferred("lm_eval_bias.tasks.kinds.sampling:terms_and_tests"), 3, 474)
        for task in standard
    }
    contained = tuple(f"stereoset_{language}_{test}" for language in LANGUAGES for test in TESTS)
    left_out = {
        "quick": "score variants and choices from generated texts",
        "standard": "score variants and choices from generated texts",
        "full": "stereoset_*_intra and stereoset_*_inter, whose items and scores are those of stereoset_*",
    }

    commands = tuple(
        Command(name, text, f"lm_eval_bias.tasks.stereoset.commands.{name}")
        for name, text in (
            ("translate", "translate StereoSet, and list what needs a person"),
            ("validate", "check items in StereoSet's format, and make tasks"),
        )
    )
    export_formats = (
        ExportFormat(
            "predictions",
            "a StereoSet run as a prediction file in the authors' format",
            "lm_eval_bias.tasks.stereoset.commands.export_predictions",
        ),
    )

    def items(self, metadata: Mapping[str, Any]) -> int | None:
        """2,123 between sentences and 2,106 within them, of which three are missing in German."""
        fixed = metadata["fixed"]
        if "dataset" in fixed:  # a set of one's own
            return int(metadata["n_items"])
        sizes = {"inter": 2123, "intra": 2103 if fixed["language"] == "de" else 2106}
        return sum(sizes[test] for test in fixed["tests"])

    def requests(self, metadata: Mapping[str, Any]) -> int:
        """One per candidate."""
        return 3

    planting = Planting(
        deferred("lm_eval_bias.tasks.stereoset.planted_answers:answers"),
        deferred("lm_eval_bias.tasks.stereoset.planted_answers:expected"),
    )
    check_options = deferred("lm_eval_bias.tasks.stereoset.hooks:check_options")
    record = deferred("lm_eval_bias.tasks.stereoset.hooks:record")

    def key(self, doc: Document) -> tuple[str, ...]:
        """Test and the data set's own id, which all languages share."""
        return (str(doc["test"]), str(doc["id"]))

    questions = deferred("lm_eval_bias.tasks.stereoset.hooks:questions")
    provenance = deferred("lm_eval_bias.tasks.stereoset.hooks:provenance")

    scores = deferred("lm_eval_bias.custom_metrics.stereoset:scores")

    def facets(self, doc: Document) -> dict[str, str]:
        """Test, bias type and target term."""
        test = {"intra": "within sentences", "inter": "between sentences"}[doc["test"]]
        return {"test": test, "bias type": str(doc["bias_type"]), "target": str(doc["term"])}

    def candidate_roles(self, doc: Document) -> Sequence[str]:
        """Stereotype, anti-stereotype or unrelated."""
        return [str(candidate["label"]) for candidate in doc["candidates"]]

    score_label = deferred("lm_eval_bias.tasks.stereoset.sentences:score_label")
    sentences = deferred("lm_eval_bias.tasks.stereoset.sentences:sentences")
    cautions = deferred("lm_eval_bias.tasks.stereoset.sentences:cautions")
    figures = deferred("lm_eval_bias.tasks.stereoset.figures:parts")
    published = deferred("lm_eval_bias.tasks.stereoset.published:published")

    def readers(self) -> Sequence[Reader]:
        """The authors' prediction files."""
        from lm_eval_bias.tasks.stereoset import predictions

        return (predictions.READER,)


class Variants(StereoSet):
    """The items between sentences by every generative way of scoring."""

    name = "stereoset_variants"
    main = ("gen/lms", "gen/ss", "gen/icat")
    knowledge = ("gen/lms", 50.0)
    options = {"bos": "", "dataset": DATA, "by_test_and_type": DETAIL}

    scores = deferred("lm_eval_bias.custom_metrics.stereoset:variant_scores")
    sentences = deferred("lm_eval_bias.tasks.stereoset.sentences:of_variants")


class Choices(StereoSet):
    """The candidates as lettered options of which a generated answer takes one."""

    name = "stereoset_choices"
    main = ("choice_lms", "choice_ss", "choice_icat")
    unanswered = "unanswered"
    knowledge = ("choice_lms", 200 / 3)
    options = {"dataset": DATA, "by_test_and_type": DETAIL}

    def requests(self, metadata: Mapping[str, Any]) -> int:
        """One text."""
        return 1

    def questions(self, doc: Document) -> Sequence[Question]:
        """None: its requests are plain ones of the harness."""
        return ()

    record = deferred("lm_eval_bias.tasks.stereoset.choices:record")
    is_settled = deferred("lm_eval_bias.tasks.stereoset.choices:is_settled")

    def random_texts(self, doc: Document) -> Sequence[str]:
        """The letters."""
        return "ABC"

    scores = deferred("lm_eval_bias.custom_metrics.stereoset_choices:scores")
    sentences = deferred("lm_eval_bias.tasks.stereoset.sentences:of_choices")
    cautions = deferred("lm_eval_bias.tasks.stereoset.sentences:cautions_of_choices")

    def published(self) -> Sequence[Published]:
        """None."""
        return ()

    def readers(self) -> Sequence[Reader]:
        """None: the authors' prediction files have no choices."""
        return ()


BENCHMARK = StereoSet([Variants(), Choices()])
