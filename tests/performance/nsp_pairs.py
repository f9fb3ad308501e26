"""Time and memory of building sentence pairs for ``nsp train`` against the number of sentences.

    python tests/performance/nsp_pairs.py --sizes 10000,100000,1000000

Articles of 50 sentences of 5 to 25 random words each, in one JSONL file. Every size is a process of its own; time is
the processor's, memory the process's peak less what it had after its imports and a small corpus.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from measuring import alone, peak
from tabulate import tabulate

SENTENCES = 50


def write(path: Path, sentences: int) -> None:
    """Write a corpus of so many sentences."""
    draw = random.Random(1)
    letters = "abcdefghijklmnop"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(5_000)]
    with path.open("w", encoding="utf-8") as out:
        for _ in range(sentences // SENTENCES):
            said = (" ".join(draw.choices(words, k=draw.randint(5, 25))).capitalize() for _ in range(SENTENCES))
            out.write(json.dumps({"text": " ".join(f"{text}." for text in said)}) + "\n")


def one(folder: Path, sentences: int) -> None:
    """Measure one size and print it as JSON."""
    from lm_eval_bias.models.next_sentence.nsp_settings import Corpus, TrainingSettings
    from lm_eval_bias.models.next_sentence.sentence_pairs import ABOUT, build

    def settings(name: str) -> TrainingSettings:
        return TrainingSettings("", (Corpus(str(folder / f"{name}.jsonl"), "en"),))

    for name, size in (("warm", 1_000), ("corpus", sentences)):
        write(folder / f"{name}.jsonl", size)
    build(settings("warm"), folder / "warm")
    before, started = peak(start=True), time.process_time()
    build(settings("corpus"), folder / "pairs")
    seconds = time.process_time() - started
    own = peak() - before
    disk = sum(path.stat().st_size for path in (folder / "pairs").iterdir()) / 2**20
    about = json.loads((folder / "pairs" / ABOUT).read_text(encoding="utf-8"))
    print(json.dumps([about["sentences"], seconds, own, disk, about["pairs"]["train"]["pairs"]]))


def main() -> None:
    """Measure all sizes and print a table."""
    parser = argparse.ArgumentParser(description="Time and memory of building sentence pairs.")
    parser.add_argument("--sizes", default="10000,100000,1000000", help="sentences, separated by commas")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        with tempfile.TemporaryDirectory() as folder:
            one(Path(folder), args.one)
        return
    rows = []
    for size in args.sizes.split(","):
        done = alone(__file__, size)
        if done.returncode:
            raise SystemExit(done.stderr)
        sentences, seconds, memory, disk, count = json.loads(done.stdout.splitlines()[-1])
        each = 1e6 * seconds / sentences
        rows.append([f"{sentences:,}", f"{count:,}", f"{seconds:.1f}", f"{each:.1f}", f"{memory:.0f}", f"{disk:.0f}"])
    headers = ["sentences", "pairs", "s", "µs a sentence", "MiB", "MiB on disk"]
    print(tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
