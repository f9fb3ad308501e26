"""Result files and sample logs of strangers, damaged in any place: skipped and named, or read; the others' stay."""

import copy
import json

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.runs import harness_results
from tests.support.commands import command
from tests.support.made_runs import DATE, harness_form, run_of, write

GOOD = json.loads(
    json.dumps(harness_form(run_of("tiny", tasks=("stereoset_en", "regard_en"))))
)


def with_wrong(place, wrong):
    holder = content = copy.deepcopy(GOOD)
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = wrong
    return content


SCORE = ("configs", "stereoset_en", "metric_list", 0)
VALUE = ("results", "stereoset_en", "lms,none")
IMPOSSIBLE = [
    (VALUE, float("inf"), "lms"), (VALUE, True, "True"), (VALUE, 100.5, "outside of its range of 0 to 100"),
    (VALUE, -3, "outside of its range of 0 to 100"), (VALUE, "high", "high"),
    (("results", "stereoset_en", "lms_stderr,none"), -1.0, "error -1"),
    ((*SCORE, "interval"), [60.0, 40.0], "60 to 40"), ((*SCORE, "interval"), [float("nan"), 1], "interval"),
    ((*SCORE, "n"), -1, "metric_list/0/n"), ((*SCORE, "n"), True, "metric_list/0/n"),
    ((*SCORE, "dof"), float("inf"), "dof"),
    (("configs", "stereoset_en", "metadata", "suite"), "quick", "metadata/suite"),
    (("n-samples", "stereoset_en", "effective"), 1.5, "effective"), (("date",), 1e300, "date"),
]  # fmt: skip


def test_what_no_run_writes_is_refused_by_name(tmp_path):
    for place, wrong, says in IMPOSSIBLE:
        with pytest.raises(BiasError) as error:
            harness_results.read(tmp_path / "a.json", with_wrong(place, wrong))
        assert "not the results of a harness run (" in str(error.value)
        assert says in str(error.value)


def test_a_file_of_a_stranger_is_skipped_and_named(tmp_path):
    write(tmp_path / "run.json", run_of("fine", tasks=("stereoset_en",), shift=2))
    file = tmp_path / f"results_{DATE}.json"
    file.write_text(json.dumps(with_wrong(*IMPOSSIBLE[0][:2])))
    for words in (["leaderboard"], ["report", "--format", "md"]):
        made = command(*words, str(tmp_path))
        assert (made.status, "fine" in made.out) == (0, True), made
        assert file.name in made.out + made.err
