"""The table of what counts: a row a fact, and one answer whatever command asks whether two runs measured the same."""

import shutil
from dataclasses import fields, is_dataclass
from typing import get_type_hints

import pytest

from lm_eval_bias.boards import building, models
from lm_eval_bias.comparing.pairing import beside_the_model, pairs, why_not_paired
from lm_eval_bias.core import comparability, run_record
from lm_eval_bias.gate import verdict
from lm_eval_bias.gate.policy_file import Bound, Policy
from lm_eval_bias.runs import measurement, provenance
from lm_eval_bias.runs.run_discovery import read
from tests.support.made_runs import edited, harness_folder

TASK, ANOTHER = "occugender_explicit", "occugender_implicit"
CELLS = {
    "when": {"", "sampled", "generated"},
    "ranks": {"", "apart"},
    "joins": {"", "same", "known"},
    "pairs": {"", "refused", "note", "both", "items"},
    "gate": {"", "allow", "said"},
    "cache": {"", "other"},
    "board": {"", "other"},
    "always": {False, True},
    "departs": {"", *measurement._BY_PARTS, *measurement._DEPARTS},
    "written": {"", *measurement._WRITTEN},
}


def leaves(kind, before=""):
    """The fields of a record that hold no record of their own, as the table names them."""
    hints = get_type_hints(kind)
    for field in fields(kind):
        held = hints[field.name]
        if is_dataclass(held):
            yield from leaves(held, f"{before}{field.name}.")
        else:
            yield before + field.name


def test_every_fact_has_a_row_and_every_row_is_a_fact():
    assert sorted(comparability.facts()) == sorted(leaves(run_record.RunRecord))
    for fact in comparability.facts().values():
        for column, cells in CELLS.items():
            assert getattr(fact, column) in cells, (fact.field, column)


def test_every_field_is_documented():
    for kind in vars(run_record).values():
        if is_dataclass(kind):
            for field in fields(kind):
                assert f"{field.name}: " in kind.__doc__, (kind, field.name)


def configured(**changes):
    return lambda content: content["config"].update(changes)


def with_arguments(**changes):
    return lambda content: content["config"]["model_args"].update(changes)


def told(**changes):
    return lambda content: content.update(changes)


def of_task(**changes):
    def change(content):
        for config in content["configs"].values():
            config["metadata"].setdefault("inputs", {}).update(changes)

    return change


def template(content):
    content["chat_template_sha"] = "ab" * 32


def thinking(content):
    template(content)
    with_arguments(enable_thinking=False)(content)


def files(digest):
    def change(content):
        content["provenance"] = {"model": {"pretrained files": {"a": digest * 64}}}

    return change


def versions(content):
    content["versions"] = dict.fromkeys(content["versions"], 0.5)


def nothing(content):
    pass


SHOTS = of_task(num_fewshot=2)
SEED = configured(random_seed=7)
ALWAYS = configured(random_seed=0, numpy_seed=1234, torch_seed=1234, fewshot_seed=1234)


# the base's change, the other's; whether they are ranked apart, joined, paired ("" or with what note, None: not), what
# a policy has to allow
@pytest.mark.parametrize(
    ("base", "other", "apart", "joined", "paired", "allow"),
    [
        (nothing, nothing, False, True, "", ""),
        (nothing, template, True, False, "chat template", "chat_template"),
        (template, thinking, True, False, "template arguments", "enable_thinking"),
        (nothing, told(system_instruction="Be fair"), True, False, "system instruction", "system_instruction"),
        (nothing, SEED, False, False, "", ""),  # nothing is drawn
        (SHOTS, (SHOTS, SEED), True, False, None, "seeds"),
        (nothing, configured(model_dtype="torch.float16"), False, False, "dtype", ""),
        (nothing, configured(batch_size="16"), False, True, "batch size", ""),
        (nothing, SHOTS, True, True, "num fewshot", "num_fewshot"),
        (nothing, configured(gen_kwargs={"top_p": 0.1}), False, False, "", ""),  # nothing is written
        (files("1"), files("2"), False, False, "", ""),
        (nothing, files("2"), False, True, "", ""),  # one doesn't say
        (nothing, versions, True, True, None, "version"),
    ],
)  # fmt: skip
def test_one_answer_whoever_asks(tmp_path, base, other, apart, joined, paired, allow):
    for name, change in (("one", base), ("two", other)):
        changes = change if isinstance(change, tuple) else (change,)
        for each in (ALWAYS, of_task(documents="0" * 64), *changes):
            edited(harness_folder_once(tmp_path / name), each)
    runs = read([f"A={tmp_path / 'one'}", f"B={tmp_path / 'two'}"])[0]
    (board,) = building.boards(models.models(runs))
    groups = {row.group for row in board.rows if row.kind == building.RUN}
    assert (len(groups) == 2) == apart

    (pair,) = pairs(runs)
    reason = why_not_paired(pair, "run")
    assert bool(reason) == (paired is None)
    if paired is not None:
        note = f"the runs differ in {paired} (" if paired else ""
        assert beside_the_model(pair).startswith(note)
        assert bool(beside_the_model(pair)) == bool(paired)

    bounds = (Bound(TASK, "stereotype_gap", high=0.9),)
    known = {finding.score for finding in verdict.check(runs[0], Policy(bounds))}
    found = verdict.check(runs[1], Policy(bounds))
    missed = {one.score for one in found if not one.passes} - known
    assert missed == ({allow} if allow else set())
    allowed = verdict.check(runs[1], Policy(bounds, allow=(allow,)))
    assert not {one.score for one in allowed if not one.passes} & missed

    def rename(content):
        for key in ("results", "configs", "versions", "n-samples"):
            content[key][ANOTHER] = content[key].pop(TASK)

    folder = shutil.copytree(tmp_path / "one", tmp_path / "both" / "one")
    shutil.copytree(tmp_path / "two", folder.parent / "two")
    edited(folder.parent / "two", rename)
    assert (len(read([folder.parent])[0]) == 1) == joined


def harness_folder_once(folder):
    return folder if folder.exists() else harness_folder(folder)


@pytest.mark.parametrize(
    ("arguments", "template", "same"),
    [
        ({}, None, True),
        ({"batch_size": 8, "base_url": "x"}, None, True),
        ({"dtype": "float16"}, None, False),
        ({"enable_thinking": False}, None, False),
        ({}, True, False),
    ],
)
def test_a_cache_is_another_models(arguments, template, same):
    one = provenance.identity("hf", {"pretrained": "x"})
    other = provenance.identity("hf-packed", {"pretrained": "x", **arguments}, template)
    assert (one == other) == same
