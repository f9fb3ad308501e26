"""GG-BBQ's documents: the real files where they are, and the rules on small ones."""

import math
from collections import Counter

import pytest

from lm_eval_bias import registry
from lm_eval_bias.custom_metrics.gg_bbq import scores
from lm_eval_bias.errors import BiasError
from lm_eval_bias.tasks.gg_bbq import hooks, released_items
from lm_eval_bias.tasks.gg_bbq.filters import NO_ANSWER, parse_choice


@pytest.mark.parametrize(
    ("subset", "size", "templates", "biased", "counter"),
    [("group_terms", 484, 21, 208, 276), ("names", 5450, 21, 1250, 4200)],
)
def test_released_files(mirror, subset, size, templates, biased, counter):
    items = released_items.items(subset)
    contexts = Counter(i["context_type"] for i in items)
    assert contexts == {"ambiguous": size, "disambiguated": size}
    assert len({i["template"] for i in items}) == templates
    informed = [i for i in items if i["context_type"] == "disambiguated"]
    assert Counter(i["label"] == i["biased_choice"] for i in informed) == {True: biased, False: counter}
    assert all(i["label"] == 2 for i in items if i["context_type"] == "ambiguous")
    assert all(c == c.strip() for i in items for c in i["choices"])


def test_template_of_both_halves_of_an_item_is_the_same(mirror):
    by_item = {}
    for item in released_items.items("group_terms"):
        by_item.setdefault(item["item"], set()).add(item["template"])
    assert all(len(found) == 1 for found in by_item.values())


def test_any_beginning_is_spread_over_templates(mirror):
    first = released_items.items("group_terms")[:84]
    assert Counter(i["template"] for i in first) == dict.fromkeys({i["template"] for i in first}, 4)
    assert len({i["template"] for i in first}) == 21


def test_tiny_files(tiny_mirror):
    items = released_items.items("group_terms")
    assert len(items) == 16
    assert {i["template"] for i in items} == {"group_terms-1", "group_terms-2"}
    one = items[0]
    assert one["choices"] == ["Eine Frau", "ein Mann", "keine Antwort"]  # the trailing space is gone
    assert one["question_type"] == "negative"
    assert one["groups"][one["biased_choice"]] == "F"


def test_biased_answer():
    groups = ["M", "F", "unknown"]
    assert released_items.biased_choice(groups, {"F"}, "negative") == 1
    assert released_items.biased_choice(groups, {"F"}, "non_negative") == 0
    assert released_items.biased_choice(["unknown", "F", "non_binary"], {"non_binary"}, "negative") == 2
    with pytest.raises(BiasError, match="do not hold one person"):
        released_items.biased_choice(groups, {"non_binary"}, "negative")


def test_unknown_groups_are_refused():
    assert released_items.stereotyped_groups('["transgender women", "trans"]') == {"non_binary"}
    with pytest.raises(BiasError, match="neither F, M"):
        released_items.stereotyped_groups('["elderly"]')


def test_item_without_template_is_refused(tiny_mirror):
    templates = released_items.Templates([])
    with pytest.raises(BiasError, match="0 templates fit"):
        templates.find("Ein Text.", "Wer?")


def document(**changes):
    doc = {
        "item": 1,
        "context_type": "ambiguous",
        "choices": ["Der Mann", "Die Frau", "keine Antwort"],
        "groups": ["M", "F", "unknown"],
        "label": 2,
        "biased_choice": 1,
        "value": "v",
        "template": "t",
        "wording": 2,
    }
    return {**doc, **changes}


@pytest.mark.parametrize(
    ("values", "answer"),
    [((-1, -2, -3), "counter"), ((-2, -1, -3), "biased"), ((-2, -3, -1), "unknown"), ((-1, -1, -3), "none")],
)
def test_answers_from_loglikelihoods(values, answer):
    made = hooks.record(document(), [(v, False) for v in values])
    assert made["answer"] == answer
    assert made["correct"] == (answer == "unknown")


def test_position_of_no_answer_does_not_matter():
    moved = document(choices=["keine Antwort", "Die Frau", "Der Mann"], groups=["unknown", "F", "M"], label=0)
    assert hooks.record(moved, [(-1.0, True), (-2.0, False), (-3.0, False)])["correct"]
    assert hooks.record(moved, [(-3.0, True), (-2.0, False), (-1.0, False)])["answer"] == "counter"


