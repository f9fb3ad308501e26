"""The answers of a run without its texts: they give the same scores, comparisons and breakdowns as its logs."""

import shutil

import pytest
from pyarrow import parquet

import lm_eval_bias as leb
from lm_eval_bias.runs import answer_files, sample_logs
from tests.support.commands import check_refusal, command
from tests.support.made_mirror import make_tiny_mirror

LONGEST_NAME = 30  # characters that a job, a term or an id may have, and a benchmark's text has not


TASKS = (
    "occugender_explicit", "occugender_stories_gen", "gg_bbq_names", "gg_bbq_names_gen", "gg_bbq_names_prompts",
    "es_bbq_gender", "kobbq_gender_identity", "mbbq_en_gender_identity", "stereoset_de", "stereoset_de_gen",
    "stereoset_de_inter_variants", "regard_de", "eurogest_de", "eurogest_de_gen",
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        make_tiny_mirror(folder / "mirror", patch)
        done = command(
            "run", "--tasks", ",".join(TASKS), "--model", "bias-dial",
            "--model_args", "strength=0.2,competence=0.7", "--limit", "80", "--metadata", '{"classifier": "light"}',
            "--output_path", str(folder / "run"),
            "--log_samples",
        )  # fmt: skip
    assert done.status == 0, done.err
    return folder / "run"


@pytest.fixture
def run(made, tmp_path):
    """A run of a task of every benchmark, with logs."""
    return shutil.copytree(made, tmp_path / "run")


def answers_in(folder):
    (file,) = folder.rglob("answers_*")
    return file


def test_records_come_back_as_they_were(run):
    file = answer_files.AnswerFile.of(answers_in(run))
    benchmarks = set()
    for log in sample_logs.beside(next(run.rglob("results_*"))):
        made = list(map(answer_files.recorded, sample_logs.first_filter(log)))
        read = list(file.records(sample_logs.task_of(log)))
        assert len(made) == len(read)
        for ours, theirs in zip(made, read, strict=True):
            # nan is no number, and a tuple no list
            assert repr(ours[1:]) == repr(theirs[1:])
            benchmarks.add(ours.saved_task.benchmark)
    assert len(benchmarks) >= 10


def test_no_text_of_a_benchmark_or_a_model_is_in_the_file(run):
    texts = set()

    def collect(value):
        if isinstance(value, str) and len(value) > LONGEST_NAME and " " in value:
            texts.add(value)
        for part in value.values() if isinstance(value, dict) else ():
            collect(part)
        for part in value if isinstance(value, list) else ():
            collect(part)

    for log in run.rglob("samples_*"):
        for _, sample in sample_logs.lines(log):
            collect(sample["arguments"])
            collect(sample["resps"])
    assert len(texts) > 100
    table = parquet.read_table(answers_in(run))
    kept = "\n".join(
        str(cell)
        for name in ("key", "facets", "answers", "record")
        for cell in table[name].to_pylist()
    )
    assert [text for text in texts if text in kept] == []
    assert {"prompt_hash", "doc_hash", "target_hash"} <= set(table.column_names)


def test_they_are_made_of_logs(tiny_mirror, run):
    file = answers_in(run)
    before = parquet.read_table(file)
    file.unlink()
    assert command("rescore", str(run), "--json").status == 0
    log = next(run.rglob("samples_stereoset_de_2*"))
    another = '{"doc": {"benchmark": "mmlu"}, "filtered_resps": [], "doc_id": 0}\n'
    others = log.with_name(log.name.replace("stereoset_de", "mmlu"))
    others.write_text(another)
    made = command("answers", str(run))
    others.unlink()
    assert f"{file.stat().st_size:,} bytes" in made.out
    assert parquet.read_table(file).equals(before)
    assert command("check", str(run), "--strict").status == 0
    assert "is there" in command("answers", str(run)).out


def test_a_log_that_was_changed_since_is_what_counts(run):
    (task,) = (t for t in leb.load(run)[0].tasks.values() if t.task == "stereoset_de")
    assert next(answer_files.of_task(task)).saved_task.path == task.answers
    with task.samples.open("a") as log:
        log.write("\n")
    assert next(answer_files.of_task(task)).saved_task.path == task.samples


def test_a_damaged_file_is_named(run):
    for log in run.rglob("samples_*"):
        log.unlink()
    answers_in(run).write_bytes(b"PAR1")
    assert str(answers_in(run)) in check_refusal(command("rescore", str(run)))
