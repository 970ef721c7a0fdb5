"""Grammar of edits: each kind says what may stand in the place of one expression or statement of a backward."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nbautograd.core import user_source
from nbautograd.core.checking.repair.kinds import KINDS, Context, Facts, Kind, kind
from nbautograd.core.checking.repair.script import (
    AXES,
    COUNTERPARTS,
    FUNCTIONS,
    SHAPES,
    SIGN,
    SIGNS,
    SWAPPED,
    Edit,
    Hints,
    Script,
    Written,
    alternatives,
    drawing,
    places,
)
from nbautograd.core.checking.repair.values import KnownValue, KnownValues
from nbautograd.core.stumbles import own_errors

MODULES = ("torch", "F", "np", "math")
NAME = re.compile(r"(?<![\w.])(?!\w+\.pi\b)[A-Za-z_]")  # in the text of a factor, which is else a number
NEXT = 0.05  # what each further number for the same constant costs more
ENDS = {":-1": "1:", "1:": ":-1", "::-1": ":", ":-2": "2:", "2:": ":-2"}  # the other end of a slice
ZERO_OR_ONE = ("0", "1", "0.0", "1.0")  # in the place of a number: rather is what it stands beside left out
UNUSED = 0.8  # what an edit costs less that brings in a name which backward has and never uses


def edits(
    script: Script, names: Sequence[str], hints: Hints, near: Mapping[int, float], known: KnownValues | None = None
) -> list[Edit]:
    """Return all edits, the likeliest first, without those of which it is known that they cannot be computed.

    Args:
        script: the backward.
        names: names and ctx attributes that may take part.
        hints: what the evidence speaks of.
        near: lines (of the script) on which the wrong value is computed, each with what edits elsewhere cost more.
        known: values of one run.
    """
    known, found = known or KnownValues(), list[Edit]()
    whole = Context(script, known.throughout(names), hints, known.of, Facts(script.tree))
    brought = re.compile(r"(?<![\w.])(?:" + "|".join(map(re.escape, whole.unused)) + r")(?!\w)")
    drawn = drawing(script.tree)

    def add(of: Kind, *place: Any, away: float = 0.0, root: ast.expr | None = None) -> None:
        with own_errors(f"edit {of.name}"):
            for e in of.rule(*place):
                if isinstance(e.node, ast.expr) and e.replacement in map(whole.source, alternatives(e.node)):
                    continue  # where the other one is taken nobody would see that it is gone
                if not drawn or not any(id(node) in drawn for node in e.nodes):
                    text = e.replacement if e.node is not root else _bare(e.replacement)
                    cost = e.cost + away - (UNUSED if whole.unused and brought.search(text) else 0.0)
                    found.append(Edit(e.node, text, cost, e.also, of.name))

    rules = {place: [k for k in KINDS.values() if k.place == place] for place in ("value", "part", "whole")}
    for place in places(script):
        away = 0.0 if place.line in near else min(near.values(), default=0.0)
        context = replace(whole, names=known.bound(place.value, names))
        for k in rules["value"]:
            add(k, context, place.value, away=away, root=place.value)
        for node, k in itertools.product(place.subexpressions, rules["part"]):
            add(k, context, node, away=away, root=place.value)
    for k in rules["whole"]:
        add(k, whole)
    cheapest: dict[tuple[int | str, ...], Edit] = {}
    for edit in sorted(found, key=lambda e: (e.cost, len(e.replacement) - _length(e.node), len(e.replacement))):
        also = [part for node, text in edit.also for part in (id(node), text)] if edit.also else ()
        cheapest.setdefault((id(edit.node), edit.replacement, *also), edit)
    return list(cheapest.values())


def _length(node: ast.expr | ast.stmt) -> int:
    return (node.end_col_offset or 0) - node.col_offset  # of equally likely edits the one that adds least comes first


def _bare(text: str) -> str:
    depths = itertools.accumulate((letter == "(") - (letter == ")") for letter in text[:-1])
    return text[1:-1] if text.startswith("(") and text.endswith(")") and all(depths) else text


# texts in the place of an expression, with what their fields stand for

Fill = Callable[[Context, ast.expr], Iterable[str]]
Guard = Callable[[Context, ast.expr], bool]
FIELDS: Mapping[str, Fill] = {
    "whole": lambda c, node: (c.source(node),),
    "tight": lambda c, node: (c.tight(node),),  # so that something may bind to it
    "left": lambda c, node: (c.product(node),),  # as the left side of a product
    "grad": lambda c, node: (c.hints.grad_output,),
    "number": lambda c, node: [text for text in c.hints.factors.get(id(node), ()) if not NAME.search(text)],
    "on_ctx": lambda c, node: c.numbers_on_ctx,  # also where a condition jumps, which no secant solves
    "name_or_size": lambda c, node: [text for text in c.hints.factors.get(id(node), ()) if NAME.search(text)],
    "lost": lambda c, node: c.hints.lost,
    "name": lambda c, node: c.names,
    "operand": lambda c, node: c.operands(node),
    "own": lambda c, node: [n for n in c.operands(node) if n in c.tensors and n.startswith("ctx.")],
    "strange": lambda c, node: [n for n in c.operands(node) if n in c.tensors and not n.startswith("ctx.")],
    "tensor": lambda c, node: c.tensors,
    "first": lambda c, node: [c.tight(node.left)] if isinstance(node, ast.BinOp) else (),
    "second": lambda c, node: [c.tight(node.right)] if isinstance(node, ast.BinOp) else (),
    "dim": lambda c, node: [k for k in ("0", "1", "-1") if int(k) < max(1, c.dim(node))],
    "longer": lambda c, node: (c.last(c.source(node)),),  # with one dimension more
}


def _any(c: Context, node: ast.expr) -> bool:
    return True


def _valued(c: Context, node: ast.expr) -> bool:
    odd = isinstance(node, (ast.Tuple, ast.List, ast.Compare, ast.Constant))
    signed = isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
    inert = isinstance(node, ast.Name) and node.id in MODULES
    inert |= (value := c.of.get(id(node))) is not None and value.shape is None and value.number is None
    return not (odd or signed or inert or c.source(node).startswith("ctx.needs"))


def _tensor(least: int) -> Guard:
    return lambda c, node: _valued(c, node) and c.dim(node) >= least


def _bounds(c: Context, node: ast.expr) -> bool:
    """Return True for a number of which any other between the same values would do as well."""
    value = c.of.get(id(node))
    return value is not None and value.number is not None and id(node) in c.facts.thresholds


def _is(node: ast.expr, *operations: type[ast.operator]) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, operations)


# kind, place, what it is for, and each text with what it costs
TEXTS: tuple[tuple[str, str, Guard, dict[str, float]], ...] = (
    ("negate", "value", _any, {"-{tight}": 0.9}),
    ("factor", "value", _valued, {"{left} {number}": 1.4}),
    ("term through a mean or a sum", "value", _any,
     {"{whole} - {tight}.mean({lost}, keepdim=True)": 0.98, "{whole} - {tight}.sum({lost}, keepdim=True)": 1.9,
      "{whole} - {name} * {tight}.sum({lost}, keepdim=True)": 1.7,
      "{whole} - {name} * ({grad} * {name}).sum({lost}, keepdim=True)": 1.9}),
    ("factor that is a name", "value", _any,
     {"{left} {name_or_size}": 1.4, "{left} * {own}": 1.6, "{left} / {own}": 1.65, "{left} * {strange}": 2.1,
      "{left} / {strange}": 2.2, "{left} / {tensor}.unsqueeze(-1)": 2.8, "{left} * {tensor}.unsqueeze(-1)": 2.8}),
    ("dimension added to a name", "part", lambda c, node: isinstance(node, ast.Name) and node.id in c.tensors,
     {"{longer}": 1.3}),
    ("factor left out", "part", lambda c, node: _is(node, ast.Mult, ast.Div, ast.MatMult),
     {"{first}": 1.2, "{second}": 1.5}),
    ("operand left out", "part",
     lambda c, node: isinstance(node, ast.BinOp) and not _is(node, ast.Mult, ast.Div, ast.MatMult),
     {"{first}": 1.2, "{second}": 1.5}),
    # the term that comes through a mean, or through a mean of something times itself, taken off
    ("centred", "part", lambda c, node: isinstance(node, (ast.Name, ast.BinOp)),
     {"({whole} - {tight}.mean({lost}, keepdim=True))": 0.9,
      "({whole} - {operand} * ({tight} * {operand}).mean({lost}, keepdim=True))": 1.25}),
    ("conjugate", "part", lambda c, node: _tensor(0)(c, node) and ((d := c.dtype(node)) is None or d.is_complex),
     {"{tight}.conj()": 1.8}),
    ("reversed", "part", _tensor(1), {"{tight}.flip({dim})": 2.0}),
    ("factor inside", "part", lambda c, node: _valued(c, node) and not _bounds(c, node),
     {"({left} {number})": 1.9, "({left} {name_or_size})": 1.9, "({left} * {on_ctx})": 2.6}),
    ("square", "part", lambda c, node: _valued(c, node) and not _bounds(c, node), {"({tight} ** 2)": 1.9}),
)  # fmt: skip


def _written(guard: Guard, texts: Mapping[str, float]) -> Callable[[Context, ast.expr], Iterator[Edit]]:
    fields = {text: [f for f in FIELDS if f"{{{f}}}" in text] for text in texts}
    ordered = {text: sorted(found, key=lambda f, text=text: -text.index(f"{{{f}}}")) for text, found in fields.items()}  # type: ignore[misc]

    def rule(c: Context, node: ast.expr) -> Iterator[Edit]:
        for text, cost in texts.items() if guard(c, node) else ():
            known = [tuple(FIELDS[f](c, node)) for f in ordered[text]]
            for values in itertools.product(*known):
                yield Edit(node, text.format(**dict(zip(ordered[text], values, strict=True))), cost)

    return rule


for _name, _at, _guard, _texts in TEXTS:
    kind(_name, _at)(_written(_guard, _texts))


# what is assigned or returned, as a whole


@kind("factor that is a function of a name", "value")
def _function_factor(c: Context, root: ast.expr) -> Iterator[Edit]:
    left = c.product(root)
    for name in (n for n in c.operands(root) if n in c.tensors):
        for bound in (*map(repr, c.hints.constants), *(n for n in c.numbers_on_ctx if n != name)):
            for mask in (f"({name}.abs() < {bound})", f"({name} < {bound})", f"({name} > {bound})"):
                yield Edit(root, f"{left} * {mask}", 2.7)
        for mask in (f"({name} > 0)", f"({name} < 0)", f"{name}.sign()", f"(1 - {name})", f"(1 + {name})",
                     f"{name} * (1 - {name})", f"{name}.cos()", f"{name}.exp()",
                     f"{name} ** 2", f"2 * {name}", f"{name} ** 0.5"):  # fmt: skip
            yield Edit(root, f"{left} * {mask}", 3.0)


# each expression inside


@kind("constant", "part")
def _constant(c: Context, node: ast.expr) -> Iterator[Edit]:
    number = getattr(node, "value", None)
    if not isinstance(node, ast.Constant) or isinstance(number, bool) or not isinstance(number, (int, float)):
        return
    if id(node) in c.facts.guards:
        return  # any other input that needs a gradient here would do as well
    yield from (Edit(node, name, 1.6 if isinstance(number, int) else 1.25) for name in c.numbers_on_ctx)
    if id(node) in c.facts.thresholds:
        return  # any other number that lies between the same values would agree as well
    negated = id(node) in c.facts.negated  # of which the sign is taken off as a whole
    near = [-number, number + 1, number - 1] if isinstance(number, int) else [-number]
    own = [*c.hints.factors.get(id(node), ()), *(repr(n) for n in near if n > 0 or not negated)]
    yield from (Edit(node, text, 1.1 + NEXT * k) for k, text in enumerate(own) if text not in ZERO_OR_ONE)
    if isinstance(number, int):
        yield from (Edit(node, repr(n), 1.6) for n in (0, 1) if n != number and (n or not negated))


@kind("subscripts of an einsum", "part")
def _subscripts(c: Context, node: ast.expr) -> Iterator[Edit]:
    text = getattr(node, "value", None)
    if not isinstance(text, str) or not re.fullmatch(r"[a-zA-Z, ]+->[a-zA-Z ]*", text):
        return
    left, right = text.split("->")
    for k in range(len(right) - 1):
        yield Edit(node, repr(f"{left}->{right[:k]}{right[k + 1]}{right[k]}{right[k + 2 :]}"), 1.2)
    for k, letter in enumerate(text):
        for other in sorted({x for x in text if x.isalpha()} - {letter}) if letter.isalpha() else ():
            yield Edit(node, repr(text[:k] + other + text[k + 1 :]), 1.4)


@kind("other name", "part")
def _other_name(c: Context, node: ast.expr) -> Iterator[Edit]:
    if isinstance(node, ast.Name) and node.id not in MODULES:
        yield from (Edit(node, name, 1.2) for name in c.names if name != node.id)


@kind("name for an expression", "part")
def _name_for_expression(c: Context, node: ast.expr) -> Iterator[Edit]:
    """Yield a name of the same shape and dtype in the place of what is written out; for a size one never used."""
    if not isinstance(node, (ast.BinOp, ast.Call, ast.Compare, ast.Subscript, ast.UnaryOp)):
        return
    value = c.of.get(id(node))
    size = value is not None and value.number is not None
    for name, other in c.names.items():
        if not size and (value is None or other is None or other == value != KnownValue()):
            yield Edit(node, name, 1.55)
        if size and name in c.unused and (other is None or other != KnownValue()):
            forms = range(1 + len(other.shape) if other is not None and other.shape else 0)
            yield from (Edit(node, form, 1.7) for form in (name, *(f"{name}.unsqueeze({k})" for k in forms)))


@kind("other operation", "part")
def _other_operation(c: Context, node: ast.expr) -> Iterator[Edit]:
    if not isinstance(node, ast.BinOp):
        return
    sign = SIGNS.get(type(node.op), "")
    near = isinstance(node.op, (ast.Add, ast.Sub))
    left, right = c.source(node.left) if near else c.product(node.left), c.tight(node.right)
    swapped = {"+": "-", "-": "+", "*": "/", "/": "*", "&": "|", "|": "&"}.get(sign)
    if swapped:
        yield Edit(node, f"({left} {swapped} {right})", 1.3)
    if sign == "@":
        yield Edit(node, f"{left} * {c.source(node.right)}", 2.5)


@kind("minus taken off", "part")
def _minus_removed(c: Context, node: ast.expr) -> Iterator[Edit]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if id(node.operand) in c.facts.negated:
            yield Edit(node, "0", 1.6)
        yield Edit(node, c.tight(node.operand), 1.1 if isinstance(node.operand, ast.Constant) else 0.8)


@kind("not taken off", "part")
def _not_removed(c: Context, node: ast.expr) -> Iterator[Edit]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        yield Edit(node, c.tight(node.operand), 0.8)


@kind("comparison", "part")
def _comparison(c: Context, node: ast.expr) -> Iterator[Edit]:
    if not (isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPPED):
        return
    a, b = c.source(node.left), c.source(node.comparators[0])
    sign = SIGN[type(node.ops[0])]
    yield Edit(node, f"{c.tight(node.left)}.abs() {sign} {b}", 1.2)
    yield Edit(node, f"{a} {SWAPPED[type(node.ops[0])]} {b}", 0.9)
    if sign[0] in "<>":
        yield Edit(node, f"{a} {sign[0] if sign[1:] else sign + '='} {b}", 0.5)
    if isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Pow):
        yield Edit(node, f"{c.tight(node.left.left)}.abs() {sign} {b}", 1.2)
    for constant in c.hints.constants:
        yield Edit(node, f"torch.where({a} {sign} {b}, 1.0, {constant!r})", 1.8)


@kind("call left out", "part")
def _call_dropped(c: Context, node: ast.expr) -> Iterator[Edit]:
    if isinstance(node, ast.Attribute) and node.attr in SHAPES:
        yield Edit(node, c.tight(node.value), 1.0)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        yield Edit(node, c.tight(node.args[0]), 1.2)
    call = _Method.of(c, node)
    if call.args and isinstance(call.on, ast.Attribute):
        yield Edit(node, c.tight(call.args[0]), 1.6)
    if call.name:
        yield Edit(node, c.tight(call.on), 1.0 if call.name in SHAPES else 1.5)


@dataclass(frozen=True)
class _Method:
    """A call of a method, or of a module's function on its first argument, taken apart.

    Attributes:
        on: what is computed on.
        name: of the method or function; empty for what is no such call.
        args: the other arguments, a dimension that is given by its name first.
        rest: the text of them all.
        module: ``"torch"`` and the like; empty for a method.
    """

    on: ast.expr
    name: str = ""
    args: Sequence[ast.expr] = ()
    rest: str = ""
    module: str = ""

    @classmethod
    def of(cls, c: Context, node: ast.expr) -> _Method:
        """Take an expression apart."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            return cls(node)
        on, args, module = node.func.value, node.args, ""
        if isinstance(on, ast.Name) and on.id in MODULES:
            if not args:
                return cls(node)
            module, (on, *args) = on.id, args
        rest = [*map(c.source, args), *(f"{k.arg}={c.source(k.value)}" for k in node.keywords if k.arg)]
        named = [k.value for k in node.keywords if k.arg in ("dim", "dims", "axis")]
        return cls(on, node.func.attr, [*named, *args], ", ".join(rest), module)

    def written(self, c: Context, name: str, rest: str) -> str:
        """Return the text of a call of another name, with other arguments, on the same."""
        if self.module:
            return f"{self.module}.{name}({', '.join(filter(None, (c.source(self.on), rest)))})"
        return f"{c.tight(self.on)}.{name}({rest})"


