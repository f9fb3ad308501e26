"""What the engines are asked: our own tasks, and made-up ones in the forms of the harness's.

Only the forms count for speed: how long texts are, and which of them begin alike.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from measuring import Request

OURS = {
    "occugender_explicit": ["occugender_explicit"],
    "occugender_implicit": ["occugender_implicit"],
    "gg_bbq": ["gg_bbq_group_terms"],
    "stereoset_en": ["stereoset_en"],
}


@dataclass(frozen=True)
class Form:
    """A made-up task.

    Attributes:
        likeness: A task of the harness in this form.
        shots: Solved questions before each question, always the same.
        asked: Words of a question, on average: between half of it and half as many more.
        options: Options of a question.
        option: Words of an option.
        letters: Whether the options stand in the question and their letters are the answers.
        chat: Whether the model's chat template is put around each question.
        alike: Questions in a row with the same text but for their last words.
        count: Questions in all.
    """

    likeness: str
    shots: int
    asked: int
    options: int = 4
    option: int = 6
    letters: bool = False
    chat: bool = False
    alike: int = 1
    count: int = 60


FORMS = {
    "letters_5": Form("MMLU, five shots", 5, 60, letters=True),
    "letters_chat": Form(
        "MMLU, five shots, chat template", 5, 60, letters=True, chat=True
    ),
    "letters_0": Form("MMLU, no shots", 0, 60, letters=True, count=200),
    "texts_0": Form("HellaSwag, no shots", 0, 45, option=20, count=200),
    "texts_5": Form("ARC, five shots", 5, 25),
    "texts_10": Form("HellaSwag, ten shots", 10, 45, option=20, count=30),
    "bbq": Form("BBQ, no shots", 0, 40, options=3, option=3, alike=4, count=200),
    "last_word": Form("LAMBADA: nothing shared", 0, 75, options=1, option=1, count=300),
}
WORKLOADS = (*FORMS, *OURS)


def words(seed: int) -> Callable[[int], str]:
    """A source of texts of a number of common words."""
    common = (
        "the of and to in a is that for it was on are as with they at be this from have or by one had not but what all "
        "were when we there can an your which their said if do will each about how up out them then she many some so "
        "these would other into has more her two like him see time could no make than first been its who now people my "
        "made over did down only way find use may water long little very after words called just where most know"
    ).split()
    rng = random.Random(seed)  # noqa: S311
    return lambda n: " ".join(rng.choice(common) for _ in range(n))


def made_up(form: Form, count: int, tokenizer: Any = None) -> Iterator[tuple[str, str]]:
    """Contexts with continuations, the options of a question in a row."""
    text, length = words(7), random.Random(8)  # noqa: S311
    names = "ABCDEFGH"[: form.options]

    def question(beginning: str) -> tuple[str, list[str]]:
        options = [text(form.option) for _ in names]
        if not form.letters:
            return beginning, options
        lines = (
            f"\n{name}. {option}" for name, option in zip(names, options, strict=True)
        )
        return f"{beginning}{''.join(lines)}\nAnswer:", list(names)

    def asked_words() -> str:
        return text(length.randint(form.asked // 2, form.asked * 3 // 2))

    solved = ""
    for shot in range(form.shots):
        asked, options = question(asked_words())
        solved += f"{asked} {options[shot % form.options]}\n\n"
    for number in range(count):
        if number % form.alike == 0:
            same = asked_words()
        asked, options = question(same if form.alike == 1 else f"{same} {text(8)}")
        context = solved + asked
        if form.chat:
            turns = [{"role": "user", "content": context}]
            context = tokenizer.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True
            )
        yield from (
            (context, f"{'' if form.chat else ' '}{option}") for option in options
        )


def requests_of(workload: str, share: float, tokenizer: Any = None) -> list[Request]:
    """The requests of a workload, or of an evenly spread share of its items."""
    if workload in FORMS:
        form = FORMS[workload]
        pairs = made_up(form, max(4, round(form.count * share)), tokenizer)
        return [("loglikelihood", pair, workload) for pair in pairs]
    found = []
    for name, task in tasks_of(workload).items():
        task.build_all_requests(
            samples=spread(len(task.eval_docs), share), rank=0, world_size=1
        )
        found += [(i.request_type, i.args, name) for i in task.instances]
    return found


def spread(n: int, share: float) -> list[int]:
    """Indices of an evenly spread share of ``n`` documents."""
    return sorted({int(i / share) for i in range(max(1, math.floor(n * share)))})


def tasks_of(workload: str) -> dict[str, Any]:
    """The tasks of a workload of ours."""
    from lm_eval.tasks import TaskManager

    from lm_eval_bias.core.files import tasks_path

    manager = TaskManager(include_path=[str(tasks_path())], include_defaults=False)
    return {name: manager.load([name])["tasks"][name] for name in OURS[workload]}
