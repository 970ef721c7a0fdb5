"""Methods of a Function as syntax trees: arguments, what is saved, what is returned and where it was computed."""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Returned = tuple[str | None, int | None, str | None]


@lru_cache(maxsize=64)
def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def module_tree(filename: str) -> ast.Module | None:
    """The syntax tree of a file or notebook cell, None when its text is gone or does not parse."""
    linecache.checkcache(filename)  # a file that was edited since; cells stay
    lines = linecache.getlines(filename)
    return _tree("".join(lines)) if lines else None


def method_at(code: CodeType) -> FunctionNode | None:
    """The ``def`` that this code was compiled from."""
    tree = module_tree(code.co_filename)
    if tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode) and node.name == code.co_name and first_line(node) == code.co_firstlineno:
            return node
    return None


def class_around(code: CodeType, name: str) -> ast.ClassDef | None:
    """The innermost ``class`` around the ``def`` of this code; the one called ``name`` is preferred."""
    tree = module_tree(code.co_filename)
    if tree is None:
        return None
    line = code.co_firstlineno
    around = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.lineno <= line <= (n.end_lineno or 0)]
    around.sort(key=lambda node: (node.name == name, node.lineno))
    return around[-1] if around else None


def text_of(filename: str, node: FunctionNode | ast.ClassDef) -> str:
    """The source of a definition with its decorators, dedented."""
    lines = linecache.getlines(filename)
    return textwrap.dedent("".join(lines[first_line(node) - 1 : node.end_lineno]))


def first_line(node: FunctionNode | ast.ClassDef) -> int:
    """The line where a definition begins, decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def parameters(function: FunctionNode) -> list[str]:
    """Return the names of the arguments in order, ``*args`` with its star, without the class of a classmethod."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    if any(isinstance(d, ast.Name) and d.id == "classmethod" for d in function.decorator_list):
        names = names[1:]
    return names + ([f"*{function.args.vararg.arg}"] if function.args.vararg else [])


def own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Every node of a function's body in source order, inner functions and classes left out."""
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def returns(function: FunctionNode) -> list[ast.Return]:
    """The ``return`` statements that give a value, in source order."""
    return [node for node in own_nodes(function) if isinstance(node, ast.Return) and node.value is not None]


def returned(function: FunctionNode) -> list[Returned]:
    """Name, line and expression of each value of the last ``return``, traced to its last assignment."""
    found = returns(function)
    if not found:
        return []
    value = found[-1].value
    assert value is not None
    items = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
    return [_trace(function, item, found[-1]) for item in items]


def _trace(function: FunctionNode, item: ast.expr, end: ast.Return) -> Returned:
    if not isinstance(item, ast.Name):
        return None, item.lineno, ast.unparse(item)
    expressions = [e for e in _assignments(function, item.id) if e.lineno <= end.lineno]
    best = next((e for e in reversed(expressions) if not _is_none(e)), expressions[-1] if expressions else None)
    return item.id, best.lineno if best is not None else None, ast.unparse(best) if best is not None else None


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _assignments(function: FunctionNode, name: str) -> list[ast.expr]:
    """Every expression that is assigned to a name, in source order."""
    found: list[ast.expr] = []
    for node in own_nodes(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found.extend(_assigned(target, node.value, name))
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            found.extend(_assigned(node.target, node.value, name))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            joined = ast.BinOp(ast.Name(name, ast.Load()), node.op, node.value)
            found.append(ast.copy_location(joined, node))
    return found


def _assigned(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    if isinstance(target, ast.Name) and target.id == name:
        yield value
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        same = len(parts) == len(target.elts)
        for index, inner in enumerate(target.elts):
            yield from _assigned(inner, parts[index] if same else value, name)


def calls_of(function: FunctionNode, method: str) -> list[ast.Call]:
    """Calls of ``<something>.method(...)`` in the body, in source order."""
    nodes = (node for node in own_nodes(function) if isinstance(node, ast.Call))
    return [node for node in nodes if isinstance(node.func, ast.Attribute) and node.func.attr == method]


def saved(function: FunctionNode) -> tuple[str, ...] | None:
    """Names given to ``save_for_backward``: () when it is never called, None when they cannot be known."""
    calls = calls_of(function, "save_for_backward")
    if not calls:
        return ()
    names = {tuple(ast.unparse(argument) for argument in call.args) for call in calls}
    starred = any(isinstance(argument, ast.Starred) for call in calls for argument in call.args)
    return None if starred or len(names) != 1 else names.pop()


def materialize_grads(function: FunctionNode) -> bool | None:
    """Return what ``set_materialize_grads`` is told: True when never called, None when only a run can tell."""
    value_given: bool | None = True
    for call in calls_of(function, "set_materialize_grads"):
        value = call.args[0] if len(call.args) == 1 else None
        value_given = value.value if isinstance(value, ast.Constant) and isinstance(value.value, bool) else None
    return value_given


def changed_in_place(function: FunctionNode) -> dict[str, int]:
    """Return the arguments that a function changes as in ``g *= 2``, ``g[i] = 0`` or ``g.mul_(2)``: name -> line."""
    changed: dict[str, int] = {}
    rebound: set[str] = set()
    for node in own_nodes(function):
        if isinstance(node, ast.Assign):
            rebound |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        name = _changed_by(node)
        if name is not None and name not in rebound and name in parameters(function):
            changed.setdefault(name, node.lineno)  # type: ignore[attr-defined]
    return changed


def _changed_by(node: ast.AST) -> str | None:
    target: ast.AST | None = None
    if isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        target = node.func.value if name.endswith("_") and name != "requires_grad_" else None
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None
