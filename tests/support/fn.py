"""The Functions that a test checks: a base that makes methods static, and a whole Function in one row."""

from __future__ import annotations

import ast
import itertools
import linecache
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

NUMBER = itertools.count()
BASE = "torch.autograd.Function"

# what a row may name without its module's importing it
COMMON = {"torch": torch, "Tensor": torch.Tensor, "np": np, "math": math, "once_differentiable": once_differentiable}


class Fn(Function):
    def __init_subclass__(cls, **options: Any) -> None:
        """Make static methods of what a subclass defines, as torch wants them."""
        super().__init_subclass__(**options)
        for name in ("forward", "setup_context", "backward", "vjp", "jvp", "vmap"):
            if callable(method := vars(cls).get(name)) and not isinstance(method, staticmethod):
                setattr(cls, name, staticmethod(method))

    @classmethod
    def of(
        cls, name: str, forward: str = "", backward: str = "", *, once: bool = False, depth: int = 1, **others: str
    ) -> Any:
        """Return the Function ``name`` of the calling module, each method as ``"arguments: statement; statement"``.

        ``Square = Fn.of("Square", "x: save(x); return x * x", "g: (x,) = saved; return 2 * g * x")``: ``ctx`` goes
        without saying, ``save`` and ``saved`` are its ``save_for_backward`` and ``saved_tensors``; each statement
        is a line.
        """
        source = written(name, forward, backward, base=cls.__name__, marks=["once_differentiable"] * once, **others)
        namespace = sys._getframe(depth).f_globals
        file = f"{namespace['__file__']}:{name}:{next(NUMBER)}"
        linecache.cache[file] = (0, None, source.splitlines(keepends=True), file)
        namespace.update({key: value for key, value in COMMON.items() if key not in namespace} | {cls.__name__: cls})
        exec(compile(source, file, "exec"), namespace)
        return namespace[name]


def written(
    name: str,
    forward: str = "",
    backward: str = "",
    *,
    base: str = "Function",
    marks: Sequence[str] = ("staticmethod",),
    **others: str,
) -> str:
    """Return the text of a class as a user writes it in a cell or a file, from the parts of a row."""
    lines = [f"class {name}({base}):"]
    for method, text in {"forward": forward, **others, "backward": backward}.items():
        context = "" if method == "forward" and "setup_context" in others else "ctx, "
        marked = [mark for mark in marks if mark == "staticmethod" or method == "backward"]
        lines += [f"    @{mark}" for mark in marked if text] + (_lines(method, context, text) if text else [])
    return "\n".join(lines) + "\n"


def typed(name: str, forward: str, backward: str) -> str:
    """The text of such a Function as one types it into a cell that has imported torch."""
    return "\n".join(filter(None, written(name, forward, backward, base=BASE).splitlines()))


def _lines(method: str, context: str, text: str) -> list[str]:
    arguments, body = text.split(": ", 1)
    statements = body.replace("save(", "ctx.save_for_backward(").replace("= saved", "= ctx.saved_tensors").split("; ")
    lines = [line for statement in statements for line in _on_lines(statement)]
    return [f"    def {method}({context}{arguments}):", *(f"        {line}" for line in lines), ""]


def _on_lines(statement: str) -> list[str]:
    """Give what stands behind a condition or the head of a loop a line of its own."""
    (node,) = ast.parse("if 0: 0\n" * statement.startswith("else:") + statement).body
    if not isinstance(node, ast.If | ast.For):
        return [statement]
    at = (node.orelse or node.body)[0].col_offset
    return [statement[:at].rstrip(), "    " + statement[at:]]


def source_line(function: Any, line: int) -> str:
    """Return the text of a line of the file of a Function's backward, as a finding names it."""
    return linecache.getline(function.backward.__code__.co_filename, line).strip()
