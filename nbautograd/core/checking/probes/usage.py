"""Is the Function used as its author thinks: is backward alive, is all given, is what it returns what it seems?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import (
    Observed,
    backward_replaced,
    cotangents,
    nodes,
    observe,
    own_node,
    pull,
    user_backward,
)
from nbautograd.core.checking.backward_lines import marking_line
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.jacobian.forward_values import StubContext, forward_without_autograd
from nbautograd.core.checking.phrases import about, seen
from nbautograd.core.checking.point import Point
from nbautograd.core.checking.points import points
from nbautograd.core.checking.problem import Outputs, Problem, separate_context
from nbautograd.core.contract import call_rules, rules
from nbautograd.core.contract.rules import Seen
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.compare import agree_bitwise
from nbautograd.core.numerics.constants import ABOUT_ZERO, CLEAR
from nbautograd.core.recording.record import OWN_CALL, CallRecord, CtxRecord, InstrumentedFunction
from nbautograd.core.recording.snapshot import SHAPES, CallSnapshots, snapshots
from nbautograd.core.stumbles import hands_over, users_errors
from nbautograd.core.torch_private import ctx as private_ctx
from nbautograd.core.torch_private.ctx import apply_replaced
from nbautograd.core.torch_private.nodes import graph_nodes
from nbautograd.core.user_source import closure
from nbautograd.core.values import sizes_text


def backward_never_called(problem: Problem, outputs: Outputs) -> Iterator[Finding]:
    """Yield a finding where backward can never run: forward called without ``apply``, outputs hidden in a list."""
    if nodes(outputs):
        return
    named = [problem.cls] if problem.cls is not None else functions_named(problem.fn)
    if not named:
        return
    applied = list[type]()

    def noted(*args: Any) -> Any:
        applied.append(named[0])
        return plain(*args)

    with apply_replaced(named[0], noted) as plain:
        raw = problem.fn(*problem.fresh())
    if isinstance(raw, (list, dict)) and not any(t.requires_grad for t in outputs):
        yield rules.outputs_in_container(seen(problem, phrases.method_line(problem, "forward")), type(raw).__name__)
    elif any(t.requires_grad for t in outputs) and not applied:  # else it may run backward itself, as a penalty does
        yield about(problem, "backward_never_called", None, name=named[0].__name__)


def functions_named(fn: Any) -> list[type]:
    """Return function classes that a callable's code names."""
    code = getattr(fn, "__code__", None)
    if not isinstance(code, CodeType):
        return []
    known = {**fn.__globals__, **closure(fn)}
    found = [known.get(name) for name in (*code.co_names, *code.co_freevars)]
    return [c for c in found if isinstance(c, type) and issubclass(c, torch.autograd.Function)]


def hidden_inputs(problem: Problem) -> Iterator[Finding]:
    """Yield findings on tensors that require grad and that forward reads although they are no arguments.

    A leaf that forward makes for itself is another one in each call; one that was there before is the same. What
    backward fills in by itself, as a backward that runs forward again does, is served.
    """
    forward = forward_without_autograd(problem) if problem.cls is not None else None
    at = points(problem).first("given")
    if forward is None or at is None or at.outputs is None:
        return
    given = problem.fresh()
    with users_errors() as guard:
        first, second = (graph_leaves(t for t in forward(*given) if isinstance(t, Tensor)) for _ in range(2))
    if guard.failed:
        return
    # what the real call's graph ends in gets its gradient: the arguments, and what a wrapper hands on besides
    known = {id(x) for x in (*given, *at.outputs.inputs, *graph_leaves(at.outputs))}
    lasting = {id(leaf) for leaf in second} - known
    for leaf in [leaf for leaf in first if id(leaf) in lasting and not _served(at, leaf)][:1]:
        function: Any = getattr(problem.cls, "forward", None)
        names = getattr(getattr(function, "__code__", None), "co_names", ())
        name = next((n for n in names if function.__globals__.get(n) is leaf), "")
        tensor = f"`{name}`" if name else Phrase("causes.tensor_of_shape", shape=sizes_text(leaf.shape))
        line = phrases.method_line(problem, "forward")
        yield rules.hidden_input(Seen(line), name=name, tensor=tensor)


def inputs_outside(problem: Problem) -> Iterator[Finding]:
    """Yield the inputs that the function also reads outside its arguments, where the check does not move them."""
    for position in problem.read_outside:
        name = problem.input_names[position]
        yield about(problem, "input_read_outside", phrases.method_line(problem, "forward"), input=name)


def _served(at: Point, leaf: Tensor) -> bool:
    before, leaf.grad = leaf.grad, None
    try:
        at.pull()
        return leaf.grad is not None
    finally:
        leaf.grad = before


def graph_leaves(outputs: Iterable[Tensor]) -> list[Tensor]:
    """Return the leaves that require grad of the graph of these tensors."""
    outputs = list(outputs)
    own = [t for t in outputs if t.is_leaf and t.requires_grad]
    return own + [node.variable for node in graph_nodes(outputs) if hasattr(node, "variable")]


