"""The call goes through the student's own Function, and its backward is written, not asked of autograd."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch

from nbautograd.core.checking.problem import functions_of
from nbautograd.core.user_source import function_class, methods_of
from nbautograd.course.attempt import Attempt
from nbautograd.course.exercise import Failure

NATIVE = (
    "grad",
    "vjp",
    "jvp",
    "jacrev",
    "jacfwd",
    "jacobian",
    "backward",
    "enable_grad",
    "requires_grad_",
    "checkpoint",
)


def uses_own_function(attempt: Attempt) -> Iterator[Failure]:
    """A Function of the student's is in the graph, and its backward computes by itself."""
    run = attempt.run(attempt.point())
    in_graph = functions_of(run.outputs)
    asked = function_class(attempt.answer)
    if asked is None and isinstance(attempt.answer, type) and not issubclass(attempt.answer, torch.nn.Module):
        yield Failure("no_function_class", "course.no_function_class", {"name": attempt.exercise.answer})
    elif not in_graph or (asked is not None and asked not in in_graph):
        yield Failure("not_through_function", "course.not_through_function", {"name": attempt.exercise.answer})
    else:
        yield from _native(in_graph)


def _native(classes: set[Any]) -> Iterator[Failure]:
    for cls in classes:
        tree = methods_of(cls).tree("backward")
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Call) and _named(node) in NATIVE and not _is_own(node):
                params = {"name": ast.unparse(node.func), "line": node.lineno}
                yield Failure("native_autograd", "course.native_autograd", params)
                return


def _named(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_own(node: ast.Call) -> bool:
    """A method of another Function, such as ``OtherFunction.backward(ctx, g)``, is the student's own work."""
    return _named(node) == "backward" and len(node.args) > 1
