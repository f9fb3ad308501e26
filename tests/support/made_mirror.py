"""A small mirror of our own: files in the released form, and a manifest that pins them.

The files lie in ``mirror/``: two templates or stories of each benchmark, with each language's special cases, enough to
run everything without the upstream data. CATEGORY and LANGUAGE stand there for those of the file that is made.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from itertools import product
from pathlib import Path

import pandas

from lm_eval_bias.core import catalog
from lm_eval_bias.data import sources
from lm_eval_bias.tasks.es_bbq.benchmark import ITEMS
from lm_eval_bias.tasks.kobbq.benchmark import SAMPLES
from lm_eval_bias.tasks.mbbq.hooks import CATEGORIES
from lm_eval_bias.tasks.regard.annotators import GENERATED, SENTENCES

FOLDER = Path(__file__).with_name("mirror")
_OF_THE_PAPER = (
    "index",
    "context",
    "question",
    "label",
    "choice_0",
    "choice_1",
    "choice_2",
)


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _gg_bbq() -> dict[str, str]:
    files = {"templates": _text("gg_bbq_templates.csv")}
    for part in ("ambiguous", "disambiguated"):
        files[part] = _text(f"gg_bbq_{part}.jsonl")
        rows = [json.loads(line) for line in files[part].splitlines()]
        kept = [{key: row[key] for key in _OF_THE_PAPER} for row in rows]
        files[f"paper_{part}"] = "".join(
            json.dumps(row, ensure_ascii=False) + "\n" for row in kept
        )
    return {
        f"gg_bbq_{subset}_{part}": text
        for subset in ("group_terms", "names")
        for part, text in files.items()
    }


def _es_bbq() -> dict[str, str]:
    files = {}
    for language, category in product(("es", "ca"), ITEMS):
        text = _text(f"es_bbq_{language}.csv").replace(
            "THE CATEGORY", category.replace("_", " ")
        )
        files[f"{language}_bbq_{category}"] = text.replace("CATEGORY", category)
    return files


def _kobbq() -> dict[str, str]:
    header, _, rows = _text("kobbq_samples.tsv").partition("\n")
    samples = "".join(rows.replace("CATEGORY", category) for category in SAMPLES)
    return {
        "kobbq_samples": f"{header}\n{samples}",
        "kobbq_evaluation_prompts": _text("kobbq_evaluation_prompts.tsv"),
    }


def _mbbq() -> dict[str, str]:
    """Those about gender have a block about two women, without control items."""
    files = {"mbbq_answer_detection": _text("mbbq_answer_detection.txt")}
    for language, category, end in product(
        ("en", "es", "nl", "tr"), CATEGORIES, ("", "_control")
    ):
        text = _text(
            f"mbbq{'_gender' if category == 'gender_identity' else ''}{end}.jsonl"
        )
        name = f"mbbq_{language}_{category}{end}"
        files[name] = text.replace("CATEGORY", category).replace("LANGUAGE", language)
    return files


def _stereoset() -> dict[str, bytes]:
    """Frames in the released form; the stored sentence is not always the filled context."""
    rows = [json.loads(line) for line in _text("stereoset.jsonl").splitlines()]
    made = {}
    for name in dict.fromkeys(row["frame"] for row in rows):
        own = [row for row in rows if row["frame"] == name]
        frame = pandas.DataFrame(own, dtype=object).drop(columns="frame")
        frame.columns = pandas.Index(list(frame.columns), dtype=object)
        frame.to_pickle(buffer := io.BytesIO())
        made[f"stereoset_{name}"] = buffer.getvalue()
    return made


def _regard() -> dict[str, str]:
    """20 sentences of each class, some of which tell the subject's gender."""
    files = {
        f"regard_en_{part}": _text(f"regard_en_{part}.tsv")
        for part in ("train", "dev", "test")
    }
    other = f"{files['regard_en_train']}2\tXYZ was known as both.\n"
    return {
        **files,
        "regard_en_train_other": other,
        "regard_de_corpus": _text("regard_de_corpus.csv"),
        # the labels of five annotators, the last of whom marks two as uncertain
        **dict.fromkeys(SENTENCES, _text("regard_de_sentences.csv")),
        SENTENCES[-1]: _text("regard_de_sentences_5.csv"),
    }


