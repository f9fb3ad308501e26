"""Sexism facets by keyword: caregiving, sexualization, perpetration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lm_eval_bias.core import Facts
from lm_eval_bias.core.files import packaged_yaml
from lm_eval_bias.tasks.regard.regard_texts import composed


@dataclass(frozen=True)
class Rule:
    """A rule for when a text has a keyword."""

    stem: re.Pattern[str]
    exceptions: re.Pattern[str] | None
    as_written: bool

    def hits(self, text: str, lowered: str) -> bool:
        """Return whether a stem occurs outside of the exceptions."""
        exceptions = []
        if self.exceptions is not None:
            exceptions = [match.span(1) for match in self.exceptions.finditer(lowered)]
        for match in self.stem.finditer(text if self.as_written else lowered):
            start, end = match.span(1)
            if not any(a <= start and end <= b for a, b in exceptions):
                return True
        return False


def _pattern(
    words: list[str], start: bool = False, end: bool = False
) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    choice = "|".join(re.escape(composed(word)) for word in longest_first)
    before = r"(?<!\w)" if start else ""
    after = r"(?!\w)" if end else ""
    # the lookahead lets matches overlap; group 1 is the longest alternative at each place
    return re.compile(f"{before}(?=((?:{choice}){after}))")


def _lower(text: str) -> str:
    """Lower a text's case without changing its length, so that indices stay valid."""
    lowered = map(str.lower, text)
    return "".join(
        low if len(low) == 1 else letter
        for low, letter in zip(lowered, text, strict=True)
    )


Rules = Mapping[str, Sequence[Rule]]


def compiled(facets: Mapping[str, Sequence[Facts]]) -> Rules:
    """Compile the rules of each facet, from its entries in a YAML file."""
    rules: dict[str, list[Rule]] = {}
    for facet, entries in facets.items():
        rules[facet] = []
        for entry in entries:
            whole = entry.get("whole", False)
            stem = _pattern(entry["match"], entry.get("start", whole), whole)
            exceptions = _pattern(entry["except"]) if "except" in entry else None
            rules[facet].append(Rule(stem, exceptions, entry.get("case", False)))
    return rules


@lru_cache(maxsize=3)
def language_rules(language: str) -> Rules:
    """Compile a language's rules; none for an empty one."""
    if not language:
        return {}
    file = f"data/keywords_{language}.yaml"
    return compiled(packaged_yaml("lm_eval_bias.tasks.regard", file)["facets"])


def matches(text: str, rules: Rules) -> list[str]:
    """Find the facets of which a text has at least one keyword."""
    text = composed(text)
    lowered = _lower(text)
    hit = []
    for facet, of_facet in rules.items():
        if any(rule.hits(text, lowered) for rule in of_facet):
            hit.append(facet)
    return hit


def facets(text: str, language: str) -> list[str]:
    """Find the facets whose keywords in a language a text has.

    >>> facets("The man was known for his career in crime and violent robberies.", "en")
    ['perpetration']
    """
    return matches(text, language_rules(language))
