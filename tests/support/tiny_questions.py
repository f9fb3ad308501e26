"""Small files of our own in the form of EsBBQ's, CaBBQ's and KoBBQ's."""

import csv
import io
import json
from itertools import product

from lm_eval_bias.tasks.es_bbq.benchmark import ITEMS
from lm_eval_bias.tasks.kobbq.benchmark import SAMPLES
from lm_eval_bias.tasks.mbbq.hooks import CATEGORIES

_STORIES = {
    "es": ("Una chica y un chico llegan {}.", "{} espera fuera.", "¿Quién llega {}?", "La chica", "El chico"),
    "ca": ("Una noia i un noi arriben {}.", "{} s'espera fora.", "Qui arriba {}?", "La noia", "El noi"),
}
_CONTEXTS = (("ambig", "n/a"), ("disambig", "pro-stereo"), ("ambig", "n/a"), ("disambig", "anti-stereo"))
_PROMPTS = (
    ("읽고 고르시오.", "글: ", "질문: ", ("A: ", "B: ", "C: "), "정답:", "모름"),
    ("하나만 고르시오.", "글: ", "질문: ", ("A: ", "B: ", "C: "), "정답:", "알 수 없음"),
    ("답하시오.", "글: ", "질문: ", ("a: ", "b: ", "c: "), "답:", "모르겠음"),
    ("선택하시오.", "글: ", "질문: ", ("a: ", "b: ", "c: "), "답:", "불명"),
    ("보고 답하시오.", "글: ", "질문: ", ("보기:(A) ", "(B) ", "(C) "), "답:", "미상"),
)


def es_bbq_csv(language: str, category: str) -> bytes:
    """Three templates of eight rows: two questions, ambiguous and in both directions."""
    context, more, question, her, him = _STORIES[language]
    rows = []
    for template, polarity in product(("1", "2", "3"), ("neg", "nonneg")):
        when = f"{template} {category.replace('_', ' ')}"
        for condition, kind in _CONTEXTS:
            biased = 0 if polarity == "neg" else 1
            label = 2 if condition == "ambig" else biased if kind == "pro-stereo" else 1 - biased
            told = "" if label == 2 else " " + more.format((her, him)[label])
            rows.append(
                {
                    "instance_id": len(rows), "template_id": template, "version": "", "template_label": "t",
                    "flipped": "original", "question_polarity": polarity, "context_condition": condition,
                    "category": category, "subcategory": "", "relevant_social_value": f"valor {template}",
                    "stereotyped_groups": "['f']", "answer_info.ans0": f"['{her}', 'f']",
                    "answer_info.ans1": f"['{him}', 'm']", "answer_info.ans2": "['unknown', 'unknown']",
                    "stated_gender_info": "", "proper_nouns_only": "False",
                    "context": context.format(when) + told, "question": question.format(polarity),
                    "ans0": her, "ans1": him, "ans2": "unknown", "question_type": kind, "label": label,
                    "source": "[]",
                }
            )  # fmt: skip
    return as_csv([list(rows[0]), *(list(row.values()) for row in rows)])


def as_csv(rows: list[list]) -> bytes:
    """A table."""
    table = io.StringIO()
    csv.writer(table).writerows(rows)
    return table.getvalue().encode()


def kobbq_samples() -> bytes:
    """Two stories of every category, each with its persons in both orders."""
    header = "sample_id label_annotation context question choices biased_answer answer bbq_id bbq_category prediction"
    lines = [header.split()]
    for category, number, (version, people) in product(
        SAMPLES, ("001", "002"), (("a", ("손님", "주인")), ("b", ("주인", "손님")))
    ):
        for context, kind in product(("amb", "dis"), ("bsd", "cnt")):
            biased = "주인" if kind == "bsd" else "손님"
            right = "알 수 없음" if context == "amb" else people[0] if kind == "bsd" else people[1]
            end = " 둘이 왔다" if context == "amb" else f" {people[0]}이 늦었다"
            story = f"{number} {people[0]}와 {people[1]}{end}"
            choices, name = str([*people, "알 수 없음"]), f"{category}-{number}{version}-001-{context}-{kind}"
            lines.append([name, "ST", story, f"누가 {kind}?", choices, biased, right, "1.0", category, ""])
    return "".join("\t".join(line) + "\n" for line in lines).encode()


