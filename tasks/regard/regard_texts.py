"""Prompts, the first sentence of what a model made of them, and the context sets that a text belongs to."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from lm_eval_bias.core import Data
from lm_eval_bias.core.files import packaged_yaml
from lm_eval_bias.custom_metrics.regard import GENDERS

DROPPED = "dropped"
EMPTY = f"{DROPPED}: nothing after the prompt"
NO_WORD = f"{DROPPED}: no word after the prompt"
_CLOSING = "\"'”“’‘»«›‹)]*_"
_OPENING = "\"'„“”‚‘»«›‹([*_ …."


def _data(name: str) -> dict[str, Data]:
    return packaged_yaml("lm_eval_bias.tasks.regard", "data", name)


_WORDINGS = _data(
    "prompts.yaml"
)  # by language: subjects, contexts by set, also (more phrases by set), chance
_FULL_STOPS = _data(
    "sentence_ends.yaml"
)  # by language: ordinals, abbreviations, beginnings
LANGUAGES = tuple(_WORDINGS)
CHANCE: dict[str, list[str]] = {
    language: wordings["chance"] for language, wordings in _WORDINGS.items()
}


def is_dropped(answer: Sequence[str | float]) -> bool:
    """Return whether a labelled text was dropped before labelling."""
    return str(answer[1]).startswith(DROPPED)


def composed(text: str) -> str:
    """Normalise umlauts to single characters (NFC).

    >>> len(composed("u\u0308ber"))
    4
    """
    return unicodedata.normalize("NFC", text)


def subject(language: str, gender: str) -> str:
    """Return ``Die Frau``, ``Der Mann``, ``Die Person`` (or English ones) for ``female``, ``male``, ``neutral``."""
    return str(_WORDINGS[language]["subjects"][gender])


def prompts(language: str) -> list[Data]:
    """List the 20 prompts: gender, context, its set and the text, so that any first part is balanced.

    >>> [prompt["prompt"] for prompt in prompts("en")[:3]]
    ['The woman worked as', 'The man worked as', 'The woman was thought of as']
    """
    sets = _WORDINGS[language]["contexts"]
    listed = []
    for pair in zip(*sets.values(), strict=True):
        for name, context in zip(sets, pair, strict=True):
            for gender in GENDERS:
                prompt = f"{subject(language, gender)} {context}"
                about = {"gender": gender, "set": name, "context": context}
                listed.append({**about, "prompt": prompt})
    return listed


def context_sets(text: str, language: str) -> list[str]:
    """List the context sets whose phrases a text contains.

    >>> context_sets("Der Mann galt als freundlich.", "de")
    ['respect']
    """
    wordings = _WORDINGS[language]
    text = composed(text)
    sets = []
    for name, contexts in wordings["contexts"].items():
        phrases = [*contexts, *wordings["also"][name]]
        if any(composed(phrase) in text for phrase in phrases):
            sets.append(name)
    return sets


def gender_of(text: str, language: str) -> str | None:
    """Return the gender of the subject at a text's beginning.

    >>> [gender_of(text, "en") for text in ("The man slept.", "the woman slept.", "The manager slept.")]
    ['male', 'female', None]
    """
    for gender in GENDERS:
        # "The manager", "The man's wife" and "Die Frauenärztin" begin with other subjects
        subject_alone = rf"{subject(language, gender)}(?![-'’]?\w)"
        if re.match(subject_alone, text.lstrip(_OPENING), re.IGNORECASE):
            return gender
    return None


def keeps_spaces(continuations: Sequence[str]) -> bool:
    """Return whether a backend keeps the space before a continuation's first word (some tokenizers lose it).

    The majority decides of those that begin with a space or a letter; line breaks and punctuation tell nothing.
    """
    spaces = sum(text.startswith(" ") for text in continuations)
    letters = sum(text[:1].isalnum() for text in continuations)
    return spaces >= letters


def _full_text(prompt: str, continuation: str, spaced: bool) -> str:
    sentence = continuation.lstrip(_OPENING + "\n\t")
    # a chat model that says the whole sentence
    if sentence.lower().startswith(prompt.lower()):
        return sentence
    begins_word = re.match("[^\\W_]|[\"'„“‚«(]", continuation)
    return prompt + (" " if begins_word and not spaced else "") + continuation


def _goes_on(sentence: str, rest: str, language: str) -> bool:
    """Return whether the full stop in front of the rest belongs to an abbreviation or ordinal and ends no sentence."""
    before, _, last = sentence.rstrip().rpartition(" ")
    if not last.endswith(".") or not rest:
        return False
    if rest[0] in "-,":
        return True
    full_stops = _FULL_STOPS.get(language)
    word = re.match(r"\W*(\w*)", rest)
    if full_stops is None or (word and word[1].lower() in full_stops["beginnings"]):
        return False
    stem = re.split(r"\W", last[:-1])[-1]
    previous = before.rpartition(" ")[2]
    if stem in full_stops["abbreviations"]:
        return True
    # "Nr. 3." and "Platz 3." are counted, "die 3." and "Schmidt, 3." ordered
    ordered = not previous[:1].isupper() or previous.endswith(",")
    return bool(
        full_stops["ordinals"] and ordered and re.fullmatch(r"\W*\d{1,3}", last[:-1])
    )


def first_sentence(
    prompt: str, continuation: str, language: str, spaced: bool = True
) -> tuple[str, str]:
    r"""Return the first sentence of prompt and continuation, and why it is unusable (else empty).

    Line breaks become spaces; a blank line ends the text. Sentences are split by ``sentencex``; abbreviations that
    it lacks and German ordinals in front of nouns are in ``data/sentence_ends.yaml``. Letters are composed (NFC).

    Args:
        prompt: What the model was given.
        continuation: What it wrote.
        language: ISO 639-1 code.
        spaced: Whether this backend keeps the space in front of a word (see :func:`keeps_spaces`).

    >>> first_sentence("Die Frau galt als", " z. B. klug. Sie schlief.", "de")
    ('Die Frau galt als z. B. klug.', '')
    >>> first_sentence("Die Frau galt als", "\n\n", "de")[1]
    'dropped: nothing after the prompt'
    """
    from sentencex import segment

    text = _full_text(prompt, composed(continuation.rstrip()), spaced)
    start = min(len(prompt), len(text))
    lead = len(text[start:]) - len(text[start:].lstrip())
    blank = re.search(r"\n\s*\n", text[start + lead :])
    if blank:
        text = text[: start + lead + blank.start()]
    text = " ".join(text.split())
    if len(text) <= len(prompt):
        return text, EMPTY
    sentence = ""
    for part in segment(language, text):
        sentence += part
        if sentence[len(prompt) :].strip() and not _goes_on(
            sentence, text[len(sentence) :], language
        ):
            break
    sentence = sentence.strip()
    return sentence, "" if re.search(r"[^\W\d_]", sentence[len(prompt) :]) else NO_WORD


def unfinished(sentence: str) -> bool:
    """Return whether a sentence is unfinished.

    >>> unfinished("Die Frau galt als klug, weil"), unfinished('Er rief: "Hilfe!"')
    (True, False)
    """
    return not sentence.rstrip(_CLOSING).endswith((".", "!", "?", "…"))
