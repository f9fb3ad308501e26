"""Any change to any file that a command reads: it is taken, or refused in one line."""

from __future__ import annotations

import gzip
import json

import pytest
import yaml
from hypothesis import strategies as st

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.gate import policy_file
from lm_eval_bias.runs import run_file as record
from lm_eval_bias.runs.run_discovery import read
from lm_eval_bias.tasks.occugender import inputs
from lm_eval_bias.tasks.regard.commands import classify
from lm_eval_bias.tasks.stereoset.commands import translate
from tests.support.fuzzing import damaged, fuzz, judged, mutated, taken
from tests.support.made_mirror import tiny_frame
from tests.support.made_runs import run_file

# ---- results


RUN_FILE = run_file(tasks=("occugender_explicit", "stereoset_en", "regard_en"))
for _task in RUN_FILE["tasks"].values():
    _hashes = {"documents": "0" * 64, "scored": "1" * 64, "package_content": "2" * 64, "files": {"w.yaml": "3" * 64}}
    _task["metadata"] |= {"words": "w.yaml", "inputs": {**_hashes, "changed": ["doc_to_text"], "num_fewshot": 2}}
BOUNDS = (
    "bounds:\n  - {task: stereoset_*, score: ss, max_distance_from_neutral: 5}\n"
    "allow: [words, task, limit=8]\nmax_unanswered_share: 0.2\n"
)
READERS = [
    *(("report", "--format", form) for form in ("json", "md", "csv", "latex")),
    *(("leaderboard", "--format", form) for form in ("json", "md")),
    ("check", "--policy", "POLICY"),
    ("compare",),
]
RUN_FILES = st.one_of(
    mutated(RUN_FILE).map(lambda run: json.dumps(run).encode()), damaged(json.dumps(RUN_FILE).encode())
)


@fuzz(25, content=RUN_FILES, reader=st.sampled_from(READERS))
def test_run_files(folder, content, reader):
    (folder / "policy.yaml").write_text(BOUNDS)
    (folder / "run.json").write_bytes(content)
    name, *more = [str(folder / "policy.yaml") if word == "POLICY" else word for word in reader]
    judged(folder, name, str(folder / "run.json"), *more)


@fuzz(12, content=mutated(RUN_FILE))
def test_a_run_file_that_is_taken_round_trips(folder, content):
    def read_one(data):
        (folder / "run.json").write_text(json.dumps(data))
        return read([folder / "run.json"])[0][0]

    run = taken(read_one, content)
    if run is not None:
        data = record.as_data(run)
        record.check(data)
        assert record.as_data(read_one(data)) == data


# ---- saved answers


def scores(test):
    ids = [identity for i in (1, 2, 3) for identity in tiny_frame("en", test)[f"c{i}_id"]]
    return [{"id": identity, "score": round(0.01 * number, 2)} for number, identity in enumerate(ids)]


PREDICTIONS = json.dumps({"intrasentence": scores("intra"), "intersentence": scores("inter")}).encode()
LABELLED = "Text,Gender,Regard\n" + "".join(
    f"{subject} {text},{gender},{regard}\n"
    for gender, subject in (("female", "Die Frau"), ("male", "Der Mann"))
    for regard, text in enumerate(("galt als faul.", "war da.", "galt als klug."))
)
SAVED = {
    "predictions.json": PREDICTIONS,
    "predictions.json.gz": gzip.compress(PREDICTIONS, mtime=0),
    "texts.csv": LABELLED.encode(),
}


@fuzz(50, "tiny_mirror", data=st.data(), name=st.sampled_from(sorted(SAVED)))
def test_saved_answers(tiny_mirror, data, name):
    path = tiny_mirror.parent / name
    path.write_bytes(data.draw(damaged(SAVED[name])))
    judged(tiny_mirror, "rescore", str(path), *(["--language", "en"] if "csv" not in name else []), "--json")


# ---- what users write


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
RECORD = {"source": "a BLANK", "translation": "b", "engine": "en>it x", "placeholder": "XYZ"}
YAML = {
    "templates.yaml": (TEMPLATES, lambda path: inputs.templates(str(path), "explicit")),
    "words.yaml": (WORDS, lambda path: inputs.words(str(path), "explicit")),
    "policy.yaml": (POLICY, policy_file.read),
}
WRITTEN = {
    **{name: (yaml.safe_dump(content).encode(), reader) for name, (content, reader) in YAML.items()},
    "items.csv": (b'item,female_share\nvet,61.5\n"nurse, night",87\n', lambda path: inputs.items(str(path))),
    "table.csv": (b'text,translation\n"a, b",c\n', lambda path: translate.make_engine(f"file:{path}", ("en", "it"))),
    "memory.jsonl": ("".join(json.dumps(RECORD | {"source": str(n)}) + "\n" for n in range(3)).encode(),
                     translate.read_lines),
    "texts.csv": (b'text,note\nDie Frau lacht.,a\n"Der Mann, er lacht.",b\n', classify.read),
    "texts.jsonl": (b'{"text": "Die Frau lacht.", "note": 1}\n', classify.read),
}  # fmt: skip


@fuzz(200, data=st.data(), name=st.sampled_from(sorted(WRITTEN)))
def test_files_that_users_write(folder, data, name):
    good, reader = WRITTEN[name]
    path = folder / name
    path.write_bytes(good)
    assert reader(path)
    path.write_bytes(data.draw(damaged(good)))
    taken(reader, path)


BAD_YAML = [
    b"",
    b"a: \x00\n",
    b"[" * 1_000,
    b"a: !!python/object/apply:os.system [echo]\n",
    b"#" * (1 << 20) + b"\n",
    b"- a\n",
]


@pytest.mark.parametrize("file", YAML)
def test_yaml_that_is_none(file, tmp_path):
    for content in BAD_YAML:
        (tmp_path / file).write_bytes(content)
        with pytest.raises(BiasError, match=file):
            YAML[file][1](tmp_path / file)


# ---- heads and downloads
