"""Hostile pickles: not one instruction of theirs runs, and none takes more memory or time than its bytes are worth."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys

import pytest
from hypothesis import strategies as st

from lm_eval_bias.data.pickled_frames import read_frame
from lm_eval_bias.errors import BiasError
from tests.conftest import tiny_frame
from tests.fuzz.kit import fuzz, taken


def pickled(protocol=5, rows=1):
    buffer = io.BytesIO()
    tiny_frame("en", "inter").iloc[:rows].to_pickle(buffer, protocol=protocol)
    return buffer.getvalue()


GOOD = pickled()
OBJECT = b"cnumpy\ndtype\n(X\x02\x00\x00\x00O8\x89\x88tR"  # numpy.dtype("O8", False, True)
LONGS = b"cnumpy\ndtype\n(X\x02\x00\x00\x00i8\x89\x88tR"
ARRAY = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR"
FRAME = b"cpandas.core.frame\nDataFrame\n)\x81"
RANGE = b"cpandas.core.indexes.base\n_new_Index\ncpandas\nRangeIndex\n"


def text(given):
    return b"X" + struct.pack("<I", len(given)) + given.encode()


def long(number):
    raw = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def array(shape, content, dtype=OBJECT, fortran=b"\x89"):
    return ARRAY + b"(K\x01" + shape + dtype + fortran + content + b"tb"


def laughs(depth, open_, close):
    """A collection that holds one twice, which holds one twice, ..."""
    return (
        b"\x80\x04"
        + text("ha")
        + b"".join(
            b"q" + bytes([i]) + b"0" + open_ + b"h" + bytes([i]) + b"h" + bytes([i]) + close for i in range(depth)
        )
    )


def as_frame(manager):
    return b"\x80\x04" + FRAME + b"}" + text("_mgr") + manager + b"sb."


HUGE = long(1 << 62)
CALLS = {
    "global and reduce": b"\x80\x02cos\nsystem\n(" + text("echo") + b"tR.",
    "reduce, protocol 0": b"cos\nsystem\n(S'echo'\ntR.",
    "inst": b"(S'echo'\nios\nsystem\n.",
    "inst of an admitted name": b"(ipandas\nDataFrame\n.",
    "obj": b"(cos\nsystem\n" + text("echo") + b"o.",
    "obj of an admitted name": b"(cpandas\nDataFrame\no.",
    "newobj": b"\x80\x02csubprocess\nPopen\n" + text("echo") + b"\x85\x81.",
    "newobj_ex": b"\x80\x04csubprocess\nPopen\n)}\x92.",
    "newobj_ex of an admitted name": b"\x80\x04cpandas\nDataFrame\n)}\x92.",
    "stack_global": b"\x80\x04" + text("os") + text("system") + b"\x93" + text("echo") + b"\x85R.",
    "stack_global of no texts": b"\x80\x04)}\x93.",
    "stack_global of a dotted name": b"\x80\x04" + text("builtins") + text("slice.__class__") + b"\x93.",
    "extension registry": b"\x80\x02\x82\x01.",
    "extension registry, 2 and 4 bytes": b"\x80\x02\x83\x01\x00\x84\x01\x00\x00\x00.",
    "persistent id": b"Pfile:///etc/passwd\n.",
    "binary persistent id": b"\x80\x02" + text("x") + b"Q.",
    "out-of-band buffer": b"\x80\x05\x97.",
    "read-only buffer": b"\x80\x05C\x01x\x98.",
    "codecs": b"\x80\x02c_codecs\nencode\n" + text("x") + text("latin1") + b"\x86R.",
    "build of a class": b"\x80\x02cpandas\nDataFrame\n}" + text("__init__") + b"Nsb.",
    "build with slots": b"\x80\x02cpandas\nDataFrame\n)\x81N}" + text("columns") + b"Ns\x86b.",
    "build sets attributes": b"\x80\x02" + FRAME + b"}" + text("__class__") + b"Nsb.",
    "build of a text": b"\x80\x02" + text("x") + b"}b.",
    "reduce of a text": b"\x80\x02" + text("x") + b")R.",
    "reduce without a tuple": b"\x80\x02cpandas\nDataFrame\n]R.",
    "call of a stand-in": b"\x80\x02" + FRAME + b")R.",
    "nested pickle": b"\x80\x02cpickle\nloads\nC\x02N.\x85R.",
    "set and frozenset": b"\x80\x04\x8f(K\x01\x90(K\x02\x91.",
    "dup": b"\x80\x02]2.",
    "pop and pop to the mark": b"\x80\x02K\x01K\x020(K\x031.",
}
BOMBS = {
    "memo of a billion places": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "memo of a billion places, protocol 0": b"Np2147483647\n.",
    "bytes of a count": as_frame(array(b"K\x04\x85", b"J\xff\xff\xff\x3f", LONGS)),
    "shape of texts": as_frame(array(text("x" * 64) + HUGE + b"\x86", b"]", OBJECT)),
    "shape without end": as_frame(array(HUGE + b"K\x00\x86", b"]", OBJECT, b"\x88")),
    "shape below zero": as_frame(array(b"J\xff\xff\xff\xffJ\xff\xff\xff\xff\x86", b"](Na", OBJECT, b"\x88")),
    "many dimensions": as_frame(array(b"(" + b"K\x00" * 200 + b"t", b"]")),
    "rows without end": as_frame(
        b"cpandas.core.internals.managers\nBlockManager\n)" + RANGE + b"}(" + text("start") + b"K\x00"
        + text("stop") + HUGE + text("step") + b"K\x01u\x86R" + b"2\x86\x86R"
    ),
    "columns without end": as_frame(
        b"cpandas.core.internals.managers\nBlockManager\n)](" + 2 * (
            RANGE + b"}(" + text("start") + b"K\x00" + text("stop") + HUGE + text("step") + b"K\x01u\x86R"
        ) + b"e\x86R"
    ),
    "long text that isn't there": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40) + b"x.",
    "long bytes that aren't there": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"x.",
    "bytearray that isn't there": b"\x80\x05\x96" + struct.pack("<Q", 1 << 62) + b"x.",
    "frame that isn't there": b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"N.",
    "number of a million digits": b"L" + b"9" * 1_000_000 + b"L\n.",
    "number of a million bytes": b"\x80\x02\x8b" + struct.pack("<i", 1_000_000) + b"\x7f" * 1_000_000 + b".",
    "tuples in tuples as a key": laughs(200, b"", b"\x86") + b"q\xff0}h\xffNs.",
    "lists in lists": laughs(200, b"](", b"e") + b".",
    "a name of lists in lists": laughs(200, b"](", b"e") + b"q\xff0h\xffh\xff\x93.",
    "a type of lists in lists": laughs(100, b"](", b"e") + b"q\xff0cnumpy\ndtype\nh\xff\x85R.",
    "a list in itself": b"\x80\x02]q\x00h\x00a.",
    "a deep tuple": b"\x80\x02)" + b"\x85" * 200_000 + b".",
    "a deep tuple as a key": b"\x80\x02})" + b"\x85" * 200_000 + b"Ns.",
    "a deep tuple as a byte order": b"\x80\x02" + OBJECT + b"K\x03)" + b"\x85" * 200_000 + b"\x86b.",
    "a deep tuple as an index": b"\x80\x02cpandas\nIndex\n](" + b")" + b"\x85" * 200_000 + b"N\x86e\x85R.",
    "deep lists": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "marks": b"\x80\x02" + b"(" * 200_000 + b".",
    "deep stand-ins": b"\x80\x04" + b"cpandas\nIndex\n}" + text("data") * 1 + b"N" + b"s\x85R" + b"0" * 3 + b".",
}  # fmt: skip
BROKEN = {
    "nothing": b"",
    "only an end": b".",
    "two values": b"NN.",
    "a mark that stays": b"N(.",
    "a mark that isn't there": b"\x80\x02Nt.",
    "values below a mark": b"\x80\x02]](e.",
    "append to a text": b"\x80\x02" + text("x") + b"Na.",
    "a key that is no text": b"\x80\x02}K\x01Ns.",
    "half a pair": b"\x80\x02}(" + text("x") + b"u.",
    "memo that isn't there": b"\x80\x02h\x07.",
    "unknown instruction": b"\x80\x02\xff.",
    "something after the end": GOOD + b"N.",
    "another protocol": b"\x80\xffN.",
}
CORPUS = {**CALLS, **BOMBS, **BROKEN}


@pytest.mark.parametrize("name", [*CALLS, *BROKEN])
def test_refused_in_one_line(name):
    with pytest.raises(BiasError, match="x: refused and not read: .") as error:
        read_frame(CORPUS[name], "x")
    assert "\n" not in str(error.value)


# in a process of its own: what a bomb would take, the limits would kill; what a call would run, the hook would see
_GUARDED = """
import json, resource, sys
from lm_eval_bias.data.pickled_frames import read_frame
from lm_eval_bias.errors import BiasError
corpus = {name: bytes.fromhex(raw) for name, raw in json.load(sys.stdin).items()}
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 29),) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
seen, watching = [], [False]
sys.addaudithook(lambda event, _: watching[0] and seen.append(event))
said = {}
for name, raw in corpus.items():
    watching[0] = True
    try:
        said[name] = f"read: {read_frame(raw, 'x')}"[:80]
    except BiasError as error:
        said[name] = str(error)
    watching[0] = False
