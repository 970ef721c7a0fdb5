"""Tensors that forward reads though they are no arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor

from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import cotangents, pull
from nbautograd.core.checking.jacobian.forward_values import forward_without_autograd
from nbautograd.core.checking.phrases import about
from nbautograd.core.checking.problem import Problem
from nbautograd.core.contract import rules
from nbautograd.core.contract.rules import Seen
from nbautograd.core.findings import Finding


def hidden_inputs(subject: Problem) -> Iterator[Finding]:
    """Tensors that require grad and that forward reads although they are no arguments: they get no gradient.

    A leaf that forward makes for itself is another one in each call; one that was there before is the same. What
    backward fills in by itself, as a backward that runs forward again does, is served.
    """
    forward = forward_without_autograd(subject) if subject.cls is not None else None
    if forward is None:
        return
    given = subject.fresh()
    try:
        first, second = (graph_leaves(t for t in forward(*given) if isinstance(t, Tensor)) for _ in range(2))
    except Exception:
        return
    # what the real call's graph ends in gets its gradient: the arguments, and what a wrapper hands on besides
    known = {id(x) for x in given} | {id(leaf) for leaf in graph_leaves(subject.call())}
    lasting = {id(leaf) for leaf in first} & {id(leaf) for leaf in second}
    for leaf in first:
        if id(leaf) in lasting and id(leaf) not in known and not _served(subject, leaf):
            name = _global_name(subject, leaf)
            sentence = "causes.hidden_input" if name else "causes.hidden_input_unnamed"
            line = phrases.forward_line(subject)
            yield rules.hidden_input(Seen(line), sentence, name=name, shape=list(leaf.shape))
            return


def inputs_outside(subject: Problem) -> Iterator[Finding]:
    """Yield the inputs that the function also reads outside its arguments, where the check does not move them."""
    for position in subject.read_outside:
        name = subject.input_names[position]
        yield about(subject, "input_read_outside", phrases.forward_line(subject), input=name)


def _served(subject: Problem, leaf: Tensor) -> bool:
    """Whether backward fills in the gradient of this leaf."""
    before, leaf.grad = leaf.grad, None
    try:
        outputs = subject.call()
        pull(subject, outputs, cotangents(subject, outputs, subject.seed + 13))
        return leaf.grad is not None
    finally:
        leaf.grad = before


def graph_leaves(outputs: Iterable[Tensor]) -> list[Tensor]:
    """The leaves that require grad of the graph of these tensors."""
    outputs = list(outputs)
    stack: list[Any] = [t.grad_fn for t in outputs]
    seen: set[Any] = set()
    found = [t for t in outputs if t.is_leaf and t.requires_grad]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        stack.extend(following for following, _ in node.next_functions)
    return found


def _global_name(subject: Problem, leaf: Tensor) -> str:
    function = getattr(subject.cls, "forward", None)
    code = getattr(function, "__code__", None)
    if code is None or function is None:
        return ""
    return next((n for n in code.co_names if function.__globals__.get(n) is leaf), "")
