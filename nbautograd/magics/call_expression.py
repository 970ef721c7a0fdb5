"""Expressions as a person writes them, ``linear(a, b)``, ``--inputs EXPR``, ``--reference EXPR``: read, evaluated."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from IPython.core.error import UsageError

from nbautograd import messages
from nbautograd.core.checking.problem import separate_context
from nbautograd.core.stumbles import said
from nbautograd.core.user_source import function_class
from nbautograd.magics.options import MAGIC

Namespace = Mapping[str, Any]
COMPUTED = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript)  # of tensors they give a tensor


@dataclass(frozen=True)
class CallExpression:
    """``linear(a, b)``, evaluated in the user's namespace.

    Attributes:
        function: what is called.
        function_text: how it was written, ``"linear"``.
        arguments: its arguments, keyword arguments put in their places.
        names: variable name -> value, of the arguments that are plain variables.
        nodes: the syntax of the positional arguments.
    """

    function: Callable[..., Any]
    function_text: str
    arguments: tuple[Any, ...]
    names: Mapping[str, Any]
    nodes: tuple[ast.expr, ...] = field(default=(), repr=False)


class EvaluationError(Exception):
    """The user's own expression raised; ``__cause__`` is what it raised."""


def expression(text: str, magic: str) -> ast.expr:
    """Return the syntax of an expression.

    Raises:
        UsageError: one sentence, when it is not an expression.
    """
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        reason = getattr(error, "msg", None) or str(error)
        raise UsageError(
            messages.text("magics.not_expression", magic=magic, text=text.strip(), reason=reason)
        ) from None