print(json.dumps([said, sorted(set(seen))]))
"""


def guarded(corpus, script=_GUARDED):
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps({name: raw.hex() for name, raw in corpus.items()}),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return json.loads(done.stdout)


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc to know its memory by")


@needs_proc
def test_nothing_runs_and_memory_and_time_are_bounded():
    said, seen = guarded({**CORPUS, "good": GOOD})
    assert said.pop("good").startswith("read: {")
    assert {name: line for name, line in said.items() if "refused and not read: " not in line} == {}
    assert {name: line for name, line in said.items() if "MemoryError" in line} == {}
    assert seen == []


@needs_proc
def test_the_guard_sees_what_python_itself_runs():
    script = _GUARDED.replace("read_frame(raw, 'x')", "__import__('pickle').loads(raw)")
    corpus = {"call": b"\x80\x02cos\ngetcwd\n)R.", "memo": CORPUS["memo of a billion places"]}
    said, seen = guarded(corpus, script.replace("except BiasError as error", "except Exception as error"))
    assert said["call"].startswith("read: /")
    assert not said["memo"].startswith("read")
    assert "pickle.find_class" in seen


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_every_byte_changed(protocol):
    """Each byte of a good file, changed in three ways: a table or a refusal, never anything else."""
    good = pickled(protocol)
    expected = read_frame(good, "x")
    assert expected["id"] == ["inter0"]
    step = 5 if protocol == 5 else 17
    for place in range(0, len(good), step):
        for flip in (0x01, 0x80, 0xFF):
            changed = good[:place] + bytes([good[place] ^ flip]) + good[place + 1 :]
            found = taken(read_frame, changed, "x")
            if found is not None:
                assert {len(column) for column in found.values()} == {1}


@fuzz(60, "tmp_path", data=st.data())
def test_instructions_in_any_order(folder, data):
    """Pieces of good and hostile pickles, strung together."""
    pieces = [*CALLS.values(), *BROKEN.values(), OBJECT, LONGS, ARRAY, FRAME, RANGE, GOOD[:-1], HUGE, text("data")]
    single = [bytes([code]) for code in b"()]}aestubRN\x81\x85\x86\x87\x88\x89\x93\x94"]
    chosen = data.draw(st.lists(st.sampled_from([*pieces, *single]), max_size=12))
    taken(read_frame, b"".join(chosen) + b".", "x")


def test_what_was_written_is_read_whatever_the_cells_hold():
    frame = tiny_frame("tr", "inter").astype(object)
    cells = ["", "\x00", "\U0001f600", "a\nb", [], [{"label": "x"}], 0, -1, 2**62, True, None, 1.5]
    frame = frame.loc[[0] * len(cells)].reset_index(drop=True)
    frame["context"] = cells
    for i in (1, 2, 3):  # loc gives all rows one list
        frame[f"c{i}_labels"] = [[] for _ in cells]
    frame.columns = frame.columns.astype(object)
    buffer = io.BytesIO()
    frame.to_pickle(buffer)
    found = read_frame(buffer.getvalue(), "x")
    assert (found["id"], found["context"]) == (list(frame["id"]), cells)
