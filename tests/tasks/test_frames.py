"""The reader of pickled frames: reads what pandas writes, runs nothing, refuses the rest."""

import contextlib
import io
import os
import pickle

import numpy
import pandas
import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.data.pickled_frames import read_frame
from tests.support.made_mirror import tiny_frame


def pickled(frame, protocol=5):
    buffer = io.BytesIO()
    frame.to_pickle(buffer, protocol=protocol)
    return buffer.getvalue()


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_reads_what_pandas_wrote(protocol):
    cells = ["", "\x00", "\U0001f600", "a\nb", [], [{"label": "x"}], 0, -1, 2**62, True, None, 1.5]
    for language, rows in (("en", [2, 0]), ("tr", [0] * len(cells))):
        frame = tiny_frame(language, "inter").iloc[rows].astype(object)
        if language == "tr":
            frame["context"] = cells
        frame.columns = pandas.Index(list(frame.columns), dtype=object)
        found = read_frame(pickled(frame, protocol), "x")
        assert found == {name: list(frame[name]) for name in frame.columns}
    with pytest.raises(BiasError, match="refused"):
        read_frame(pickled(pandas.DataFrame(numpy.arange(3), columns=pandas.Index(["a"], dtype=object)), protocol), "x")


def test_reads_upstream_files_as_the_installed_pandas_does(mirror):
    paths = sorted(mirror.glob("slds-lmu/**/*.pkl"))
    assert len(paths) == 10
    for path in paths:
        expected = pandas.read_pickle(path)
        assert read_frame(path.read_bytes(), path.name) == {name: list(expected[name]) for name in expected}


class Hostile:
    """Calls something where it is unpickled."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def text(given):
    return pickle.SHORT_BINUNICODE + bytes([len(given)]) + given.encode()


GOOD = pickled(tiny_frame("tr", "inter"))
MANAGER = b"\x80\x02cpandas.core.internals.managers\nBlockManager\n"
SYSTEM = Hostile(os.system, "touch ran")
FRAME = tiny_frame("en", "inter")
FRAME.at[0, "context"] = SYSTEM
REFUSED = {
    **{f"system, protocol {number}": pickle.dumps(SYSTEM, number) for number in range(6)},
    **{f"system in a frame, protocol {number}": pickled(FRAME, number) for number in (3, 4, 5)},
    "eval": pickle.dumps(Hostile(eval, "1")),
    "numpy.load": pickle.dumps(Hostile(numpy.load, "/dev/null")),
    "dotted name": b"\x80\x04" + text("builtins") + text("slice.__class__") + b"\x93.",
    "inst": b"(S'echo'\nios\nsystem\n.",
    "obj": b"(cos\nsystem\nS'echo'\no.",
    "newobj_ex": b"\x80\x04csubprocess\nPopen\n)}\x92.",
    "extension registry": b"\x80\x02\x82\x01.",
    "persistent id": b"Pfile:///etc/passwd\n.",
    "out-of-band buffer": b"\x80\x05\x97.",
    "build of a class": MANAGER + b"}" + text("__init__") + b"Nsb.",
    "build with slots": MANAGER + b"N}" + text("__init__") + text("a") + b"s\x86b.",
    "nothing": b"",
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_content_is_refused_runs_nothing_and_does_not_reach_the_next_file(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BiasError, match=rf"^x: .*refused and not read: .*{'system' if 'sys' in name else '.'}"):
        read_frame(REFUSED[name], "x")
    assert read_frame(GOOD, "x")["id"] == ["inter0", "inter1"]
    assert not list(tmp_path.iterdir())


def test_every_cut_is_refused_and_every_changed_byte_gives_a_table_or_a_refusal():
    for place in range(0, len(GOOD) - 1, 11):
        with pytest.raises(BiasError, match="refused"):
            read_frame(GOOD[:place], "x")
        with contextlib.suppress(BiasError):
            found = read_frame(GOOD[:place] + bytes([GOOD[place] ^ 0x01]) + GOOD[place + 1 :], "x")
            assert len({len(column) for column in found.values()}) == 1
