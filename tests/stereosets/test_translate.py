"""``stereoset translate`` from end to end: an engine, a person, the tasks; kills at any moment."""

import codecs
import csv
import io
import json
import os
import random
import signal
import sys

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.tasks.stereoset import own_sets, stereoset_items
from lm_eval_bias.tasks.stereoset.commands import review, translate
from lm_eval_bias.tasks.stereoset.commands.seq2seq_translation import Checkpoint
from tests.support import tiny
from tests.support.forked import die_at


class Rot13(Checkpoint):
    """An engine that translates BLANK, makes one word of two (careless, careful) and loses ends."""

    def __init__(self, spec, languages, batch):
        self.batch, self.identity, self.about = batch, spec, {"engine": "rot13"}

    def translate(self, texts):
        return [self.of(text.replace("careless", "careful")).rstrip("." if "Bread" in text else "") for text in texts]

    def of(self, text):
        return " ".join(word if "XYZ" in word else codecs.encode(word, "rot13") for word in text.split(" "))


@pytest.fixture(autouse=True)
def _engine(monkeypatch):
    make = translate.make_engine

    def either(spec, *more):
        return (Rot13 if spec.startswith("rot13") else make)(spec, *more)

    monkeypatch.setattr(translate, "make_engine", either)


def say(*arguments):
    return main(["stereoset", "translate", "--to", "it", *map(str, arguments)])


def sheet(folder):
    path = folder / "review.csv"
    rows = csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")) if path.exists() else ()
    return {row["id"]: row for row in rows}


def save(folder, rows):
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(next(iter(rows.values()))), delimiter=";")
    writer.writeheader()
    writer.writerows(rows.values())
    (folder / "review.csv").write_bytes(out.getvalue().encode("utf-8-sig"))


def english():
    return [item for test in stereoset_items.TESTS for item in stereoset_items.read("en", test)]


def by_hand(item, number):
    """A translation by a person, of whatever has to differ."""
    made = {}
    for place, (part, text) in enumerate(review.requested(item).items()):
        blanks = " e BLANK" * text.count("BLANK")
        made[part] = f"parola {number} {'abcde'[place]}{blanks}{text[-1] if text[-1] in '.!?' else ''}"
    return made | {"target": f"gruppo {item['term']}"}


def correct_all(folder):
    """Fill in the sheet as a person would."""
    rows = sheet(folder)
    for number, item in enumerate(english()):
        for part, text in by_hand(item, number).items() if item["id"] in rows else ():
            rows[item["id"]][f"correct {part}"] = text
    save(folder, rows)


def accept_all(folder, names):
    rows = sheet(folder)
    for name in names:
        rows[name]["accept"] = "x"
    save(folder, rows)


def test_a_table_with_every_text_is_a_complete_set(tmp_path, tiny_mirror, capsys):
    items, texts, table, out = english(), {}, tmp_path / "table.csv", tmp_path / "it"
    for number, item in enumerate(items):
        texts |= {text: by_hand(item, number)[part] for part, text in review.requested(item).items()}
    rows = [("text", "translation"), *texts.items()]
    for missing in (1, 0):
        with table.open("w", newline="") as file:
            csv.writer(file).writerows(rows[: len(rows) - missing])
        assert say("--engine", f"file:{table}", "-o", out) == missing
        said = capsys.readouterr().out
        assert f"{missing} need a person" in said
        assert ("no translation yet" in said) == (out / "untranslated.csv").exists() == bool(missing)
        if missing:
            assert (out / "untranslated.csv").read_text("utf-8-sig") == f"{rows[-1][0]},\n"
            assert [row["reasons"] for row in sheet(out).values()] == ["unrelated word: no translation yet"]
    assert not sheet(out)
    found, expected = own_sets.read(out / "stereoset_it.json"), []
    for item in items:
        own = {part: texts[text] for part, text in review.requested(item).items()}
        expected.append(review.with_texts(item, review.completed(item, own, {})))
    assert found.items == expected
    assert found.provenance["engine"]["engine"] == "file"
    assert found.provenance["items"] == {"translated": len(items), "corrected": 0, "accepted": 0, "left out": 0}
    arguments = ["--include_path", str(out), "--tasks", "stereoset_it", "--model", "bias-chance"]
    assert main(["run", *arguments, "--output_path", str(tmp_path / "run"), "--log_samples"]) == 0
    assert "\nstereoset_it:" in capsys.readouterr().out
    samples = next((tmp_path / "run").rglob("samples_stereoset_it_*.jsonl")).read_text().splitlines()
    assert [json.loads(line)["doc"]["language"] for line in samples] == ["it"] * len(items)


