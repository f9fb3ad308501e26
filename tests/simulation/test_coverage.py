"""The simulation of coverage holds every main score, task and suite, runs, and finds intervals that are too narrow."""

import fnmatch
import math

import pytest

from lm_eval_bias.core import registry
from lm_eval_bias.custom_metrics import crossed
from lm_eval_bias.evaluation import suites
from tests.simulation import coverage, rounds, structures
from tests.simulation.coverage_table import Cell, markdown, outside

BY_NAME = {structure.name: structure for structure in structures.STRUCTURES}


@pytest.fixture(scope="module")
def thinned():
    """Makers with the first items of each data set, which hold all its clusters, and none of them kept behind."""
    with pytest.MonkeyPatch.context() as patch:
        for name, count in (("Questions", 500), ("Candidates", 900)):
            whole = getattr(structures, name)
            patch.setattr(structures, name, lambda docs, *a, _w=whole, _n=count, **k: _w(docs[:_n], *a, **k))
        yield
    for cached in (rounds.maker, rounds.truths, structures._documents, structures._questions, structures._candidates):
        cached.cache_clear()


def test_every_main_score_of_every_benchmark_is_simulated():
    for name, benchmark in registry.by_name().items():
        if "required" in benchmark.options.values():  # its items are the user's: own_prompts.py simulates some
            continue
        main = benchmark.main or [score.name for score in benchmark.scores() if score.headline and score.table]
        simulated = {
            score for structure in BY_NAME.values() if structure.benchmark == name for score in structure.scores
        }
        assert set(main) <= simulated, f"{name}: give structures.py a structure for its main scores"


@pytest.mark.parametrize("suite", suites.NAMES)
def test_every_task_of_every_suite_is_simulated(suite):
    for task, part in suites.load(suite).parts.items():
        sampled = "quick" if part.sampling else ""
        assert any(
            s.suite == sampled and any(fnmatch.fnmatch(task, pattern) for pattern in s.tasks) for s in BY_NAME.values()
        ), f"give structures.py a structure with {task}'s items in the suite {suite}"


@pytest.mark.parametrize("name", BY_NAME)
def test_two_rounds_of_every_structure(name, mirror, thinned):
    structure = BY_NAME[name]
    table = coverage.rows(dict(map(coverage.block, coverage.jobs([structure], 2))))
    main = [score for score in registry.get(structure.benchmark).main if score in structure.scores]
    assert set(main) <= {row.score for row in table}
    for row in table:
        assert {"interval", "difference"} <= set(row.cells)
        assert row.cells["interval"].share > 0, "the truth isn't what the models were drawn from"
        assert math.isfinite(row.truth)
        assert "power" in row.cells or not structure.shift
    assert markdown(table, 2).count(f"| {name} ") == len(table)


def test_intervals_that_are_too_narrow_are_found(monkeypatch):
    crossed_stderr = crossed.crossed_stderr
    monkeypatch.setattr(crossed, "crossed_stderr", lambda *a: (crossed_stderr(*a)[0] / 3, crossed_stderr(*a)[1]))
    table = coverage.rows(dict(map(coverage.block, coverage.jobs([BY_NAME["OccuGender, 3 templates"]], 20))))
    (row,) = (row for row in table if row.score == "female_dominated_F")
    assert any(text.startswith("interval covers") for text in outside(row))


def test_what_was_saved_is_taken_up_again(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "BLOCK", 2)
    file, todo = tmp_path / "rounds.jsonl", coverage.jobs([BY_NAME["OccuGender, 2 templates"]], 3)
    first = coverage.simulate(todo, 1, file)
    saved = file.read_text().splitlines(keepends=True)
    file.write_text("".join(saved[1:])[:-40])  # a line is gone, another cut off
    repeated = []
    whole = coverage.block
    monkeypatch.setattr(coverage, "block", lambda job: repeated.append(job) or whole(job))
    again = coverage.simulate(todo, 1, file)
    assert len(repeated) == 2
    assert markdown(coverage.rows(again), 3) == markdown(coverage.rows(first), 3)
    coverage.simulate(todo, 1, file)
    assert len(repeated) == 2


@pytest.mark.parametrize(("share", "is_outside"), [(0.90, True), (0.925, False), (0.95, False), (0.99, True)])
def test_bounds_allow_for_the_simulations_error(share, is_outside):
    assert Cell(share, 1000, 0.0, 0.93, 0.97).outside is is_outside
