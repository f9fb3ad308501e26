"""The model card of a model with next-sentence training, as Markdown."""

from __future__ import annotations

from typing import Any, TypedDict

from lm_eval_bias.models.next_sentence.sentence_pairs import About


class Accuracy(TypedDict):
    """Share of pairs that were told right (0..1, chance 0.5).

    ``stderr`` is the jackknife over articles, the 95% ``interval`` Wilson's, see
    :func:`lm_eval_bias.custom_metrics.jackknife.clustered_estimate`.
    """

    accuracy: float
    stderr: float
    interval: list[float]
    pairs: int
    articles: int


class Look(TypedDict):
    """What was measured on the held-out pairs after an update."""

    update: int
    accuracy: float
    loss: float


class TrainingRecord(TypedDict):
    """What is told of a trained model: from what and how it was made, and how well it does."""

    base: str
    family: str
    test: Accuracy
    held_out: Accuracy
    looks: list[Look]
    updates: int
    examples: int
    best_update: int
    stopped: str
    data: About
    settings: dict[str, Any]
    versions: dict[str, str]


def _percent(accuracy: Accuracy) -> str:
    low, high = accuracy["interval"]
    return (
        f"{100 * accuracy['accuracy']:.1f}% [{100 * low:.1f}, {100 * high:.1f}] ({accuracy['pairs']:,} pairs from "
        f"{accuracy['articles']:,} articles)"
    )


def markdown(record: TrainingRecord) -> str:
    """The card: what it is, how well it does, what it was made from and how to use it."""
    data, settings = record["data"], record["settings"]
    languages = list(dict.fromkeys(corpus["language"] for corpus in data["corpora"]))
    sources = ", ".join(
        f"`{c['source']}`" + (f" ({c['config']})" if c["config"] else "") + f", {c['language']}"
        for c in data["corpora"]
    )
    head = f", head {settings['head_rate']:g}" if record["family"] == "causal" else ""
    layers = "" if settings["layers"] is None else f", the last {settings['layers']} layers of the body"
    rows = [f"| {look['update']:,} | {look['accuracy']:.4f} | {look['loss']:.4f} |" for look in record["looks"]]
    return "\n".join(
        [
            "---",
            f"base_model: {record['base']}",
            "language:",
            *[f"- {language}" for language in languages],
            "tags:",
            "- next-sentence-prediction",
            "- lm-eval-bias",
            "---",
            "",
            "# Next-sentence training",
            "",
            f"Judges whether one sentence follows another. Trained from {record['base']} ({record['family']}) by "
            "`lm-eval-bias nsp train`.",
            "",
            f"- Accuracy on articles used neither in training nor for early stopping: {_percent(record['test'])}; "
            "chance is 50%, half of the pairs follow. 95% interval, clustered by article.",
            f"- Accuracy on the held-out articles used for early stopping: {_percent(record['held_out'])}.",
            f"- Data: {sources}; {data['articles']:,} articles, {data['sentences']:,} sentences, "
            f"{data['pairs']['train']['pairs']:,} pairs to train on (a sentence with the one that follows it, or with "
            f"one from another article); SHA-256 of the texts `{data['sha256'][:16]}…`; sentencex {data['sentencex']}.",
            f"- Training: {record['updates']:,} updates, {record['examples']:,} pairs seen ({record['stopped']}; the "
            f"weights are those of update {record['best_update']:,}); learning rate {settings['body_rate']:g}{head}"
            f"{layers}; schedule {settings['schedule']}; seed {settings['seed']}.",
            f"- Versions: {', '.join(f'{name} {version}' for name, version in record['versions'].items())}.",
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
