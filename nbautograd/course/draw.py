"""Draw: random inputs for an exercise, the same for the same seed on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
SIZES = range(2, 8)


class InputGenerator:
    """A seeded generator of inputs; everything floating comes in float64.

    Args:
        seed: the same seed gives the same draws in the same order.
        turn: which of the points that a check takes: another one has other numbers and other sizes.

    Example:
        >>> from nbautograd.course.draw import InputGenerator
        >>> draw = InputGenerator(0)
        >>> draw.normal(3, 4).shape, draw.integers(0, 5, 2).dtype
        (torch.Size([3, 4]), torch.int64)
        >>> bool((InputGenerator(1).normal(2) == InputGenerator(1).normal(2)).all())
        True
    """

    def __init__(self, seed: int = 0, turn: int = 0) -> None:
        self.seed, self.turn = seed, turn
        self.generator = torch.Generator().manual_seed(seed + turn)
        self._order = torch.randperm(len(SIZES), generator=torch.Generator().manual_seed(seed)).tolist()

    def sizes(self, count: int) -> tuple[int, ...]:
        """Different whole numbers from 2 to 7, for shapes; in another turn each of them is another one.

        So an answer that is right for one set of sizes alone is wrong within one check, whatever the seed.
        """
        return tuple(SIZES[(place + self.turn) % len(SIZES)] for place in self._order[:count])

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers of this shape; no shape gives a tensor without dimensions."""
        return torch.randn(shape, generator=self.generator, dtype=torch.float64)

    def uniform(self, lo: float, hi: float, *shape: int) -> Tensor:
        """Return numbers from ``lo`` up to, but not including, ``hi``."""
        return torch.rand(shape, generator=self.generator, dtype=torch.float64) * (hi - lo) + lo

    def integers(self, lo: int, hi: int, *shape: int) -> Tensor:
        """Whole numbers from ``lo`` up to, but not including, ``hi``, as int64."""
        return torch.randint(lo, hi, shape, generator=self.generator)

    def away_from(self, tensor: Tensor, value: float, by: float) -> Tensor:
        """Move the elements of a tensor closer to ``value`` than ``by`` out to that distance, each to its side."""
        side = torch.where(tensor < value, -by, by)
        return torch.where((tensor - value).abs() < by, value + side, tensor)

    def choice(self, items: Sequence[T]) -> T:
        """Return one of these."""
        return items[int(torch.randint(len(items), (), generator=self.generator))]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """Return several of these, each once."""
        return [items[k] for k in torch.randperm(len(items), generator=self.generator)[:count].tolist()]
