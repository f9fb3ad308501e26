"""OccuGender's documents, prompts and records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from lm_eval.api.filter import Filter

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.answers import REFUSED, UNANSWERED, reading
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.custom_metrics import occugender, occugender_answers
from lm_eval_bias.custom_metrics.score import Answers, Record
from lm_eval_bias.tasks.occugender import answer_extraction, inputs
from lm_eval_bias.tasks.shared.bbq_records import in_turn

PROBABILITIES = ("product", "geometric_mean", "last_word")
POSITIONS = ("before", "question")
# the benchmark's variants whose answers are written
GENERATED = "occugender_gen"
STORIES = "occugender_stories"


# The document of one prompt:
# - benchmark: str
# - kind: explicit or implicit
# - item: str
# - female_share: percent
# - group: the gender that dominates the item: female, male or none
# - template: str
# - question: str
# - sentence: how the answer to an implicit prompt begins
# - instruction: empty for none
# - instruction_position: str
# - words: list[str]
# - genders: of each word
# - word_probability: str


def genders_by_word(words: str | None, kind: str) -> dict[str, str]:
    """List the words of a set for a kind of prompt, each with its gender."""
    return {
        word: gender
        for gender, gender_words in inputs.words(words, kind).items()
        for word in gender_words
    }


def _settled(fixed: Facts, **given: object) -> Data:
    """Return the options, fixed by the task's YAML or given; giving a fixed one is a BiasError."""
    for name, made_for in fixed.items():
        if given[name] is not None:
            raise BiasError(
                f"--metadata {name}={given[name]!r}: this task is made for {name}={made_for}"
            )
    return {**given, **fixed}


def documents(
    kind: str,
    items: str | None = None,
    templates: str | None = None,
    words: str | None = None,
    word_probability: str = "product",
    instruction: int | str | None = None,
    instruction_position: str = "before",
    first_templates: int | None = None,
    fixed: Facts | None = None,
    **_: object,
) -> list[Data]:
    """Make all prompts: the full Cartesian product of items and templates, template by template.

    Template-major order with female- and male-dominated items in turn, so that ``--limit`` with a multiple of the
    number of items leaves a complete, smaller product.

    Args:
        kind: ``explicit``, ``implicit`` or ``stories``.
        items: CSV of your own with columns ``item`` and ``female_share`` (percent).
        templates: YAML of your own, as ``templates.yaml``.
        words: Name of a word set, or a YAML of your own, as ``words.yaml``.
        word_probability: ``product`` (Eq. 5), ``geometric_mean`` (exponent of the mean token log-probability, summed
            over the words) or, of implicit prompts, ``last_word`` (the same of each list's last word alone, as in the
            authors' implicit script: " he", " she" and " they").
        instruction: Number of a debiasing instruction (Table 8), a text of the user's, or a file that ends in ``.txt``.
        instruction_position: ``before`` the prompt, on a line of its own, or ``question``: behind ``Q:``, as in the
            authors' code.
        first_templates: Use only the first so many templates (Tables 9-18: five).
        fixed: Values of the options that the task's YAML sets and ``--metadata`` may not change, and whether answers
            are generated.

    Raises:
        BiasError: An unknown option or word set, or a bad file.
    """
    for name, value, allowed in (
        ("word_probability", word_probability, PROBABILITIES),
        ("instruction_position", instruction_position, POSITIONS),
    ):
        if value not in allowed:
            raise BiasError(
                f"--metadata {name}={value!r}: must be one of {', '.join(allowed)}"
            )
    if word_probability == "last_word" and kind != "implicit":
        raise BiasError(
            f"--metadata word_probability=last_word: this is the authors' convention for implicit prompts, not for "
            f"{kind} ones"
        )
    settled = dict(fixed or {})
    generated = settled.pop("answers", None) == "generated"
    options = _settled(
        settled, instruction=instruction, first_templates=first_templates
    )
    instruction_text = inputs.instruction(options["instruction"])
    rows = inputs.items(items)
    genders = genders_by_word(words, kind)
    template_texts = inputs.templates(templates, kind, options["first_templates"])
    female = [[row] for row in rows if row.group == "female"]
    ordered = in_turn([female, [[row] for row in rows if row.group != "female"]])
    benchmark = "occugender"
    if generated:
        benchmark = STORIES if kind == "stories" else GENERATED
    return [
        {
            "benchmark": benchmark,
            "kind": kind,
            "item": row.name,
            "female_share": row.female_share,
            "group": row.group,
            "template": template.get("name", f"{kind}-{number:02d}"),
            "question": inputs.fill(template["question"], row.name),
            "sentence": inputs.fill(template.get("sentence", ""), row.name),
            "instruction": instruction_text,
            "instruction_position": instruction_position,
            "words": list(genders),
            "genders": list(genders.values()),
            "word_probability": word_probability,
        }
        for number, template in enumerate(template_texts, start=1)
        for row in ordered
    ]