def parsed(text: str) -> ast.expr | None:
    """Return the syntax of an expression; None when it is none."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def evaluate(node: ast.expr, namespace: Namespace) -> Any:
    """Return the value of an expression in the user's namespace.

    Raises:
        EvaluationError: from whatever the user's code raised.
    """
    code = compile(ast.fix_missing_locations(ast.Expression(node)), "<magic>", "eval")
    try:
        return eval(code, dict(namespace))
    except Exception as error:
        raise EvaluationError(f"{type(error).__name__}: {said(error)}") from error


def parse_call(text: str, magic: str, namespace: Namespace) -> CallExpression:
    """Take a call apart.

    Args:
        text: what follows the magic, such as ``"linear(a, b)"``.
        magic: the magic's name with its ``%``, for sentences.
        namespace: the user's variables.

    Raises:
        UsageError: one sentence, when it is not a call.
        EvaluationError: when the function or an argument does not evaluate.
    """
    if not text:
        raise UsageError(messages.text("magics.no_call", magic=magic, example=f"{magic} linear(a, b)"))
    node = expression(text, magic)
    if isinstance(node, ast.Call) and not _is_method_of_tensor(node.func, namespace):
        return evaluate_call(node, magic, namespace)
    function = _of_variables(node, namespace) if isinstance(node, COMPUTED) else None
    if function is None:
        call = _call_of(node, namespace) or "linear(a, b)"
        raise UsageError(messages.text("magics.not_a_call", magic=magic, text=text, call=call))
    return function


def _is_method_of_tensor(function: ast.expr, namespace: Namespace) -> bool:
    if not isinstance(function, ast.Attribute):
        return False
    owner = evaluate(function.value, namespace)
    return isinstance(owner, torch.Tensor) and callable(getattr(owner, function.attr, None))


def _of_variables(node: ast.expr, namespace: Namespace) -> CallExpression | None:
    """Return ``(f(a, b) + 1).sum()`` as a function of the tensors among its variables; None where there are none."""
    names = {name: value for name, value in variables(node, namespace).items() if isinstance(value, torch.Tensor)}
    nodes = tuple([ast.Name(name, ast.Load()) for name in names])
    function = as_function(node, nodes, namespace)
    if function is None:
        return None
    return CallExpression(function, function.__name__, tuple(names.values()), names, nodes)


def evaluate_call(node: ast.Call, magic: str, namespace: Namespace) -> CallExpression:
    """Evaluate the function and the arguments of a call, but not the call."""
    function = evaluate(node.func, namespace)
    function_text = ast.unparse(node.func)
    if not callable(function):
        raise UsageError(
            messages.text("magics.not_callable", magic=magic, text=function_text, type=type(function).__name__)
        )
    arguments = evaluate(ast.Tuple(node.args, ast.Load()), namespace)
    if node.keywords:
        keywords = evaluate(ast.Call(ast.Name("dict", ast.Load()), [], node.keywords), {**namespace, "dict": dict})
        arguments = bind(function, arguments, keywords, magic)
    check_fit(node, function, arguments, magic)
    return CallExpression(function, function_text, arguments, variables(node, namespace), tuple(node.args))


def _call_of(node: ast.expr, namespace: Namespace) -> str:
    """Write the call of a function that was named without its arguments; empty for what is none."""
    try:
        value = evaluate(node, namespace)
    except EvaluationError:
        return ""
    if not callable(value) or isinstance(value, torch.Tensor):
        return ""
    cls, names = function_class(value), argument_names(value)
    text = ast.unparse(node) + (".apply" if cls is not None and value is cls else "")
    return f"{text}({', '.join(names)})" if names else ""


def as_function(node: ast.expr, arguments: tuple[ast.expr, ...], namespace: Namespace) -> Callable[..., Any] | None:
    """Return an expression as a function of those of its parts that are written like the arguments; None when none is.

    ``a * b`` with the arguments ``a`` and ``b`` becomes ``lambda a, b: a * b``.
    """
    names = [a.id if isinstance(a, ast.Name) else "" for a in arguments]
    parameters = [name if name and name not in names[:i] else f"_argument_{i}" for i, name in enumerate(names)]
    replace = _Replace({ast.dump(a): p for a, p in zip(arguments, parameters, strict=True)})
    body = replace.visit(ast.parse(ast.unparse(node), mode="eval").body)
    if not replace.used:
        return None
    given = ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, [])
    function: Callable[..., Any] = evaluate(ast.Lambda(given, body), namespace)
    function.__name__ = function.__qualname__ = ast.unparse(node)
    return function


class _Replace(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.used = False

    def visit(self, node: ast.AST) -> Any:
        name = self.names.get(ast.dump(node))
        if name is None:
            return self.generic_visit(node)
        self.used = True
        return ast.Name(name, ast.Load())


def variables(node: ast.AST, namespace: Namespace) -> dict[str, Any]:
    """Return the variables that an expression reads, with their values."""
    used = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    return {name: namespace[name] for name in used if name in namespace}


def signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """Return the arguments of a function; for a Function those of ``forward`` without ctx. None when nobody knows."""
    cls = function_class(function)
    try:
        if cls is None:
            return inspect.signature(function)
        given = function.args if isinstance(function, functools.partial) else ()
        before = given if separate_context(cls) else (None, *given)
        return inspect.signature(functools.partial(cls.forward, *before))  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return None


def check_fit(node: ast.Call, function: Callable[..., Any], arguments: tuple[Any, ...], magic: str) -> None:
    """Refuse arguments that are too few or too many for a function.

    Raises:
        UsageError: one sentence with what is missing, and the call with it.
    """
    known = signature(function)
    if known is None:
        return
    try:
        known.bind(*arguments)
    except TypeError:
        cls = function_class(function)
        name = ast.unparse(node.func) if cls is None else f"{cls.__name__}.forward"
        missing = argument_names(function)[len(arguments) :]
        params: dict[str, Any] = {"magic": magic, "function": name}
        if missing:
            call = ast.Call(node.func, [*node.args, *map(ast.Name, missing)], [])
            params |= {"missing": messages.text("views.comma").join(missing), "call": ast.unparse(call)}
            raise UsageError(messages.text("magics.missing_arguments", **params)) from None
        params |= {"takes": ", ".join(map(str, known.parameters.values())), "given": len(arguments)}
        raise UsageError(messages.text("magics.too_many_arguments", **params)) from None


def undefined(error: EvaluationError, namespace: Namespace) -> tuple[str, list[str]] | None:
    """Return the name that an expression did not find, and those that the notebook has.

    None when the expression failed otherwise.
    """
    if not isinstance(error.__cause__, NameError):
        return None
    name = error.__cause__.name or ""
    known = [n for n, value in namespace.items() if not n.startswith("_") and _is_the_notebooks(n, value)]
    return name, known


def _is_the_notebooks(name: str, value: Any) -> bool:
    """Return True for what a person checks, or checks it with; names that Python or IPython brought are none of it."""
    if isinstance(value, (tuple, list, dict)) and name not in ("In", "Out"):
        items = value.values() if isinstance(value, dict) else value
        return any(isinstance(item, torch.Tensor) for item in items)
    if isinstance(value, (torch.Tensor, torch.nn.Module)) or function_class(value) is not None:
        return True
    return callable(value) and getattr(value, "__module__", None) == "__main__"


def argument_names(function: Callable[..., Any]) -> list[str]:
    """Return names of the arguments that must be given."""
    known = signature(function)
    parameters = [] if known is None else known.parameters.values()
    must = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in must and p.default is p.empty]


def bind(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any], magic: str) -> Any:
    """Put keyword arguments in their places.

    Raises:
        UsageError: when they fit nowhere.
    """
    known = signature(function)
    try:
        bound = None if known is None else known.bind(*arguments, **keywords)
    except TypeError as error:
        raise UsageError(messages.text("magics.does_not_fit", magic=magic, reason=str(error))) from None
    if bound is None or bound.kwargs:
        raise UsageError(messages.text("magics.by_keyword", magic=magic, names=", ".join(keywords)))
    return bound.args


@dataclass(frozen=True)
class Inputs:
    """Inputs that the Function is to be called with.

    Attributes:
        values: the arguments of forward, in order.
        nodes: their syntax, where each was written by itself.
        names: variable name -> value, of the variables that the expression reads.
    """

    values: tuple[Any, ...]
    nodes: tuple[ast.expr, ...]
    names: Mapping[str, Any]


def read_inputs(text: str, cls: type, namespace: Namespace) -> Inputs:
    """Evaluate ``--inputs``: a tuple is the arguments, a dict the keyword arguments, anything else the only one.

    Raises:
        UsageError: one sentence with what to do, when it does not evaluate or does not fit.
    """
    node = _tuple_of_starred(text) or expression(text, f"{MAGIC} --inputs")
    try:
        value = evaluate(node, namespace)
    except EvaluationError as error:
        raise UsageError(_failed(text, cls, error, namespace)) from None
    values = _values(value, cls)
    _check_fit(values, cls)
    nodes = tuple(node.elts) if isinstance(node, ast.Tuple) else (node,)
    if len(nodes) != len(values) or any(isinstance(n, ast.Starred) for n in nodes):
        nodes = ()
    return Inputs(values, nodes, variables(node, namespace))


def read_reference(text: str, inputs: Inputs, namespace: Namespace) -> Callable[..., Any]:
    """Evaluate ``--reference``: a function such as ``torch.mul``, or an expression of the inputs such as ``a * b``.

    Raises:
        UsageError: one sentence, when it is neither.
    """
    magic = f"{MAGIC} --reference"
    node = expression(text, magic)
    try:
        value = evaluate(node, namespace)
    except EvaluationError as error:
        raise UsageError(messages.text("magics.reference_failed", text=text, error=one_line(error))) from None
    if callable(value):
        return value  # type: ignore[no-any-return]
    function = as_function(node, inputs.nodes, namespace)
    if function is None:
        kind = type(value).__name__
        raise UsageError(messages.text("magics.reference_not_callable", text=text, type=kind))
    return function


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line; its type is left to the caller."""
    return " ".join(said(error).split())[:300]


