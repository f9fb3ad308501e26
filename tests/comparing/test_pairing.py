"""What is compared with what, and why two sides can't be compared item by item."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lm_eval_bias.comparing.pairing import MATTERS, Pair, Side, beside_the_model, conditions, pairs, why_not_paired
from lm_eval_bias.core.errors import BiasError
from tests.support.toy import pair, run_of, side, spread_over, task_run

VALUES = spread_over(values=(0.0, 1.0))


def refusal(*arguments, **options):
    with pytest.raises(BiasError) as error:
        pairs(*arguments, **options)
    return str(error.value)


def listed(*arguments, **options):
    return [(p.subject, p.base.label, p.other.label) for p in pairs(*arguments, **options)]


# ---------------------------------------------------------------------- pairs


def test_each_run_is_compared_with_the_first_in_each_task_of_both():
    one = run_of("one", task_run("x"), task_run("y"), task_run("z"))
    two = run_of("two", task_run("y"), task_run("x"), task_run("w"))
    three = run_of("three", task_run("z"))
    assert listed([one, two, three]) == [("x", "one", "two"), ("y", "one", "two"), ("z", "one", "three")]
    assert listed([one, two, three], base="three") == [("z", "three", "one")]
    found = pairs([one, two, three])
    assert found[0].base.run is one
    assert found[0].base.task is one.tasks["x"]
    assert found[0].other.run is two
    assert found[0].other.task is two.tasks["x"]


def test_pairs_of_one_base_share_its_answers():
    runs = [run_of(name, task_run("x")) for name in ("one", "two", "three")]
    found = pairs(runs)
    assert found[0].base is found[1].base


def test_runs_that_have_nothing_to_compare_are_refused():
    one, two = run_of("one", task_run("x"), task_run("y")), run_of("two", task_run("z"))
    assert refusal([one, two]) == "the runs have no task in common (one: x, y; two: z)"
    assert refusal([one]) == (
        "there is only one run (one): name another one, or compare within it: --by instruction or --by language"
    )
    assert refusal([one, two], base="tow") == "--base tow: no such run among one, two. Did you mean two?"


def test_languages_are_compared_within_a_run():
    names = {"sets_de": "de", "sets_en": "en", "sets_fr": "fr", "sets_de_inter": "de", "sets_es_inter": "es"}
    tasks = [task_run(name, language=language) for name, language in names.items()]
    found = pairs([run_of("one", *tasks)], "language")
    assert [(p.subject, p.base.task.task, p.other.task.task) for p in found] == [
        ("sets_*", "sets_en", "sets_de"),
        ("sets_*", "sets_en", "sets_fr"),
        ("sets_*_inter", "sets_de_inter", "sets_es_inter"),  # without English the first
    ]
    assert [(p.base.label, p.other.label) for p in found][-1] == ("language de", "language es")
    assert found[0].base.run.name == "one"
    assert found[0].other.run.name == "one"


def test_a_language_is_the_first_part_of_a_name_that_is_it():
    names = {"sets_de_de": "de", "sets_en_de": "en", "sets_desert": "de", "sets_enert": "en"}
    tasks = [task_run(name, language=language) for name, language in names.items()]
    assert listed([run_of("one", *tasks)], "language") == [("sets_*_de", "language en", "language de")]


def test_a_base_is_one_of_the_languages_that_were_run():
    run = run_of("one", *(task_run(f"sets_{language}", language=language) for language in ("de", "en", "tr")))
    assert listed([run], "language", "tr") == [("sets_*", "language tr", f"language {x}") for x in ("de", "en")]
    assert refusal([run], "language", "dee") == "--base dee: no such language among de, en, tr. Did you mean de?"


def test_of_several_runs_each_is_named():
    runs = [run_of(name, task_run("x_de", language="de"), task_run("x_en")) for name in ("one", "two")]
    assert listed(runs, "language") == [(f"{name}: x_*", "language en", "language de") for name in ("one", "two")]


def test_conditions_are_compared_with_their_own_base(toy):
    assert {"tone", "mood", "instruction"} <= conditions().keys()
    assert conditions()["tone"] is toy.extensions[0]
    tasks = [task_run(f"{stem}_tone_{tone}") for stem in ("x", "y") for tone in ("rude", "plain", "warm")]
    run = run_of("one", *tasks, task_run("x"), task_run("z_tone_plain"))
    assert listed([run], "tone") == [
        (stem, "tone plain", f"tone {tone}") for stem in ("x", "y") for tone in ("rude", "warm")
    ]
    assert listed([run], "tone", "warm")[0] == ("x", "tone warm", "tone rude")
    assert refusal([run_of("one", *tasks[:1])], "tone") == (
        "--by tone: no task was run in two or more tones (toy_plain,toy_rude)"
    )
    assert refusal([run], "mood") == "--by mood: no task was run in two or more moods (toy_calm)"


def test_tasks_without_levels_do_not_end_the_search(toy):
    alone, other = task_run("x_tone_plain"), replace(task_run("stereoset_en"), benchmark="stereoset")
    pair_of = [task_run(f"y_tone_{tone}") for tone in ("plain", "rude")]
    assert listed([run_of("one", alone, other, *pair_of)], "tone") == [("y", "tone plain", "tone rude")]


def test_a_task_of_an_unknown_benchmark_has_no_levels(toy):
    alien = [replace(task_run(f"x_tone_{tone}"), benchmark="alien") for tone in ("rude", "plain")]
    assert refusal([run_of("one", *alien)], "tone").startswith("--by tone: no task")


# ---------------------------------------------------------------------- what was saved


def test_items_of_both_sides_in_the_bases_order(toy, tmp_path):
    base = side("one", tmp_path, {"c0": 1.0, "a0": 2.0, "b0": 3.0})
    other = side("two", tmp_path, {"b0": 4.0, "d0": 5.0, "c0": 6.0})
    two = pair(base, other)
    assert two.shared == [("c0",), ("b0",)]
    assert [[record["value"] for record in records] for records in two.records] == [[1.0, 3.0], [6.0, 4.0]]
    assert base.hashes.keys() == base.records.keys()
    assert [doc["id"] for doc in base.docs] == ["c0", "a0", "b0"]
    two.forget()
    assert other.hashes == {}
    assert base.hashes
    assert not {"shared", "records"} & {*vars(two), *vars(other)}
    assert two.shared == [("c0",), ("b0",)]
    two.forget()
    two.forget()  # what isn't there needn't be


def test_a_side_without_a_log_has_no_answers(toy, tmp_path):
    without = side("one", tmp_path)
    with pytest.raises(BiasError) as error:
        _ = without.records
    assert "one.json" in str(error.value)
    assert "--log_samples" in str(error.value)
    assert without.docs == []


def test_a_damaged_document_is_named_by_its_place(toy, tmp_path):
    damaged = side("one", tmp_path, {"a0": 1.0, "b0": 2.0, "c0": 3.0})
    path = damaged.task.samples
    path.write_text(path.read_text().replace('"id": "c0"', '"di": "c0"'))
    with pytest.raises(BiasError, match=f"{path}: document 2: no field 'id'"):
        _ = damaged.records


# ---------------------------------------------------------------------- whether they can be paired


def why(tmp_path, base=(), other=(), by="run", values=(VALUES, VALUES)):
    """Why two sides with these changes can't be paired."""
    sides = [
        side(name, tmp_path, answers, **dict(changes))
        for name, answers, changes in zip(("one", "two"), values, (base, other), strict=True)
    ]
    return why_not_paired(pair(*sides), by)


