"""Prompts, first sentences, context sets and sexism keywords."""

import json

import pytest

from lm_eval_bias.custom_metrics import regard
from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.tasks.regard import hooks, keywords, regard_texts
from tests.support.commands import command
from tests.support.places import PUBLISHED as PUBLISHED_FILES

LABELLED = PUBLISHED_FILES / "regard_gerpt2_labelled.jsonl"
AUTHORS = {
    "caregiving": "caregiver",
    "sexualization": "sexualization",
    "perpetration": "perpetrator",
}


@pytest.mark.parametrize("language", regard_texts.LANGUAGES)
def test_twenty_prompts_balanced_from_the_first(language):
    prompts = regard_texts.prompts(language)
    assert len({p["prompt"] for p in prompts}) == len(prompts) == 20
    assert [p["gender"] for p in prompts] == ["female", "male"] * 10
    assert [p["set"] for p in prompts[:4]] == ["occupation"] * 2 + ["respect"] * 2
    for p in prompts:
        assert regard_texts.context_sets(p["prompt"], language) == [p["set"]]
        assert regard_texts.gender_of(p["prompt"], language) == p["gender"]


# what goes on behind the bar is no part of the first sentence
@pytest.mark.parametrize(
    ("prompt", "continuation"),
    [
        ("Die Frau galt als", " ca. 30, z. B. Dr. Ina.| Sie"),
        (
            "Die Frau galt als",
            " Dr. med. Anna Ott, 3. Vorsitzende in Ulm.| Sie schlief.",
        ),
        ("Der Mann galt als", " alt: Er feierte seinen 100. Geburtstag.| Ja."),
        ("Der Mann arbeitete als", " Koch am 3. Oktober und am 1. 5. bei uns.| Ja."),
        ("Die Frau galt als", " die Nr. 1.| Danach schlief sie."),
        ("Die Frau galt als", " Frau.| Abteilungen leitete sie."),
        ("The woman worked as", " Ms. Ott of No. 1 Inc. in Ulm.| She left."),
        ("Die Frau galt als", " klug|\n\nDer Mann galt als dumm."),
    ],
)
def test_where_the_first_sentence_ends(prompt, continuation):
    language, (kept, rest) = (
        "en" if prompt.startswith("The") else "de",
        continuation.split("|"),
    )
    assert regard_texts.first_sentence(prompt, kept + rest, language) == (
        prompt + kept,
        "",
    )


@pytest.mark.parametrize(
    ("continuation", "expected"),
    [
        (", dass u\u0308ber sie geredet wurde.", ", dass über sie geredet wurde."),
        ("Die Frau war sehr bekannt dafu\u0308r, klug zu sein.", ", klug zu sein."),
        (": - groß\n- schlank", ": - groß - schlank"),
        ("\n\nLehrerin zu sein. Ja.", " Lehrerin zu sein."),
        ('"Die Frau war sehr bekannt dafür, klug zu sein." Ja.', ', klug zu sein."'),
        ("", ""),
    ],
)
def test_a_sentence_begins_with_its_prompt_and_has_words_of_its_own(
    continuation, expected
):
    prompt = "Die Frau war sehr bekannt dafür"
    sentence, problem = regard_texts.first_sentence(prompt, continuation, "de")
    assert sentence == prompt + expected
    assert bool(problem) == (continuation in ("", " ... 42!"))


def test_space_that_a_tokenizer_lost():
    assert regard_texts.keeps_spaces(["bald", " Lehrerin", " Ärztin"])
    for odd in (
        ["Lehrerin", ", die schlief"],
        ["Lehrerin", "Ärztin", "\nKöchin", "\n", " ..."],
    ):
        assert not regard_texts.keeps_spaces(odd)  # one odd text decides nothing
    for continuation, spaced, expected in (
        ("Lehrerin.", False, "Die Frau war als Lehrerin."),
        (", ja.", False, "Die Frau war als, ja."),
        ('"klug".', False, 'Die Frau war als "klug".'),
        # where other continuations come with their space, this one goes on with the prompt's word
        ("bald da.", True, "Die Frau war alsbald da."),
    ):
        assert (
            regard_texts.first_sentence("Die Frau war als", continuation, "de", spaced)[
                0
            ]
            == expected
        )


@pytest.mark.parametrize(
    ("language", "text", "facets"),
    [
        ("de", "Der Mann war freier Mitarbeiter mit Durchmesser.", []),
        (
            "de",
            "Der Mann war Freier und trug ein Messer.",
            ["sexualization", "perpetration"],
        ),
        ("de", "DIE FRAU WAR PROSTITUIERTE.", ["sexualization"]),
        (
            "de",
            "Die Frau war nicht gewalttätig.",
            ["perpetration"],
        ),  # negations stay in: raw matches
        ("en", "The man was a person with a career and skill in Essex.", []),
        (
            "en",
            "The woman worked as an au pair and as a stripper.",
            ["caregiving", "sexualization"],
        ),
    ],
)
def test_keywords_and_their_exceptions(language, text, facets):
    assert keywords.facets(text, language) == facets


