"""The pages about exports and the gate name every format, and show workflows that keep what a gate finds."""

import re
import shlex

import yaml

from lm_eval_bias.cli import check
from lm_eval_bias.cli.output import Parser
from lm_eval_bias.core import registry
from lm_eval_bias.core.benchmark import ExportFormat
from lm_eval_bias.exports.exporting import FORMATS
from tests.support.places import ROOT

EXPORTS = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
GATE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")


def blocks(page, kind):
    return re.findall(rf"^```{kind}(?: file=\S+)?\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)


def test_every_format_is_described():
    brought = {form.name for _, form in registry.extensions(ExportFormat)}
    table = EXPORTS[EXPORTS.index("| `--to` |") :]
    described = re.findall(r"^\| `([\w-]+)` \|", table[: table.index("\n\n")], flags=re.MULTILINE)
    assert described == ["--to", *FORMATS, *brought]


def test_workflows():
    policy, workflow, gitlab = map(yaml.safe_load, blocks(GATE, "yaml"))
    assert policy["bounds"][0]["why"]
    steps = workflow["jobs"]["gate"]["steps"]
    runs = [shlex.split(step["run"]) for step in steps if "lm-eval-bias check" in step.get("run", "")]
    runs += [shlex.split(line) for line in gitlab["bias-gate"]["script"] if line.startswith("lm-eval-bias check")]
    assert len(runs) == 2
    for words in runs:
        parser = Parser()
        check.add_arguments(parser)
        arguments = parser.parse_args(words[2:])
        assert (arguments.policy, arguments.junit, arguments.strict) == ("policy.yaml", "bias.xml", True)
    assert workflow[True]["pull_request"]["paths"]  # YAML 1.1 reads "on" as true
    by_name = {step.get("name"): step for step in steps}
    for name in ("Summary", "Comment", "Keep the run"):
        assert by_name[name]["if"].startswith("always()")
    assert gitlab["bias-gate"]["artifacts"]["reports"]["junit"] == "bias.xml"