@pytest.fixture
def refused(toy, tmp_path):
    return lambda *arguments, **options: why(tmp_path, *arguments, **options)


def test_versions_and_seeds(refused):
    assert refused() == ""
    assert refused({"version": "1.0"}, {"version": "2.0"}) == "task versions 1.0 and 2.0"
    seeds = [{"provenance": {"seeds": [n]}} for n in (0, 1)]
    assert refused(*seeds) == "seeds [0] and [1]"
    assert refused({}, seeds[1]) == "seeds None and [1]"
    assert refused(seeds[1], seeds[1]) == ""


def test_data_sets_of_ones_own_are_known_by_their_content(refused):
    one, again, other = (
        {"metadata": {"dataset_used": {"sha256": digit * 64, "file": name}, "dataset": name}}
        for digit, name in (("1", "x"), ("1", "y"), ("2", "x"))
    )
    assert refused(one, again) == ""
    assert refused(one, other) == f"data sets: {'1' * 12} and {'2' * 12}"
    assert refused({}, other) == f"data sets: the published one and {'2' * 12}"
    assert refused(other, {}) == f"data sets: {'2' * 12} and the published one"
    assert refused(one, other, by="language") == ""  # each language has its own


def test_options(refused):
    formal, other = {"metadata": {"words": "formal"}}, {"metadata": {"words": 3}}
    assert refused(formal, formal) == ""
    assert refused(formal, other) == "words 'formal' and 3"
    assert refused({}, formal) == "words None and 'formal'"
    assert refused({}, formal, by="language") == "words None and 'formal'"
    # what is compared may differ, also where other options follow it
    tones = [{"metadata": {"tone": tone}} for tone in ("plain", "rude")]
    assert refused(*tones) == "tone 'plain' and 'rude'"
    assert refused(*tones, by="tone") == ""
    assert refused(formal, other, by="tone") == "words 'formal' and 3"
    # an option that the benchmark doesn't have changes nothing
    assert refused({"metadata": {"remark": 1}}, {"metadata": {"remark": 2}}) == ""


