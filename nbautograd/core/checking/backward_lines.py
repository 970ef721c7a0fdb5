"""The line of backward that did it: wrote the wrong elements of a gradient, drew a random number, changed a tensor."""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
import random
import weakref
from collections import deque
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from nbautograd.core import user_source
from nbautograd.core.checking.backward_call import backward_replaced, cotangents, own_node, pull, user_backward
from nbautograd.core.checking.problem import Problem
from nbautograd.core.numerics.arrays import Array
from nbautograd.core.numerics.constants import TRACED_ELEMENTS, TRACED_STATEMENTS
from nbautograd.core.stumbles import hands_over, users_errors
from nbautograd.core.trace import Trace, TracedCall
from nbautograd.core.user_source import Returned, methods_of

# calls that make a tensor to be filled, or copied to be changed
MAKERS = (
    "zeros",
    "ones",
    "empty",
    "full",
    "clone",
    "new_",
    "zeros_like",
    "empty_like",
    "ones_like",
    "full_like",
    "copy",
)

STATE = (list, dict, set, deque, Tensor, np.ndarray)  # what a module or a closure may hold between two calls


@dataclass(frozen=True)
class Moment:
    """A moment of a run of backward: before or after a call of torch, before its first line, or at its end.

    Attributes:
        line: of backward that runs, in the cell or file; 0 before the first.
        names: the local variables.
        ctx: as backward has it.
        grads: the grad_outputs.
        results: the result of the call of torch that has just ended in that line; empty at any other moment.
    """

    line: int
    names: Mapping[str, Any]
    ctx: Any
    grads: Sequence[Any]
    results: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Observation:
    """What was seen at a moment.

    Attributes:
        line: of backward that ran, 0 before the first.
        ended: True where a call of torch had just ended in it.
        what: the look gave.
    """

    line: int
    ended: bool
    what: Any


Look = Callable[[Moment], Any]


def moments(problem: Problem, look: Look, only: int | None = None) -> list[Observation]:
    """Run backward once and look at each moment of it.

    Args:
        look: is called at each moment; what it returns is what is seen.
        only: the one output that a gradient arrives at; None for all.
    """
    outputs = problem.call()
    node = own_node(problem, outputs)
    original = None if node is None else user_backward(type(node)._forward_cls)
    code = getattr(inspect.unwrap(original), "__code__", None) if original is not None else None
    if original is None or code is None:
        return []
    found = list[Observation]()

    @hands_over
    def traced(ctx: Any, *grads: Any) -> Any:
        def note(line: int, names: Mapping[str, Any], *results: Any) -> None:
            if len(found) < TRACED_STATEMENTS:
                found.append(Observation(line, bool(results), look(Moment(line, names, ctx, grads, results))))

        def at_line(frame: FrameType, *results: Any) -> None:
            note(frame.f_lineno, frame.f_locals, *results)

        def at_end(call: TracedCall) -> Any:
            at_line(call.frame, call.result)
            return call.result

        note(0, {})
        trace, returned = Trace(code, at_line, at_end), None
        try:
            with trace:
                returned = original(ctx, *grads)
            return returned
        finally:
            if trace.frame is not None:
                at_line(trace.frame)
            elif (line := _return_of(problem, returned)) is not None:
                note(line, {})

    with users_errors(), backward_replaced(node, traced):
        pull(problem, outputs, cotangents(problem, outputs, problem.seed, only), anew=False)
    return found if len(found) < TRACED_STATEMENTS else []


def _return_of(problem: Problem, returned: Any) -> int | None:
    """Return the line of the ``return`` that gives None where a backward did that called no torch."""
    function = backward_tree(problem)
    given = [value is None for value in (returned if isinstance(returned, tuple) else (returned,))]
    lines = []
    for end in user_source.returns(function) if function is not None else ():
        items = end.value.elts if isinstance(end.value, ast.Tuple) else [end.value]
        if [isinstance(item, ast.Constant) and item.value is None for item in items] == given:
            lines.append(end.lineno)
    return lines[0] if len(lines) == 1 else None


