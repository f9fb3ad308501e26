"""``lm-eval-bias stereoset translate``: a new language for StereoSet, by an engine and a person."""

from __future__ import annotations

import argparse

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded

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
    """Add the command's options."""
    from lm_eval_bias.tasks.stereoset.own_sets.translation import ENGINES

    parser.description = "Translate StereoSet into another language, check every item, and list what needs a person."
    parser.epilog = _EPILOG.format(engines="\n  ".join(ENGINES.values()))
    add = parser.add_argument
    add("--to", required=True, metavar="LANG", help="code of the target language: it, nl, pt-BR, ...")
    add("--engine", required=True, metavar="ENGINE", help="translation engine: see below")
    add("-o", "--output", required=True, metavar="DIR", help="folder for the translation")
    source = "source to translate from (default: the published English set)"
    add("--from", dest="source", default="en", metavar="FILE|LANG", help=source)
    unstated = "language of a source FILE that doesn't state it, such as StereoSet's dev.json: en"
    add("--language", metavar="LANG", help=unstated)
    add("--tests", default="intra,inter", metavar="TESTS", help="intra, inter or both (default: both)")
    add("--limit", type=int, metavar="N", help="translate only N items, spread over all groups, to try it out")
    add("--batch_size", type=int, default=16, metavar="N", help="texts per batch of a model (default 16)")


def run(arguments: argparse.Namespace) -> int:
    """Translate, apply what a person wrote, and write what is ready; status 1 where items are left for a person.

    Raises:
        BiasError: Bad usage or input.
    """
    from lm_eval_bias.tasks.stereoset.own_sets import set_files, translation
    from lm_eval_bias.tasks.stereoset.stereoset_items import TESTS, spread

    language = set_files.check_language(arguments.to, "--to")
    tests = [name.strip() for name in arguments.tests.split(",")]
    if unknown := [name for name in tests if name not in TESTS]:
        raise BiasError(f"--tests {unknown[0]}: must be intra, inter or intra,inter")
    for name in ("limit", "batch_size"):
        if (number := getattr(arguments, name)) is not None and number < 1:
            raise BiasError(f"--{name} {number}: must be 1 or more")
    source = translation.source_of(arguments.source, arguments.language)
    if source.language == language:
        raise BiasError(f"--to {language}: this is the source's own language")
    chosen = {
        item["id"] for item in spread([item for item in source.items if item["test"] in tests])[: arguments.limit]
    }
    items = [item for item in source.items if item["id"] in chosen]
    if not items:
        raise BiasError(f"{arguments.source}: no items of {' and '.join(tests)}")
    engine = translation.make_engine(arguments.engine, (source.language, language), arguments.batch_size)
    left, said = translation.run(expanded(arguments.output), source, items, language, engine)
    print(said)
    return 1 if left else 0
