"""How many answers a prompt are worth drawing, and do intervals hold where what can be read goes with what is said?

    python -m tests.simulation.answer_counts --rounds 400

Occupations, templates and their cells have normal effects on the logit of the share of women, and others on the logit
of how many answers can be read, which also falls with the occupation's own share of women. The truth is the ratio of
the expected counts. A line for each world and number of answers: how often the 95% interval of each score holds it, and
the mean standard error beside the spread of the values.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy import special

from lm_eval_bias.custom_metrics import occugender_answers

WORLDS: dict[str, dict[str, float]] = {
    "default": {},
    "one in ten read": {"read": 0.1},
    "little spread": {"spread": 0.2, "read_spread": 0.2},
    "8 templates": {"templates": 8},
}
DEFAULT = {"gap": 0.6, "read": 0.7, "spread": 0.8, "read_spread": 1.0, "templates": 25}
NUMBERS = (1, 3, 10, 100)
OCCUPATIONS = 40  # half of them dominated by each gender
SCORES = ("stereotype_gap", "female_dominated_F", "male_dominated_M", "unanswered")
Probabilities = tuple[Any, Any]


def probabilities(rng: Any, world: dict[str, float], sign: Any, rows: int, columns: int) -> Probabilities:
    """Of women among the answers read, and of an answer being read: by occupation and template."""

    def effects(spread: float) -> tuple[Any, Any]:
        own = rng.normal(0, spread, (rows, 1))
        return own, own + rng.normal(0, 0.6 * spread, (1, columns)) + rng.normal(0, 0.6 * spread, (rows, columns))

    own, women = effects(world["spread"])
    _, read = effects(world["read_spread"])
    centre = special.logit(world["read"])
    return 0.9 * special.expit(sign * world["gap"] + women), special.expit(centre + read - 0.5 * own)


def truth(world: dict[str, float]) -> dict[str, float]:
    """The scores over endlessly many occupations and templates."""
    rng = np.random.default_rng(99)
    women, answered = {}, []
    for sign in (1, -1):
        p, q = (np.concatenate(part) for part in zip(
            *(probabilities(rng, world, sign, 400, 400) for _ in range(10)), strict=True
        ))  # fmt: skip
        women[sign] = float((p * q).mean() / q.mean())
        answered.append(float(q.mean()))
    men = {sign: 0.9 * (1 - share) for sign, share in women.items()}  # of all other answers one in ten is neutral
    return {
        "stereotype_gap": (women[1] - men[1] + men[-1] - women[-1]) / 2,
        "female_dominated_F": 100 * women[1],
        "male_dominated_M": 100 * men[-1],
        "unanswered": 1 - sum(answered) / 2,
    }


def records(rng: Any, world: dict[str, float], number: int) -> list[Any]:
    """One model's prompts, each answered so often."""
    columns = int(world["templates"])
    sign = np.repeat([1, -1], OCCUPATIONS // 2)[:, None]
    p, q = probabilities(rng, world, sign, OCCUPATIONS, columns)
    read = rng.binomial(number, q)
    women = rng.binomial(read, p)
    men = rng.binomial(read - women, 0.9)
    return [
        occugender_answers.prompt_record(
            f"{i:02d}", f"{t:02d}", 50.0 + 30 * int(sign[i, 0]), "female" if sign[i, 0] > 0 else "male",
            counts={"M": int(men[i, t]), "F": int(women[i, t]), "D": int(read[i, t] - women[i, t] - men[i, t])},
            refused=0, drawn=number,
        )
        for i, t in np.ndindex(OCCUPATIONS, columns)
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=400)
    rounds = parser.parse_args().rounds
    scores = [score for score in occugender_answers.scores() if score.name in SCORES]
    for name, changed in WORLDS.items():
        world = DEFAULT | changed
        true = truth(world)
        for number in NUMBERS:
            rng = np.random.default_rng(5)
            drawn = [records(rng, world, number) for _ in range(rounds)]
            cells = []
            for score in scores:
                estimates = [score.compute(own) for own in drawn]
                ends = [estimate.ends() for estimate in estimates]
                held = np.mean([end is not None and end[0] <= true[score.name] <= end[1] for end in ends])
                errors, values = [e.stderr for e in estimates], [e.value for e in estimates]
                cells.append(f"{score.name} {100 * held:.1f}% ({np.nanmean(errors):.3g}, {np.std(values):.3g})")
            print(f"{name}, {number} a prompt: {'; '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
