"""Relations: what a change of a call must leave as it is, and the one driver that asks.

What is right by itself may still be wrong together with something else: other outputs, other inputs that want no
gradient, another layout in memory, a batch. Each is a metamorphic relation (Chen et al. 1998): no right answer is
needed, two answers have to agree. One driver deals with exceptions, noise and kinks.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from nbautograd.core import pytrees
from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import cotangents, gradient_tolerance, pull, rounding_level, run_backward
from nbautograd.core.checking.backward_lines import last_line
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.exceptions import explain, undefined_grad
from nbautograd.core.checking.jacobian.assembly import ULPS, nudged
from nbautograd.core.checking.other_points import expanded, strided
from nbautograd.core.checking.phrases import about
from nbautograd.core.checking.point import Point
from nbautograd.core.checking.points import points
from nbautograd.core.checking.prepared_inputs import copy
from nbautograd.core.checking.problem import Outputs, Problem, own_method, pullback, separate_context
from nbautograd.core.contract import rules
from nbautograd.core.findings import Finding
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.compare import agree_bitwise, agree_relative
from nbautograd.core.numerics.constants import OF_SUMS
from nbautograd.core.stumbles import RAISED, hands_over, is_ours, users_errors
from nbautograd.core.torch_private import tensors as internals

Answer = Sequence[Tensor | None]
SUBSETS_UP_TO = 4  # inputs: all of their 14 subsets are tried; of more only single ones, and all but one
OF_TERMS = 100  # times the tolerance of one gradient that a sum over all its terms may be apart, relative to these
TANGENTS = 2  # that torch.func asks for at once
ROUNDINGS = 20  # times what a few last bits of the inputs change: more is no rounding
TWICE = (0, 1)  # directions; one disagreement may be a kink that was met


@dataclass(frozen=True)
class Variant:
    """One change of a call, and what its answer has to be.

    Attributes:
        answer: under the change.
        expected: what it has to agree with; None where it only must not raise.
        wrong: the finding where the answer of this number differs.
        raised: the finding where the change makes user code raise; None where that says nothing.
        rel: relative difference up to which they agree.
        low: size below which a number is noise.
        bears_out: tells whether a difference is more than rounding and no kink, by number, answer and what is expected.
    """

    answer: Callable[[], Answer]
    expected: Callable[[], Answer] | None
    wrong: Callable[[int], Finding]
    raised: Callable[[BaseException], Finding] | None = None
    rel: float = 0.0
    low: float = 0.0
    bears_out: Callable[[int, Answer, Answer], bool] = lambda k, found, right: True

    def broken(self) -> Finding | None:
        """Return the finding where the relation does not hold; what raises without the change says nothing of it.

        Nor does what gives something else without the change too, when it is asked again: a state is behind that.
        """
        right = None if self.expected is None else self.expected()
        try:
            found = self.answer()
        except RAISED as error:
            if is_ours(error):
                raise
            return None if self.raised is None else self.raised(error)
        right = found if right is None else right
        finding = next((self.wrong(k) for k in self._differing(found, right) if self.bears_out(k, found, right)), None)
        again = finding is None or self.expected is None or not self._differing(self.expected(), right)
        return finding if again else None

    def _differing(self, found: Answer, right: Answer) -> list[int]:
        pairs = enumerate(itertools.zip_longest(found, right))
        return [k for k, (a, b) in pairs if not agree_relative(a, b, self.rel, self.low)]


def relation(variants: Callable[..., Iterator[Variant]]) -> Callable[..., Iterator[Finding]]:
    """Make what yields variants yield the finding of the first one that does not hold."""

    @functools.wraps(variants)
    def check(*given: Any) -> Iterator[Finding]:
        for variant in variants(*given):
            finding = variant.broken()
            if finding is not None:
                yield finding
                return

    return check


def given(problem: Problem) -> Point:
    """Return the point at the inputs given, whose call all relations share that need no other."""
    at = points(problem).first("given")
    assert at is not None
    return at


@relation
def outputs_alone(problem: Problem, outputs: Outputs) -> Iterator[Variant]:
    """Yield variants in which a gradient arrives at one output only: that counts as zeros at the others."""
    takes, at = problem.differentiable_outputs(outputs), given(problem)
    raised = functools.partial(explain, problem=problem)
    rel, low = OF_SUMS * gradient_tolerance(outputs, problem.inputs), rounding_level(outputs, problem.inputs)

    def only(o: int) -> Variant:
        filled = at.arranged(lambda k, c: c if k == o else torch.zeros_like(c))
        line = last_line(problem, o) or phrases.method_line(problem)
        return Variant(at.through(o).pull, filled.pull, lambda _: undefined_grad(line), raised, rel, low)

    if len(takes) > 1:
        yield from map(only, takes)
    elif problem.source is not None and problem.source.materialize_grads is False and at.node is not None:
        node, nothing = at.node, [None] * len(problem.source.grad_outputs)
        yield Variant(lambda: (run_backward(type(node)._forward_cls, node, nothing), ())[1], None, raised, raised)


@relation
def inputs_alone(problem: Problem, outputs: Outputs) -> Iterator[Variant]:
    """Yield variants in which only some inputs want a gradient: it is the same whichever others do."""
    own, at = problem.differentiable, given(problem)
    if len(own) < 2 or not problem.has_functions:
        return
    rel, low = gradient_tolerance(outputs, problem.inputs), rounding_level(outputs, problem.inputs)
    together = dict(zip(own, at.pull(), strict=True))

    def wrong(name: str, sentence: str = "", **params: Any) -> Finding:
        return about(problem, "needs_input_grad_wrong", None, sentence, input=name, **params)

    def some(wanted: Sequence[int]) -> Variant:
        names = [problem.input_names[i] for i in wanted]

        def alone() -> Answer:
            pairs = enumerate(problem.fresh())
            mine = tuple(x.detach().requires_grad_(i in wanted) if i in own else x for i, x in pairs)
            return pullback(problem.call(mine), [mine[i] for i in wanted], copy(at.v))  # backward may write into it

        def raised(error: BaseException) -> Finding:
            return wrong(names[0], "causes.needs_input_grad_raises", said=phrases.said(error))

        return Variant(alone, lambda: [together[i] for i in wanted], lambda k: wrong(names[k]), raised, rel, low)

    for size in range(1, len(own)) if len(own) <= SUBSETS_UP_TO else (1, len(own) - 1):
        yield from map(some, itertools.combinations(own, size))


def layout(problem: Problem) -> Iterator[Finding]:
    """Yield findings on expanded and transposed grad_outputs, non-contiguous inputs and a batch dimension."""
    yield from gradients_laid_out(problem)
    yield from inputs_laid_out(problem)
    yield from stacked_calls(problem)


@relation
def gradients_laid_out(problem: Problem) -> Iterator[Variant]:
    """Yield variants in which grad_outputs lie in memory as they do after ``y.sum()`` and after ``y.t()``."""
    at = given(problem)
    outputs = at.outputs
    assert outputs is not None

    def arranged(change: Callable[[Tensor], Tensor], after: str) -> Variant:
        odd, plain = (at.arranged(lambda _, c, lay=lay: lay(c)) for lay in (change, lambda c: change(c).contiguous()))  # type: ignore[misc]

        def bears_out(k: int, found: Answer, right: Answer) -> bool:
            # inputs that are one number make outputs such as a variance vanish: round-off is that of ordinary ones
            low = rounding_level(problem.call(), problem.inputs)
            beyond = _beyond_rounding(problem, outputs, lambda call: pull(problem, call, plain.v), k, found, right)
            if not beyond or agree_relative(found[k], right[k], plain.rel, low):
                return False
            truth = plain.derivative(k)
            # the same cotangent, so where differences tell nothing the contiguous one is the measure
            return truth is None or (truth.agrees(right[k]) and not truth.agrees(found[k]))

        return Variant(
            odd.pull,
            plain.pull,
            lambda _: about(problem, "wrong_noncontiguous_grad", after=after),
            lambda error: rules.fails_for_strided_gradient(phrases.seen(problem), phrases.said(error), after),
            gradient_tolerance(outputs, problem.inputs),
            bears_out=bears_out,
        )

    yield arranged(expanded, "y.sum()")
    yield arranged(strided, "y.t()")


@relation
def inputs_laid_out(problem: Problem) -> Iterator[Variant]:
    """Yield variants whose inputs have gaps or dimensions exchanged, or are one number seen everywhere.

    The answer is what forward gives, and then the gradients.
    """

    def arranged(change: Callable[[Tensor], Tensor]) -> Variant:
        odd = problem.changed_inputs(change)
        outputs = problem.call(tuple(map(_packed, odd)))
        v, first = cotangents(problem, outputs, problem.seed), len(_values(outputs))
        rel = gradient_tolerance(outputs, problem.inputs)

        def both(call: Outputs) -> Answer:
            return (*_values(call), *pull(problem, call, v))

        def bears_out(k: int, found: Answer, right: Answer) -> bool:
            if not _beyond_rounding(problem, outputs, both, k, found, right):
                return False
            other = draws.child(problem.seed, "other")  # random numbers are drawn in the order of memory
            if problem.numbers.drawn or not all(map(agree_bitwise, problem.call(), problem.call(seed=other))):
                return False
            if k < first:
                return True
            if agree_relative(found[k], right[k], rel, rounding_level(problem.call(), problem.inputs)):
                return False
            # not the gradient of the forward in this very layout
            seeds = (draws.child(problem.seed, turn) for turn in TWICE)
            truths = [directional_derivative(problem, odd, k - first, v, seed, change) for seed in seeds]
            return all(truth is not None and not truth.agrees(found[k]) for truth in truths)

        return Variant(
            lambda: both(problem.call(odd)),
            lambda: both(outputs),
            lambda _: about(problem, "wrong_noncontiguous_input", said=""),
            lambda error: about(problem, "fails_noncontiguous_input", said=phrases.said(error)),
            rel,
            bears_out=bears_out,
        )

    if problem.has_functions:
        yield arranged(strided)
        if not problem.mutates_inputs:
            yield arranged(expanded)


def _values(call: Outputs) -> tuple[Tensor, ...]:
    return tuple(y.detach() for y in call if y.is_floating_point() or y.is_complex())


def _packed(item: Any) -> Any:
    if not isinstance(item, Tensor) or item.layout is not torch.strided:
        return item
    return item.detach().clone(memory_format=torch.contiguous_format).requires_grad_(item.requires_grad)


def _beyond_rounding(
    problem: Problem, outputs: Outputs, look: Callable[[Outputs], Answer], k: int, found: Answer, right: Answer
) -> bool:
    """Return True where two answers differ by more than one does where inputs are a few last bits away.

    Another order of sums changes as much; an ill-conditioned solve much.
    """
    near = (look(problem.call(nudged(problem, ulps, outputs.inputs)))[k] for ulps in ULPS)
    return _largest_gap(found[k], right[k]) > ROUNDINGS * max(_largest_gap(one, right[k]) for one in near)


def _largest_gap(a: Tensor | None, b: Tensor | None) -> float:
    there = [g for g in (a, b) if g is not None]
    if not there or there[0].numel() == 0:
        return 0.0
    if len(there) == 2 and there[0].shape != there[1].shape:
        return float("inf")
    gap = (there[0] - there[1]) if len(there) == 2 else there[0]
    return float(gap.abs().nan_to_num().max())


@relation
def stacked_calls(problem: Problem) -> Iterator[Variant]:
    """Yield two values of the first input stacked, where forward takes each half by itself: so does backward."""
    at, near = given(problem), points(problem).first("near")
    position = next(iter(problem.differentiable), -1) if problem.has_functions else -1
    if near is None or position < 0 or problem.inputs[position].dim() < 2 or problem.numbers.drawn:
        return
    first, other, stack = at.outputs or (), list(problem.fresh()), list(problem.fresh())
    other[position] = near.inputs[position].detach().clone().requires_grad_()
    stack[position] = torch.stack([stack[position].detach(), other[position].detach()]).requires_grad_()
    with users_errors() as guard:
        second, batch = (problem.call(tuple(inputs)) for inputs in (other, stack))
    if guard.failed or [y.shape for y in batch] != [(2, *y.shape) for y in first]:
        return
    rel = gradient_tolerance(first, problem.inputs)
    halves = [torch.stack([y.detach(), z.detach()]) for y, z in zip(first, second, strict=True)]
    pairs = [(b.detach(), h) for b, h in zip(batch, halves, strict=True) if h.is_floating_point()]
    if not all(agree_relative(b, h, rel) for b, h in pairs):
        return
    params = {"input": problem.input_names[position], "dims": stack[position].dim()}
    w = [None if c is None else -2 * c for c in at.v]

    def expected() -> Answer:
        a, b = at.pull()[0], pull(problem, second, w)[0]
        return [None if a is None or b is None else torch.stack([a, b])]

    def wrong(sentence: str, said: str) -> Finding:
        return about(problem, "fails_batched", None, sentence, said=said, **params)

    yield Variant(
        lambda: pull(problem, batch, [None if c is None else torch.stack([c, -2 * c]) for c in at.v])[:1],
        expected,
        lambda _: wrong("causes.fails_batched_wrong", ""),
        lambda e: wrong("causes.fails_batched", phrases.said(e)),
        gradient_tolerance(batch, problem.inputs),
        rounding_level(batch, problem.inputs),
        lambda _, found, right: found[0] is not None and right[0] is not None,
    )


@relation
def vmap_rule(problem: Problem, outputs: Outputs) -> Iterator[Variant]:
    """Yield batches under ``torch.vmap``, which must come out as the stack of their items.

    All inputs that require grad are batched together, then each alone; along the first dimension, then the last.
    """
    if not problem.direct or not own_method(problem.cls, "vmap"):
        return
    line, moved = phrases.method_line(problem, "vmap"), problem.differentiable
    near = [at.inputs for at in points(problem).of("near")]  # three: of two an item may be taken for half of a pair

    def batch(group: Sequence[int], last: bool) -> Variant:
        dims = tuple((x.dim() if last else 0) if i in group else None for i, x in enumerate(problem.inputs))
        items = [
            _detached(p if d is not None else x for p, x, d in zip(at, problem.fresh(), dims, strict=True))
            for at in near
        ]
        with torch.no_grad():
            expected = [torch.stack(each) for each in zip(*map(problem.evaluate, items), strict=True)]
        return Variant(
            lambda: _vmapped(problem, dims, items),
            lambda: expected,
            lambda _: about(problem, "vmap_wrong", line, in_dims=str(dims)),
            lambda error: about(problem, "vmap_raises", line, said=phrases.said(error), in_dims=str(dims)),
            gradient_tolerance(outputs, problem.inputs),
        )

    groups = [moved, *([(i,) for i in moved] if len(moved) > 1 else [])]
    yield from itertools.starmap(batch, itertools.product(groups, (False, True)))


def _detached(inputs: Any) -> tuple[Any, ...]:
    return tuple(x.detach() if isinstance(x, Tensor) else x for x in inputs)


@hands_over
def _vmapped(problem: Problem, dims: tuple[int | None, ...], items: Sequence[tuple[Any, ...]]) -> tuple[Tensor, ...]:
    columns = zip(zip(*items, strict=True), dims, strict=True)
    given = [column[0] if dim is None else torch.stack(column, dim) for column, dim in columns]
    with torch.no_grad():
        return tuple(torch.vmap(lambda *args: tuple(pytrees.tensors(problem.fn(*args))), in_dims=dims)(*given))


@relation
def batched(problem: Problem, outputs: Outputs) -> Iterator[Variant]:
    """Yield several tangents at once, as torch.func asks a ``jvp`` for: each is what it is alone."""
    if problem.cls is None or not own_method(problem.cls, "jvp") or not separate_context(problem.cls):
        return  # without setup_context torch.func refuses by itself
    tangents = _directions(problem, TANGENTS)
    single = [_dense(_pushed(problem, [u[k] for u in tangents]), outputs) for k in range(TANGENTS)]
    given = _detached(problem.fresh())
    yield Variant(
        lambda: internals.vmap(lambda *us: _functional(problem, given, us), 0, *tangents),
        lambda: [torch.stack(each) for each in zip(*single, strict=True)],
        lambda _: _about_jvp(problem, "jvp_batched_wrong", "bug"),
        lambda error: _about_jvp(problem, "jvp_batched", "lint", said=phrases.said(error)),
        gradient_tolerance(outputs, problem.inputs),
    )


@hands_over
def _functional(problem: Problem, given: tuple[Any, ...], tangents: Sequence[Tensor]) -> tuple[Tensor, ...]:

    def fn(*moved: Tensor) -> tuple[Tensor, ...]:
        by_position = dict(zip(problem.differentiable, moved, strict=True))
        found = problem.evaluate(tuple(by_position.get(i, item) for i, item in enumerate(given)))
        return tuple(y for y in found if y.is_floating_point() or y.is_complex())

    points_moved = tuple(given[i] for i in problem.differentiable)
    return tuple(torch.func.jvp(fn, points_moved, tuple(tangents))[1])


@relation
def over_reverse(problem: Problem, derived: Problem) -> Iterator[Variant]:
    """Yield the derivative of backward by forward mode, which must be the one by reverse mode.

    Args:
        problem: what was checked, right in both orders.
        derived: its backward as a function of inputs and grad_outputs.
    """
    if not own_method(problem.cls, "jvp"):
        return
    outputs, directions = derived.call(), [u[0] for u in _directions(derived, 1)]
    generator = draws.generator(derived.seed, "weights")
    weights = [torch.randn(y.shape, generator=generator, dtype=y.dtype) for y in outputs]

    def expected() -> Answer:
        leaves = [outputs.inputs[i] for i in derived.differentiable]
        found = internals.gradients(outputs, leaves, weights)
        return [_terms([(g, u) for g, u in zip(found, directions, strict=True) if g is not None])]

    def bears_out(_: int, found: Answer, right: Answer) -> bool:
        (a, b) = (found[0], right[0])
        assert a is not None
        assert b is not None
        size = float(a.abs().sum() + b.abs().sum())
        return abs(float(a.sum() - b.sum())) > OF_TERMS * gradient_tolerance(outputs, derived.inputs) * size

    yield Variant(
        lambda: [_terms(zip(weights, _dense(_pushed(derived, directions), outputs), strict=True))],
        expected,
        lambda _: _about_jvp(problem, "forward_over_reverse_wrong", "bug"),
        lambda error: _about_jvp(problem, "forward_over_reverse", "lint", said=phrases.said(error)),
        bears_out=bears_out,
    )


def _terms(pairs: Iterable[tuple[Tensor, Tensor]]) -> Tensor:
    found = [float((a.detach().conj() * b.detach()).real.double().sum()) for a, b in pairs]
    return torch.tensor(found, dtype=torch.float64)


def _directions(problem: Problem, count: int) -> list[Tensor]:
    generator = draws.generator(problem.seed, "directions")
    leaves = (problem.inputs[i] for i in problem.differentiable)
    return [torch.randn((count, *x.shape), generator=generator, dtype=x.dtype).to(x.device) for x in leaves]


@hands_over
def _pushed(problem: Problem, tangents: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    given: list[Any] = list(problem.fresh())
    with forward_ad.dual_level():
        for i, u in zip(problem.differentiable, tangents, strict=True):
            given[i] = forward_ad.make_dual(given[i], u)
        found = problem.evaluate(tuple(given))
        return tuple(forward_ad.unpack_dual(y).tangent for y in found)


def _dense(tangents: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> list[Tensor]:
    pairs = [(t, y) for t, y in zip(tangents, outputs, strict=True) if y.is_floating_point() or y.is_complex()]
    return [torch.zeros_like(y.detach()) if t is None else t for t, y in pairs]


def _about_jvp(problem: Problem, code: str, kind: Any, **params: Any) -> Finding:
    return Finding(code, kind, f"checking.{code}", params, None, phrases.method_line(problem, "jvp"))
