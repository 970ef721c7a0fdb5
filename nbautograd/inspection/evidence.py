"""Evidence on a gradient that a check calls wrong: what its caller promises, and whether a second witness says so too.

A check moves each entry of each argument. A caller may promise that some moves never happen (a matrix stays symmetric),
ask for no more than a tolerance, or find a part of the gradient elsewhere (in ``.grad``, added by hand).
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import cotangents, gradient_tolerance, own_node, pull
from nbautograd.core.checking.block import GradcheckReport, Verdict
from nbautograd.core.checking.budget import OutOfBudgetError
from nbautograd.core.checking.directional import DirectionalDerivative, directional_derivative
from nbautograd.core.checking.last_step import climbs_in_stairs, left_by_iterations
from nbautograd.core.checking.meant import Meant
from nbautograd.core.checking.other_points import near, refilled
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.numerics.compare import symmetric
from nbautograd.core.numerics.directional import inner_product, random_direction
from nbautograd.core.numerics.draws import child
from nbautograd.core.recording.argument_copies import NotKept, tensors_inside
from nbautograd.core.stumbles import users_errors
from nbautograd.inspection.audited_calls import ALONG, Pair

DIRECTIONS = 4  # along which a large input moves
SHORT = 1e-4  # of such a direction, where what it tells is looked at again
# draws of random numbers, after how many what is wrong is mostly seen to be, and losses of each draw
AVERAGED, FEW, LOSSES = 400, 40, 2
# how many standard errors a mean may be off by, and how large one may be: what is off by more than that is wrong
SPREADS, POWER, STEP = 4.0, 0.025, 1e-3  # of what differences leave, with 7 digits
SKEW = 0.3  # of a matrix's typical entry: how far from symmetric another point is


@dataclass(frozen=True)
class Compared:
    """A gradient along one direction, beside finite differences.

    Attributes:
        which: number of the input among the differentiable ones.
        derivative: by differences.
        gradient: by backward.
    """

    which: int
    derivative: DirectionalDerivative
    gradient: Tensor | None

    @property
    def agrees(self) -> bool:
        """True where they agree."""
        return self.derivative.agrees(self.gradient)

    @property
    def apart(self) -> float:
        """Their difference, relative to the size of what is summed up; infinite for a gradient that is not finite."""
        if self.gradient is None:
            return 1.0
        if not self.gradient.isfinite().all():
            return math.inf
        g, u = (torch.view_as_real(x) if x.is_complex() else x for x in (self.gradient, self.derivative.u))
        terms = (g.double() * u.double()).reshape(-1)
        size = max(float(terms.norm()), abs(self.derivative.slope), 1e-300)
        return abs(float(terms.sum()) - self.derivative.slope) / size


def compared(
    problem: Problem,
    outputs: Outputs,
    symmetric: Container[int] = (),
    first_seed: int = 0,
    scale: float = 1.0,
    meant: Container[Pair] = (),
) -> Iterator[Compared]:
    """Yield comparisons along random directions that differences are clear along; a session must be open.

    Args:
        problem: what is checked.
        outputs: of a call with its inputs.
        symmetric: positions of the inputs that move along symmetric directions.
        first_seed: of the directions and cotangents.
        scale: of the directions.
        meant: pairs (output, input) whose gradient is meant to be no derivative.
    """
    seeds = range(first_seed, first_seed + DIRECTIONS)
    for seed, (which, position) in itertools.product(seeds, enumerate(problem.differentiable)):
        v = [None if (o, position) in meant else u for o, u in enumerate(cotangents(problem, outputs, seed))]
        if not any(u is not None for u in v):
            continue
        gradient, tied = pull(problem, outputs, v)[which], position in symmetric
        for size in (scale, scale * SHORT):  # kinks were met on the way, perhaps
            found = directional_derivative(problem, problem.inputs, which, v, seed, scale=size, symmetric=tied)
            if found is None or found.agrees(gradient):
                break
        if found is not None:
            yield Compared(which, found, gradient)


def all_compared(target: Any, inputs: tuple[Any, ...], **options: Any) -> list[Compared]:
    """Return the comparisons at these inputs; see ``compared``."""
    problem = Problem(target, inputs)
    with problem.session():
        return list(compared(problem, problem.call(), **options))


def along_directions(target: Any, inputs: tuple[Any, ...], meant: Mapping[Pair, Meant]) -> tuple[GradcheckReport, int]:
    """Compare gradients with differences along random directions, each with cotangents of its own.

    Returns:
        A report without blocks, and along how many directions each input moved.
    """
    problem = Problem(target, inputs)
    worst: dict[str, Any] = {}
    with problem.session():
        outputs = problem.call()
        takes = problem.differentiable_outputs(outputs)
        judged = ((k, i) for k, i in enumerate(problem.differentiable) if any((o, i) not in meant for o in takes))
        agreed: dict[int, list[bool]] = {which: [] for which, _ in judged}
        try:
            for one in compared(problem, outputs, meant=meant):
                agreed[one.which].append(one.agrees)
                if not one.agrees and not worst:
                    name = problem.input_names[problem.differentiable[one.which]]
                    worst = {"input": name, "slope": f"{one.derivative.slope:.4g}"}
        except OutOfBudgetError:
            if not agreed or not all(agreed.values()):
                raise  # else one direction is better than none
    clear = [answers for answers in agreed.values() if answers]
    wrong = [answers for answers in clear if len(answers) > 1 and sum(answers) <= len(answers) // 2]
    verdict: Verdict = "right"
    facts: dict[str, Any] = {}
    if wrong:
        verdict, facts = "wrong", {"findings": (Finding(ALONG, "bug", "audit.wrong_along", worst),)}
    elif len(clear) < len(agreed) or not all(all(answers) for answers in clear):
        verdict, facts = "cannot tell", {"reason": Phrase("audit.unclear_along")}
    report = GradcheckReport(
        problem.name,
        verdict,
        input_names=problem.input_names,
        output_names=problem.output_names,
        source=problem.source,
        order=1,
        **facts,
    )
    return report, min(map(len, clear), default=0)


def wrong_for_asymmetric_changes_alone(target: Any, inputs: tuple[Any, ...]) -> str:
    """Return the name of a symmetric matrix without whose asymmetric changes the gradient is right; empty for none.

    It has to be right at another symmetric point as well: ones hide more. Ones and identity matrices are symmetric by
    accident. So a point that is not symmetric decides whether symmetry is a promise of the caller's: there forward or
    another gradient fails, forward reads one triangle, or backward returns a symmetric gradient on purpose. Where
    nothing of it is so, the gradient is merely transposed, and wrong.
    """
    tied = [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad and symmetric(x)]
    if not tied:
        return ""
    problem = Problem(target, inputs)
    here = all_compared(target, inputs, symmetric=tied)
    with users_errors():  # forward may refuse other numbers
        here += all_compared(target, problem.changed_inputs(_other), symmetric=tied)
    if not here or not all(one.agrees for one in here):
        return ""
    name = problem.input_names[tied[0]]
    moved = tuple(_skewed(x) if k in tied else x for k, x in enumerate(inputs))
    with users_errors() as guard:  # forward may refuse what is not symmetric
        there = Problem(target, moved)
        with there.session():
            outputs = there.call()
            if any(not torch.isfinite(y).all() for y in outputs if y.is_floating_point() or y.is_complex()):
                return name
            along = list(compared(there, outputs, symmetric=tied))
            if not along or not all(one.agrees for one in along):
                return name
            if _reads_a_part(there, outputs, tied):
                return name
            whole = list(compared(there, outputs))
            positions = {there.differentiable.index(k) for k in tied}
            returned = [one.gradient for one in whole if one.which in positions and not one.agrees]
            return name if returned and all(map(_nearly_symmetric, returned)) else ""
    return name if guard.failed else ""


def _other(item: Tensor) -> Tensor:
    """Return other values, of a symmetric matrix symmetric ones; one that is positive definite stays so."""
    generator = torch.Generator().manual_seed(7)
    if not symmetric(item):
        return near(item, generator)
    sides = near(torch.ones_like(item[..., 0]), generator)
    return sides[..., None] * item * sides[..., None, :]


def _skewed(item: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    noise = torch.randn(item.shape, generator=generator, dtype=item.dtype).to(item.device)
    moved = item.detach() + SKEW * (float(item.detach().abs().mean()) or 1.0) * (noise - noise.mH) / 2
    return moved.requires_grad_(item.requires_grad)


def _reads_a_part(problem: Problem, outputs: Outputs, tied: Sequence[int]) -> bool:
    """Return True for a forward that gives the same for matrices made symmetric, from one triangle or as means."""
    ways: tuple[Callable[[Tensor], Tensor], ...] = (
        lambda x: x.tril() + x.tril(-1).mH,
        lambda x: x.triu() + x.triu(1).mH,
        lambda x: (x + x.mH) / 2,
    )
    return any(
        all(torch.allclose(y, z) for y, z in zip(outputs, problem.call(problem.changed_inputs(way, tied)), strict=True))
        for way in ways
    )


def _nearly_symmetric(gradient: Tensor | None) -> bool:
    if gradient is None:
        return False
    near = float(torch.finfo(gradient.dtype).eps) ** 0.5
    return torch.allclose(gradient, gradient.mH, rtol=near, atol=near * float(gradient.abs().max()))


def off_by_a_step(target: Any, inputs: tuple[Any, ...]) -> tuple[str, float]:
    """Return an input whose gradient is off, and by how much, where iterations explain all that are; or ""."""
    problem = Problem(target, inputs)
    with problem.session():
        outputs = problem.call()
        left, off = left_by_iterations(problem, outputs), dict[int, float]()
        for one in compared(problem, outputs):
            position = problem.differentiable[one.which]
            if not one.agrees:
                off[position] = max(off.get(position, 0.0), one.apart)
        for position, size in off.items():
            pairs = ((o, position) for o in problem.differentiable_outputs(outputs))
            if size > left[position] and not all(climbs_in_stairs(problem, outputs, where) for where in pairs):
                return "", 0.0
        if not off:
            return "", 0.0
        position = max(off, key=lambda k: off[k])
        return problem.input_names[position], off[position]


def right_on_average(target: Any, inputs: tuple[Any, ...], meant: Container[Pair]) -> str:
    """Return an input whose gradient differs at each draw of random numbers, and not on average; "" for none.

    An estimate of an expectation's derivative has the mean of the draws' derivatives, as pyro-ppl's optimal transport.
    For a loss that is linear in the outputs too much has it: a dropout that draws another mask in backward. So the loss
    has their squares, and the square of a sum. An input that moves no output, such as a control variate, is left out.

    Args:
        target, inputs: what was checked.
        meant: pairs (output, input) whose gradient is meant to be no derivative.
    """
    problem = Problem(target, inputs)
    with problem.session():
        outputs = problem.call()
        if not problem.numbers.drawn or any(y.is_complex() for y in outputs):
            return ""
        off = {problem.differentiable[one.which] for one in compared(problem, outputs, meant=meant) if not one.agrees}
        losses = [_Quadratic(problem, outputs, seed) for seed in range(LOSSES)]
        ways = [(k, one, _beside(problem.inputs[k].detach(), child(one.seed, k))) for one in losses for k in off]
        gaps, moved = list[list[float]](), np.zeros(len(ways))
        sums = [torch.zeros_like(u) for _, _, u in ways]
        for turn in range(AVERAGED):
            seed, gap = child(problem.seed, "average", turn), list[float]()
            called = problem.call(seed=seed)
            pulled = {loss: problem.vjp(called, loss.gradient(called)) for loss in losses}
            for n, (k, loss, u) in enumerate(ways):
                gradient = pulled[loss][problem.differentiable.index(k)]
                ends = [problem.changed_inputs(lambda x, u=t * u: x + u, [k]) for t in (SHORT, -SHORT)]  # type: ignore[misc]
                up, down = (loss.value(problem.call(end, seed)) for end in ends)
                sums[n] += 0 if gradient is None else gradient * u
                moved[n] += abs(up - down)
                gap.append(inner_product([u], [gradient]) - (up - down) / (2 * SHORT))
            gaps.append(gap)
            if turn + 1 in (FEW, AVERAGED):
                size = {
                    k: max(float(one.norm()) for one, way in zip(sums, ways, strict=True) if way[0] == k) for k in off
                }
                scale = np.array([size[k] / (turn + 1) for k, _, _ in ways])
                mean, error = np.mean(gaps, 0), np.std(gaps, 0) / math.sqrt(turn + 1)
                sure = (error <= POWER * scale) & (error > STEP * scale / 10) if turn + 1 == AVERAGED else True
                right = sure & (np.abs(mean) <= SPREADS * error + STEP * scale)
                if not moved.any() or not right[moved > 0].all():
                    return ""
        return problem.input_names[min(off)] if off else ""


def _beside(item: Tensor, seed: int) -> Tensor:
    """Return a direction that leaves a triangle of zeros as it is, as for a factor of Cholesky."""
    return random_direction(item, seed) * (item != 0)


class _Quadratic:
    """A loss: the squares of all outputs, and a sum of all with its square, which is as large."""

    def __init__(self, problem: Problem, outputs: Outputs, seed: int) -> None:
        pairs = zip(cotangents(problem, outputs, seed), outputs, strict=True)
        self.seed = seed
        self._along = [torch.zeros_like(y) if c is None else c for c, y in pairs]
        self._size = math.sqrt(inner_product(self._along, self._along)) or 1.0

    def value(self, called: Outputs) -> float:
        along = inner_product(called, self._along)
        return inner_product(called, [y.detach() for y in called]) / 2 + along + along**2 / (2 * self._size)

    def gradient(self, called: Outputs) -> list[Tensor]:
        by = 1 + inner_product(called, self._along) / self._size
        return [y.detach() + by * c for y, c in zip(called, self._along, strict=True)]


def delivered_elsewhere(target: Any, inputs: tuple[Any, ...]) -> tuple[str, bool]:
    """Return the name of an input whose gradient backward adds to a ``.grad`` by hand, and whether it is right so.

    Returns:
        An empty name where no gradient that differs is missing, or none is delivered.
    """
    problem = Problem(target, inputs)
    name, counted = "", True
    with problem.session():
        for seed in range(DIRECTIONS):
            outputs = problem.call()
            v = cotangents(problem, outputs, seed)
            gradients, delivered = _with_deliveries(problem, outputs, v)
            for which, gradient in enumerate(gradients):
                found = directional_derivative(problem, problem.inputs, which, v, seed)
                if found is None or found.agrees(gradient):
                    continue
                known = torch.zeros_like(found.u) if gradient is None else gradient
                sums = [known + one for one in delivered if one.shape == known.shape]
                right = any(found.agrees(one) for one in sums)
                if not right and (not delivered or bool(known.any())):
                    return "", False
                name = problem.input_names[problem.differentiable[which]]
                counted = counted and right
    return name, counted


def _with_deliveries(
    problem: Problem, outputs: Outputs, v: Sequence[Tensor | None]
) -> tuple[tuple[Tensor | None, ...], list[Tensor]]:
    """Return the gradients of one backward, and what it added to the ``.grad`` of tensors that it reaches."""
    node = own_node(problem, outputs)
    on_ctx = [] if node is None else list(vars(node).values())
    held: list[Tensor] = [one for one in on_ctx if isinstance(one, Tensor)]
    with contextlib.suppress(NotKept):
        held += tensors_inside(on_ctx)
    reached = {id(t): t for t in (*problem.shared.tensors, *held, *outputs.inputs) if isinstance(t, Tensor)}
    before = {key: None if t.grad is None else t.grad.detach().clone() for key, t in reached.items() if t.is_leaf}
    gradients = problem.vjp(outputs, v)
    delivered = []
    for key, was in before.items():
        now = reached[key].grad
        if now is not None and (was is None or not torch.equal(now, was)):
            delivered.append(now.detach().clone() if was is None else now.detach() - was)
            now.detach().copy_(torch.zeros_like(now) if was is None else was)
    return gradients, delivered


def second_witness(target: Any, inputs: tuple[Any, ...], report: GradcheckReport, made_up: Callable[[], bool]) -> bool:
    """Return True where a witness other than the check's differences says that the gradient is wrong.

    Autograd of forward takes no steps, made-up inputs are other points, and directions of other seeds and a third of
    the size take other steps. Where autograd of forward took part and sides with backward, one of both errs.

    Args:
        target, inputs: what was checked.
        report: of the check.
        made_up: called where all others say nothing; True where made-up inputs show it as well.
    """
    wrong = [block for block in report.blocks.values() if block.verdict == "mismatch"]
    by_autograd = [
        not one.apart <= gradient_tolerance((), inputs)  # it may be NaN
        for block in wrong
        for one in block.witnesses
        if one.witness == "autograd of forward" and one.took_part
    ]
    if by_autograd:
        return any(by_autograd)
    found = all_compared(target, inputs, first_seed=DIRECTIONS, scale=1 / 3)
    inputs_wrong = {one.which for one in found if not one.agrees}
    return any(sum(one.which == which for one in found) > 1 for which in inputs_wrong) or made_up()


def made_up_inputs(
    inputs: tuple[Any, ...], wanted: Callable[[tuple[Any, ...]], bool], tries: int
) -> tuple[Any, ...] | None:
    """Return inputs of the same kinds that are wanted; None where none were found.

    Floating values are drawn anew, first around zero, then of one sign, then between the extremes of those given;
    whole numbers are drawn from those given, and orders (such as a permutation) are shuffled.

    Args:
        inputs: what they are like.
        wanted: called with inputs; what it raises makes them unwanted.
        tries: of each kind of values.
    """
    for kind in ("normal", "positive", "negative", "between"):
        for seed in range(tries):
            generator = torch.Generator().manual_seed(seed)
            drawn = tuple(_drawn(x, kind, generator) for x in inputs)
            with users_errors():  # forward may take no such numbers
                if wanted(drawn):
                    return drawn
    return None


def _drawn(item: Any, kind: str, generator: torch.Generator) -> Any:
    """Return a tensor like another one with made-up values; what is no tensor as it is."""
    if isinstance(item, (list, tuple)) and type(item) in (list, tuple):
        return type(item)([_drawn(one, kind, generator) for one in item])
    if not isinstance(item, Tensor):
        return item
    made = torch.empty_strided(item.shape, item.stride(), dtype=item.dtype, device=item.device)
    if 0 in item.stride():
        made = torch.empty_like(item, memory_format=torch.contiguous_format)
    if item.is_floating_point() or item.is_complex():
        values = torch.randn(item.shape, generator=generator, dtype=item.dtype)
        if kind in ("positive", "negative") and not item.is_complex():
            values = values.abs() + 0.1
            values = values if kind == "positive" else -values
        if kind == "between" and not item.is_complex() and item.numel():
            low, high = item.detach().min(), item.detach().max()
            values = low + (high - low) * torch.rand(item.shape, generator=generator, dtype=item.dtype)
    else:
        values = refilled(item, item.shape, generator)
    made.copy_(values)
    return made.requires_grad_(item.requires_grad)
