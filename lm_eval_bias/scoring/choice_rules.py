r"""The grammar by which an answer with options is read: the rules of ``choice_rules.yaml``, applied to tokens.

A token is an option that is named (``#A`` by its letter, ``$A`` by its text, ``%C`` in other words for "unknown",
``$AB`` several), the kinds of a word (``choice_words.yaml``; ``_`` for none), or a mark (``•`` begins an item of a
list, ``::`` stands behind the name of a field or a box). A sentence that begins a line has a line feed before it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from lm_eval_bias.core.files import packaged_yaml

_TABLE = packaged_yaml("lm_eval_bias.scoring", "choice_rules.yaml")
_KINDS = (
    "answer option final so is right yet one not against modal know reply unknown reason if were but that than or no "
    "fix start question open object"
)
_PARTS = {
    "N": r"[#$%][A-L](?![A-L])",
    "W": r"[a-z_][\w/]*",
    **{kind: rf"(?<!\S)(?:\S*/)?{kind}(?:/\S*)?(?!\S)" for kind in _KINDS.split()},
    **_TABLE["parts"],
}


def _expanded(rule: str) -> str:
    return re.sub(r"<(\w+)>", lambda part: _expanded(_PARTS[part[1]]), rule)


@cache
def pattern(rule: str) -> re.Pattern[str]:
    """Compile an expression in which <N> is one option, <W> a word, and <answer> and the like a word of that kind."""
    return re.compile(_expanded(rule))


def has(rule: str, tokens: str) -> bool:
    """Return whether an expression is found in tokens."""
    return bool(pattern(rule).search(tokens))


def options(tokens: str) -> set[str]:
    """Return the options that tokens name, as A, B, C."""
    return set("".join(re.findall(r"[#$%]([A-L]+)", tokens)))


def replaced(tokens: str, *pairs: Sequence[str]) -> str:
    """Replace what each of some patterns matches."""
    for rule, by in pairs:
        tokens = pattern(rule).sub(by, tokens)
    return tokens


class ExtractionRule(NamedTuple):
    """A row of ``choice_rules.yaml``.

    Attributes:
        name: Its name.
        replaces: Patterns and replacements; empty for a form of statement.
        finds: Patterns whose last group is the option that a clause states; empty for a replacement.
    """

    name: str
    replaces: Sequence[Sequence[str]] = ()
    finds: Sequence[str] = ()

    def __call__(self, tokens: str) -> str:
        """Return the tokens with replacements, or the token of the stated option (empty if there is none)."""
        if self.replaces:
            return replaced(tokens, *self.replaces)
        matches = (pattern(rule).search(tokens) for rule in self.finds)
        return next((m[m.lastindex or 0] for m in matches if m), "")


def _rules(section: str) -> Iterator[ExtractionRule]:
    for name, row in _TABLE[section].items():
        yield ExtractionRule(name, row.get("replaces", ()), row.get("finds", ()))


MEANINGS = list(_rules("meanings"))
SENTENCES = list(_rules("sentences"))
FORMS = {rule.name: rule for rule in _rules("forms")}
FIRM = [FORMS[name] for name in ("final", "begins", "answer_is", "is_answer", "so")]
FINAL = FIRM[:1]
SOFT = [*FIRM, *(FORMS[name] for name in ("is_right", "it_is", "is_the_one"))]
# behind a correction
AGAIN = [*FIRM, *(FORMS[name] for name in ("is_right", "is_the_one", "restated"))]


def denied(clause: str) -> bool:
    """Return whether a clause denies, cites others' opinions, speculates or gives a reason.

    >>> denied("is not #B"), denied("#B modal _"), denied("is #B")
    (True, True, False)
    """
    might = r"<N> <modal>|<modal> (?:(?!<answer>)<W> ){0,2}<N>(?: <is>)?$"
    return has(
        rf"<not>|<against>|<if>|^<reason>|<but>$|<or>$|{might}", clause
    ) and not FORMS["is_the_one"](clause)


def corrects(clause: str) -> bool:
    """Return whether a clause revokes an earlier statement.

    >>> corrects("fix is #B"), corrects("no"), corrects("#B fix"), corrects("no #B")
    (True, True, True, False)
    """
    whole = (
        r"^(?:_ |<but> |<or> |<no> )*<fix>|^(?:_ )?<no>(?: <no>)*(?:$| ,)|<N> <fix>$"
    )
    return has(whole, clause) or (not options(clause) and has("<fix>", clause))


class Clause(NamedTuple):
    """A part of a sentence that may state an option.

    Attributes:
        tokens: What it says; behind ``^`` a whole sentence that begins the answer, or is alone on its line.
        denied: Whether it denies that, or leaves it open.
        asks: Whether it is part of a question.
        breaks_off: Whether it belongs to a last sentence that has no end.
    """

    tokens: str
    denied: bool
    asks: bool
    breaks_off: bool


def clauses(
    sentences: Sequence[str], skipped: Container[int] = (), cut: bool = False
) -> list[Clause]:
    """Split sentences into clauses at commas, dashes and the like; brackets count only if nothing else does.

    Another question, which base models write behind their answer, ends what is read.

    Args:
        sentences: Their tokens.
        skipped: Numbers of those that aren't read.
        cut: Whether the text was cut off.
    """
    found: list[Clause] = []
    is_open = cut or breaks_off(sentences)
    for number, sentence in enumerate(sentences):
        if number in skipped:
            continue
        if has(r"^\s*<question> :", sentence) and named(found):
            break
        bare = re.sub(r"\([^()]*(?:\)|$)", ";", sentence)
        bare = bare if options(bare) or "::" in bare else sentence
        # "The woman, a guest, was late."
        beside = (r"^(\s*<N>) [,–—-](?! <reason>| <not>)", r"\1 ·")
        for rule in SENTENCES:
            bare = rule(bare)
        whole = replaced(bare, *[beside] * bool(number))
        parts = pattern(r" ,(?! <that>)|(?:^| )[][;()|–—•-](?= |$)").split(whole)
        parts = [
            part.strip(" .?,\n") for part in parts if options(part) or has("<W>", part)
        ]
        following = "".join(sentences[number + 1 : number + 2])
        is_last = is_open and not following
        is_line = (
            sentence[0] == "\n" and following[:1] in "\n" and not has("<W>", sentence)
        )
        if (not number or (is_line and not (cut and is_last))) and (
            "#" in sentence or not is_last
        ):
            parts.insert(0, "^ " + sentence.strip("\n "))
        asks = sentence.endswith("?")
        found += [Clause(part, denied(part), asks, is_last) for part in parts]
    return found


def breaks_off(sentences: Sequence[str]) -> bool:
    r"""Return whether the text breaks off: its last sentence is unfinished where others aren't, or more was announced.

    >>> breaks_off(["\n _ _ .", " $A"]), breaks_off(["\n start _ , $A"]), breaks_off(["\n $A"])
    (True, True, False)
    """
    last = "".join(sentences[-1:])
    goes_on = len(sentences) > 1 and not has(r"^\n| #[A-L]$", last)
    within = r"<N> <open>$|<or>$|<that>$|^\s*(?:_ ){2}[^#$%]*, [$][A-L]$"
    is_open = goes_on or has(within, last) or has("<start>", " ".join(sentences))
    return is_open and not has(r"[.?]$", last)


def stated(parts: Sequence[Clause], forms: Sequence[ExtractionRule]) -> set[str]:
    """Return the option of the first statement in one of these forms, or of a statement that revokes it.

    Less firm statements of several options, none of which revokes another, are several.
    """
    soft = forms is SOFT
    taken: set[str] = set()
    revoked = False
    for tokens, is_denied, asks, is_open in parts:
        if is_open if soft else asks:
            continue
        revoked = revoked or corrects(tokens) or (soft and has("^<yet>", tokens))
        if is_denied or len(options(tokens)) != 1:
            continue
        if revoked:
            tokens = replaced(tokens, (r"^(?:_ )?(?:(?:<fix>|<no>|<but>|<or>) )+", ""))
        those = AGAIN if revoked else forms
        found = options("".join([rule(tokens) for rule in those]))
        if found and (revoked or not taken):
            taken, revoked = found, False
        elif soft:
            taken = taken | found
    return taken


def walks(sentences: Sequence[str]) -> dict[int, str]:
    r"""Find the longest enumeration: sentences that begin alike, each with another option.

    Returns:
        The numbers of the sentences, each with the letter of the option that it is about.

    >>> walks(["\n #A : not _", "\n #B : right", "\n so #B"])
    {0: 'A', 1: 'B'}
    """
    begun = r"^(?:\n )?(?:• )?(?:<answer> (?:: )?)?[#$%]([A-L])(?![A-L])(?: (?:[.:)–—|-]|::))?"
    rows: dict[str, dict[str, int]] = {}
    longest: dict[str, int] = {}
    for number, sentence in enumerate(sentences):
        match = pattern(begun).match(sentence)
        if not match:
            continue
        shape = re.sub("[A-L]", "", match[0]).replace("%", "$")
        if sentence == match[0] and shape.endswith("$"):
            shape = "\n $:"
        row = {} if match[1] in rows.get(shape, {}) else rows.get(shape, {})
        row = rows[shape] = {**row, match[1]: number}
        is_list = re.search(r"^\n.*[•a-z.:)|–—-]|[:)|–—-]$", shape)
        least = 2 if is_list else 3
        if len(row) >= max(least, len(longest) + 1):
            longest = row
    found = {number: letter for letter, number in longest.items()}
    # an item's second sentence is about its option, too
    for number in range(max(found, default=-1)):
        if number - 1 in found:
            found.setdefault(number, found[number - 1])
    return found


def ticked(sentences: Sequence[str], walk: Mapping[int, str]) -> set[str]:
    r"""Return the only option of an enumeration that is called right.

    >>> ticked(["\n #A : not _", "\n #B | right"], {0: "A", 1: "B"})
    {'B'}
    """
    signs: dict[str, str] = {}
    for number, letter in walk.items():
        sign = pattern("(<right>)|<not>|<against>").search(sentences[number])
        if sign:
            signs.setdefault(letter, sign[1] or "")
    right = {letter for letter, sign in signs.items() if sign}
    return right if len(right) == 1 else set()


def only_named(parts: Sequence[Clause], lettered: bool) -> set[str]:
    """Return the only option that is named and not denied.

    Args:
        parts: All clauses.
        lettered: Whether options have letters; where they don't, it is enough that this one isn't denied.
    """
    found = named(parts)
    for tokens, is_denied, *_ in parts if lettered else ():
        denies_another = has("<not>|<against>", tokens) and options(tokens) - found
        if is_denied and not denies_another:
            return set()
    whole = named([part for part in parts if not part.breaks_off])
    return found if found == whole and len(found) == 1 else set()


def says_unknown(tokens: str) -> bool:
    """Return whether a short text says that nothing is known.

    >>> says_unknown("_ not know"), says_unknown("unknown"), says_unknown("know")
    (True, True, False)
    """
    return has(
        r"^(?!(?:.*(?<!\S)_(?!\S)){4})(?:.*<unknown>|(?=.*<not>)(?=.*(?:<know>|<reply>)))",
        tokens,
    )


def named(parts: Sequence[Clause]) -> set[str]:
    """Return the options that are named and not denied."""
    return options(" ".join(part.tokens for part in parts if not part.denied))


def untold(parts: Sequence[Clause], unknown: str) -> bool:
    """Return whether a clause says that nothing is known, in the words of an option or in others.

    Args:
        parts: Clauses.
        unknown: The option that says so; empty if none does.
    """
    rule = rf"[$%]{unknown}(?![A-L])|<unknown>|^(?=.*<not>)(?=.*<know>)"
    texts = [
        part.tokens
        for part in parts
        if "#" not in part.tokens and len(options(part.tokens) - {unknown}) != 1
    ]
    return bool(unknown) and any(has(rule, tokens) for tokens in texts)
