"""Regard as the rest of the package sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core.benchmark import DATA, DETAIL, Benchmark, Card, Command, Document, Rewriting, deferred
from lm_eval_bias.core.planting import Planting

if TYPE_CHECKING:
    from lm_eval_bias.core.answers import Reader
    from lm_eval_bias.core.run_data import TaskRun


class Regard(Benchmark):
    """German and English regard, read beside sexism facets (Kraft et al. 2022)."""

    name = "regard"
    title = "Regard and sexism facets"
    place = 4
    main = ("all/negative_gap", "all/positive_gap", "caregiving/gap", "sexualization/gap", "perpetration/gap")
    leanings = {
        name: (f"more {texts} about women", f"more {texts} about men")
        for name, texts in (
            ("all/negative_gap", "negative texts"),
            ("all/positive_gap", "positive texts"),
            *((f"{facet}/gap", f"{facet} words") for facet in ("caregiving", "sexualization", "perpetration")),
        )
    }
    options = {"classifier": DATA, "repeats": "", "by_set_and_regard": DETAIL}
    samples_texts = "always"
    card = Card(
        measures="How sampled texts about women and men regard them (negative, neutral, positive, by a classifier) "
        "and, beside it, how often they have keywords of caregiving, sexualization and perpetration.",
        cannot="Regard alone misleads: the caring woman counts as positive. Labels are a classifier's, with its "
        "errors; keywords are raw matches. Chi-square and Cramér's V say nothing about other prompts.",
        uncertainty="Intervals are for prompts like these: contexts vary, five of each set (jackknife, Student's t). "
        "A second interval is for these prompts, where only the texts vary (fixed_interval); chi-square, its p-values "
        "and Cramér's V are also for these prompts.",
        differs="The authors removed keyword matches in other meanings by hand; here they stay. No text is discarded "
        "to make groups equally large. The English prompts are those of Sheng et al.",
        paper="Kraft, Zorn, Fecht, Simon, Biemann & Usbeck (2022), Measuring Gender Bias in German Language "
        "Generation, INFORMATIK 2022; after Sheng, Chang, Natarajan & Peng (2019), The Woman Worked as a Babysitter, "
        "EMNLP 2019",
        population="“The woman” and “the man” (“Die Frau”, “Der Mann”) in ten contexts, five about occupation and "
        "five about respect. No other genders: German has no agreed non-binary pronoun, as the paper says.",
        languages="German (prompts of Kraft et al.) and English (prompts of Sheng et al.), each as its authors wrote "
        "it.",
        size="20 prompts a language, 100 texts each: 2,000 texts.",
        licence="German corpus and labelled texts: MIT (krangelie/German_NLG_bias). English corpus "
        "(ewsheng/nlg-bias): see its README; it states nothing more.",
        flaws=(
            "The classifier errs: German “sbert” is right in 0.78 of 231 test sentences, “light” in 0.66 (English: "
            "0.59 of 29). The paper's tends to call sentences about occupations neutral.",
            "Labels are people's judgement: the corpus' annotators agree with an average Cohen's kappa of .80, those "
            "of the GerPT-2 texts with .64; one of the five of the corpus was a woman.",
            "Raw keywords match too much: compared with labels by hand, their precision is 0.76 for caregiving, 0.93 "
            "for perpetration and 1.00 for sexualization. The English list has not been measured.",
            "Ten contexts are few, and were chosen: on GerPT-2, 6.3 points more positive texts about women are [2.7, "
            "9.9] for these texts and [-5.1, 19.5] for prompts like these.",
        ),
        use="Comparing how models write about women and men after these prompts, regard beside keywords.",
        misuse="Regard without the keywords: benevolent sexism looks positive there. Findings from the “light” "
        "classifier. Conclusions about other genders, or about texts that begin differently.",
    )
    standard = ("regard_de", "regard_en")
    left_out = {
        "quick": "regard, because its sampled texts take longer than everything else together (20 a prompt: --tasks "
        "regard_en --metadata repeats=20)"
    }
    rewritings = (
        Rewriting(
            "classifier", "NAME",
            "regard and own_prompts: classify the saved texts again with light, sbert, hub:<model>, ...",
            all=deferred("lm_eval_bias.tasks.regard.hooks:reclassify"),
        ),
        Rewriting(
            "regard_labels", "FILE", "regard: correct the shares for the classifier's errors, measured on this file of "
            "labelled texts",
            all=deferred("lm_eval_bias.tasks.regard.labelled_confusion:with_labels"),
        ),
    )  # fmt: skip
    check_options = deferred("lm_eval_bias.tasks.regard.hooks:check_options")
    commands = tuple(
        Command(name, text, f"lm_eval_bias.tasks.regard.classifiers.{module}")
        for name, text, module in (
            ("train", "train the head of a regard classifier, and write its card", "train_command"),
            ("classify", "label the regard of any texts", "classify"),
        )
    )

    def items(self, metadata: Mapping[str, Any]) -> int:
        """Women and men in ten contexts."""
        return 20

    def requests(self, metadata: Mapping[str, Any]) -> int:
        """One, which is repeated."""
        return 1

    planting = Planting(
        deferred("lm_eval_bias.tasks.regard.planted_answers:answers"),
        deferred("lm_eval_bias.tasks.regard.planted_answers:expected"),
    )
    record = deferred("lm_eval_bias.tasks.regard.hooks:record")

    def key(self, doc: Document) -> tuple[str, ...]:
        """Gender, context set and context."""
        return (str(doc["gender"]), str(doc.get("set", "")), str(doc.get("context", "")))

    def provenance(self, docs: Sequence[Document]) -> dict[str, Any]:
        """The classifier that was used, and whether it is the language's default."""
        from lm_eval_bias.tasks.regard.classifiers.classifier import DEFAULT

        if not docs:
            return {}
        used = docs[0]["classifier"]
        return {"classifier_used": {**used, "is_default": used["name"] == DEFAULT.get(docs[0]["language"])}}

    def read_answer(self, raw: Any) -> list[list[str]]:
        """A prompt's texts: ``[text, regard, probability, ...]`` each."""
        if not isinstance(raw, list) or not all(isinstance(row, list) and len(row) >= 2 for row in raw):
            raise ValueError("no list of classified texts")
        return [[str(part) for part in row] for row in raw]

    def random_texts(self, doc: Document) -> Sequence[str]:
        """A few continuations in the document's language."""
        from lm_eval_bias.tasks.regard.regard_texts import CHANCE

        return CHANCE[doc["language"]]

    scores = deferred("lm_eval_bias.custom_metrics.regard:scores")

    def facets(self, doc: Document) -> dict[str, str]:
        """Whom the prompt is about, its set of contexts and its context."""
        return {
            "about": str(doc["gender"]),
            "contexts": str(doc.get("set", "")),
            "context": str(doc.get("context", "")),
        }

    score_label = deferred("lm_eval_bias.tasks.regard.sentences:score_label")
    sentences = deferred("lm_eval_bias.tasks.regard.sentences:sentences")
    cautions = deferred("lm_eval_bias.tasks.regard.sentences:cautions")

    def withheld(self, task: TaskRun) -> str:
        """Regard without the facets."""
        from lm_eval_bias.tasks.regard import sentences

        return "" if sentences.has_both(task) else sentences.WITHHELD

    figures = deferred("lm_eval_bias.tasks.regard.figures:parts")
    published = deferred("lm_eval_bias.tasks.regard.published:published")

    def readers(self) -> Sequence[Reader]:
        """Texts about women and men that were labelled elsewhere."""
        from lm_eval_bias.tasks.regard import labelled_texts

        return (labelled_texts.READER,)


BENCHMARK = Regard()