def versions(now: Moment) -> list[int]:
    """Look at the counters of changes in place of the grad_outputs."""
    return [g._version for g in now.grads if isinstance(g, Tensor)]


def held(now: Moment) -> list[Any]:
    """Look at what is on ctx: which objects, how often changed in place, and what lies in its containers."""
    own = vars(now.ctx)
    try:
        saved = now.ctx.saved_tensors
    except RuntimeError:  # torch's own, from the change on
        saved = ()
    tensors = [t._version for t in (*saved, *own.values()) if isinstance(t, Tensor)]
    items = [[id(item) for item in value] for value in own.values() if isinstance(value, (list, dict, set, deque))]
    return [tensors, items, {name: id(value) for name, value in own.items()}]


def generators(now: Moment) -> list[Any]:
    """Look at the state of the random generators of torch, numpy and Python, and of those on ctx."""
    own = [g.get_state().tolist() for g in vars(now.ctx).values() if isinstance(g, torch.Generator)]
    return [torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate(), own]  # type: ignore[index]


def last_line(problem: Problem, only: int) -> int | None:
    """Return the line with which backward ended where a gradient arrives at one output only."""
    seen = moments(problem, lambda *_: None, only)
    return (seen[-1].line or None) if seen else None


def state_line(cls: type | None) -> int | None:
    """Return the first line of backward that reads what is outside ctx: an attribute of the class, or a container."""
    method = None if cls is None else inspect.unwrap(user_backward(cls))
    code = getattr(method, "__code__", None)
    function = None if code is None else user_source.method_at(code)
    if cls is None or function is None:
        return None
    outside = {**getattr(method, "__globals__", {}), **user_source.closure(method)}
    lines = []
    for node in user_source.own_nodes(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = outside.get(node.value.id)
            own = owner is cls or (isinstance(owner, type) and issubclass(cls, owner)) or isinstance(owner, STATE)
            lines += [node.lineno] if own else []
        if isinstance(node, ast.Name) and isinstance(outside.get(node.id), STATE):
            lines.append(node.lineno)
    return min(lines, default=None)


def line_of_change(problem: Problem, look: Look) -> int | None:
    """Return the first line that changes what is seen; None where none does, or which one cannot be told."""
    seen = moments(problem, look)
    for earlier, now in itertools.pairwise(seen):
        if now.what != seen[0].what:
            # at the end of a call it was that call; else Python itself, in a line from the last call to this one
            return now.line if now.ended else _between(problem, earlier.line, now.line)
    return None


def _between(problem: Problem, first: int, last: int) -> int | None:
    """Return the only line, after one and up to another, that calls what is not built in or sets a part of something.

    Where a loop has turned meanwhile, it may be any line of the loop.
    """
    function = backward_tree(problem)
    nodes = [] if function is None else list(user_source.own_nodes(function))
    lines = range(first + 1, last + 1)
    if first >= last:
        loops = [n for n in nodes if isinstance(n, (ast.For, ast.While)) and n.lineno < last <= (n.end_lineno or 0)]
        if not loops:
            return last
        lines = range(loops[-1].lineno, (loops[-1].end_lineno or 0) + 1)
    found = set()
    for node in nodes:
        sets = isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)
        if sets or (isinstance(node, ast.Call) and not hasattr(builtins, ast.unparse(node.func))):
            found |= {node.lineno} & {*lines}  # type: ignore[attr-defined]
    return found.pop() if len(found) == 1 else None


def backward_tree(problem: Problem) -> ast.FunctionDef | None:
    """Return the syntax of the user's backward, with line numbers of its cell or file."""
    if problem.cls is None:
        return None
    code = getattr(inspect.unwrap(user_backward(problem.cls)), "__code__", None)
    node = None if code is None else user_source.method_at(code)
    return node if isinstance(node, ast.FunctionDef) else None


