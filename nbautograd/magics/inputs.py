"""``--inputs EXPR`` and ``--reference EXPR``: evaluated in the user's namespace, or answered with a sentence."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError

from nbautograd import messages
from nbautograd.core.stumbles import said
from nbautograd.magics.call_expression import (
    EvaluationError,
    Namespace,
    as_function,
    bind,
    evaluate,
    expression,
    signature,
    undefined,
    variables,
)
from nbautograd.magics.options import MAGIC


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
