"""Changes that may let a gradient through, end a graph that is carried along, or part a step from it; to be tried."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from nbautograd.core.explaining.cause import SourceLine, TrialEdit
from nbautograd.core.user_source import parse, tree_of

_OUT = {"detach", "detach_", "item", "tolist", "numpy"}  # methods that leave the graph
_COPIES = {"tensor", "as_tensor", "from_numpy", "float", "FloatTensor", "Tensor"}  # of values, without their graph
_SWITCH = re.compile(r"\b(no_grad|inference_mode)\b")


def let_through(reason: str, did: SourceLine, off: SourceLine | None) -> Iterator[TrialEdit]:
    """Yield the line that cuts a graph without what cuts it there."""
    if reason == "no_grad":
        switch = off or did
        if (block := _as_block(switch)) is not None:
            yield block
            return
        text = _SWITCH.sub("enable_grad", switch.text).replace("set_grad_enabled(False)", "set_grad_enabled(True)")
        if text != switch.text:
            yield TrialEdit(switch.file, switch.line, switch.text, text)
    elif reason == "inside":
        text = did.text.replace(".sample(", ".rsample(")  # of a distribution: drawn so that gradients pass
        if text != did.text:
            yield TrialEdit(did.file, did.line, did.text, text)
    elif reason != "integer" and (statement := statement_of(did.text)) is not None:
        before = ast.unparse(statement)
        changed = _LetThrough(reason).visit(statement)
        own = isinstance(changed, ast.Assign) and ast.unparse(changed.targets[0]) == ast.unparse(changed.value)
        alone = isinstance(changed, ast.Expr) and isinstance(changed.value, ast.Name)
        after = "pass" if own or alone else ast.unparse(changed)
        if after != before:
            yield TrialEdit(did.file, did.line, did.text, after)


def _as_block(switch: SourceLine) -> TrialEdit | None:
    """Return the rest of a function under ``with torch.no_grad():``, where a call switched gradients off for good."""
    for body in _bodies(switch.file):
        at = next((k for k, statement in enumerate(body) if statement.lineno == switch.line), None)
        if at is None or not switch.function or ast.unparse(body[at]) not in _OFF_FOR_GOOD:
            continue
        first, *rest = _rows(switch.file, body[at].lineno, body[-1].end_lineno or body[-1].lineno)
        inner = [f"    {row}" if row else row for row in rest]
        before, after = [first, *rest], ["with torch.no_grad():", *(inner or ["    pass"])]
        return TrialEdit(switch.file, switch.line, "\n".join(before), "\n".join(after)) if inner else None
    return None


_OFF_FOR_GOOD = ("torch.set_grad_enabled(False)", "torch.autograd.set_grad_enabled(False)", "set_grad_enabled(False)")


def _bodies(file: str) -> Iterator[list[ast.stmt]]:
    tree = tree_of("".join(linecache.getlines(file)))
    for node in ast.walk(tree) if tree is not None else ():
        for name in ("body", "orelse", "finalbody"):
            if isinstance(body := getattr(node, name, None), list):
                yield body


def _rows(file: str, first: int, last: int) -> list[str]:
    rows = [row.rstrip("\n") for row in linecache.getlines(file)[first - 1 : last]]
    indent = rows[0][: len(rows[0]) - len(rows[0].lstrip())]
    return [row.removeprefix(indent) for row in rows]


MOST_MOVED = 3  # statements


def after_each_other(step: SourceLine, raised: SourceLine) -> Iterator[TrialEdit]:
    """Yield changes of the order of statements in one block, so that no step lies between a forward and its backward.

    The step goes below the backward that raised; else what that backward differentiates goes below the step, from the
    last statement that computes it on. A GAN's score that both losses read is computed again there.
    """
    for body in _bodies(step.file):
        lines = [(statement.lineno, statement.end_lineno or statement.lineno) for statement in body]
        at = next((k for k, (first, last) in enumerate(lines) if first == last == step.line), None)
        end = next((k for k, (first, last) in enumerate(lines) if first <= raised.line <= last), None)
        if at is None or end is None or at >= end or step.file != raised.file:
            continue
        yield _reordered(step.file, body, at, [*range(at + 1, end + 1), at])
        wanted, moved = _reads(body[end]), list[int]()
        for k in reversed(range(end)):
            if _stores(body[k]).isdisjoint(wanted) or len(moved) == MOST_MOVED:
                continue
            wanted |= _reads(body[k])
            if k < at:
                moved.insert(0, k)
                stay = _without(body, moved, at)
                yield replace(_reordered(step.file, body, moved[0], [*stay, *moved]), exact=False)


def _without(body: list[ast.stmt], moved: list[int], last: int) -> list[int]:
    """Return the statements up to a last one without those that move; what the others read is computed twice."""
    stay, needed = list[int](), set[str]()
    for k in reversed(range(moved[0], last + 1)):
        if k not in moved or not _stores(body[k]).isdisjoint(needed):
            stay.insert(0, k)
            needed |= _reads(body[k])
    return stay


def _reordered(file: str, body: list[ast.stmt], first: int, order: list[int]) -> TrialEdit:
    """Return an edit that puts neighbouring statements in another order, each with the comments above it."""
    begins = {first: body[first].lineno}
    begins |= {k: (body[k - 1].end_lineno or 0) + 1 for k in order if k != first}
    last = max(body[k].end_lineno or 0 for k in order)
    before = _rows(file, begins[first], last)
    parts = {k: before[begins[k] - begins[first] : (body[k].end_lineno or 0) + 1 - begins[first]] for k in order}
    after = [row for k in order for row in parts[k]]
    same = first
    while order[same - first] == same < max(order) - 1:  # two stay, of one line the edit is one line too
        same += 1
    at = body[same].lineno
    before, after = (rows[at - begins[first] :] for rows in (before, after))
    return TrialEdit(file, at, "\n".join(before), "\n".join(after))


def _reads(statement: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _stores(statement: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def switched_inside(did: SourceLine, off: SourceLine) -> bool:
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


def detached(here: SourceLine, name: str, value: Any) -> Iterator[TrialEdit]:
    """Yield a backward's line with the carried variable detached behind it."""
    several: dict[type, str] = {tuple: "tuple(part.detach() for part in {0})", list: "[part.detach() for part in {0}]"}
    after = several.get(type(value), "{0}.detach()").format(name)
    if (statement := statement_of(here.text)) is not None:
        yield TrialEdit(here.file, here.line, here.text, f"{ast.unparse(statement)}\n{name} = {after}")


def statement_of(text: str) -> ast.stmt | None:
    """Return the one statement that a line is; None for a part of one, or the head of a block."""
    try:
        body = parse(text).body
    except (SyntaxError, ValueError):
        return None
    return body[0] if len(body) == 1 else None
