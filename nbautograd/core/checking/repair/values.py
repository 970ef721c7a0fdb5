"""Values of one run of a backward: what each expression came to, so that no edit is tried that cannot be computed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import FrameType, ModuleType
from typing import Any

import torch
from torch import Tensor

from nbautograd.core import user_source
from nbautograd.core.checking.repair.script import Script, places
from nbautograd.core.checking.repair.verification_points import Stage
from nbautograd.core.stumbles import hands_over
from nbautograd.core.trace import Trace, TracedCall
from nbautograd.core.user_source import assigned, in_place, names_read, names_written, reached

INERT = (bool, tuple, list, dict, str, slice, torch.dtype, torch.device, ModuleType, type(None))
Span = tuple[int, int, int, int]  # first line and column, last line and column


@dataclass(frozen=True)
class KnownValue:
    """A tensor's shape and dtype, or a number; neither for what nothing can be computed with.

    Attributes:
        shape: of a tensor.
        dtype: of a tensor.
        number: a number.
    """

    shape: torch.Size | None = None
    dtype: torch.dtype | None = None
    number: float | None = None


@dataclass
class KnownValues:
    """Values at one point, None where they are not known: not reached, of another type, or others later.

    Attributes:
        of: each expression, by the id of its node.
        names: what each name stood for before a value was assigned or returned, by the id of that node.
        on_ctx: what ctx holds, as backward writes it.
    """

    of: dict[int, KnownValue | None] = field(default_factory=dict)
    names: dict[int, dict[str, KnownValue | None]] = field(default_factory=dict)
    on_ctx: dict[str, KnownValue | None] = field(default_factory=dict)

    def bound(self, root: ast.expr, names: Iterable[str]) -> dict[str, KnownValue | None]:
        """Return the names that stand for something there, each with its value."""
        here = self.names.get(id(root))
        if here is None:
            return dict.fromkeys(names)
        return {n: self.on_ctx.get(n, here.get(n)) for n in names if n in here or "." in n}

    def throughout(self, names: Iterable[str]) -> dict[str, KnownValue | None]:
        """Return all names, each with its value where it is the same one wherever it is known."""
        seen: dict[str, set[KnownValue | None]] = {}
        for here in self.names.values():
            for name, found in here.items():
                seen.setdefault(name, set()).add(found)
        once = {name: next(iter(found)) for name, found in seen.items() if len(found) == 1}
        return {name: self.on_ctx.get(name, once.get(name)) for name in names}


def value(item: Any) -> KnownValue | None:
    """Return what is known of an object."""
    if isinstance(item, Tensor):
        return KnownValue(item.shape, item.dtype) if item.layout is torch.strided else None
    if isinstance(item, (int, float)) and not isinstance(item, bool):
        return KnownValue(number=float(item)) if abs(item) < 2**53 else None
    return KnownValue() if isinstance(item, INERT) else None


def broadcast(one: KnownValue | None, other: KnownValue | None) -> bool:
    """Return False for tensors that no elementwise operation takes together, or what no operation takes."""
    for v in (one, other):
        if v is not None and v.shape is None and v.number is None:
            return False
    if one is None or other is None or one.shape is None or other.shape is None:
        return True
    pairs = zip(reversed(one.shape), reversed(other.shape), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def noted_values(script: Script, at: Stage) -> KnownValues:
    """Run a backward once under a trace and note its values: results of torch, and what names stood for.

    Numbers that Python computes inside of an expression are not seen.
    """
    found, roots = KnownValues(), dict[Span, ast.expr]()
    nodes = dict[Span, ast.expr]()
    for place in places(script):
        for node in place.subexpressions:
            if isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                nodes[span(node)], roots[span(node)] = node, place.value
    code, own = script.function.__code__, at.own
    spans, above, left = [*code.co_positions()], script.first_line - 1, len(script.indent)

    def node_at(frame: FrameType) -> Span:
        first, last, begin, end = (n or 0 for n in spans[frame.f_lasti // 2])
        return first - above, begin - left, last - above, end - left

    def begins(frame: FrameType) -> None:
        root = roots.get(node_at(frame))
        if root is not None:
            here = {name: value(item) for name, item in frame.f_locals.items()}
            before = found.names.get(id(root), here)
            found.names[id(root)] = {n: here[n] if before.get(n) == here.get(n) else None for n in here | before}

    def ends(call: TracedCall) -> Any:
        node = nodes.get(node_at(call.frame))
        if node is not None:
            known = value(call.result)
            found.of[id(node)] = known if found.of.get(id(node), known) == known else None
        return call.result

    @hands_over
    def traced(ctx: Any, *grads: Any) -> Any:
        with Trace(code, begins, ends):
            return own(ctx, *grads)

    found.on_ctx = {f"ctx.{name}": value(item) for name, item in vars(at.point.node).items()}
    at.gradients(traced)  # what is noted before it raises stands
    for key, node in nodes.items():
        names = found.names.get(id(roots[key]), {})
        if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in found.of:
            text = ast.unparse(node)
            found.of[id(node)] = found.on_ctx.get(text, names.get(text))
        elif id(node) not in found.of:
            found.of[id(node)] = value(node.value) if isinstance(node, ast.Constant) else None
    return found


def span(node: ast.expr | ast.stmt) -> Span:
    """Return where a node begins and ends."""
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def idle(tree: ast.FunctionDef, arguments: Iterable[int]) -> list[Span]:
    """Find the values of a backward that no gradient of these arguments is computed from.

    Whatever is changed in place, tested or called for itself counts as a part of all gradients.
    """
    items: list[Sequence[ast.expr]] = []
    for statement in user_source.returns(tree):
        value = statement.value
        if not isinstance(value, ast.Tuple) or any(isinstance(item, ast.Starred) for item in value.elts):
            return []
        items.append(value.elts)
    wanted, nodes = set(arguments), list(user_source.own_nodes(tree))
    left: set[str] = set()
    sources: dict[str, set[str]] = {}
    made: list[tuple[set[str], ast.expr]] = []
    for node in nodes:
        if isinstance(node, ast.Assign) and all(isinstance(t, (ast.Name, ast.Tuple)) for t in node.targets):
            written = {n for target in node.targets for n in names_written(target)}
            if not any(isinstance(n, ast.Attribute) and in_place(n.attr) for n in ast.walk(node.value)):
                made.append((written, node.value))
            for name in written:
                sources.setdefault(name, set()).update(names_read(node.value))
        elif isinstance(node, ast.FunctionDef):
            sources.setdefault(node.name, set()).update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
        elif isinstance(node, (ast.stmt, ast.withitem)) and not isinstance(node, ast.Return):
            own = [c for c in ast.iter_child_nodes(node) if isinstance(c, (ast.expr, ast.withitem))]
            left |= {n.id for c in own for n in ast.walk(c) if isinstance(n, ast.Name)}
    for target, changed in assigned(nodes):
        called = isinstance(changed, ast.Call) and isinstance(changed.func, ast.Attribute)
        if called and in_place(changed.func.attr) and changed.func.value is target:  # type: ignore[attr-defined]
            left |= {*names_written(target), *names_read(changed)}
    left |= {n for row in items for k, item in enumerate(row) if k in wanted for n in names_read(item)}
    needed = reached(left, sources)
    spans = [span(value) for written, value in made if not written & needed]
    return spans + [span(item) for row in items for k, item in enumerate(row) if k not in wanted]
