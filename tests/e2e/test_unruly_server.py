"""A server that blocks, cuts, refuses, drops and outlives its client: counts are right, and nothing is lost."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from lm_eval_bias.core.answers import ENDLESS, REFUSED
from lm_eval_bias.harness import servers as checks
from tests.support import servers
from tests.support.commands import command
from tests.support.places import ROOT
from tests.support.run_scores import logs_of, numbers, results_of

pytest.importorskip("tenacity", reason="needs lm-eval[api]")

TASKS = ("gg_bbq_group_terms_gen", "occugender_explicit_gen")
BLOCKED = (400, b'{"error": {"code": "content_filter", "message": "filtered"}}')
CUT = "Let us look at the options. (B) The"
PROGRAM = """
import sys
from pathlib import Path
import pytest
from lm_eval_bias.cli.main import main
from lm_eval_bias.harness import servers
from tests.support.made_mirror import make_tiny_mirror
make_tiny_mirror(Path(sys.argv[1]), pytest.MonkeyPatch())
servers.PAUSE = 0.0
sys.exit(main(sys.argv[2:]))
"""


def share(asked):
    """Where a prompt lies among all, 0 to 1."""
    text = json.dumps(asked["messages"], sort_keys=True)
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


def is_blocked(asked):
    return share(asked) < 0.05


def is_cut(asked):
    return 0.05 <= share(asked) < 0.25


def cut(found):
    choice = found["choices"][0]
    choice["message"]["content"] = CUT
    return {"choices": [{**choice, "finish_reason": "length"}]}


def whole(found):
    return {"choices": [{**found["choices"][0], "finish_reason": "stop"}]}


class Unruly:
    """What the server does with each request."""

    def __init__(self, is_busy):
        self.is_busy, self.number, self.given = is_busy, 0, Counter()

    def __call__(self, asked):
        self.number += 1
        if self.is_busy and self.number % 7 == 0:
            return 429, b"slow down", {"Retry-After": 0}
        if self.is_busy and self.number % 11 == 0:
            return "dropped"
        is_probe = asked["messages"][-1]["content"] == "Hello."
        if not is_probe:
            key = json.dumps([asked["messages"], asked.get("seed")])
            self.given[key] += 1
        if is_blocked(asked) and not is_probe:
            return BLOCKED
        return cut if is_cut(asked) else whole


@pytest.fixture
def server():
    made = servers.Server()
    yield made
    made.close()


def arguments(server, folder):
    where = f"model=tiny,base_url={server.url}/chat/completions,num_concurrent=4,max_retries=9"
    kept = ["--use_cache", str(folder / "cache"), "--output_path", str(folder / "out")]
    chat = ["--model", "local-chat-completions", "--apply_chat_template"]
    part = ["--limit", "80", "--metadata", '{"repeats": 2}', "--log_samples"]
    return [
        "run",
        "--tasks",
        ",".join(TASKS),
        *chat,
        "--model_args",
        where,
        *part,
        *kept,
    ]


def counted(folder):
    """How the texts of each task ended and were read, by its log."""
    counts = {task: Counter() for task in TASKS}
    samples = logs_of(folder)
    for task, sample in [(name, one) for name in TASKS for one in samples[name]]:
        (texts,), (reasons,), (read,) = (
            sample[name] for name in ("resps", "finish_reasons", "filtered_resps")
        )
        read = [row[1] for row in read] if isinstance(read, list) else [read]
        asked = {"messages": json.loads(sample["arguments"]["gen_args_0"]["arg_0"][0])}
        for text, reason, reading in zip(texts, reasons, read, strict=True):
            counts[task]["texts"] += 1
            counts[task][reason] += 1
            assert (reason == "content_filter") == is_blocked(asked) == (not text)
            assert (reason == "length") == is_cut(asked) == (text == CUT)
            if reason == "content_filter":
                assert reading == REFUSED
            if reason == "length":
                assert reading == ENDLESS
    return counts


def test_a_run_through_everything(server, tiny_mirror, tmp_path, monkeypatch, said):
    monkeypatch.setattr(checks, "PAUSE", 0.0)
    server.judge = Unruly(is_busy=False)
    calm = command(*arguments(server, tmp_path / "calm"))
    assert calm.status == 0, calm.err
    server.judge = judge = Unruly(is_busy=True)
    where = tmp_path / "unruly"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tiny_mirror), *arguments(server, where)],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
        },
        stdout=subprocess.DEVNULL,
        stderr=(tmp_path / "err").open("wb"),
    )
    while len(judge.given) < 60:
        assert process.poll() is None, (tmp_path / "err").read_text()[-2000:]
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    resumed = command(*arguments(server, where))
    assert resumed.status == 0, resumed.err
    # the same numbers, whatever happened
    scores = [numbers(results_of(tmp_path / name)) for name in ("calm", "unruly")]
    assert repr(scores[0]) == repr(scores[1])
    # what was under way when it was killed, or lost with a connection, was asked again, and nothing else
    again = [key for key, count in judge.given.items() if count > 1]
    assert len(again) <= 4 + 4 + 1
    results = results_of(where)
    counts = counted(where)
    for task in TASKS:
        told = results["configs"][task]["metadata"]["texts"]
        assert told["texts"] == counts[task]["texts"] > 10
        assert told.get("blocked", 0) == counts[task]["content_filter"]
        assert told["cut"] == told["unfinished"] == counts[task]["length"] > 1
        assert "failed" not in told
    report = said("report", where / "out", "--format", "md")
    assert "raise max_gen_toks=" in report.replace("\\_", "_")
    assert "were blocked by a filter" in report
