"""How a head's networks are fitted: as in the paper, and one that did better on the development rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.tasks.regard.classifiers.heads import Head, Layer

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]
BATCH, WEIGHT_DECAY, CLIP = 64, 1e-2, 1.0


@dataclass(frozen=True)
class Recipe:
    """A way to fit a head.

    Attributes:
        name: For ``--recipe``.
        version: Changes whenever the same data would give another head.
        summary: For the model card.
        fit: Training vectors and labels, those of the held-out fold, a seed; gives a head.
        folds: Whether the final head is the mean of the folds' (each stopped early on its own fold); else it is fitted
            on all development rows.
    """

    name: str
    version: str
    summary: str
    fit: Callable[[Vectors, Labels, Vectors, Labels, int], Head]
    folds: bool


def _class_weights(y: Labels) -> Any:
    import torch

    counts = np.maximum(np.bincount(y, minlength=len(REGARDS)), 1)
    return torch.tensor(len(y) / (len(REGARDS) * counts), dtype=torch.float32)


def _arrays(parameters: list[Any]) -> list[Layer]:
    arrays = [p.detach().clone().numpy() for p in parameters]
    return list(zip(arrays[::2], arrays[1::2], strict=True))


def _paper(x: Vectors, y: Labels, held_x: Vectors, held_y: Labels, seed: int) -> Head:
    """One network with hidden layers of 256 and 128: the weights at the lowest loss on the held-out fold."""
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = nn.Sequential(
            nn.Linear(x.shape[1], 256), nn.Linear(256, 128), nn.Tanh(), nn.Dropout(0.1), nn.Linear(128, len(REGARDS))
        )
        loss_of = nn.CrossEntropyLoss(weight=_class_weights(y))
        optimiser = torch.optim.AdamW(net.parameters(), lr=4e-5, weight_decay=WEIGHT_DECAY)
        xs, ys, held = torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(held_x)
        best, waited, kept = math.inf, 0, _arrays(list(net.parameters()))
        for _ in range(100):
            net.train()
            for chosen in torch.randperm(len(ys)).split(BATCH):
                optimiser.zero_grad()
                loss_of(net(xs[chosen]), ys[chosen]).backward()
                nn.utils.clip_grad_norm_(net.parameters(), CLIP)
                optimiser.step()
            net.eval()
            with torch.inference_mode():
                loss = float(nn.functional.cross_entropy(net(held), torch.from_numpy(held_y)))
            waited += 1
            if loss < best:
                best, waited, kept = loss, 0, _arrays(list(net.parameters()))
            if waited >= 10:
                break
    return Head([kept], ["none", "tanh"])


def _mixup(x: Vectors, y: Labels, held_x: Vectors, held_y: Labels, seed: int) -> Head:
    """Five networks with one hidden layer of 256, trained on mixtures of pairs; nothing is held out for them."""
    import torch
    from torch import nn

    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-6
    xs = torch.from_numpy((x - mean) / scale)
    ys = nn.functional.one_hot(torch.from_numpy(y), len(REGARDS)).float()
    weights, epochs, members = _class_weights(y), 25, []
    steps = epochs * math.ceil(len(y) / BATCH)
    for member in range(5):
        rng = np.random.default_rng([seed, member])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1000 * seed + member)
            net = nn.Sequential(nn.Linear(x.shape[1], 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, len(REGARDS)))
            optimiser = torch.optim.AdamW(net.parameters(), lr=3e-4, weight_decay=WEIGHT_DECAY)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
            for _ in range(epochs):
                for chosen in torch.randperm(len(ys)).split(BATCH):
                    share, other = float(rng.beta(0.4, 0.4)), chosen[torch.randperm(len(chosen))]
                    mixed, target = (share * part[chosen] + (1 - share) * part[other] for part in (xs, ys))
                    optimiser.zero_grad()
                    log_p = torch.log_softmax(net(mixed), dim=1)
                    (-(target * log_p * weights).sum(dim=1).mean()).backward()
                    nn.utils.clip_grad_norm_(net.parameters(), CLIP)
                    optimiser.step()
                    schedule.step()
        (weight, bias), last = _arrays(list(net.parameters()))
        # standardisation becomes part of the first layer
        first = (weight / scale).astype(np.float32), (bias - weight @ (mean / scale)).astype(np.float32)
        members.append([first, last])
    return Head(members, ["relu"])


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "paper",
            "1",
            "the paper's: layers of 256 and 128, tanh and 10% dropout, AdamW 4e-5, batches of 64, weighted "
            "cross-entropy, stopped early on each fold; the folds' mean",
            _paper,
            folds=True,
        ),
        Recipe(
            "mixup",
            "1",
            "a layer of 256, 50% dropout, mixup 0.4, AdamW 3e-4 with cosine decay over 25 epochs, weighted "
            "cross-entropy; the mean of five seeds on all development rows",
            _mixup,
            folds=False,
        ),
    )
}
