"""Edit: one expression of a backward exchanged for another text, and the text around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from nbautograd.core.checking.repair.script import Place, Script

FUNCTIONS = ("sin", "cos", "exp", "log", "tanh", "sigmoid", "sqrt", "rsqrt", "sinh", "cosh", "square", "reciprocal")
HALVES = {"triu": "tril", "tril": "triu", "max": "min", "min": "max", "argmax": "argmin", "argmin": "argmax"}
SHAPES = frozenset(("t", "T", "mT", "mH", "view", "reshape", "transpose", "permute", "contiguous", "expand", "squeeze"))
AXES = frozenset(("sum", "mean", "flip", "cumsum", "cumprod", "softmax", "log_softmax", "unsqueeze", "squeeze", "prod"))
SWAPPED = {ast.Lt: ">", ast.Gt: "<", ast.LtE: ">=", ast.GtE: "<=", ast.Eq: "!=", ast.NotEq: "=="}
SIGN = {ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@", ast.Pow: "**"}


@dataclass(frozen=True)
class Hints:
    """What the evidence speaks of, as text that may stand in backward.

    Attributes:
        factors: to multiply with, or divide by, first.
        terms: that are missing beside what is there, without their grad_output.
        grad_output: the name of the gradient that a missing term belongs to.
        constants: numbers in the forward.
        received: the names of all grad_outputs.
        dims: dimensions and tuples of them in the forward, as text.
        lost: dimensions along which a mean or a sum of the gradient is missing.
    """

    factors: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    grad_output: str = "grad_output"
    constants: tuple[float, ...] = ()
    received: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class Edit:
    """One expression exchanged for another text.

    Attributes:
        node: the expression.
        replacement: what stands in its place.
        cost: how far this is from what the user wrote; small is likely.
        also: further expressions that are exchanged for the same text.
    """

    node: Place
    replacement: str
    cost: float
    also: tuple[Place, ...] = ()

    @property
    def nodes(self) -> tuple[Place, ...]:
        """All expressions that are exchanged."""
        return (self.node, *self.also)


def parts(root: ast.expr) -> Iterator[ast.expr]:
    """The expressions inside one that stand for a value: no callee, no module name, no keyword's name."""
    stack: list[ast.AST] = [root]
    while stack:
        node = stack.pop(0)
        if isinstance(node, ast.expr) and not isinstance(node, (ast.Starred, ast.Slice)):
            yield node
        for name, child in ast.iter_fields(node):
            if isinstance(node, ast.Call) and name == "func":
                stack += [child.value] if isinstance(child, ast.Attribute) else []
            elif isinstance(node, ast.Attribute) and name == "value" and isinstance(child, ast.Name):
                continue
            elif isinstance(child, list):
                stack += [c for c in child if isinstance(c, ast.AST)]
            elif isinstance(child, ast.AST):
                stack.append(child)


def tight(script: Script, node: ast.expr) -> str:
    """The text of an expression, in parentheses where something is going to bind to it."""
    text = script.source(node)
    simple = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant))
    return text if simple and not text.startswith("-") else f"({text})"


def product(script: Script, node: ast.expr) -> str:
    """The text of an expression as the left side of a ``*`` or ``/``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.MatMult)):
        return script.source(node)
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    return script.source(node) if negative else tight(script, node)