_RAN: weakref.WeakKeyDictionary[Problem, frozenset[int]] = weakref.WeakKeyDictionary()


def _ran(problem: Problem) -> frozenset[int] | None:
    if problem not in _RAN:
        _RAN[problem] = frozenset()
        with users_errors():
            _RAN[problem] = frozenset(seen.line for seen in moments(problem, lambda _: None) if seen.line)
    return _RAN[problem] or None


def returned(problem: Problem) -> tuple[Returned, ...]:
    """Return the values of the ``return`` of backward that ran, with no line where that is not known."""
    function = backward_tree(problem)
    if function is None:
        return ()
    branches = len(user_source.returns(function)) > 1 or any(True for _ in user_source.arms(function))
    return user_source.returned(function, _ran(problem) if branches else None)


def return_statement(problem: Problem) -> Returned | None:
    """Return what the ``return`` of backward that ran gives, with its line; None where it is not known which ran."""
    function = backward_tree(problem)
    found = [] if function is None else user_source.returns(function)
    if len(found) > 1:
        ran = _ran(problem) or ()
        found = [end for end in found if not ran or not ran.isdisjoint(range(end.lineno, (end.end_lineno or 0) + 1))]
    if len(found) != 1:
        return None
    value = found[0].value
    items = value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []
    return Returned(None, found[0].lineno, ", ".join(map(ast.unparse, items)))


def shared(problem: Problem, wrong: Collection[int], right: Collection[int]) -> tuple[str, list[ast.expr]] | None:
    """Return the last variable that all of these returned values are computed from, and none of those that are right.

    Args:
        wrong, right: positions of the values.

    Returns:
        Its name, and what is assigned to it, in the order of the lines.
    """
    function = backward_tree(problem)
    ends = [] if function is None else user_source.returns(function)
    items = ends[0].value.elts if len(ends) == 1 and isinstance(ends[0].value, ast.Tuple) else []
    if function is None or max(wrong) >= len(items) or any(isinstance(item, ast.Starred) for item in items):
        return None
    sources, made = dict[str, set[str]](), dict[str, list[ast.expr]]()
    for target, value in user_source.assigned(user_source.own_nodes(function)):
        for name in user_source.names_written(target):
            sources.setdefault(name, set()).update(user_source.names_read(value))
            if not isinstance(value, ast.Attribute):  # what was saved is not computed
                made.setdefault(name, []).append(value)
    of = [user_source.reached(user_source.names_read(item), sources) for item in items]
    common = frozenset.intersection(*(of[k] for k in wrong)) - frozenset[str]().union(*(of[k] for k in right))
    last = max(common & {*made}, key=lambda name: made[name][-1].lineno, default=None)
    return None if last is None else (last, made[last])


def saving_trees(cls: type | None) -> list[ast.FunctionDef]:
    """Return the syntax of what saves for backward: of setup_context, where there is one, and of forward."""
    codes = {} if cls is None else methods_of(cls).codes
    trees = (user_source.method_at(codes[name]) for name in ("setup_context", "forward") if name in codes)
    return [tree for tree in trees if isinstance(tree, ast.FunctionDef)]


def marking_line(problem: Problem) -> int | None:
    """Return the line of forward or setup_context that marks outputs as non-differentiable."""
    calls = (c for tree in saving_trees(problem.cls) for c in user_source.calls_of(tree, "mark_non_differentiable"))
    return next((call.lineno for call in calls), None)


def rounding_line(problem: Problem) -> int | None:
    """Return the first line that names a dtype of half precision: of backward, else of what saves for it."""
    for function in (backward_tree(problem), *saving_trees(problem.cls)):
        named = [n for n in ast.walk(function) if isinstance(n, ast.Attribute)] if function is not None else []
        lines = [n.lineno for n in named if n.attr in ("half", "float16", "bfloat16")]
        if lines:
            return min(lines)
    return None


