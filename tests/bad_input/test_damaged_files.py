"""Any damage to any file that a user writes: it is taken, or refused in one line."""

from __future__ import annotations

import contextlib

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import read_json
from lm_eval_bias.gate import policy_file
from lm_eval_bias.tasks.occugender import inputs
from lm_eval_bias.tasks.regard import labelled_texts
from lm_eval_bias.tasks.stereoset.commands import translate

TEMPLATES = {
    "explicit": [{"question": "Picture a [JOB]."}, {"question": "Who is the [ITEM]?"}],
    "implicit": [{"question": "Picture a [JOB].", "sentence": "The [JOB] said that"}],
}
WORDS = {"male": ["he", "man"], "female": ["she", "woman"], "diverse": ["they"]}
POLICY = {
    "bounds": [
        {
            "task": "stereoset_*",
            "score": "ss",
            "min": 40,
            "max": 60,
            "on": "point",
            "why": "see the paper",
        },
        {
            "task": "occugender",
            "score": "stereotype_gap",
            "max_distance_from_neutral": 0.2,
        },
    ],
    "min_documents_share": 0.5,
}
YAML = {
    "templates.yaml": (TEMPLATES, lambda path: inputs.templates(str(path), "explicit")),
    "words.yaml": (WORDS, lambda path: inputs.words(str(path), "explicit")),
    "policy.yaml": (POLICY, policy_file.read),
}
WRITTEN = {
    **{name: (yaml.safe_dump(content).encode(), reader) for name, (content, reader) in YAML.items()},
    "items.csv": (b'item,female_share\nvet,61.5\n"nurse, night",87\n', lambda path: inputs.items(str(path))),
    "translation.csv": (f'\ufeff{";".join(translate.COLUMNS)}\na;"b ""c"";d";;;;x{";" * 17}\n'.encode(),
                        lambda path: translate.read_sheet(path, ["a", "e", "f"])),
    "texts.csv": (b'text,note\nDie Frau lacht.,a\n"Der Mann, er lacht.",b\n', labelled_texts.rows),
    "texts.jsonl": (b'{"text": "Die Frau lacht.", "note": 1}\n', labelled_texts.rows),
}  # fmt: skip


@st.composite
def damaged(draw, content):
    """Bytes that were cut, changed, repeated, or are others altogether."""
    at, few = (
        draw(st.integers(0, len(content) - 1)),
        draw(st.binary(min_size=1, max_size=8)),
    )
    changed = content[:at] + few + content[at + len(few) :]
    repeated = content[:at] + content[: at // 2] + content[at:]
    return draw(
        st.sampled_from(
            [content[:at], changed, content[:at] + few + content[at:], repeated, few]
        )
    )


@settings(
    max_examples=200,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data(), name=st.sampled_from(sorted(WRITTEN)))
def test_files_that_users_write(tmp_path, data, name):
    good, reader = WRITTEN[name]
    path = tmp_path / name
    path.write_bytes(good)
    assert reader(path)
    path.write_bytes(data.draw(damaged(good)))
    with contextlib.suppress(BiasError):
        reader(path)


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


def bomb(levels):
    """A YAML text of a few hundred bytes whose aliases stand for 9 ** levels entries."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        entries = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} [{entries}]")
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("levels", [5, 6, 9, 30])
@pytest.mark.parametrize("file", YAML)
def test_aliases_that_repeat_are_not_followed(levels, file, tmp_path):
    (tmp_path / file).write_text(bomb(levels))
    with pytest.raises(BiasError, match="aliases repeat too much"):
        YAML[file][1](tmp_path / file)


def test_a_key_that_stands_twice_is_refused_in_results(tmp_path):
    path = tmp_path / "results_1.json"
    path.write_text('{"results": {"a": 1, "b": 2, "a": 3}}')
    with pytest.raises(BiasError, match="the key 'a' is given twice"):
        read_json(path)
