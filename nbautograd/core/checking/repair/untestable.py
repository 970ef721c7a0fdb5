"""What the inputs at hand cannot tell: the gradient of an argument that is None here and may be a tensor elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from nbautograd.core import user_source
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.repair.edit import Edit
from nbautograd.core.checking.repair.script import Script

Span = tuple[int, int, int, int]  # first line and column, last line and column


def values(script: Script, subject: Problem) -> tuple[Span, ...] | None:
    """Where backward computes what it returns for arguments that are None; None when no argument is."""
    handed = {argument: i for i, argument in subject.arguments.items()}
    gone = {a for a, i in handed.items() if i < len(subject.inputs) and subject.inputs[i] is None}
    return tuple(map(_span, _computed(script.tree, gone))) if gone else None


def touched(edit: Edit, hidden: Sequence[Span] | None) -> bool:
    """Whether an edit changes such a value, or says None for good."""
    if hidden is None:
        return False
    return "None" in edit.replacement or any(_inside(_span(node), span) for node in edit.nodes for span in hidden)


def _computed(tree: ast.FunctionDef, positions: set[int]) -> Iterator[ast.expr]:
    """The values returned at these positions, and what is assigned to their names."""
    names: set[str] = set()
    for node in user_source.own_nodes(tree):
        items = node.value.elts if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) else []
        for item in (items[k] for k in positions if k < len(items)):
            yield item
            names |= {item.id} if isinstance(item, ast.Name) else set()
    for node in user_source.own_nodes(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in targets):
            yield node.value


def _span(node: ast.expr | ast.stmt) -> Span:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _inside(inner: Span, outer: Span) -> bool:
    return inner[:2] >= outer[:2] and inner[2:] <= outer[2:]
