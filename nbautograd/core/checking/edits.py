"""Small edits of one expression of a backward, the likeliest first."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nbautograd.core.checking.script import Place, Script, values

FUNCTIONS = ("sin", "cos", "exp", "log", "tanh", "sigmoid", "sqrt", "rsqrt", "sinh", "cosh", "square", "reciprocal")
SHAPES = frozenset(
    [
        "t",
        "T",
        "mT",
        "mH",
        "view",
        "reshape",
        "transpose",
        "permute",
        "contiguous",
        "expand",
        "expand_as",
        "unsqueeze",
        "squeeze",
    ]
)
AXES = frozenset(
    [
        "sum",
        "mean",
        "flip",
        "cumsum",
        "cumprod",
        "softmax",
        "log_softmax",
        "unsqueeze",
        "squeeze",
        "prod",
        "amax",
        "logsumexp",
        "roll",
    ]
)
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
    """

    factors: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    grad_output: str = "grad_output"
    constants: tuple[float, ...] = ()


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
    found += [*_of_return(script), *_of_statements(script)]
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


def _of_root(script: Script, root: ast.expr, names: Sequence[str], hints: Hints) -> Iterator[Edit]:
    left, whole = product(script, root), tight(script, root)
    for factor in hints.factors:
        yield Edit(root, f"{left} * {factor}", 0.5)
        yield Edit(root, f"{left} / {factor}", 0.5)
    for term in hints.terms:
        yield Edit(root, f"{script.source(root)} + {hints.grad_output} * {term}", 0.5)
        yield Edit(root, f"{hints.grad_output} * {term}", 0.6)
    for c in hints.constants:
        yield Edit(root, f"{left} * {c!r}", 1.7)
        yield Edit(root, f"{left} / {c!r}", 1.7)
    yield Edit(root, f"-{whole}", 0.9)
    for text in ("2", "0.5", "3", "4"):
        yield Edit(root, f"{left} * {text}", 2.0)
    for name in names:
        yield Edit(root, f"{left} * {name}", 2.1)
        yield Edit(root, f"{left} / {name}", 2.2)
        for size in (f"{name}.numel()", f"{name}.shape[0]", f"{name}.shape[-1]", f"{name}.shape[-1] ** 0.5"):
            yield Edit(root, f"{left} / {size}", 2.4)
            yield Edit(root, f"{left} * {size}", 2.6)
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
        yield from _of_constant(node)
        return
    if isinstance(node, ast.Name):
        yield from (Edit(node, name, 1.2) for name in names if name != node.id)
    if isinstance(node, ast.BinOp):
        yield from _of_operation(script, node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield Edit(node, tight(script, node.operand), 0.8)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPPED:
        a, b = script.source(node.left), script.source(node.comparators[0])
        yield Edit(node, f"{a} {SWAPPED[type(node.ops[0])]} {b}", 0.9)
        for c in hints.constants:
            yield Edit(node, f"torch.where({a} {SIGN[type(node.ops[0])]} {b}, 1.0, {c!r})", 1.8)
    if isinstance(node, ast.Call):
        yield from _of_call(script, node)
    if isinstance(node, ast.Attribute) and node.attr in SHAPES:
        yield Edit(node, script.source(node.value), 1.0)
    if isinstance(node, ast.Subscript):
        yield from _of_subscript(script, node)
    if not isinstance(node, (ast.Tuple, ast.List, ast.Compare)) and not text.startswith("ctx.needs"):
        yield from _around(script, node)
        yield from (Edit(node, f"({product(script, node)} * {c!r})", 2.9) for c in hints.constants)


def _around(script: Script, node: ast.expr) -> Iterator[Edit]:
    whole = tight(script, node)
    yield Edit(node, f"{whole}.t()", 1.0 if isinstance(node, (ast.Name, ast.Attribute)) else 1.6)
    yield Edit(node, f"{whole}.transpose(-2, -1)", 1.7)
    yield Edit(node, f"(-{whole})", 2.3)
    yield Edit(node, f"{whole}.conj()", 1.8)
    yield Edit(node, f"({whole} * {whole})", 2.2)
    for k in ("0", "1", "-1"):
        yield Edit(node, f"{whole}.flip({k})", 2.0)
        yield Edit(node, f"{whole}.sum({k})", 2.0)
        yield Edit(node, f"{whole}.sum({k}, keepdim=True)", 2.5)
    yield Edit(node, f"{whole}.sum()", 2.1)
    yield Edit(node, f"(1 - {whole})", 2.4)
    for name in FUNCTIONS:
        yield Edit(node, f"{whole}.{name}()", 2.7)


def _of_constant(node: ast.Constant) -> Iterator[Edit]:
    c = node.value
    if isinstance(c, bool) or not isinstance(c, (int, float)):
        return
    others = [-c, c + 1, c - 1, 2 * c, c / 2, 1 - c] + ([1 / c] if c else [])
    if isinstance(c, float) and abs(c - 3.14159265) < 0.01:
        others.insert(0, 3.141592653589793)
    for k, other in enumerate(dict.fromkeys(others)):
        yield Edit(
            node, repr(int(other) if float(other).is_integer() and isinstance(c, int) else other), 1.1 + 0.05 * k
        )


def _of_operation(script: Script, node: ast.BinOp) -> Iterator[Edit]:
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


def _of_call(script: Script, node: ast.Call) -> Iterator[Edit]:
    if isinstance(node.func, ast.Name) and len(node.args) == 1:
        yield Edit(node, script.source(node.args[0]), 1.2)
    if not isinstance(node.func, ast.Attribute):
        return
    receiver, method = node.func.value, node.func.attr
    arguments = ", ".join(script.source(a) for a in [*node.args, *(k.value for k in node.keywords)])
    module = isinstance(receiver, ast.Name) and receiver.id in ("torch", "F", "np", "math")
    if module and len(node.args) == 1:
        yield Edit(node, script.source(node.args[0]), 1.6)
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
    if method in FUNCTIONS:
        for other in FUNCTIONS:
            if other != method:
                head = f"{script.source(receiver)}.{other}({arguments})"
                yield Edit(node, head, 1.5)
                yield Edit(node, f"(-{head})", 1.6)


def _of_subscript(script: Script, node: ast.Subscript) -> Iterator[Edit]:
    owner, index = script.source(node.value), script.source(node.slice)
    if isinstance(node.slice, (ast.Name, ast.Attribute)):
        yield Edit(node, f"{owner}[{index}.argsort()]", 1.4)
    if isinstance(node.slice, ast.Slice):
        swaps = {":-1": "1:", "1:": ":-1", "::-1": ":", ":-2": "2:", "2:": ":-2"}
        if index in swaps:
            yield Edit(node, f"{owner}[{swaps[index]}]", 1.2)
    yield Edit(node, owner, 1.6)


def _of_return(script: Script) -> Iterator[Edit]:
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
                yield Edit(value, ", ".join(fewer), 1.7)
        for count in (1, 2):
            yield Edit(value, ", ".join([*texts, *["None"] * count]), 1.0 + count / 4)
        for item in items:
            given = script.tree.args.args[1].arg if len(script.tree.args.args) > 1 else None
            if given is not None:
                yield Edit(item, f"{given} * {tight(script, item)}", 0.95)


def _of_statements(script: Script) -> Iterator[Edit]:
    """A tuple unpacked, an assignment in place made a new one, a name exchanged for a function of it everywhere."""
    for node in ast.walk(script.tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Attribute)
        ) and node.value.attr == "saved_tensors":
            yield Edit(node.targets[0], f"{node.targets[0].id},", 0.6)
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
