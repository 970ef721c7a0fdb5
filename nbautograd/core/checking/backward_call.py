"""One call of backward: what it gets and returns before the engine sums shapes, casts dtypes or fills in None.

Another function can stand in for the user's backward on one node of a graph of ours: the node looks its class up on
itself first, so the user's class is never touched.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from torch import Tensor

from nbautograd.core.checking.prepared_inputs import copy, unreadable_kind
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.compare import agree_bitwise
from nbautograd.core.numerics.constants import LOOSEST
from nbautograd.core.stumbles import RAISED, hands_over, is_ours, users_errors
from nbautograd.core.torch_private.nodes import graph_nodes
from nbautograd.core.torch_private.tensors import gradients

Backward = Callable[..., Any]


def nodes(tensors: Sequence[Tensor]) -> list[Any]:
    """Return the nodes of custom Functions in the graph of these tensors, nearest first."""
    return [node for node in graph_nodes(tensors) if isinstance(getattr(node, "_forward_cls", None), type)]


def own_node(problem: Problem, outputs: Sequence[Tensor]) -> Any:
    """Return the node of the Function that is checked; None when there is none, or more than one."""
    found = [n for n in nodes(outputs) if problem.cls is None or n._forward_cls is problem.cls]
    return found[0] if len(found) == 1 else None


def tensors_on_ctx(problem: Problem, node: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors that ctx holds, with the names of the source."""
    if node is None:
        return
    try:
        saved = node.saved_tensors
    except RuntimeError:
        saved = ()
    names = problem.source.saved if problem.source is not None else None
    for k, tensor in enumerate(saved):
        if isinstance(tensor, Tensor):
            yield (names[k] if names is not None and k < len(names) else f"saved_tensors[{k}]"), tensor
    for name, value in vars(node).items():
        if isinstance(value, Tensor):
            yield f"ctx.{name}", value


def user_backward(cls: Any) -> Backward:
    """Return the class's own ``backward`` or ``vjp``."""
    function: Backward = cls.backward if cls.vjp is torch.autograd.Function.vjp else cls.vjp
    return function


@hands_over
def run_backward(cls: Any, ctx: Any, grads: Sequence[Any]) -> Any:
    """Call the class's own ``backward`` or ``vjp``."""
    return user_backward(cls)(ctx, *grads)


@contextlib.contextmanager
def backward_replaced(node: Any, backward: Backward) -> Iterator[None]:
    """Let another function stand in for backward on this node."""
    boxed = getattr(type(node)._forward_cls, "boxed_grads_call", False)
    node._forward_cls = SimpleNamespace(
        backward=backward, vjp=torch.autograd.Function.vjp, boxed_grads_call=boxed, __name__=type(node).__name__
    )
    try:
        yield
    finally:
        del node._forward_cls


T = TypeVar("T")


@dataclass
class Observed:
    """One call of backward, seen from inside.

    Attributes:
        grad_outputs: what it was given.
        returned: what it returned, as a tuple; None while it has not returned.
        versions: of each grad_output before and after.
        changed: positions of grad_outputs whose values or version changed.
        gradients: what the engine made of it, one per differentiable input.
    """

    grad_outputs: tuple[Any, ...] = ()
    returned: tuple[Any, ...] | None = None
    changed: list[int] = field(default_factory=list)
    gradients: tuple[Tensor | None, ...] = ()


def observe(problem: Problem, outputs: Outputs, cotangents: Sequence[Tensor | None]) -> Observed:
    """Run backward once through the engine and keep what went in and out of the user's method."""
    return on_a_graph(problem, outputs, lambda call: _observed(problem, call, cotangents))


def on_a_graph(problem: Problem, outputs: Outputs, run: Callable[[Outputs], T], again: bool = True) -> T:
    """Run on the graph of a call; where that raises, and from then on, on that of a call made anew.

    A backward may free what it reads, or make the gradient in the memory of it as fused cross entropies do: it runs
    once for each call.

    Args:
        problem: what is called.
        outputs: of the call.
        run: runs backward on a graph.
        again: False where it is to raise.
    """
    if not outputs.used_up:
        try:
            return run(outputs)
        except RAISED as error:
            if not again or is_ours(error):
                raise
            with users_errors():
                found = run(problem.call(tuple(map(copy, outputs.inputs))))
                outputs.used_up = True
                return found
            raise
    return run(problem.call(tuple(map(copy, outputs.inputs))))


