"""Errors and intervals of whole runs, recounted from the answers by nothing but what ``methods`` says of each score."""

import math
import sys
from pathlib import Path

import numpy as np
from scipy import optimize, stats

import lm_eval_bias as leb
from lm_eval_bias.custom_metrics.crossed import Cells
from lm_eval_bias.runs import answer_files

RUNS = Path(__file__).parents[1] / "results" / "runs"
SHARES = {"percent": 100.0}


def t(dof):
    return stats.t.ppf(0.975, dof) if math.isfinite(dof) else stats.norm.ppf(0.975)


def wilson(p, n, dof=math.inf):
    square = t(dof) ** 2 / n
    half = math.sqrt(square * p * (1 - p) + square**2 / 4)
    return [(p + square / 2 + sign * half) / (1 + square) for sign in (-1, 1)]


def tango(d, q, n, dof=math.inf):
    """The differences that the score test doesn't reject, by bisection."""

    def z(delta):
        b = (2 - d) * delta - q
        second = (math.sqrt(max(0.0, b * b + 8 * (q - d) / 2 * delta * (1 - delta))) - b) / 4  # fmt: skip
        variance = max(1e-300, 2 * second + delta * (1 - delta))
        return (d - delta) / math.sqrt(variance / n)

    ends = []
    for sign, end in ((1, -1.0), (-1, 1.0)):
        inner = d - sign * 1e-9
        is_inside = abs(z(end)) < t(dof)
        ends.append(end if is_inside else optimize.brentq(lambda x, s=sign: s * z(x) - t(dof), end, inner))  # fmt: skip
    return ends


class Recount:
    """One score of one task: its value is what its benchmark computes, all else is counted here."""

    def __init__(self, score, records):
        self.value_of = lambda part: score.design(part).value
        self.design = score.design(records)
        self.records = records
        self.scale = SHARES.get(score.unit, 1.0)
        self.value = self.design.value / self.scale

    def deviations(self):
        """The score without each cluster less the score, by stratum, with the clusters' sizes."""
        design = self.design
        kept = np.flatnonzero(design.sizes > 0)
        strata = list(design.strata) or [""] * len(design.names)
        if min(strata.count(one) for one in strata) < 2:
            strata = [""] * len(design.names)
        off = {}
        of_all = design.totals.sum(axis=0)
        for place in kept:
            stratum = strata[place]
            mates = [i for i in kept if strata[i] == stratum]
            of_stratum = design.totals[mates].sum(axis=0)
            factor = len(mates) / (len(mates) - 1)
            left = of_all - of_stratum + factor * (of_stratum - design.totals[place])
            value = float(design.of(left[None])[0]) / self.scale
            off.setdefault(stratum, []).append((value - self.value, design.sizes[place]))  # fmt: skip
        return [np.array(one) for one in off.values()]

    def jackknife(self, names):
        """Squared error and degrees of freedom, as ``jackknife``, ``satterthwaite`` and ``skewness`` have them."""
        parts, dofs = [], []
        for off in self.deviations():
            n, sizes = len(off), off[:, 1]
            parts.append((n - 1) / n * float((off[:, 0] ** 2).sum()))
            dofs.append(sizes.sum() ** 2 / (sizes**2).sum() - 1)
        variance = sum(parts)
        if "satterthwaite" in names:
            dof = variance**2 / sum(v**2 / nu for v, nu in zip(parts, dofs, strict=True))  # fmt: skip
        else:
            (dof,) = dofs
        if "skewness" in names:
            off = np.concatenate(self.deviations())
            d = self.value
            q = d if self.design.whole else self.differ()
            total = off[:, 1].sum()
            v = q - d * d
            v4 = (q + d) / 2 * (1 - d) ** 4 + (q - d) / 2 * (1 + d) ** 4 + (1 - q) * d**4  # fmt: skip
            dof = lowered(off[:, 0], off[:, 1], dof, min(1.0, total * variance / v), v4 / v**2 - 3, total)  # fmt: skip
        return math.sqrt(variance), dof

    def differ(self):
        """The share in which both sides of a difference differ."""
        return float(self.design.differing(self.design.totals.sum(axis=0)[None])[0])

    def ends(self, names):
        """Error and interval, by the methods' names."""
        stderr, dof = math.nan, math.nan
        ends = []
        count = int((self.design.sizes > 0).sum())
        if "jackknife" in names:
            stderr, dof = self.jackknife(names)
        if "student" in names:
            return stderr, [self.value - t(dof) * stderr, self.value + t(dof) * stderr]
        p = self.value
        if "wilson" in names:
            ends.append(wilson(p, p * (1 - p) / stderr**2, dof))
        if "few_deviate" in names:
            ends.append(wilson(p, count))
        q = max(abs(p), self.differ()) if self.design.differing else math.nan
        if "tango" in names:
            ends.append(tango(p, q, (q - p * p) / stderr**2, dof))
        if "few_differ" in names:
            alone = self.design.differing(self.design.totals)
            known = alone[~np.isnan(alone)]  # none where no cluster has both sides
            if len(known) and (known > 1e-12).sum() < 3:
                high = wilson(q, count)[1]
                ends.append([-high, high])
            else:
                ends.append(tango(p, q, count))
        low, high = min(e[0] for e in ends), max(e[1] for e in ends)
        if {"few_deviate", "few_differ"} & set(names):
            if math.isnan(stderr):
                _, dof = self.jackknife([])
            half = (high - low) / 2 / t(dof)
            stderr = half if math.isnan(stderr) else max(half, stderr)
        return stderr, [low, high]


