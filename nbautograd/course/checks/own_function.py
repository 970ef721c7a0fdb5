"""The call goes through the student's own Function, whose methods are written out: advice, and no guard.

A check runs in the student's own process, so nothing here could stop somebody who means to get round it. What is
looked for is what a student does who has not seen the point yet: calls ``forward`` instead of ``apply``, asks torch for
the derivative that the exercise is about, or computes again what was saved.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from nbautograd.core.checking.problem import functions_of
from nbautograd.core.user_source import function_class, tree_of
from nbautograd.course.attempt import Attempt
from nbautograd.course.exercise import Failure

METHODS = ("forward", "setup_context", "backward", "vjp", "jvp")
# torch.autograd.grad, torch.func.vjp and the like, y.backward(): by the last part of the name that is called
DERIVATIVES = {"grad", "vjp", "jvp", "jacrev", "jacfwd", "jacobian", "hessian", "hvp", "vhp", "linearize", "backward"}


def own_function(attempt: Attempt) -> Iterator[Failure]:
    """Check that a Function of the student's is in the graph, and that its methods are written by hand."""
    outputs = attempt.run(attempt.point()).outputs
    in_graph = functions_of(outputs)
    asked = function_class(attempt.answer)
    if asked is None and isinstance(attempt.answer, type) and not issubclass(attempt.answer, torch.nn.Module):
        yield Failure("no_function_class", "course.no_function_class", {"name": attempt.exercise.answer})
    elif asked is not None and not any(y.requires_grad for y in outputs):
        return  # no gradient at all: the gradient's own check says so
    elif not in_graph or (asked is not None and asked not in in_graph):
        yield Failure("not_through_function", "course.not_through_function", {"name": attempt.exercise.answer})
    else:
        yield from list(_ready_made(attempt, in_graph))[:1]


def _ready_made(attempt: Attempt, classes: Iterable[type]) -> Iterator[Failure]:
    """Yield a failure for each call in a method that asks for what the exercise wants written."""
    for method, name, line in (call for cls in classes for call in calls(cls)):
        if name in DERIVATIVES:
            yield Failure("native_autograd", "course.native_autograd", {"name": name, "line": line})
        elif name.strip("_") in attempt.exercise.ready_made.get(method, ()):
            yield Failure("ready_made", "course.ready_made", {"name": name, "line": line})


def calls(cls: Any) -> Iterator[tuple[str, str, int]]:
    """Yield each call in the methods of a Function: the method, the last part of the name called, the cell's line.

    ``super().backward(ctx, g)``, a method of another Function, ``Other.backward(ctx, g)``, and a helper of the
    student's own that is called ``grad`` are no derivatives asked of torch.
    """
    for method in METHODS:
        function = getattr(cls, method, None)
        if function is None or function is getattr(torch.autograd.Function, method, None):
            continue
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):  # of no file or cell
            continue
        tree = tree_of(textwrap.dedent("".join(lines)))
        for node in ast.walk(tree) if tree is not None else ():
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Name) and not _is_own(function, node.func.id):
                yield method, node.func.id, first + node.lineno - 1
            elif isinstance(node.func, ast.Attribute) and [ast.unparse(one) for one in node.args[:1]] != ["ctx"]:
                yield method, node.func.attr, first + node.lineno - 1


def _is_own(method: Any, name: str) -> bool:
    helper = inspect.unwrap(method).__globals__.get(name)
    return inspect.isfunction(helper) and helper.__module__ == method.__module__
