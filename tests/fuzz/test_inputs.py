"""What users write: items, templates, words, policies, --metadata, names of suites and data."""

from __future__ import annotations

import csv
import io
import json

import pytest
import yaml
from hypothesis import strategies as st

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.data import sources
from lm_eval_bias.evaluation import suites
from lm_eval_bias.gate import policy_file
from lm_eval_bias.tasks.occugender import inputs
from tests.support.fuzzing import JUNK, damaged, fuzz, mutated, refused, taken

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ITEMS = 'item,female_share\nvet,61.5\n"nurse, night",87\ncook,38\n'
TEMPLATES = {
    "explicit": [{"question": "Picture a [JOB]."}, {"question": "Who is the [ITEM]?"}],
    "implicit": [{"question": "Picture a [JOB].", "sentence": "The [JOB] said that"}],
}
WORDS = {"male": ["he", "man"], "female": ["she", "woman"], "diverse": ["they"]}
POLICY = {
    "bounds": [
        {"task": "stereoset_*", "score": "ss", "min": 40, "max": 60, "on": "point", "why": "see the paper"},
        {"task": "occugender", "score": "stereotype_gap", "max_distance_from_neutral": 0.2},
    ],
    "min_documents_share": 0.5,
}


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return str(path)


# ---- tables ----


@fuzz(60, rows=st.lists(st.tuples(TEXTS, st.one_of(st.floats(0, 100), TEXTS)), max_size=5))
def test_items_that_are_taken_round_trip(folder, rows):
    def written(listed):
        out = io.StringIO(newline="")
        csv.writer(out).writerows([("item", "female_share"), *listed])
        return write(folder, "items.csv", out.getvalue())

    found = taken(inputs.items, written(rows))
    if found is not None:
        assert inputs.items(written([(item.name, item.female_share) for item in found])) == found
        assert all(0 <= item.female_share <= 100 and item.name.strip() == item.name for item in found)


@fuzz(60, content=damaged(ITEMS.encode()))
def test_damaged_items(folder, content):
    taken(inputs.items, write(folder, "items.csv", content))


def test_a_table_of_many_items_takes_time_in_proportion(tmp_path):
    rows = "".join(f"item {number},{1 + number % 98}\n" for number in range(100_000))
    assert len(inputs.items(write(tmp_path, "items.csv", "item,female_share\n" + rows))) == 100_000


# ---- YAML ----

BAD_YAML = {
    "empty": b"",
    "not UTF-8": b"\xff\xfe\x00",
    "a control character": b"a: \x00\n",
    "deep": b"[" * 5_000,
    "no date": b"a: 2024-13-45\n",
    "no integer": b"a: !!int x\n",
    "an object": b"a: !!python/object/apply:os.system [echo]\n",
    "two documents": b"a: 1\n---\nb: 2\n",
    "too large": b"#" * (1 << 20) + b"\n",
    "a text": b"a\n",
    "a list": b"- a\n",
    "a number": b"1\n",
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_YAML)
def test_yaml_that_is_none(name, tmp_path):
    path = write(tmp_path, "given.yaml", BAD_YAML[name])
    for read, *arguments in (
        (inputs.templates, path, "explicit"),
        (inputs.words, path, "explicit"),
        (policy_file.read, tmp_path / "given.yaml"),
    ):
        with pytest.raises(BiasError, match="given.yaml"):
            read(*arguments)


@fuzz(60, content=mutated(TEMPLATES), kind=st.sampled_from(["explicit", "implicit"]))
def test_changed_templates(folder, content, kind):
    text = yaml.safe_dump(content, allow_unicode=True)
    found = taken(inputs.templates, write(folder, "t.yaml", text), kind)
    if found is not None:
        again = write(folder, "again.yaml", yaml.safe_dump({kind: found}, allow_unicode=True))
        assert inputs.templates(again, kind) == found


@fuzz(60, content=mutated(WORDS), kind=st.sampled_from(["explicit", "implicit"]))
def test_changed_words(folder, content, kind):
    found = taken(inputs.words, write(folder, "w.yaml", yaml.safe_dump(content, allow_unicode=True)), kind)
    if found is not None:
        assert inputs.words(write(folder, "again.yaml", yaml.safe_dump(found, allow_unicode=True)), kind) == found


@fuzz(60, content=mutated(POLICY))
def test_changed_policies(folder, content):
    write(folder, "policy.yaml", yaml.safe_dump(content, allow_unicode=True, sort_keys=False))
    found = taken(policy_file.read, folder / "policy.yaml")
    if found is not None:
        assert found.bounds
        assert all(bound.low <= bound.high for bound in found.bounds)


@fuzz(60, content=damaged(yaml.safe_dump(POLICY).encode()), reader=st.sampled_from(["templates", "words", "policy"]))
def test_damaged_yaml(folder, content, reader):
    path = write(folder, "given.yaml", content)
    if reader == "policy":
        taken(policy_file.read, folder / "given.yaml")
    else:
        taken(getattr(inputs, reader), path, "explicit")


# ---- names ----


@fuzz(60, name=st.one_of(TEXTS, st.sampled_from(["../quick", "x" * 5000, "~nobody/x", "a\x00b", "quick\n"])))
def test_names_of_suites_data_and_words(folder, name):
    if name not in suites.NAMES:
        with pytest.raises(BiasError):
            suites.load(name)
    manifest = sources.manifest()
    if name not in (*manifest.sets, *manifest.files):
        with pytest.raises(BiasError):
            manifest.resolve([name])
    taken(inputs.words, name, "explicit")
    taken(inputs.items, name)
    taken(inputs.templates, name, "explicit")


KEYS = {
    "occugender_debias_implicit_none": [
        "items", "templates", "words", "word_probability", "instruction", "instruction_position", "first_templates",
    ],
    "gg_bbq_group_terms": ["wording", "breakdown"],
    "stereoset_en": ["bos", "inter", "masked"],
    "regard_en": ["classifier", "repeats"],
}  # fmt: skip
OPTIONS = [(task, key) for task, keys in KEYS.items() for key in keys]
VALUES = [value for value in JUNK if value not in (None, True, "", {}, [])] + [
    "x" * 5000,
    "~nobody/x",
    "../..",
    "/dev/zero",
]


@fuzz(20, start="tiny_mirror", option=st.sampled_from(OPTIONS), value=st.sampled_from(VALUES))
def test_values_of_metadata(mirror, option, value):
    task, key = option
    if (key, value) in (("breakdown", False), ("classifier", " ")):
        return
    arguments = ["run", "--tasks", task, "--model", "bias-chance", "--limit", "1"]
    refused(mirror, *arguments, "--metadata", json.dumps({key: value}))


@fuzz(
    20,
    start="tiny_mirror",
    text=st.one_of(
        TEXTS.filter(str.strip), st.sampled_from(["[1]", "3", '"a"', "{", "{" * 5000, "[" * 5000, "=", "a=b,c"])
    ),
)
def test_metadata_that_is_none(mirror, text):
    if not text.startswith("-"):
        refused(
            mirror, "run", "--tasks", "stereoset_en", "--model", "bias-chance", "--metadata", text.replace("\x00", "")
        )
