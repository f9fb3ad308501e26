"""``lm-eval-bias compare``: differences between runs, instructions or languages on the same items."""

from __future__ import annotations

import argparse

from lm_eval_bias.cli import output
from lm_eval_bias.errors import BiasError, Parser

_MOST_DRAWS = 1_000_000
_EPILOG = """examples:
  lm-eval-bias compare base/ instruct/
  lm-eval-bias compare run/ --by instruction
  lm-eval-bias compare run/ --by language --base en --scores ss,icat
"""


def parser() -> argparse.ArgumentParser:
    """The command's own parser."""
    made = Parser(
        prog="lm-eval-bias compare",
        description="Paired differences of scores, with clustered intervals and permutation p-values.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("runs", nargs="+", metavar="RUN", help="result folders (--output_path) with samples")
    made.add_argument(
        "--by",
        choices=["run", "instruction", "language"],
        default="run",
        help="what to compare: runs (default), OccuGender's debiasing instructions, or languages within each run",
    )
    made.add_argument("--base", metavar="NAME", help="what the others are compared with (default: the first, none, en)")
    made.add_argument("--scores", metavar="A,B", help="which scores (default: each benchmark's main ones)")
    made.add_argument("--all-scores", action="store_true", help="all scores, breakdowns included")
    made.add_argument(
        "--unpaired", action="store_true", help="compare as independent what shares no items, seeds or versions"
    )
    made.add_argument(
        "--correction",
        choices=["holm", "bh", "none"],
        default="holm",
        help="for the number of tests: Holm (default), Benjamini-Hochberg, none",
    )
    made.add_argument("--draws", type=int, default=10_000, metavar="N", help="resamples (default 10,000)")
    made.add_argument("--seed", type=int, default=None, metavar="N", help="of the resamples (fixed by default)")
    made.add_argument("--format", choices=["text", "md", "latex", "csv", "json"], default="text")
    made.add_argument("-o", "--output", metavar="FILE", help="write there instead of to standard output")
    return made


def main(argv: list[str]) -> int:
    """Compare; returns the exit status.

    Raises:
        BiasError: Bad usage, runs that can't be read or can't be compared.
    """
    from lm_eval_bias.analysis import comparisons, differences
    from lm_eval_bias.custom_metrics.bootstrap import SEED
    from lm_eval_bias.report import comparison_reports
    from lm_eval_bias.runs.run_discovery import read

    args = parser().parse_args(argv)
    if args.draws < 100:
        raise BiasError(f"--draws {args.draws}: fewer than 100 say nothing")
    if args.draws > _MOST_DRAWS:
        raise BiasError(f"--draws {args.draws}: more than {_MOST_DRAWS:,} take much memory and say no more")
    if args.seed is not None and args.seed < 0:
        raise BiasError(f"--seed {args.seed}: must be 0 or more")
    if args.scores and args.all_scores:
        raise BiasError("--scores and --all-scores: give one of them")
    runs, problems = read(args.runs)
    output.name_problems(problems)
    found = differences.find(
        comparisons.pairs(runs, args.by, args.base),
        by=args.by,
        scores=args.scores.split(",") if args.scores else None,
        everything=args.all_scores,
        unpaired=args.unpaired,
        correction=args.correction,
        draws=args.draws,
        seed=SEED if args.seed is None else args.seed,
    )
    text = comparison_reports.render(found, args.correction, args.format)
    output.deliver(text, args.output, f"{args.output}: {len(found)} comparisons")
    return 0
