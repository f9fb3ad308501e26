"""Any damage to any file that a user writes: it is taken, or refused in one line."""

from __future__ import annotations

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import read_json
from lm_eval_bias.gate import policy_file
from lm_eval_bias.tasks.occugender import inputs

YAML = {
    "templates.yaml": lambda path: inputs.templates(str(path), "explicit"),
    "words.yaml": lambda path: inputs.words(str(path), "explicit"),
    "policy.yaml": policy_file.read,
}


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
            YAML[file](tmp_path / file)


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
        YAML[file](tmp_path / file)


def test_a_key_that_stands_twice_is_refused_in_results(tmp_path):
    path = tmp_path / "results_1.json"
    path.write_text('{"results": {"a": 1, "b": 2, "a": 3}}')
    with pytest.raises(BiasError, match="the key 'a' is given twice"):
        read_json(path)