def test_a_model_and_a_person(tmp_path, tiny_mirror, capsys):
    out = tmp_path / "it"
    arguments = ("--engine", f"hf:{tiny.nllb(tmp_path / 'nllb')},source=eng_Latn,target=ita_Latn", "-o", out)
    assert say(*arguments, "--batch_size", "64") == 1
    assert "For a person: " in capsys.readouterr().out
    asked = (out / translate.TRANSLATED).read_bytes()
    correct_all(out)
    assert say(*arguments) in (0, 1)
    assert (out / translate.TRANSLATED).read_bytes() == asked
    accept_all(out, sheet(out))  # what English itself has: BLANK twice, BLANK glued to letters
    assert say(*arguments) == 0
    found = own_sets.read(out / "stereoset_it.json")
    assert len(found.items) == len(english())
    assert found.provenance["engine"]["revision"].startswith("files ")
    assert found.provenance["items"]["corrected"] > found.provenance["items"]["accepted"] > 0
    assert own_sets.digest(out / "stereoset_it.json") in (out / "README.md").read_text()


def test_what_needs_a_person_and_what_they_say(tmp_path, tiny_mirror, capsys):
    out = tmp_path / "it"
    arguments = ("--engine", "rot13", "-o", out)
    assert say(*arguments) == 1
    rows = sheet(out)
    assert "the same" in rows["intra2"]["reasons"]
    there = {item["id"] for item in own_sets.read(out / "stereoset_it.json").items}
    assert there.isdisjoint(rows)
    assert there | set(rows) == {item["id"] for item in english()}
    kept = translate.read_lines(out / translate.TRANSLATED)
    assert {r["translation"].count("BLANK") - r["source"].count("BLANK") for r in kept} == {0}
    assert len({r["source"] for r in kept}) == len(kept)

    rows["intra2"]["correct anti-stereotype word"] = "incurante"
    save(out, rows)
    assert say(*arguments, "--limit", "1") in (0, 1)  # rows of items that a run is not about stay
    assert sheet(out)["intra2"]["correct anti-stereotype word"] == "incurante"
    assert say(*arguments) == 1
    found = {item["id"]: item for item in own_sets.read(out / "stereoset_it.json").items}
    assert [c["word"] for c in found["intra2"]["candidates"] if c["label"] == "anti-stereotype"] == ["incurante"]

    # as it is: it enters, and is said to
    rest = sheet(out).keys() - {"intra2"}
    accept_all(out, rest)
    assert say(*arguments) == 0
    provenance = own_sets.read(out / "stereoset_it.json").provenance
    assert (provenance["items"]["corrected"], provenance["items"]["accepted"]) == (1, len(rest))
    assert main(["stereoset", "validate", str(out / "stereoset_it.json")]) == 0  # what was accepted stays so
    assert (out / "README.md").read_text().startswith("<!-- Written by lm-eval-bias stereoset translate")
    (out / "README.md").write_text("mine\n")
    before = files(out)
    assert say(*arguments) == 0
    assert files(out) == before  # nothing new: the same files, and so the same hash

    # another engine: what was translated, corrected and accepted stays
    assert say("--engine", "rot13 anew", "-o", out) == 0
    assert len(translate.read_lines(out / translate.TRANSLATED)) == 2 * len(kept)
    assert sheet(out) == before["review.csv"]


def files(folder):
    """What a folder holds."""
    found = {path.name: path.read_text("utf-8-sig").replace(str(folder), "FOLDER") for path in folder.iterdir()}
    return {**found, "review.csv": sheet(folder)}


def test_a_sheet_that_cannot_be_understood_is_said_before_anything_is_asked(tmp_path, tiny_mirror, capsys):
    out = tmp_path / "it"
    out.mkdir()
    (out / "review.csv").write_text("id,accept\nnobody,x\n")
    assert say("--engine", "rot13", "-o", out) == 2
    assert "review.csv row 2: no item 'nobody' in the source" in capsys.readouterr().err
    assert len(list(out.iterdir())) == 1


def killed(at, number, arguments):
    """A run in a process of its own that is killed when a function is called for the n-th time; its status."""
    child = os.fork()
    if child == 0:
        try:
            die_at(at, number)
            sys.stdout = sys.stderr = io.StringIO()
            os._exit(say(*arguments))
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


MOMENTS = ["os:fsync", "os:replace", "lm_eval_bias.tasks.stereoset.commands.translate:restore"]


def test_killed_at_any_moment_and_continued(tmp_path, tiny_mirror):
    arguments = ("--engine", "rot13", "--batch_size", "4", "-o")
    whole = tmp_path / "whole" / "it"
    assert say(*arguments, whole) == 1
    correct_all(whole)
    assert say(*arguments, whole) in (0, 1)
    draw, deaths = random.Random(20261122), 0
    for attempt in range(4):
        out = tmp_path / str(attempt) / "it"
        for corrected in (False, True):
            if corrected:
                correct_all(out)
            for _ in range(3):
                status = killed(draw.choice(MOMENTS[: 2 if corrected else 3]), draw.randint(1, 2), (*arguments, out))
                assert status in (-signal.SIGKILL, 0, 1)
                deaths += status == -signal.SIGKILL
            assert say(*arguments, out) in (0, 1)
        for temporary in out.glob(".lm-eval-bias-*.tmp"):  # of a process that was killed while it wrote
            temporary.unlink()
        assert files(out) == files(whole)
        kept = [record["source"] for record in translate.read_lines(out / translate.TRANSLATED)]
        assert len(kept) == len(set(kept))
    assert deaths >= 8
