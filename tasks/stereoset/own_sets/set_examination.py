"""A data set held against its source: what is wrong with it, and how that is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES
from lm_eval_bias.errors import BiasError, printable
from lm_eval_bias.tasks.stereoset import released_sets
from lm_eval_bias.tasks.stereoset.own_sets import review_existing, set_checks, set_files
from lm_eval_bias.tasks.stereoset.own_sets.check_findings import CODES, NOTE, PROBLEM, Finding
from lm_eval_bias.tasks.stereoset.own_sets.set_files import DataSet
from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES, Item, count_items


@dataclass(frozen=True)
class Examination:
    """A data set and what was found about it."""

    data_set: DataSet
    source: list[Item] | None  # what it was translated from, if it was
    source_name: str  # what to call that
    findings: dict[str, list[Finding]]  # by item

    @property
    def problems(self) -> int:
        """Items that need a person."""
        return sum(any(finding.level == PROBLEM for finding in findings) for findings in self.findings.values())

    def by_code(self) -> dict[tuple[str, str], list[tuple[str, Finding]]]:
        """Findings with their items' ids, by code and level: problems first, in the order of the codes."""
        grouped: dict[tuple[str, str], list[tuple[str, Finding]]] = {
            (code, level): [] for level in (PROBLEM, NOTE) for code in CODES
        }
        for name, findings in self.findings.items():
            for finding in findings:
                grouped[finding.code, finding.level].append((name, finding))
        return {kind: findings for kind, findings in grouped.items() if findings}

    def coverage(self) -> list[tuple[str, str, int, int | None]]:
        """Test, bias type, number of items, and how many the source has (``None`` without one)."""
        ids = {item["id"] for item in (self.data_set.items if self.source is None else self.source)}
        counts = count_items(item for item in self.data_set.items if item["id"] in ids)
        source_counts = count_items(self.source or [])
        return [
            (test, bias_type, counts[test, bias_type], None if self.source is None else source_counts[test, bias_type])
            for test in ("intra", "inter")
            if test in self.data_set.tests
            for bias_type in (*BIAS_TYPES, "all")
        ]

    def text(self, name: str, limit: int | None) -> str:
        """Counts, findings (so many of each kind at most) and coverage for people, of a data set of this name."""
        from tabulate import tabulate

        data_set, groups = self.data_set, self.by_code()
        blocks = [
            f"{printable(name)}: {len(data_set.items):,} items in {data_set.language!r}, source: {self.source_name}"
        ]
        if groups:
            rows = [
                [code, level, f"{len({item for item, _ in findings}):,}", CODES[code]]
                for (code, level), findings in groups.items()
            ]
            align = ("left", "left", "right", "left")
            headers = ["Check", "Level", "Items", "What"]
            blocks.append(tabulate(rows, headers=headers, tablefmt="simple", colalign=align))
        for (code, level), findings in groups.items():
            lines = [f"{code} ({level}): {CODES[code]}"]
            lines += [
                f"  {printable(item)} {finding.part}: {printable(finding.text)}" for item, finding in findings[:limit]
            ]
            if limit is not None and len(findings) > limit:
                lines.append(f"  ... and {len(findings) - limit:,} more (--all)")
            blocks.append("\n".join(lines))
        counts: dict[str, list[str]] = {}
        for test, _, number, total in self.coverage():
            counts.setdefault(test, [test]).append(f"{number:,}" if total is None else f"{number:,} of {total:,}")
        headers = ["Coverage", *BIAS_TYPES, "all"]
        blocks.append(tabulate(counts.values(), headers=headers, tablefmt="simple", disable_numparse=True))
        return "\n\n".join(blocks) + "\n"

    def verdict(self) -> str:
        """One line that ends the text."""
        missing = sum(findings[0].code == "missing" for findings in self.findings.values())
        wrong, notes = self.problems - missing, len(self.findings) - self.problems
        items = f"{wrong:,} of {len(self.data_set.items):,} items"
        parts = [f"problems that need a person in {items}" if wrong else "no problems in the items"]
        parts += [f"{missing:,} of the source's items missing"] if missing else []
        parts += [f"{notes:,} more with only notes"] if notes else []
        return "; ".join(parts)

    def as_data(self, tasks: Sequence[Path]) -> dict[str, Any]:
        """All of it as plain data, with the task files that were written."""
        return {
            "language": self.data_set.language,
            "items": len(self.data_set.items),
            "source": None if self.source is None else self.source_name,
            "problems": self.problems,
            "counts": [
                {"code": code, "level": level, "items": len({name for name, _ in findings}), "findings": len(findings)}
                for (code, level), findings in self.by_code().items()
            ],
            "coverage": [
                {"test": test, "bias_type": bias_type, "items": number, "of": total}
                for test, bias_type, number, total in self.coverage()
            ],
            "findings": [
                {"id": name, **vars(finding)} for name, findings in self.findings.items() for finding in findings
            ],
            "tasks": [str(path) for path in tasks],
        }


def data_set_of(name: str, language: str | None) -> DataSet:
    """A published language's data set, or one from a file; raises what :func:`.set_files.read` raises."""
    if name in LANGUAGES:
        return DataSet(name, released_sets.read_all(name), {"published": True})
    return set_files.read(name, language)


def examine(data_set: DataSet, source: str | None = None) -> Examination:
    """Check a data set against its source.

    Args:
        data_set: The data set.
        source: A file, the code of a published language, ``none``, or ``None`` for the published English set, where it
            has items of the same ids.

    Raises:
        BiasError: The source can't be had, or has no item in common with the set.
    """
    items, name = _source(data_set, source)
    findings = set_checks.check_set(data_set.items, items, data_set.language)
    for accepted in review_existing.accepted(data_set):
        findings.pop(accepted, None)
    return Examination(data_set, items, name, findings)


def _source(data_set: DataSet, name: str | None) -> tuple[list[Item] | None, str]:
    if name == "none" or (name is None and data_set.provenance.get("published") and data_set.language == "en"):
        return None, "none"
    ids = {item["id"] for item in data_set.items}
    if name is None:
        try:
            items = released_sets.read_all("en", data_set.tests)
        except BiasError as error:
            raise BiasError(f"{error} (it is the source; --source none checks the set without one)") from error
        return (items, "the published English set") if any(item["id"] in ids for item in items) else (None, "none")
    items = [item for item in data_set_of(name, None).items if item["test"] in data_set.tests]
    if not any(item["id"] in ids for item in items):
        raise BiasError(f"--source {name}: has no item of the same id: name the set's source, or --source none")
    return items, f"the published set in {name!r}" if name in LANGUAGES else name
