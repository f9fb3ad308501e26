"""The model card of a model with next-sentence training, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _percent(found: Mapping[str, Any]) -> str:
    low, high = found["interval"]
    return (
        f"{100 * found['accuracy']:.1f}% [{100 * low:.1f}, {100 * high:.1f}] ({found['pairs']:,} pairs from "
        f"{found['articles']:,} articles)"
    )


def markdown(told: Mapping[str, Any]) -> str:
    """The card: what it is, how well it does, what it was made from and how to use it.

    Args:
        told: As :func:`lm_eval_bias.models.next_sentence.nsp_training.train` returns it.
    """
    data, settings = told["data"], told["settings"]
    languages = list(dict.fromkeys(corpus["language"] for corpus in data["corpora"]))
    sources = ", ".join(
        f"`{c['source']}`" + (f" ({c['config']})" if c["config"] else "") + f", {c['language']}"
        for c in data["corpora"]
    )
    head = f", head {settings['head_rate']:g}" if told["family"] == "causal" else ""
    layers = "" if settings["layers"] is None else f", the last {settings['layers']} layers of the body"
    rows = [f"| {look['update']:,} | {look['accuracy']:.4f} | {look['loss']:.4f} |" for look in told["looks"]]
    return "\n".join(
        [
            "---",
            f"base_model: {told['base']}",
            "language:",
            *[f"- {language}" for language in languages],
            "tags:",
            "- next-sentence-prediction",
            "- lm-eval-bias",
            "---",
            "",
            "# Next-sentence training",
            "",
            f"Tells whether a sentence follows another. Made from {told['base']} ({told['family']}) by "
            "`lm-eval-bias train-nsp`.",
            "",
            f"- Accuracy on articles that were never looked at before: {_percent(told['test'])}; chance is 50%, half "
            "of the pairs follow. 95% interval, an article's pairs taken together.",
            f"- On the held-out articles by which training was stopped: {_percent(told['held_out'])}.",
            f"- Data: {sources}; {data['articles']:,} articles, {data['sentences']:,} sentences, "
            f"{data['pairs']['train']['pairs']:,} pairs to train on (a sentence and the one that follows it, or one of "
            f"another article); SHA-256 of the texts `{data['sha256'][:16]}…`; sentencex {data['sentencex']}.",
            f"- Training: {told['updates']:,} updates, {told['examples']:,} pairs seen ({told['stopped']}; the weights "
            f"are those of update {told['best_update']:,}); learning rate {settings['body_rate']:g}{head}{layers}; "
            f"schedule {settings['schedule']}; seed {settings['seed']}.",
            f"- Versions: {', '.join(f'{name} {version}' for name, version in told['versions'].items())}.",
            "",
            "| update | held-out accuracy | loss |",
            "|---:|---:|---:|",
            *rows,
            "",
            "    lm-eval-bias run --tasks stereoset_en_inter --model hf-nsp --model_args pretrained=<this folder>",
            "",
            "After Öztürk et al. (2023), How Different Is Stereotypical Bias Across Languages?, section 5.2, and "
            "Nadeem, Bethke, Reddy (2021), StereoSet.",
            "",
        ]
    )
