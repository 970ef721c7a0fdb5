"""Is the Function used as its author thinks: is backward alive, do outputs and inputs work alone, is all given?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import nodes
from nbautograd.core.checking.jacobian.forward_values import forward_without_autograd
from nbautograd.core.checking.phrases import about, seen
from nbautograd.core.checking.point import Point
from nbautograd.core.checking.points import points
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.contract import rules
from nbautograd.core.contract.rules import Seen
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.stumbles import users_errors
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
