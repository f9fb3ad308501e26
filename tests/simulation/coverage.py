"""Do intervals cover, do tests err as often as they say and find what they promise? Simulated models on real items.

    python -m tests.simulation.coverage --rounds 1000 --readme

Two models answer every item of a structure (``structures.py``), as simulated models with known true scores do
(``simulated_models.py``). Each round draws all effects anew, asks for the scores' intervals, their difference, its
p-value and the models' ranks through the package's own functions, and holds them against the truth (``rounds.py``).
What is done is saved at once, in a file whose name changes with the code, and taken up again.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import os
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the processes would wait for each other's threads

from lm_eval_bias import custom_metrics
from lm_eval_bias.boards import rank_intervals
from lm_eval_bias.core.errors import BiasError
from tests.simulation import rounds
from tests.simulation.coverage_table import Row, Sum, markdown, outside
from tests.simulation.structures import STRUCTURES, Structure

HERE = Path(__file__).resolve().parent
BLOCK = 20  # rounds that are saved together
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
Job = tuple[str, str, int, int]  # structure, case, first round, the one behind the last
Sums = dict[str, dict[str, Sum]]  # by score and measure: sum, number, number without a value


def block(job: Job) -> tuple[Job, Sums]:
    """The sums of some rounds."""
    name, case, start, stop = job
    sums: Sums = defaultdict(lambda: defaultdict(lambda: (0.0, 0, 0)))
    for seed in range(start, stop):
        for score, outcome in rounds.one_round(name, case, seed).items():
            for measure, value in outcome.items():
                total, number, without = sums[score][measure]
                sums[score][measure] = (
                    (total, number, without + 1) if value is None else (total + value, number + 1, without)
                )
    return job, {score: dict(measures) for score, measures in sums.items()}


def jobs(structures: Iterable[Structure], count: int) -> list[Job]:
    """So many rounds of every structure and case, the first ones of all of them first."""
    starts = range(0, count, BLOCK)
    structures = list(structures)
    return [(s.name, case, i, min(i + BLOCK, count)) for i in starts for s in structures for case in s.cases()]


def fingerprint() -> str:
    """A hash of the code that decides the outcome."""
    folders = [Path(str(custom_metrics.__file__)).parent, Path(str(rank_intervals.__file__)).parent]
    files = [file for folder in folders for file in sorted(folder.glob("*.py"))]
    files += [HERE / f"{name}.py" for name in ("simulated_models", "structures", "rounds")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def read(file: Path) -> Iterator[tuple[Job, Sums]]:
    """The blocks that are saved; a last line that was cut off is no block."""
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        try:
            (name, case, start, stop), sums = json.loads(line)
        except ValueError:
            continue
        yield (name, case, start, stop), sums


def simulate(todo: list[Job], processes: int, file: Path) -> dict[Job, Sums]:
    """The sums of these rounds, those that are saved already from there."""
    from tqdm import tqdm

    saved = dict(read(file))
    done = {job: saved[job] for job in todo if job in saved}
    left = [job for job in todo if job not in done]
    for name in dict.fromkeys(job[0] for job in left):
        rounds.maker(name)  # the processes share what was read
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(tqdm(total=sum(stop - start for _, _, start, stop in todo), unit="round"))
        progress.update(sum(stop - start for _, _, start, stop in done))
        lines = stack.enter_context(file.open("a", encoding="utf-8"))
        if file.stat().st_size and not file.read_bytes().endswith(b"\n"):
            lines.write("\n")  # a line that was cut off ends here
        blocks: Iterable[tuple[Job, Sums]]
        if processes > 1 and left:
            # the handler of this process would only raise an exception in a worker, which might then live on
            pool = multiprocessing.get_context("fork").Pool(processes, signal.signal, (signal.SIGTERM, signal.SIG_DFL))
            blocks = stack.enter_context(pool).imap_unordered(block, left)
        else:
            blocks = map(block, left)
        for job, sums in blocks:
            lines.write(json.dumps([job, sums]) + "\n")
            lines.flush()
            done[job] = sums
            progress.update(job[3] - job[2])
    return done


def rows(done: dict[Job, Sums]) -> list[Row]:
    """A row for every structure and score."""
    gathered: dict[tuple[str, str], dict[str, dict[str, Sum]]] = defaultdict(lambda: defaultdict(dict))
    for (name, case, _, _), sums in done.items():
        for score, measures in sums.items():
            cell = gathered[name, score][case]
            for measure, added in measures.items():
                before = cell.get(measure, (0.0, 0, 0))
                cell[measure] = (before[0] + added[0], before[1] + added[1], before[2] + added[2])
    order = {structure.name: structure for structure in STRUCTURES}
    return [
        Row.of(order[name], score, cases, {case: rounds.truths(name, case) for case in cases})
        for (name, score), cases in sorted(gathered.items(), key=lambda pair: list(order).index(pair[0][0]))
    ]


def available(structures: Iterable[Structure]) -> list[Structure]:
    """Those whose data can be had; the others are named."""
    there = []
    for structure in structures:
        try:
            rounds.maker(structure.name)
            there.append(structure)
        except BiasError as error:
            print(f"without {structure.name}: {error}", file=sys.stderr)
    return there


def main() -> int:
    """Simulate, and print, write or check the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=1000, help="rounds of each case (default: %(default)s)")
    parser.add_argument("--only", action="append", metavar="NAME", help="structures whose name has this in it")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--saved", type=Path, metavar="FILE", help="where rounds are saved (default: a temporary file)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table as JSON")
    parser.add_argument("--readme", action="store_true", help="put the table into README.md")
    parser.add_argument("--check", action="store_true", help="exit status 1 where a cell is out of bounds")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # the processes end with this one
    wanted = [s for s in STRUCTURES if not args.only or any(name in s.name for name in args.only)]
    if not wanted:
        parser.error(
            f"--only {', '.join(args.only)}: no such structure; there are: {'; '.join(s.name for s in STRUCTURES)}"
        )
    there = available(wanted)
    file = args.saved or Path(tempfile.gettempdir()) / f"lm-eval-bias-coverage-{fingerprint()}.jsonl"
    print(f"rounds are saved in {file}", file=sys.stderr)
    table = rows(simulate(jobs(there, args.rounds), args.processes, file))
    text = markdown(table, args.rounds)
    print(text)
    if args.json:
        args.json.write_text(json.dumps([row.data() for row in table], indent=1) + "\n", encoding="utf-8")
    if args.readme:
        readme = HERE / "README.md"
        before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
        readme.write_text(f"{before}{BEGIN}{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    cells = [f"{row.structure}, {row.score}: {cell}" for row in table for cell in outside(row)]
    print("\n".join([f"{len(cells)} cells out of bounds", *cells]), file=sys.stderr)
    return int(args.check and (bool(cells) or len(there) < len(wanted)))


if __name__ == "__main__":
    sys.exit(main())
