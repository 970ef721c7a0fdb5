"""Edit: one expression of a backward exchanged for another text, and the text around it."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from nbautograd.core.checking.repair.script import Place, Script

FUNCTIONS = ("sin", "cos", "exp", "log", "tanh", "sigmoid", "sqrt", "rsqrt", "sinh", "cosh", "square", "reciprocal")
SHAPES = frozenset(("t", "T", "mT", "mH", "view", "reshape", "transpose", "permute", "contiguous", "expand", "squeeze"))
AXES = frozenset(("sum", "mean", "flip", "cumsum", "cumprod", "softmax", "log_softmax", "unsqueeze", "squeeze", "prod"))
SWAPPED = {ast.Lt: ">", ast.Gt: "<", ast.LtE: ">=", ast.GtE: "<=", ast.Eq: "!=", ast.NotEq: "=="}
SIGN = {ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
RANDOM = frozenset(("bernoulli", "dropout", "empty", "exponential", "multinomial", "normal", "poisson", "uniform"))
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
        masks: conditions outside of which a gradient should be zero, in names of backward.
    """

    factors: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    grad_output: str = "grad_output"
    constants: tuple[float, ...] = ()
    received: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Edit:
    """One expression exchanged for another text.

    Attributes:
        node: the expression.
        replacement: what stands in its place.
        cost: how far this is from what the user wrote; small is likely.
        also: further expressions that are exchanged for the same text.
        kind: of the grammar.
    """

    node: Place
    replacement: str
    cost: float
    also: tuple[Place, ...] = ()
    kind: str = ""

    @property
    def nodes(self) -> tuple[Place, ...]:
        """All expressions that are exchanged."""
        return (self.node, *self.also)


def drawing(tree: ast.AST) -> frozenset[int]:
    """Ids of the nodes inside calls that draw random numbers: an edit there only changes which ones are drawn."""
    calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and _draws(n.func))
    return frozenset(id(inner) for call in calls for inner in ast.walk(call))


def _draws(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name.startswith("rand") or name.removesuffix("_").removesuffix("_like") in RANDOM


def zero_by_itself(text: str, before: str) -> bool:
    """Whether a text takes something off itself, or divides it by itself, where the text before did not."""
    return len(_cancelled(text)) > len(_cancelled(before))


def _cancelled(text: str) -> list[str]:
    """The ``a - a`` and ``a / a`` in a text, whatever stands around ``a``."""
    try:
        nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.BinOp)]
    except SyntaxError:
        return []
    same = (n for n in nodes if isinstance(n.op, (ast.Sub, ast.Div)) and ast.dump(n.left) == ast.dump(n.right))
    return [ast.dump(n) for n in same]


def strangeness(text: str, before: str) -> tuple[int, int, int]:
    """How strange a changed text is: numbers that stood nowhere before, its length, letters that changed."""
    old, new = (re.findall(r"\w+(?:\.\d+)?|\W", t) for t in (before, text))
    numbers = {t for t in new if t[0].isdigit()} - {t for t in old if t[0].isdigit()} - {"0", "1", "2"}
    moves = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = [token for op, _, _, i, j in moves if op != "equal" for token in new[i:j]]
    return len(numbers), len(text), sum(map(len, changed))


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