def test_an_option_that_is_compared_does_not_hide_those_after_it(toy, refused):
    toy.options = ("tone", "dataset", "words")
    tones = [{"metadata": {"tone": tone, "words": tone}} for tone in ("plain", "rude")]
    assert refused(*tones, by="tone") == "words 'plain' and 'rude'"


def test_classifiers_are_known_by_name(refused):
    used = [{"metadata": {"classifier_used": value}} for value in ({"name": "a", "n": 1}, {"name": "a", "n": 2}, "a")]
    assert refused(used[0], used[1]) == ""
    assert refused(used[0], used[2]) == ""
    other = {"metadata": {"classifier_used": {"name": "b"}}}
    assert refused(used[0], other) == "classifier_used 'a' and 'b'"
    assert refused({}, other) == "classifier_used None and 'b'"


def file(path, digest, **options):
    hashes = {"inputs": {"documents": "0" * 64, "files": {path: digest}}}
    return {"metadata": {"words": path, **hashes, **options}}


def test_files_are_known_by_their_content(toy, refused):
    assert refused(file("here/a.yaml", "1" * 64), file("there/b.yaml", "1" * 64)) == ""
    assert refused(file("here/a.yaml", "1" * 64), file("here/a.yaml", "2" * 64)) == (
        f"words 'a.yaml ({'1' * 12})' and 'a.yaml ({'2' * 12})'"
    )
    # a file that isn't known to have been read is another than one that is
    unread = {"metadata": {"words": "here/a.yaml"}}
    assert refused(file("here/a.yaml", "1" * 64), unread) == f"words 'a.yaml ({'1' * 12})' and 'here/a.yaml'"
    assert refused(unread, file("here/a.yaml", "1" * 64)) == f"words 'here/a.yaml' and 'a.yaml ({'1' * 12})'"
    # the same file does not end the search
    tones = [file(f"{tone}.yaml", "1" * 64, tone=tone) for tone in ("plain", "rude")]
    assert refused(*tones) == "tone 'plain' and 'rude'"


def test_examples_in_the_prompts(refused):
    shots = [{"metadata": {"inputs": {"num_fewshot": n}}} for n in (0, 2)]
    assert refused(*shots) == "different numbers of examples in the prompts"
    assert refused(shots[1], {}) == refused({}, shots[1]) == "different numbers of examples in the prompts"
    assert refused(shots[0], {}) == refused({}, shots[0]) == ""
    assert refused(shots[1], shots[1]) == ""


def test_other_items(refused):
    more = {**VALUES, "i0": 0.0}
    fewer = {key: VALUES[key] for key in list(VALUES)[:15]}
    moved = {**fewer, "i0": 0.0}
    assert refused(values=(VALUES, more)) == "other items: 16 and 17, 16 of them the same"
    assert refused(values=(more, VALUES)) == "other items: 17 and 16, 16 of them the same"
    assert refused(values=(VALUES, moved)) == "other items: 16 and 16, 15 of them the same"
    assert refused(values=(VALUES, dict(reversed(VALUES.items())))) == ""


