"""Digits lost on the way, in forward or in backward, are not called mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from own_mistakes import draw

import nbautograd
from nbautograd.core.checking.steps import ladder

GRID = 2.0**-52  # what is left of a number near 1 lies on a grid like this


def climbed(slope: float, offset: float) -> tuple[float, float]:
    """The derivative and its error bar for a line whose values were rounded to the grid."""

    def values(x):
        return np.round((slope * np.asarray(x) + offset) / GRID)[:, None] * GRID * 0.99999

    h, middle = ladder.factors(), values([0.0])[0]
    up, down, table = values(h), values(-h), values(ladder.TABLE)
    noise = ladder.noise_level(middle, table, np.concatenate([up, down]), GRID, np.zeros(1))
    steps = h[:, None]
    series = ladder.LadderValues(up, down, steps, steps, middle, noise)
    noise = np.maximum(noise, ladder.wobble(series, 64 * GRID))
    found = ladder.two_sided(ladder.LadderValues(up, down, steps, steps, middle, noise))
    return float(found.value[0]), float(found.error[0])


@pytest.mark.parametrize("scale", [1e-10, 1e-8, 1e-6, 1e-5])
def test_error_bars_know_of_a_grid(scale: float) -> None:
    random = np.random.default_rng(3)
    for slope, offset in zip(random.uniform(0.2, 1, 200) * scale, random.uniform(0, 1e-6, 200), strict=True):
        value, error = climbed(float(slope), float(offset))
        assert abs(value - 0.99999 * slope) <= 10 * error


@pytest.mark.parametrize("seed", range(4))
def test_a_very_sure_softmax_is_right(seed: int) -> None:
    x = draw(6, 5, seed=seed).detach() * 9
    assert nbautograd.gradcheck(lambda x: x.log_softmax(-1), x.requires_grad_(), order=1).verdict == "right"


@pytest.mark.parametrize("value", [4.826984902407649, 0.3, 1.7, -7.1])
def test_the_rounding_of_a_backward_is_not_held_against_it(value: float) -> None:
    def normed(x, w):
        return torch.nn.functional.layer_norm(x, (1,), w)

    x, w = (torch.tensor([value], dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert nbautograd.gradcheck(normed, (x, w), order=1).verdict != "wrong"