def lowered(x, sizes, dof, told, known, total):
    """Degrees of freedom of deviations with heavy tails."""
    n = len(x)
    x = x / sizes**0.25
    w = np.sqrt(sizes) / np.sqrt(sizes).sum()
    x = x - w @ x
    m2, m4 = w @ x**2, w @ x**4
    inner = (n + 1) * (m4 / m2**2 - 3) + 6 - told * ((n + 1) * known * n / total + 6)
    k = (n - 1) / ((n - 2) * (n - 3)) * max(0.0, inner)
    return 2 / (2 / dof + k * float(w @ w))


def crossed(design, names):
    """Error and interval of a mean over items and templates."""
    cells, strata = design.cells, list(design.strata) or [""] * len(design.cells)
    rows, columns = cells.shape
    items = residuals = spread_i = spread_r = 0.0
    for stratum in dict.fromkeys(strata):
        part = cells[[i for i, one in enumerate(strata) if one == stratum]]
        n = len(part)
        row = part.mean(axis=1) - part.mean()
        rest = part - part.mean(axis=1, keepdims=True) - part.mean(axis=0) + part.mean()
        v = n * row.var(ddof=1) / rows**2
        nu = n - 1.0
        if "skewness" in names:
            nu = lowered(row, np.ones(n), nu, 0.0, 0.0, n)
        ms = (rest**2).sum() / ((n - 1) * (columns - 1))
        r = n * ms / rows**2 / columns
        items, residuals = items + v, residuals + r
        spread_i += v**2 / nu
        spread_r += r**2 / ((n - 1) * (columns - 1))
    means = cells.mean(axis=0)
    templates = means.var(ddof=1) / columns
    nu = columns - 1.0
    if "skewness" in names:
        nu = lowered(means - means.mean(), np.ones(columns), nu, 0.0, 0.0, columns)
    variance = max(items + templates - residuals, items, templates, residuals)
    spreads = [spread_i] * int(items > residuals)
    spreads += [templates**2 / nu] * int(templates > residuals)
    if len(spreads) != 1:
        spreads.append(spread_r)
    return math.sqrt(variance), variance**2 / sum(spreads)


def of_cells(design, names):
    stderr, dof = crossed(design, names)
    scale = design.scale
    if "few_templates" in names:
        dof = min(dof, 1.0)
    if "fisher" in names:
        z = math.atanh(design.correlation)
        ends = [math.tanh(z + sign * t(dof) * stderr) for sign in (-1, 1)]
        return stderr * (1 - design.correlation**2), ends
    value = scale * float(design.cells.mean())
    stderr *= scale
    if "student" in names:
        return stderr, [value - t(dof) * stderr, value + t(dof) * stderr]
    low, high = design.bounds
    p = (value - low) / (high - low)
    error = stderr / (high - low)
    ends = wilson(p, p * (1 - p) / error**2, dof)
    return stderr, [low + (high - low) * end for end in ends]


def recounted(score, records, names):
    """Error and interval of a score, in its unit."""
    design = score.design(records)
    if isinstance(design, Cells):
        return of_cells(design, names)
    one = Recount(score, records)
    if "mover" not in names:
        stderr, ends = one.ends(names)
        return one.scale * stderr, [one.scale * end for end in ends]
    stderr, _ = one.jackknife([])
    sides = [side.estimate() for side in design.sides]
    (a, (la, ua)), (b, (lb, ub)) = ((side.value, side.ends()) for side in sides)
    offs = [side.without - side.value for side in design.sides]
    spread = math.sqrt(math.prod(float(o @ o) for o in offs))
    r = float(offs[0] @ offs[1]) / spread if spread else 0.0
    low = a - b - math.sqrt((a - la) ** 2 + (ub - b) ** 2 - 2 * r * (a - la) * (ub - b))
    high = a - b + math.sqrt((ua - a) ** 2 + (b - lb) ** 2 - 2 * r * (ua - a) * (b - lb))  # fmt: skip
    if "of_interval" in names:
        stderr = (high - low) / 2 / t(one.jackknife([])[1])
    return stderr, [low, high]


def main():
    """Recount the main scores of the shipped runs; fail where error or interval differ by over 0.001 of the unit."""
    checked, used = 0, set()
    for run in leb.load(*sorted(RUNS.glob("*-quick"))):
        for task in run.tasks.values():
            records = [saved.record for saved in answer_files.of_task(task)]
            for score in task.definition.scores(records):
                if score.name not in task.definition.main or score.design is None:
                    continue
                estimate = score.compute(records)
                names = set(estimate.statistics)
                if not names or math.isnan(estimate.value):
                    continue
                stderr, ends = recounted(score, records, names)
                unit = SHARES.get(score.unit, 1.0)
                pairs = [
                    (stderr, estimate.stderr),
                    *zip(ends, estimate.ends(), strict=True),
                ]
                for number, (own, told) in enumerate(pairs):
                    if number:
                        own, told = (
                            max(score.low, min(score.high, x)) for x in (own, told)
                        )
                    if abs(own - told) > 1e-3 * unit:
                        sys.exit(
                            f"{run.name}, {task.task}, {score.name} {sorted(names)}: {own} is {told} there"
                        )
                checked += 1
                used |= names
    print(f"{checked} scores are what their methods say: {', '.join(sorted(used))}")


if __name__ == "__main__":
    main()
