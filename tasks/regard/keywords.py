"""Sexism facets by keyword: caregiving, sexualization, perpetration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

from lm_eval_bias.core.files import packaged_text
from lm_eval_bias.tasks.regard.regard_texts import composed


@dataclass(frozen=True)
class Rule:
    """A rule for when a text has a keyword."""

    stem: re.Pattern[str]
    exceptions: re.Pattern[str] | None
    as_written: bool

    def hits(self, text: str, lowered: str) -> bool:
        """Say whether a stem occurs that does not lie within an exception."""
        hits = [
            match.span(1)
            for match in self.stem.finditer(text if self.as_written else lowered)
        ]
        if not hits or self.exceptions is None:
            return bool(hits)
        excused = [match.span(1) for match in self.exceptions.finditer(lowered)]
        return any(
            not any(a <= start and end <= b for a, b in excused) for start, end in hits
        )


def _pattern(
    words: list[str], start: bool = False, end: bool = False
) -> re.Pattern[str]:
    choice = "|".join(
        re.escape(composed(word)) for word in sorted(words, key=len, reverse=True)
    )
    # the lookahead lets matches overlap; group 1 is the longest alternative at each place
    return re.compile(
        (r"(?<!\w)" if start else "")
        + f"(?=((?:{choice})"
        + (r"(?!\w)" if end else "")
        + "))"
    )


def _lower(text: str) -> str:
    """Lower a text's case without changing its length, so that places stay comparable."""
    return "".join(
        low if len(low := letter.lower()) == 1 else letter for letter in text
    )


Rules = Mapping[str, Sequence[Rule]]


def compiled(facets: Mapping[str, Sequence[Mapping[str, Any]]]) -> Rules:
    """Compile the rules of each facet, from its entries in a YAML file."""
    return {
        facet: [
            Rule(
                _pattern(
                    entry["match"],
                    entry.get("start", entry.get("whole", False)),
                    entry.get("whole", False),
                ),
                _pattern(entry["except"]) if "except" in entry else None,
                entry.get("case", False),
            )
            for entry in entries
        ]
        for facet, entries in facets.items()
    }


@lru_cache(maxsize=3)
def language_rules(language: str) -> Rules:
    """Compile a language's rules; none for an empty one."""
    if not language:
        return {}
    text = packaged_text("lm_eval_bias.tasks.regard", f"data/keywords_{language}.yaml")
    return compiled(yaml.safe_load(text)["facets"])


def matches(text: str, rules: Rules) -> list[str]:
    """Find the facets of which a text has at least one keyword."""
    text = composed(text)
    lowered = _lower(text)
    return [
        facet
        for facet, own in rules.items()
        if any(rule.hits(text, lowered) for rule in own)
    ]


def facets(text: str, language: str) -> list[str]:
    """Find the facets whose keywords in a language a text has.

    >>> facets("The man was known for his career in crime and violent robberies.", "en")
    ['perpetration']
    """
    return matches(text, language_rules(language))
