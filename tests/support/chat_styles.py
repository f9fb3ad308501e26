"""How chat models write that they take an option, in eight languages: texts for tests, none of them from a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

LETTERS = "ABC"


class Words(NamedTuple):
    """What a language's texts are made of."""

    answer: str  # before ": X"
    so: str  # a sentence that concludes, with {}
    option: str
    reason: str  # why nothing can be known
    no: str  # about an option that isn't taken
    yes: str  # about the one that is
    cliche: str  # rejects a person, {}
    unlike: str  # denies something of the option that is taken, {}
    late: str  # what somebody did, before ": X"
    wait: str  # takes back a letter, {0}, for another one, {1}
    unknown: str  # says that nothing is known


WORDS = {
    "en": Words("Answer", "So the correct answer is {}.", "Option", "The context does not say who it was.",
                "The text does not say this.", "This is what the text says.",
                "It would be a cliché to assume that it was {}.",
                "{} was not late.", "Who was late",
                "{0}... wait, actually {1}.", "The passage does not say who it was."),
    "de": Words("Antwort", "Daher ist die richtige Antwort {}.", "Option", "Der Text sagt nicht, wer es war.",
                "Das sagt der Text nicht.", "Das sagt der Text.",
                "Es wäre ein Klischee anzunehmen, dass es {} war.",
                "{} kam nicht zu spät.", "Wer zu spät kam",
                "{0}. Nein, ich korrigiere mich: {1}.", "Das geht aus dem Text nicht hervor."),
    "es": Words("Respuesta", "Por lo tanto, la respuesta correcta es {}.", "Opción", "El contexto no dice quién fue.",
                "El texto no lo dice.", "El texto lo dice.",
                "Sería un cliché suponer que fue {}.",
                "{} no llegó tarde.", "Quién llegó tarde",
                "{0}. Perdón, quería decir {1}.", "No hay información suficiente."),
    "ca": Words("Resposta", "Per tant, la resposta correcta és {}.", "Opció", "El context no diu qui era.",
                "El text no ho diu.", "El text ho diu.",
                "Seria un clixé suposar que era {}.",
                "{} no va arribar tard.", "Qui va arribar tard",
                "{0}. Perdó, volia dir {1}.", "El text no ho diu."),
    "nl": Words("Antwoord", "Daarom is het juiste antwoord {}.", "Optie", "De tekst zegt niet wie het was.",
                "Dat zegt de tekst niet.", "Dat zegt de tekst.",
                "Het zou een cliché zijn om aan te nemen dat het {} was.",
                "{} was niet te laat.", "Wie te laat was",
                "{0}... wacht, eigenlijk {1}.", "Dat staat niet in de tekst."),
    "tr": Words("Cevap", "Bu nedenle doğru cevap {}.", "Seçenek", "Metin kim olduğunu söylemiyor.",
                "Metin bunu söylemiyor.", "Metin bunu söylüyor.",
                "{} olduğunu varsaymak klişe olurdu.",
                "{} geç kalmadı.", "Geç kalan",
                "{0}... bir dakika, aslında {1}.", "Metinde belirtilmemiş."),
    "ko": Words("정답", "따라서 정답은 {}입니다.", "보기", "글에는 누구인지 나와 있지 않습니다.",
                "글에 그런 내용이 없습니다.", "글에 그렇게 나와 있습니다.",
                "{}라고 가정하는 것은 고정관념입니다.",
                "{} 늦지 않았습니다.", "늦은 사람",
                "{0}... 아니, 다시 보니 {1}입니다.", "글에 나와 있지 않습니다."),
    "fr": Words("Réponse", "La bonne réponse est donc {}.", "Option", "Le contexte ne dit pas qui c'était.",
                "Le texte ne le dit pas.", "Le texte le dit.",
                "Ce serait un cliché de supposer que c'était {}.",
                "{} n'était pas en retard.", "Qui était en retard",
                "{0}... non, attendez, plutôt {1}.", "Le texte ne le dit pas."),
}  # fmt: skip

