"""Reads and checks a user's keywords: a YAML with the words of each facet, in the form of regard's own files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from lm_eval_bias.custom_metrics.own_prompts import WORDS
from lm_eval_bias.custom_metrics.regard import OTHER, REGARDS
from lm_eval_bias.errors import BiasError, did_you_mean
from lm_eval_bias.files import LARGEST_YAML, expanded, parse_yaml, read_text, why
from lm_eval_bias.tasks.own_prompts.prompt_file import check_name
from lm_eval_bias.tasks.regard import keywords
from lm_eval_bias.tasks.regard.keywords import Rules

Entries = dict[str, list[dict[str, Any]]]
MOST = 5_000  # words
_FLAGS = ("start", "whole", "case")
_FIELDS = ("keyword", "match", "except", *_FLAGS)


def _texts(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(v, str) and v.strip() for v in value):
        raise BiasError(f'{where}: must be a list of texts (quote words such as "no" and "1")')
    return [str(text) for text in value]


def _entry(raw: Any, where: str) -> dict[str, Any]:
    if isinstance(raw, str) and raw.strip():
        return {"keyword": raw.strip(), "match": [raw.strip().lower()], "whole": True}
    if not isinstance(raw, Mapping):
        raise BiasError(
            f'{where}: must be a word (quote words such as "no" and "1") or a mapping with keyword and match'
        )
    for field in raw:
        if field not in _FIELDS:
            hint = did_you_mean(str(field), _FIELDS)
            raise BiasError(f"{where}: unknown field {str(field)[:40]!r}.{hint} Known: {', '.join(_FIELDS)}")
    entry: dict[str, Any] = {"match": _texts(raw.get("match"), f"{where}, match")}
    entry["keyword"] = raw.get("keyword", entry["match"][0])
    if not isinstance(entry["keyword"], str) or not entry["keyword"].strip():
        raise BiasError(f"{where}, keyword: must be a text")
    if "except" in raw:
        entry["except"] = _texts(raw["except"], f"{where}, except")
    for flag in _FLAGS:
        if not isinstance(raw.get(flag, False), bool):
            raise BiasError(f"{where}, {flag}: must be true or false")
        entry |= {flag: True} if raw.get(flag) else {}
    if not entry.get("case") and any(text != text.lower() for text in entry["match"]):
        raise BiasError(
            f"{where}, match: texts are searched in lower case: write the match in lower case, or add case: true"
        )
    return entry


def read(path: Any) -> Entries:
    """The entries of each facet.

    Raises:
        BiasError: A file that can't be read, or says something else.
    """
    if not isinstance(path, str):
        raise BiasError(f"--metadata keywords={path!r}: must be the path of a YAML file")
    where = f"keywords file {path}"
    try:
        content = parse_yaml(read_text(expanded(path), "utf-8-sig", LARGEST_YAML), where)
    except UnicodeDecodeError as error:
        raise BiasError(f"{where}: byte {error.start} is not UTF-8: save it as UTF-8") from error
    except OSError as error:
        raise BiasError(f"{where} cannot be read: {why(error)}") from error
    facets = content.get("facets") if isinstance(content, dict) else None
    if not isinstance(facets, dict) or not facets:
        raise BiasError(f"{where}: must map facets to lists of words under 'facets'")
    entries: Entries = {}
    for name, listed in facets.items():
        at = f"{where}: facet {str(name)[:60]!r}"
        if not isinstance(name, str) or not isinstance(listed, list) or not listed:
            raise BiasError(f"{at}: must be a name with a list of words")
        if check_name(name.strip(), at) in (*REGARDS, OTHER, WORDS, "dropped", "unfinished", "distinct"):
            raise BiasError(f"{at} is the name of another score: choose another")
        if name.strip() in entries:
            raise BiasError(f"{at} appears twice")
        entries[name.strip()] = [_entry(raw, f"{at}, entry {number}") for number, raw in enumerate(listed, start=1)]
    if sum(len(entry["match"]) for own in entries.values() for entry in own) > MOST:
        raise BiasError(f"{where}: more than {MOST:,} words")
    return entries


@lru_cache(maxsize=8)
def _rules(text: str) -> Rules:
    return keywords.compiled(json.loads(text))


def facets(text: str, used: Any) -> list[str]:
    """The facets of which a text has at least one keyword.

    Args:
        text: The text.
        used: A language that has keywords of its own, or the entries of a file; nothing for none.
    """
    if not used:
        return []
    if isinstance(used, str):
        return keywords.facets(text, used)
    rules = _rules(json.dumps(used, sort_keys=True))
    return [facet for facet, hits in keywords.matches(text, rules).items() if hits]
