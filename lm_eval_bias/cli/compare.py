"""``lm-eval-bias compare``: differences between runs, instructions, languages or forms of asking on the same items."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lm_eval_bias import catalog
from lm_eval_bias.cli import output
from lm_eval_bias.errors import BiasError, did_you_mean
from lm_eval_bias.runs.run_data import Problem

if TYPE_CHECKING:
    from lm_eval_bias.analysis.comparisons import Pair
    from lm_eval_bias.analysis.differences import Finding
    from lm_eval_bias.report.comparison_pages import Refusal

_MOST_DRAWS = 1_000_000
_EPILOG = """examples:
  lm-eval-bias compare base/ instruct/
  lm-eval-bias compare base/ instruct/ -o compare.html
  lm-eval-bias compare run/ --by instruction
  lm-eval-bias compare run/ --by language --base en --scores ss,icat
  lm-eval-bias compare likelihoods/ generated/ --by form
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    from lm_eval_bias.analysis.comparisons import FORM, LANGUAGE, conditions
    from lm_eval_bias.report.comparison_reports import CORRECTIONS, FORMATS

    within = "".join(f"{condition.help}, " for condition in conditions().values())
    parser.description = (
        "Paired differences of scores, with clustered intervals and permutation p-values. Beyond all resamples, for "
        "few clusters, and for scores that are no means, Student's t is the test."
    )
    parser.epilog = _EPILOG
    parser.add_argument("runs", nargs="+", metavar="RUN", help="result folders (--output_path) with samples")
    parser.add_argument(
        "--by",
        choices=["run", *conditions(), LANGUAGE, FORM],
        default="run",
        help=f"what to compare: runs (default), {within}languages within each run, or forms of "
        "asking (log-likelihoods, generated answers) in one model's runs",
    )
    parser.add_argument(
        "--base",
        metavar="NAME",
        help="what the others are compared with (default: the first, none, en, log-likelihoods)",
    )
    parser.add_argument("--scores", metavar="A,B", help="which scores (default: each benchmark's main ones)")
    parser.add_argument("--all_scores", action="store_true", help="all scores, breakdowns included")
    parser.add_argument(
        "--unpaired", action="store_true", help="compare as independent what shares no items, seeds or versions"
    )
    parser.add_argument(
        "--correction",
        choices=CORRECTIONS,
        default="holm",
        help="for the number of tests: Holm (default), Benjamini-Hochberg, none",
    )
    parser.add_argument("--draws", type=int, default=10_000, metavar="N", help="resamples (default 10,000)")
    parser.add_argument("--seed", type=int, default=None, metavar="N", help="of the resamples (fixed by default)")
    parser.add_argument(
        "--format", choices=(*FORMATS, "html"), help="default: what the output's name ends in, else text"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of to standard output")


def run(arguments: argparse.Namespace) -> int:
    """Compare; returns the exit status.

    Raises:
        BiasError: Bad usage, runs that can't be read or can't be compared.
    """
    from lm_eval_bias.analysis import comparisons, form_associations
    from lm_eval_bias.report import comparison_pages, comparison_reports
    from lm_eval_bias.runs.run_discovery import read

    if arguments.draws < 100:
        raise BiasError(f"--draws {arguments.draws}: fewer than 100 say nothing")
    if arguments.draws > _MOST_DRAWS:
        raise BiasError(f"--draws {arguments.draws}: more than {_MOST_DRAWS:,} take much memory and say no more")
    if arguments.seed is not None and arguments.seed < 0:
        raise BiasError(f"--seed {arguments.seed}: must be 0 or more")
    if arguments.scores and arguments.all_scores:
        raise BiasError("--scores and --all_scores: give one of them")
    scores = list(dict.fromkeys(output.comma_separated([arguments.scores or ""])))
    if arguments.scores and not scores:
        raise BiasError(f"--scores {arguments.scores}: names no score: leave it out for the main ones")
    form = arguments.format or output.ENDINGS.get(Path(arguments.output or "").suffix.lower(), "text")
    output.check_place(arguments.output, arguments.runs)
    by_form = arguments.by == comparisons.FORM
    runs, problems = read(arguments.runs, by_model=by_form)
    output.name_problems(problems)
    pairs = comparisons.pairs(runs, arguments.by, arguments.base)
    findings, refused = _findings(pairs, scores, arguments, is_page=form == "html")
    output.name_problems([Problem(one.pair.other.run.path, str(one)) for one in refused])
    pairs = _without(pairs, refused)
    sides = [side for pair in pairs for side in (pair.base, pair.other)]
    known = {s.name for side in sides for s in side.benchmark.every_score() if s.table is not None}
    known |= {finding.score.name for finding in findings}
    if unknown := next((name for name in scores if name not in known), None):
        raise BiasError(f"--scores {unknown}: no task here has such a score.{did_you_mean(unknown, known)}")
    _refuse_foreign_logs(pairs, findings)
    associations = form_associations.find(pairs, findings) if by_form else ()
    if form == "html":
        text = comparison_pages.render(findings, pairs, arguments.by, arguments.correction, associations, refused)
    else:
        text = comparison_reports.render(findings, arguments.correction, form, associations)
    output.deliver(text, arguments.output, f"{arguments.output}: {len(findings)} comparisons")
    return 0


def _findings(
    pairs: Sequence[Pair], scores: Sequence[str], arguments: argparse.Namespace, is_page: bool
) -> tuple[list[Finding], list[Refusal]]:
    """What the pairs differ in, and those that can't be compared, which a page lists beside the others.

    Raises:
        BiasError: A pair that can't be compared, in another format than a page or as all others, or nothing to compare.
    """
    from lm_eval_bias.analysis import comparisons, differences
    from lm_eval_bias.custom_metrics.bootstrap import SEED
    from lm_eval_bias.report.comparison_pages import Refusal

    def findings(those: Sequence[Pair]) -> list[Finding]:
        return differences.find(
            those,
            by=arguments.by,
            scores=scores or None,
            everything=arguments.all_scores,
            unpaired=arguments.unpaired,
            correction=arguments.correction,
            draws=arguments.draws,
            seed=SEED if arguments.seed is None else arguments.seed,
        )

    try:
        return findings(pairs), []
    except BiasError:
        if not is_page or arguments.unpaired:
            raise
        refused = []
        for pair in pairs:
            logs = pair.base.task.samples and pair.other.task.samples
            if reason := comparisons.why_not_paired(pair, arguments.by) if logs else "no sample logs":
                refused.append(Refusal(pair, reason))
        if len(refused) in (0, len(pairs)):
            raise
    return findings(_without(pairs, refused)), refused


def _without(pairs: Sequence[Pair], refused: Sequence[Refusal]) -> list[Pair]:
    """The pairs that can be compared."""
    return [pair for pair in pairs if all(pair is not one.pair for one in refused)]


def _refuse_foreign_logs(pairs: Sequence[Pair], findings: Sequence[Finding]) -> None:
    """Refuse sample logs that give other values than the results beside them: they would count for another model.

    What an older version of a task scored otherwise is left alone.

    Raises:
        BiasError: The first such log.
    """
    from lm_eval_bias.analysis import conventions

    by_labels = {(pair.subject, pair.base.label, pair.other.label): pair for pair in pairs}
    for finding in (finding for finding in findings if finding.paired):
        pair = by_labels[finding.subject, finding.base, finding.other]
        for side, value in ((pair.base, finding.base_value), (pair.other, finding.other_value)):
            task, own = side.task, side.task.scores.get(finding.score.name)
            entry = catalog.entries().get(task.base)
            is_current = entry is not None and conventions.same_version(task.version, entry.metadata.get("version"))
            if own is None or not is_current or finding.items != task.documents or math.isnan(own.value - value):
                continue
            # a standard deviation of equal numbers is 0 or, by the order of a sum, the root of its rounding error
            width = finding.score.high - finding.score.low
            if not math.isclose(own.value, value, rel_tol=1e-9, abs_tol=1e-7 * width if width < math.inf else 1e-9):
                raise BiasError(
                    f"{task.samples}: by it {finding.score.name} is {value:.6g}, by {side.run.path.name} beside it "
                    f"{own.value:.6g}: files of different runs, or edited (rescore reads the log alone)"
                )
