"""``lm-eval-bias export --to predictions``: a StereoSet run as the authors' prediction file."""

from __future__ import annotations

import argparse
import gzip
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from lm_eval_bias.core import files
from lm_eval_bias.core.answers import Saved, blamed
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded, write_whole, writing
from lm_eval_bias.runs import rescoring, sample_logs
from lm_eval_bias.tasks.stereoset import hooks, released_sets
from lm_eval_bias.tasks.stereoset.stereoset_items import TEST_KEYS, Document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the format's own flags; a file that ends in .gz is gzipped."""
    parser.add_argument("--language", metavar="LANG", help="language to export, if the run has several")
    parser.add_argument(
        "--variant", metavar="NAME", help="score to export, for a stereoset_<language>_inter_variants run"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the file."""
    target = expanded(arguments.output)
    files.check_place(arguments.output, arguments.paths)
    logs = rescoring.gather(arguments.paths, sample_logs.collect, readers=[rescoring.SAMPLE_LOGS])
    collected = collect(logs, arguments.variant, arguments.language)
    write(target, collected)
    counts = ", ".join(f"{len(scores):,} candidates of {name}" for name, scores in collected.items())
    print(f"{arguments.output}: {counts}")
    return 0


def _candidates(part: Saved, variant: str | None) -> dict[str, dict[str, float]]:
    """Scores by test and candidate id."""
    by_test: dict[str, dict[str, float]] = {}
    for doc, answers in zip(part.docs, part.results, strict=True):
        scored = hooks.candidate_scores(cast(Document, doc), answers)
        if part.benchmark == "stereoset_variants" and variant not in scored:
            raise BiasError(f"five scores per candidate: choose with --variant ({', '.join(scored)})")
        if part.benchmark == "stereoset" and variant is not None:
            raise BiasError("has one score per candidate, --variant is for the _variants tasks")
        method_scores = scored[variant] if variant is not None else next(iter(scored.values()))
        for candidate, score in zip(doc["candidates"], method_scores, strict=True):
            if math.isnan(score):
                raise BiasError(f"item {doc['id']}: the score of candidate {candidate['id']} is nan")
            by_test.setdefault(doc["test"], {})[candidate["id"]] = score
    return by_test


def collect(
    parts: Sequence[Saved], variant: str | None = None, language: str | None = None
) -> dict[str, list[dict[str, str | float]]]:
    """Turn saved answers into one set of predictions, in the released order.

    Args:
        parts: Saved answers of one language, each test once (other benchmarks' are passed over).
        variant: Which score of a comparison of generative variants.
        language: Which language, where there are several.

    Raises:
        BiasError: Nothing of StereoSet, several languages, a test twice, or items that were not run.
    """
    samples = [
        part for part in parts if part.benchmark in ("stereoset", "stereoset_variants")
    ]  # choices have no scores
    samples = [part for part in samples if language is None or part.docs[0].get("language") == language]
    if not samples:
        subject = "StereoSet" if language is None else f"StereoSet in {language!r}"
        raise BiasError(f"no samples of {subject}: run its tasks with --log_samples")
    languages = sorted({str(doc.get("language")) for part in samples for doc in part.docs})
    if len(languages) > 1:
        raise BiasError(f"samples of several languages ({', '.join(languages)}): choose one with --language")
    scores: dict[str, dict[str, float]] = {}
    for part in samples:
        with blamed(part, "a document"):
            candidates = _candidates(part, variant)
        for test, test_scores in candidates.items():
            if test in scores:
                raise BiasError(f"{part.path}: {TEST_KEYS[test]} was scored by several runs: export one of them")
            scores[test] = test_scores
    predictions: dict[str, list[dict[str, str | float]]] = {}
    for test in ("intra", "inter"):
        if test in scores:
            items = released_sets.read(languages[0], test)
            order = [candidate["id"] for item in items for candidate in item["candidates"]]
            lacking = sum(name not in scores[test] for name in order)
            if lacking:
                raise BiasError(
                    f"{TEST_KEYS[test]}: {lacking // 3} of {len(items)} items were not run (--limit?), and the "
                    "authors' script needs all"
                )
            predictions[TEST_KEYS[test]] = [{"id": name, "score": scores[test][name]} for name in order]
    return predictions


def write(path: Path, predictions: Mapping[str, Any]) -> None:
    """Write predictions as JSON, gzipped where the name ends in ``.gz``; nothing half-written is left.

    Raises:
        BiasError: The place cannot be written.
    """
    text = (json.dumps(predictions, indent=2) + "\n").encode()
    with writing(path):
        write_whole(path, gzip.compress(text, mtime=0) if path.name.endswith(".gz") else text)
