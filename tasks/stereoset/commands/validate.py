"""``lm-eval-bias stereoset validate``: what is wrong with a data set in StereoSet's form, and tasks over it."""

from __future__ import annotations

from lm_eval_bias.core.errors import BiasError, printable


def validate(
    file: str,
    *,
    source: str | None = None,
    language: str | None = None,
    tasks: str | None = None,
) -> int:
    """Check items in StereoSet's format, and make tasks.

    Of a data set: a translation against its source, or a set of your own.

    Args:
        file (FILE|LANG): data set (JSON), or the code of a published language
        source (FILE|LANG|none): source of the translation: a file or a published language (default: English, if ids
            match)
        language (LANG): language of a file that doesn't state it: de, it, pt-BR, ...
        tasks (DIR): write task YAML files for FILE into DIR, for run --include_path DIR

    exit status: 0 no problems (notes don't count), 1 problems, 2 bad usage or
    input

    Examples:
      lm-eval-bias stereoset validate stereoset_it.json
      lm-eval-bias stereoset validate stereoset_it.json --tasks TASKS
      lm-eval-bias run --include_path TASKS --tasks stereoset_it --model hf --model_args pretrained=...
      lm-eval-bias stereoset validate mine.json --language nl --source none
    """
    from lm_eval_bias.tasks.stereoset import own_sets
    from lm_eval_bias.tasks.stereoset.commands import set_checks

    data_set = own_sets.load(file, language)
    against = None
    if source != "none" and (source, file) != (None, "en"):
        try:
            loaded = own_sets.load(source or "en").items
            tests = data_set.tests
            items = [item for item in loaded if item["test"] in tests]
        except BiasError as error:
            raise BiasError(
                f"{error} (it is the source; --source none checks the set without one)"
            ) from error
        if {item["id"] for item in data_set.items} & {item["id"] for item in items}:
            against = items
        elif source is not None:
            raise BiasError(
                f"--source {source}: has no item of the same id: name the set's source, or --source none"
            )
    findings = set_checks.check_set(data_set.items, against, data_set.language)
    for name in data_set.provenance.get("accepted", ()):  # by a person
        findings.pop(name, None)
    written = [] if tasks is None else own_sets.write_tasks(tasks, file, data_set)

    source_name = "none" if against is None else source or "the published set in 'en'"
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
            f"run them: lm-eval-bias run --include_path {tasks} --tasks {written[0].stem} ..."
        )
    problems = {name for name, finding in every if finding.level == set_checks.PROBLEM}
    notes = len(findings) - len(problems)
    print(
        f"{len(problems):,} items have problems that need a person; {notes:,} more have notes"
    )
    return 1 if problems else 0
