"""The share of a gradient that comes through one expression of forward: missing, of the wrong sign, or scaled.

The witness is autograd of the class's own forward, in which one expression after another is detached. With r the right
gradient and d the one without the share, backward's is r + k (r - d): k is -1 where the expression was taken for a
constant, -2 where its share has the wrong sign.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core import user_source
from nbautograd.core.checking import other_points
from nbautograd.core.checking.backward_call import cotangents, gradient_tolerance, pull
from nbautograd.core.checking.diagnosis.evidence import Evidence
from nbautograd.core.checking.diagnosis.hypothesis import Case, Cause, Confirmation, Hypothesis
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.jacobian.forward_values import forward_without_autograd
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.quiet import seed_all
from nbautograd.core.contract import rules
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.numerics.constants import SIGNIFICANT, STEADY
from nbautograd.core.torch_private.tensors import gradients

MOST = 80  # expressions of forward that are tried: a forward and a backward each
DETACH = "_detached"  # what the call around an expression is named while it is tried
SENTENCES = ("share_missing", "share_sign", "share_scaled")  # the likeliest first


def plausible(e: Evidence) -> Cause | None:
    """Something of the gradient is there, and something is wrong."""
    there = e.A.any() and e.wrong.any() and np.isfinite(e.A).all()
    return Cause("wrong_derivative", "share_missing") if there else None


def share(case: Case) -> tuple[str, dict[str, Any]] | None:
    """Find the expression of forward whose share of the gradient is wrong, all else being right.

    Args:
        case: of the wrong block.

    Returns:
        The sentence, ``"share_missing"``, ``"share_sign"`` or ``"share_scaled"``, and what it speaks of, borne out at
        the inputs given and at fresh ones; None where there is no such expression.
    """
    subject, block = case.subject, case.evidence.block
    cls: Any = subject.cls
    function = None if cls is None else inspect.unwrap(cls.forward)
    tree = user_source.method_at(function.__code__) if isinstance(function, FunctionType) else None
    if not isinstance(tree, ast.FunctionDef) or not isinstance(function, FunctionType):
        return None
    where = block.output, subject.differentiable.index(block.input)
    places = [p for p in (_Place(subject, inputs, where) for inputs in _inputs(subject)) if p.wrong]
    found: dict[str, dict[str, Any]] = {}
    expressions = _expressions(tree) if len(places) > 2 else []
    for node in expressions[:MOST]:
        k = _steady(places, _with_detached(function, tree, node))
        if k is not None:
            message = "share_missing" if _is(k, -1) else "share_sign" if _is(k, -2) else "share_scaled"
            text = ast.unparse(node)
            again = sum(ast.unparse(other) == text and other.lineno == node.lineno for other in expressions) > 1
            at = f"{node.lineno}:{node.col_offset + 1}" if again else str(node.lineno)
            named = {"expression": rules.short(text), "at": at, "ratio": f"{1 + k:.6g}"}
            found.setdefault(message, named)
            if message == "share_missing":
                break
    return next(((m, found[m]) for m in SENTENCES if m in found), None)


def _is(k: float, whole: int) -> bool:
    return abs(k - whole) <= STEADY


def _steady(places: Sequence[_Place], changed: FunctionType | None) -> float | None:
    """Return the k of the formula above where it is the same at all places."""
    first: float | None = None
    for place in places if changed is not None else ():
        k = place.excess(changed)
        if k is None or (first is not None and abs(k - first) > STEADY * abs(first)):
            return None
        first = k
    return first


def _confirmed(hypothesis: Hypothesis, found: Cause, case: Case) -> Cause | None:
    """Return the cause with the outermost expression that explains the gradient at the inputs and at fresh ones."""
    known = share(case)
    return None if known is None else Cause(found.code, *known)


def _inputs(subject: Problem) -> Iterator[tuple[Any, ...]]:
    """The inputs given, others near them and of both signs, and those of another size."""
    yield subject.fresh()
    yield other_points.nearby_inputs(subject, subject.seed + 81)
    yield other_points.in_domain(subject, subject.seed + 82)
    for inputs in other_points.together(subject, subject.seed + 83):
        yield inputs
        return


class _Place:
    """One call, and the gradient of one output for one input that the user's backward gives there.

    Args:
        subject: what was checked.
        inputs: of the call.
        where: numbers of the output, and of the input among the differentiable ones.

    Attributes:
        given: what backward gives.
        right: what autograd of the forward gives.
        wrong: True where autograd of the forward is right, and backward gives something else.
    """

    def __init__(self, subject: Problem, inputs: tuple[Any, ...], where: tuple[int, int]) -> None:
        self.subject, (self.output, self.which), self.wrong = subject, where, False
        try:
            outputs = subject.call(inputs)
            self.inputs, self.seed = outputs.inputs, subject.seed + 84
            self.v = cotangents(subject, outputs, self.seed, self.output)
            self.given = pull(subject, outputs, self.v)[self.which]
            self.right = self._by_autograd(None)
            asked = directional_derivative(subject, self.inputs, self.which, self.v, subject.seed + 85)
        except Exception:
            return
        self.rel = max(SIGNIFICANT, gradient_tolerance(outputs, subject.inputs))
        trusted = asked is not None and self.right is not None and asked.agrees(self.right)
        self.wrong = trusted and not agree_relative(self.given, self.right, self.rel)

    def excess(self, forward: Callable[..., Any] | None) -> float | None:
        """Return the k of the formula above for a forward with an expression detached; None where there is none."""
        try:
            without = self._by_autograd(forward)
        except Exception:
            return None
        if without is None or self.given is None or self.right is None:
            return None
        part, rest = (_real(self.right - without), _real(self.given - self.right))
        power = float((part * part).sum())
        k = float((rest * part).sum()) / power if power else 0.0
        built = self.right + k * (self.right - without)
        return k if k and agree_relative(self.given, built, self.rel) else None

    def _by_autograd(self, forward: Callable[..., Any] | None) -> Tensor | None:
        cls: Any = self.subject.cls
        own = vars(cls).get("forward")
        try:
            if forward is not None:
                cls.forward = staticmethod(forward)
            run = forward_without_autograd(self.subject)
        finally:
            if own is not None:
                cls.forward = own
            elif forward is not None:
                del cls.forward
        if run is None:
            return None
        leaves = [x.detach().clone() if isinstance(x, Tensor) else x for x in self.inputs]
        for i in self.subject.differentiable:
            leaves[i].requires_grad_()
        seed_all(self.subject.seed)
        with torch.enable_grad():
            y = run(*leaves)[self.output]
        leaf, v = leaves[self.subject.differentiable[self.which]], self.v[self.output]
        return gradients([y], [leaf], [v])[0] if y.requires_grad and v is not None else None


def _real(t: Tensor) -> Tensor:
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def _expressions(tree: ast.FunctionDef) -> list[ast.expr]:
    """Return the expressions of forward from which an output may be computed, outermost first."""
    found: list[ast.expr] = []
    for statement in user_source.own_nodes(tree):
        value = getattr(statement, "value", None)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)) and value is not None:
            found += [
                n for n in _values(value) if isinstance(n, (ast.Name, ast.BinOp, ast.Call, ast.UnaryOp, ast.Subscript))
            ]
    returned = {id(n.value) for n in user_source.returns(tree)}
    kept = [n for n in found if id(n) not in returned]
    return sorted(kept, key=lambda n: -len(ast.unparse(n)))


def _values(root: ast.expr) -> Iterator[ast.expr]:
    """An expression and those inside; neither what is called nor what belongs to ctx."""
    stack: list[ast.AST] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and node.id == "ctx":
            continue
        if isinstance(node, ast.expr):
            yield node
        for name, child in ast.iter_fields(node):
            if isinstance(node, ast.Call) and name == "func":
                stack += [child.value] if isinstance(child, ast.Attribute) else []
            else:
                stack += [c for c in (child if isinstance(child, list) else [child]) if isinstance(c, ast.AST)]


def _with_detached(function: FunctionType, tree: ast.FunctionDef, node: ast.expr) -> FunctionType | None:
    """Return forward with one expression detached, which sees what the user's forward sees."""
    tree = copy.deepcopy(tree)
    tree.decorator_list = []
    place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, type(node))
    changed = _Detached(place).visit(tree)
    names = dict.fromkeys((*function.__code__.co_freevars, DETACH))
    around = ast.parse(f"def _around({', '.join(names)}):\n    pass")
    around.body[0].body = [changed]  # type: ignore[attr-defined]
    try:
        module = compile(ast.fix_missing_locations(around), "<nbautograd witness>", "exec")
    except (SyntaxError, ValueError):
        return None
    outer = next(c for c in module.co_consts if isinstance(c, CodeType))
    code = next(c for c in outer.co_consts if isinstance(c, CodeType) and c.co_name == tree.name)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[DETACH] = CellType(_detach)
    closure = tuple(cells[name] for name in code.co_freevars)
    return FunctionType(code, function.__globals__, code.co_name, function.__defaults__, closure)


def _detach(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


class _Detached(ast.NodeTransformer):
    """Wraps the expression at one place into a call that detaches its value."""

    def __init__(self, place: tuple[Any, ...]) -> None:
        self.place = place

    def visit(self, node: ast.AST) -> Any:
        """Visit a node."""
        here = tuple(getattr(node, k, None) for k in ("lineno", "col_offset", "end_lineno", "end_col_offset"))
        if (*here, type(node)) == self.place:
            call = ast.Call(ast.Name(DETACH, ast.Load()), [node], [])  # type: ignore[list-item]
            return ast.copy_location(call, node)
        return self.generic_visit(node)


AUTOGRAD_OF_FORWARD = Confirmation("autograd of the forward, one expression constant, at fresh inputs", _confirmed)
