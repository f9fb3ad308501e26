"""``translate stereoset`` from end to end: an engine, a person, the tasks; kills at any moment."""

import csv
import io
import json
import os
import random
import signal
import sys
import traceback
from dataclasses import replace

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.tasks.stereoset import released_sets, stereoset_items
from lm_eval_bias.tasks.stereoset.own_sets import item_texts, review_decisions, set_files, translation_cache
from tests import tiny
from tests.e2e.forked import die_at

# an engine that translates BLANK, makes two words of one (ROT13 of "careless" is that of "careful") and loses ends
ENGINE = """
import codecs, sys, os
for line in sys.stdin:
    text = line.rstrip("\\n")
    for mark in ("XYZ", "__"):
        text = text.replace(mark, mark.lower().upper())
    kept = [w if "XYZ" in w else codecs.encode(w, "rot13") for w in text.replace("careless", "careful").split(" ")]
    out = " ".join(kept)
    print(out.rstrip(".") if "Bread" in line else out)
"""


def say(*arguments):
    return main(["stereoset", "translate", *map(str, arguments)])


@pytest.fixture
def engine(tmp_path):
    path = tmp_path / "engine.py"
    path.write_text(ENGINE)
    return f"command:{sys.executable} -S {path}"


def refused(capsys, *arguments):
    capsys.readouterr()
    assert say(*arguments) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert lines[-1].startswith("lm-eval-bias: error: ")
    return lines[-1]


def sheet(folder):
    path = folder / "review.csv"
    if not path.exists():
        return {}
    rows = csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""))
    return {row["id"]: row for row in rows}


def save(folder, rows):
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(next(iter(rows.values()))), delimiter=";")
    writer.writeheader()
    writer.writerows(rows.values())
    (folder / "review.csv").write_bytes(out.getvalue().encode("utf-8-sig"))


def english():
    return [item for test in stereoset_items.TESTS for item in released_sets.read("en", test)]


def by_hand(item, number):
    """A translation by a person, of whatever has to differ."""

    def end(text):
        return text[-1] if text[-1] in ".!?" else ""

    made = {"target": f"gruppo {item['term']}"}
    blanks = " e ".join(["BLANK"] * item["context"].count("BLANK")) or "nulla"
    made["context"] = f"Frase {number} con {blanks}{end(item['context'])}"
    for place, candidate in enumerate(item["candidates"]):
        word = f"parola {number}{'abc'[place]}"
        if item["test"] == "intra":
            made[f"{candidate['label']} word"] = word
            made[candidate["label"]] = made["context"].replace("BLANK", word)
        else:
            made[candidate["label"]] = f"Segue la {word}{end(candidate['sentence'])}"
    return made


def files(folder):
    """What a folder holds, the day aside."""
    found = {}
    for path in sorted(folder.iterdir()):
        text = path.read_text("utf-8-sig").replace(str(folder), "FOLDER")
        found[path.name] = text
    return found


def test_a_table_with_every_text_is_a_complete_set(tmp_path, tiny_mirror, capsys):
    items = english()
    texts = {}
    for number, item in enumerate(items):
        texts |= dict(
            zip(
                item_texts.requested(item).values(),
                (by_hand(item, number)[p] for p in item_texts.requested(item)),
                strict=True,
            )
        )
    table = tmp_path / "table.csv"
    rows = list(texts.items())
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "translation"), *rows[:-1]])
    out = tmp_path / "it"
    assert say("--to", "it", "--engine", f"file:{table}", "-o", out) == 1
    said = capsys.readouterr().out
    assert "1 need a person" in said
    assert "no translation yet" in said
    assert (out / "untranslated.csv").read_text("utf-8-sig") == f"{rows[-1][0]},\n"
    assert [row["reasons"] for row in sheet(out).values()] == ["unrelated word: no translation yet"]
    with table.open("a", newline="") as file:
        csv.writer(file).writerows(rows[-1:])
    assert say("--to", "it", "--engine", f"file:{table}", "-o", out) == 0
    assert "0 need a person" in capsys.readouterr().out
    assert not (out / "untranslated.csv").exists()
    assert not (out / "review.csv").exists()
    found = set_files.read(out / "stereoset_it.json")
    expected = [
        item_texts.with_texts(
            item,
            item_texts.completed(item, {part: texts[text] for part, text in item_texts.requested(item).items()}, {}),
        )
        for item in items
    ]
    assert found.items == expected
    assert found.provenance["engine"]["engine"] == "file"
    assert found.provenance["items"] == {"translated": len(items), "corrected": 0, "accepted": 0, "left out": 0}
    assert (
        found.provenance["coverage"]["inter"]["profession"][0] == found.provenance["coverage"]["inter"]["profession"][1]
    )
    run_chance(tmp_path, out, capsys)