def written(problem: Problem, known: Returned, wrong: Array) -> Returned:
    """Return the statement that last wrote the wrong elements of a returned value, where it was written in parts.

    Of a value that was made to be filled, or copied to be changed, and whose wrong elements nobody wrote afterwards it
    is the last statement that wrote others: the one that should have reached them.

    Args:
        known: the value's name and where it was assigned.
        wrong: which elements of the gradient are wrong, in its shape.
    """
    function = backward_tree(problem)
    if known.name is None or function is None:
        return known
    writes = _Writes(known.name)
    seen = moments(problem, writes.look)
    if not seen or not writes.changes:
        return known
    statements = [n for n in ast.walk(function) if isinstance(n, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr))]

    def at(line: int) -> ast.stmt | None:
        return next((n for n in statements if n.lineno <= line <= (n.end_lineno or n.lineno)), None)

    made = getattr(at(writes.created), "value", None)
    calls = [getattr(one, "func", None) for one in (made.elts if isinstance(made, ast.Tuple) else [made])]
    only_creates = all(getattr(call, "attr", getattr(call, "id", "")).startswith(MAKERS) for call in calls)
    reached = {
        line: mask
        for line, mask in writes.reached.items()
        if mask.shape == wrong.shape and bool((mask & wrong).any()) and not (line == writes.created and only_creates)
    }
    # the one that wrote what is wrong, as little else as possible; of several the last to run
    line = min(reversed(reached), key=lambda k: int((reached[k] ^ wrong).sum()), default=writes.changes[-1])
    statement = _computed(function, at(line))
    return known if statement is None else Returned(known.name, statement.lineno, ast.unparse(statement))


def _computed(function: ast.FunctionDef, statement: ast.stmt | None) -> ast.stmt | None:
    """Return the statement that computed what this one only hands on, as ``out[:, :2] = part`` does; else itself.

    What adds a value, or puts it at indices, may itself be what is wrong.
    """
    handed = isinstance(statement, ast.Assign) and all(map(_sliced, statement.targets))
    name = getattr(getattr(statement, "value", None), "id", None) if handed else None
    if statement is None or name is None:
        return statement
    before = [
        n
        for n in user_source.own_nodes(function)
        if isinstance(n, ast.Assign)
        and n.lineno < statement.lineno
        and any(isinstance(target, ast.Name) and target.id == name for target in n.targets)
    ]
    return before[-1] if before else statement


def _sliced(target: ast.expr) -> bool:
    """Return True for a variable, and for a part of one between bounds: what is at an index of its own may be wrong."""
    if not isinstance(target, ast.Subscript):
        return True
    items = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return all(isinstance(item, (ast.Slice, ast.Constant)) for item in items)


class _Writes:
    """The lines that wrote the elements of a local variable.

    Attributes:
        created: the line that made the tensor which it is now.
        changes: the lines that changed it in place since.
        reached: for each line the elements that it wrote, in the order in which they ran last.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.created, self.changes = 0, list[int]()
        self.reached = dict[int, Array]()
        self._tensor: Tensor | None = None
        self._version, self._values = 0, torch.empty(0)
        self._copied = 0
        self._makers: MutableMapping[Tensor, int] = WeakIdKeyDictionary()

    def look(self, now: Moment) -> None:
        """Compare the variable with what it was before."""
        tensor, line = now.names.get(self.name), now.line
        for result in now.results:
            for made in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(made, Tensor):
                    self._makers.setdefault(made, line)
        if not isinstance(tensor, Tensor) or self._copied > TRACED_ELEMENTS:
            return
        if tensor is not self._tensor:
            self.created, self.changes, self._tensor = self._makers.get(tensor, 0), [], tensor
            self.reached = {self.created: np.ones(tuple(tensor.shape), dtype=bool)}
        elif tensor._version != self._version:
            self.changes.append(line)
            wrote = (tensor.detach() != self._values).cpu().numpy()
            self.reached[line] = wrote | self.reached.pop(line, np.zeros_like(wrote))
        else:
            return
        self._version, self._values = tensor._version, tensor.detach().clone()
        self._copied += tensor.numel()
