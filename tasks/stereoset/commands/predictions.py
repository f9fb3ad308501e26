"""``lm-eval-bias stereoset predictions``: a StereoSet run as the authors' prediction file."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Sequence
from itertools import chain

from lm_eval_bias.core.answers import SavedSample, errors_in
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import check_place, expanded, write_whole, writing
from lm_eval_bias.custom_metrics.stereoset import METHOD
from lm_eval_bias.runs import rescoring, sample_logs
from lm_eval_bias.tasks.stereoset import hooks
from lm_eval_bias.tasks.stereoset.stereoset_items import TEST_KEYS


def predictions(
    paths: Sequence[str],
    *,
    output: str,
    language: str | None = None,
    variant: str | None = None,
) -> None:
    """Write a StereoSet run as a prediction file for the authors' evaluation script.

    Args:
        paths (RUN): run folders or sample logs (--log_samples)
        output (FILE): file to write; .gz compresses it
        language (LANG): language to write, if the run has several
        variant (NAME): score to write, for a stereoset_<language>_inter_variants run
    """
    target = expanded(output)
    check_place(output, paths)
    logs = rescoring.gather(paths, sample_logs.collect, readers=[rescoring.SAMPLE_LOGS])
    samples = [
        sample
        for sample in chain.from_iterable(logs.values())
        if sample.saved_task.benchmark in ("stereoset", "stereoset_variants")
        and language in (None, sample.doc["language"])
    ]
    languages = sorted({sample.doc["language"] for sample in samples})
    if len(languages) != 1:
        raise BiasError(
            f"StereoSet was run in {' and '.join(languages) or 'no language'}, not in {language or 'one'}: name other "
            "runs, or a --language"
        )
    made: dict[str, dict[str, float]] = {key: {} for key in TEST_KEYS.values()}
    for sample in samples:
        with errors_in(sample.saved_task, "a document"):
            scores = _scored(sample, variant or METHOD)
            of_test = made[TEST_KEYS[sample.doc["test"]]]
            if of_test.keys() & scores.keys():
                raise BiasError("scored by several runs: name one of them")
            of_test |= scores
    content = {
        test: [{"id": name, "score": score} for name, score in scores.items()]
        for test, scores in made.items()
        if scores
    }
    packed = (json.dumps(content, indent=2) + "\n").encode()
    if target.name.endswith(".gz"):
        packed = gzip.compress(packed, mtime=0)
    with writing(target):
        write_whole(target, packed)
    for test, listed in content.items():
        print(f"{output}: {len(listed):,} candidates of {test}")


def _scored(sample: SavedSample, method: str) -> dict[str, float]:
    """Return the score of each candidate of an item by a method of scoring."""
    doc = sample.doc
    scored = hooks.candidate_scores(doc, sample.answers)
    if method not in scored:
        raise BiasError(
            f"--variant: must be one of the scores {', '.join(scored)}, not {method}"
        )
    names = [candidate["id"] for candidate in doc["candidates"]]
    if any(map(math.isnan, scored[method])):
        raise BiasError(f"item {doc['id']}: a score is nan")
    return dict(zip(names, scored[method], strict=True))
