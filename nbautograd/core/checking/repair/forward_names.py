"""Expressions of forward in names of backward: what a variable that both of them assign is in forward."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping

from nbautograd.core import user_source
from nbautograd.core.checking.backward_lines import saving_trees
from nbautograd.core.checking.repair.script import Script, names

LONGEST = 120  # letters of an expression


def forward_values(script: Script, cls: type) -> dict[str, str]:
    """Return what forward assigns to the variables that backward assigns to as well, in names of backward.

    A name of forward is what was kept of it for backward, a variable of backward of the same name, or else what it was
    computed from. What cannot be written so is left out.

    Args:
        script: the backward.
        cls: the Function.
    """
    trees = saving_trees(cls)
    pairs = [pair for tree in trees for pair in _assigned(tree)]
    once = {name: value for name, value in pairs if [n for n, _ in pairs].count(name) == 1}
    local = {name for tree in trees for name in user_source.parameters(tree)} | {name for name, _ in pairs}
    kept = {value.id: name for name, value in pairs if name.startswith("ctx.") and isinstance(value, ast.Name)}
    kept |= dict(_unpacked(script, trees))
    own = set(names(script))
    texts = dict[str, str]()
    for name, _ in _assigned(script.tree):
        if name in once and name not in texts:
            known = _Known({n: t for n, t in kept.items() if t != name}, own - {name}, once, local)
            value = known.visit(copy.deepcopy(once[name]))
            text = "" if known.lost else ast.unparse(value)
            if 0 < len(text) <= LONGEST:
                texts[name] = text
    return texts


def _assigned(tree: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name, or attribute of ctx, that something is assigned to, with what that is."""
    for node in user_source.own_nodes(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _paired(target, node.value)
        elif isinstance(node, (ast.AugAssign, ast.For)) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value if isinstance(node, ast.AugAssign) else node.iter
            yield node.target.id, node.target  # more than once


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        yield f"ctx.{target.attr}", value
    elif isinstance(target, ast.Tuple):
        values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else []
        for k, item in enumerate(target.elts):
            if values:
                yield from _paired(item, values[k])
            elif isinstance(item, ast.Name):
                yield item.id, target  # a part of something
                yield item.id, target


def _unpacked(script: Script, trees: list[ast.FunctionDef]) -> Iterator[tuple[str, str]]:
    """Yield names of forward that are saved, each with what backward unpacks it to."""
    saved = [call.args for tree in trees for call in user_source.calls_of(tree, "save_for_backward")]
    for node in user_source.own_nodes(script.tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Tuple) and ast.unparse(node.value).endswith("saved_tensors") and len(saved) == 1:  # type: ignore[attr-defined]
            for given, item in zip(saved[0], target.elts, strict=False):
                if isinstance(given, ast.Name) and isinstance(item, ast.Name):
                    yield given.id, item.id


class _Known(ast.NodeTransformer):
    """Writes an expression of forward in names of backward.

    Args:
        kept: names of forward, each with what backward calls it.
        own: names of backward.
        once: what is assigned to names of forward that are assigned once.
        local: all names of forward.

    Attributes:
        lost: True when a name cannot be written.
    """

    def __init__(
        self, kept: Mapping[str, str], own: set[str], once: Mapping[str, ast.expr], local: set[str], depth: int = 3
    ) -> None:
        self.kept, self.own, self.once, self.local, self.depth = kept, own, once, local, depth
        self.lost = False

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Write a name."""
        if node.id in self.kept:
            return ast.parse(self.kept[node.id], mode="eval").body
        if node.id in self.own or node.id not in self.local:
            return node
        if node.id not in self.once or not self.depth:
            self.lost = True
            return node
        inner = _Known(self.kept, self.own, self.once, self.local, self.depth - 1)
        value: ast.expr = inner.visit(copy.deepcopy(self.once[node.id]))
        self.lost |= inner.lost
        return value