def forward_record(problem: Problem) -> CallRecord | None:
    """Run forward once with a stand-in ctx; return the record of it, None where the class is not called directly.

    The record has no outputs, and of ctx only what inputs need a gradient, where forward wants the real ctx.
    """
    if problem.cls is None or not problem.direct:
        return None
    given = problem.fresh()
    ctx = StubContext(tuple(isinstance(x, Tensor) and x.requires_grad for x in given))
    record = _record(problem.cls, "forward", given)
    record.ctx = CtxRecord(needs_input_grad=ctx.needs_input_grad)
    with users_errors():
        problem.numbers.seed(problem.seed)
        problem.meter.count()
        values = _run(problem.cls, ctx, given)
        record.outputs = snapshots(values, SHAPES, record.known)
        put = private_ctx.attributes(ctx)
        record.ctx.attributes = dict(zip(put, snapshots(put.values(), SHAPES, record.known), strict=True))
        record.ctx.dirty = tuple(map(id, ctx.dirty_tensors))
    return record


@hands_over
def _run(cls: Any, ctx: StubContext, given: tuple[Any, ...]) -> Sequence[Any]:
    with torch.no_grad():
        if separate_context(cls):
            result = cls.forward(*given)
            cls.setup_context(ctx, given, result)
        else:
            result = cls.forward(ctx, *given)
    return result if isinstance(result, (tuple, list)) else (result,)


def backward_record(cls: type, observed: Observed) -> CallRecord:
    """Return the record of a backward that was observed."""
    record = _record(cls, "backward", observed.grad_outputs)
    record.outputs = snapshots(observed.returned or (), SHAPES)
    record.changed = tuple(observed.changed)
    return record


def _record(cls: type, method: str, given: Sequence[Any]) -> CallRecord:
    record = CallRecord(OWN_CALL, InstrumentedFunction(cls, SHAPES), method, None, "", None)
    record.known = CallSnapshots()
    record.inputs = snapshots(given, SHAPES, record.known)
    return record


def one_call(problem: Problem, outputs: Outputs) -> Iterator[Finding]:
    """Yield what the rules for recorded calls say of one call of forward and one of backward.

    What backward returns is looked at before the engine makes it fit.
    """
    forward = forward_record(problem)
    if forward is None or problem.cls is None:
        return
    watched = observe(problem, outputs, cotangents(problem, outputs, problem.seed))
    if watched.returned is not None:
        yield from call_rules.gradient_forms(backward_record(problem.cls, watched), forward, forward)
    yield from call_rules.tensors_on_ctx(forward)
    yield from call_rules.outputs_in_inputs(forward, forward)


def differentiable_outputs(
    problem: Problem, outputs: Outputs, blocks: Mapping[tuple[int, int], Block]
) -> Iterator[Finding]:
    """Yield findings on outputs wrongly marked, or wrongly not marked, as non-differentiable."""
    if not problem.has_functions:
        return
    for k, y in enumerate(outputs):
        mine = [b for (o, _), b in blocks.items() if o == k]
        others = [b for (o, _), b in blocks.items() if o != k]
        if y.is_floating_point() and not y.requires_grad and problem.direct:
            yield from _wrongly_marked(problem, outputs, k)
        elif mine and others and all(_empty(b) for b in mine) and not all(_empty(b) for b in others):
            yield about(
                problem, "unused_output_grad", phrases.method_line(problem, "forward"), output=problem.output_names[k]
            )


def _empty(block: Block) -> bool:
    pooled = block.pooled()
    return block.verdict == "match" and not pooled.analytical.any() and not pooled.numerical.any()


def _wrongly_marked(problem: Problem, outputs: Outputs, k: int) -> Iterator[Finding]:
    """Tell of an output that is marked as non-differentiable although forward has a gradient for it.

    A mistake is proved where backward computes with that gradient, which never arrives; a fused kernel that returns
    its statistics and ignores their gradients may well mean it.
    """
    generator = draws.generator(problem.seed, "marked")
    weights: list[Tensor | None] = [None] * len(outputs)
    weights[k] = torch.randn(outputs[k].shape, generator=generator, dtype=outputs[k].dtype)
    for which, position in enumerate(problem.differentiable):
        seeds = (draws.child(problem.seed, k) for k in (0, 1))
        slopes = [directional_derivative(problem, problem.fresh(), which, weights, seed) for seed in seeds]
        if all(s is not None and abs(s.slope) > CLEAR * s.error + ABOUT_ZERO for s in slopes):
            names = {"output": problem.output_names[k], "input": problem.input_names[position]}
            line = marking_line(problem) or phrases.method_line(problem, "forward")
            proved = _answers(problem, outputs, k)
            sentence = "causes.nondiff_marked_wrongly" if proved else "causes.nondiff_marked_silently"
            found = about(problem, "nondiff_marked_wrongly", line, sentence, **names)
            yield found if proved else dataclasses.replace(found, kind="lint")
            return


def _answers(problem: Problem, outputs: Outputs, k: int) -> bool:
    """Return True where backward gives other gradients if one arrives for an output that never gets any."""
    node, v = own_node(problem, outputs), cotangents(problem, outputs, problem.seed)
    if node is None:
        return False
    original = user_backward(type(node)._forward_cls)

    @hands_over
    def with_gradient(ctx: Any, *grads: Any) -> Any:
        return original(ctx, *grads[:k], torch.ones_like(outputs[k]), *grads[k + 1 :])

    before = pull(problem, outputs, v)
    with backward_replaced(node, with_gradient):
        after = pull(problem, outputs, v)
    return not all(agree_bitwise(a, b) for a, b in zip(before, after, strict=True))