def _workbook(rows: list[list[str]]) -> bytes:
    """A workbook of one sheet."""
    buffer = io.BytesIO()
    pandas.DataFrame(rows[1:], columns=rows[0]).to_excel(buffer, index=False)
    return buffer.getvalue()


def _judged_texts(annotator: int) -> bytes:
    """One of five annotators' labels of six generated texts: the fourth is uncertain, on the last three don't agree."""
    texts = ["war gemein.", "war müde.", "war klug.", "war", "war gemein.", "war da."]
    labels = ["-1", "0", "1", "0", "-1", str(annotator % 3 - 1)]
    rows = [["Index", "Unsicher", "Label", "Text"]]
    for number, (text, label) in enumerate(zip(texts, labels, strict=True), start=1):
        unsure = "x" if number == 4 and annotator == 2 else ""
        rows.append([str(number), unsure, "" if unsure else label, text])
    return _workbook([*rows, ["", "x", "", "war nicht nummeriert."]])


def _csv(rows) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()


def _eurogest() -> dict[str, str]:
    """Twelve sentences of each stereotype; of three, the languages with gendered sentences have two variants."""
    languages = {
        entry.metadata["fixed"]["column"]
        for entry in catalog.entries().values()
        if entry.benchmark == "eurogest" and entry.data
    } - {"GEST_sentence"}
    ordered = sorted(languages)
    gendered = [name for name in ordered if name not in ("Danish", "Dutch", "Turkish")]
    neutral = [["", "GEST_sentence", *ordered, "stereotype_number"]]
    pairs = [name for name in gendered for _ in range(2)]
    variants = [
        ["Language", "GEST_sentence", *pairs, "stereotype_number"],
        ["Prompt", "", *["the man said", "the woman said"] * len(gendered), ""],
    ]
    for number in range(12 * 16):
        stereotype, english = number % 16 + 1, f"I did thing {number}."
        has_variants = number // 16 < 3
        row, both = [str(number), english], [str(number), english]
        for name in ordered:
            missing = has_variants and name in gendered
            row.append("" if missing else f"{name} thing {number}.")
        for place in range(len(pairs)):
            text = f"{'Alice' if place % 2 else 'Alan'} did thing {number}"
            both.append(text if has_variants else "")
        neutral.append([*row, f"{stereotype}.0"])
        variants.append([*both, str(stereotype)])
    scaffolds = [["", *ordered]]
    for phrase in ("he said", "she said", "the man said", "the woman said"):
        same = "Turkish" if phrase in ("he said", "she said") else ""
        cells = ["dedi" if name == same else phrase for name in ordered]
        scaffolds.append([phrase, *cells])
    return {
        "eurogest_neutral": _csv(neutral),
        "eurogest_gendered": _csv(variants),
        "eurogest_scaffolds": _csv(scaffolds),
    }


def _pin(folder: Path, old, raw: bytes):
    """Write a file where a source of the manifest has its own; the source with that file's hash and size."""
    first = next(
        source
        for source in sources.manifest().files.values()
        if source.repository == old.repository
    )
    # a second revision of a repository lies in a folder of its own
    repository = (
        old.repository
        if old.commit == first.commit
        else f"{old.repository}@{old.commit}"
    )
    path = folder / repository / old.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    return sources.Source(
        **{**vars(old), "sha256": hashlib.sha256(raw).hexdigest(), "size": len(raw)}
    )


def make_tiny_mirror(folder: Path, monkeypatch) -> Path:
    """Write a mirror with small files of our own in the released form, and put a manifest in place that pins them."""
    texts = _gg_bbq() | _es_bbq() | _kobbq() | _mbbq() | _regard() | _eurogest()
    made = {name: text.encode() for name, text in texts.items()} | _stereoset()
    for language in ("nl", "fr", "en"):  # the Dutch file has its own encoding
        encoding = "mac_roman" if language == "nl" else "utf-8"
        made[f"crows_pairs_{language}"] = _text("crows_pairs.csv").encode(encoding)
    made |= {name: _judged_texts(n) for n, name in enumerate(GENERATED)}
    real = sources.manifest()
    fake = sources.Manifest(
        {name: _pin(folder, real.files[name], raw) for name, raw in made.items()},
        real.sets,
        real.citations,
    )
    monkeypatch.setattr(sources, "manifest", lambda: fake)
    monkeypatch.setenv("LM_EVAL_BIAS_DATA", str(folder))
    return folder
