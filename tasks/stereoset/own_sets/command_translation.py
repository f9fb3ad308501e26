"""``command:`` and ``command-json:``: a program of the user's, started for every batch, without a shell."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from typing import IO, Any

from lm_eval_bias.errors import BiasError, printable

_FEW = 64  # texts show whether a program takes each line by itself


class Command:
    """A program that translates; it is told the languages by its environment, and in JSON by every line."""

    human = False

    def __init__(self, line: str, as_json: bool, languages: tuple[str, str], batch: int, timeout: float) -> None:
        """Find the program.

        Raises:
            BiasError: There is no command, or it can't be taken apart.
        """
        try:
            self._words = shlex.split(line)
        except ValueError as error:
            raise BiasError(f"--engine command:{line}: {error}") from error
        if not self._words:
            raise BiasError("--engine command: needs a program, as in --engine 'command:apertium en-es'")
        self._json, self._languages, self._timeout, self.batch = as_json, languages, timeout, batch
        self._alike = as_json  # whether it is known to treat every line by itself
        self.identity = f"{'command-json' if as_json else 'command'}:{shlex.join(self._words)}"

    def about(self) -> dict[str, Any]:
        """The command line."""
        return {"engine": "command", "command": shlex.join(self._words)}

    def translate(self, texts: Sequence[str], keep: str) -> list[str | None]:
        """The program's answers to one batch.

        Raises:
            BiasError: It can't be started, fails, takes too long, or doesn't answer every text with one line.
        """
        answers = self._answers(texts, keep)
        if not self._alike:
            self._check_order(texts[:_FEW], answers, keep)
            self._alike = len(texts) > 1
        return list(answers)

    def _check_order(self, texts: Sequence[str], answers: Sequence[str], keep: str) -> None:
        """Ask again in reverse: a program that joins lines to sentences gives as many back, but moves words between.

        The last text is left out: of as many, a program that answers in reverse order would give the same answers.
        """
        fewer = texts[:-1] or texts
        reordered = self._answers(fewer[::-1], keep)[::-1]
        for text, first, second in zip(fewer, answers, reordered, strict=False):
            if first != second:
                raise BiasError(
                    f"--engine {self.identity}: translates {text[:60]!r} as {first[:60]!r}, and in another order of "
                    f"the texts as {second[:60]!r}: it must translate each line by itself, and always in the same way "
                    "(or use command-json)"
                )

    def _answers(self, texts: Sequence[str], keep: str) -> list[str]:
        plain = lines = [" ".join(text.encode("utf-8", "replace").decode().split()) for text in texts]
        if self._json:
            source, target = self._languages
            queries = [{"text": text, "source": source, "target": target, "keep": [keep]} for text in plain]
            lines = [json.dumps(question, ensure_ascii=False) for question in queries]
        output = self._run("".join(f"{line}\n" for line in lines).encode(), len(texts))
        answers = output.removesuffix("\n").split("\n") if output else []
        if len(answers) != len(texts):
            raise self._error(f"{len(answers):,} lines came back for {len(texts):,} texts")
        return [self._answer(*answer) for answer in zip(answers, range(1, len(texts) + 1), plain, strict=True)]

    def _answer(self, line: str, number: int, text: str) -> str:
        if not self._json:
            return line.strip()
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if isinstance(answer, dict):
            if (own := answer.get("text", text)) != text:  # of a program that adds its translation to the query
                raise self._error(f"line {number} answers {str(own)[:60]!r}, but the question was {text[:60]!r}")
            answer = answer.get("translation")
        if not isinstance(answer, str):
            raise self._error(f'line {number}: {line[:60]!r} is neither a JSON text nor {{"translation": TEXT}}')
        return " ".join(answer.encode("utf-8", "replace").decode().split())

    def _error(self, why: str) -> BiasError:
        return BiasError(f"--engine {self.identity}: {why}; the translations so far are kept")

    def _run(self, content: bytes, texts: int) -> str:
        source, target = self._languages
        environment = {**os.environ, "LM_EVAL_BIAS_SOURCE": source, "LM_EVAL_BIAS_TARGET": target}
        limit = 64 * len(content) + (1 << 20)
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
            stdin.write(content)
            stdin.seek(0)
            try:
                process = subprocess.Popen(  # noqa: S603 - the user's own command
                    self._words, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, env=environment,
                    start_new_session=True,
                )  # fmt: skip
            except (OSError, ValueError) as error:
                raise self._error(f"cannot be started ({getattr(error, 'strerror', None) or error})") from error
            late = threading.Event()

            def stop() -> None:
                late.set()
                _kill(process)

            timer = threading.Timer(self._timeout, stop)
            timer.start()
            try:
                assert process.stdout is not None
                output = process.stdout.read(limit + 1)
                if len(output) > limit:
                    raise self._error("its output doesn't end")
                status = process.wait()
            finally:
                timer.cancel()
                if process.returncode is None:
                    _kill(process)
                    process.wait()
            if late.is_set():
                raise self._error(f"no answer to {texts:,} texts within {self._timeout:g} s (--timeout)")
            if status:
                raise self._error(f"it ended with status {status}{_last_line(stderr)}")
        try:
            return output.decode().replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise self._error(f"byte {error.start} of what it wrote is not UTF-8") from error


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program that wasn't waited for yet, and what it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _last_line(stderr: IO[bytes]) -> str:
    stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - 2_000))
    lines = [line for line in stderr.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return f": {printable(lines[-1].strip())[:200]}" if lines else ""
