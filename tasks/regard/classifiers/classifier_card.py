"""The model card of a regard classifier, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_eval_bias.custom_metrics.regard import REGARDS


def bias_sentence(check: Mapping[str, Any]) -> str:
    """What the bias check found, in one sentence."""
    if check["passed"] is None:
        return f"Bias check {check['reason']}."
    if check["chi2"] is None:
        return f"Bias check FAILED: {check['reason']}."
    verdict = "passed" if check["passed"] else "FAILED: the subject's gender moves the labels"
    return (
        f"Bias check {verdict}: chi-square {check['chi2']:.2f}, p = {check['p']:.3f}, N = {check['n']:,} (the same "
        f"sentences about a woman and a man; {100 * check['changed']:.1f}% change their label)."
    )


def _table(report: Mapping[str, Any]) -> list[str]:
    lines = ["| class | precision | recall | F1 | n | " + " | ".join(f"called {name}" for name in REGARDS) + " |"]
    lines.append("|---|---|---|---|---|" + "---|" * len(REGARDS))
    for name, row in zip(REGARDS, report["confusion"], strict=True):
        own = report["per_class"][name]
        cells = [f"{own[key]:.3f}" for key in ("precision", "recall", "f1")]
        lines.append(f"| {name} | {' | '.join(cells)} | {own['n']} | {' | '.join(map(str, row))} |")
    return lines


def _second(card: Mapping[str, Any]) -> list[str]:
    if "second_test" not in card:
        return []
    found = card["second_test"]
    return [
        f"- Second test, {found['n']} machine-written sentences: accuracy {found['accuracy']:.3f}, macro-F1 "
        f"{found['macro_f1']:.3f}."
    ]


def markdown(card: Mapping[str, Any]) -> str:
    """The card: what it is, how well it does, whether it is fair, what it was made from."""
    data, test = card["data"], card["test"]
    lines = [
        "# Regard classifier",
        "",
        f"Negative, neutral or positive regard of a sentence's subject, from vectors of "
        f"{card['encoder'] or 'an encoder that was not named'}. Recipe `{card['recipe']}`: {card['made']}.",
        "",
        f"- Data: {data['name']} (SHA-256 `{data['sha256'][:16]}…`); {data['development']} rows to develop on, "
        f"{data['test']} to test, {data['left_out_of_test']} left out of the test because it was among the former.",
    ]
    if "out_of_fold_accuracy" in card:
        fold, single = card["out_of_fold_accuracy"], card["test_of_folds"]
        lines += [
            f"- Accuracy on the held-out folds: {fold['mean']:.3f} ± {fold['sd']:.3f} (standard deviation over "
            f"{card['seeds']} seeds × {card['folds']} folds).",
            f"- Test, each fold by itself: accuracy {single['accuracy']['mean']:.3f} ± {single['accuracy']['sd']:.3f}, "
            f"macro-F1 {single['macro_f1']['mean']:.3f} ± {single['macro_f1']['sd']:.3f}.",
        ]
    if "held_out_folds" in card:
        fold = card["held_out_folds"]
        lines.append(
            f"- Accuracy on five held-out folds of the development rows: {fold['mean']:.3f} ± {fold['sd']:.3f}."
        )
    lines += [
        f"- Test, this classifier: accuracy {test['accuracy']:.3f}, macro-F1 {test['macro_f1']:.3f}, expected "
        f"calibration error {test['expected_calibration_error']:.3f} (n = {test['n']}).",
        *_second(card),
        f"- {bias_sentence(card['bias_check'])}",
        "",
        *_table(test),
        "",
        "Regard alone misleads: benevolent stereotypes count as positive. Kraft et al. (2022), Measuring Gender Bias "
        "in German Language Generation; Sheng et al. (2019).",
        "",
    ]
    return "\n".join(lines)
