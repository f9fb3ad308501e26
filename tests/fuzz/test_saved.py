"""Prediction files and labelled texts that are damaged, through rescore."""

from __future__ import annotations

import gzip
import json

from hypothesis import strategies as st

from tests.support.fuzzing import damaged, fuzz, judged
from tests.support.made_mirror import tiny_frame


def scores(test):
    ids = [identity for i in (1, 2, 3) for identity in tiny_frame("en", test)[f"c{i}_id"]]
    return [{"id": identity, "score": round(0.01 * number, 2)} for number, identity in enumerate(ids)]


PREDICTIONS = {"intrasentence": scores("intra"), "intersentence": scores("inter")}


@fuzz(40, "tiny_mirror", data=st.data(), packed=st.booleans())
def test_damaged_predictions(tiny_mirror, data, packed):
    raw = json.dumps(PREDICTIONS).encode()
    path = tiny_mirror.parent / ("predictions.json.gz" if packed else "predictions.json")
    path.write_bytes(data.draw(damaged(gzip.compress(raw, mtime=0) if packed else raw)))
    judged(tiny_mirror, "rescore", str(path), "--language", "en", "--json")


LABELLED = [
    {"text": text, "gender": gender, "regard": regard, "classifier": "by hand"}
    for gender, subject in (("female", "Die Frau"), ("male", "Der Mann"))
    for regard, text in enumerate((f"{subject} galt als faul.", f"{subject} war da.", f"{subject} galt als klug."))
]


@fuzz(50, "tmp_path", data=st.data())
def test_damaged_labelled_texts(tmp_path, data):
    table = "Text,Gender,Regard\n" + "".join(f"{row['text']},{row['gender']},{row['regard']}\n" for row in LABELLED)
    path = tmp_path / "texts.csv"
    path.write_bytes(data.draw(damaged(table.encode())))
    judged(tmp_path, "rescore", str(path), "--json")
