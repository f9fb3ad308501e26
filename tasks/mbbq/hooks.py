"""MBBQ's items, their control items and the authors' prompts as documents."""

from __future__ import annotations

import ast
import itertools
import json
from collections.abc import Iterator, Sequence
from functools import cache

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.custom_metrics.question_answering import Terms
from lm_eval_bias.data import sources
from lm_eval_bias.tasks.mbbq.wordings import NUMBERS
from lm_eval_bias.tasks.shared import bbq_records
from lm_eval_bias.tasks.shared.bbq_records import (
    DISAMBIGUATED,
    goes_along,
    in_turn,
    letters,
)

TERMS = Terms(
    "Neplenbroek et al. (2024), MBBQ",
    sources={
        "acc": "accuracy",
        "diff_bias": "as KoBBQ's",
        "diff_bias_bound": "as KoBBQ's",
        "diff_bias_ratio": "as KoBBQ's",
    },
    rules={},
)
CATEGORIES = (
    "age",
    "disability_status",
    "gender_identity",
    "physical_appearance",
    "ses",
    "sexual_orientation",
)
BLOCK = 4  # items in a row with the same persons: both questions, ambiguous and disambiguated
# Blocks about two women or two men, by category and template. The control files leave them out, and number what follows
# anew: a control item has the place of its item among the others of its template.
WITHOUT_CONTROL = {("gender_identity", "13"): (1, 5, 6, 10)}
# what stereotyped_groups and answer_info call the same people
_SAME = {
    "low SES": ("lowSES",),
    "F": ("F", "woman", "girl", "vrouw", "meisje", "kadın", "kız", "mujer", "chica"),
    "M": ("M", "man", "boy", "jongen", "adam", "erkek çocuk", "hombre", "chico"),
}


@cache
def _prompts_of(_: str) -> dict[str, list[str]]:
    """Read the prompts from the source of the authors' module, which isn't executed; the hash is the cache's."""
    path = sources.locate("mbbq_answer_detection")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    values = {
        ast.unparse(node.targets[0]): node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
    }
    english = ast.literal_eval(values["prompts"])
    texts = {"en": english}
    for language, translations in ast.literal_eval(values["trans_prompt_dict"]).items():
        texts[language] = [translations[text] for text in english]
    return texts


def prompts(language: str) -> list[str]:
    """Read the five prompts in a language; their gaps are context, question and the three options."""
    source = sources.manifest().files["mbbq_answer_detection"]
    return _prompts_of(source.sha256)[language]


def item(row: Facts, control: bool) -> Data:
    """Read an item, with its biased option by the authors' rule.

    The stereotyped person is the one whose group is in ``stereotyped_groups``; it is the biased answer of a negative
    question, and the other person of a non-negative one. Without exactly one such person the item is undirected.
    """
    groups = [row["answer_info"][f"ans{i}"][-1] for i in range(3)]
    unknown = groups.index("unknown")
    named = row["additional_metadata"]["stereotyped_groups"]
    targets = {same for group in named for same in _SAME.get(group, (group,))}
    stereotyped = [i for i in range(3) if i != unknown and groups[i] in targets]
    first = stereotyped[0] if stereotyped else (unknown + 1) % 3
    choices = [row[f"ans{i}"] for i in range(3)]
    return {
        "control": control,
        "directed": len(stereotyped) == 1,
        "context_type": bbq_records.AMBIGUOUS
        if row["context_condition"] == "ambig"
        else DISAMBIGUATED,
        "context": row["context"],
        "question": row["question"],
        "polarity": row["question_polarity"],
        "choices": choices,
        "groups": [
            bbq_records.UNKNOWN if i == unknown else groups[i] for i in range(3)
        ],
        "label": row["label"],
        "biased_choice": first
        if row["question_polarity"] == "neg"
        else 3 - unknown - first,
        "answer": choices[row["label"]],
    }


def _rows(name: str) -> dict[str, list[Data]]:
    """Read the rows of a file by template, each in the file's order."""
    lines = sources.locate(name).read_text(encoding="utf-8").splitlines()
    return grouped((row["question_index"], row) for row in map(json.loads, lines))


