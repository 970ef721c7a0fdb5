"""Both Jacobians of all blocks, from as few backwards and forwards as their verified structure allows."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.budget import allowed_elements
from nbautograd.core.checking.directional import borne_out
from nbautograd.core.checking.jacobian import central_differences, sample, structure
from nbautograd.core.checking.jacobian.analytical import Rows, rows_of_forward
from nbautograd.core.checking.jacobian.central_differences import JointPerturbations
from nbautograd.core.checking.jacobian.forward_values import Forward, Values
from nbautograd.core.checking.jacobian.layout import MOST_ENTRIES, BlockLayout, Matrices
from nbautograd.core.checking.jacobian.structure import pull_back
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.checking.progress import PARTS, Progress
from nbautograd.core.forks import cached
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.arrays import Array, epsilon, from_array, real_shape, to_array
from nbautograd.core.numerics.constants import (
    BACKWARD_ROUNDINGS,
    BACKWARD_ROUNDINGS_OF_HALF,
    COUPLED,
    ERROR_BARS,
    HALF,
    LOOSEST,
    SIGNIFICANT,
    SLIGHT,
    SUM_ROUNDINGS,
)
from nbautograd.core.stumbles import users_errors

MOST_WORK = 2_000_000_000  # elements through forward and backward, some ten seconds; beyond that a sample is taken
SUMMED_ANEW = 1e-10  # relative: what sums in double precision, in another order, are apart at most
VERIFIED = 1e4  # tolerances by which the stored rows may miss a plain backward of their random combination
DOUBLE = float(np.finfo(np.float64).eps)
FEW_COLUMNS, DENSE = 32, 0.25  # columns, and part of all entries, from which on a colouring is worth its time
Key = tuple[int, int]  # numbers of output and input, counted among the differentiable ones


@dataclasses.dataclass
class FirstPass:
    """The two Jacobians of a block as the first pass found them.

    Attributes:
        matrices: the numbers.
        forward: values of the function, for taking a second look; of a sample only its elements.
        directions: along which the numerical one was taken, for the block's output and input.
        linear: False when backward of a random combination was not the combination of the rows.
        verified: False when finite differences along a random direction disagreed with the numerical Jacobian.
        agreed: True when the two are known to agree to seven digits everywhere.
        exact: True when the numerical one is by autograd of the forward, which a difference bears out.
    """

    matrices: Matrices
    forward: Values
    directions: central_differences.Directions
    linear: bool = True
    verified: bool = True
    agreed: bool = False
    exact: bool = False

    @property
    def output(self) -> Array:
        """The output at the inputs."""
        return self.forward.values[self.directions.ij[0]]


def _elements(layout: BlockLayout) -> int:
    _, rows, cols = layout.sizes
    return (rows + 2 * cols) * (math.prod(layout.output_shape) + math.prod(layout.input_shape))


class Assembly:
    """Takes both Jacobians apart and puts them together.

    Args:
        problem: what is checked; a session of it must be open.
        eps: step of the first pass, or None for one by precision.
        progress: told how far it is.
        by_forward: True to take autograd of the forward for the numerical Jacobian where a difference bears it out:
            for the points at which a cause is confirmed, of which there are many.

    Attributes:
        wanted: positions of the outputs that are differentiated.
        forward: values of the function.
        steps: steps of the first pass, per input.
        probes: for each output taken so far a random cotangent and backward's answer per input.
        agreed: the blocks in which differences agree with backward everywhere, to seven digits.
        partial: the block in work, its numerical entries NaN where they were not asked yet; for when it is interrupted.
    """

    def __init__(
        self,
        problem: Problem,
        outputs: Outputs,
        eps: float | None = None,
        progress: Progress | None = None,
        by_forward: bool = False,
    ) -> None:
        self.progress = progress or Progress()
        self._limit = allowed_elements(MOST_ENTRIES)
        self.problem, self.outputs = problem, outputs
        self.wanted = problem.differentiable_outputs(outputs)
        self.random = draws.array_generator(problem.seed, "probes")
        leaves = [outputs.inputs[i] for i in problem.differentiable]
        self.rows = [Rows(problem, outputs[i], leaves, self.progress, outputs) for i in self.wanted]
        self._epsilon = max(map(epsilon, (*leaves, *(outputs[i] for i in self.wanted))), default=0.0)
        self.forward = Forward(problem, outputs, self.wanted, self.progress)
        self.fixed_step = eps is not None
        self.by_forward = by_forward and eps is None and self.spacing <= DOUBLE
        self.joint = JointPerturbations(self.forward, self.random, eps)
        self.steps = self.joint.steps
        self.combos: dict[Key, set[structure.Pair]] = {}
        self._diagonal: dict[Key, Array] = {}
        self._matrices: dict[Key, Matrices] = {}
        self.linear: dict[Key, bool] = {}
        self.agreed: set[Key] = set()
        self.probes: dict[int, tuple[Array, list[Array]]] = {}
        self.partial: dict[Key, Matrices] = {}

    @property
    def spacing(self) -> float:
        """Spacing at 1 of the coarsest numbers that inputs and outputs are made of, or that are met inside."""
        return max(self._epsilon, self.problem.casts.coarsest)

    @property
    def tolerance(self) -> float:
        """Return the relative difference up to which two backwards that should agree do."""
        spacing = self.spacing
        return max(SUMMED_ANEW, (BACKWARD_ROUNDINGS if spacing < HALF else BACKWARD_ROUNDINGS_OF_HALF) * spacing)

    def blocks(self) -> Iterator[tuple[Key, FirstPass]]:
        """Yield all blocks, output by output."""
        for i in range(len(self.wanted)):
            probe = structure.probe(real_shape(self.outputs[self.wanted[i]]), self.random)
            answers = self._probe(i, probe)
            self.probes[i] = (probe, answers)
            for j, raw in self._of_output(i, probe, answers):
                yield (i, j), raw
                self.partial.clear()
                self.progress.done(i * len(self.steps) * PARTS + self._after(j))

    def _stage(self, i: int, j: int, span: tuple[int, int], of: int) -> None:
        """Name the stage of the next questions: this block, or all of this output when they go to backward."""
        start = i * len(self.steps) * PARTS
        names = self.problem.output_names, self.problem.input_names
        what = f"d {names[0][self.wanted[i]]} / d {names[1][self.problem.differentiable[j]]}"
        self.progress.stage(start + span[0], start + span[1], of, what)

    def _after(self, j: int) -> int:
        """Return the steps of an output done with its block of input j: half are backward's, of all inputs."""
        return (len(self.steps) + j + 1) * PARTS // 2

    def _probe(self, i: int, probe: Array) -> list[Array]:
        """Ask backward for a random cotangent, plain and scaled; note which dimensions may go together."""
        rows = self.rows[i]
        plain = rows.one(probe)
        rest = self._not_diagonal(i, probe, plain)
        factors = structure.scales(probe.shape, self.random) if rest else {}
        scaled = rows.many(np.stack([probe * f for f in factors.values()])) if factors else [np.empty(0)] * len(plain)
        for j in rest:
            by_dim = {a: scaled[j][n] for n, a in enumerate(factors)}
            self.combos[i, j] = structure.candidates(factors, plain[j], by_dim, self.tolerance)
        return plain

    def _not_diagonal(self, i: int, probe: Array, plain: list[Array]) -> list[int]:
        """Return the inputs whose blocks are not plainly diagonal; of those that are, one backward tells all.

        What differences say where everything moves at once confirms that; where they do not, one of ones is asked too,
        and how coarse the numbers of backward are, which all that follows is compared by.
        """
        alike = [j for j, answer in enumerate(plain) if answer.shape == probe.shape and answer.size > 1]
        for j in list(alike):
            diagonal = plain[j] / probe  # exact, by powers of two
            spacing, changes = self.joint.by_steps(j)
            if structure.agree(diagonal.reshape(-1, 1, 1), (changes[i] / spacing).reshape(-1, 1, 1)):
                self.combos[i, j] = {(d, d) for d, size in enumerate(probe.shape) if size > 1}
                self._diagonal[i, j] = diagonal
                self.agreed.add((i, j))
                alike.remove(j)
        if any((i, j) not in self.agreed for j in range(len(plain))):
            ones = self.rows[i].one(np.ones(probe.shape), self.problem.watched_backward())
            for j in alike:
                if structure.elementwise(ones[j], probe, plain[j], self.tolerance):
                    self.combos[i, j] = {(d, d) for d, size in enumerate(probe.shape) if size > 1}
                    self._diagonal[i, j] = ones[j]
        return [j for j in range(len(plain)) if (i, j) not in self._diagonal]

    def _of_output(self, i: int, probe: Array, answers: list[Array]) -> Iterator[tuple[int, FirstPass]]:
        shapes = [p.shape for p in self.forward.points]
        layouts = {
            j: BlockLayout(probe.shape, shape, structure.matching(self.combos[i, j])) for j, shape in enumerate(shapes)
        }
        large = {
            j for j, layout in layouts.items() if math.prod(layout.sizes) > self._limit or _elements(layout) > MOST_WORK
        }
        known = {
            j: layouts[j].rows(self._diagonal[i, j][None])[0][:, :, None]
            for j in layouts
            if (i, j) in self._diagonal and j not in large
        }
        rest = {j: layout for j, layout in layouts.items() if j not in large and j not in known}
        analytical = {**known, **self._analytical(i, rest, probe, answers)}
        layouts.update(rest)
        exact = self._by_forward(i, {j: layouts[j] for j in analytical}, probe) if self.by_forward else {}
        for j in layouts:
            if j in large:
                keep = functools.partial(self.partial.__setitem__, (i, j))
                parts = sample.sampled(self.rows[i], self.forward, (i, j), self.steps[j], self.random, keep)
                yield j, FirstPass(*parts)
            elif j in exact:
                matrices = self._matrices[i, j] = Matrices(layouts[j], analytical[j], exact[j])
                directions = central_differences.single((i, j), layouts[j])
                yield j, FirstPass(matrices, self.forward, directions, self.linear.get((i, j), True), exact=True)
            else:
                yield j, self._numerical(i, j, layouts[j], analytical[j])

    def _analytical(
        self, i: int, layouts: dict[int, BlockLayout], probe: Array, answers: list[Array]
    ) -> dict[int, Array]:
        found = self._fill(i, layouts)
        doubtful = [j for j in found if not self._rows_verified(layouts[j], found[j], probe, answers[j])]
        if doubtful and self.rows[i].batched:
            self.rows[i].batched = False
            found.update(self._fill(i, {j: layouts[j] for j in doubtful}))
            doubtful = [j for j in doubtful if not self._rows_verified(layouts[j], found[j], probe, answers[j])]
        for j in doubtful:
            self.linear[i, j] = False
            dense = BlockLayout(layouts[j].output_shape, layouts[j].input_shape)
            if layouts[j].pairs and math.prod(dense.sizes) <= self._limit:
                layouts[j] = dense
                found.update(self._fill(i, {j: dense}))
        return found

    @cached
    def rows_of_forward(self) -> tuple[list[Rows | None], str]:
        """Return the rows of each output by autograd of the forward, or the reason why there are none."""
        return rows_of_forward(self.problem, self.outputs, self.wanted)

    def _by_forward(self, i: int, layouts: dict[int, BlockLayout], probe: Array) -> dict[int, Array]:
        found, absent = self.rows_of_forward
        rows = None if absent else found[i]
        if rows is None:
            return {}
        data = dict[int, Array]()
        with users_errors():
            answers = rows.one(probe)
            v = [from_array(probe, y) if k == self.wanted[i] else None for k, y in enumerate(self.outputs)]
            gradients = [from_array(g, x) for g, x in zip(answers, rows.leaves, strict=True)]
            # in one direction terms may cancel, and curvature rule
            seeds = (draws.child(self.problem.seed, k) for k in (0, 1))
            if not any(borne_out(self.problem, self.outputs, v, gradients, seed) for seed in seeds):
                return {}
            data = self._fill(i, layouts, rows)
        return {j: d for j, d in data.items() if self._rows_verified(layouts[j], d, probe, answers[j])}

    def _fill(self, i: int, layouts: dict[int, BlockLayout], rows: Rows | None = None) -> dict[int, Array]:
        rows, found = rows or self.rows[i], dict[int, Array]()
        cotangents = sum(layouts[group[0]].sizes[1] for group in _with_the_same_cotangents(layouts))
        self._stage(i, 0, (0, len(self.steps) * PARTS // 2), cotangents)
        for group in _with_the_same_cotangents(layouts):
            first = layouts[group[0]]
            data = {j: np.zeros(layouts[j].sizes) for j in group}
            _, count, _ = first.sizes
            step = max(1, self._limit // max(1, math.prod(first.output_shape)))
            for start in range(0, count, step):
                chosen = np.arange(start, min(start + step, count))
                answers = rows.many(structure.seeds(first, chosen))
                for j in group:
                    data[j][:, chosen, :] = layouts[j].cols(answers[j]).transpose(1, 0, 2)
            found.update(data)
        return found

    def _rows_verified(self, layout: BlockLayout, data: Array, probe: Array, answer: Array) -> bool:
        """Verify the structure of the rows: their random combination must be a plain backward of the same cotangent."""
        found = structure.pull_back(layout, data, probe)
        bound = structure.pull_back(layout, np.abs(data), np.abs(probe))
        loosest = min(VERIFIED * self.tolerance, LOOSEST) * (bound + np.abs(answer).max(initial=0))
        with np.errstate(invalid="ignore"):
            return not bool((np.abs(found - answer) > loosest).any())

    def _numerical(self, i: int, j: int, layout: BlockLayout, analytical: Array) -> FirstPass:
        """Add the numerical Jacobian; look for couplings that the analytical one lacks."""
        raw = self._differences(i, j, layout, analytical)
        if (
            raw.verified
            or not layout.pairs
            or (layout.sizes[2] == 1 and self.joint.blocks_are_independent(i, j, layout))
        ):
            return raw
        pairs = structure.matching(self.combos[i, j] & self._seen_numerically(i, j))
        smaller = BlockLayout(layout.output_shape, layout.input_shape, pairs)
        if pairs == layout.pairs or math.prod(smaller.sizes) > self._limit:
            return raw
        data = self._fill(i, {j: smaller})[j]
        reduced = self._differences(i, j, smaller, data)
        dense = BlockLayout(layout.output_shape, layout.input_shape)
        if reduced.verified or not pairs or math.prod(dense.sizes) > self._limit // 16:
            return reduced
        return self._differences(i, j, dense, self._fill(i, {j: dense})[j])

    def _differences(self, i: int, j: int, layout: BlockLayout, analytical: Array) -> FirstPass:
        pattern = (analytical != 0).any(axis=0)
        directions = self._directions((i, j), layout, pattern)
        self._stage(i, j, (self._after(j - 1), self._after(j) - 1), 2 * len(directions.groups))
        grouped = directions.pattern is not None
        asked = pattern if grouped else np.ones_like(pattern)
        numerical: Array = np.where(asked[None], np.nan, np.zeros(layout.sizes))
        self.partial[i, j] = Matrices(layout, analytical, numerical)
        if layout.sizes[2] == 1:
            spacing, changes = self.joint.by_steps(j)
            numerical[:, :, 0] = central_differences.slopes(layout, spacing, changes[i])
        else:
            central_differences.numerical_jacobian(self.forward, directions, self.steps[j], numerical)
        # steps of random sizes: where all entries agree no coupling can hide, except in rows that no column reaches
        agreed = (layout.sizes[2] == 1 and (i, j) in self.agreed) or structure.agree(analytical, numerical)
        # by as many digits as _structure_verified asks for
        verified = (agreed or structure.agree(analytical, numerical, SIGNIFICANT, SLIGHT)) and not (
            self.fixed_step or grouped
        )
        verified = verified or self._structure_verified(i, j, layout, numerical)
        if not verified and grouped:
            directions = central_differences.single((i, j), layout)
            numerical = central_differences.numerical_jacobian(self.forward, directions, self.steps[j])
            agreed = False
            verified = self._structure_verified(i, j, layout, numerical)
        if agreed:
            self.agreed.add((i, j))
        matrices = self._matrices[i, j] = Matrices(layout, analytical, numerical)
        return FirstPass(matrices, self.forward, directions, self.linear.get((i, j), True), verified, agreed)

    def _directions(self, ij: Key, layout: BlockLayout, pattern: Array) -> central_differences.Directions:
        cols = pattern.shape[1]
        if cols >= FEW_COLUMNS and pattern.any() and pattern.mean() <= DENSE:
            groups = structure.colour_columns(pattern)
            if 2 * len(groups) < cols:
                return central_differences.Directions(ij, layout, tuple(groups), pattern)
        return central_differences.single(ij, layout)

    def _structure_verified(self, i: int, j: int, layout: BlockLayout, numerical: Array) -> bool:
        """Verify the structure of the columns: J u must be the difference along a random direction u."""
        spacing, changes = self.joint.in_random_direction(j)
        expected = structure.push_forward(layout, numerical, spacing)
        size = structure.push_forward(layout, np.abs(numerical), np.abs(spacing))
        value = np.abs(self.forward.values[i])
        noise = SUM_ROUNDINGS * self.forward.eps * (value + value.max(initial=0.0)) + ERROR_BARS * self.forward.noise[i]
        smooth = float(self.forward.eps ** (1 / 3)) / 6
        with np.errstate(invalid="ignore"):
            return not bool((np.abs(changes[i] - expected) > smooth * size + noise).any())

    def numerical_response(self, i: int, j: int, probe: Array) -> tuple[Array, Array]:
        """Return (u, (v' J) * u by elements) of a block from finite differences, for the cotangent v = ``probe``."""
        held = self._matrices.get((i, j))
        if held is None:  # only a sample is known
            spacing, changes = self.joint.in_random_direction(j)
            return spacing, probe * changes[i]
        return self.steps[j], structure.pull_back(held.layout, held.numerical, probe) * self.steps[j]

    def _seen_numerically(self, i: int, j: int) -> set[structure.Pair]:
        """Return the pairs of dimensions for which finite differences scale as the direction was scaled."""
        direction: Array = np.asarray(self.random.normal(size=self.forward.points[j].shape))
        factors = structure.scales(direction.shape, self.random)
        stack = np.stack([direction, *(direction * f for f in factors.values())])
        _, changes = central_differences.differences(self.forward, j, stack * self.steps[j])
        by_dim = {b: changes[i][n + 1] for n, b in enumerate(factors)}
        return {(a, b) for b, a in structure.candidates(factors, changes[i][0], by_dim, COUPLED)}


def _with_the_same_cotangents(layouts: dict[int, BlockLayout]) -> Iterable[list[int]]:
    groups: dict[tuple[int, ...], list[int]] = {}
    for j, layout in layouts.items():
        groups.setdefault(tuple(a for a, _ in layout.pairs), []).append(j)
    return groups.values()


LARGEST_RIGHT = 1e-9  # a smaller difference, beside the largest entry or 1, is right where it is rounding
ROUNDINGS = 8  # last bits of the largest entry that one beside it may be off by, where its terms cancel
LARGEST_ROUNDING = 0.02  # a larger one is no rounding; one between them cannot be told from it
MOVED = 20  # times what a few last bits of the inputs move: an error no larger than this may be rounding
ULPS = (1.0, -2.0, 3.0, -5.0)  # last bits by which inputs move: to both sides, near and a little farther


def only_rounding(assembly: Assembly, ij: tuple[int, int], matrices: Matrices) -> bool | None:
    """Compare backward's error with how far it moves when the inputs move by a few last bits.

    Returns:
        True where the error is nothing else, None where it may be something else as large, False where it is more.
    """
    assert matrices.wrong is not None
    off = np.where(matrices.wrong, np.abs(matrices.analytical - matrices.numerical), 0.0)
    largest = float(off.max(initial=0.0))
    size = float(np.abs(matrices.analytical).max())
    if matrices.rows is not None or not largest <= max(LARGEST_RIGHT, LARGEST_ROUNDING * size):
        return False
    i, j = ij
    probe, _ = assembly.probes[i]
    # beside each other, not beside the answer here: a target of exactly 1 may mean something that 1 - eps does not
    moved = np.stack([_answer(assembly, i, j, probe, ulps) for ulps in ULPS])
    noise = np.abs(moved - moved.mean(axis=0)).max(axis=0)
    if not (pull_back(matrices.layout, off, np.abs(probe)) <= MOVED * noise).all():
        return False
    small = max(LARGEST_RIGHT * max(1.0, size), ROUNDINGS * assembly.spacing * size)
    return True if largest <= small else None


def _answer(assembly: Assembly, i: int, j: int, probe: Array, ulps: float) -> Array:
    problem = assembly.problem
    outputs = problem.call(nudged(problem, ulps))
    v = [from_array(probe, y) if k == assembly.wanted[i] else None for k, y in enumerate(outputs)]
    found = problem.vjp(outputs, v)[j]
    return np.zeros_like(assembly.forward.points[j]) if found is None else to_array(found)


def nudged(problem: Problem, ulps: float, inputs: Sequence[Any] | None = None) -> tuple[Any, ...]:
    """Return the inputs (the problem's by default) with those to differentiate moved by a few last bits.

    Each element up or down by chance: a matrix that is scaled as a whole stays as well or ill conditioned as it is.
    """
    generator = draws.generator(problem.seed, "last bits", round(abs(ulps)))

    def moved(x: Tensor) -> Tensor:
        sign = (2 * torch.randint(2, x.shape, generator=generator) - 1).to(x.device, x.dtype)
        return x * (1 + sign * (ulps * torch.finfo(x.dtype).eps))

    return problem.changed_inputs(moved, inputs=inputs)
