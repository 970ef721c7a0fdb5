"""The share of a gradient that comes through one expression of forward, where backward lacks it.

The witness is autograd of the class's own forward, in which one part after another is detached: what a call of torch
resulted in, or a variable that it takes. Backward lacks the share of the part without which autograd gives what it
gives.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np
from torch import Tensor

from nbautograd.core.checking.diagnosis.hypothesis import Cause, Evidence, Predicate, WrongBlock
from nbautograd.core.checking.diagnosis.wrong_line import Steps, code_of, expression_at
from nbautograd.core.checking.jacobian.forward_values import by_autograd
from nbautograd.core.checking.point import Gradients, Point
from nbautograd.core.checking.points import points
from nbautograd.core.checking.problem import Problem
from nbautograd.core.contract import rules
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.stumbles import hands_over, users_errors

EXPRESSIONS = 80  # of forward that are tried: a forward and a backward each
SIZES = 3  # other than those of the inputs, at which the share has to lack as well
MODULES = ("torch", "F", "torch.nn.functional", "torch.special", "torch.linalg")


def plausible(e: Evidence) -> Cause | None:
    """Return the cause where something of the gradient is there, and something is wrong."""
    there = e.A.any() and e.wrong.any() and np.isfinite(e.A).all()
    return Cause("wrong_derivative", "share_missing") if there else None


def share(case: WrongBlock) -> dict[str, str] | None:
    """Find the expression of forward whose share the gradient lacks, all else being right.

    Returns:
        What the sentence speaks of, borne out at the inputs given, at fresh ones and at other sizes; None where there
        is no such expression.
    """
    problem, block = case.problem, case.evidence.block
    cls: Any = problem.cls
    code = None if cls is None else code_of(cls.forward)
    if code is None:
        return None
    which = problem.differentiable.index(block.input)
    places = [at for at in (p.through(block.output) for p in _asked(problem) if p.works) if at.wrong(which)]
    inside = _inside(places[0], code) if len(places) > 2 else {}
    for part, node in itertools.islice(inside.items(), EXPRESSIONS):
        if all(_lacks(place, which, code, part) for place in places):
            text = ast.unparse(node)
            again = sum(ast.unparse(n) == text and n.lineno == node.lineno for n in inside.values()) > 1
            line = f"{node.lineno}:{node.col_offset + 1}" if again else str(node.lineno)
            return {"expression": rules.short(text), "at": line}
    return None


Part = tuple[int, int]  # of forward: where in its code, and which argument of the call there; -1 for its result


class CutForward(Steps):
    """A trace of forward in which one part is detached, in all turns of a loop."""

    def __init__(self, code: CodeType, part: Part | None = None) -> None:
        turns = range(self.most) if part is not None and part[1] < 0 else ()
        super().__init__(code, {(part[0], turn): Tensor.detach for turn in turns} if part is not None else {})
        self.part, self.uses = part, dict[Part, Tensor]()

    def given(self, frame: FrameType, args: Sequence[Any]) -> Sequence[Any]:
        """Return the arguments of a call, one of them detached."""
        known = {(frame.f_lasti, k): t for k, t in enumerate(args) if isinstance(t, Tensor) and t.requires_grad}
        self.uses |= known
        part = self.part
        return [t.detach() if part in known and k == part[1] else t for k, t in enumerate(args)] if part else args

    def run(self, place: Point) -> Gradients | None:
        """Return the gradients by autograd of this forward at a place; None where it cannot be run so."""
        cls, found = place.problem.cls, None

        @hands_over
        def traced(*args: Any) -> Any:
            with self:
                return cls.forward(*args)  # type: ignore[union-attr]

        assert place.outputs is not None
        with users_errors():
            found = by_autograd(place.problem, place.outputs, traced)
        return place.gradients_of(found)


def _inside(place: Point, code: CodeType) -> dict[Part, ast.expr]:
    run = CutForward(code)
    run.run(place)
    results = [key for key, step in run.found.items() if step.tensor.requires_grad]
    found: dict[Part, Any] = {(key[0], -1): expression_at(code, key) for key in results}
    operands = {part: _operand(expression_at(code, (part[0], 0)), part[1]) for part in run.uses}
    found |= {part: node for part, node in operands.items() if isinstance(node, ast.Name)}
    written = {part: node for part, node in found.items() if isinstance(node, ast.expr)}
    return dict(sorted(written.items(), key=lambda item: -len(ast.unparse(item[1]))))


def _operand(node: Any, number: int) -> ast.expr | None:
    """Return what an expression hands to its call of torch as an argument."""
    items: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        items = [node.left, node.right]
        items = items[::-1] if isinstance(node.left, ast.Constant) else items  # torch takes what is no number first
    elif isinstance(node, ast.Call):
        of_module = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in MODULES
        items = [*([node.func.value] if isinstance(node.func, ast.Attribute) and not of_module else ()), *node.args]
    elif isinstance(node, (ast.Subscript, ast.Attribute)):
        items = [node.value]
    return items[number] if number < len(items) else None


def _lacks(place: Point, which: int, code: CodeType, part: Part) -> bool:
    """Return True where backward gives the gradient that forward has without this part, and that is another one."""
    cut, returned = CutForward(code, part).run(place), place.gradients
    without, own = (None if found is None else found[which] for found in (cut, returned))
    return without is not None and own is not None and agree_relative(own, without, place.rel)


def lacking(predicate: Predicate, found: Cause, case: WrongBlock) -> Cause | None:
    """Return the cause with the expression whose share is lacking; None where there is none."""
    known = share(case)
    return None if known is None else Cause(found.code, found.message, known)


def _asked(problem: Problem) -> Iterator[Point]:
    stream = points(problem)
    for kind, most in (("given", 1), ("near", 1), ("signed", 1), ("together", SIZES)):
        yield from itertools.islice(stream.of(kind), most)
