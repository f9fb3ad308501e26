"""One change to a run, its log, its record, its base or the policy: what alters a number or its origin is found."""

import json
import shutil

import pytest
from pyarrow import parquet

from lm_eval_bias.runs import provenance
from tests.support.commands import command
from tests.support.made_mirror import make_tiny_mirror
from tests.support.run_scores import run

LIKELIHOODS, WRITTEN = "stereoset_en", "gg_bbq_group_terms_gen"
PLAIN = "occugender_implicit"
ALLOW = (
    "allow: [limit, chance_level, below_chance, unshown_ability, unanswered, position_bias, length_bias, "
    "low_coverage, saturated]\n"
)
POLICY = f"""{ALLOW}bounds:
  - {{task: {PLAIN}, score: coverage, min: 1%, on: point}}
  - {{task: {LIKELIHOODS}, score: lms, min: 1, on: point}}
  - {{task: {WRITTEN}, score: acc_amb, min: -0.1, max: 0.999, on: point}}
"""


WROTE = "not as the run wrote it"
SAME = "files differ, scores are the same"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of three tasks."""
    with pytest.MonkeyPatch.context() as patch:
        make_tiny_mirror(tmp_path_factory.mktemp("mirror"), patch)
        folder = tmp_path_factory.mktemp("made") / "run"
        _run(folder, 0.2)
        yield folder


def _run(folder, strength):
    tasks = f"{PLAIN},{LIKELIHOODS},{WRITTEN}"
    run(folder, tasks, "--limit", "30", "--model_args", f"strength={strength}", model="bias-dial")  # fmt: skip


def results_of(folder):
    (path,) = folder.rglob("results_*.json")
    return path


def log_of(folder, task):
    (path,) = folder.rglob(f"samples_{task}_*.jsonl")
    return path


def answers_of(folder):
    (path,) = folder.rglob("answers_*")
    return path


def without_answers(folder):
    for path in (log_of(folder, PLAIN), answers_of(folder)):
        path.unlink()


def edit(change):
    """Change a results file's content."""

    def apply(folder):
        path = results_of(folder)
        content = json.loads(path.read_text(encoding="utf-8"))
        change(content)
        path.write_text(json.dumps(content), encoding="utf-8")

    return apply


def edit_log(change, task=LIKELIHOODS):
    """Change a log's lines, as a list of samples."""

    def apply(folder):
        path = log_of(folder, task)
        samples = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        change(samples)
        text = "".join(f"{json.dumps(s, ensure_ascii=False)}\n" for s in samples)
        path.write_text(text, encoding="utf-8")

    return apply


def both(*changes):
    def apply(folder):
        for change in changes:
            change(folder)

    return apply


def drop(samples):
    del samples[3:6]


def fewer(content):
    content["n-samples"][LIKELIHOODS]["effective"] -= 3


def told(change):
    """Change the scores of a task, and what the file says of them, with the file's sum."""

    def apply(content):
        said = content["configs"][LIKELIHOODS]["metric_list"]
        change(content["results"][LIKELIHOODS], {one["metric"]: one for one in said})

    return with_its_sum(edit(apply))


def raw(samples):
    samples[0]["resps"][0][0][0] = "-0.5"


def with_its_sum(change):
    """Change a file and its line in the file of sums, as a forger would."""

    def apply(folder):
        change(folder)
        provenance.write_sums(results_of(folder))

    return apply


def answers_of_another(folder):
    """Put rows that a stronger bias gives in the place of the run's, whose own metadata stay."""
    other = folder.parent / "stronger"
    _run(other, -0.4)
    _rewrite(folder, answers_of(other))


def recompressed(folder):
    _rewrite(folder, answers_of(folder), "snappy")


def _rewrite(folder, rows, compression="zstd"):
    """Write a run's answers again, with the rows of a file."""
    path = answers_of(folder)
    schema = parquet.read_schema(path)
    file = parquet.ParquetFile(rows)
    tables = [file.read_row_group(n) for n in range(file.num_row_groups)]
    with parquet.ParquetWriter(path, schema, compression=compression) as out:
        for table in tables:
            cast = table.replace_schema_metadata(schema.metadata)
            out.write_table(cast, row_group_size=len(table))


def sums_of(folder):
    (path,) = folder.rglob("SHA256SUMS_*.txt")
    return path


def without_a_sum(folder):
    path = sums_of(folder)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "answers_" not in line))


CHANGES = {
    # of the answers and logs
    "a raw answer": (edit_log(raw), WROTE),
    "dropped, and counted": (both(edit_log(drop), edit(fewer)), WROTE),
    "answers and a log that are gone": (without_answers, "has no saved answers"),
    "damaged answers": (lambda folder: answers_of(folder).write_bytes(b"PAR1"), WROTE),
    "another run's answers with their sum": (with_its_sum(answers_of_another), "from its samples"),
    # of the scores and the record
    "a value": (told(lambda r, m: r.update({"ss,none": r["ss,none"] * (1 + 1e-8)})), "ss has the value"),
    "rounding": (told(lambda r, m: r.update({"ss,none": r["ss,none"] * (1 + 1e-12)})), ""),
    "an error": (told(lambda r, m: r.update({"ss_stderr,none": 1.5})), "ss has the standard error"),
    "degrees of freedom": (told(lambda r, m: m["ss"].update(dof=1e3)), "ss has the degrees of freedom 1000"),
    "an interval": (told(lambda r, m: m["ss"].update(interval=[0.0, 99.0])), "ss has the interval's lower end 0"),
    "a score that is gone": (told(lambda r, m: r.pop("icat,none")), "icat is not in the file"),
    # of the sums
    "no sums": (lambda folder: sums_of(folder).unlink(), "no SHA256SUMS_"),
    "a sum that is gone": (without_a_sum, "not in SHA256SUMS_"),
    # no number changed
    "recompressed answers": (recompressed, SAME),
    "the form of the JSON": (edit(lambda c: None), SAME),
    # harmless
    "a log whose answers are there": (lambda folder: log_of(folder, PLAIN).unlink(), ""),
}  # fmt: skip


@pytest.fixture
def checked(made, tmp_path):
    """What ``check --strict`` makes of a changed run, or of a changed base."""

    def check(change, *more):
        folder = shutil.copytree(made, tmp_path / "changed")
        change(folder)
        policy = tmp_path / "policy.yaml"
        policy.write_text(POLICY)
        return command("check", str(folder), "--policy", str(policy), "--strict", *more)

    return check


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_to_a_run_is_found(name, checked):
    change, says = CHANGES[name]
    outcome = checked(change, "--json")
    (judged,) = json.loads(outcome.out)["runs"]
    found = [f["says"] for f in judged["findings"] if not f["passes"]]
    assert outcome.status == bool(says), found
    assert any(says in text and "\n" not in text for text in found) or not says, found


def test_a_plain_run_may_be_allowed(checked, tmp_path, made):
    folder = shutil.copytree(made, tmp_path / "plain")
    edit(lambda content: content.pop("provenance"))(folder)
    sums_of(folder).unlink()
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("allow: [", "allow: [provenance, "))
    outcome = command("check", str(folder), "--policy", str(policy), "--strict")
    assert outcome.status == 0, outcome
    assert "30 of 1,000 items" in outcome.out
