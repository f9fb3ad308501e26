"""StereoSet's scores as the paper prints them (results/published/stereoset.csv)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from lm_eval_bias.core.run_data import Published, PublishedCell, printed_lines, table_names

_APPROACH = {"BERT": "NSP", "mBERT": "NSP", "GPT-2": "gen", "mGPT-2": "gen", "T5": "NSP", "mT5": "NSP"}
_INTRA = {
    "BERT": "masked tokens revealed from left to right, mean of their probabilities",
    "GPT-2": "Eq. 4 over the whole sentence, the start token before its first token only (bos=first)",
    "T5": "tokens behind the sentinel revealed from left to right, mean of their probabilities",
}


def _inter(family: str, approach: str) -> str:
    if approach == "NSP":
        return "its own next-sentence head" if family == "BERT" else "fine-tuned on next sentences (NSP)"
    if approach == "gen_orig":
        return "generative, candidate over context (Nadeem et al.'s ratio, inter=gen_orig)"
    behind = "sentinel" if family == "T5" else "context (inter=gen)"
    return f"generative, Eq. 4 over the candidate behind the {behind}"


def _remarks(line: Mapping[str, str]) -> tuple[str, ...]:
    if line["model"] == "mBERT" and line["language"] == "de" and line["test"] != "inter":
        return ("does not follow from the authors' released predictions (their run within German sentences differs)",)
    if line["model"] == "mBERT" and line["language"] == "tr" and line["test"] == "inter":
        return ("LMS 78.23 is a misprint of Table 3: 78.73 follows from the authors' predictions and from ICAT",)
    if line["model"] == "T5" and line["language"] == "en" and line["test"] == "overall":
        return ("five of its cells in Tables 4 and 5 were computed over the German item set",)
    return ()


def published() -> Iterator[Published]:
    """Tables 2-5 and 7-9."""
    cells: dict[tuple[str, str, str], dict[str, PublishedCell]] = defaultdict(dict)
    tables: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    line_of: dict[tuple[str, str, str], dict[str, str]] = {}
    for line in printed_lines("stereoset"):
        approach = line["approach"] or _APPROACH[line["model"]]
        task = f"stereoset_{line['language']}" + ("" if line["test"] == "overall" else f"_{line['test']}")
        places = [(task, line["model"], approach, "")]
        if line["test"] == "inter" and approach != "NSP" and line["model"].endswith("GPT-2"):
            places.append((f"{task}_variants", line["model"], "", f"{approach}/"))
        for task, model, label, prefix in places:
            cells[task, model, label][f"{prefix}{line['score']}"] = PublishedCell(float(line["value"]), line["value"])
            tables[task, model, label].add(line["table"])
            line_of[task, model, label] = line
    for (task, model, approach), scores in cells.items():
        line, family = line_of[task, model, approach], model.removeprefix("m")
        within, between = _INTRA[family], _inter(family, approach)
        ways = {"intra": within, "inter": between, "overall": f"within sentences: {within}; between: {between}"}
        way = ways[line["test"]] if approach else "generative scores over the candidate behind the context (Eq. 4)"
        yield Published(
            task,
            f"{model} ({approach})" if approach and line["test"] == "inter" else model,
            "Öztürk et al. 2023",
            table_names(tables[task, model, approach]),
            f"{line['kind']}; {way}; checkpoint in Table 6",
            _remarks(line),
            scores,
        )
