"""What stays on ctx or behind the back of autograd: inputs, outputs, shared memory, tensors that are no arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor

from nbautograd.core import syntax
from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import cotangents, own_node, pull
from nbautograd.core.checking.jacobian.stub_ctx import forward_without_autograd
from nbautograd.core.checking.phrases import about
from nbautograd.core.checking.problem import Outputs, Subject
from nbautograd.core.findings import Finding
from nbautograd.core.source import methods_of


def retained_tensors(subject: Subject, outputs: Outputs) -> Iterator[Finding]:
    """Inputs and outputs kept as attributes of ctx; outputs that share memory with an input."""
    node = own_node(subject, outputs)
    if node is None or not subject.direct:
        return
    given = outputs.inputs
    for name, value in vars(node).items():
        if not isinstance(value, Tensor):
            continue
        if any(isinstance(x, Tensor) and _same_memory(value, x) for x in given):
            yield about(subject, "tensor_on_ctx", _kept_on(subject, name), name=name)
        elif any(_same_memory(value, y) for y in outputs):
            yield about(subject, "output_on_ctx", _kept_on(subject, name), name=name)
    dirty = subject.source is not None and "mark_dirty" in subject.source.text
    for k, y in enumerate(outputs):
        for i, x in enumerate(given):
            if isinstance(x, Tensor) and _same_memory(y, x) and not dirty:
                names = {"output": subject.output_names[k], "input": subject.input_names[i]}
                yield about(subject, "output_aliases_input", phrases.forward_line(subject), **names)


def _kept_on(subject: Subject, name: str) -> int | None:
    """The line that puts something on ctx under this name, else that of forward."""
    for code in methods_of(subject.cls).codes.values() if subject.cls is not None else ():
        function = syntax.method_at(code)
        for node in ast.walk(function) if function is not None else ():
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store):
                return node.lineno
    return phrases.forward_line(subject)


def _same_memory(a: Tensor, b: Tensor) -> bool:
    try:
        return a.numel() > 0 and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return False


def hidden_inputs(subject: Subject) -> Iterator[Finding]:
    """Tensors that require grad and that forward reads although they are no arguments: they get no gradient.

    A leaf that forward makes for itself is another one in each call; one that was there before is the same. What
    backward fills in by itself, as a backward that runs forward again does, is served.
    """
    forward = forward_without_autograd(subject) if subject.cls is not None else None
    if forward is None:
        return
    given = subject.fresh()
    try:
        first, second = (_leaves(t for t in forward(*given) if isinstance(t, Tensor)) for _ in range(2))
    except Exception:
        return
    # what the real call's graph ends in gets its gradient: the arguments, and what a wrapper hands on besides
    known = {id(x) for x in given} | {id(leaf) for leaf in _leaves(subject.call())}
    lasting = {id(leaf) for leaf in first} & {id(leaf) for leaf in second}
    for leaf in first:
        if id(leaf) in lasting and id(leaf) not in known and not _served(subject, leaf):
            name = _global_name(subject, leaf)
            message = "causes.hidden_input" if name else "causes.hidden_input_unnamed"
            line = phrases.forward_line(subject)
            yield Finding("hidden_input", "bug", message, {"name": name, "shape": list(leaf.shape)}, None, line)
            return


def inputs_outside(subject: Subject) -> Iterator[Finding]:
    """Yield the inputs that the function also reads outside its arguments, where the check does not move them."""
    for position in subject.read_outside:
        name = subject.input_names[position]
        yield about(subject, "input_read_outside", phrases.forward_line(subject), input=name)


def _served(subject: Subject, leaf: Tensor) -> bool:
    """Whether backward fills in the gradient of this leaf."""
    before, leaf.grad = leaf.grad, None
    try:
        outputs = subject.call()
        pull(subject, outputs, cotangents(subject, outputs, subject.seed + 13))
        return leaf.grad is not None
    finally:
        leaf.grad = before


def _leaves(outputs: Iterable[Tensor]) -> list[Tensor]:
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


def _global_name(subject: Subject, leaf: Tensor) -> str:
    function = getattr(subject.cls, "forward", None)
    code = getattr(function, "__code__", None)
    if code is None or function is None:
        return ""
    return next((n for n in code.co_names if function.__globals__.get(n) is leaf), "")
