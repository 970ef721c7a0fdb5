"""Edits by kind of expression: a constant, an operation, a call, a slice, the values returned, a statement."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from nbautograd.core.checking.repair.edit import AXES, FUNCTIONS, HALVES, SHAPES, SIGNS, Edit, tight
from nbautograd.core.checking.repair.script import Script


def of_constant(node: ast.Constant) -> Iterator[Edit]:
    """Another number: its negative, one more or less, the double, the half, the inverse."""
    c = node.value
    if isinstance(c, str):
        yield from of_subscripts(node, c)
    if isinstance(c, bool) or not isinstance(c, (int, float)):
        return
    others = [-c, c + 1, c - 1, 2 * c, c / 2, 1 - c] + ([1 / c] if c else [])
    if isinstance(c, float) and abs(c - 3.14159265) < 0.01:
        others.insert(0, 3.141592653589793)
    for k, other in enumerate(o for o in dict.fromkeys(others) if o not in (0, 1)):
        yield Edit(
            node, repr(int(other) if float(other).is_integer() and isinstance(c, int) else other), 1.1 + 0.05 * k
        )
    if isinstance(c, int):
        yield from (Edit(node, repr(other), 1.6) for other in (0, 1) if other != c)


def of_negative(node: ast.UnaryOp) -> Iterator[Edit]:
    """Another number for a negative one, such as an index from the end."""
    c = getattr(node.operand, "value", None)
    if isinstance(node.op, ast.USub) and isinstance(c, int) and not isinstance(c, bool):
        yield from (Edit(node, repr(other), 1.15) for other in (-c + 1, -c - 1, 0, 1) if other != c)


def of_subscripts(node: ast.Constant, text: str) -> Iterator[Edit]:
    """The subscripts of an einsum with one letter exchanged for another of them."""
    if not re.fullmatch(r"[a-zA-Z, ]+->[a-zA-Z ]*", text):
        return
    for k, letter in enumerate(text):
        for other in sorted({c for c in text if c.isalpha()} - {letter}) if letter.isalpha() else ():
            yield Edit(node, repr(text[:k] + other + text[k + 1 :]), 1.4)


def of_dims(script: Script, dims: Sequence[str]) -> Iterator[Edit]:
    """The dimension of all sums, means and the like that have the same one, exchanged for one that forward names."""
    given: dict[str, list[ast.expr]] = {}
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in AXES and node.args:
            given.setdefault(script.source(node.args[0]), []).append(node.args[0])
    for text, (first, *rest) in given.items():
        yield from (Edit(first, dim, 1.6, tuple(rest)) for dim in dims if dim != text)


def of_operation(script: Script, node: ast.BinOp) -> Iterator[Edit]:
    """One operand left out, the two exchanged, another operation."""
    left, right = script.source(node.left), script.source(node.right)
    yield Edit(node, tight(script, node.left), 1.4)
    yield Edit(node, tight(script, node.right), 1.5)
    sign = SIGNS.get(type(node.op))
    if sign is None:
        return
    if sign in ("-", "/", "@"):
        yield Edit(node, f"({tight(script, node.right)} {sign} {tight(script, node.left)})", 1.3)
    swapped = {"+": "-", "-": "+", "*": "/", "/": "*"}.get(sign)
    if swapped:
        yield Edit(node, f"({left} {swapped} {tight(script, node.right)})", 1.3)
    if sign in ("*", "/"):
        squared = f"{tight(script, node.right)} ** 2"
        yield Edit(node, f"{left} {sign} {squared}", 1.9)
    if sign == "@":
        yield Edit(node, f"{left} * {right}", 2.5)


def of_call(script: Script, node: ast.Call) -> Iterator[Edit]:
    """The call left out, another function, another dimension, operands exchanged."""
    if isinstance(node.func, ast.Name) and len(node.args) == 1:
        yield Edit(node, script.source(node.args[0]), 1.2)
    if not isinstance(node.func, ast.Attribute):
        return
    receiver, method = node.func.value, node.func.attr
    arguments = ", ".join(script.source(a) for a in [*node.args, *(k.value for k in node.keywords)])
    module = isinstance(receiver, ast.Name) and receiver.id in ("torch", "F", "np", "math")
    if node.args and (module or isinstance(receiver, ast.Attribute)):
        yield Edit(node, script.source(node.args[0]), 1.6)
    if method in ("numel", "size") and not module:
        yield Edit(node, f"({script.source(node)} - 1)", 1.1)
    if not module:
        yield Edit(node, script.source(receiver), 1.0 if method in SHAPES else 1.5)
    if method in ("mm", "matmul", "bmm", "dot", "outer") and len(node.args) == 1 and not module:
        yield Edit(node, f"{tight(script, node.args[0])}.{method}({script.source(receiver)})", 1.3)
    if method in ("sum", "mean"):
        other = "mean" if method == "sum" else "sum"
        yield Edit(node, f"{tight(script, receiver)}.{other}({arguments})", 1.4)
    if method in AXES and len(node.args) >= 1 and not module:
        for k in ("0", "1", "-1"):
            yield Edit(node, f"{tight(script, receiver)}.{method}({k})", 0.85)
    if method in ("cumsum", "cumprod") and node.args:
        k = script.source(node.args[0])
        yield Edit(node, f"{tight(script, receiver)}.flip({k}).{method}({k}).flip({k})", 1.7)
    if method == "flip" and isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute):
        inner = receiver.func.value
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "flip":
            inside = ", ".join(script.source(a) for a in receiver.args)
            yield Edit(node, f"{script.source(inner.func.value)}.{receiver.func.attr}({inside})", 1.2)
    if method.endswith("_") and not method.startswith("_"):
        yield Edit(node, f"{script.source(receiver)}.{method[:-1]}({arguments})", 0.6)
    if method in HALVES:
        yield Edit(node, f"{script.source(receiver)}.{HALVES[method]}({arguments})", 1.0)
    if method in FUNCTIONS:
        for other in FUNCTIONS:
            if other != method:
                head = f"{script.source(receiver)}.{other}({arguments})"
                yield Edit(node, head, 1.5)
                yield Edit(node, f"(-{head})", 1.6)


def of_subscript(script: Script, node: ast.Subscript) -> Iterator[Edit]:
    """The inverse permutation, the other end of a slice, no index, one less of a size."""
    owner, index = script.source(node.value), script.source(node.slice)
    if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        yield Edit(node, f"({owner}[{index}] - 1)", 1.1)
        return
    if isinstance(node.slice, (ast.Name, ast.Attribute)):
        yield Edit(node, f"{owner}[{index}.argsort()]", 1.4)
    if isinstance(node.slice, ast.Tuple):
        named = [item for item in node.slice.elts if isinstance(item, (ast.Name, ast.Attribute))]
        yield from (Edit(item, f"{script.source(item)}.argsort()", 1.4) for item in named)
    if isinstance(node.slice, ast.Slice):
        swaps = {":-1": "1:", "1:": ":-1", "::-1": ":", ":-2": "2:", "2:": ":-2"}
        if index in swaps:
            yield Edit(node, f"{owner}[{swaps[index]}]", 1.2)
    yield Edit(node, owner, 1.6)


def of_return(script: Script) -> Iterator[Edit]:
    """Values of the ``return`` exchanged, left out, or None put in."""
    for node in ast.walk(script.tree):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        value = node.value
        items = value.elts if isinstance(value, ast.Tuple) else [value]
        texts = [script.source(item) for item in items]
        for i in range(len(texts)):
            for j in range(i + 1, len(texts)):
                swapped = list(texts)
                swapped[i], swapped[j] = texts[j], texts[i]
                yield Edit(value, ", ".join(swapped), 0.7)
            if len(texts) > 1:
                nothing = [*texts[:i], "None", *texts[i + 1 :]]
                yield Edit(value, ", ".join(nothing), 1.6)
                fewer = [*texts[:i], *texts[i + 1 :]]
                yield Edit(value, ", ".join(fewer), 1.55)
        for count in (1, 2):
            yield Edit(value, ", ".join([*texts, *["None"] * count]), 1.0 + count / 4)
        for item in items:
            given = script.tree.args.args[1].arg if len(script.tree.args.args) > 1 else None
            if given is not None:
                yield Edit(item, f"{given} * {tight(script, item)}", 0.95)


def of_statements(script: Script) -> Iterator[Edit]:
    """A tuple unpacked, an assignment in place made a new one, a name exchanged for a function of it everywhere."""
    for node in ast.walk(script.tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Attribute)
        ) and node.value.attr == "saved_tensors":
            yield Edit(node.targets[0], f"{node.targets[0].id},", 0.6)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            owner, index = script.source(node.targets[0].value), script.source(node.targets[0].slice)
            if isinstance(node.targets[0].slice, ast.Name):
                yield Edit(node, f"{owner}.index_put_(({index},), {script.source(node.value)}, accumulate=True)", 1.5)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and type(node.op) in SIGNS:
            target, value = script.source(node.target), script.source(node.value)
            if isinstance(node.value, ast.BinOp):
                value = f"({value})"
            yield Edit(node, f"{target} = {target} {SIGNS[type(node.op)]} {value}", 0.6)
    used = [n for n in ast.walk(script.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    for name in dict.fromkeys(n.id for n in used if n.id not in ("torch", "ctx", "F", "np", "math")):
        first, *rest = [n for n in used if n.id == name]
        if rest:
            yield from (Edit(first, f"{name}.{f}()", 2.2, tuple(rest)) for f in FUNCTIONS)
