"""Runs lm-eval-bias in forked children of one process that has everything imported, and kills them.

Reads one JSON object a line: ``arguments``, ``log`` (what the model was asked is appended there), and perhaps ``at``
(a function's dotted name and the number of its call) for the moment of SIGKILL. Answers with the status.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import signal
import sys
import traceback

PRELOADED = (
    "lm_eval.models.huggingface",
    "lm_eval.tasks",
    "scipy.stats",
    "sklearn.linear_model",
    "transformers.models.bert.modeling_bert",
    "transformers.models.llama.modeling_llama",
    "lm_eval_bias.evaluation.steps",
)


def die_at(name: str, number: int) -> None:
    """Have this process killed when a function is called for the n-th time."""
    module, _, path = name.partition(":")
    of, _, attribute = path.rpartition(".")
    owner = importlib.import_module(module)
    owner = getattr(owner, of) if of else owner
    function, calls = getattr(owner, attribute), 0

    def counted(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    setattr(owner, attribute, counted)


def count_rows(log: str) -> None:
    """Append a line for every row of tokens that the ``hf`` backend's model is given."""
    from lm_eval.models.huggingface import HFLM

    def logged(name, line):
        method = getattr(HFLM, name)

        def call(self, *args, **kwargs):
            rows = args[0] if args else kwargs["context"]
            with open(log, "a") as file:
                file.write("".join(line(row) for row in rows.tolist()))
            return method(self, *args, **kwargs)

        setattr(HFLM, name, call)

    logged(
        "_model_call",
        lambda row: (
            f"_model_call {hashlib.sha256(repr(row).encode()).hexdigest()[:16]}\n"
        ),
    )
    logged("_model_generate", lambda row: "_model_generate\n")


def child(order: dict) -> int:
    from lm_eval_bias.cli.main import main

    out = os.open(order["log"] + ".out", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    count_rows(order["log"])
    if order["at"]:
        die_at(*order["at"])
    return main(order["arguments"])


def serve() -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    import torch.utils.collect_env

    from lm_eval_bias.harness import registration

    registration.register()
    torch.utils.collect_env.get_pretty_env_info = lambda: (
        "PyTorch version: 0"
    )  # takes seconds, a dozen programs run
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            status = 99
            try:
                status = child(order)
                sys.stdout.flush()
            except BaseException:  # noqa: BLE001 (whatever it is, the child has to end here)
                traceback.print_exc()
            finally:
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
