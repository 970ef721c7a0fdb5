"""The line magics: each takes a call, or a tensor, as one would write it."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Callable
from typing import Any

import torch
from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display

from nbautograd import messages
from nbautograd.core.checking.gradcheck import gradcheck, jacobian
from nbautograd.core.checking.progress import watched
from nbautograd.core.findings import Phrase
from nbautograd.core.graphs.build import graph
from nbautograd.core.recording.api import calls, instrumented
from nbautograd.core.recording.call import CallLog
from nbautograd.core.stumbles import is_ours
from nbautograd.core.tracing.dispatches import DispatchLog
from nbautograd.core.tracing.log import dispatches
from nbautograd.core.tracing.spying import PROTOCOLS, original
from nbautograd.core.user_source import function_class
from nbautograd.errors import NbautogradError
from nbautograd.inspection.compare import compare
from nbautograd.magics import output
from nbautograd.magics.call_expression import (
    CallExpression,
    EvaluationError,
    Namespace,
    argument_names,
    as_function,
    evaluate,
    evaluate_call,
    expression,
    one_line,
    parse_call,
    parsed,
    undefined,
)
from nbautograd.magics.options import AUDIT, COMPARE, GRADCHECK, Options, audit_within

NAMES = (
    "gradcheck", "jacobian", "autograd_graph", "autograd_calls", "autograd_compare", "autograd_dispatches",
    "autograd_audit",
)  # fmt: skip


@magics_class
class LineMagics(Magics):
    """``%gradcheck``, ``%jacobian``, ``%autograd_graph``, ``%autograd_calls``, ``%autograd_compare``,
    ``%autograd_dispatches`` and ``%autograd_audit``."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._shell = shell

    @no_var_expand
    @needs_local_scope
    @line_magic
    def gradcheck(self, line: str, local_ns: Namespace | None = None) -> Any:
        """Check a backward: ``%gradcheck linear(a, b)``; returns a GradcheckReport."""
        return self._answer("%gradcheck", line, local_ns, _gradcheck)

    @no_var_expand
    @needs_local_scope
    @line_magic
    def jacobian(self, line: str, local_ns: Namespace | None = None) -> Any:
        """Show both Jacobians, backward's and numerical: ``%jacobian linear(a, b)``; returns a JacobianReport."""
        return self._answer("%jacobian", line, local_ns, _jacobian)

    @no_var_expand
    @needs_local_scope
    @line_magic
    def autograd_graph(self, line: str, local_ns: Namespace | None = None) -> Any:
        """Show the backward graph of a tensor: ``%autograd_graph loss``; returns an AutogradGraph."""
        return self._answer("%autograd_graph", line, local_ns, _graph)

    @no_var_expand
    @needs_local_scope
    @line_magic
    def autograd_calls(self, line: str, local_ns: Namespace | None = None) -> Any:
        """Return a CallLog of the recorded Functions: ``%autograd_calls [LinearFunction]``."""
        return self._answer("%autograd_calls", line, local_ns, _calls)

    @no_var_expand
    @needs_local_scope
    @line_magic
    def autograd_compare(self, line: str, local_ns: Namespace | None = None) -> Any:
        """Compare a call with another: ``%autograd_compare f(a, b) torch.mul(a, b)``; returns a Comparison."""
        return self._answer("%autograd_compare", line, local_ns, _compare)

    @no_var_expand
    @needs_local_scope
    @line_magic
    def autograd_dispatches(self, line: str, local_ns: Namespace | None = None) -> Any:
        """Return a DispatchLog of what torch asked of traced classes: ``%autograd_dispatches [ScalarTensor]``."""
        return self._answer("%autograd_dispatches", line, local_ns, _dispatches)

    @no_var_expand
    @needs_local_scope
    @line_magic
    def autograd_audit(self, line: str, local_ns: Namespace | None = None) -> Any:
        """Check every custom gradient that a call uses: ``%autograd_audit model(x)``; returns an AuditReport."""
        return self._answer("%autograd_audit", line, local_ns, _audit)

    def _answer(self, magic: str, line: str, local_ns: Namespace | None, ask: Callable[..., Any]) -> Any:
        if output.show_help(self, magic.removeprefix("%"), line):
            return None
        namespace = {**self._shell.user_ns, **(local_ns or {})}
        try:
            with watched():
                value = ask(magic, line.strip().removesuffix(";").rstrip(), namespace)
        except UsageError:
            raise
        except EvaluationError as error:
            raise UsageError(_failed(magic, error, namespace)) from None
        except NbautogradError as error:
            raise UsageError(str(error)) from None
        except KeyboardInterrupt as interrupt:
            output.render_as_users_own(self._shell, interrupt)
            raise
        except Exception as error:
            if is_ours(error):
                raise UsageError(
                    messages.text("magics.stumbled", magic=magic, error=output.kept(error, magic))
                ) from None
            output.render_as_users_own(self._shell, error)
            raise
        statement, shown = _statement(sys._getframe(), self._shell)
        if line.rstrip().endswith(";") and not isinstance(statement, ast.Assign):
            return None
        if isinstance(statement, ast.Expr) and not shown:
            display(value)
        return value


