"""A backward whose variables are handed through a call once they are written: each can be seen, and be replaced."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

from torch import Tensor

from nbautograd.core import user_source
from nbautograd.core.checking import backward_lines
from nbautograd.core.checking.backward_call import user_backward
from nbautograd.core.checking.diagnosis.rewritten import Method, Wrapped, expressions, method, recompiled
from nbautograd.core.checking.diagnosis.wrong_variable import Site
from nbautograd.core.checking.problem import Problem
from nbautograd.core.contract import rules
from nbautograd.core.user_source import assigned, in_place, named_functions, names_read, names_written

REPEATED = (ast.For, ast.While, ast.Try)
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
HELD, SEEN = "_held", "_seen"  # what the calls around variables and expressions are named

Key = tuple[str, int]  # "gradient", "value" or "derivative" (of the output), and the number of an expression of forward


class InstrumentedBackward:
    """A backward and a forward of which each intermediate value can be seen, and those of backward be replaced.

    Args:
        problem: what was checked.
        position: of the input whose gradient is wrong.

    Attributes:
        sites: the variables, conditions and returned expressions of backward, by their numbers.
        labels: text and line of each expression of forward, by its number.
        replaced: number of a variable, and what it is replaced by while backward runs.
        seen, held: values of forward's expressions and of backward's sites in the last run, by their numbers.
    """

    def __init__(self, problem: Problem, position: int) -> None:
        self.problem, self.position = problem, position
        self.which = problem.differentiable.index(position)
        self.sites: list[Site] = []
        cls: Any = problem.cls
        forward, backward = method(cls.forward), method(user_backward(cls))
        if forward is None or backward is None:
            return
        self.nodes = expressions(forward[1])
        self.labels = _labels(forward[1], self.nodes)
        seeing = Wrapped(self.nodes, SEEN).visit(copy.deepcopy(forward[1]))
        self.forward = recompiled(forward[0], seeing, {SEEN: self._seen})
        self.arguments, self.outside = user_source.parameters(backward[1])[1:], backward[0].__globals__
        self.own: int | None = None  # number of the first in backward itself, once the functions beside it are done
        own = {name: one for name, one in _helpers(backward).items() if name not in _helpers(forward)}
        helpers = {name: self._holding(one, {}) for name, one in own.items()}
        self.own = len(self.sites)
        self.backward = self._holding(backward, {name: made for name, made in helpers.items() if made is not None})
        self.replaced: tuple[int, Any] | None = None
        self.seen: dict[int, Any] = {}
        self.held: dict[int, Any] = {}

    def _holding(self, one: Method, helpers: Mapping[str, FunctionType]) -> FunctionType | None:
        """Return a function that hands its variables and conditions, and what it returns, through a call."""
        tree = copy.deepcopy(one[1])
        tree.body = list(self._held_after(tree.body, set(user_source.parameters(tree))))
        return recompiled(one[0], tree, {HELD: self._held, **helpers})

    def _held_after(self, statements: Sequence[ast.stmt], known: set[str]) -> Iterator[ast.stmt]:
        """Yield the statements, each variable handed through a call after its writer; a loop counts as one."""
        for statement in statements:
            sites = list(self._written(statement, known))
            returned = (
                copy.deepcopy(statement.value) if isinstance(statement, ast.Return) else None
            )  # as it was written
            if not isinstance(statement, (*REPEATED, ast.With, ast.FunctionDef, ast.ClassDef)):
                self._hold_conditions(statement)
            if isinstance(statement, ast.Return) and statement.value is not None and returned is not None:
                statement.value = self._hold_returned(statement.value, returned)
            own = isinstance(statement, (ast.If, ast.With))
            for name in ("body", "orelse") if own or isinstance(statement, REPEATED) else ():
                inner = getattr(statement, name, None)
                if inner:
                    setattr(statement, name, list(self._held_after(inner, known if own else set(known))))
            yield statement
            for site in sites:
                call = f"{site.name} = {HELD}({len(self.sites)}, {site.name})"
                self.sites.append(site)
                known.add(site.name)
                yield ast.copy_location(ast.parse(call).body[0], statement)

    def _written(self, statement: ast.stmt, known: set[str]) -> Iterator[Site]:
        """Yield the variables that a statement writes; of what may not run those that were there before."""
        if isinstance(statement, (ast.If, ast.With, ast.FunctionDef, ast.ClassDef, ast.Return, ast.Raise)):
            return
        pairs, inside = list(assigned(ast.walk(statement))), isinstance(statement, REPEATED)
        plain = isinstance(statement, ast.Assign) and all(isinstance(t, ast.Name) for t in statement.targets)
        for name in dict.fromkeys(n for target, _ in pairs for n in names_written(target) if n != "ctx"):
            mine = [(target, value) for target, value in pairs if name in names_written(target)]
            if inside and name not in known:
                continue
            value, reads = mine[0][1], (names_read(v) for _, v in (pairs if inside else mine))
            methods = (v.func.attr for _, v in mine if isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute))
            written_into = all(not isinstance(t, (ast.Name, ast.Tuple, ast.List)) for t, _ in mine)
            changed = inside or isinstance(statement, ast.AugAssign) or written_into or any(map(in_place, methods))
            alone = plain and len(mine) == 1 and not changed
            writers = (
                [n for n in ast.walk(statement) if isinstance(n, SIMPLE) and name in _names_in(n)] if inside else []
            )
            own = writers[0] if len(writers) == 1 else None
            yield Site(
                name,
                own.lineno if own else statement.lineno if inside else max(v.lineno for _, v in mine),
                ast.unparse(own or statement).split("\n")[0] if inside else ast.unparse(value if alone else statement),
                _from_ctx(value),
                frozenset().union(*reads) | ({name} if changed else set()),
                not changed and all(map(backward_lines.is_maker, getattr(value, "elts", [value]))),
                alone,
                loop=statement.lineno if inside else 0,
            )

    def _hold_conditions(self, statement: ast.stmt) -> None:
        """Hand each comparison, and what an ``if`` tests, through a call; of an ``if`` statement the test alone."""
        root = statement.test if isinstance(statement, ast.If) else statement
        tests = [n.test for n in ast.walk(statement) if isinstance(n, ast.IfExp)]
        tests += [statement.test] if isinstance(statement, ast.If) else []
        local = {id(n) for f in ast.walk(root) if isinstance(f, (ast.Lambda, ast.comprehension)) for n in ast.walk(f)}
        whole = {id(getattr(statement, "value", None))}  # what is assigned is seen as the variable
        nodes = [n for n in (*tests, *ast.walk(root)) if isinstance(n, ast.Compare) or any(n is t for t in tests)]
        kept = {id(n): n for n in nodes if id(n) not in local | whole and isinstance(n, ast.expr)}
        wrapped = Wrapped(list(kept.values()), HELD, len(self.sites))
        for node in kept.values():
            text = ast.unparse(node)
            self.sites.append(Site(text, node.lineno, text, "", names_read(node), False, False, True))
        for name, child in ast.iter_fields(statement):
            if isinstance(statement, ast.If) and name != "test":
                continue
            if isinstance(child, ast.AST):
                setattr(statement, name, wrapped.visit(child))

    def _hold_returned(self, value: ast.expr, written: ast.expr) -> ast.expr:
        """Hand each expression that is returned through a call; in the text as it was written no condition is."""
        items = written.elts if isinstance(written, ast.Tuple) else [written]
        made = [n for n in items if not isinstance(n, (ast.Name, ast.Constant, ast.Starred))]
        wrapped: ast.expr = Wrapped(made, HELD, len(self.sites)).visit(value)
        for node in made:
            text = ast.unparse(node)
            self.sites.append(Site(text, node.lineno, text, "", names_read(node), False, False))
        return wrapped

    def _seen(self, number: int, value: Any) -> Any:
        self.seen[number] = None if number in self.seen else value  # of what runs more than once nothing is known
        return value

    def _held(self, number: int, value: Any) -> Any:
        self.held[number] = None if number in self.held else value  # likewise
        if self.replaced is None or self.replaced[0] != number:
            return value
        other = self.replaced[1]
        return other.clone() if isinstance(other, Tensor) else other(value) if callable(other) else other

    def modules(self) -> set[str]:
        """Return the names that stand for modules, or for what Python has built in: nothing that may be wrong."""
        names = {name for site in self.sites for name in site.reads}
        return {n for n in names if isinstance(self.outside.get(n), ModuleType) or hasattr(builtins, n)}

    def expression(self, key: Key) -> tuple[str, int | None]:
        """Return the text of an expression of forward, or an argument's name, and the expression's line."""
        return self.labels[key[1]] if key[1] >= 0 else (self.problem.input_names[-1 - key[1]], None)


def _helpers(one: Method) -> dict[str, Method]:
    """Return the functions beside the class, in its cell or file, that a method calls by name."""
    found = named_functions(one[0], beside=True)
    return {name: read for name, f in sorted(found.items()) if (read := method(f)) is not None}


def _labels(tree: ast.FunctionDef, nodes: Sequence[ast.expr]) -> dict[int, tuple[str, int]]:
    """Return the text and line of each expression: the variable it is assigned to; of a name where that is assigned."""
    own = list(user_source.own_nodes(tree))
    named = {
        id(n.value): n.targets[0].id
        for n in own
        if isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name)
    }
    written = [(name, target.lineno) for target, _ in assigned(own) for name in names_written(target)]

    def line(node: ast.expr) -> int:
        if not isinstance(node, ast.Name):
            return node.lineno
        return max((at for name, at in written if name == node.id and at < node.lineno), default=node.lineno)

    return {k: (named.get(id(n)) or rules.short(ast.unparse(n)), line(n)) for k, n in enumerate(nodes)}


def _names_in(statement: ast.stmt) -> set[str]:
    """Return the variables that a statement writes."""
    return {name for target, _ in assigned(ast.walk(statement)) for name in names_written(target)}


def _from_ctx(value: ast.expr) -> str:
    """Return the attribute of what only takes one from ctx, such as ``ctx.saved_tensors[0]``; else an empty string."""
    attribute = value.value if isinstance(value, ast.Subscript) else value
    named = isinstance(attribute, ast.Attribute) and isinstance(attribute.value, ast.Name)
    return attribute.attr if named and attribute.value.id == "ctx" else ""  # type: ignore[attr-defined]
