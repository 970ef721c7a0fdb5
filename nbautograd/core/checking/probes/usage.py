"""Is the Function used as its author thinks: is backward alive, do outputs and inputs work alone, is all given?"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import (
    agree,
    cotangents,
    gradient_tolerance,
    nodes,
    observe,
    own_node,
    pull,
    rounding_level,
    run_backward,
)
from nbautograd.core.checking.backward_lines import last_line
from nbautograd.core.checking.jacobian.forward_values import forward_without_autograd
from nbautograd.core.checking.phrases import about, seen
from nbautograd.core.checking.probes.exceptions import explain, undefined_grad
from nbautograd.core.checking.problem import Outputs, Problem, pullback
from nbautograd.core.contract import rules
from nbautograd.core.contract.rules import Seen
from nbautograd.core.findings import Finding
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.numerics.constants import OF_SUMS
from nbautograd.core.stumbles import is_ours, users_errors
from nbautograd.core.torch_private.nodes import graph_nodes
from nbautograd.core.user_source import closure
from nbautograd.core.values import sizes_text

MOST = 4  # inputs of which all subsets are tried


def backward_never_called(problem: Problem, outputs: Outputs) -> Iterator[Finding]:
    """Yield a finding where backward can never run: forward called without ``apply``, outputs hidden in a list."""
    if nodes(outputs):
        return
    named = [problem.cls] if problem.cls is not None else functions_named(problem.fn)
    if not named:
        return
    raw = problem.fn(*problem.fresh())
    if isinstance(raw, (list, dict)) and not any(t.requires_grad for t in outputs):
        yield rules.outputs_in_container(seen(problem, phrases.method_line(problem, "forward")), type(raw).__name__)
    elif any(t.requires_grad for t in outputs):
        yield about(problem, "backward_never_called", None, name=named[0].__name__)


def functions_named(fn: Any) -> list[type]:
    """Return function classes that a callable's code names."""
    code = getattr(fn, "__code__", None)
    if not isinstance(code, CodeType):
        return []
    known = {**fn.__globals__, **closure(fn)}
    found = [known.get(name) for name in (*code.co_names, *code.co_freevars)]
    return [c for c in found if isinstance(c, type) and issubclass(c, torch.autograd.Function)]


def outputs_alone(problem: Problem, outputs: Outputs) -> Iterator[Finding]:
    """Check that gradients that arrive at one output only count as zeros at the others."""
    takes = problem.differentiable_outputs(outputs)
    if len(takes) < 2:
        if problem.source is not None and problem.source.materialize_grads is False:
            yield from _undefined(problem, outputs)
        return
    v = cotangents(problem, outputs, problem.seed + 31)
    together = pull(problem, outputs, v)
    try:
        shares = [pull(problem, outputs, [c if k == o else None for k, c in enumerate(v)]) for o in takes]
    except Exception as error:
        if is_ours(error):
            raise
        yield explain(error, problem)
        return
    there = [[g for g in parts if g is not None] for parts in zip(*shares, strict=True)]
    total = [torch.stack(parts).sum(0) if parts else None for parts in there]
    first = [c if k == takes[0] else None for k, c in enumerate(v)]
    apart = not agree(problem, outputs, together, total)
    if apart and any(g is None for g in observe(problem, outputs, first).grad_outputs):  # torch fills in no zeros
        zeros = [torch.zeros_like(c) if c is not None else None for c in v]
        filled = [pull(problem, outputs, [c if k == o else zeros[k] for k, c in enumerate(v)]) for o in takes]
        for o, share, right in zip(takes, shares, filled, strict=True):
            if not agree(problem, outputs, share, right, OF_SUMS):
                yield undefined_grad(last_line(problem, o) or phrases.method_line(problem))
                return


def _undefined(problem: Problem, outputs: Outputs) -> Iterator[Finding]:
    node = own_node(problem, outputs)
    if node is None:
        return
    count = len(problem.source.grad_outputs) if problem.source is not None else len(outputs)
    try:
        run_backward(type(node)._forward_cls, node, [None] * count)
    except Exception as error:
        if is_ours(error):
            raise
        yield explain(error, problem)


