"""Documents and records of a user's own prompts: a CSV of prompts, perhaps a YAML of keywords, and a classifier."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import yaml

from lm_eval_bias.custom_metrics.own_prompts import WORDS, Comparison, PromptRecord
from lm_eval_bias.custom_metrics.regard import FACETS, OTHER, REGARDS
from lm_eval_bias.errors import BiasError, did_you_mean, one_line
from lm_eval_bias.files import expanded, read_text, why
from lm_eval_bias.tasks.regard import keywords, regard_texts
from lm_eval_bias.tasks.regard.classifiers import classifier
from lm_eval_bias.tasks.regard.classifiers.classifier import Answer

EXAMPLE = """--metadata '{"prompts": "my.csv", "language": "en"}'"""
RESERVED = (*REGARDS, OTHER, WORDS, "dropped", "unfinished", "distinct", "gap", "p", "p_holm")  # names of scores
_RULE = {"keyword", "match", "except", "start", "whole", "case"}
Entries = dict[str, list[dict[str, Any]]]
T = TypeVar("T")


# A prompt with all that its texts are judged by: ``keywords`` is a language that has some, those of a file, or empty;
# ``classifier`` has no name where there is none for the language, and ``unlabelled`` says why.
OwnDocument = dict[str, Any]


def _read(option: str, path: Any, parse: Callable[[str], T]) -> T:
    """What a file that an option names says; whatever is wrong with it is one line with its name."""
    where = f"{option} file {path}"
    try:
        return parse(read_text(expanded(str(path)), "utf-8-sig"))
    except OSError as error:
        raise BiasError(f"{where} cannot be read: {why(error)}") from error
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
            csv.Error, yaml.YAMLError) as error:  # fmt: skip
        raise BiasError(f"{where}: {one_line(error)}") from error


def _check_name(name: Any, where: str) -> None:
    if not isinstance(name, str) or not name.isprintable() or {",", "/"} & set(name) or name.lower() in RESERVED:
        raise ValueError(f"{where}: {name!r} can't be a name: it is a score's, or has a comma or a slash")


def _prompts(text: str) -> list[dict[str, str]]:
    """The rows of a file of prompts between whose groups something can be compared."""
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    reader.fieldnames = [name.strip().lower() for name in reader.fieldnames or []]
    if missing := [name for name in ("prompt", "group", "cluster") if name not in reader.fieldnames]:
        raise ValueError(f"no column {missing[0]}: there are {', '.join(reader.fieldnames)} (commas separate columns)")
    rows: dict[str, dict[str, str]] = {}
    groups: dict[str, set[str]] = {}
    for row in reader:
        line = f"line {reader.line_num}"
        if None in row:
            raise ValueError(f"{line}: more fields than columns: quote prompts with a comma")
        cells = {column: (row[column] or "").strip() for column in ("prompt", "group", "cluster")}
        prompt, group, cluster = cells.values()
        if empty := [column for column, cell in cells.items() if not cell]:
            raise ValueError(f"{line}: no {empty[0]}")
        if prompt != " ".join(prompt.split()):
            raise ValueError(f"{line}: a line break, a tab or two spaces in a row: use one space")
        if prompt in rows:
            raise ValueError(f"{line}: this prompt appears twice: {prompt!r}")
        _check_name(group, f"{line}, group")
        groups.setdefault(cluster, set()).add(group)
        rows[prompt] = cells
    if len(set().union(*groups.values())) < 2:
        raise ValueError("nothing to compare: there must be prompts of two groups")
    if alone := [cluster for cluster, own in groups.items() if len(own) < 2]:
        raise ValueError(f"cluster {alone[0]!r}: all its prompts are of one group, every cluster needs two")
    return list(rows.values())


def _rule(raw: Any) -> dict[str, Any]:
    """A keyword as regard's own files have them; a plain one is a whole word."""
    if isinstance(raw, str) and raw.strip():
        return {"keyword": raw, "match": [raw.lower()], "whole": True}
    lists = [raw.get("match"), raw.get("except", ["-"])] if isinstance(raw, dict) and {*raw} <= _RULE else [None]
    if not all(isinstance(own, list) and own and all(isinstance(t, str) and t for t in own) for own in lists):
        raise ValueError(f"{raw!r} must be a word, or have texts under match and perhaps except")
    if not raw.get("case") and raw["match"] != [text.lower() for text in raw["match"]]:
        raise ValueError(f"{raw['match']} is searched in lower case: write it so, or add case: true")
    return {"keyword": raw["match"][0], **raw}


def _entries(text: str) -> Entries:
    """The keywords of each facet in a file."""
    content = yaml.safe_load(text)
    facets = content.get("facets") if isinstance(content, dict) else None
    if not isinstance(facets, dict) or not facets or not all(isinstance(own, list) and own for own in facets.values()):
        raise ValueError("must map facets to lists of words under 'facets'")
    for facet in facets:
        _check_name(facet, "facet")
    return {facet: [_rule(raw) for raw in listed] for facet, listed in facets.items()}