@kind("sum for mean", "part")
def _sum_for_mean(c: Context, node: ast.expr) -> Iterator[Edit]:
    call = _Method.of(c, node)
    if call.name in ("sum", "mean"):
        yield Edit(node, call.written(c, "mean" if call.name == "sum" else "sum", call.rest), 1.4)


@kind("dimension", "part")
def _dimension(c: Context, node: ast.expr) -> Iterator[Edit]:
    call = _Method.of(c, node)
    if call.name in AXES and call.args:
        yield from (Edit(call.args[0], k, 0.85) for k in ("0", "1", "-1"))
    if call.name in ("sum", "mean") and not call.rest:
        for k in dict.fromkeys((*(d for d in c.hints.dims if re.fullmatch(r"-?\d+", d)), "-1")):
            yield Edit(node, call.written(c, call.name, f"{k}, keepdim=True"), 1.35)


@kind("running sum from the other end", "part")
def _reversed_running_sum(c: Context, node: ast.expr) -> Iterator[Edit]:
    call = _Method.of(c, node)
    if call.name in ("cumsum", "cumprod") and call.args:
        k = c.source(call.args[0])
        yield Edit(node, f"{c.tight(call.on)}.flip({k}).{call.name}({k}).flip({k})", 1.7)
    running = _Method.of(c, call.on)
    flipped = _Method.of(c, running.on)
    if call.name == flipped.name == "flip":
        yield Edit(node, f"{c.tight(flipped.on)}.{running.name}({running.rest})", 1.2)