def _tuple_of_starred(text: str) -> ast.expr | None:
    """Return ``*args, 2.0`` as the tuple that it is in a call; None without a star."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(call, ast.Call) or call.keywords or not any(isinstance(a, ast.Starred) for a in call.args):
        return None
    return ast.Tuple(call.args, ast.Load())


def _failed(text: str, cls: type, error: EvaluationError, namespace: Namespace) -> str:
    unknown = undefined(error, namespace)
    if unknown is not None:
        sentence = messages.text("magics.inputs_undefined", text=text, name=unknown[0], function=cls.__name__)
        return messages.with_guess(sentence, *unknown)
    return messages.text("magics.inputs_failed", text=text, error=one_line(error), function=cls.__name__)


def _values(value: Any, cls: type) -> tuple[Any, ...]:
    if isinstance(value, dict) and value and all(isinstance(key, str) for key in value):
        known = signature(cls.apply)  # type: ignore[attr-defined]
        if known is not None and set(value) <= set(known.parameters):
            values: tuple[Any, ...] = bind(cls.apply, (), value, f"{MAGIC} --inputs")  # type: ignore[attr-defined]
            return values
    return tuple(value) if type(value) is tuple else (value,)


def _check_fit(values: tuple[Any, ...], cls: type) -> None:
    known = signature(cls.apply)  # type: ignore[attr-defined]
    if known is None:
        return
    try:
        known.bind(*values)
    except TypeError as error:
        takes = ", ".join(str(p) for p in known.parameters.values())
        params = {"function": cls.__name__, "takes": takes, "given": len(values), "reason": str(error)}
        raise UsageError(messages.text("magics.inputs_do_not_fit", **params)) from None
