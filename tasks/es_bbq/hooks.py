"""EsBBQ's and CaBBQ's documents: who is who, and which answer is biased."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import packaged_yaml
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.custom_metrics.question_answering import (
    BY_LENGTH,
    Terms,
)
from lm_eval_bias.data.sources import manifest
from lm_eval_bias.tasks.es_bbq import UNKNOWNS
from lm_eval_bias.tasks.shared import bbq_records
from lm_eval_bias.tasks.shared.bbq_records import (
    AMBIGUOUS,
    DISAMBIGUATED,
    LETTERS,
    UNKNOWN,
)

TERMS = Terms(
    "Ruiz-Fernández et al. (2025), EsBBQ and CaBBQ, and the harness's task esbbq",
    sources={
        "acc": "accuracy",
        "diff_bias": "bias score",
        "diff_bias_bound": "with the bounds of KoBBQ, Eqs. 2 and 4",
        "diff_bias_ratio": "with the bounds of KoBBQ, Eqs. 2 and 4",
    },
    unknowns=1,
    rules=BY_LENGTH,
)
CONTEXTS = {"ambig": AMBIGUOUS, "disambig": DISAMBIGUATED}


def wordings(language: str) -> Facts:
    """Prompts and wordings of "unknown" in a language."""
    return packaged_yaml("lm_eval_bias.tasks.es_bbq", "data/wordings.yaml")[language]


def biased_choice(row: Facts, groups: Sequence[str], stereotyped: Sequence[str]) -> int:
    """Return the index of the biased answer by the authors' rule.

    In disambiguated contexts it is the right one of a question whose type is ``pro-stereo``, and the other person's of
    one that is ``anti-stereo``. In ambiguous ones it is the person of a stereotyped group for a negative question, and
    the other one for a non-negative question; a BiasError where not exactly one is of such a group.
    """
    if row["context_condition"] == "disambig":
        right = int(row["label"])
        return right if row["question_type"] == "pro-stereo" else 1 - right
    targets = [i for i in range(2) if groups[i] in stereotyped]
    if len(targets) != 1:
        raise BiasError(
            f"persons of {', '.join(groups[:2])}: not exactly one is of {', '.join(stereotyped)}"
        )
    return targets[0] if row["question_polarity"] == "neg" else 1 - targets[0]


def question(
    row: Facts, infos: Sequence[Sequence[str]], stereotyped: Sequence[str]
) -> Data:
    """Read the fields of a released item.

    Its ``infos`` are the ``answer_info`` of each choice, which ends with the choice's social group.
    """
    groups = [info[-1].split(",")[-1].strip() for info in infos]
    return {
        "item": int(row["instance_id"]),
        "context_type": CONTEXTS[row["context_condition"]],
        "context": row["context"],
        "question": row["question"],
        "question_type": row["question_type"],
        "polarity": row["question_polarity"],
        "groups": [*groups[:2], UNKNOWN],
        "label": int(row["label"]),
        "biased_choice": biased_choice(row, groups, stereotyped),
        "value": row["relevant_social_value"] or "not stated",
        "template": str(row["template_id"]),
    }


def dataset(
    language: str,
    category: str,
    eleven_options: bool = False,
    fixed: Facts | None = None,
    **_: object,
) -> Data:
    """Make the documents of a category by split, by four in turn from every template.

    Args:
        language: ``es`` or ``ca``.
        category: Of stereotypes.
        eleven_options: Whether all the authors' wordings of "unknown" are scored, not the first alone.
        fixed: What the task's YAML sets and ``--metadata`` may not change: whether answers are generated.
    """
    generated = (fixed or {}).get("answers") == "generated"
    if not isinstance(eleven_options, bool):
        raise BiasError(
            f"--metadata eleven_options={eleven_options!r}: must be true or false"
        )
    if generated and eleven_options:
        raise BiasError(
            "--metadata eleven_options: generated answers take one of three lettered options"
        )
    table = bbq_records.read_table(f"{language}_bbq_{category}")
    rows = grouped((row["template_id"], row) for row in table)
    # four rows are a story: both questions, without and with the needed information
    blocks = []
    for of_template in rows.values():
        stories = range(0, len(of_template), 4)
        blocks.append([of_template[i : i + 4] for i in stories])
    items = []
    for row in bbq_records.in_turn(blocks):
        infos = [ast.literal_eval(row[f"answer_info.ans{i}"]) for i in range(3)]
        items.append(
            (row, question(row, infos, ast.literal_eval(row["stereotyped_groups"])))
        )
    cells = [
        (q["template"], q["context_type"], q["question_type"], q["polarity"])
        for _, q in items
    ]
    docs = [
        {
            "benchmark": "es_bbq",
            "language": language,
            "category": category,
            **item,
            "choices": (
                choices := [row["ans0"], row["ans1"], wordings(language)["unknown"][0]]
            ),
            "answer": choices[item["label"]],
            "order": order,
            "unknowns": UNKNOWNS if eleven_options else 1,
            "letters": LETTERS if generated else "",
            "generated": generated,
            "revision": manifest().files[f"{language}_bbq_{category}"].commit[:12],
        }
        for (row, item), order in zip(items, bbq_records.orders(cells), strict=True)
    ]
    return {"test": docs}


def prompt(doc: Facts) -> str:
    """Write the authors' prompt, with lettered options where the model writes its answer."""
    template = wordings(doc["language"])["lettered" if doc["generated"] else "prompt"]
    options = bbq_records.options(doc) if doc["generated"] else ""
    return str(
        template.format(
            context=doc["context"], question=doc["question"], options=options
        )
    )


def continuations(doc: Facts) -> list[str]:
    """List what is scored: both persons, and the document's wordings of "unknown"."""
    unknowns = wordings(doc["language"])["unknown"][: doc["unknowns"]]
    return [*doc["choices"][:2], *unknowns]
