"""The harness is used behind one door: elsewhere only what it documents is imported, and nothing private is touched."""

import ast

from tests.support.places import ROOT

DOCUMENTED = {
    ("lm_eval.api.model", "LM"),
    ("lm_eval.api.model", "TemplateLM"),
    ("lm_eval.api.filter", "Filter"),
    ("lm_eval.models.huggingface", "HFLM"),  # as base classes of model types
    ("lm_eval.models.vllm_causallms", "VLLM"),
}
# what objects of the harness are called here, beside self
THEIRS = {
    "model",
    "lm",
    "task",
    "tracker",
    "manager",
    "kind",
    "hook",
    "registry",
    "instance",
    "request",
    "cache_hook",
}
SOURCES = [
    path
    for folder in ("lm_eval_bias", "tasks", "custom_metrics")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "harness" not in path.relative_to(ROOT).parts
]


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


def touched(tree):
    """Private attributes of objects with one of the names above, read as attributes or by name."""
    for node in ast.walk(tree):
        owner = name = None
        if isinstance(node, ast.Attribute):
            owner, name = node.value, node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            "getattr",
            "hasattr",
            "setattr",
        ):
            owner, name = node.args[0], getattr(node.args[1], "value", None)
        called = getattr(owner, "id", getattr(owner, "attr", ""))
        if (
            called in THEIRS
            and isinstance(name, str)
            and (name == "dbdict" or name.startswith("_"))
        ):
            if not name.startswith("__"):
                yield called, name


def test_behind_the_door():
    """Import in lm_eval_bias/harness, held in test_contract.py; what is private is for its internals.py."""
    faults = []
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        theirs = {one for one in imported(tree) if one[0].split(".")[0] == "lm_eval"}
        faults += [(path, one) for one in {*theirs} - DOCUMENTED | {*touched(tree)}]
    assert faults == []


def test_the_checks_find_what_they_look_for():
    tree = ast.parse(
        "from lm_eval.tasks import TaskManager\nmodel._concurrent\nhasattr(self.model, '_x')\nself._own\n"
    )
    assert set(imported(tree)) == {("lm_eval.tasks", "TaskManager")}
    assert set(touched(tree)) == {("model", "_concurrent"), ("model", "_x")}