@kind("not in place", "part")
def _not_in_place(c: Context, node: ast.expr) -> Iterator[Edit]:
    call = _Method.of(c, node)
    if user_source.in_place(call.name):
        yield Edit(node, call.written(c, call.name[:-1], call.rest), 0.6)


@kind("other function", "part")
def _other_function(c: Context, node: ast.expr) -> Iterator[Edit]:
    call = _Method.of(c, node)
    if call.name in COUNTERPARTS:
        yield Edit(node, call.written(c, COUNTERPARTS[call.name], call.rest), 1.0)
    for other in FUNCTIONS if call.name in FUNCTIONS else ():
        if other != call.name:
            yield Edit(node, call.written(c, other, call.rest), 1.5)


@kind("index", "part")
def _index(c: Context, node: ast.expr) -> Iterator[Edit]:
    if not isinstance(node, ast.Subscript) or (isinstance(node.value, ast.Attribute) and node.value.attr == "shape"):
        return
    owner, index = c.tight(node.value), c.source(node.slice)
    if isinstance(node.slice, (ast.Name, ast.Attribute)):
        yield Edit(node, f"{owner}[{index}.argsort()]", 1.4)
    if isinstance(node.slice, ast.Tuple):
        named = [item for item in node.slice.elts if isinstance(item, (ast.Name, ast.Attribute))]
        yield from (Edit(item, f"{c.source(item)}.argsort()", 1.4) for item in named)
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for item in items:
        if c.source(item) in ENDS:
            turned = [ENDS[c.source(i)] if i is item else c.source(i) for i in items]
            yield Edit(node, f"{owner}[{', '.join(turned)}]", 1.2)
    yield Edit(node, owner, 1.6)


