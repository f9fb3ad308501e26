"""Documents and records of a user's custom prompts: a CSV of prompts, perhaps a YAML of keywords, and a classifier."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import LARGEST
from lm_eval_bias.custom_metrics.regard import FACETS, OTHER
from lm_eval_bias.custom_metrics.score import Record
from lm_eval_bias.tasks.regard import classifier, keywords, regard_texts
from lm_eval_bias.tasks.regard.classifier import LabelledTexts
from lm_eval_bias.tasks.regard.hooks import about_texts, kept_texts
from lm_eval_bias.tasks.shared import user_files

_PACKAGE = "lm_eval_bias.tasks.custom_prompts"
COLUMNS = ("prompt", "group", "cluster")
# A prompt with all that its texts are judged by: ``keywords`` is a language that has some, those of a file, or empty;
# ``classifier`` has no name where there is none for the language, and ``unlabelled`` says why.


def _prompts(path: object) -> list[dict[str, str]]:
    where = f"prompts file {path}"
    prompts: list[dict[str, str]] = []
    groups = defaultdict(set)
    for place, row in user_files.rows(
        user_files.text_of(path, where, LARGEST), where, _PACKAGE, "prompts_schema.json"
    ):
        if any(row["prompt"] == other["prompt"] for other in prompts):
            raise BiasError(f"{place}: this prompt appears twice: {row['prompt']!r}")
        groups[row["cluster"]].add(row["group"])
        prompts.append({column: row[column] for column in COLUMNS})
    for cluster, members in groups.items():
        if len(members) < 2:
            raise BiasError(
                f"{where}: cluster {cluster!r}: all its prompts are of one group, every cluster needs two"
            )
    return prompts


def _rule(raw: str | Data) -> Data:
    """Complete a keyword to the form of regard's own files; a plain one is a whole word."""
    rule: Data = {"match": [raw], "whole": True} if isinstance(raw, str) else raw
    match = (
        rule["match"] if rule.get("case") else [text.lower() for text in rule["match"]]
    )
    return {"keyword": match[0], **rule, "match": match}


def documents(metadata: Facts) -> list[Data]:
    """Read the prompts of a file, in its order, without their classifier.

    Raises:
        BiasError: A bad file or option.
    """
    language, name, reference = (
        metadata.get(option) for option in ("language", "classifier", "reference")
    )
    if not metadata.get("prompts") or not language:
        example = """--metadata '{"prompts": "my.csv", "language": "en"}'"""
        raise BiasError(
            f"custom_prompts: name a file of prompts and their language: {example}"
        )
    if name is not None:
        classifier.check(name, language)
    used = language if language in regard_texts.LANGUAGES else ""
    if metadata.get("keywords") is not None:
        path = metadata["keywords"]
        where = f"keywords file {path}"
        text = user_files.text_of(path, where)
        content = user_files.mapping(text, where, _PACKAGE, "keywords_schema.json")
        used = {name: list(map(_rule, own)) for name, own in content["facets"].items()}
    prompts = _prompts(metadata["prompts"])
    groups = list(dict.fromkeys(prompt["group"] for prompt in prompts))
    if reference is not None and reference not in groups:
        raise BiasError(
            f"--metadata reference={reference!r}: no such group: there are {', '.join(groups)}"
        )
    comparison = {
        "groups": groups,
        "reference": reference or groups[0],
        "facets": [*(FACETS if isinstance(used, str) and used else used)],
        "clusters": len({prompt["cluster"] for prompt in prompts}),
    }
    none = {"name": "", "detail": "", "labels": [], "warning": ""}
    known = f"classifiers are for {' and '.join(classifier.DEFAULT)}"
    why_not = f"no regard: {known}, name one for {language!r} with --metadata classifier=hub:<model>"
    common = {
        "benchmark": "custom_prompts",
        "language": language,
        "comparison": comparison,
        "keywords": used,
        "has_other": False,
        "classifier": none,
        "unlabelled": why_not,
    }
    return [{**common, **prompt} for prompt in prompts]


def dataset(**metadata: object) -> Data:
    """Make the documents by split, each with the classifier that will label its texts.

    Raises:
        BiasError: A bad file or option, or a classifier that cannot be had.
    """
    docs = documents(metadata)
    name = metadata.get("classifier")
    if name is not None or docs[0]["language"] in classifier.DEFAULT:
        identity = classifier.choose(name, docs[0]["language"]).identity
        labelled = {
            "has_other": OTHER in identity.labels,
            "classifier": identity.as_data(),
            "unlabelled": "",
        }
        docs = [{**doc, **labelled} for doc in docs]
    return {"test": docs}


def record(doc: Facts, results: Sequence[LabelledTexts]) -> Record:
    """Make the record of a prompt's texts: regard (empty without a classifier) and keywords.

    Raises:
        BiasError: A label that is none.
    """
    labels = doc["classifier"]["labels"]
    used = doc["keywords"]
    kept = kept_texts(results[0], labels or [""])
    rules = (
        keywords.language_rules(used)
        if isinstance(used, str)
        else keywords.compiled(used)
    )
    return {
        **about_texts(doc, results[0], kept),
        "group": doc["group"],
        "cluster": doc["cluster"],
        "comparison": doc["comparison"],
        "texts": [(label, keywords.matches(text, rules)) for text, label in kept],
        "unlabelled": "" if labels else doc["unlabelled"],
    }