@lru_cache(maxsize=8)
def _compiled(entries: str) -> keywords.Rules:
    return keywords.compiled(json.loads(entries))


def facets_of(text: str, used: str | Entries) -> list[str]:
    """The facets of which a text has at least one keyword: those of a language, or of a file; without any, none."""
    if isinstance(used, str):
        return keywords.facets(text, used) if used else []
    found = keywords.matches(text, _compiled(json.dumps(used, sort_keys=True)))
    return [facet for facet, hits in found.items() if hits]


def _no_classifier(language: str) -> str:
    known = " and ".join(classifier.DEFAULT)
    return f"no regard: classifiers are for {known}, name one for {language!r} with --metadata classifier=hub:<model>"


def documents(metadata: Mapping[str, Any]) -> list[OwnDocument]:
    """The prompts of a file, in its order, without their classifier.

    Args:
        metadata: ``prompts`` and ``language``; ``reference``, ``keywords``, ``classifier`` where they are given.

    Raises:
        BiasError: A bad file or option.
    """
    language, name, reference = (metadata.get(option) for option in ("language", "classifier", "reference"))
    if not metadata.get("prompts") or not language:
        raise BiasError(f"own_prompts: name a file of prompts and their language: {EXAMPLE}")
    if not isinstance(language, str) or not re.fullmatch("[a-z]{2,3}", language):
        raise BiasError(f"--metadata language={language!r}: must be a code such as en, de, fr")
    if name is not None:
        classifier.check_name(name)
        classifier.check_language(name, language)
    used: str | Entries = language if language in regard_texts.LANGUAGES else ""
    if metadata.get("keywords") is not None:
        used = _read("keywords", metadata["keywords"], _entries)
    prompts = _read("prompts", metadata["prompts"], _prompts)
    groups = list(dict.fromkeys(prompt["group"] for prompt in prompts))
    clusters = len({prompt["cluster"] for prompt in prompts})
    if reference is not None and reference not in groups:
        hint = did_you_mean(str(reference), groups)
        raise BiasError(f"--metadata reference={reference!r}: no such group.{hint} There are {', '.join(groups)}")
    facets = list(FACETS if isinstance(used, str) and used else used)
    comparison = Comparison(groups=groups, reference=reference or groups[0], facets=facets, clusters=clusters)
    common: OwnDocument = {"benchmark": "own_prompts", "language": language, "comparison": comparison, "keywords": used}
    none: dict[str, Any] = {"name": "", "detail": "", "labels": [], "warning": ""}
    common |= {"has_other": False, "classifier": none, "unlabelled": _no_classifier(language)}
    return [{**common, **prompt} for prompt in prompts]


def dataset(**metadata: Any) -> dict[str, list[OwnDocument]]:
    """The documents as the harness wants them, by split, each with the classifier that will label its texts.

    Args:
        metadata: See :func:`documents`.

    Raises:
        BiasError: As there, or a classifier that cannot be had: known before anything is generated.
    """
    docs, name = documents(metadata), metadata.get("classifier")
    language = docs[0]["language"]
    if name is not None or language in classifier.DEFAULT:
        identity = classifier.choose(name, language).identity
        labelled = {"has_other": OTHER in identity.labels, "classifier": identity.as_data(), "unlabelled": ""}
        docs = [{**doc, **labelled} for doc in docs]
    return {"test": docs}


def record(doc: OwnDocument, results: Sequence[Answer]) -> PromptRecord:
    """What the texts of one prompt say: their regard, keywords and length.

    Args:
        doc: The document.
        results: The one request's answer: per text ``[text, regard, probability, ...]`` or ``[text, why dropped]``; the
            regard is empty where there is no classifier.

    Raises:
        BiasError: A label that is none.
    """
    (answer,) = results
    name, labels = doc["classifier"]["name"], (*REGARDS, OTHER) if doc["has_other"] else REGARDS
    kept = [(str(row[0]), str(row[1])) for row in answer if not str(row[1]).startswith(regard_texts.DROPPED)]
    if unknown := [label for _, label in kept if label not in (labels if name else ("",))]:
        raise BiasError(
            f"regard {unknown[0]!r}: must be one of {', '.join(labels)}: label the texts with --classifier (light, "
            "sbert, hub:<model>, ...)"
        )
    return {
        "group": doc["group"],
        "cluster": doc["cluster"],
        "comparison": doc["comparison"],
        "texts": [
            (label, facets_of(text, doc["keywords"]), len(text[len(doc["prompt"]) :].split())) for text, label in kept
        ],
        "drawn": len(answer),
        "unfinished": sum(regard_texts.unfinished(text) for text, _ in kept),
        "wordings": [text for text, _ in kept],
        "has_other": doc["has_other"],
        "caveat": str(doc["classifier"]["warning"]),
        "unlabelled": "" if name else _no_classifier(doc["language"]),
    }
