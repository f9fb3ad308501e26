"""A data set in StereoSet's form beside its source: what the checks find, and how much of the source it covers."""

from __future__ import annotations

from dataclasses import dataclass

from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES
from lm_eval_bias.errors import BiasError
from lm_eval_bias.tasks.stereoset import released_sets
from lm_eval_bias.tasks.stereoset.own_sets import review_existing, set_checks, sets
from lm_eval_bias.tasks.stereoset.own_sets.check_findings import CODES, NOTE, PROBLEM, Finding
from lm_eval_bias.tasks.stereoset.released_sets import Item


@dataclass(frozen=True)
class Examination:
    """A data set and what was found about it.

    Attributes:
        data_set: The data set.
        source: The items that it was translated from; ``None`` for a hand-made one.
        source_name: What to call them.
        findings: By item id.
    """

    data_set: sets.DataSet
    source: list[Item] | None
    source_name: str
    findings: dict[str, list[Finding]]

    @property
    def problems(self) -> int:
        """Items that need a person."""
        return sum(any(finding.level == PROBLEM for finding in own) for own in self.findings.values())

    def by_code(self) -> dict[tuple[str, str], list[tuple[str, Finding]]]:
        """Findings with their items' ids, by code and level: problems first, in the order of the codes."""
        grouped: dict[tuple[str, str], list[tuple[str, Finding]]] = {
            (code, level): [] for level in (PROBLEM, NOTE) for code in CODES
        }
        for name, own in self.findings.items():
            for finding in own:
                grouped[finding.code, finding.level].append((name, finding))
        return {kind: findings for kind, findings in grouped.items() if findings}

    def coverage(self) -> dict[str, list[tuple[str, int, int | None]]]:
        """For each test of the set: bias types, their numbers of items, and of the source's (``None`` without one)."""
        known = {item["id"] for item in self.source or ()}
        own = [item for item in self.data_set.items if self.source is None or item["id"] in known]

        def count(items: list[Item], test: str, kind: str) -> int:
            return sum(item["test"] == test and kind in (item["bias_type"], "all") for item in items)

        return {
            test: [
                (kind, count(own, test, kind), None if self.source is None else count(self.source, test, kind))
                for kind in (*BIAS_TYPES, "all")
            ]
            for test in ("intra", "inter")
            if test in self.data_set.tests
        }


def examine(data_set: sets.DataSet, source: str | None = None) -> Examination:
    """Check a data set against its source.

    Args:
        data_set: The data set.
        source: A file, ``none``, or ``None`` for the published English set, where it has items of the same ids.

    Raises:
        BiasError: The source can't be had, or has no item in common with the set.
    """
    items, name = _source(data_set, source)
    findings = set_checks.check_set(data_set.items, items, data_set.language)
    for accepted in review_existing.accepted(data_set):
        findings.pop(accepted, None)
    return Examination(data_set, items, name, findings)


def _source(data_set: sets.DataSet, named: str | None) -> tuple[list[Item] | None, str]:
    if named == "none" or (named is None and data_set.provenance.get("published") and data_set.language == "en"):
        return None, "none"
    ids = {item["id"] for item in data_set.items}
    if named is None:
        try:
            items = [item for test in data_set.tests for item in released_sets.read("en", test)]
        except BiasError as error:
            raise BiasError(f"{error} (it is the source; --source none checks the set without one)") from error
        return (items, "the published English set") if any(i["id"] in ids for i in items) else (None, "none")
    items = [item for item in sets.read(named, None).items if item["test"] in data_set.tests]
    if not any(item["id"] in ids for item in items):
        raise BiasError(f"--source {named}: has no item of the same id: name the set's source, or --source none")
    return items, named
