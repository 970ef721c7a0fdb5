"""Small edits of a backward, the likeliest first."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from nbautograd.core.checking.repair.edit import (
    FUNCTIONS,
    SHAPES,
    SIGN,
    SWAPPED,
    Edit,
    Hints,
    drawing,
    parts,
    product,
    tight,
)
from nbautograd.core.checking.repair.expressions import (
    of_call,
    of_constant,
    of_dims,
    of_negative,
    of_operation,
    of_return,
    of_statements,
    of_subscript,
)
from nbautograd.core.checking.repair.script import Script, values


def edits(script: Script, names: Sequence[str], hints: Hints, near: Sequence[int]) -> list[Edit]:
    """All edits, the likeliest first.

    Args:
        script: the backward.
        names: names and ctx attributes that may take part.
        hints: what the evidence speaks of.
        near: lines (of the script) on which the wrong value is computed; edits elsewhere cost more.
    """
    found: list[Edit] = []
    for root in values(script):
        away = 0.0 if root.lineno in near or not near else 1.5
        of_root = list(_of_root(script, root, names, hints))
        for node in parts(root):
            of_root += _of_part(script, node, names, hints)
        found += [replace(e, replacement=_bare(e, root), cost=e.cost + away) for e in of_root]
    found += [*of_return(script), *of_statements(script), *of_dims(script, hints.dims)]
    drawn = drawing(script.tree)
    found = [e for e in found if not any(id(node) in drawn for node in e.nodes)]
    return sorted(found, key=lambda edit: (edit.cost, len(edit.replacement)))


def _bare(edit: Edit, root: ast.expr) -> str:
    """The replacement of a whole value without the parentheses around it."""
    text = edit.replacement
    if edit.node is not root or not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:-1] if k == len(text) - 1 else text
    return text


def _of_root(script: Script, root: ast.expr, names: Sequence[str], hints: Hints) -> Iterator[Edit]:
    left, whole = product(script, root), tight(script, root)
    for factor in hints.factors:
        yield Edit(root, f"{left} * {factor}", 0.5)
        yield Edit(root, f"{left} / {factor}", 0.5)
    for term in hints.terms:
        yield Edit(root, f"{script.source(root)} + {hints.grad_output} * {term}", 1.35)
        yield Edit(root, f"{hints.grad_output} * {term}", 0.6)
    for c in hints.constants:
        yield Edit(root, f"{left} * {c!r}", 1.7)
        yield Edit(root, f"{left} / {c!r}", 1.7)
    yield Edit(root, f"-{whole}", 0.9)
    for name in hints.received:
        yield Edit(root, f"{script.source(root)} + {name}", 1.8)
        yield Edit(root, f"{script.source(root)} - {name}", 1.8)
    for text in ("2", "0.5", "3", "4"):
        yield Edit(root, f"{left} * {text}", 2.0)
    for text in ("2", "3", "4"):
        yield Edit(root, f"{left} / {text}", 2.05)
    for k in hints.lost:
        yield Edit(root, f"{script.source(root)} - {whole}.mean({k}, keepdim=True)", 0.98)
        yield Edit(root, f"{script.source(root)} - {whole}.sum({k}, keepdim=True)", 1.9)
        for name in names:
            along = f"{name} * ({hints.grad_output} * {name})"
            yield Edit(root, f"{script.source(root)} - {along}.sum({k}, keepdim=True)", 1.9)
    for name in names:
        for c in hints.constants:
            for mask in (f"({name}.abs() < {c!r})", f"({name} < {c!r})", f"({name} > {c!r})"):
                yield Edit(root, f"{left} * {mask}", 2.7)
        own = name.startswith("ctx.")  # a number that is on ctx rather than the same one written out
        yield Edit(root, f"{left} * {name}", 1.6 if own else 2.1)
        yield Edit(root, f"{left} / {name}", 1.65 if own else 2.2)
        yield Edit(root, f"{script.source(root)} + {hints.grad_output} * {name}", 2.3)
        for size in (f"{name}.numel()", f"{name}.shape[0]", f"{name}.shape[-1]", f"{name}.shape[-1] ** 0.5"):
            yield Edit(root, f"{left} / {size}", 2.4)
            yield Edit(root, f"{left} * {size}", 2.6)
        yield Edit(root, f"{left} / {name}.unsqueeze(-1)", 2.8)
        yield Edit(root, f"{left} * {name}.unsqueeze(-1)", 2.8)
        for shape in (f".expand_as({name})", f".reshape({name}.shape)", f".unsqueeze(0).expand_as({name})",
                      f".unsqueeze(-1).expand_as({name})"):  # fmt: skip
            yield Edit(root, f"{whole}{shape}", 3.2)
        for mask in (f"({name} > 0)", f"({name} < 0)", f"{name}.sign()", f"(1 - {name})", f"(1 + {name})",
                     f"(1 - {name} * {name})", f"{name} * (1 - {name})", f"{name}.cos()", f"{name}.exp()",
                     f"{name} ** 2", f"2 * {name}", f"{name} ** 0.5"):  # fmt: skip
            yield Edit(root, f"{left} * {mask}", 3.0)


def _of_part(script: Script, node: ast.expr, names: Sequence[str], hints: Hints) -> Iterator[Edit]:
    text = script.source(node)
    if isinstance(node, ast.Constant):
        yield from of_constant(node)
        yield from (
            Edit(node, repr(c), 1.3) for c in hints.constants if isinstance(node.value, float) and c != node.value
        )
        return
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        yield from of_negative(node)
        return
    if isinstance(node, ast.Name):
        if node.id in hints.received:
            yield from (Edit(node, f"({node.id} * {factor})", 0.8) for factor in hints.factors)
        yield from (Edit(node, name, 1.2) for name in names if name != node.id)
    if isinstance(node, ast.BinOp):
        yield from of_operation(script, node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield Edit(node, tight(script, node.operand), 0.8)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        yield Edit(node, tight(script, node.operand), 0.8)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPPED:
        a, b = script.source(node.left), script.source(node.comparators[0])
        yield Edit(node, f"{tight(script, node.left)}.abs() {SIGN[type(node.ops[0])]} {b}", 1.2)
        yield Edit(node, f"{a} {SWAPPED[type(node.ops[0])]} {b}", 0.9)
        for c in hints.constants:
            yield Edit(node, f"torch.where({a} {SIGN[type(node.ops[0])]} {b}, 1.0, {c!r})", 1.8)
    if isinstance(node, ast.Call):
        yield from of_call(script, node)
    if isinstance(node, ast.Attribute) and node.attr in SHAPES:
        yield Edit(node, script.source(node.value), 1.0)
    if isinstance(node, ast.Subscript):
        yield from of_subscript(script, node)
    if not isinstance(node, (ast.Tuple, ast.List, ast.Compare)) and not text.startswith("ctx.needs"):
        yield from _around(script, node)
        if isinstance(node, (ast.Name, ast.BinOp)):
            yield from _centred(script, node, names, hints)
        yield from (Edit(node, f"({product(script, node)} * {c!r})", 2.9) for c in hints.constants)
        yield from (Edit(node, f"({product(script, node)} * {n})", 2.6) for n in names if n.startswith("ctx."))
        steps = [c for c in hints.constants if isinstance(c, int) and abs(c) < 100]
        yield from (Edit(node, f"{tight(script, node)}.roll({-c})", 2.4) for c in steps)


def _centred(script: Script, node: ast.expr, names: Sequence[str], hints: Hints) -> Iterator[Edit]:
    """The term that comes through a mean, or through a mean of something times itself, taken off."""
    text, whole = script.source(node), tight(script, node)
    for k in hints.lost:
        yield Edit(node, f"({text} - {whole}.mean({k}, keepdim=True))", 0.9)
        for name in names:
            yield Edit(node, f"({text} - {name} * ({whole} * {name}).mean({k}, keepdim=True))", 1.25)


def _around(script: Script, node: ast.expr) -> Iterator[Edit]:
    whole = tight(script, node)
    yield Edit(node, f"{whole}.t()", 1.0 if isinstance(node, (ast.Name, ast.Attribute)) else 1.6)
    yield Edit(node, f"{whole}.transpose(-2, -1)", 1.7)
    yield Edit(node, f"(-{whole})", 2.3)
    yield Edit(node, f"{whole}.conj()", 1.8)
    yield Edit(node, f"({whole} ** 2)", 2.2)
    yield Edit(node, f"(~{whole})", 2.2)
    for k in ("0", "1", "-1"):
        yield Edit(node, f"{whole}.flip({k})", 2.0)
        yield Edit(node, f"{whole}.flip({k}).cumsum({k}).flip({k})", 2.45)
        yield Edit(node, f"{whole}.sum({k})", 2.0)
        yield Edit(node, f"{whole}.sum({k}, keepdim=True)", 2.5)
    yield Edit(node, f"{whole}.sum()", 2.1)
    yield Edit(node, f"(1 - {whole})", 2.4)
    for name in FUNCTIONS:
        yield Edit(node, f"{whole}.{name}()", 2.7)
