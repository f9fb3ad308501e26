"""Whole runs of a suite: the result is an ordinary one that a policy can judge."""

from lm_eval.tasks import TaskManager

from lm_eval_bias.core.files import tasks_path


def test_cached_requests_are_not_taken_for_those_of_other_documents(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("lm_eval.caching.cache.PATH", str(tmp_path / "requests"))
    asked = []
    for instruction, part, documents in (
        ("none", 80, 80),
        ("none", None, 1000),
        (3, 80, 80),
        ("none", 80, 80),
    ):
        manager = TaskManager(
            include_path=str(tasks_path()),
            include_defaults=False,
            metadata={"instruction": instruction},
        )
        task = manager.load(["occugender_implicit"])["tasks"]["occugender_implicit"]
        task.build_all_requests(samples=part and list(range(part)), cache_requests=True)
        assert len(task.instances) == 6 * documents
        asked.append([instance.arguments for instance in task.instances])
    assert asked[0] == asked[3] != asked[2]
    assert len(list((tmp_path / "requests").iterdir())) == 3