def run_chance(tmp_path, out, capsys):
    arguments = ["--include_path", str(out), "--tasks", "stereoset_it", "--model", "bias-chance"]
    assert main(["run", *arguments, "--output_path", str(tmp_path / "run"), "--log_samples"]) == 0
    said = capsys.readouterr().out
    assert "\nstereoset_it:" in said
    assert "\nstereoset_it  " in said  # a row of the table
    samples = next((tmp_path / "run").rglob("samples_stereoset_it_*.jsonl")).read_text().splitlines()
    assert {json.loads(line)["doc"]["language"] for line in samples} == {"it"}
    assert len(samples) == len(set_files.read(out / "stereoset_it.json").items)


def correct_all(folder):
    """Fill in the sheet as a person would."""
    rows = sheet(folder)
    numbers = {item["id"]: (number, item) for number, item in enumerate(english())}
    for name, row in rows.items():
        number, item = numbers[name]
        for part, text in by_hand(item, number).items():
            row[f"correct {part}"] = text
    save(folder, rows)


def test_a_model_a_person_and_the_tasks(tmp_path, tiny_mirror, capsys):
    model = f"hf:{tiny.nllb(tmp_path / 'nllb')},source=eng_Latn,target=ita_Latn"
    out = tmp_path / "it"
    assert say("--to", "it", "--engine", model, "-o", out, "--batch_size", "64") == 1
    first = capsys.readouterr().out
    assert "For a person: " in first
    ready = len(set_files.read(out / "stereoset_it.json").items) if (out / "stereoset_it.json").exists() else 0
    assert len(sheet(out)) + ready >= len(english())
    asked = (out / translation_cache.FILE).read_bytes()
    correct_all(out)
    assert say("--to", "it", "--engine", model, "-o", out) in (0, 1)
    assert (out / translation_cache.FILE).read_bytes() == asked
    rows = sheet(out)
    for row in rows.values():  # what English itself has: BLANK twice, BLANK glued to letters
        row["accept"] = "x"
    if rows:
        save(out, rows)
    assert say("--to", "it", "--engine", model, "-o", out) == 0
    found = set_files.read(out / "stereoset_it.json")
    assert len(found.items) == len(english())
    assert found.provenance["engine"]["revision"].startswith("files ")
    assert "tests" not in found.provenance["engine"]["model"]
    card = (out / "README.md").read_text()
    assert set_files.digest(out / "stereoset_it.json") in card
    assert "Der BLANK" in card
    run_chance(tmp_path, out, capsys)


