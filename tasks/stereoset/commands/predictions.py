"""``lm-eval-bias stereoset predictions``: a StereoSet run as the authors' prediction file."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from lm_eval_bias.core import Data
from lm_eval_bias.core.answers import SavedSample, errors_in
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import check_place, expanded, write_whole, writing
from lm_eval_bias.custom_metrics.stereoset import METHOD
from lm_eval_bias.runs import rescoring, sample_logs
from lm_eval_bias.tasks.stereoset import hooks
from lm_eval_bias.tasks.stereoset.stereoset_items import TEST_KEYS, read

# by test, as StereoSet's files call it: each candidate's id and score
Predictions = dict[str, list[Data]]


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
    samples = chain.from_iterable(logs.values())
    made = collect(samples, variant, language)
    content = (json.dumps(made, indent=2) + "\n").encode()
    with writing(target):
        write_whole(
            target,
            gzip.compress(content, mtime=0) if target.name.endswith(".gz") else content,
        )
    counts = ", ".join(
        f"{len(scores):,} candidates of {name}" for name, scores in made.items()
    )
    print(f"{output}: {counts}")


def collect(
    saved: Iterable[SavedSample],
    variant: str | None = None,
    language: str | None = None,
) -> Predictions:
    """Turn saved answers into one set of predictions, in the released order; other benchmarks' are passed over.

    Raises:
        BiasError: Nothing of StereoSet, several languages, a test twice, or items that were not run.
    """
    samples = []
    for sample in saved:
        is_named = language in (None, sample.doc.get("language"))
        if is_named and sample.saved_task.benchmark in (
            "stereoset",
            "stereoset_variants",
        ):
            samples.append(sample)
    if not samples:
        subject = "StereoSet" if language is None else f"StereoSet in {language!r}"
        raise BiasError(f"no samples of {subject}: run its tasks with --log_samples")
    languages = sorted({str(sample.doc.get("language")) for sample in samples})
    if len(languages) > 1:
        raise BiasError(
            f"samples of several languages ({', '.join(languages)}): choose one with --language"
        )
    scores = {}
    method = variant or METHOD
    for sample in samples:
        with errors_in(sample.saved_task, "a document"):
            doc = sample.doc
            scored = hooks.candidate_scores(doc, sample.answers)
            if method not in scored:
                raise BiasError(
                    f"--variant {variant}: must be one of the scores {', '.join(scored)}"
                )
            for candidate, score in zip(doc["candidates"], scored[method], strict=True):
                name = candidate["id"]
                if math.isnan(score):
                    raise BiasError(
                        f"item {doc['id']}: the score of candidate {name} is nan"
                    )
                if name in scores:
                    raise BiasError(
                        f"candidate {name} was scored by several runs: name one of them"
                    )
                scores[name] = score
    return _in_released_order(scores, languages[0])


def _in_released_order(scores: Mapping[str, float], language: str) -> Predictions:
    """List scores by test and candidate, as the authors' files have them."""
    predictions: Predictions = {}
    for test in ("intra", "inter"):
        items = read(language, test)
        listed = []
        for item in items:
            for candidate in item["candidates"]:
                name = candidate["id"]
                if name in scores:
                    listed.append({"id": name, "score": scores[name]})
        lacking = len(items) - len(listed) // 3
        if listed and lacking:
            raise BiasError(
                f"{TEST_KEYS[test]}: {lacking} of {len(items)} items were not run (--limit?), and the authors' script "
                "needs all"
            )
        if listed:
            predictions[TEST_KEYS[test]] = listed
    return predictions