def set_help() -> None:
    """Write the help texts in the language that is chosen now."""
    for name in NAMES:
        getattr(LineMagics, name).__doc__ = messages.text(f"magics.line_{name}")


def _gradcheck(magic: str, line: str, namespace: Namespace) -> Any:
    text, given = GRADCHECK.read(line)
    options = Options(**given)  # type: ignore[arg-type]
    call = parse_call(text, magic, namespace)
    if options.reference or options.compile:
        reference = None
        if options.reference:
            node = expression(options.reference, magic)
            reference = _named_function(node, namespace) or _reference(magic, call, node, namespace)[0]
        chosen: dict[str, Any] = {"compile": options.compile, "hints": options.hints, "budget": options.checked_budget}
        return compare(call.function, reference, call.arguments, **chosen)
    return gradcheck(
        call.function,
        call.arguments,
        order=options.checked_order,
        hints=options.hints,
        budget=options.checked_budget,
    )


def _audit(magic: str, line: str, namespace: Namespace) -> Any:
    text, given = AUDIT.read(line)
    if not text:
        raise UsageError(messages.text("magics.no_call", magic=magic, example=f"{magic} model(x)"))
    node = expression(text, magic)
    with audit_within(Options(**given)) as audited:  # type: ignore[arg-type]
        evaluate(node, namespace)
    return audited.report()


def _jacobian(magic: str, line: str, namespace: Namespace) -> Any:
    call = parse_call(line, magic, namespace)
    return jacobian(call.function, call.arguments)


def _graph(magic: str, line: str, namespace: Namespace) -> Any:
    if not line:
        raise UsageError(messages.text("magics.no_call", magic=magic, example=f"{magic} loss"))
    node = expression(line, magic)
    value = evaluate(node, namespace)
    asked = node.elts if isinstance(node, ast.Tuple) else [node]
    tensors = list(value) if isinstance(value, (tuple, list)) else [value]
    wrong = next((t for t in tensors if not isinstance(t, torch.Tensor)), None)
    if wrong is not None or not tensors:
        raise UsageError(messages.text("magics.not_a_tensor", magic=magic, text=line, type=type(wrong).__name__))
    names = {ast.unparse(n): t for n, t in zip(asked, tensors, strict=False)} if len(asked) == len(tensors) else {}
    return graph(tuple(tensors), names={**namespace, **names})


def _calls(magic: str, line: str, namespace: Namespace) -> Any:
    if not line:
        return calls()
    log = calls()
    recorded = dict.fromkeys(call.function for call in log)
    if line in recorded and line not in namespace:
        return CallLog(tuple(c for c in log if c.function == line), log.dropped, log.problems)
    cls: Any
    try:
        value = evaluate(expression(line, magic), namespace)
        cls = function_class(value)
    except EvaluationError:
        cls = None
    if cls is None:
        names = ", ".join(recorded) or "-"
        sentence = messages.text("magics.no_such_function", magic=magic, text=line, names=names)
        raise UsageError(messages.with_guess(sentence, line, recorded))
    of_class = calls(cls)
    if of_class or of_class.problems:
        return of_class
    if cls in instrumented():
        needed = argument_names(cls.apply)
        call = f"{line}{'.apply' if value is cls else ''}({', '.join(needed)})"
        offered = all(isinstance(namespace.get(name), torch.Tensor) for name in needed)
        return CallLog(problems=(Phrase("recording.not_called", function=cls.__name__, call=call, offered=offered),))
    return CallLog(problems=(_not_watched(cls, cls.forward),))


