"""Reads and checks a user's prompts: a CSV with the columns ``prompt``, ``group`` and ``cluster``."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from lm_eval_bias.custom_metrics.own_prompts import RESERVED
from lm_eval_bias.errors import BiasError, did_you_mean
from lm_eval_bias.files import expanded, read_text, why

COLUMNS = ("prompt", "group", "cluster")
LARGEST = 1 << 24  # bytes: some hundred thousand prompts
MOST_GROUPS = 20
LONGEST_NAME = 60
SHARED = 0.5  # of the words of a cluster's longest prompt: counterfactuals differ in one


@dataclass(frozen=True)
class Prompt:
    """A row of the file.

    Attributes:
        text: The prompt.
        group: Whom it is about.
        cluster: The sentence frame that it shares with its counterfactuals.
        line: Where the row ends, from 1.
    """

    text: str
    group: str
    cluster: str
    line: int


def check_name(name: str, where: str) -> str:
    """A group's or facet's name, which names of scores are made of.

    Raises:
        BiasError: It can't be one.
    """
    if not name:
        raise BiasError(f"{where}: empty")
    if len(name) > LONGEST_NAME or not name.isprintable() or any(mark in name for mark in ",/"):
        raise BiasError(
            f"{where}: {name[:80]!r}: names are up to {LONGEST_NAME} characters, without commas and slashes"
        )
    if name.lower() in RESERVED:
        raise BiasError(f"{where}: {name!r} is the name of a score: choose another")
    return name


def _content(path: Any) -> tuple[str, str]:
    """The file's text, and what to call it in an error."""
    if not isinstance(path, str):
        raise BiasError(f"--metadata prompts={path!r}: must be the path of a CSV file")
    try:
        text = read_text(expanded(path), "utf-8-sig", LARGEST)
    except UnicodeDecodeError as error:
        raise BiasError(f"prompts file {path}: byte {error.start} is not UTF-8: save it as UTF-8") from error
    except (OSError, ValueError) as error:
        if isinstance(error, BiasError):
            raise
        raise BiasError(f"prompts file {path!r} cannot be read: {why(error)}") from error
    if (zero := text.find("\0")) >= 0:
        raise BiasError(f"prompts file {path} line {text.count(chr(10), 0, zero) + 1}: holds a NUL byte: damaged")
    return text, f"prompts file {path}"


def _rows(text: str, where: str) -> Iterator[tuple[int, Mapping[str | None, Any]]]:
    """The line that each row ends in, and its cells by column."""
    reader, line = csv.DictReader(io.StringIO(text, newline=""), strict=True), 0
    try:
        columns = [name.strip().lower() for name in reader.fieldnames or []]
        if missing := [name for name in COLUMNS if name not in columns]:
            hint = ": separate columns with commas" if len(columns) == 1 and {";", "\t"} & set(columns[0]) else ""
            raise BiasError(f"{where} line 1: no column {' and no column '.join(missing)}; it has {columns}{hint}")
        if twice := next((name for name, count in Counter(columns).items() if count > 1), None):
            raise BiasError(f"{where} line 1: two columns are called {twice!r}")
        reader.fieldnames, line = columns, reader.line_num
        for row in reader:
            line = reader.line_num
            yield line, row
    except csv.Error as error:
        raise BiasError(f"{where} line {line + 1}: not valid CSV ({error})") from error


def _prompt(row: Mapping[str | None, Any], line: int, where: str) -> Prompt:
    if None in row:
        raise BiasError(f"{where} line {line}: more fields than columns: quote prompts with a comma")
    cells: dict[str, str] = {}
    for column in COLUMNS:
        cells[column] = (row[column] or "").strip()
        if not cells[column]:
            raise BiasError(f"{where} line {line}, column {column}: empty")
    if " ".join(cells["prompt"].split()) != cells["prompt"]:
        raise BiasError(
            f"{where} line {line}, column prompt: a line break, a tab or two spaces in a row: use one space"
        )
    check_name(cells["group"], f"{where} line {line}, column group")
    return Prompt(cells["prompt"], cells["group"], cells["cluster"], line)


