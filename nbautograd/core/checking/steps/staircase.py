"""Is a function a staircase along an input: flat wherever one looks, yet not constant."""

from __future__ import annotations

import numpy as np

from nbautograd.core.checking.jacobian.forward_values import Values
from nbautograd.core.checking.jacobian.layout import Matrices
from nbautograd.core.numerics.arrays import Array

# How far from x a staircase is looked at, in standard deviations of a random move of each element
DISTANCES = (0.3, 1.0, 3.0, 10.0)


def piecewise_constant(forward: Values, ij: tuple[int, int], matrices: Matrices, jumps: Array) -> bool:
    """Return True where backward claims a slope and the function is flat, here and at random points further off.

    Such a function with a gradient is a surrogate (straight-through, spiking neurons), not a mistake of arithmetic. A
    function that has a slope somewhere else (a clamp) or never changes at all is not called flat. Where it jumps at
    the very input (``jumps``, like the stored matrices) it may be flat all the same.
    """
    if matrices.numerical[~jumps].any() or not matrices.analytical.any() or not matrices.numerical.size:
        return False
    i, j = ij
    random = np.random.default_rng(0)
    point = forward.points[j]
    far = np.stack([point + f * random.normal(size=point.shape) for f in DISTANCES])
    step = float(forward.eps ** (1 / 3)) * 1e-2 * np.maximum(1.0, np.abs(far))
    here, up, down = (forward.at(j, p)[i] for p in (far, far + step, far - step))
    level = np.isclose(up, down, rtol=0, atol=0) | np.isnan(up - down)
    size = np.abs(forward.values[i])
    moves = np.abs(here - forward.values[i]) > 1e3 * forward.eps * size  # more than digits lost in a large value
    return bool(moves.any() and level.mean() > 0.99)