@kind("transpose", "part")
def _transposed(c: Context, node: ast.expr) -> Iterator[Edit]:
    if _valued(c, node) and c.dim(node) > 1:
        for k, way in enumerate(c.transposed):
            near = 1.0 if isinstance(node, (ast.Name, ast.Attribute)) and way != ".transpose(-2, -1)" else 1.6
            yield Edit(node, f"{c.tight(node)}{way}", near + NEXT * k)


# the backward at once


def _returns(c: Context) -> Iterator[tuple[ast.expr, list[ast.expr], list[str]]]:
    for node in c.facts.nodes:
        if isinstance(node, ast.Return) and node.value is not None:
            items = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            yield node.value, items, [c.source(item) for item in items]


@kind("gradients exchanged", "whole")
def _gradients_exchanged(c: Context) -> Iterator[Edit]:
    for value, _, texts in _returns(c):
        for i in range(len(texts)):
            for j in range(i + 1, len(texts)):
                swapped = list(texts)
                swapped[i], swapped[j] = texts[j], texts[i]
                yield Edit(value, ", ".join(swapped), 0.7)


@kind("number of gradients", "whole")
def _number_of_gradients(c: Context) -> Iterator[Edit]:
    for value, _, texts in _returns(c):
        for i in range(len(texts) if len(texts) > 1 else 0):
            yield Edit(value, ", ".join([*texts[:i], "None", *texts[i + 1 :]]), 1.6)
            yield Edit(value, ", ".join([*texts[:i], *texts[i + 1 :]]), 1.55)
        for count in (1, 2):
            yield Edit(value, ", ".join([*texts, *["None"] * count]), 1.0 + count / 4)


