"""How a head's networks are fitted: as in the paper, and one that did better on the development rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.tasks.regard.classifiers.cross_validation import Recipe
from lm_eval_bias.tasks.regard.classifiers.heads import Head, Layer
from lm_eval_bias.tasks.regard.classifiers.training_data import Features, Labels

if TYPE_CHECKING:
    import torch
    from torch import nn

BATCH, WEIGHT_DECAY, CLIP = 64, 1e-2, 1.0


def _class_weights(y: Labels) -> torch.Tensor:
    import torch
    from sklearn.utils.class_weight import compute_class_weight

    weights = compute_class_weight("balanced", classes=np.arange(len(REGARDS)), y=y)
    return torch.tensor(weights, dtype=torch.float32)


def _step(net: nn.Module, optimiser: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    from torch.nn.utils import clip_grad_norm_

    optimiser.zero_grad()
    loss.backward()
    clip_grad_norm_(net.parameters(), CLIP)
    optimiser.step()


def _arrays(net: nn.Module) -> list[Layer]:
    arrays = [parameter.detach().clone().numpy() for parameter in net.parameters()]
    return list(zip(arrays[::2], arrays[1::2], strict=True))


def _paper(x: Features, y: Labels, held_x: Features, held_y: Labels, seed: int) -> Head:
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
        xs, ys, held_xs = torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(held_x)
        best, waited, layers = math.inf, 0, _arrays(net)
        for _ in range(100):
            net.train()
            for batch in torch.randperm(len(ys)).split(BATCH):
                _step(net, optimiser, loss_of(net(xs[batch]), ys[batch]))
            net.eval()
            with torch.inference_mode():
                loss = float(nn.functional.cross_entropy(net(held_xs), torch.from_numpy(held_y)))
            waited += 1
            if loss < best:
                best, waited, layers = loss, 0, _arrays(net)
            if waited >= 10:
                break
    return Head([layers], ["none", "tanh"])


def _mean_of_folds(folds: Sequence[Head]) -> Head:
    return Head([layers for head in folds for layers in head.members], folds[0].activations)


def _mixup(x: Features, y: Labels, held_x: Features, held_y: Labels, seed: int) -> Head:
    """Five networks with one hidden layer of 256, trained on mixtures of pairs; nothing is held out for them."""
    import torch
    from torch import nn

    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-6
    xs = torch.from_numpy((x - mean) / scale)
    ys = nn.functional.one_hot(torch.from_numpy(y), len(REGARDS)).float()
    loss_of, epochs, members = nn.CrossEntropyLoss(weight=_class_weights(y)), 25, []
    steps = epochs * math.ceil(len(y) / BATCH)
    for member in range(5):
        rng = np.random.default_rng([seed, member])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1000 * seed + member)
            net = nn.Sequential(nn.Linear(x.shape[1], 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, len(REGARDS)))
            optimiser = torch.optim.AdamW(net.parameters(), lr=3e-4, weight_decay=WEIGHT_DECAY)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
            for _ in range(epochs):
                for batch in torch.randperm(len(ys)).split(BATCH):
                    share, partners = float(rng.beta(0.4, 0.4)), batch[torch.randperm(len(batch))]
                    mixed, target = (share * part[batch] + (1 - share) * part[partners] for part in (xs, ys))
                    _step(net, optimiser, loss_of(net(mixed), target))
                    schedule.step()
        (weight, bias), output = _arrays(net)
        # standardisation becomes part of the first layer
        hidden = (weight / scale).astype(np.float32), (bias - weight @ (mean / scale)).astype(np.float32)
        members.append([hidden, output])
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
            _mean_of_folds,
        ),
        Recipe(
            "mixup",
            "1",
            "a layer of 256, 50% dropout, mixup 0.4, AdamW 3e-4 with cosine decay over 25 epochs, weighted "
            "cross-entropy; the mean of five seeds on all development rows",
            _mixup,
        ),
    )
}
