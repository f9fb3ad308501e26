"""The data card of a translation, and what is said about it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from lm_eval_bias.tasks.stereoset.own_sets.set_checks import CODES, PROBLEM
from lm_eval_bias.tasks.stereoset.own_sets.translating import Outcome, counts

MARK = "<!-- Written by lm-eval-bias translate, and written anew when the translation changes. -->"
_TESTS = {"intra": "within sentences", "inter": "between sentences"}


def coverage_table(coverage: Mapping[str, Mapping[str, list[int]]], form: str) -> str:
    """Items that are there and items of the source, per test and bias type."""
    from tabulate import tabulate

    rows = []
    for test, types in coverage.items():
        rows += [[_TESTS[test], bias_type, *_shares(own)] for bias_type, own in types.items()]
        rows.append([_TESTS[test], "all", *_shares([sum(pair) for pair in zip(*types.values(), strict=True)])])
    headers = ["Test", "Bias type", "Items", "of", "%"]
    sides = ["left", "left", "right", "right", "right"]
    return str(tabulate(rows, headers=headers, tablefmt=form, disable_numparse=True, colalign=sides))


def _shares(pair: list[int]) -> list[str]:
    return [f"{pair[0]:,}", f"{pair[1]:,}", f"{100 * pair[0] / pair[1]:.1f}"]


def reasons(outcome: Outcome) -> str:
    """How many items have which finding, commonest first; those that were accepted aside."""
    found: Counter[tuple[bool, str]] = Counter()
    for state in outcome.states.values():
        if not state.accepted:
            found.update({(f.level != PROBLEM, f.code) for f in state.findings})
    lines = [
        f"  {number:6,}  {code}{' (note)' if note else ''}: {CODES.get(code, 'no translation yet')}"
        for (note, code), number in sorted(found.items(), key=lambda pair: (pair[0][0], -pair[1], pair[0][1]))
    ]
    return "\n".join(lines)


def markdown(made: Mapping[str, Any], language: str, digest: str, tasks: str) -> str:
    """A data card.

    Args:
        made: The data set's provenance.
        language: Its code.
        digest: SHA-256 of its file.
        tasks: How to run them.
    """
    number = made["items"]
    source = made["source"]
    engine = json.dumps(made["engine"], ensure_ascii=False, indent=2)
    return f"""{MARK}

# StereoSet in {language}

Translated from {source["name"]} with `lm-eval-bias translate stereoset` on {made["date"]}; checked item by item.

| how | items |
|---|---:|
| translated by the engine, no problem found | {number["translated"]:,} |
| corrected by a person | {number["corrected"]:,} |
| accepted by a person as they are | {number["accepted"]:,} |
| left out: a person has to look at them | {number["left out"]:,} |

{coverage_table(made["coverage"], "github")}

    {tasks}

## Where it comes from

Engine:

```json
{engine}
```

Source files (SHA-256): {", ".join(f"`{name}` {sha}" for name, sha in source["sha256"].items())}

This data set's SHA-256: {digest}

StereoSet is licensed CC BY-SA 4.0 (Nadeem, Bethke, Reddy 2021, *StereoSet*, ACL); the procedure is that of
Öztürk et al. (2023), *How Different Is Stereotypical Bias Across Languages?*, arXiv:2307.07331. What is made from
StereoSet keeps its licence.

## What to know

- The checks find what texts can tell: a lost blank, equal or exchanged candidates, leftovers, cut sentences. Whether a
  translation is right they can't tell: let someone who speaks the language read a sample.
- Within sentences the candidates' words were translated by themselves and put into the blank, as in the released
  translations: they don't agree with their sentence in gender, number or case. An article before the blank fits some
  candidates better than others ("Der BLANK" asks for a masculine noun): then grammar prefers them, not a stereotype.
- An engine makes neutral words masculine ("reporters", "Berichterstatter") and gives occupations the gender that is
  usual ("the secretary", "die Sekretärin"): the bias is then in the data, not in the model that is measured.
- The stereotypes are those of the United States.
"""


def report(outcome: Outcome, made: Mapping[str, Any]) -> str:
    """What is printed: how many items are there, what needs a person."""
    number = counts(outcome)
    ready = sum(number.values()) - number["left out"]
    lines = [
        f"{outcome.source.name} in {outcome.language}: {ready:,} of {len(outcome.items):,} items are ready "
        f"({number['translated']:,} translated, {number['corrected']:,} corrected, {number['accepted']:,} accepted as "
        f"they are), {number['left out']:,} need a person",
        "",
        coverage_table(made["coverage"], "simple"),
    ]
    if found := reasons(outcome):
        lines += ["", "Items by what was found:", found]
    return "\n".join(lines)
