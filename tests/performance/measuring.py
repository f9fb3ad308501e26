"""What the scripts share: the machine's name, a process's peak memory, a measurement in a process of its own."""

from __future__ import annotations

import os
import platform
import resource
import subprocess  # noqa: S404
import sys
from pathlib import Path


def processor() -> str:
    """The processor, in words."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def peak(start: bool = False) -> float:
    """The process's peak memory, MiB; on Linux since the last ``start``."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if start:
        Path("/proc/self/clear_refs").write_text("5")  # the kernel's way to begin anew
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def alone(
    script: str, *arguments: object, seconds: float | None = None, memory: float | None = None
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
