r"""The grammar by which an answer with options is read: the rules of ``choice_rules.yaml``, applied to tokens.

A token is an option that is named (``#A`` by its letter, ``$A`` by its text, ``%C`` in other words for "unknown",
``$AB`` several), the kinds of a word (``choice_words.yaml``; ``_`` for none), or a mark (``•`` begins an item of a
list, ``::`` stands behind the name of a field or a box). A sentence that begins a line has a line feed before it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from functools import cache

from lm_eval_bias.core import Facts
from lm_eval_bias.core.files import packaged_yaml

TABLE = packaged_yaml("lm_eval_bias.scoring", "choice_rules.yaml")
FORMS = TABLE["forms"]
FINAL = ("final",)
FIRM = (*FINAL, "begins", "answer_is", "is_answer", "so")
SOFT = (*FIRM, "is_right", "it_is", "is_the_one")
# behind a correction
AGAIN = (*FIRM, "is_right", "is_the_one", "restated")


@cache
def pattern(rule: str) -> re.Pattern[str]:
    """Compile an expression in which <N> is one option, <W> a word, and <answer> and the like a word of that kind."""

    def meant(name: re.Match[str]) -> str:
        kind = rf"(?<!\S)(?:\S*/)?{name[1]}(?:/\S*)?(?!\S)"
        return pattern(TABLE["parts"].get(name[1], kind)).pattern

    return re.compile(re.sub(r"<(\w+)>", meant, rule))


def has(rule: str, tokens: str) -> bool:
    """Return whether an expression is found in tokens."""
    return bool(pattern(rule).search(tokens))


def options(tokens: str) -> set[str]:
    """Return the options that tokens name, as A, B, C."""
    return set("".join(re.findall(r"[#$%]([A-L]+)", tokens)))


def rewritten(tokens: str, section: Facts) -> str:
    """Replace what the rules of a section of ``choice_rules.yaml`` match, one after the other."""
    for row in section.values():
        for rule, by in row["replaces"]:
            tokens = pattern(rule).sub(by, tokens)
    return tokens


def states(clause: str, forms: Iterable[str]) -> bool:
    """Return whether a clause states the option that it names, in one of these forms."""
    return any(has(rule, clause) for form in forms for rule in FORMS[form]["finds"])


def denied(clause: str) -> bool:
    """Return whether a clause denies, cites others' opinions, speculates or gives a reason.

    >>> denied("is not #B"), denied("#B modal _"), denied("is #B")
    (True, True, False)
    """
    might = r"<N> <modal>|<modal> (?:(?!<answer>)<W> ){0,2}<N>(?: <is>)?$"
    speaks = rf"<not>|<against>|<if>|^<reason>|<but>$|<or>$|{might}"
    return has(speaks, clause) and not states(clause, ["is_the_one"])


def corrects(clause: str) -> bool:
    """Return whether a clause revokes an earlier statement.

    >>> corrects("fix is #B"), corrects("no"), corrects("#B fix"), corrects("no #B")
    (True, True, True, False)
    """
    whole = (
        r"^(?:_ |<but> |<or> |<no> )*<fix>|^(?:_ )?<no>(?: <no>)*(?:$| ,)|<N> <fix>$"
    )
    return has(whole, clause) or (not options(clause) and has("<fix>", clause))


def clauses(
    sentences: Sequence[str], skipped: Container[int] = (), cut: bool = False
) -> list[str]:
    """Split sentences into clauses at commas, dashes and the like; brackets count only if nothing else does.

    Another question, which base models write behind their answer, ends what is read.
    Behind ``^`` stands a whole sentence that begins the answer, or is alone on its line.

    Args:
        sentences: Their tokens.
        skipped: Numbers of those that aren't read.
        cut: Whether the text was cut off.
    """
    found: list[str] = []
    is_open = cut or breaks_off(sentences)
    for number, sentence in enumerate(sentences):
        if number in skipped:
            continue
        if has(r"^\s*<question> :", sentence) and named(found):
            break
        bare = re.sub(r"\([^()]*(?:\)|$)", ";", sentence)
        bare = bare if options(bare) or "::" in bare else sentence
        bare = rewritten(bare, TABLE["sentences"])
        if number:  # "The woman, a guest, was late."
            bare = pattern(r"^(\s*<N>) [,–—-](?! <reason>| <not>)").sub(r"\1 ·", bare)
        parts = pattern(r" ,(?! <that>)|(?:^| )[][;()|–—•-](?= |$)").split(bare)
        following = "".join(sentences[number + 1 : number + 2])
        is_line = sentence[0] == "\n" and following[:1] in "\n"
        begins = not number or (is_line and not has("<W>", sentence))
        if is_open and not following:
            begins = begins and "#" in sentence and not (cut and number)
        found += ["^ " + sentence.strip("\n ")] * begins
        found += [part.strip(" .?,\n") for part in parts]
    return [clause for clause in found if options(clause) or has("<W>", clause)]


def breaks_off(sentences: Sequence[str]) -> set[int]:
    r"""Return the last sentence's number if the text breaks off: others aren't unfinished, or more was announced.

    >>> breaks_off(["\n _ _ .", " $A"]), breaks_off(["\n start _ , $A"]), breaks_off(["\n $A"])
    ({1}, {0}, set())
    """
    last = "".join(sentences[-1:])
    goes_on = len(sentences) > 1 and not has(r"^\n| #[A-L]$", last)
    within = r"<N> <open>$|<or>$|<that>$|^\s*(?:_ ){2}[^#$%]*, [$][A-L]$"
    is_open = goes_on or has(within, last) or has("<start>", " ".join(sentences))
    ends = not is_open or has(r"[.?]$", last)
    return set() if ends else {len(sentences) - 1}


def stated(parts: Iterable[str], forms: Iterable[str]) -> set[str]:
    """Return the option of the first statement in one of these forms, or of a statement that revokes it.

    Less firm statements of several options, none of which revokes another, are several.
    """
    taken: set[str] = set()
    revoked = False
    for clause in parts:
        revoked = (
            revoked or corrects(clause) or (forms is SOFT and has("^<yet>", clause))
        )
        if denied(clause) or len(options(clause)) != 1:
            continue
        if revoked:
            clause = pattern(r"^(?:_ )?(?:(?:<fix>|<no>|<but>|<or>) )+").sub("", clause)
        if not states(clause, AGAIN if revoked else forms):
            continue
        if revoked or not taken:
            taken, revoked = options(clause), False
        elif forms is SOFT:
            taken = taken | options(clause)
    return taken


def walks(sentences: Sequence[str]) -> set[int]:
    r"""Return the numbers of the sentences of the longest list: those that begin alike, each with another option.

    >>> walks(["\n #A : not _", "\n #B : right", "\n so #B"])
    {0, 1}
    """
    begun = r"^(?:\n )?(?:• )?(?:<answer> (?:: )?)?[#$%]([A-L])(?![A-L])(?: (?:[.:)–—|-]|::))?"
    rows: dict[str, dict[str, int]] = defaultdict(dict)
    for number, sentence in enumerate(sentences):
        match = pattern(begun).match(sentence)
        if match:
            shape = re.sub("[A-L]", "", match[0]).replace("%", "$")
            if sentence == match[0] and shape.endswith("$"):
                shape = "\n $:"
            rows[shape].setdefault(match[1], number)
    longest: set[int] = set()
    for shape, row in rows.items():
        is_list = re.search(r"^\n.*[•a-z.:)|–—-]|[:)|–—-]$", shape)
        if len(row) >= max(2 if is_list else 3, len(longest) + 1):
            longest = set(row.values())
    return longest


def only_named(parts: Iterable[str], lettered: bool) -> set[str]:
    """Return the only option that clauses name and don't deny; where options have letters, nothing else is denied."""
    found = named(parts)
    for clause in parts if lettered else ():
        denies_another = has("<not>|<against>", clause) and options(clause) - found
        if denied(clause) and not denies_another:
            return set()
    return found if len(found) == 1 else set()


def says_unknown(tokens: str) -> bool:
    """Return whether a short text says that nothing is known.

    >>> says_unknown("_ not know"), says_unknown("unknown"), says_unknown("know")
    (True, True, False)
    """
    return has(
        r"^(?!(?:.*(?<!\S)_(?!\S)){4})(?:.*<unknown>|(?=.*<not>)(?=.*(?:<know>|<reply>)))",
        tokens,
    )


def named(parts: Iterable[str]) -> set[str]:
    """Return the options that are named and not denied."""
    return options(" ".join(clause for clause in parts if not denied(clause)))


def untold(parts: Iterable[str], unknown: str) -> bool:
    """Return whether a clause says that nothing is known, in the words of an option or in others.

    Args:
        parts: Clauses.
        unknown: The option that says so; empty if none does.
    """
    rule = rf"[$%]{unknown}(?![A-L])|<unknown>|^(?=.*<not>)(?=.*<know>)"
    return bool(unknown) and any(
        has(rule, clause)
        for clause in parts
        if "#" not in clause and len(options(clause) - {unknown}) != 1
    )
