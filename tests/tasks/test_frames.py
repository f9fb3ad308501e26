"""The reader of pickled frames: reads what pandas writes, runs nothing, refuses the rest."""

import io
import os
import pickle
import pickletools

import numpy
import pandas
import pytest

from lm_eval_bias.data.pickled_frames import read_frame
from lm_eval_bias.errors import BiasError
from tests.conftest import tiny_frame


def pickled(frame, protocol=5):
    buffer = io.BytesIO()
    frame.to_pickle(buffer, protocol=protocol)
    return buffer.getvalue()


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_reads_what_pandas_wrote(protocol):
    for language in ("en", "fr"):
        frame = tiny_frame(language, "intra")
        frame["number"] = numpy.arange(len(frame))
        frame.columns = pandas.Index(list(frame.columns), dtype=object)
        found = read_frame(pickled(frame, protocol), "x")
        assert list(found) == list(frame.columns)
        for name, values in found.items():
            assert values == list(frame[name]), name


def test_index_of_chosen_rows():
    frame = tiny_frame("en", "inter").iloc[[2, 0]]
    assert read_frame(pickled(frame), "x")["id"] == ["inter2", "inter0"]


@pytest.mark.slow
def test_reads_upstream_files_as_the_installed_pandas_does(mirror):
    paths = sorted(mirror.glob("slds-lmu/**/*.pkl"))
    assert len(paths) == 10
    for path in paths:
        found, expected = read_frame(path.read_bytes(), path.name), pandas.read_pickle(path)
        assert list(found) == list(expected.columns)
        for name, values in found.items():
            assert values == list(expected[name]), (path.name, name)


class Hostile:
    """Runs a command where it is unpickled."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def written(marker):
    return Hostile(os.system, f"touch {marker}")


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_hostile_file_is_refused_and_nothing_runs(tmp_path, protocol):
    marker = tmp_path / "ran"
    with pytest.raises(BiasError, match=r"x: refused and not read: it names posix\.system, which no table"):
        read_frame(pickle.dumps(written(marker), protocol), "x")
    assert not marker.exists()


def test_hostile_cells_inside_a_good_frame(tmp_path):
    marker = tmp_path / "ran"
    frame = tiny_frame("en", "inter")
    frame.at[0, "context"] = written(marker)
    with pytest.raises(BiasError, match="names posix.system"):
        read_frame(pickled(frame), "x")
    assert not marker.exists()


@pytest.mark.parametrize(
    "call",
    [
        Hostile(eval, "1"),
        Hostile(getattr, "a", "upper"),
        Hostile(pandas.DataFrame.from_dict, {}),
        Hostile(numpy.load, "/dev/null"),
        Hostile(pickle.loads, b"N."),
        Hostile(pandas.read_pickle, "http://127.0.0.1:9/x"),
    ],
    ids=lambda call: call.call[0].__qualname__,
)
def test_nothing_else_can_be_named(call):
    with pytest.raises(BiasError, match="refused and not read: it names"):
        read_frame(pickle.dumps(call, 4), "x")


def test_dotted_names_and_attributes_of_admitted_names_are_refused():
    for module, name in (("builtins", "slice.__class__"), ("pandas.core.frame", "DataFrame.__init__.__globals__")):
        code = (
            pickle.PROTO
            + b"\x04"
            + b"".join(pickle.SHORT_BINUNICODE + bytes([len(part)]) + part.encode() for part in (module, name))
        )
        with pytest.raises(BiasError, match="refused and not read: it names"):
            read_frame(code + pickle.STACK_GLOBAL + pickle.STOP, "x")


def test_what_one_file_writes_to_the_stand_ins_does_not_reach_the_next():
    good = pickled(tiny_frame("en", "inter"))
    # BUILD with a slot state sets attributes of whatever is on the stack: here of the class behind BlockManager
    name = b"cpandas.core.internals.managers\nBlockManager\n"
    hostile = pickle.PROTO + b"\x02" + name + b"N}X\x08\x00\x00\x00__init__X\x01\x00\x00\x00as\x86b."
    pickletools.dis(hostile, out=io.StringIO())
    with pytest.raises(BiasError, match="refused"):
        read_frame(hostile, "x")
    assert read_frame(good, "x")["id"] == ["inter0", "inter1", "inter2", "inter3"]


@pytest.mark.parametrize("content", [b"", b"junk", pickle.dumps([1]), pickle.dumps({"a": 1}), b"\x80\x05]"])
def test_other_content_is_refused(content):
    with pytest.raises(BiasError, match="x: refused and not read: "):
        read_frame(content, "x")


def test_every_cut_of_a_file_is_refused():
    whole = pickled(tiny_frame("tr", "inter"))
    for end in range(0, len(whole) - 1, 7):
        with pytest.raises(BiasError, match="refused"):
            read_frame(whole[:end], "x")
