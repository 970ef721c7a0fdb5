"""Finite differences where all elements of an input move at once: one pair of forwards, asked for once."""

from __future__ import annotations

import numpy as np

from nbautograd.core.checking.jacobian import central_differences
from nbautograd.core.checking.jacobian.forward_values import Forward
from nbautograd.core.checking.jacobian.layout import Layout
from nbautograd.core.numerics.arrays import Array

PERTURBATION = 0.1  # how far elements move, relative to their size or 1, when it only matters whether anything changes
Response = tuple[Array, list[Array]]  # how far each element of the input moved, and how each output changed


class JointPerturbations:
    """Responses of all outputs to perturbations of a whole input.

    Args:
        forward: values of the function.
        random: chooses directions.
        eps: size of all steps as the caller gave it, or None for one by precision, at random.

    Attributes:
        steps: the step of each element of each input; random signs and sizes let no two couplings cancel by chance.
    """

    def __init__(self, forward: Forward, random: np.random.Generator, eps: float | None) -> None:
        self.forward, self.random = forward, random
        self.steps = [
            self._varied(central_differences.first_step(forward, j, eps), eps is None)
            for j in range(len(forward.points))
        ]
        self._by_steps: dict[int, Response] = {}
        self._in_random_direction: dict[int, Response] = {}

    def by_steps(self, j: int) -> Response:
        """By each element's own step, as ``central_differences.central`` would take them."""
        if j not in self._by_steps:
            self._by_steps[j] = self._moved(j, self.steps[j])
        return self._by_steps[j]

    def in_random_direction(self, j: int) -> Response:
        """In a random direction, which has nothing to do with the steps."""
        if j not in self._in_random_direction:
            lots = self.random.random(self.steps[j].shape) - 0.5
            self._in_random_direction[j] = self._moved(j, np.copysign(0.5 + np.abs(lots), lots) * self.steps[j])
        return self._in_random_direction[j]

    def blocks_are_independent(self, i: int, j: int, layout: Layout) -> bool:
        """Show that no output of a diagonal block moves unless an input of that block does, by group testing.

        The numbers of two different blocks differ in some bit. For each bit all blocks with it move and those without
        it are compared in every bit of their values, then the other way round: so each ordered pair of blocks is
        tested once, by 2 log2(blocks) forwards (Dorfman 1943), however coarse or noisy the values are.
        """
        blocks, _, cols = layout.sizes
        point, here = self.forward.points[j], layout.rows(self.forward.values[i][None])[0]
        bits = [(np.arange(blocks) >> bit) & 1 for bit in range((blocks - 1).bit_length())]
        for mask in (m.astype(bool) for bit in bits for m in (bit, 1 - bit)):
            far = PERTURBATION * layout.input_like(np.repeat(mask[None, :, None], cols, axis=2))[0]
            moved = self.forward.rounded(j, (point + far * np.maximum(1.0, np.abs(point)))[None])
            found = layout.rows(self.forward.at(j, moved)[i])[0]
            if not np.array_equal(found[~mask], here[~mask], equal_nan=True):
                return False
        return True

    def _moved(self, j: int, by: Array) -> Response:
        spacing, changes = central_differences.differences(self.forward, j, by[None])
        return spacing[0], [changes[i][0] for i in range(len(self.forward.shapes))]

    def _varied(self, steps: Array, sizes: bool) -> Array:
        lots = self.random.random(steps.shape) - 0.5
        varied: Array = steps * np.copysign(0.75 + 0.5 * np.abs(lots) if sizes else 1.0, lots)
        return varied
