"""``lm-eval-bias stereoset translate``: a new language for StereoSet, by an engine and a person."""

from __future__ import annotations

import argparse

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import expanded

_EPILOG = """engines:
  {engines}

exit status: 0 complete, 1 some items still need a person, 2 bad usage or input

example:
  lm-eval-bias stereoset translate --to it -o it/ \\
      --engine hf:facebook/nllb-200-distilled-600M,source=eng_Latn,target=ita_Latn
  # fill in it/review.csv, then run the same command again: it applies the corrections and translates nothing twice
  lm-eval-bias run --include_path it/ --tasks stereoset_it --model hf --model_args pretrained=...
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    from lm_eval_bias.tasks.stereoset.own_sets.translation_engines import KINDS

    parser.description = "Translate StereoSet into another language, check every item, and list what needs a person."
    parser.epilog = _EPILOG.format(engines="\n  ".join(KINDS.values()))
    parser.add_argument("--to", required=True, metavar="LANG", help="code of the target language: it, nl, pt-BR, ...")
    parser.add_argument("--engine", required=True, metavar="ENGINE", help="translation engine: see below")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder for the translation")
    parser.add_argument(
        "--from",
        dest="source",
        default="en",
        metavar="FILE|LANG",
        help="source to translate from (default: the published English set)",
    )
    parser.add_argument(
        "--language",
        metavar="LANG",
        help="language of a source FILE that doesn't state it, such as StereoSet's dev.json: en",
    )
    parser.add_argument("--tests", default="intra,inter", metavar="TESTS", help="intra, inter or both (default: both)")
    parser.add_argument(
        "--limit", type=int, metavar="N", help="translate only N items, spread over all groups, to try it out"
    )
    parser.add_argument("--batch_size", type=int, metavar="N", help="texts per batch (default: hf 16, command 256)")
    parser.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        metavar="S",
        help="time limit of a command for one batch, in seconds (default 600)",
    )
    parser.add_argument(
        "--retranslate",
        action="store_true",
        help="translate all texts again, with another engine; corrections are kept",
    )


def run(arguments: argparse.Namespace) -> int:
    """Translate, merge what a person wrote, and write what is ready; status 1 where items are left for a person.

    Raises:
        BiasError: Bad usage or input.
    """
    from lm_eval_bias.tasks.stereoset.own_sets import (
        set_files,
        translation_engines,
        translation_output,
        translation_run,
    )
    from lm_eval_bias.tasks.stereoset.stereoset_items import TESTS

    language = set_files.check_language(arguments.to, "--to")
    tests = [name.strip() for name in arguments.tests.split(",")]
    if unknown := [name for name in tests if name not in TESTS]:
        raise BiasError(f"--tests {unknown[0]}: must be intra, inter or intra,inter")
    if arguments.limit is not None and arguments.limit < 1:
        raise BiasError(f"--limit {arguments.limit}: must be 1 or more")
    source = translation_run.source_of(arguments.source, arguments.language)
    if source.language == language:
        raise BiasError(f"--to {language}: this is the source's own language")
    items = translation_run.select(source, tests, arguments.limit)
    languages = (source.language, language)
    engine = translation_engines.make(arguments.engine, languages, arguments.batch_size, arguments.timeout)
    folder = expanded(arguments.output)
    with translation_run.locked(folder):
        outcome = translation_run.run(folder, source, items, language, engine, arguments.retranslate)
        provenance, run_command = translation_output.write(folder, outcome, engine)
    print(translation_output.report(outcome, provenance, folder, run_command))
    return 1 if outcome.counts["left out"] else 0