def inputs_alone(problem: Problem, outputs: Outputs) -> Iterator[Finding]:
    """Check that the gradient of an input is the same whichever others want one: some are left out in turn."""
    if len(problem.differentiable) < 2 or not problem.has_functions:
        return
    v = cotangents(problem, outputs, problem.seed + 32)
    rel, low = gradient_tolerance(outputs, problem.inputs), rounding_level(outputs, problem.inputs)
    together = dict(zip(problem.differentiable, pull(problem, outputs, v), strict=True))
    for wanted in _subsets(problem.differentiable):
        given = tuple(
            x.detach().requires_grad_(i in wanted) if i in problem.differentiable else x
            for i, x in enumerate(problem.fresh())
        )
        name = problem.input_names[wanted[0]]
        try:
            found = pullback(problem.call(given), [given[i] for i in wanted], v)
        except Exception as error:
            if is_ours(error):
                raise
            yield _wrong_alone(
                problem, "causes.needs_input_grad_raises", input=name, said=phrases.short(str(error), 120)
            )
            return
        for position, gradient in zip(wanted, found, strict=True):
            if not agree_relative(gradient, together[position], rel, low):
                yield _wrong_alone(problem, input=problem.input_names[position])
                return


def _wrong_alone(problem: Problem, sentence: str = "", **params: Any) -> Finding:
    return about(problem, "needs_input_grad_wrong", sentence=sentence, **params)


def _subsets(positions: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield each input alone, then all but one; of up to four inputs all subsets."""
    count = len(positions)
    sizes = range(1, count) if count <= MOST else (1, count - 1)
    for size in sizes:
        yield from itertools.combinations(positions, size)


def hidden_inputs(problem: Problem) -> Iterator[Finding]:
    """Yield findings on tensors that require grad and that forward reads although they are no arguments.

    A leaf that forward makes for itself is another one in each call; one that was there before is the same. What
    backward fills in by itself, as a backward that runs forward again does, is served.
    """
    forward = forward_without_autograd(problem) if problem.cls is not None else None
    if forward is None:
        return
    given = problem.fresh()
    with users_errors() as guard:
        first, second = (graph_leaves(t for t in forward(*given) if isinstance(t, Tensor)) for _ in range(2))
    if guard.failed:
        return
    # what the real call's graph ends in gets its gradient: the arguments, and what a wrapper hands on besides
    known = {id(x) for x in given} | {id(leaf) for leaf in graph_leaves(problem.call())}
    lasting = {id(leaf) for leaf in first} & {id(leaf) for leaf in second}
    for leaf in first:
        if id(leaf) in lasting and id(leaf) not in known and not _served(problem, leaf):
            name = _global_name(problem, leaf)
            sentence = "causes.hidden_input" if name else "causes.hidden_input_unnamed"
            line = phrases.method_line(problem, "forward")
            yield rules.hidden_input(Seen(line), sentence, name=name, shape=sizes_text(leaf.shape))
            return


def inputs_outside(problem: Problem) -> Iterator[Finding]:
    """Yield the inputs that the function also reads outside its arguments, where the check does not move them."""
    for position in problem.read_outside:
        name = problem.input_names[position]
        yield about(problem, "input_read_outside", phrases.method_line(problem, "forward"), input=name)


def _served(problem: Problem, leaf: Tensor) -> bool:
    """Return True if backward fills in the gradient of this leaf."""
    before, leaf.grad = leaf.grad, None
    try:
        outputs = problem.call()
        pull(problem, outputs, cotangents(problem, outputs, problem.seed + 13))
        return leaf.grad is not None
    finally:
        leaf.grad = before


def graph_leaves(outputs: Iterable[Tensor]) -> list[Tensor]:
    """Return the leaves that require grad of the graph of these tensors."""
    outputs = list(outputs)
    own = [t for t in outputs if t.is_leaf and t.requires_grad]
    return own + [node.variable for node in graph_nodes(outputs) if hasattr(node, "variable")]


def _global_name(problem: Problem, leaf: Tensor) -> str:
    function = getattr(problem.cls, "forward", None)
    code = getattr(function, "__code__", None)
    if code is None or function is None:
        return ""
    return next((n for n in code.co_names if function.__globals__.get(n) is leaf), "")
