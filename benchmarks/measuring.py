"""What the scripts share: the machine, time and memory of processes, what a backend is given for requests."""

from __future__ import annotations

import logging
import os
import platform
import resource
import subprocess  # noqa: S404
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
Request = tuple[str, tuple[Any, ...], str]  # its type, its arguments, its task


def processor() -> str:
    """The processor, in words."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [
        line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
    ]
    return names[0] if names else platform.processor() or platform.machine()


def machine() -> str:
    """The machine, in words."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return (
        f"{processor()}, {torch.get_num_threads()} of {os.cpu_count()} threads, no GPU"
    )


def quiet() -> None:
    """No progress bars and no chatter of libraries."""
    os.environ["TQDM_DISABLE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    logging.disable(logging.WARNING)


def of_tree(root: int) -> tuple[float, float]:
    """Processor seconds and the sum of peak memories (GiB) of a process and all that it started and that still run."""
    seconds, children = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        pid = int(path.parent.name)
        seconds[pid] = sum(map(int, fields[11:15])) / _TICKS
        children.setdefault(int(fields[1]), []).append(pid)
    tree = [root]
    for pid in tree:
        tree += children.get(pid, [])
    status = (Path(f"/proc/{pid}/status").read_text() for pid in tree)
    peaks = (
        int(line.split()[1])
        for text in status
        for line in text.splitlines()
        if line.startswith("VmHWM")
    )
    return sum(seconds.get(pid, 0.0) for pid in tree), sum(peaks) / 2**20


def answers_of(lm: Any, requests: Sequence[Request]) -> list[Any]:
    """A model's answers to requests, asked one type after the other."""
    from lm_eval.api.instance import Instance

    answers: list[Any] = [None] * len(requests)
    for wanted in sorted({request[0] for request in requests}):
        chosen = [i for i, request in enumerate(requests) if request[0] == wanted]
        instances = [Instance(wanted, {}, requests[i][1], 0) for i in chosen]
        for i, answer in zip(chosen, getattr(lm, wanted)(instances), strict=True):
            answers[i] = answer
    return answers


def encoded(
    requests: Sequence[Request], arguments: dict[str, Any]
) -> list[tuple[tuple[int, ...], list[int]]]:
    """What a backend is given for requests: ``(all tokens that are run, the continuation)`` each, without weights."""
    from lm_eval.api.registry import get_model

    class Recording(get_model("hf")):  # type: ignore[misc]
        def _create_model(self, *args: Any, **kwargs: Any) -> None:
            import torch

            self._model = torch.nn.Identity()
            self._model.config, self._model.tie_weights = self._config, lambda: None

        def _loglikelihood_tokens(
            self, asked: Any, *args: Any, **kwargs: Any
        ) -> list[tuple[float, bool]]:
            seen.extend(
                ((*context, *continuation)[:-1], continuation)
                for _, context, continuation in asked
            )
            return [
                (-100.0 - number, False) for number, _ in enumerate(asked)
            ]  # as of probabilities: checked

    seen: list[Any] = []
    lm = Recording(**{**arguments, "logits_cache": False})
    answers_of(lm, requests)
    return seen


def peak(start: bool = False) -> float:
    """The process's peak memory, MiB; on Linux since the last ``start``."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if start:
        Path("/proc/self/clear_refs").write_text("5")  # the kernel's way to begin anew
    (line,) = (
        line for line in status.read_text().splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1]) / 1024


def alone(
    script: str,
    *arguments: object,
    seconds: float | None = None,
    memory: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``script --one ARGUMENTS``, which measures one thing and prints it, in a process of its own.

    Args:
        script: The path.
        arguments: Of ``--one``.
        seconds: That it may take.
        memory: GiB that it may take.

    Raises:
        subprocess.TimeoutExpired: It took longer.
    """

    def limited() -> None:
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (int(memory * 2**30),) * 2)

    return subprocess.run(  # noqa: S603
        [sys.executable, script, "--one", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=seconds,
        preexec_fn=limited,
        env={**os.environ, "TQDM_DISABLE": "1"},
    )
