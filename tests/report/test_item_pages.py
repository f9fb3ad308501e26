"""From a score to its items: which are shown, where they lie, and that nothing half-written or foreign is touched."""

import json
import shutil

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.report import item_pages, parts
from lm_eval_bias.runs import contributions, run_discovery
from lm_eval_bias.runs.harness_results import presentable
from tests.support.commands import disk
from tests.support.made_runs import HOSTILE, harness_folder
from tests.support.pages import check_closed, made
from tests.support.places import ROOT

OF_ITEMS = {"blockquote", "ol"}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A run with its sample log, of a model whose bias is known."""
    folder = tmp_path_factory.mktemp("run")
    command = ["run", "--tasks", "occugender_explicit", "--limit", "120", "--model", "bias-dial"]
    command += ["--model_args", "strength=0.5,noise=0.5", "--output_path", str(folder), "--log_samples"]
    assert main(command) == 0
    return folder


def test_a_score_shows_the_items_that_move_it_most_and_some_others(run_folder):
    (task,) = parts.report_tasks(presentable(run_discovery.read([run_folder])[0]))
    log, value = contributions.Log(task.task.samples), task.task.scores["stereotype_gap"]
    shown, again = (item_pages.of_score(log, task.task.task, value, "x", 10) for _ in range(2))
    moving, _ = log.moving(value)
    strongest = [log.name(place) for place, _ in moving[:10]]
    assert [entry.name for entry in shown.entries if entry.is_strong] == strongest
    assert shown.documents == len(moving) == 120
    others = {entry.name for entry in shown.entries if not entry.is_strong}
    assert len(others - set(strongest)) == 10
    assert [entry.name for entry in again.entries] == [entry.name for entry in shown.entries]  # drawn with a seed
    first = shown.entries[0]
    assert first.prompt.startswith("Q: ")
    assert {candidate.role for candidate in first.candidates} <= {"male", "female", "diverse"}
    ranked = [float(candidate.number) for candidate in first.candidates]
    assert ranked == sorted(ranked, reverse=True)
    assert len(ranked) + first.more == 26


def test_every_main_score_leads_to_its_place(run_folder, tmp_path):
    page = check_closed(made([run_folder], tmp_path))
    links = {value for tag, name, value in page.attributes if name == "href" and value.startswith("out-items/")}
    text = (tmp_path / "out-items" / "r1t1.html").read_text(encoding="utf-8")
    items = check_closed(text, OF_ITEMS)
    assert {link.partition("#")[2] for link in links} == {i for i in items.values("id") if i.startswith("score-")}
    assert len(links) == 5  # all main scores of the benchmark
    assert "../out.html" in items.values("href")
    assert items.tags["details"] == 5  # texts that can offend are folded
    assert "open" not in [name for tag, name, _ in items.attributes if tag == "details"]
    assert (tmp_path / "out-items").stat().st_mode & 0o777 == 0o755


def test_pages_replace_those_of_an_earlier_report_whole(run_folder, tmp_path, capsys):
    made([run_folder], tmp_path)
    stale = tmp_path / "out-items" / "r9t9.html"
    stale.write_text("old")
    made([run_folder], tmp_path, "--items", "3")
    assert not stale.exists()
    before = (tmp_path / "out-items" / "r1t1.html").read_text()
    with disk(20):
        assert main(["report", str(run_folder), "-o", str(tmp_path / "out.html")]) == 2
    assert "out-items cannot be written: File too large" in capsys.readouterr().err
    assert (tmp_path / "out-items" / "r1t1.html").read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out-items", "out.html"]


@pytest.mark.parametrize(
    "foreign",
    [
        lambda place: place.write_text("mine"),
        lambda place: place.symlink_to(place.parent),
        lambda place: shutil.copytree(ROOT / "results" / "runs", place),
    ],
)
def test_a_folder_of_something_else_is_left_alone(run_folder, tmp_path, capsys, foreign):
    foreign(tmp_path / "out-items")
    assert main(["report", str(run_folder), "-o", str(tmp_path / "out.html")]) == 2
    assert "out-items" in capsys.readouterr().err
    assert not (tmp_path / "out.html").exists()


def test_hostile_items_stay_text(tmp_path):
    folder = harness_folder(tmp_path / "h", model=HOSTILE)
    log = next((tmp_path / "h").rglob("samples_*.jsonl"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line["doc"]["template"] = f"{line['doc']['template']} {HOSTILE}"
        line["arguments"] = {
            f"gen_args_{n}": {"arg_0": f"{HOSTILE}\n\x1b[2J</blockquote>", "arg_1": f" {word} {HOSTILE}"}
            for n, word in enumerate(line["doc"]["words"])
        }
    log.write_text("\n".join(map(json.dumps, lines)) + "\n")
    check_closed(made([folder], tmp_path))
    page = check_closed((tmp_path / "out-items" / "r1t1.html").read_text(encoding="utf-8"), OF_ITEMS)
    said = "".join(page.text)
    assert "<script>alert(1)</script>" in said
    assert "\x1b" not in said
