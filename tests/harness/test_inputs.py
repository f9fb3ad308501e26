"""A task's metadata say what it read and asked, by hashes, without its benchmark doing anything for it."""

from lm_eval_bias.core import content_hashes
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.data import sources
from lm_eval_bias.harness import internals
from lm_eval_bias.models.chance import ChanceLM

TASK = "occugender_debias_implicit_none"


def inputs(
    task=TASK,
    folder="occugender",
    limit=None,
    samples=None,
    reverse=False,
    chat=False,
    **metadata,
):
    """What a task tells of its inputs once its requests are made."""
    manager = internals.task_manager([tasks_path() / folder], metadata)
    built = manager.load([task])["tasks"][task]
    if reverse:
        built.eval_docs.reverse()
    around = (
        {"apply_chat_template": True, "chat_template": ChanceLM().apply_chat_template}
        if chat
        else {}
    )
    built.build_all_requests(
        limit=limit, samples=samples, rank=0, world_size=1, **around
    )
    return built.config.metadata["inputs"]


def test_what_is_run_counts_whole_or_as_a_part():
    whole, part, other = inputs(), inputs(limit=40), inputs(samples=[0, 1, 2])
    assert ["documents" in one for one in (whole, part, other)] == [True, False, False]
    assert "scored" not in whole
    assert inputs(limit=1000) == whole
    assert len({whole["documents"], part["scored"], other["scored"]}) == 3
    assert inputs(samples=list(range(40)))["scored"] == part["scored"]
    assert inputs(limit=40) == part
    assert inputs(reverse=True) == whole
    assert inputs(chat=True) == {
        **whole,
        "chat_template": True,
    }  # around the prompts, no other document


def test_pinned_files_are_told_with_repository_and_commit(tiny_mirror):
    pinned = sources.manifest().resolve(["gg_bbq_group_terms"])
    expected = {
        f"{one.repository}@{one.commit}/{one.path}": one.sha256 for one in pinned
    }
    assert inputs("gg_bbq_group_terms", "gg_bbq")["files"] == expected
    assert len(expected) == 4


def test_prompts_count_beside_the_documents(tmp_path):
    base = tasks_path() / "occugender" / f"{TASK}.yaml"
    (tmp_path / "one.yaml").write_text(f"include: {base}\ntask: one\n")
    (tmp_path / "two.yaml").write_text(
        f'include: {base}\ntask: two\ndoc_to_text: "A: "\n'
    )
    one, two = (
        inputs(name, tmp_path)["documents"] for name in ("one", "two")
    )  # the folder itself
    assert one == inputs()["documents"] != two


def test_package_data_change_with_their_files_and_names(tmp_path):
    def digest(**files):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for name, text in files.items():
            (folder / name.replace("__", ".")).write_text(text)
        return content_hashes.of_data_files(folder)

    assert (
        digest(a__yaml="x: 1  # one")
        == digest(a__yaml="# a comment\nx:   1\n")
        != digest(a__yaml="x: 2")
    )
    first = digest(a__yaml="x", b__csv="y")
    assert digest(b__csv="y", a__yaml="x") == first
    assert digest(a__yaml="x", b__csv="y", page__md="z", code__py="z") == first
    assert (
        len(
            {
                first,
                digest(a__yaml="y", b__csv="y"),
                digest(c__yaml="x", b__csv="y"),
                digest(a__yaml="x"),
            }
        )
        == 4
    )


def test_code_is_told_whatever_changes_in_it(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "shared").mkdir()
    digests = set()
    for name, text in (
        ("own/a.py", "1"),
        ("own/a.py", "2"),
        ("shared/b.py", "1"),
        ("own/c.yaml", "1"),
    ):
        (tmp_path / name).write_text(text)
        content_hashes.of_code.cache_clear()
        digests.add(content_hashes.of_code(tmp_path / "own", tmp_path / "shared"))
    assert len(digests) == 3