def check(metadata: Facts) -> None:
    """Refuse impossible options by building the documents, which is cheap."""
    documents(**metadata)


def dataset(**metadata: Any) -> Data:
    """Make the documents by split, as the harness wants them."""
    return {"test": documents(**metadata)}


def prompt(doc: Facts) -> str:
    r"""Write ``Q: <question>\nA:``, with the debiasing instruction if there is one.

    >>> prompt({"question": "Picture a vet.", "instruction": "", "instruction_position": "before"})
    'Q: Picture a vet.\nA:'
    """
    if not doc["instruction"]:
        return f"Q: {doc['question']}\nA:"
    if doc["instruction_position"] == "question":
        return f"Q: {doc['instruction']} {doc['question']}\nA:"
    return f"{doc['instruction']}\nQ: {doc['question']}\nA:"


def record(doc: Facts, results: Answers) -> Record:
    """Make the record of a prompt: the logs of P_m, P_f and P_d (Eq. 5).

    Args:
        doc: The document.
        results: Per word ``(log-likelihood, is greedy)``, and the number of tokens unless their product counts.
    """
    lists: dict[str, list[float]] = {
        gender: [] for gender in occugender.GENDERS.values()
    }
    for gender, answer in zip(doc["genders"], results, strict=True):
        loglikelihood = float(answer[0])
        if doc["word_probability"] != "product":
            loglikelihood /= max(int(answer[2]), 1)
        if doc["word_probability"] == "last_word":
            lists[gender].clear()
        lists[gender].append(loglikelihood)
    logs = {
        gender: occugender.log_probability(values) for gender, values in lists.items()
    }
    return occugender.prompt_record(
        doc["item"], doc["template"], float(doc["female_share"]), doc["group"], **logs
    )


def read_texts(doc: Facts, texts: Sequence[str]) -> list[list[str]]:
    """Pair each text with its extracted answer: a gender, or why there is none."""
    read = partial(
        answer_extraction.read,
        kind=doc["kind"],
        genders=dict(zip(doc["words"], doc["genders"], strict=True)),
        sentence=doc["sentence"],
    )
    return [
        [text, reading(text, lambda text, cut: read(text, cut=cut))] for text in texts
    ]


def record_of_texts(doc: Facts, results: Answers) -> Record:
    """Count the extracted answers of a prompt's texts.

    Args:
        doc: The document.
        results: The one request's answer: ``[text, gender or why none]`` per text.

    Raises:
        BiasError: No texts, or a reading that is none.
    """
    (rows,) = results
    tally = Counter(str(row[1]) for row in rows)
    counts = {
        letter: tally.pop(gender, 0) for letter, gender in occugender.GENDERS.items()
    }
    unknown = sorted(set(tally) - set(UNANSWERED))
    if unknown or not rows:
        problem = f"no answer of a text says {unknown[0]!r}" if unknown else "no texts"
        raise BiasError(f"{doc['item']!r}, {doc['template']}: {problem}")
    place = (doc["item"], doc["template"], float(doc["female_share"]), doc["group"])
    return occugender_answers.prompt_record(
        *place, counts=counts, refused=tally[REFUSED], drawn=len(rows)
    )


def rewrite(
    doc: Facts,
    results: Answers,
    words: str,
    genders: Mapping[str, str],
) -> tuple[Data, Answers]:
    """Apply another word set to a logged document: extract texts anew, or reduce the scored words to it.

    Raises:
        BiasError: The words were scored, and not all of this set.
    """
    if doc["benchmark"] in (GENERATED, STORIES):
        other = {
            **doc,
            "words": list(genders),
            "genders": list(genders.values()),
        }
        reread = []
        for rows in results:
            reread.append(read_texts(other, [row[0] for row in rows]))
        return other, reread
    missing = [word for word in genders if word not in doc["words"]]
    if missing:
        raise BiasError(
            f"the log holds no scores of {', '.join(missing)}, which the word set {words!r} needs for {doc['kind']} "
            f'prompts: run the model again with --metadata \'{{"words": "{words}"}}\''
        )
    pairs = [
        (word, answer)
        for word, answer in zip(doc["words"], results, strict=True)
        if word in genders
    ]
    names = [word for word, _ in pairs]
    return {**doc, "words": names, "genders": [genders[word] for word in names]}, [
        answer for _, answer in pairs
    ]


class GenderFilter(Filter):
    """A filter that pairs each text with its extracted answer: a gender, or why there is none."""

    reads_again = True  # by rule alone, from the text and its document

    def apply(
        self, resps: Iterable[Sequence[str]], docs: Documents
    ) -> list[list[list[str]]]:
        """Extract the answers of all texts.

        Args:
            resps: Texts per document, without thoughts.
            docs: The documents, with their words.
        """
        return [read_texts(doc, texts) for texts, doc in zip(resps, docs, strict=True)]
