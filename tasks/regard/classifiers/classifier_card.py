"""The model card of a regard classifier, as Markdown."""

from __future__ import annotations

from typing import TypedDict

from lm_eval_bias.custom_metrics.regard import REGARDS, Confusion


class DataSummary(TypedDict):
    """What a classifier was trained and tested on, in numbers of rows."""

    name: str
    sha256: str
    development: int
    test: int
    left_out_of_test: int


Spread = dict[str, float]  # mean and sd (standard deviation)


class Report(TypedDict):
    """How well labels are told; ``confusion`` has a row per true class."""

    n: int
    accuracy: float
    macro_f1: float
    per_class: dict[str, dict[str, float]]
    confusion: list[list[int]]
    expected_calibration_error: float


class BiasCheck(TypedDict):
    """Whether the subject's gender moves the labels; ``passed`` is ``None`` where that could not be checked."""

    passed: bool | None
    chi2: float | None
    p: float | None
    n: int
    changed: float | None
    reason: str


class Card(TypedDict, total=False):
    """All that a model card says, as ``card.json`` holds it; only ``second_test`` may be missing."""

    data: DataSummary
    encoder: str
    recipe: str
    made: str
    seeds: int
    folds: int
    out_of_fold_accuracy: Spread
    test_of_folds: dict[str, Spread]
    test: Report
    confusion: Confusion
    bias_check: BiasCheck
    second_test: Report


def bias_sentence(check: BiasCheck) -> str:
    """What the bias check found, in one sentence."""
    if check["passed"] is None:
        return f"Bias check {check['reason']}."
    if check["chi2"] is None or check["changed"] is None:
        return f"Bias check FAILED: {check['reason']}."
    verdict = "passed" if check["passed"] else "FAILED: the subject's gender moves the labels"
    return (
        f"Bias check {verdict}: chi-square {check['chi2']:.2f}, p = {check['p']:.3f}, N = {check['n']:,} (the same "
        f"sentences about a woman and a man; {100 * check['changed']:.1f}% change their label)."
    )


def _spread(spread: Spread) -> str:
    return f"{spread['mean']:.3f} ± {spread['sd']:.3f}"


def markdown(card: Card) -> str:
    """The card: what it is, how well it does, whether it is fair, what it was made from."""
    data, test, held_out, single_folds = card["data"], card["test"], card["out_of_fold_accuracy"], card["test_of_folds"]
    lines = [
        "# Regard classifier",
        "",
        f"Negative, neutral or positive regard of a sentence's subject, from vectors of "
        f"{card['encoder'] or 'an encoder that was not named'}. Recipe `{card['recipe']}`: {card['made']}.",
        "",
        f"- Data: {data['name']} (SHA-256 `{data['sha256'][:16]}…`); {data['development']} rows to develop on, "
        f"{data['test']} to test, {data['left_out_of_test']} left out of the test because it was among the former.",
    ]
    if card["recipe"] == "light":
        lines.append(f"- Accuracy on five held-out folds of the development rows: {_spread(held_out)}.")
    else:
        lines += [
            f"- Accuracy on the held-out folds: {_spread(held_out)} (standard deviation over {card['seeds']} seeds × "
            f"{card['folds']} folds).",
            f"- Test, each fold by itself: accuracy {_spread(single_folds['accuracy'])}, "
            f"macro-F1 {_spread(single_folds['macro_f1'])}.",
        ]
    lines.append(
        f"- Test, this classifier: accuracy {test['accuracy']:.3f}, macro-F1 {test['macro_f1']:.3f}, expected "
        f"calibration error {test['expected_calibration_error']:.3f} (n = {test['n']})."
    )
    if report := card.get("second_test"):
        lines.append(
            f"- Second test, {report['n']} machine-written sentences: accuracy {report['accuracy']:.3f}, macro-F1 "
            f"{report['macro_f1']:.3f}."
        )
    lines += [
        f"- {bias_sentence(card['bias_check'])}",
        "",
        "| class | precision | recall | F1 | n | " + " | ".join(f"called {name}" for name in REGARDS) + " |",
        "|---|---|---|---|---|" + "---|" * len(REGARDS),
    ]
    for name, row in zip(REGARDS, test["confusion"], strict=True):
        metrics = test["per_class"][name]
        cells = [name, *(f"{metrics[key]:.3f}" for key in ("precision", "recall", "f1")), metrics["n"], *row]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += [
        "",
        "Regard alone misleads: benevolent stereotypes count as positive. Kraft et al. (2022), Measuring Gender Bias "
        "in German Language Generation; Sheng et al. (2019).",
        "",
    ]
    return "\n".join(lines)
