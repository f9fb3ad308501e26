"""``doctor --benchmark`` finds nothing wrong with the package, and each deliberate mistake in it in one line."""

import re
from pathlib import Path

import pytest

from tests.support.commands import command

TABLE = Path(__file__).with_name("mistakes.tsv")
ROWS = [
    line.replace("\\n", "\n").split("\t")
    for line in TABLE.read_text().splitlines()
    if not line.startswith("#")
]
MISTAKES = {name: parts for name, *parts in ROWS}


@pytest.mark.parametrize("name", ["", *MISTAKES])
def test_a_mistake_is_one_line(name, package):
    *edit, line = MISTAKES.get(name, ("",))
    package(*edit)
    found = command("doctor", "--benchmark", "age_stereotypes")
    if not name:
        assert (found.status, found.out) == (
            0,
            "ok       age_stereotypes: no mistake found; tasks that were run: 3\n",
        )
        return
    problems = [
        text.removeprefix("problem  ")
        for text in found.out.splitlines()
        if text.startswith("problem")
    ]
    assert found.status == 1
    assert any(re.fullmatch(rf"(.*/)?{line}", text) for text in problems), problems
    assert len(problems) <= 7, problems
