"""Questions by four (a negative and a non-negative one, each ambiguous and disambiguated), and their options' orders.

No place is the better one to take. A model that always takes the same place answers an ambiguous pair of questions once
along and once against the stereotype. In disambiguated contexts it gets one of the two questions right, unless its
place holds "unknown" (choice 2): so biased and counter-biased contexts must show that equally often at every place,
from the beginning on.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from lm_eval_bias.core import Data
from lm_eval_bias.tasks.shared.bbq_records import goes_along

Quadruple = Sequence[Data]  # both questions, each ambiguous and disambiguated
Stratum = tuple[
    str, bool
]  # template, and whether the disambiguated contexts are biased
BLOCK = 12  # items of three quadruples of one direction, which show "unknown" once at every place

# by the place of "unknown" (choice 2); the second time round the two persons are swapped
ORDERS = (([2, 0, 1], [2, 1, 0]), ([1, 2, 0], [0, 2, 1]), ([0, 1, 2], [1, 0, 2]))


def _blocks(sizes: Mapping[Stratum, int]) -> Iterator[list[Stratum]]:
    """Yield blocks of three strata of one direction, from the least used templates."""
    left = Counter(sizes)
    came = Counter[str]()
    taken = Counter[bool]()
    number = {name: int(name.rpartition("-")[2]) for name, _ in sizes}
    total = Counter[bool]()
    for (_, direction), size in sizes.items():
        total[direction] += size
    while left:
        turns: dict[bool, list[tuple[int, int, Stratum]]] = {}
        for (name, direction), size in left.items():
            for k in range(min(size, 3)):
                turn = came[name] + k, number[name], (name, direction)
                insort(turns.setdefault(direction, []), turn)
        whole = {d: waiting for d, waiting in turns.items() if len(waiting) >= 3}
        whole = whole or turns
        # the direction whose templates wait longest; where both do, the one that is behind its share
        direction = min(
            whole,
            key=lambda d: ([turn[0] for turn in whole[d][:3]], taken[d] / total[d], d),
        )
        block = [s for _, _, s in whole[direction][:3]]
        taken[direction] += len(block)
        came.update(name for name, _ in block)
        left = +(left - Counter(block))
        yield block


def arranged(quadruples: Sequence[Quadruple]) -> list[tuple[Quadruple, list[int]]]:
    """Order the quadruples, each with the order of its prompts' choices.

    They come in turn from every template, so that any beginning is spread over these. Three after one another have
    contexts of one direction and show "unknown" once at every place; within a template and direction, the places
    are used about equally often (numbers differ by 2 at most), and the two persons swap with every round. Quadruples
    that nobody can answer, since both persons have the same name, come last.

    Args:
        quadruples: In the order of the files.
    """
    parts: tuple[list[Quadruple], list[Quadruple]] = [], []
    for quadruple in quadruples:
        parts[len(set(quadruple[0]["choices"])) < 3].append(quadruple)
    return [pair for part in parts for pair in _arranged(part)]


def _arranged(quadruples: Sequence[Quadruple]) -> Iterator[tuple[Quadruple, list[int]]]:
    queues: dict[Stratum, deque[Quadruple]] = defaultdict(deque)
    for quadruple in quadruples:
        stratum = quadruple[0]["template"], goes_along(quadruple)
        queues[stratum].append(quadruple)
    used = Counter[tuple[Stratum, int]]()

    def crowding(block: Sequence[Stratum], places: Sequence[int]) -> tuple[int, int]:
        after = Counter(used)
        template = 0
        for (name, direction), place in zip(block, places, strict=True):
            after[(name, direction), place] += 1
            template += used[(name, not direction), place]
        return sum(n * n for n in after.values()), template

    for block in _blocks({name: len(queue) for name, queue in queues.items()}):
        places = min(
            permutations(range(3), len(block)),
            key=lambda places: crowding(block, places),
        )
        for name, place in zip(block, places, strict=True):
            yield queues[name].popleft(), ORDERS[place][used[name, place] % 2]
            used[name, place] += 1
