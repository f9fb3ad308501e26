"""Answers of a model to a task's requests, without a run."""

from itertools import groupby
from operator import attrgetter

from lm_eval_bias.core import catalog
from lm_eval_bias.harness import internals


def built(name, limit=30, **metadata):
    """A task with its requests, as a run makes them."""
    folder = catalog.entries()[name].path.parent
    manager = internals.task_manager([folder], metadata)
    task = manager.load([name])["tasks"][name]
    task.build_all_requests(rank=0, world_size=1, limit=limit)
    return task


def records(task, model):
    """The records of a task's documents with a model's answers, as a run has them; its requests are built."""
    for instance in task.instances:
        instance.resps, instance.filtered_resps = [], {}
    in_order = sorted(task.instances, key=attrgetter("request_type"))
    for kind, instances in groupby(in_order, key=attrgetter("request_type")):
        asked = [instance for instance in instances for _ in range(instance.repeats)]
        for instance, answer in zip(asked, getattr(model, kind)(asked), strict=True):
            instance.resps.append(answer)
    task.apply_filters()
    by_doc = {}
    for instance in sorted(task.instances, key=attrgetter("idx")):
        by_doc.setdefault(instance.doc_id, []).append(
            next(iter(instance.filtered_resps.values()))
        )
    return [
        task.benchmark.record(task.eval_docs[place], answers)
        for place, answers in sorted(by_doc.items())
    ]