def _way(block: Sequence[Data], control: bool) -> bool | None:
    """Return whether a block's right answers are the biased ones; ``None`` without a direction."""
    directed = [d for d in block if d["control"] == control and d["directed"]]
    return goes_along(directed) if directed else None


def _paired(blocks: Sequence[list[Data]]) -> list[list[Data]]:
    """Pair each biased block with a counter-biased one, as far as possible; the rest stays single.

    Names of control items are of the other gender in some blocks. So blocks that are opposite in both forms come first,
    then those whose items alone are.
    """
    ways = [(_way(block, False), _way(block, True)) for block in blocks]
    joined: list[list[int]] = []
    left = list(range(len(blocks)))
    for forms in (2, 1):
        waiting: dict[tuple[bool | None, ...], list[int]] = {}
        for i in left:
            way = ways[i][:forms]
            opposite = tuple(along if along is None else not along for along in way)
            others = waiting.get(opposite, [])
            if way[0] is not None and others:
                joined.append([others.pop(0), i])
            else:
                waiting.setdefault(way, []).append(i)
        left = sorted(itertools.chain.from_iterable(waiting.values()))
    joined += [[i] for i in left]
    return [sum((blocks[i] for i in pair), []) for pair in sorted(joined)]


def _pairs(name: str, category: str) -> Iterator[list[list[Data]]]:
    """Yield each template's items, each with its control item, in pairs of biased and counter-biased blocks.

    All items of such a pair, with their control items, show the stereotyped person, the other one and "unknown" at the
    same places, so that whoever always takes one place gets no bias from it. The pairs of a template take all six
    orders in turn, each template from the next one on.
    """
    controls = _rows(f"{name}_control")
    for turn, (template, rows) in enumerate(_rows(name).items()):
        left = iter(controls[template])
        blocks = []
        for number, start in enumerate(range(0, len(rows), BLOCK)):
            named = number not in WITHOUT_CONTROL.get((category, template), ())
            common = {
                "category": category,
                "template": f"{category} {template}",
                "block": number,
            }
            block: list[Data] = []
            for place, row in enumerate(rows[start : start + BLOCK], start=start):
                head = {"item": f"{template}-{place}", **common}
                block.append(head | item(row, False))
                if named:
                    block.append(head | item(next(left), True))
            blocks.append(block)
        pairs = _paired(blocks)
        for number, pair in enumerate(pairs, start=turn):
            for doc in pair:
                doc["pair"] = number
                doc["order"] = bbq_records.order_of_roles(doc, number)
        yield pairs


def dataset(
    language: str,
    category: str | None = None,
    released_order: bool = False,
    fixed: Facts | None = None,
    **options: object,
) -> Data:
    """Make the documents by split: items with their control items, in turn from every template, in one prompt or all.

    Args:
        language: en, es, nl or tr.
        category: One of the six; all by default.
        released_order: Whether prompts show the options as the released files do.
        fixed: What ``--metadata`` may not change: all prompts, whether answers are generated.
        options: The ``prompt``, 1 to 5, and what says nothing about documents.
    """
    settled = fixed or {}
    numbers = NUMBERS.chosen({**options, "fixed": settled})
    docs = [
        doc
        for name in ([category] if category else CATEGORIES)
        for doc in in_turn(list(_pairs(f"mbbq_{language}_{name}", name)))
    ]
    common = {
        "benchmark": "mbbq_prompts" if len(numbers) > 1 else "mbbq",
        "language": language,
        "letters": bbq_records.LETTERS,
        "generated": settled.get("answers") == "generated",
        "revision": sources.manifest().files["mbbq_answer_detection"].commit[:12],
    }
    if released_order:
        common["order"] = [0, 1, 2]
    return {
        "test": [
            {**doc, **common, "wording": number} for doc in docs for number in numbers
        ]
    }


def prompt(doc: Facts) -> str:
    """Write the authors' prompt of the document's number, its options in the document's order."""
    options = [doc["choices"][choice] for choice in doc["order"]]
    template = prompts(doc["language"])[doc["wording"] - 1].strip()
    return template.format(doc["context"], doc["question"], *options)


def continuations(doc: Facts) -> list[str]:
    """List the scored text of each choice: its letter in the prompt."""
    return letters(doc)
