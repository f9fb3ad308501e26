"""``lm-eval-bias stereoset validate``: what is wrong with a data set in StereoSet's form, and tasks over it."""

from __future__ import annotations

import argparse

from lm_eval_bias.core.errors import BiasError, printable

_EPILOG = """exit status: 0 no problems (notes don't count), 1 problems, 2 bad usage or input

examples:
  lm-eval-bias stereoset validate stereoset_it.json
  lm-eval-bias stereoset validate stereoset_it.json --tasks TASKS
  lm-eval-bias run --include_path TASKS --tasks stereoset_it --model hf --model_args pretrained=...
  lm-eval-bias stereoset validate mine.json --language nl --source none
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = (
        "Check the items of a data set in StereoSet's format: a translation against its "
        "source, or a set of your own."
    )
    parser.epilog = _EPILOG
    add = parser.add_argument
    add(
        "set",
        metavar="FILE|LANG",
        help="data set (JSON), or the code of a published language",
    )
    source = "source of the translation: a file or a published language (default: English, if ids match)"
    add("--source", metavar="FILE|LANG|none", help=source)
    add(
        "--language",
        metavar="LANG",
        help="language of a file that doesn't state it: de, it, pt-BR, ...",
    )
    add(
        "--tasks",
        metavar="DIR",
        help="write task YAML files for FILE into DIR, for run --include_path DIR",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check a data set; status 1 where items need a person.

    Raises:
        BiasError: Bad usage or input.
    """
    from lm_eval_bias.tasks.stereoset import own_sets
    from lm_eval_bias.tasks.stereoset.commands import set_checks

    file = arguments.set
    given = arguments.source
    data_set = own_sets.load(file, arguments.language)
    source = None
    if given != "none" and (given, file) != (None, "en"):
        try:
            loaded = own_sets.load(given or "en").items
            tests = data_set.tests
            items = [item for item in loaded if item["test"] in tests]
        except BiasError as error:
            raise BiasError(
                f"{error} (it is the source; --source none checks the set without one)"
            ) from error
        if {item["id"] for item in data_set.items} & {item["id"] for item in items}:
            source = items
        elif given is not None:
            raise BiasError(
                f"--source {given}: has no item of the same id: name the set's source, or --source none"
            )
    findings = set_checks.check_set(data_set.items, source, data_set.language)
    for name in data_set.provenance.get("accepted", ()):  # by a person
        findings.pop(name, None)
    written = (
        []
        if arguments.tasks is None
        else own_sets.write_tasks(arguments.tasks, file, data_set)
    )

    source_name = "none" if source is None else given or "the published set in 'en'"
    print(
        f"{printable(file)}: {len(data_set.items):,} items in {data_set.language!r}, source: {source_name}"
    )
    every = [(name, finding) for name in findings for finding in findings[name]]
    every.sort(key=lambda pair: (pair[1].level != set_checks.PROBLEM, pair[1].code))
    for name, finding in every:
        print(
            f"{finding.level} {finding.code}: {printable(name)} {finding.part}: {printable(finding.text)}"
        )
    if written:
        print(f"tasks written: {', '.join(path.stem for path in written)}")
        print(
            f"run them: lm-eval-bias run --include_path {arguments.tasks} --tasks {written[0].stem} ..."
        )
    problems = {name for name, finding in every if finding.level == set_checks.PROBLEM}
    notes = len(findings) - len(problems)
    print(
        f"{len(problems):,} items have problems that need a person; {notes:,} more have notes"
    )
    return 1 if problems else 0
