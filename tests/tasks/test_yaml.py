"""Every task file, parsed by us and by the harness: a YAML with an error would only be skipped at DEBUG level."""

import pytest
from lm_eval.tasks import TaskManager
from lm_eval.tasks._yaml_loader import load_yaml

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.files import tasks_path

FILES = sorted(tasks_path().glob("*/*.yaml"))
# of scored and of written answers, where they aren't 1.0 and 2.0
VERSIONS = {
    "gg_bbq": (3.0, 7.0),
    "gg_bbq, latest": (2.0, 6.0),
    "es_bbq": (2.0, 4.0),
    "eurogest": (2.0, 4.0),
    "mbbq": (2.0, 5.0),
    "crows_pairs": (1.0, 3.0),
    "occugender": (2.0, 5.0),
    "occugender_implicit_gen": (1.0, 4.0),
    "occugender_stories_gen": (1.0, 1.0),
    "regard_de": (2.0, 2.0),
    "custom_prompts": (2.0, 2.0),
}
OWN = {
    name for name, entry in catalog.entries().items()
}  # the others are tasks of the harness


def test_files_load_with_their_functions():
    for path in FILES:
        config = load_yaml(path, resolve_func=True)
        name, metadata = config.get("group", config.get("task")), config["metadata"]
        kind = path.parent.name + ", latest" * ("latest" in path.stem)
        versions = VERSIONS.get(path.stem) or VERSIONS.get(kind, (1.0, 4.0))
        found = name, metadata["version"], metadata["benchmark"] in registry.by_name()
        assert found == (path.stem, versions[path.stem.endswith("_gen")], True)
        if "group" in config:
            members = [path.parent / f"{member}.yaml" for member in config["task"]]
            assert all(member.is_file() for member in members), path
        else:
            functions = config["class"], config["custom_dataset"]
            assert all(map(callable, functions)), path
        ours, theirs = catalog.read_yaml(path), load_yaml(path, resolve_func=False)
        assert ours["metadata"] == theirs["metadata"], path
        assert set(ours) == set(theirs), path


def test_index_holds_exactly_these_tasks():
    manager = TaskManager(include_path=str(tasks_path()), include_defaults=False)
    names = set(manager.all_tasks) - set(manager.all_tags)
    assert names == {p.stem for p in FILES} == OWN


@pytest.mark.parametrize("upstream", [False, True])
def test_listed_numbers_of_items(upstream, request):
    if upstream:
        request.getfixturevalue("mirror")
    manager = TaskManager(include_path=str(tasks_path()), include_defaults=False)
    tasks = {
        name: e
        for name, e in catalog.entries().items()
        if e.kind == "task" and name in OWN
    }
    ready = [
        name
        for name, e in tasks.items()
        if "required" not in registry.get(e.benchmark).options.roles.values()
        if upstream == bool(e.data)
        and (not upstream or e.benchmark == "stereoset" or name == "regard_de")
    ]
    for name, task in manager.load(ready)["tasks"].items():
        assert len(task.eval_docs) == tasks[name].items, name