def _check(prompts: Sequence[Prompt], where: str) -> None:
    """Refuse prompts between whose groups nothing can be compared.

    Raises:
        BiasError: The first problem, with its line.
    """
    if not prompts:
        raise BiasError(f"{where} line 1: no prompts below the header")
    lines: dict[str, int] = {}
    spellings: dict[tuple[str, str], str] = {}
    for prompt in prompts:
        at = f"{where} line {prompt.line}, column"
        if (first := lines.setdefault(prompt.text, prompt.line)) != prompt.line:
            raise BiasError(f"{at} prompt: the same as in line {first}: {prompt.text!r}")
        for column, name in (("group", prompt.group), ("cluster", prompt.cluster)):
            if (spelling := spellings.setdefault((column, name.casefold()), name)) != name:
                raise BiasError(f"{at} {column}: {name!r} is {spelling!r} above: use one spelling")
    groups = list(dict.fromkeys(prompt.group for prompt in prompts))
    if len(groups) == 1:
        raise BiasError(f"{where} line {prompts[0].line}, column group: all are {groups[0]!r}: nothing to compare with")
    if len(groups) > MOST_GROUPS:
        line = next(prompt.line for prompt in prompts if prompt.group == groups[MOST_GROUPS])
        raise BiasError(f"{where} line {line}, column group: more than {MOST_GROUPS} groups")
    for cluster, members in by_cluster(prompts).items():
        if len({prompt.group for prompt in members}) == 1:
            raise BiasError(
                f"{where} line {members[0].line}, column cluster: {cluster!r} has prompts of {members[0].group!r} "
                "only: every cluster needs two groups"
            )


def by_cluster(prompts: Sequence[Prompt]) -> dict[str, list[Prompt]]:
    """The prompts of each cluster."""
    clusters: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        clusters.setdefault(prompt.cluster, []).append(prompt)
    return clusters


def read(path: Any) -> list[Prompt]:
    """The prompts of a file, in its order.

    Raises:
        BiasError: A file that can't be read, a missing column, an empty cell, a prompt that stands there twice, a
            cluster with one group only, one group only.
    """
    text, where = _content(path)
    prompts = [_prompt(row, line, where) for line, row in _rows(text, where)]
    _check(prompts, where)
    return prompts


def reference(prompts: Sequence[Prompt], name: Any) -> str:
    """The group that the others are compared with: the one that was named, or the first of the file.

    Raises:
        BiasError: There is no such group.
    """
    groups = list(dict.fromkeys(prompt.group for prompt in prompts))
    if name is None:
        return groups[0]
    if name not in groups:
        hint = did_you_mean(str(name), groups)
        raise BiasError(f"--metadata reference={name!r}: no such group.{hint} There are {', '.join(groups)}")
    return str(name)


def _shared_words(prompts: Sequence[Prompt]) -> float:
    """The share of the longest prompt's words that all have."""
    words = [Counter(prompt.text.lower().split()) for prompt in prompts]
    return reduce(and_, words).total() / max(own.total() for own in words)


def remarks(prompts: Sequence[Prompt]) -> list[str]:
    """What to beware of in prompts that can be compared: clusters that aren't balanced, or no counterfactuals."""
    clusters = by_cluster(prompts)
    groups = {prompt.group for prompt in prompts}
    counts = {name: Counter(prompt.group for prompt in members) for name, members in clusters.items()}
    told = []
    if lacking := [name for name, own in counts.items() if len(own) < len(groups)]:
        told.append(f"{len(lacking)} of {len(clusters)} clusters lack a group ({_few(lacking)})")
    if uneven := [name for name, own in counts.items() if len(set(own.values())) > 1]:
        told.append(
            f"{len(uneven)} of {len(clusters)} clusters have more prompts of one group than of another ({_few(uneven)})"
        )
    if unlike := [name for name, members in clusters.items() if _shared_words(members) < SHARED]:
        told.append(
            f"prompts of {len(unlike)} of {len(clusters)} clusters share less than half of their words "
            f"({_few(unlike)}): more than the group may make the difference"
        )
    return told


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:3])
    return shown + (f" and {len(names) - 3} more" if len(names) > 3 else "")