def _not_watched(cls: type, method: Callable[..., Any]) -> Phrase:
    file = inspect.unwrap(method).__code__.co_filename
    return Phrase("recording.not_watched", function=cls.__name__, file=file)


def _dispatches(magic: str, line: str, namespace: Namespace) -> Any:
    if not line:
        return dispatches()
    value = evaluate(expression(line, magic), namespace)
    cls = value if isinstance(value, type) else type(value)
    entries = [vars(base)[p] for base in cls.__mro__ if base is not torch.Tensor for p in PROTOCOLS if p in vars(base)]
    if not entries:
        raise UsageError(messages.text("magics.no_override", magic=magic, text=line, type=cls.__name__))
    log = dispatches(cls)
    if log or log.problems or any(map(original, entries)):
        return log
    return DispatchLog(problems=(_not_watched(cls, getattr(entries[0], "__func__", entries[0])),))


def _compare(magic: str, line: str, namespace: Namespace) -> Any:
    text, given = COMPARE.read(line)
    first, second = _two(magic, text)
    call = evaluate_call(first, magic, namespace)
    reference, name = _reference(magic, call, second, namespace)
    names = (call.function_text, name)
    hints = Options(**given).hints  # type: ignore[arg-type]
    return compare(call.function, reference, call.arguments, sizes=(), graph=True, time=True, names=names, hints=hints)


def _two(magic: str, line: str) -> tuple[ast.Call, ast.expr]:
    """Return the two expressions of ``f(a, b) g(a, b)``, with or without a comma between them."""
    whole = parsed(line)
    if isinstance(whole, ast.Tuple) and len(whole.elts) == 2 and isinstance(whole.elts[0], ast.Call):
        return whole.elts[0], whole.elts[1]
    for position, character in enumerate(line):
        if character.isspace():
            first, second = parsed(line[:position]), parsed(line[position:])
            if isinstance(first, ast.Call) and second is not None:
                return first, second
    raise UsageError(messages.text("magics.two_calls", magic=magic, text=line))


def _named_function(node: ast.expr, namespace: Namespace) -> Callable[..., Any] | None:
    """Return the function that a name, attribute or lambda stands for, such as ``eager``; None for everything else."""
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Lambda)):
        return None
    try:
        value = evaluate(node, namespace)
    except EvaluationError:
        return None
    return value if callable(value) and not isinstance(value, torch.Tensor) else None


def _reference(
    magic: str, call: CallExpression, node: ast.expr, namespace: Namespace
) -> tuple[Callable[..., Any], str]:
    """Return the second expression as a function of the first call's arguments, and what to call it."""
    if isinstance(node, ast.Call) and not node.keywords and [*map(ast.dump, node.args)] == [*map(ast.dump, call.nodes)]:
        return evaluate_call(node, magic, namespace).function, ast.unparse(node.func)
    function = as_function(node, call.nodes, namespace)
    if function is None:
        raise UsageError(messages.text("magics.other_arguments", magic=magic, text=ast.unparse(node)))
    return function, ast.unparse(node)


def _statement(frame: Any, shell: Any) -> tuple[ast.stmt | None, bool]:
    """Return the user's statement that the magic stands in, and True where IPython shows the value itself."""
    while frame is not None and frame.f_globals is not shell.user_global_ns:
        frame = frame.f_back
    if frame is None:
        return None, False
    body, line = ast.parse("".join(linecache.getlines(frame.f_code.co_filename))).body, frame.f_lineno
    statements = (n for one in body for n in ast.walk(one) if isinstance(n, ast.stmt))
    *_, innermost = None, *(n for n in statements if n.lineno <= line <= (n.end_lineno or 0))
    every = shell.ast_node_interactivity == "all" and frame.f_code.co_name == "<module>"
    return innermost, every or innermost in body[-1:]


def _failed(magic: str, error: EvaluationError, namespace: Namespace) -> str:
    unknown = undefined(error, namespace)
    if unknown is None:
        return messages.text("magics.line_failed", magic=magic, error=one_line(error))
    return messages.with_guess(messages.text("magics.line_undefined", magic=magic, name=unknown[0]), *unknown)
