"""Scores that generative models give a next sentence (Öztürk et al. 2023, Appendix E), whatever asks for it."""

from __future__ import annotations

import math
from collections.abc import Sequence


def next_sentence_scores(parts: Sequence[float]) -> dict[str, float]:
    """Compute every generative score of a next sentence from its log-likelihoods.

    Formula, with mean log-likelihoods of a token x (context), c (candidate after it), u (candidate alone) and f (both
    together): ``gen`` exp(c), the authors' case d; ``gen_full`` exp(f), case c; ``gen_orig`` exp(u - x), Nadeem et al.;
    ``gen_pmi`` exp(c - u), case e; ``gen_full_ratio`` exp(f - u), case f. Range: ``gen`` and ``gen_full`` 0..1, the
    ratios above 0. Undefined: a part without tokens -> nan. Source: Appendix E and the authors' code.

    Args:
        parts: Log-likelihoods in nats, each with its number of tokens: of the context, of the candidate after it, of
            the candidate alone.

    >>> {name: round(value, 3) for name, value in next_sentence_scores([-2.0, 2, -2.0, 1, -3.0, 1]).items()}
    {'gen': 0.135, 'gen_full': 0.264, 'gen_orig': 0.135, 'gen_pmi': 2.718, 'gen_full_ratio': 5.294}
    """
    x, c, u = (parts[i] / parts[i + 1] if parts[i + 1] else math.nan for i in (0, 2, 4))
    tokens = parts[1] + parts[3]
    f = (parts[0] + parts[2]) / tokens if parts[1] and parts[3] else math.nan
    return {
        "gen": math.exp(c),
        "gen_full": math.exp(f),
        "gen_orig": math.exp(u - x),
        "gen_pmi": math.exp(c - u),
        "gen_full_ratio": math.exp(f - u),
    }