def _observed(problem: Problem, outputs: Outputs, cotangents: Sequence[Tensor | None]) -> Observed:
    node, seen = own_node(problem, outputs), Observed()
    if node is None:
        seen.gradients = pull(problem, outputs, cotangents, anew=False)
        return seen
    original = user_backward(type(node)._forward_cls)

    @hands_over
    def watching(ctx: Any, *grads: Any) -> Any:
        seen.grad_outputs = grads
        before = [(g.detach().clone(), g._version) if isinstance(g, Tensor) else None for g in grads]
        result = original(ctx, *grads)
        seen.changed = [k for k, (g, was) in enumerate(zip(grads, before, strict=True)) if _differs(g, was)]
        seen.returned = result if isinstance(result, tuple) else (result,)
        return result

    with backward_replaced(node, watching):
        seen.gradients = pull(problem, outputs, cotangents, anew=False)
    return seen


def _differs(now: Any, was: tuple[Tensor, int] | None) -> bool:
    if was is None:
        return False
    return now._version != was[1] or other_values(now, was[0])


def other_values(now: Tensor, was: Tensor) -> bool:
    """Compare a tensor with a copy of before; of one whose entries cannot be read nothing is known."""
    return unreadable_kind(was) is None and not agree_bitwise(now, was)


def pull(
    problem: Problem,
    outputs: Outputs,
    cotangents: Sequence[Tensor | None],
    seed: int | None = None,
    anew: bool = True,
) -> tuple[Tensor | None, ...]:
    """Return gradients of the differentiable inputs as copies of their own, with the generators seeded as asked.

    The cotangents are copied as well (strides kept), so that a backward that writes into them does no harm. With
    ``anew``, a backward that raises is asked again at a call made anew.
    """
    if anew:
        return on_a_graph(problem, outputs, lambda call: pull(problem, call, cotangents, seed, False))
    leaves = [outputs.inputs[i] for i in problem.differentiable]
    pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if c is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(leaves)
    problem.meter.count()

    def run() -> tuple[Tensor | None, ...]:
        tensors, grads = zip(*((o, _copy(c)) for o, c in pairs), strict=True)
        return gradients(tensors, leaves, grads)

    found = problem.numbers.run(problem.seed if seed is None else seed, "backward", run)
    return tuple(None if g is None else g.detach().clone() for g in found)


def _copy(c: Tensor) -> Tensor:
    dense = c.is_contiguous() or 0 in c.stride() or c.layout is not torch.strided
    return c if not dense else (c if 0 in c.stride() else c.clone())


def cotangents(problem: Problem, outputs: Sequence[Tensor], seed: int, only: int | None = None) -> list[Tensor | None]:
    """Draw random cotangents of both signs, one per output that can take one (or for one output only)."""
    generator = draws.generator(seed, "cotangents")
    takes = problem.differentiable_outputs(outputs)
    return [
        torch.randn(o.shape, generator=generator, dtype=o.dtype).to(o.device)
        if k in takes and (only is None or only == k)
        else None
        for k, o in enumerate(outputs)
    ]


def gradient_tolerance(outputs: Sequence[Tensor], inputs: Sequence[Any]) -> float:
    """Return how closely two computations of a gradient should agree: 100 eps ** 0.75 of the coarsest dtype."""
    tensors = [t for t in (*outputs, *inputs) if isinstance(t, Tensor) and (t.is_floating_point() or t.is_complex())]
    spacings = [float(torch.finfo(t.dtype).eps) for t in tensors]
    if isinstance(outputs, Outputs):
        spacings.append(outputs.casts.coarsest)
    return min(LOOSEST, 100 * math.pow(max(spacings, default=0.0), 0.75))


def rounding_level(outputs: Sequence[Tensor], inputs: Sequence[Any]) -> float:
    """Return the size below which a gradient of these inputs, for cotangents of about 1, is only rounding."""
    from_outputs = [float(y.detach().abs().max()) for y in outputs if y.requires_grad and y.numel()]
    to_inputs = [
        float(x.detach().abs().mean()) for x in inputs if isinstance(x, Tensor) and x.requires_grad and x.numel()
    ]
    if not from_outputs or not to_inputs or min(to_inputs) == 0.0:
        return 0.0
    size = max(from_outputs) / min(to_inputs)
    coarsest = max(torch.finfo(y.dtype).eps for y in outputs if y.requires_grad)
    coarsest = max(coarsest, outputs.casts.coarsest) if isinstance(outputs, Outputs) else coarsest
    return 4 * coarsest * size if size < float("inf") else 0.0
