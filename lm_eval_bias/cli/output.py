"""What the commands about runs have in common: options with commas, what was passed over, and delivering text."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lm_eval_bias import output_files
from lm_eval_bias.runs.run_data import Problem


def comma_separated(values: Sequence[str]) -> list[str]:
    """The names in the values of an option that takes several with commas.

    >>> comma_separated(["ss, lms,", "icat"])
    ['ss', 'lms', 'icat']
    """
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def name_problems(problems: Sequence[Problem]) -> None:
    """Say on standard error what had to be passed over."""
    from lm_eval_bias.runs import printable_runs

    for problem in problems:
        print(f"lm-eval-bias: skipped: {printable_runs.one_line(problem)}", file=sys.stderr)


def deliver(text: str, output: str | None, summary: str) -> None:
    """Print text, or write it whole to a file and say so.

    Args:
        text: The text.
        output: The file; ``None`` is standard output.
        summary: What is printed where a file was written.

    Raises:
        BiasError: The file cannot be written.
    """
    if output is None:
        sys.stdout.write(text)
        return
    output_files.write(text, output)
    print(summary)
