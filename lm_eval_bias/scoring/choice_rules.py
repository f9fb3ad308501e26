r"""The grammar by which an answer with options is read: small rules over tokens, each with an example.

A token is an option that is named (``#A`` by its letter, ``$A`` by its text, ``%C`` in other words for "unknown",
``$AB`` several), the kinds of a word (``choice_words.yaml``; ``_`` for none), or a mark (``•`` begins an item of a
list, ``::`` stands behind the name of a field or a box). A sentence that begins a line has a line feed before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from typing import NamedTuple

Rule = Callable[[str], str]
_KINDS = (
    "answer option final so is right yet one not against modal know reply unknown reason if were but that than or no "
    "fix start question open object"
)
_PARTS = {
    "N": r"[#$%][A-L](?![A-L])",
    "W": r"[a-z_][\w/]*",
    **{kind: rf"(?<!\S)(?:\S*/)?{kind}(?:/\S*)?(?!\S)" for kind in _KINDS.split()},
}


@cache
def pattern(rule: str) -> re.Pattern[str]:
    """Compile an expression in which {N} is one option, {W} a word, and {answer} and the like a word of that kind."""
    return re.compile(rule.format_map(_PARTS))


def has(rule: str, tokens: str) -> bool:
    """Return whether an expression is found in tokens."""
    return bool(pattern(rule).search(tokens))


def options(tokens: str) -> set[str]:
    """Return the options that tokens name, as A, B, C."""
    return set("".join(re.findall(r"[#$%]([A-L]+)", tokens)))


def _found(rule: str, clause: str) -> str:
    """Return the token of the option that a rule finds; empty if it finds none."""
    match = pattern(rule).search(clause)
    return match[match.lastindex or 0] if match else ""


def _replaced(tokens: str, *pairs: tuple[str, str]) -> str:
    for rule, by in pairs:
        tokens = pattern(rule).sub(by, tokens)
    return tokens


def brackets(tokens: str) -> str:
    """Take a letter in brackets for an option.

    >>> brackets("( ^A )"), brackets("[ `B ]")
    ('#A', '#B')
    """
    return _replaced(tokens, (r"[(\[] [\^`]([A-L]) [)\]]", r"#\1"))


def small_letters(tokens: str) -> str:
    """Take a small letter for an option where it stands alone or beside "answer", else for a word.

    >>> small_letters("answer `B"), small_letters("_ `A _")
    ('answer ^B', '_ _ _')
    """
    beside = r"(?:{answer}|{option})"
    alone = rf"(^|[\n.•] |\A\n _ |{beside} (?:{{W}} ){{{{0,3}}}}(?:[:=] )?)`([A-L])(?= [.:,)\n]| {beside}| {{is}}|$)"
    return _replaced(tokens, (alone, r"\1^\2"), ("`[A-L]", "_"))


def articles(tokens: str) -> str:
    """Take a capital before a word for an article, a Korean one that is an object for a grade, others for options.

    >>> articles("^A _ is late"), articles("^B _"), articles("^A is right"), articles("^A object _")
    ('_ _ is late', '#B _', '#A is right', '_ object _')
    """
    grade = r"\^[A-L] (?={object})(?!\S+ (?:{answer}|{option}))"
    article = r"(^|[\n.•:,] )\^[AEIOY](?= _(?!\S)| \$[A-L]+ [a-z_])"
    return _replaced(tokens, (grade, "_ "), (article, r"\1_"), (r"\^([A-L])", r"#\1"))


def letter_and_text(tokens: str) -> str:
    """Take a letter and its own text for one option, and "option" beside a letter for a part of it.

    >>> letter_and_text("option #B : $B ."), letter_and_text("is $B ( option #B ) .")
    ('#B .', 'is #B .')
    """
    return _replaced(
        tokens,
        (r"{option} (?=#)|(?<=#[A-L]) {option}", ""),
        (r"(\n (?:• )?#([A-L]) [.:)]) \$[A-L]*\2[A-L]*(?=(?: \.)?(?: \n|$))", r"\1"),
        (
            r"#([A-L])(?: [.:,()–—|-]){{1,3}} \$[A-L]*\1[A-L]*(?= [.?:,;)–—|\n#-]| {or}| {is} \.|$)",
            r"#\1",
        ),
        (r"#([A-L])(?: [:,()–—|-]){{0,3}} \$[A-L]*\1[A-L]*", r"#\1"),
        (r"\$[A-L]*?([A-L])[A-L]*(?: [:()–—,-]){{0,3}} #\1(?: \))?", r"#\1"),
        (r"([#$%][A-L]+)(?: \1(?![A-L]))+", r"\1"),
    )


def answer_for_a(tokens: str) -> str:
    r"""Take "A:" before an answer for "answer:".

    >>> answer_for_a("\n #A : $B")
    '\n answer : $B'
    """
    return _replaced(
        tokens,
        (r"\A\n #A : (?![#$%]A)(?!.*\n (?:• )?#)", "\n answer : "),
        (r"\A\n #A [.)] (?=#[A-L](?: \.)?$)", "\n answer : "),
    )


def joined(tokens: str) -> str:
    """Join options with "or" between them, lists of them, and a letter with the text of another option.

    >>> joined("#A or #B"), joined("#A , #B or #C"), joined("#A . $B")
    ('$AB', '$ABC', '$AB')
    """
    two = r"[#$%]([A-L]+)(?:(?: [,)])? {or}(?: _(?!\S))?| [/&+]|) [#$%](?!\1)([A-L]+)"
    more = r"(?: [,;.()–—-]){{1,2}} [#$%]"
    other = r"#([A-L]) [.:)–—-] \$(?!\S*\1)([A-L]+)(?=(?: \.)? *(?:\n|$))"
    return _replaced(
        tokens,
        *[(two, r"$\1\2")] * 2,
        (r"[#$%]([A-L]+)(?: [,)]){{1,2}} \$([A-L]{{2,}})", r"$\1\2"),
        (rf"[#$%]([A-L]+){more}(?!\1)([A-L]+){more}(?!\1|\2)([A-L]+)", r"$\1\2\3"),
        (r"\$([A-L]{{3,}})(?: [,;)])+ [#$%]([A-L]+)", r"$\1\2"),
        (other, r"$\1\2"),
    )


MEANINGS = [brackets, small_letters, articles, answer_for_a, letter_and_text, joined]


def suppositions(sentence: str) -> str:
    """Leave out suppositions.

    >>> suppositions("if _ , answer is #B , but #C"), suppositions("were _ , is #B .")
    ('if but #C', 'if ')
    """
    beginning = (r"^(\s*)({were} )", r"\1if \2")
    return _replaced(sentence, beginning, (r"{if}(?:(?!{but})[^;])*", "if "))


def contrasts(sentence: str) -> str:
    """Separate an option from the one it is compared with, and a statement from its denial or others' opinions.

    >>> contrasts("#B than #A"), contrasts("against _ , #A"), contrasts("_ not : #B")
    ('#B ; against #A', 'against _ #A', '_ not ; #B')
    """
    return _replaced(
        sentence,
        (r"({N}) (?:{than}|(?={not})) ?(?={N}|{not} {N})", r"\1 ; against "),
        (r"({answer}|{option}) [–—-] (?={N})", r"\1 : "),
        (r"({against}[^#$%.;,:]{{0,200}}) [,:] (?={N}(?: [.?]|$))", r"\1 "),
        (r"(?= {so}(?: {is})? {N}(?: \.)?$)|(?<=[#$%][A-L])(?= {fix} {N})", " ;"),
        (r"((?:{not}|{fix})[^:;,]{{0,200}}) : (?=[#$%])", r"\1 ; "),
    )


def denied(clause: str) -> bool:
    """Return whether a clause denies, cites others' opinions, speculates or gives a reason.

    >>> denied("is not #B"), denied("#B modal _"), denied("is #B")
    (True, True, False)
    """
    might = r"{N} {modal}|{modal} (?:(?!{answer}){W} ){{0,2}}{N}(?: {is})?$"
    return has(
        rf"{{not}}|{{against}}|{{if}}|^{{reason}}|{{but}}$|{{or}}$|{might}", clause
    ) and not is_the_one(clause)


def corrects(clause: str) -> bool:
    """Return whether a clause revokes an earlier statement.

    >>> corrects("fix is #B"), corrects("no"), corrects("#B fix"), corrects("no #B")
    (True, True, True, False)
    """
    whole = (
        r"^(?:_ |{but} |{or} |{no} )*{fix}|^(?:_ )?{no}(?: {no})*(?:$| ,)|{N} {fix}$"
    )
    return has(whole, clause) or (not options(clause) and has("{fix}", clause))


# forms of statements: in a frame, firm, and less firm


def final(clause: str) -> str:
    """Take X in a box, a tag or a field of JSON, and of "final answer: X".

    >>> final("answer :: #B"), final("_ final answer is #B")
    ('#B', '#B')
    """
    return _found(
        r"(?:{answer}|{option}|{right}) ::(?: {W})* ({N})|{final}[^#$%.]* ({N})(?: {is})?$",
        clause,
    )


def answer_is(clause: str) -> str:
    """Take X of "the answer is X", "I choose X", "correct is X".

    >>> answer_is("_ right answer is #C"), answer_is("_ answer #C reason _"), answer_is("right is #C")
    ('#C', '#C', '#C')
    """
    statement = r"{answer}(?: {W}){{0,5}}?(?: :)?(?: {W}){{0,2}} ({N})(?! (?:(?!{reason}){W} ){{2}})"
    return _found(
        rf"{statement}|{{right}}(?: {{W}}){{{{0,3}}}} ({{N}})(?: {{is}})?$", clause
    )


def is_answer(clause: str) -> str:
    """Take X of "X is my answer".

    >>> is_answer("#C is _ answer")
    '#C'
    """
    return _found(r"({N})(?: {W}){{0,3}} {answer}", clause)


def so(clause: str) -> str:
    """Take X of "so X", "that leaves X".

    >>> so("so #C"), so("_ so #C _")
    ('#C', '#C')
    """
    return _found(r"{so}(?: {is})*(?: {W}(?: {is})*){{0,2}} ({N})(?: {W})?$", clause)


def is_right(clause: str) -> str:
    """Take X of "X is correct".

    >>> is_right("#C is right")
    '#C'
    """
    return _found(r"({N})(?: {W}){{0,3}} {right}", clause)


def it_is(clause: str) -> str:
    """Take X at the end of "it was X", and behind few words.

    >>> it_is("is $B"), it_is("_ $B"), it_is("$B")
    ('$B', '$B', '$B')
    """
    return _found(r"(?:(?:{is}|[:=→])|^(?:{W} |\S ){{0,4}}) ?({N})(?: {is})?$", clause)


def is_the_one(clause: str) -> str:
    """Take X of "X is the one who isn't ...", "it is X who ...", "who isn't ... is X".

    >>> is_the_one("$B one that not"), is_the_one("is $B that _"), is_the_one("that not _ is $B")
    ('$B', '$B', '$B')
    """
    asserted = r"^(?:(?!{not}|{against})[^#$%])*?"
    return (
        _found(rf"{asserted}({{N}}) {{one}}", clause)
        or _found(
            r"^(?:{so}|(?:{W} ){{0,2}}{is}) (?:{W} )?({N}) (?:{W} )?{that}", clause
        )
        or _found(
            rf"{asserted}(?:{{that}} [^#$%]*{{not}}[^#$%]*{{is}}|{{not}} {{that}}) ({{N}})(?: {{is}})?$",
            clause,
        )
    )


def restated(clause: str) -> str:
    """Take X of a short clause behind a correction: by its letter, or alone.

    >>> restated("_ #B _"), restated("_ is $B"), restated("_ know $B _")
    ('#B', '$B', '')
    """
    letter = r"^(?:{W} |[,:] ){{0,4}}(#[A-L])(?: {W})?$"
    return _found(rf"{letter}|(?:^|{{is}} )({{N}})(?: {{is}})?$", clause)


def begins(sentence: str) -> str:
    r"""Take X at the beginning of an answer or alone on a line: nothing else, or a reason behind it.

    >>> begins("^ #A ."), begins("^ $B , reason _"), begins("^ #A – _ _"), begins("^ #A is _")
    ('#A', '$B', '#A', '')
    """
    mark = r"^\^ (?:• )?(?:[=→>–-] )?"
    alone = rf"{mark}(?:_ (?=#))?({{N}})(?: (?!{{modal}}){{is}})?(?: [.:)])*$"
    reason = r"(?: (?:{W} )?{reason}| {not} [#$])"
    apart = r" [.,;:–—-](?! (?:{that}|{is}|{modal}|[#$%]))"
    letter = rf"{mark}(#[A-L])(?={reason}|{apart})"
    text = rf"{mark}([$%][A-L])(?=(?: [,;–—-])?{reason})"
    return _found(rf"{alone}|{letter}|{text}", sentence)


FINAL = [final]
FIRM = [final, begins, answer_is, is_answer, so]
SOFT = [*FIRM, is_right, it_is, is_the_one]
AGAIN = [*FIRM, is_right, is_the_one, restated]  # behind a correction


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
        if has(r"^\s*{question} :", sentence) and named(found):
            break
        bare = re.sub(r"\([^()]*(?:\)|$)", ";", sentence)
        bare = bare if options(bare) or "::" in bare else sentence
        # "The woman, a guest, was late."
        beside = (r"^(\s*{N}) [,–—-](?! {reason}| {not})", r"\1 ·")
        whole = _replaced(contrasts(suppositions(bare)), *[beside] * bool(number))
        parts = pattern(r" ,(?! {that})|(?:^| )[][;()|–—•-](?= |$)").split(whole)
        parts = [
            part.strip(" .?,\n") for part in parts if options(part) or has("{W}", part)
        ]
        following = "".join(sentences[number + 1 : number + 2])
        is_last = is_open and not following
        is_line = (
            sentence[0] == "\n" and following[:1] in "\n" and not has("{W}", sentence)
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
    within = r"{N} {open}$|{or}$|{that}$|^\s*(?:_ ){{2}}[^#$%]*, [$][A-L]$"
    is_open = goes_on or has(within, last) or has("{start}", " ".join(sentences))
    return is_open and not has(r"[.?]$", last)


def stated(parts: Sequence[Clause], forms: Sequence[Rule]) -> set[str]:
    """Return the option of the first statement in one of these forms, or of a statement that revokes it.

    Less firm statements of several options, none of which revokes another, are several.
    """
    soft = forms is SOFT
    taken: set[str] = set()
    revoked = False
    for tokens, is_denied, asks, is_open in parts:
        if is_open if soft else asks:
            continue
        revoked = revoked or corrects(tokens) or (soft and has("^{yet}", tokens))
        if is_denied or len(options(tokens)) != 1:
            continue
        if revoked:
            tokens = _replaced(tokens, (r"^(?:_ )?(?:(?:{fix}|{no}|{but}|{or}) )+", ""))
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
    begun = r"^(?:\n )?(?:• )?(?:{answer} (?:: )?)?[#$%]([A-L])(?![A-L])(?: (?:[.:)–—|-]|::))?"
    rows: dict[str, dict[str, int]] = {}
    longest: dict[str, int] = {}
    for number, sentence in enumerate(sentences):
        match = pattern(begun).match(sentence)
        if not match:
            continue
        shape = re.sub("[A-L]", "", match[0]).replace("%", "$")
        if sentence == match[0] and shape[-1] in "#$":
            shape = "\n $!" if "$" in shape else shape + "!"
        row = rows.get(shape, {})
        is_apart = shape == "\n $!" and number - 1 not in row.values()
        row = rows[shape] = {
            **({} if match[1] in row or is_apart else row),
            match[1]: number,
        }
        alike = {bool(begins("^ " + sentences[at].strip())) for at in row.values()}
        strong = len(alike) == 1 and re.search(
            r"^\n.*[•a-z.:)|–—-]|\$!|[:)|–—-]$", shape
        )
        least = 2 if strong else 3 if re.search(r"[\n.]", shape) else 99
        if len(row) >= max(least, len(longest) + 1):
            longest = row
    found = {number: letter for letter, number in longest.items()}
    last = max(found, default=-1)
    for number, sentence in enumerate(sentences):
        goes_on = number < last or (
            sentences[last][0] == "\n" and not re.match(r"\n (?!•)", sentence)
        )
        if number - 1 in found and goes_on:
            found.setdefault(number, found[number - 1])
    return found


def ticked(sentences: Sequence[str], walk: Mapping[int, str]) -> set[str]:
    r"""Return the only option of an enumeration that is called right.

    >>> ticked(["\n #A : not _", "\n #B | right"], {0: "A", 1: "B"})
    {'B'}
    """
    signs: dict[str, str] = {}
    for number, letter in walk.items():
        sign = pattern("({right})|{not}|{against}").search(sentences[number])
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
    for part in [part for part in parts if part.tokens[0] != "^"]:
        denial = has("{not}|{against}|{N} {modal}", part.tokens)
        others = options(part.tokens) - found
        if lettered and part.denied and not (denial and others):
            return set()
        if denial and options(part.tokens) & found and not lettered:
            return set()
    whole = named([part for part in parts if not part.breaks_off])
    announced = (
        parts[-1:]
        and parts[-1].breaks_off
        and has("{start}", " ".join(part.tokens for part in parts))
    )
    return found if found == whole and len(found) == 1 and not announced else set()


def says_unknown(tokens: str) -> bool:
    """Return whether a short text says that nothing is known.

    >>> says_unknown("_ not know"), says_unknown("unknown"), says_unknown("know")
    (True, True, False)
    """
    return has(
        r"^(?!(?:.*(?<!\S)_(?!\S)){{4}})(?:.*{unknown}|(?=.*{not})(?=.*(?:{know}|{reply})))",
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
    rule = rf"[$%]{unknown}(?![A-L])|{{unknown}}|^(?=.*{{not}})(?=.*{{know}})"
    texts = [
        part.tokens
        for part in parts
        if "#" not in part.tokens and len(options(part.tokens) - {unknown}) != 1
    ]
    return bool(unknown) and any(has(rule, tokens) for tokens in texts)