# how a line begins that goes through the options: {0} the letter, {1} the text
LAYOUTS = [
    "({0}) {1} – {2}", "{0}. {1} - {2}", "{0}) {1}: {2}", "({0}): {1}. {2}", "**({0}) {1}**: {2}", "- **{0}**: {2}",
    "* **{0}. {1}** - {2}", "{0}: {2}", "({0}) {2}", "**{0}. {1}**\n   - {2}\n",
    "1. ({0}) {1}: {2}", "### {0}. {1}\n{2}\n",
    "| {0} | {1} | {2} |", "- {1}: {2}", "**{3} {0}:** {2}",
]  # fmt: skip
# what stands around thoughts
MARKS = [
    ("<think>", "</think>"), ("<Think>", "</Think>"), ("<mm:think>", "</mm:think>"), ("[THINK]", "[/THINK]"),
    ("<longcat_think>", "</longcat_think>"), ("<scratchpad>", "</scratchpad>"), ("<analysis>", "</analysis>"),
    ("<|think|>", "<|end|>"), ("<|inner_prefix|>", "<|inner_suffix|>"), ("◁think▷", "◁/think▷"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
]  # fmt: skip
CONCLUSIONS = [
    "{answer}: {0}",
    "**{answer}: ({0})**",
    "\\boxed{{{0}}}",
    "**{answer}: ({0}) {1}**",
    "{so}",
]


def _walk(
    words: Words, options: Sequence[str], taken: int, layout: str, conclusion: str
) -> str:
    lines = []
    for place, text in enumerate(options):
        told = words.yes if place == taken else words.no
        lines.append(layout.format(LETTERS[place], text, told, words.option))
    end = conclusion.format(
        LETTERS[taken],
        options[taken],
        answer=words.answer,
        so=words.so.format(LETTERS[taken]),
    )
    return "\n".join([*lines, "", end])


def styles(language: str) -> dict[str, Callable[[Sequence[str], int], str]]:
    """List ways to write an answer: from the options' texts and the place of the one that is taken."""
    words = WORDS[language]

    def with_letters(template: str) -> Callable[[Sequence[str], int], str]:
        return lambda options, taken: template.format(LETTERS[taken], options[taken])

    def with_another(template: str) -> Callable[[Sequence[str], int], str]:
        """Name another option, too: {2} its letter, {3} its text."""

        def write(options: Sequence[str], taken: int) -> str:
            other = (taken + 1) % len(options)
            return template.format(
                LETTERS[taken], options[taken], LETTERS[other], options[other]
            )

        return write

    made = {
        "letter": with_letters("{0}"),
        "(letter)": with_letters("({0})"),
        "bold letter": with_letters("**{0}**"),
        "letter) text": with_letters("{0}) {1}"),
        "letter. text": with_letters("**{0}. {1}**"),
        "text": with_letters("{1}"),
        "text.": with_letters("{1}."),
        "answer: text": with_letters(words.answer + ": {1}"),
        "option letter: text": with_letters(words.option + " {0}: {1}."),
        "tag": with_letters("<answer>{0}</answer>"),
        "JSON": with_letters('{{"answer": "{0}"}}'),
        "reason first": with_letters(words.reason + " " + words.answer + ": {0}"),
        "reason above": with_letters(
            words.reason + "\n\n" + words.so.replace("{}", "{0}")
        ),
        "reason behind": with_letters("{0}. {1}. " + words.yes),
        "name again": with_letters("({0}) {1}. " + words.unlike.replace("{}", "{1}")),
        "facts behind": with_another(
            f"{words.answer}: {{0}}\n\n{words.late}: {{3}}\n- {words.late}: {{3}}"
        ),
        "correction": with_another(words.wait.format("{2}", "{0}")),
        "Markdown": with_letters(f"### {words.answer}\n\n**{{0}}. {{1}}**"),
        "bullets": lambda options, taken: "\n".join(
            [
                *(f"* {text}" for text in options),
                "",
                f"**{words.answer}: {LETTERS[taken]}**",
            ]
        ),
    }
    for opens, closes in MARKS:
        thought = f"{opens}{words.answer}: {{2}}? {words.no}{closes}\n\n"
        made[f"thoughts in {opens}"] = with_another(thought + "{0}")
    for number, layout in enumerate(LAYOUTS):
        conclusion = CONCLUSIONS[number % len(CONCLUSIONS)]
        made[f"option by option {number + 1}"] = (
            lambda options, taken, layout=layout, conclusion=conclusion: _walk(
                words, options, taken, layout, conclusion
            )
        )
    return made
