"""The shape of the package: core knows no benchmark, names are unique, imports go one way."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from lm_eval_bias.core import registry
from tests.conftest import ROOT

ROOTS = {"lm_eval_bias": "lm_eval_bias", "tasks": "lm_eval_bias.tasks", "custom_metrics": "lm_eval_bias.custom_metrics"}
MODULES = {
    ".".join([package, *path.relative_to(ROOT / folder).with_suffix("").parts]).removesuffix(".__init__"): path
    for folder, package in ROOTS.items()
    for path in (ROOT / folder).rglob("*.py")
}
CORE = {name: path for name, path in MODULES.items() if path.is_relative_to(ROOT / "lm_eval_bias")}
# modules that every benchmark's folder may have
OF_A_BENCHMARK = {"benchmark", "hooks", "sentences", "figures", "published", "sampling", "filters", "planted_answers"}
# a command to copy has to name some task
EXAMPLE = re.compile(r"lm[-_]eval[-_ ]|--tasks|examples?:")


def constants(tree):
    """Texts of a module, without its docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


@pytest.mark.parametrize("name", sorted(CORE))
def test_core_names_no_benchmark(name):
    tree = ast.parse(CORE[name].read_text(encoding="utf-8"))
    names = "|".join(sorted(registry.by_name(), key=len, reverse=True))
    named = re.compile(rf"(?<![A-Za-z])({names})(?![a-z])")
    for text in constants(tree):
        if not EXAMPLE.search(text):
            assert not named.search(text), text
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for imported in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                assert not re.match(rf"lm_eval_bias\.(tasks|custom_metrics)\.({names})\b", imported), imported
        if isinstance(node, ast.Name | ast.Attribute):
            identifier = node.id if isinstance(node, ast.Name) else node.attr
            assert not named.fullmatch(identifier), identifier


def test_module_names_are_unique():
    names = Counter(path.stem for path in MODULES.values())
    repeated = {name for name, count in names.items() if count > 1} - {"__init__"} - OF_A_BENCHMARK
    assert not repeated


def imports(name, path, lazy):
    """The modules of this package that a module imports, at once or (``lazy``) also inside of functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    nodes = ast.walk(tree) if lazy else top_level(tree)
    for node in nodes:
        if id(node) in typing:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lm_eval_bias"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("lm_eval_bias"))


def top_level(tree):
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def circles(graph):
    """Strongly connected parts of more than one node (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
            low[node] = min(low[node], low[other] if other in stack else low[node])
        if low[node] == index[node]:
            part = []
            while not part or part[-1] != node:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    for node in graph:
        if node not in index:
            visit(node)
    return found


def test_no_circle_between_modules():
    graph = {
        name: {i for i in imports(name, path, False) if i in MODULES and i != name} for name, path in MODULES.items()
    }
    assert circles(graph) == []


def package(module: str) -> str:
    """The package that a module lies in; a benchmark's folder is one, whatever lies below it."""
    parts = module.split(".")
    if parts[:2] == ["lm_eval_bias", "tasks"]:
        return ".".join(parts[:3])
    path: Path = MODULES[module]
    return module if path.name == "__init__.py" else module.rpartition(".")[0]


def test_no_circle_between_packages():
    graph: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        # modules beside the packages are everybody's
        if package(name) == "lm_eval_bias" or name.endswith(".tasks"):
            continue
        own = graph.setdefault(package(name), set())
        for imported in imports(name, path, lazy=True):
            if imported in MODULES and package(imported) not in ("lm_eval_bias", package(name)):
                own.add(package(imported))
    assert circles(graph) == []