@kind("times grad_output", "whole")
def _times_grad_output(c: Context) -> Iterator[Edit]:
    arguments = c.script.tree.args.args
    for _, items, _ in _returns(c):
        for item in items if len(arguments) > 1 else ():
            yield Edit(item, f"{arguments[1].arg} * {c.tight(item)}", 0.95)


@kind("dimension everywhere", "whole")
def _dimension_everywhere(c: Context) -> Iterator[Edit]:
    given: dict[str, list[ast.expr]] = {}
    for node in c.facts.nodes:
        call = _Method.of(c, node) if isinstance(node, ast.Call) else None
        if call is not None and call.name in AXES and call.args:
            given.setdefault(c.source(call.args[0]), []).append(call.args[0])
    for text, (first, *rest) in given.items():
        yield from (_everywhere((first, *rest), dim, 1.6) for dim in c.hints.dims if dim != text)


@kind("unpack", "whole")
def _unpacked(c: Context) -> Iterator[Edit]:
    for node in c.facts.nodes:
        named = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if named and isinstance(node.value, ast.Attribute) and node.value.attr == "saved_tensors":  # type: ignore[attr-defined]
            target = node.targets[0]  # type: ignore[attr-defined]
            yield Edit(target, f"{target.id},", 0.6)


@kind("add instead of assigning", "whole")
def _accumulated(c: Context) -> Iterator[Edit]:
    looped = {id(n) for loop in ast.walk(c.script.tree) if isinstance(loop, ast.For) for n in ast.walk(loop)}
    for node in c.facts.nodes:
        added = isinstance(node, ast.AugAssign)
        if not isinstance(node, (ast.Assign, ast.AugAssign)) or (added and not isinstance(node.op, ast.Add)):  # type: ignore[union-attr]
            continue
        if not any(isinstance(n, ast.Name) for n in ast.walk(node.value)):  # set to 0 on purpose: no contribution
            continue
        target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
        if isinstance(target, ast.Subscript) and isinstance(target.slice, (ast.Name, ast.Attribute)):
            owner, index = c.source(target.value), c.source(target.slice)
            yield Edit(node, f"{owner}.index_put_(({index},), {c.source(node.value)}, accumulate=True)", 1.5)
        if isinstance(target, ast.Subscript) and not added:
            yield Edit(node, f"{c.source(target)} += {c.source(node.value)}", 1.3)
        if isinstance(target, ast.Name) and id(node) in looped and not added:
            yield Edit(node, f"{target.id} = {target.id} + {c.source(node.value)}", 1.2)


