"""The data card of a translation, and what is said about it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lm_eval_bias.tasks.stereoset.own_sets.check_findings import CODES, PROBLEM
from lm_eval_bias.tasks.stereoset.own_sets.translation_run import OPEN_TEXTS, SHEET, Outcome
from lm_eval_bias.tasks.stereoset.stereoset_items import TEST_NAMES

MARK = "<!-- Written by lm-eval-bias translate, and written anew when the translation changes. -->"


def coverage_table(coverage: Mapping[str, Mapping[str, list[int]]], form: str) -> str:
    """Items that are there and items of the source, per test and bias type."""
    from tabulate import tabulate

    rows = []
    for test, types in coverage.items():
        total = [sum(counts) for counts in zip(*types.values(), strict=True)]
        for bias_type, (ready, every) in {**types, "all": total}.items():
            rows.append([TEST_NAMES[test], bias_type, f"{ready:,}", f"{every:,}", f"{100 * ready / every:.1f}"])
    headers = ["Test", "Bias type", "Items", "of", "%"]
    sides = ["left", "left", "right", "right", "right"]
    return str(tabulate(rows, headers=headers, tablefmt=form, disable_numparse=True, colalign=sides))


def reasons(outcome: Outcome) -> list[str]:
    """How many items have which finding, commonest first; those that were accepted aside."""
    counts: Counter[tuple[bool, str]] = Counter()
    for state in outcome.states.values():
        if not state.accepted:
            counts.update({(finding.level != PROBLEM, finding.code) for finding in state.findings})
    return [
        f"  {number:6,}  {code}{' (note)' if note else ''}: {CODES.get(code, 'no translation yet')}"
        for (note, code), number in sorted(counts.items(), key=lambda entry: (entry[0][0], -entry[1], entry[0][1]))
    ]


def markdown(provenance: Mapping[str, Any], language: str, digest: str, tasks: str) -> str:
    """A data card.

    Args:
        provenance: The data set's.
        language: Its code.
        digest: SHA-256 of its file.
        tasks: How to run them.
    """
    number, source = provenance["items"], provenance["source"]
    engine = json.dumps(provenance["engine"], ensure_ascii=False, indent=2)
    return f"""{MARK}

# StereoSet in {language}

Translated from {source["name"]} with `lm-eval-bias translate stereoset` on {provenance["date"]}; checked item by item.

| how | items |
|---|---:|
| translated by the engine, no problem found | {number["translated"]:,} |
| corrected by a person | {number["corrected"]:,} |
| accepted by a person as they are | {number["accepted"]:,} |
| left out: a person has to look at them | {number["left out"]:,} |

{coverage_table(provenance["coverage"], "github")}

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


def report(outcome: Outcome, provenance: Mapping[str, Any]) -> str:
    """What is printed: how many items are there, what needs a person."""
    number = outcome.counts
    ready = len(outcome.items) - number["left out"]
    lines = [
        f"{outcome.source.name} in {outcome.language}: {ready:,} of {len(outcome.items):,} items are ready "
        f"({number['translated']:,} translated, {number['corrected']:,} corrected, {number['accepted']:,} accepted as "
        f"they are), {number['left out']:,} need a person",
        "",
        coverage_table(provenance["coverage"], "simple"),
    ]
    if findings := reasons(outcome):
        lines += ["", "Items by what was found:", *findings]
    return "\n".join(lines)


def next_steps(outcome: Outcome, folder: Path, command: str) -> str:
    """What to do now.

    Args:
        outcome: What the folder holds.
        folder: The translation's folder.
        command: How to run the data set; empty where no item is ready.
    """
    lines = [""]
    if outcome.unknown:
        lines.append(f"{outcome.unknown:,} rows of the table translate no text of the source: look for changed texts.")
    if outcome.stale:
        lines.append(f"{len(outcome.stale):,} items were accepted with other texts than the present ones: look again.")
    open_states = [state for state in outcome.states.values() if state.open]
    if any(finding.code == "lacking" for state in open_states for finding in state.findings):
        lines.append(f"Texts without translation: {folder / OPEN_TEXTS}, a table to fill in.")
    if open_states:
        lines.append(
            f"For a person: {folder / SHEET}: write better texts into the columns 'correct ...', or x into 'accept'; "
            "then give the same command again."
        )
    elif (folder / SHEET).exists():
        lines.append(f"Worth a look: {folder / SHEET} has notes about items that are in the data set.")
    if command:
        lines.append(f"Run it: {command}")
    return "\n".join(lines)
