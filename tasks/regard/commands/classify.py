"""``lm-eval-bias regard classify``: labels the regard of texts from plain text, CSV or JSONL."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Literal

from lm_eval_bias.core import Data, files
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded
from lm_eval_bias.tasks.regard import classifier as regard_classifier
from lm_eval_bias.tasks.regard import labelled_texts, regard_texts
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


def classify(
    file: str,
    *,
    classifier: str | None = None,
    language: Literal["de", "en"] | None = None,
    output: str | None = None,
) -> None:
    """Label the regard of any texts.

    Each gets its regard (0 negative, 1 neutral, 2 positive, 3 other), label and
    probabilities.

    Args:
        file (FILE): file of texts: one per line (.txt), or in a column named text (.csv, .jsonl)
        classifier (NAME): light, sbert, hub:<model>, head:<folder> or paper:<file>
        language (LANG): de or en (default: recognized by the subjects of the texts)
        output (FILE): .jsonl file to write (default: standard output)
    """
    if output is not None and not output.endswith(".jsonl"):
        raise BiasError(f"--output {output}: must end in .jsonl")
    files.check_place(output, [file])
    rows = read(expanded(file))
    texts = [row["text"] for row in rows]
    spoken: str | None = language
    # such a classifier has its own language
    if language is not None or not (classifier or "").startswith(("hub:", "head:")):
        places = {f"text {number}": text for number, text in enumerate(texts, start=1)}
        spoken = regard_texts.language_of(places, language, file)
    model = regard_classifier.choose(classifier, spoken or regard_texts.LANGUAGES[0])
    used = model.identity
    labels = regard_classifier.label(model, texts)
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
