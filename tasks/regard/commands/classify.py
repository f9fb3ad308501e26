"""``lm-eval-bias regard classify``: labels the regard of texts from plain text, CSV or JSONL."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from lm_eval_bias.core import Data, files
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded
from lm_eval_bias.tasks.regard import classifier, labelled_texts, regard_texts
from lm_eval_bias.tasks.regard.classifier_identity import LABELS, accuracy_in_words

# columns that the labels get
_OURS = re.compile("(regard|label|classifier|warning|p_.*)$")


def read(path: Path) -> list[Data]:
    """Read rows with a ``text`` each; columns named as the labels' become ``regard_before``, ....

    Args:
        path: ``.txt`` (one text a line), ``.csv`` or ``.jsonl``.

    Raises:
        BiasError: Not readable, a row without text, no texts at all.
    """
    texts = []
    for _, row in labelled_texts.rows(path):
        labelled = {"text": row.pop("text")}
        for name, value in row.items():
            labelled[f"{name}_before" if _OURS.match(name) else name] = value
        texts.append(labelled)
    return texts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    add = parser.add_argument
    add(
        "file",
        metavar="FILE",
        help="file of texts: one per line (.txt), or in a column named text (.csv, .jsonl)",
    )
    add(
        "--classifier",
        metavar="NAME",
        help="light, sbert, hub:<model>, head:<folder> or paper:<file>",
    )
    recognized = "de or en (default: recognized by the subjects of the texts)"
    add("--language", metavar="LANG", choices=regard_texts.LANGUAGES, help=recognized)
    add(
        "-o",
        "--output",
        metavar="FILE",
        help=".jsonl file to write (default: standard output)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Add to each text its ``regard`` (0 negative, 1 neutral, 2 positive, 3 other), ``label`` and probabilities.

    Raises:
        BiasError: A file or classifier that cannot be had, no language, texts that begin as those of another do.
    """
    output = arguments.output
    name = arguments.classifier
    language = arguments.language
    if output is not None and not output.endswith(".jsonl"):
        raise BiasError(f"--output {output}: must end in .jsonl")
    files.check_place(output, [arguments.file])
    rows = read(expanded(arguments.file))
    texts = [row["text"] for row in rows]
    # such a classifier has its own language
    if language is not None or not (name or "").startswith(("hub:", "head:")):
        places = {f"text {number}": text for number, text in enumerate(texts, start=1)}
        language = regard_texts.language_of(places, language, arguments.file)
    model = classifier.choose(name, language or regard_texts.LANGUAGES[0])
    used = model.identity
    labels = classifier.label(model, texts)
    for row, (regard, probabilities) in zip(rows, labels, strict=True):
        row |= {"regard": LABELS.index(regard), "label": regard}
        for label, probability in zip(used.labels, probabilities, strict=True):
            row[f"p_{label}"] = probability
        row["classifier"] = used.name
        if used.warning:
            row["warning"] = used.warning
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if output is None:
        sys.stdout.write(lines)
    else:
        files.write(lines, output)
    print(
        f"lm-eval-bias: {len(texts):,} texts labelled by {used.name} ({used.detail}), "
        f"{accuracy_in_words(used.measured)}",
        file=sys.stderr,
    )
    if used.warning:
        print(f"lm-eval-bias: warning: {used.warning}", file=sys.stderr)
    return 0