def test_what_needs_a_person_and_what_they_say(tmp_path, tiny_mirror, engine, capsys):
    out = tmp_path / "it"
    arguments = ("--to", "it", "--engine", engine, "-o", out)
    assert say(*arguments) == 1
    rows = sheet(out)
    assert "intra2" in rows
    assert "the same" in rows["intra2"]["reasons"]
    there = {item["id"] for item in set_files.read(out / "stereoset_it.json").items}
    assert there.isdisjoint(rows)
    assert there | set(rows) == {item["id"] for item in english()}
    kept = [json.loads(line) for line in (out / translation_cache.FILE).read_text().splitlines()]
    assert {r["placeholder"] for r in kept if "BLANK" in r["source"]} <= {"XYZ", None}
    assert len({r["source"] for r in kept}) == len(kept)

    # a correction that is none, and one that is one
    rows["intra2"]["correct anti-stereotype word"] = rows["intra2"]["stereotype word"]
    rows["intra2"]["comment"] = "hm"
    save(out, rows)
    assert say(*arguments) == 1
    rows = sheet(out)
    assert rows["intra2"]["comment"] == "hm"
    rows["intra2"]["correct anti-stereotype word"] = "incurante"
    save(out, rows)
    assert say(*arguments) == 1
    assert "intra2" not in sheet(out)
    found = {item["id"]: item for item in set_files.read(out / "stereoset_it.json").items}
    words = [c["word"] for c in found["intra2"]["candidates"] if c["label"] == "anti-stereotype"]
    assert words == ["incurante"]
    decisions = review_decisions.read(out)
    assert decisions["intra2"].corrected == {"anti-stereotype word": "incurante"}
    assert decisions["intra2"].comment == "hm"
    assert set_files.read(out / "stereoset_it.json").provenance["items"]["corrected"] == 1

    # as it is: it enters, and is said to
    rest = sheet(out)
    for row in rest.values():
        row["accept"] = "x"
    save(out, rest)
    assert say(*arguments) == 0
    assert set_files.read(out / "stereoset_it.json").provenance["items"]["accepted"] == len(rest)
    assert (out / "README.md").read_text().startswith("<!-- Written by lm-eval-bias translate")
    (out / "README.md").write_text("mine\n")
    # nothing new: the same file, and so the same hash, as on another day
    there = set_files.read(out / "stereoset_it.json")
    set_files.write(out / "stereoset_it.json", replace(there, provenance={**there.provenance, "date": "2020-02-02"}))
    assert say(*arguments) == 0
    assert set_files.read(out / "stereoset_it.json").provenance["date"] == "2020-02-02"
    before = files(out)
    assert say(*arguments) == 0
    assert files(out) == before

    # another engine: refused, or asked; the correction stays, what was accepted of other texts doesn't
    other = engine.replace("-S", "-S -B")
    assert "of another engine or revision" in refused(capsys, *arguments[:3], other, "-o", out)
    assert files(out) == before
    assert say(*arguments[:3], other, "-o", out, "--retranslate") == 0
    assert (out / "translated-1.jsonl").exists()
    assert review_decisions.read(out) == review_decisions.read(out) | decisions


def test_rows_of_items_that_a_run_is_not_about_stay(tmp_path, tiny_mirror, engine):
    out = tmp_path / "it"
    arguments = ("--to", "it", "--engine", engine, "-o", out)
    assert say(*arguments) == 1
    rows = sheet(out)
    rows["intra2"]["correct anti-stereotype word"] = "incurante"
    save(out, rows)
    assert say(*arguments, "--tests", "inter") in (0, 1)
    assert sheet(out)["intra2"]["correct anti-stereotype word"] == "incurante"
    assert say(*arguments) == 1
    assert "intra2" not in sheet(out)


