"""``lm-eval-bias stereoset tasks``: tasks over a data set of your own in StereoSet's form."""

from __future__ import annotations


def tasks(file: str, *, output: str, language: str | None = None) -> int:
    """Make tasks of a data set in StereoSet's form.

    Args:
        file (FILE): data set (JSON)
        output (DIR): folder for the task YAML files, for run --include_path DIR
        language (LANG): language of a file that doesn't state it: de, it, pt-BR, ...

    Examples:
      lm-eval-bias stereoset tasks stereoset_it.json -o TASKS
      lm-eval-bias run --include_path TASKS --tasks stereoset_it --model hf --model_args pretrained=...
    """
    from lm_eval_bias.tasks.stereoset import custom_sets

    data_set = custom_sets.read(file, language)
    written = custom_sets.write_tasks(output, file, data_set)
    print(f"tasks written: {', '.join(path.stem for path in written)}")
    print(
        f"run them: lm-eval-bias run --include_path {output} --tasks {written[0].stem} ..."
    )
    return 0