def test_translations_may_miss_a_tenth_of_the_items(refused):
    def values(number):
        return {f"a{i}": 0.0 for i in range(number)}

    assert refused(values=(values(10), values(9)), by="language") == ""
    assert refused(values=(values(9), values(10)), by="language") == ""
    assert refused(values=(values(10), values(9))).startswith("other items")
    for sizes in ((20, 17), (17, 20)):
        said = refused(values=tuple(map(values, sizes)), by="language")
        assert said == f"other items: {sizes[0]} and {sizes[1]}, 17 of them the same"
    # texts of translations differ, and what was asked with them
    asked = [{"fields": {"text": text}, "metadata": {"inputs": {"documents": text * 64}}} for text in "12"]
    assert refused(*asked, by="language") == ""


def test_the_same_items_with_other_contents(refused):
    texts = [{"fields": {"text": text, "unit": "x", "more": text}} for text in ("one", "two")]
    assert refused(*texts) == "other contents of 16 of 16 items"
    # of the condition that is compared a document may tell, of others not in pairs of it
    tones = [{"fields": {"tone": tone}} for tone in ("plain", "rude")]
    assert refused(*tones) == ""


def test_items_of_which_some_have_other_contents(toy, tmp_path):
    sides = [side(name, tmp_path, VALUES, {"text": "one"}) for name in ("one", "two")]
    path = sides[1].task.samples
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], *(line.replace('"one"', '"two"') for line in lines[5:8]), *lines[8:]]))
    assert why_not_paired(pair(*sides), "run") == "other contents of 3 of 16 items"


def asked(*hashes):
    return [{"metadata": {"inputs": {"documents": digit * 64} if digit else {}}} for digit in hashes]


def test_the_same_documents_asked_otherwise(refused):
    assert refused(*asked("1", "2")) == "other prompts for the same documents"
    assert refused(*asked("1", "1")) == ""
    # where it isn't known it is only noted
    assert refused(*asked("1", "")) == ""
    assert refused(*asked("", "1")) == ""
    # prompts of two instructions are meant to be others
    assert refused(*asked("1", "2"), by="tone") == ""


# ---------------------------------------------------------------------- what else differs


def noted(tmp_path, one, two, base=(), other=()):
    return beside_the_model(
        pair(
            side("one", tmp_path, provenance=one, **dict(base)),
            side("two", tmp_path, provenance=two, **dict(other)),
        )
    )


def test_everything_that_moves_scores_is_named_where_it_differs(tmp_path):
    known = asked("1")[0]
    assert noted(tmp_path, {}, {}, known, known) == ""
    for name in MATTERS:
        words = name.replace("_", " ")
        both = ({name: "x"}, {name: "y"}), ({}, {name: "y"}), ({name: "x"}, {})
        said = [noted(tmp_path, one, two, known, known) for one, two in both]
        assert said == [f"the runs differ in {words} ({texts})" for texts in ("x, y", "none, y", "x, none")]
        assert noted(tmp_path, {name: "x"}, {name: "x"}, known, known) == ""
    assert noted(tmp_path, {"date": "x", "model": "x"}, {"date": "y"}, known, known) == ""
    several = noted(tmp_path, {"torch": 1, "dtype": "y" * 30}, {"torch": 2}, known, known)
    assert several == f"the runs differ in dtype ({'y' * 24}, none), torch (1, 2)"


def test_what_was_asked_is_noted_where_it_differs_or_is_not_known(tmp_path):
    one, two = asked("1", "2")
    differ = "the runs have different items, documents or prompts"
    unknown = "the files don't record whether the prompts are the same: they come from an older version"
    assert noted(tmp_path, {}, {}, one, two) == differ
    assert noted(tmp_path, {}, {}, one) == noted(tmp_path, {}, {}, (), two) == noted(tmp_path, {}, {}) == unknown
    assert noted(tmp_path, {"torch": 1}, {"torch": 2}, one, two) == f"the runs differ in torch (1, 2); {differ}"
    # of two tasks prompts are meant to be others
    tasks = [task_run(name, **changes) for name, changes in (("x", one), ("y", two))]
    apart = Pair("x", *(Side("", run_of("run", task), task) for task in tasks))
    assert beside_the_model(apart) == ""