def test_another_source(tmp_path, tiny_mirror, engine, capsys):
    set_files.write(tmp_path / "mine.json", set_files.DataSet("en", english(), {}))
    content = json.loads((tmp_path / "mine.json").read_text())
    del content["language"]
    (tmp_path / "dev.json").write_text(json.dumps(content))
    arguments = ("--to", "it", "--engine", engine, "-o")
    assert "--language" in refused(capsys, *arguments, tmp_path / "a", "--from", tmp_path / "dev.json")
    assert say(*arguments, tmp_path / "a", "--from", tmp_path / "dev.json", "--language", "en") == 1
    assert say(*arguments, tmp_path / "b") == 1
    one, other = (set_files.read(tmp_path / name / "stereoset_it.json") for name in "ab")
    assert one.items == other.items
    assert one.provenance["source"] == {
        "name": "dev.json",
        "language": "en",
        "sha256": {"dev.json": set_files.digest(tmp_path / "dev.json")},
    }
    # from a language into itself
    assert "own language" in refused(capsys, "--to", "it", *arguments[2:], tmp_path / "c", "--from",
                                     tmp_path / "a" / "stereoset_it.json")  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "en"], "is the source's own language"),
        (["--to", "I t"], "is not a language code"),
        (["--tests", "between"], "must be intra, inter or intra,inter"),
        (["--limit", "0"], "must be 1 or more"),
        (["--batch_size", "0"], "must be 1 or more"),
        (["--timeout", "nan"], "must be a number of seconds above 0"),
        (["--from", "nowhere.json"], "nowhere.json: cannot be read"),
    ],
)
def test_refused_in_one_line(tmp_path, tiny_mirror, capsys, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    given = {"--to": "it", "--engine": "command:cat", "-o": str(tmp_path / "new")} | dict([arguments])
    assert said in refused(capsys, *(part for item in given.items() for part in item))
    assert not (tmp_path / "new").exists()


def test_a_sheet_that_cannot_be_understood_is_said_before_anything_is_asked(tmp_path, tiny_mirror, capsys):
    (tmp_path / "review.csv").write_text("id,accept\nnobody,x\n")
    line = refused(capsys, "--to", "it", "--engine", "command:false", "-o", tmp_path)
    assert "review.csv row 2: no item 'nobody' in the source" in line
    assert (tmp_path / "review.csv").read_text() == "id,accept\nnobody,x\n"


def test_a_program_that_fails_midway_keeps_what_was_done(tmp_path, tiny_mirror, engine, capsys):
    script = tmp_path / "engine.py"
    script.write_text("import sys\nif 'fails' in open(sys.argv[0] + '.mood').read(): sys.exit(9)\n" + ENGINE)
    (tmp_path / "engine.py.mood").write_text("works")
    out = tmp_path / "it"
    assert say("--to", "it", "--engine", engine, "-o", out, "--limit", "3", "--batch_size", "4") in (0, 1)
    done = (out / translation_cache.FILE).read_text()
    (tmp_path / "engine.py.mood").write_text("fails")
    assert "ended with status 9" in refused(capsys, "--to", "it", "--engine", engine, "-o", out)
    assert (out / translation_cache.FILE).read_text() == done
    assert say("--to", "it", "--engine", engine, "-o", out, "--limit", "3") in (0, 1)


def killed(at, number, arguments):
    """A run in a process of its own that is killed when a function is called for the n-th time; its status."""
    child = os.fork()
    if child == 0:
        try:
            die_at(at, number)
            sys.stdout = sys.stderr = io.StringIO()
            os._exit(say(*arguments))
        except BaseException:
            traceback.print_exc()
        os._exit(99)
    status = os.waitpid(child, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


WRITING = ["os:fsync", "os:replace", "lm_eval_bias.tasks.stereoset.own_sets.jsonl:append"]
MOMENTS = [*WRITING, "subprocess:Popen"]


def test_killed_at_any_moment_and_continued(tmp_path, tiny_mirror, engine):
    arguments = ("--to", "it", "--engine", engine, "--batch_size", "4", "-o")
    whole = tmp_path / "whole" / "it"
    assert say(*arguments, whole) == 1
    correct_all(whole)
    assert say(*arguments, whole) in (0, 1)
    expected = files(whole)
    draw = random.Random(20261122)
    deaths = 0
    for attempt in range(4):
        out = tmp_path / str(attempt) / "it"
        for corrected in (False, True):
            if corrected:
                correct_all(out)
            for _ in range(3):
                moment = (
                    (draw.choice(WRITING), draw.randint(1, 2))
                    if corrected
                    else (draw.choice(MOMENTS), draw.randint(1, 5))
                )
                status = killed(*moment, (*arguments, out))
                assert status in (-signal.SIGKILL, 0, 1)
                deaths += status == -signal.SIGKILL
            assert say(*arguments, out) in (0, 1)
        found = files(out)
        assert {name for name in found if not name.endswith(".tmp")} == set(expected)
        for name, text in expected.items():
            assert found[name] == text, name
        kept = [json.loads(line)["source"] for line in (out / translation_cache.FILE).read_text().splitlines()]
        assert len(kept) == len(set(kept))
    assert deaths >= 8


@pytest.mark.slow
def test_all_of_stereoset(tmp_path, mirror, engine):
    out = tmp_path / "it"
    assert say("--to", "it", "--engine", engine, "-o", out) == 1
    items = english()
    rows, there = sheet(out), {item["id"] for item in set_files.read(out / "stereoset_it.json").items}
    assert there | set(rows) == {item["id"] for item in items}
    assert len(there) > 3_000