@kind("names exchanged", "whole")
def _names_exchanged(c: Context) -> Iterator[Edit]:
    read = [list(_names_read(place)) for place in places(c.script)]
    everywhere = [n for found in read for n in found]
    for found, cost in (*((found, 1.5) for found in read), (everywhere, 2.0)):
        for a, b in itertools.combinations(dict.fromkeys(n.id for n in found), 2):
            if c.alike(a, b):
                first, *rest = [(n, b if n.id == a else a) for n in found if n.id in (a, b)]
                yield Edit(*first, cost, tuple(rest))


def _names_read(place: Written) -> Iterator[ast.Name]:
    call = place.subexpressions[0]
    roots = [place.value] if call is place.value or not isinstance(call, ast.Call) else call.args
    for node in (n for root in roots for n in ast.walk(root)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in (*MODULES, "ctx"):
            yield node


@kind("assignment in place made a new one", "whole")
def _augmented(c: Context) -> Iterator[Edit]:
    for node in c.facts.nodes:
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and type(node.op) in SIGNS:
            target, value = c.source(node.target), c.source(node.value)
            value = f"({value})" if isinstance(node.value, ast.BinOp) else value
            yield Edit(node, f"{target} = {target} {SIGNS[type(node.op)]} {value}", 0.6)


@kind("name everywhere", "whole")
def _name_everywhere(c: Context) -> Iterator[Edit]:
    used = [n for n in c.facts.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    for name in dict.fromkeys(n.id for n in used if n.id not in (*MODULES, "ctx")):
        found = [n for n in used if n.id == name]
        if len(found) > 1:
            yield from (_everywhere(found, f"{name}.{f}()", 2.2) for f in FUNCTIONS)


def _everywhere(nodes: Sequence[ast.expr], text: str, cost: float) -> Edit:
    return Edit(nodes[0], text, cost, tuple((node, text) for node in nodes[1:]))
