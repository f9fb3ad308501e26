"""The pages about exports and the gate name every format, and show workflows that keep what a gate finds."""

import re

from lm_eval_bias.core import registry
from lm_eval_bias.core.benchmark import ExportFormat
from lm_eval_bias.exports.exporting import FORMATS
from tests.support.places import ROOT

EXPORTS = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")


def test_every_format_is_described():
    brought = {form.name for _, form in registry.extensions(ExportFormat)}
    table = EXPORTS[EXPORTS.index("| `--to` |") :]
    described = re.findall(r"^\| `([\w-]+)` \|", table[: table.index("\n\n")], flags=re.MULTILINE)
    assert described == ["--to", *FORMATS, *brought]