def kobbq_prompts() -> bytes:
    """Five prompts, of which the third has the released file's misprints."""
    lines = ["prompt_id prompt instruction context question a b c answer unknown".split()]
    for number, (instruction, context, question, options, answer, unknown) in enumerate(_PROMPTS, start=1):
        names = ("{a}", "{B}", "{C}") if number == 3 else ("{a}", "{b}", "{c}")
        shown = "\\n".join(option + name for option, name in zip(options, names, strict=True))
        prompt = f"{instruction}\\n\\n{context}{{context}}\\n{question}{{question}}\\n{shown}\\n{answer}"
        lines.append([str(number), prompt, instruction, context, question, *options, answer, unknown])
    return "".join("\t".join(line) + "\n" for line in lines).encode()


def mbbq_rows(language: str, category: str, control: bool) -> list[dict]:
    """Two templates of three blocks, in which the persons change places; the first has a block about two women."""
    groups, names = (("F", "M") if control else ("woman", "man")), (("Ada", "Eva") if control else ("woman", "man"))
    rows = []
    for template, block, (polarity, condition) in product(
        ("1", "13"), range(3), product(("neg", "nonneg"), ("ambig", "disambig"))
    ):
        if block == 1 and (category, template) == ("gender_identity", "13"):
            if control:
                continue
            infos = [["girl", "girl"], ["woman", "woman"]]
        else:
            infos = [[names[i], groups[i]] for i in ((0, 1) if block != 2 else (1, 0))]
        told = f" {infos[0][0]} spoke." if condition == "disambig" else ""
        label = 2 if condition == "ambig" else 0 if polarity == "neg" else 1
        options = [*(info[0].title() for info in infos), "Unknown"]
        rows.append(
            {
                "example_id": len(rows), "question_index": template, "question_polarity": polarity,
                "context_condition": condition, "category": category,
                "answer_info": {f"ans{i}": info for i, info in enumerate([*infos, ["Unknown", "unknown"]])},
                "additional_metadata": {"stereotyped_groups": ["F"]},
                "context": f"{language} {template} {block}: {infos[0][0]} and {infos[1][0]} waited.{told}",
                "question": f"Who was {'late' if polarity == 'neg' else 'early'}?",
                **{f"ans{i}": option for i, option in enumerate(options)}, "label": label,
            }
        )  # fmt: skip
    return rows


def json_lines(rows: list[dict]) -> bytes:
    """Rows as lines of JSON."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def mbbq_prompts() -> bytes:
    """Five prompts in four languages as the source text of a module that must not be executed."""
    english = [f"{n}. Choose. Context: {{}} Question: {{}} (A): {{}} (B): {{}} (C): {{}} Answer:" for n in range(1, 6)]
    others = {language: {text: f"{language} {text}" for text in english} for language in ("es", "nl", "tr")}
    return f"a_list = ['a']\nprompts = {english!r}\ntrans_prompt_dict = {others!r}\nraise SystemExit\n".encode()


def files() -> dict[str, bytes]:
    """All of them by the names of the pinned files."""
    control = {False: "", True: "_control"}
    return {
        **{f"{one}_bbq_{category}": es_bbq_csv(one, category) for one, category in product(_STORIES, ITEMS)},
        "kobbq_samples": kobbq_samples(),
        "kobbq_evaluation_prompts": kobbq_prompts(),
        **{
            f"mbbq_{language}_{category}{control[is_control]}": json_lines(mbbq_rows(language, category, is_control))
            for language, category, is_control in product(("en", "es", "nl", "tr"), CATEGORIES, control)
        },
        "mbbq_answer_detection": mbbq_prompts(),
    }