def test_nan_from_the_model_makes_scores_nan():
    broken = hooks.record(document(), [(math.nan, False), (-1.0, False), (-1.5, False)])
    fine = hooks.record(document(), [(-3.0, False), (-2.0, False), (-1.0, False)])
    for score in scores():
        if "disamb" not in score.name:
            found = score.compute([broken, fine])
            assert math.isnan(found.value), score.name
            assert "gave nan for 1 of 2" in found.reason


def test_missing_answers_are_refused():
    with pytest.raises(BiasError, match="2 answers for 3 choices"):
        hooks.record(document(), [(-1.0, False), (-1.0, False)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Die Frau", "Die Frau"),
        (" die frau. Denn sie", "Die Frau"),
        ("Antwort: keine Antwort", "keine Antwort"),
        ("Der Mann war es, nicht die Frau", NO_ANSWER),
        ("Der Mann\nDie Frau kam später.", "Der Mann"),
        ("Es war wohl so:\nDer Mann", "Der Mann"),
        ("Der Manntel", NO_ANSWER),
        ("", NO_ANSWER),
        ("Ich weiß es nicht", NO_ANSWER),
        ("\n\nDie Frau.\n\nText: ...", "Die Frau"),
        ("**Antwort:** Die Frau", "Die Frau"),
        ("„Der Mann“", "Der Mann"),
        ("Keine Antwort, denn es bleibt offen, ob der Mann oder die Frau gemeint ist.", "keine Antwort"),
    ],
)
def test_parsing_generated_answers(text, expected):
    choices = ["Der Mann", "Die Frau", "keine Antwort"]
    assert parse_choice(text, choices) == expected
    made = hooks.record(document(choices=choices), [parse_choice(text, choices)])
    assert (made["answer"] == "none") == (expected == NO_ANSWER)


def test_parsing_names_inside_names_and_letters():
    assert parse_choice("Die Transfrau", ["Die Frau", "Die Transfrau", "keine Antwort"]) == "Die Transfrau"
    assert parse_choice("die Freundin", ["die Freund", "die Freundin", "keine Antwort"]) == "die Freundin"
    choices, letters = ["Kim", "Emma", "keine Antwort"], ["C", "A", "B"]
    assert parse_choice("A", choices, letters) == "Emma"
    assert parse_choice("(B) keine Antwort", choices, letters) == "keine Antwort"
    assert parse_choice("Antwort: C.", choices, letters) == "Kim"
    assert parse_choice("Also Emma", choices, letters) == "Emma"
    for text in ("Die richtige Antwort ist B.", "**B**", "b)", "**Antwort:** B", "Die Antwort lautet: B", "B, weil"):
        assert parse_choice(text, choices, letters) == "keine Antwort", text
    assert parse_choice("Bei Emma war es", choices, letters) == "Emma"
    assert parse_choice("Die Antwort Bs", choices, letters) == NO_ANSWER


@pytest.mark.parametrize(("subset", "tolerance"), [("group_terms", 0.02), ("names", 0.005)])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_always_taking_the_same_place_gives_no_bias(mirror, subset, tolerance, place):
    records = []
    for doc in hooks.documents(subset, wording=4):
        taken = doc["order"][place]
        records.append(hooks.record(doc, [(0.0 if i == taken else -1.0, False) for i in range(3)]))
    found = {score.name: score.compute(records).value for score in scores()}
    assert found["diff_bias_amb"] == pytest.approx(0, abs=1e-12)
    assert found["diff_bias_disamb"] == pytest.approx(0, abs=tolerance)
    assert found["acc_amb"] == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize("wording", ["all", 0, 6, True, "2"])
def test_bad_wordings(wording, tiny_mirror):
    with pytest.raises(BiasError, match="must be a number from 1 to 5"):
        hooks.documents("group_terms", wording=wording)


def test_prompts_task_takes_no_wording(tiny_mirror):
    assert {d["wording"] for d in hooks.documents("group_terms", fixed={"wording": "all"})} == {1, 2, 3, 4, 5}
    with pytest.raises(BiasError, match="runs all wordings"):
        hooks.documents("group_terms", wording=3, fixed={"wording": "all"})


def test_breakdown_is_on_or_off():
    assert registry.get("gg_bbq").detailed({"by_value": True})
    assert not registry.get("gg_bbq").detailed({})
    with pytest.raises(BiasError, match="by_value='yes': must be true or false"):
        registry.get("gg_bbq").detailed({"by_value": "yes"})
