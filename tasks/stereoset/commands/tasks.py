"""``lm-eval-bias stereoset tasks``: tasks over a data set of one's own in StereoSet's form."""

from __future__ import annotations

import argparse

_EPILOG = """example:
  lm-eval-bias stereoset tasks stereoset_it.json -o TASKS
  lm-eval-bias run --include_path TASKS --tasks stereoset_it --model hf --model_args pretrained=...
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = _EPILOG
    parser.add_argument("set", metavar="FILE", help="data set (JSON)")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="DIR",
        help="folder for the task YAML files, for run --include_path DIR",
    )
    parser.add_argument(
        "--language",
        metavar="LANG",
        help="language of a file that doesn't state it: de, it, pt-BR, ...",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the tasks.

    Raises:
        BiasError: The set can't be read or scored, or its language has tasks already.
    """
    from lm_eval_bias.tasks.stereoset import own_sets

    data_set = own_sets.read(arguments.set, arguments.language)
    written = own_sets.write_tasks(arguments.output, arguments.set, data_set)
    print(f"tasks written: {', '.join(path.stem for path in written)}")
    print(
        f"run them: lm-eval-bias run --include_path {arguments.output} --tasks {written[0].stem} ..."
    )
    return 0
