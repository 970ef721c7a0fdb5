"""Changes of one line that may let a gradient through, or end a graph that is carried along; each is to be tried."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from nbautograd.core.explaining.cause import Edit, Place

_OUT = {"detach", "detach_", "item", "tolist", "numpy"}  # methods that leave the graph
_COPIES = {"tensor", "as_tensor", "from_numpy", "float", "FloatTensor", "Tensor"}  # of values, without their graph
_SWITCH = re.compile(r"\b(no_grad|inference_mode)\b")


def let_through(reason: str, did: Place, off: Place | None) -> Iterator[Edit]:
    """Yield the line that cuts a graph without what cuts it there.

    Args:
        reason: the reason of the cut.
        did: the line.
        off: the line that switched gradients off, where that is known.
    """
    if reason == "no_grad":
        switch = off or did
        text = _SWITCH.sub("enable_grad", switch.text).replace("set_grad_enabled(False)", "set_grad_enabled(True)")
        if text != switch.text:
            yield Edit(switch.file, switch.line, switch.text, text)
    elif reason == "inside":
        text = did.text.replace(".sample(", ".rsample(")  # of a distribution: drawn so that gradients pass
        if text != did.text:
            yield Edit(did.file, did.line, did.text, text)
    elif reason != "integer" and (statement := statement_of(did.text)) is not None:
        before = ast.unparse(statement)
        changed = _LetThrough(reason).visit(statement)
        own = isinstance(changed, ast.Assign) and ast.unparse(changed.targets[0]) == ast.unparse(changed.value)
        alone = isinstance(changed, ast.Expr) and isinstance(changed.value, ast.Name)
        after = "pass" if own or alone else ast.unparse(changed)
        if after != before:
            yield Edit(did.file, did.line, did.text, after)


def switched_inside(did: Place, off: Place) -> bool:
    """Return True where a line switches no gradients off itself, but something that it calls does."""
    return (did.file, did.line) == (off.file, off.line) and not re.search(
        r"no_grad|inference_mode|grad_enabled", did.text
    )


class _LetThrough(ast.NodeTransformer):
    """Takes out the calls that leave the graph, and the copies made of what they give."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        named = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if self.reason == "create_graph":
            if named == "grad":
                kept = [k for k in node.keywords if k.arg != "create_graph"]
                node.keywords = [*kept, ast.keyword("create_graph", ast.Constant(True))]
            return node
        if isinstance(node.func, ast.Attribute) and named in _OUT and not node.args:
            return node.func.value
        variable = node.args and not isinstance(node.args[0], (ast.Constant, ast.List))
        return node.args[0] if named in _COPIES and variable else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return node.value if node.attr == "data" and isinstance(node.ctx, ast.Load) else node


def detached(here: Place, name: str, value: Any) -> Iterator[Edit]:
    """Yield a backward's line with the carried variable detached behind it.

    Args:
        here: the line of the backward.
        name: the variable, or the container that holds the tensor.
        value: what it holds.
    """
    statement = statement_of(here.text)
    if statement is None:
        return
    yield Edit(here.file, here.line, here.text, f"{ast.unparse(statement)}\n{name} = {_detached(name, value)}")


def detached_where_stored(stored: Place, value: Any) -> Iterator[Edit]:
    """Yield the line that stores a variable with what it stores detached.

    Args:
        stored: the line.
        value: what it stored.
    """
    statement = statement_of(stored.text)
    if (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and not isinstance(statement.targets[0], ast.Tuple)
    ):
        written = ast.unparse(statement.value)
        simple = isinstance(statement.value, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
        target, after = ast.unparse(statement.targets[0]), _detached(written if simple else f"({written})", value)
        yield Edit(stored.file, stored.line, stored.text, f"{target} = {after}")


def _detached(written: str, value: Any) -> str:
    several: dict[type, str] = {tuple: "tuple(part.detach() for part in {0})", list: "[part.detach() for part in {0}]"}
    return several.get(type(value), "{0}.detach()").format(written)


def statement_of(text: str) -> ast.stmt | None:
    """Return the one statement that a line is; None for a part of one, or the head of a block."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    return body[0] if len(body) == 1 else None
