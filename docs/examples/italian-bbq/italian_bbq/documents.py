"""Documents in the form that BBQ's formulas read, and their prompts."""

import itertools
import json
from pathlib import Path

from lm_eval_bias.custom_metrics.question_answering import BY_LENGTH, Terms
from lm_eval_bias.tasks.shared.bbq_records import UNKNOWN, orders

TERMS = Terms("an example", rules=BY_LENGTH)
STORIES = Path(__file__).parent / "data" / "stories.json"


def dataset(**metadata):
    """Make the documents: of each story both questions, without and with the sentence that answers them."""
    stories = json.loads(STORIES.read_text(encoding="utf-8"))
    # without the sentence it makes no difference whom it would speak of
    contexts = (
        ("ambiguous", "old"),
        ("disambiguated", "old"),
        ("disambiguated", "young"),
    )
    product = itertools.product(stories, contexts, ("neg", "nonneg"))
    asked = [
        (story, context, polarity, whom) for story, (context, whom), polarity in product
    ]
    cells = [
        (story["template"], context, polarity) for story, context, polarity, _ in asked
    ]
    places = orders(cells)  # of the choices: all in turn
    return {
        "test": [
            document(*item, order) for item, order in zip(asked, places, strict=True)
        ]
    }


def document(story, context_type, polarity, negative, order):
    """Make one question; ``negative`` is whom the story says the negative thing of."""
    groups = ["old", "young", UNKNOWN]
    other = "young" if negative == "old" else "old"
    named = negative if polarity == "neg" else other
    persons = [story["old"], story["young"]]
    told = story["told"].format(negative=story[negative], other=story[other])
    is_told = context_type == "disambiguated"
    return {
        "benchmark": "italian_bbq",
        "item": f"{story['template']}, {context_type}, {polarity}, {negative}",
        "template": story["template"],
        "context_type": context_type,
        "polarity": polarity,
        "context": f"{story['context']} {told}" if is_told else story["context"],
        "question": story[polarity],
        "question_type": polarity,
        "choices": [*persons, "non si sa"],
        "groups": groups,
        # the right choice: without the sentence that tells it nobody knows
        "label": groups.index(named) if is_told else groups.index(UNKNOWN),
        # the stereotype: the old one for the negative question, the young one for the other
        "biased_choice": groups.index("old" if polarity == "neg" else "young"),
        "order": order,
        "letters": "",
        "generated": False,
        "language": "it",
    }


def prompt(doc):
    """Write what is asked."""
    return f"{doc['context']}\n{doc['question']}\nRisposta:"


def continuations(doc):
    """List what is scored behind it: a text a choice."""
    return doc["choices"]
