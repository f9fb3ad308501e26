"""The shape of the package: no module of ours names a benchmark, imports go down, no class name is given twice."""

import ast
import functools
import re
from collections import Counter

from lm_eval_bias.core import registry
from tests.support.places import ROOT

ROOTS = {
    "lm_eval_bias": "lm_eval_bias",
    "tasks": "lm_eval_bias.tasks",
    "custom_metrics": "lm_eval_bias.custom_metrics",
}
MODULES = {
    ".".join(
        [package, *path.relative_to(ROOT / folder).with_suffix("").parts]
    ).removesuffix(".__init__"): path
    for folder, package in ROOTS.items()
    for path in (ROOT / folder).rglob("*.py")
}
CORE = {
    name: path
    for name, path in MODULES.items()
    if path.is_relative_to(ROOT / "lm_eval_bias")
}
# from the bottom up; packages of one line import nothing of each other
LAYERS = [
    "custom_metrics",
    "core",
    "data",
    "harness",
    "scoring",
    "models",
    "runs",
    "comparing",
]
LAYERS += [
    "boards gate",
    "report",
    "evaluation",
    "api",
    "cli",
]  # boards rank pairs of runs by what comparing says
LEVEL = {name: number for number, names in enumerate(LAYERS) for name in names.split()}
LEVEL[""] = len(LAYERS)  # the modules beside the packages: what starts the command line
# what is registered with the harness has one home, and the requests among it are answered in scoring
ALLOWED_UP = {("lm_eval_bias.harness.registration", "scoring")}
# what a benchmark is made of; a command of its own works on runs, as the commands of cli do
OF_BENCHMARKS = {"custom_metrics", "core", "data", "scoring"}
OF_THEIR_COMMANDS = OF_BENCHMARKS | {"runs", "evaluation"}
# a command to copy has to name some task
EXAMPLE = re.compile(r"lm[-_]eval[-_ ]|--tasks|examples?:")


@functools.cache
def nodes(name):
    """Everything in a module."""
    return [*ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8")))]


def constants(name):
    """Texts of a module, without its docstrings."""
    docstrings = {id(node.value) for node in nodes(name) if isinstance(node, ast.Expr)}
    for node in nodes(name):
        is_text = isinstance(getattr(node, "value", None), str)
        if isinstance(node, ast.Constant) and is_text and id(node) not in docstrings:
            yield node.value


def test_core_names_no_benchmark():
    names = "|".join(sorted(registry.by_name(), key=len, reverse=True))
    named = re.compile(rf"(?<![A-Za-z])({names})(?![a-z])")
    inside = re.compile(rf"lm_eval_bias\.(tasks|custom_metrics)\.({names})\b")
    faults = []
    for name in CORE:
        texts = [text for text in constants(name) if not EXAMPLE.search(text)]
        faults += [(name, text) for text in texts if named.search(text)]
        for node in nodes(name):
            if isinstance(node, ast.ImportFrom) and node.module:
                full = [f"{node.module}.{alias.name}" for alias in node.names]
                faults += [(name, one) for one in full if inside.match(one)]
            word = getattr(node, "id", getattr(node, "attr", ""))
            if isinstance(word, str) and named.fullmatch(word):
                faults.append((name, word))
    assert faults == []


def imports(name):
    """The modules of this package that a module imports: at once, inside of functions, or for typing."""
    for node in nodes(name):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "lm_eval_bias"
        ):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (
                alias.name
                for alias in node.names
                if alias.name.startswith("lm_eval_bias")
            )


GRAPH = {
    name: {other for other in imports(name) if other in MODULES and other != name}
    for name in MODULES
}


def circles(graph):
    """The nodes that can be reached from themselves."""

    def reached(start):
        found, left = set(), [*graph[start]]
        while left:
            node = left.pop()
            if node not in found:
                found.add(node)
                left += graph.get(node, ())
        return found

    return [node for node in graph if node in reached(node)]


def package(module):
    """The package that a module lies in; a benchmark's folder and ``tasks.shared`` are one each."""
    _, *parts = module.split(".")
    if parts[:1] == ["tasks"]:
        return ".".join(parts[:2])
    is_package = MODULES[module].name == "__init__.py"
    is_layer = parts[1:] or parts == ["api"] or (is_package and parts)
    return parts[0] if is_layer else ""


def test_no_circle():
    assert circles(GRAPH) == []
    tasks = {}
    for name, others in GRAPH.items():
        if package(name).startswith("tasks"):
            tasks.setdefault(package(name), set()).update(
                {package(other) for other in others} - {package(name)}
            )
    assert circles(tasks) == []


def test_imports_go_down():
    arrows = [
        (name, other)
        for name, others in GRAPH.items()
        for other in others
        if package(name) != package(other)
    ]
    assert {
        package(name) for name in GRAPH if not package(name).startswith("tasks")
    } == set(LEVEL)
    upward = [
        (name, other)
        for name, other in arrows
        if not package(name).startswith("tasks")
        and LEVEL[package(name)] <= LEVEL.get(package(other), len(LAYERS))
        and (name, package(other)) not in ALLOWED_UP
    ]
    assert upward == []
    beside = [
        (name, other)
        for name, other in arrows
        if package(name).startswith("tasks")
        and not package(other).startswith("tasks")
        and package(other)
        not in (OF_THEIR_COMMANDS if ".commands." in name else OF_BENCHMARKS)
    ]
    assert beside == []


def test_class_names_are_unique():
    names = Counter(
        node.name
        for name in MODULES
        for node in nodes(name)[0].body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == set()
