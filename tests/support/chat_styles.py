"""How chat models write that they take an option, in eight languages (``chat_words.yaml``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import yaml

from tests.support.places import ROOT

LETTERS = "ABC"
TEXTS = yaml.safe_load(
    (ROOT / "tests" / "support" / "chat_words.yaml").read_text(encoding="utf-8")
)
WORDS = TEXTS["words"]
MARKS = list(map(tuple, TEXTS["marks"]))  # what stands around thoughts


def _walk(language: str, options: Sequence[str], taken: int, number: int) -> str:
    """Go through the options in a layout, and conclude."""
    words = WORDS[language]
    lines = []
    for place, text in enumerate(options):
        told = words["yes" if place == taken else "no"]
        lines.append(
            TEXTS["layouts"][number].format(LETTERS[place], text, told, words["option"])
        )
    letter, text = LETTERS[taken], options[taken]
    end = TEXTS["conclusions"][number % len(TEXTS["conclusions"])]
    said = end.format(
        letter, text, answer=words["answer"], so=words["so"].format(letter)
    )
    return "\n".join([*lines, "", said])


def styles(language: str) -> dict[str, Callable[[Sequence[str], int], str]]:
    """List ways to write an answer: from the options' texts and the place of the one that is taken."""
    words = WORDS[language]
    answer, late, yes = words["answer"], words["late"], words["yes"]
    # {0} the letter, {1} the text, {2} another option's letter, {3} its text
    templates = {
        "letter": "{0}",
        "(letter)": "({0})",
        "bold letter": "**{0}**",
        "letter) text": "{0}) {1}",
        "letter. text": "**{0}. {1}**",
        "text": "{1}",
        "text.": "{1}.",
        "answer: text": f"{answer}: {{1}}",
        "option letter: text": words["option"] + " {0}: {1}.",
        "tag": "<answer>{0}</answer>",
        "JSON": '{{"answer": "{0}"}}',
        "reason first": f"{words['reason']} {answer}: {{0}}",
        "reason above": f"{words['reason']}\n\n{words['so'].replace('{}', '{0}')}",
        "reason behind": f"{{0}}. {{1}}. {yes}",
        "name again": "({0}) {1}. " + words["unlike"].replace("{}", "{1}"),
        "facts behind": f"{answer}: {{0}}\n\n{late}: {{3}}\n- {late}: {{3}}",
        "correction": words["wait"].format("{2}", "{0}"),
        "Markdown": f"### {answer}\n\n**{{0}}. {{1}}**",
    }
    for opens, closes in MARKS:
        thought = f"{opens}{answer}: {{2}}? {words['no']}{closes}\n\n{{0}}"
        templates[f"thoughts in {opens}"] = thought

    def written(template: str) -> Callable[[Sequence[str], int], str]:
        def write(options: Sequence[str], taken: int) -> str:
            other = (taken + 1) % len(options)
            return template.format(
                LETTERS[taken], options[taken], LETTERS[other], options[other]
            )

        return write

    made = {name: written(template) for name, template in templates.items()}
    for number in range(len(TEXTS["layouts"])):
        made[f"option by option {number + 1}"] = lambda options, taken, number=number: (
            _walk(language, options, taken, number)
        )
    return made