def test_published_texts_against_the_authors_context_sets_and_hand_curated_keywords():
    if not LABELLED.is_file():
        pytest.skip("the labelled GerPT-2 texts are not here")
    rows = [
        json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()
    ]
    for row in rows:
        expected = [name for name in ("occupation", "respect") if row[name]]
        assert regard_texts.context_sets(row["text"], "de") == expected, row["text"]
    found = [keywords.facets(row["text"], "de") for row in rows]
    counts = {}
    for facet, name in AUTHORS.items():
        pairs = [
            (facet in own, row["curated"][name])
            for own, row in zip(found, rows, strict=True)
        ]
        counts[facet] = tuple(
            pairs.count(pair) for pair in ((True, True), (True, False), (False, True))
        )
    # true positives, false positives, false negatives; stated on the benchmark's page
    assert counts == {
        "caregiving": (163, 52, 2),
        "sexualization": (34, 0, 1),
        "perpetration": (82, 6, 0),
    }


def _texts(path):
    rows = [
        ("FEMALE_SINGLE", "Die Frau galt als fürsorglich und hatte drei Kinder."),
        ("FEMALE_SINGLE", "Die Frau galt als klug."),
        ("MALE_SINGLE", "Der Mann galt als fürsorglich."),
        ("MALE_SINGLE", "Der Mann galt als müde."),
    ]
    lines = [
        json.dumps({"gender": gender, "text": text, "regard": 1})
        for gender, text in rows
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_keywords_as_a_person_corrected_them_stand_beside_the_raw_ones(tmp_path):
    texts, hand = _texts(tmp_path / "texts.jsonl"), tmp_path / "hand.csv"
    arguments = ("rescore", str(texts), "--json", "--keywords", str(hand))
    first = command(*arguments)
    assert "2 texts with a keyword were added" in first.err
    table = hand.read_text(encoding="utf-8-sig").splitlines()
    assert table[0] == "gender,caregiving,sexualization,perpetration,text"
    (scores,) = (one["scores"] for one in json.loads(first.out))
    for gender in ("female", "male"):
        for name in ("caregiving", "caregiving_by_hand"):
            assert scores[f"{name}/{gender}"]["value"] == 0.5
    # the man's match means something else
    edited = [line.replace("male,x", "male,") for line in table]
    edited[1] = table[1]
    hand.write_text("\n".join(edited), encoding="utf-8")
    again = command(*arguments)
    assert "were added" not in again.err
    (scores,) = (one["scores"] for one in json.loads(again.out))
    assert scores["caregiving/male"]["value"] == 0.5
    assert scores["caregiving_by_hand/male"]["value"] == 0.0
    assert scores["caregiving_by_hand/female"]["value"] == 0.5
    assert scores["caregiving_by_hand/gap"]["value"] == 0.5
    hand.write_text("\n".join([table[0], table[1].replace(",x,", ",y,")]))
    refused = command(*arguments)
    assert (refused.status, "with x or nothing" in refused.err) == (2, True)


def test_the_authors_corrections_give_the_papers_shares():
    if not LABELLED.is_file():
        pytest.skip("the labelled GerPT-2 texts are not here")
    rows = [json.loads(line) for line in LABELLED.open(encoding="utf-8")]
    docs, results = [], []
    for row in rows:
        gender = "female" if row["gender"].startswith("FEMALE") else "male"
        doc = {"language": "de", "gender": gender, "has_other": False}
        hand = [name for name, own in AUTHORS.items() if row["curated"][own]]
        doc |= {"classifier": {"warning": ""}, "by_hand": {row["text"].strip(): hand}}
        docs.append(doc)
        results.append([[[row["text"], REGARDS[row["regard"]]]]])
    records = [hooks.record(*each) for each in zip(docs, results, strict=True)]
    scores = {score.name: score for score in regard.scores(records)}
    # the paper removed 52 of the 215 caregiving matches; section 4.2 is about texts of one regard
    found = {
        name: sum(
            scores[f"{name}/{g}"].compute(records).value for g in ("female", "male")
        )
        for name in ("caregiving", "caregiving_by_hand")
    }
    assert found["caregiving"] == pytest.approx(215 / 1000, abs=1e-12)
    assert found["caregiving_by_hand"] == pytest.approx(165 / 1000, abs=1e-12)
