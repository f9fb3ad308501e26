"""What is compared with what, and why two sides can't be compared item by item."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lm_eval_bias.comparing.pairing import (
    beside_the_model,
    conditions,
    pairs,
    why_not_paired,
)
from lm_eval_bias.core import registry
from lm_eval_bias.core.errors import BiasError
from tests.support.toy import pair, run_of, side, spread_over, task_run

VALUES = spread_over(values=(0.0, 1.0))


def listed(*arguments, **options):
    return [
        (p.subject, p.base.label, p.other.label) for p in pairs(*arguments, **options)
    ]


def in_languages(names):
    return run_of(
        "one", *(task_run(name, language=language) for name, language in names.items())
    )


# ---------------------------------------------------------------------- pairs


def test_each_run_is_compared_with_the_first_in_each_task_of_both():
    one = run_of("one", task_run("x"), task_run("y"), task_run("z"))
    two = run_of("two", task_run("y"), task_run("x"), task_run("w"))
    three = run_of("three", task_run("z"))
    assert listed([one, two, three]) == [
        ("x", "one", "two"),
        ("y", "one", "two"),
        ("z", "one", "three"),
    ]
    assert listed([one, two, three], base="three") == [("z", "three", "one")]
    found = pairs([one, two, run_of("four", task_run("x"))])
    sides = [(side.run, side.task) for side in (found[0].base, found[0].other)]
    assert sides == [(one, one.tasks["x"]), (two, two.tasks["x"])]
    assert found[0].base is found[2].base  # whose answers are read once


def test_languages_are_compared_within_a_run():
    names = {"alone_de": "de", "sets_de": "de", "sets_en": "en", "sets_fr": "fr", "a": "it", "b": "tr",
             "sets_de_inter": "de", "sets_es_inter": "es"}  # fmt: skip
    run = in_languages(names)
    expected = [
        ("sets_*", "language en", "language de"),
        ("sets_*", "language en", "language fr"),
        # without English the first
        ("sets_*_inter", "language de", "language es"),
    ]
    assert listed([run], "language") == expected
    two = listed([run, replace(run, name="two")], "language")
    assert two == [
        (f"{name}: {s}", *own) for name in ("one", "two") for s, *own in expected
    ]
    run = in_languages({f"sets_{one}": one for one in ("de", "en", "tr")})
    pairs_of = [("sets_*", "language tr", f"language {x}") for x in ("de", "en")]
    assert listed([run], "language", "tr") == pairs_of


def test_conditions_are_compared_with_their_own_base(toy):
    assert {"tone", "mood", "instruction"} <= conditions().keys()
    assert conditions()["tone"] is toy.extensions[0]
    tasks = [
        task_run(f"{stem}_tone_{tone}")
        for stem in ("x", "y")
        for tone in ("rude", "plain", "warm")
    ]
    run = run_of("one", *tasks, task_run("x"), task_run("z_tone_plain"))
    pairs_of = [
        (stem, "tone plain", f"tone {tone}")
        for stem in ("x", "y")
        for tone in ("rude", "warm")
    ]
    assert listed([run], "tone") == pairs_of
    assert listed([run], "tone", "warm")[0] == ("x", "tone warm", "tone rude")


@pytest.mark.parametrize(
    ("names", "options", "named"),
    [
        ((("x", "y"), ("z",)), {}, ["one: x, y; two: z"]),
        ((("x", "y"),), {}, ["(one)", "--by instruction"]),
        ((("x",), ("x",)), {"base": "tow"}, ["--base tow", "run among one, two"]),
        (
            (("x_tone_rude", "x_tone_plain"),),
            {"by": "tone", "base": "x"},
            ["--base x", "tone among rude, plain"],
        ),
        (
            (("x_en",),),
            {"by": "language"},
            ["--by language", "--tasks stereoset_en,stereoset_de"],
        ),
        ((("x_tone_rude",),), {"by": "tone"}, ["--by tone", "toy_plain,toy_rude"]),
        ((("x", "x_tone_rude"),), {"by": "mood"}, ["--by mood", "toy_calm"]),
        ((("alien_tone_rude", "alien_tone_plain"),), {"by": "tone"}, ["--by tone"]),
    ],
)
def test_runs_that_have_nothing_to_compare_are_refused(toy, names, options, named):
    def made(name):
        found = task_run(name, language=name.rpartition("_")[2])
        return (
            replace(found, definition=registry.of_run("alien"))
            if name.startswith("alien")
            else found
        )

    runs = [
        run_of(label, *map(made, own))
        for label, own in zip(("one", "two"), names, strict=False)
    ]
    with pytest.raises(BiasError) as error:
        pairs(runs, **options)
    assert all(text in str(error.value) for text in named)


# ---------------------------------------------------------------------- what was saved


def test_items_of_both_sides_in_the_bases_order(toy, tmp_path):
    base = side("one", tmp_path, {"c0": 1.0, "a0": 2.0, "b0": 3.0})
    other = side("two", tmp_path, {"b0": 4.0, "d0": 5.0, "c0": 6.0})
    two = pair(base, other)
    for _ in range(2):
        assert two.shared == [("c0",), ("b0",)]
        assert [[record["value"] for record in records] for records in two.records] == [
            [1.0, 3.0],
            [6.0, 4.0],
        ]
        two.forget()
        assert other.hashes == {}
        assert not {"shared", "records"} & {*vars(two), *vars(other)}
    assert base.hashes.keys() == base.records.keys()
    assert [record["value"] for record in base.known] == [1.0, 2.0, 3.0]
    twice = side("three", tmp_path, {"a0": 1.0, "b0": 2.0}, {"id": "a0"})
    assert {key: record["value"] for key, record in twice.records.items()} == {
        ("a0",): 1.0,
        ("a0", "2"): 2.0,
    }


def test_answers_that_cannot_be_read(toy, tmp_path):
    without = side("one", tmp_path)
    with pytest.raises(BiasError, match=r"toy has no saved answers: .*--log_samples"):
        _ = without.records
    assert without.known == []
    damaged = side("two", tmp_path, {"a0": 1.0, "b0": 2.0, "c0": 3.0})
    path = damaged.task.samples
    path.write_text(path.read_text().replace('"id": "c0"', '"di": "c0"'))
    with pytest.raises(BiasError, match=f"{path}: document 2: no field 'id'"):
        _ = damaged.records


# ---------------------------------------------------------------------- whether they can be paired


def meta(**metadata):
    return {"metadata": metadata}


def file(path, digest, **options):
    return meta(
        words=path,
        inputs={"documents": "0" * 64, "files": {path: digest * 64}},
        **options,
    )


def own(digest, name):
    return meta(dataset_used={"sha256": digest * 64, "file": name}, dataset=name)


def asked(digest):
    return meta(inputs={"documents": digest * 64} if digest else {})


def used(value):
    return meta(classifier_used=value)


def many(number):
    return {f"a{i}": 0.0 for i in range(number)}


FEW_SHARED = f"other items: 9 and {len(VALUES | many(4))}, 4 of them the same"
SEED = {"provenance": {"seeds": [1, 2, 3, 4]}}
FORMAL, RUDE, PLAIN = meta(words="formal"), meta(tone="rude"), meta(tone="plain")
SHOTS = meta(inputs={"num_fewshot": 2})


@pytest.mark.parametrize(
    ("base", "other", "by", "reason"),
    [
        ({}, {}, "run", ""),
        ({"version": "1.0"}, {"version": "2.0"}, "run", "version 1.0 and 2.0"),
        ({}, SEED, "run", ""),  # where nothing is drawn
        (SHOTS, {**SHOTS, **SEED}, "run", "seeds None,None,None,None and 1,2,3,4"),
        # data sets of one's own are known by their content; each language has its own
        (own("1", "x"), own("1", "y"), "run", ""),
        (own("1", "x"), own("2", "x"), "run", f"dataset x ({'1' * 12}) and x ({'2' * 12})"),
        (own("1", "x"), own("2", "x"), "language", ""),
        # options, but for the one that is compared, and those that the benchmark doesn't have
        (FORMAL, meta(words=3), "run", "words formal and 3"),
        (PLAIN, RUDE, "tone", ""),
        (used({"name": "a", "n": 1}), used({"name": "a", "n": 2}), "run", ""),
        # files are known by their content, and one that isn't known is another
        (file("here/a.yaml", "1"), file("there/b.yaml", "1"), "run", ""),
        (file("a.yaml", "1"), file("a.yaml", "2"), "run", f"words a.yaml ({'1' * 12}) and a.yaml ({'2' * 12})"),
        (file("x/a.yaml", "1"), meta(words="x/a.yaml"), "run", f"words a.yaml ({'1' * 12}) and x/a.yaml"),
        (meta(inputs={"num_fewshot": 0}), SHOTS, "run", ""),  # is noted
        # other items; of two languages those that both have count, if they are half of the smaller one's
        ({"values": {**VALUES, "i0": 0.0}}, {}, "run", "other items: 17 and 16, 16 of them the same"),
        ({"values": many(4)}, {"values": {**VALUES, **many(4)}}, "language", ""),
        ({"values": many(9)}, {"values": {**VALUES, **many(4)}}, "language", FEW_SHARED),
        # texts of translations differ, and what was asked with them
        ({"fields": {"text": "1"}, **asked("1")}, {"fields": {"text": "2"}, **asked("2")}, "language", ""),
        ({"fields": {"text": "1"}}, {"fields": {"text": "2"}}, "run", "other contents of 16 of 16 items"),
        ({"fields": {"tone": "1"}}, {"fields": {"tone": "2"}}, "run", ""),  # a condition
        # prompts: unknown ones are only noted, those of two instructions are meant to be others
        (asked("1"), asked("2"), "run", "other prompts for the same documents"),
        (asked("1"), asked(""), "run", ""),
        (asked("1"), asked("2"), "tone", ""),
    ],
)  # fmt: skip
def test_why_two_sides_cannot_be_paired(toy, tmp_path, base, other, by, reason):
    one, two = (
        side(name, tmp_path, **{"values": VALUES, **changes})
        for name, changes in (("a", base), ("b", other))
    )
    assert why_not_paired(pair(one, two), by) == reason


# ---------------------------------------------------------------------- what else differs


def noted(tmp_path, one, two, base=(), other=()):
    sides = (("one", one, base), ("two", two, other))
    return beside_the_model(
        pair(
            *(
                side(name, tmp_path, provenance=own, **dict(more))
                for name, own, more in sides
            )
        )
    )


def test_other_prompts_are_noted(tmp_path):
    assert (
        noted(tmp_path, {}, {}, asked("1"), asked("2"))
        == "the runs have different items, documents or prompts"
    )
    assert "don't record" in noted(tmp_path, {}, {}, asked("1"), asked(""))


def test_other_code_of_the_benchmark_is_noted_where_both_runs_know_it(tmp_path):
    def code(distribution, digit):
        return meta(
            distribution=distribution,
            inputs={"documents": "0" * 64, "package_code": digit and digit * 64},
        )

    for other, note in (
        (("a", "1"), ""),
        (("a", ""), ""),
        (("a", "2"), "a 22222222"),
        (("b", "1"), "b 11111111"),
    ):
        said = noted(tmp_path, {}, {}, code("a", "1"), code(*other))
        assert said == (
            note and f"the runs differ in the benchmark's code (a 11111111, {note})"
        )
