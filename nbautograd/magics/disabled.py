"""The magics with ``NBAUTOGRAD_DISABLE=1``: each runs its cell or its call, and nothing more.

For a notebook that has to run as if nbautograd were not there: nothing is recorded, checked or shown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

from IPython.core.magic import no_var_expand

from nbautograd.core.user_source import function_class
from nbautograd.magics.call_expression import EvaluationError, Namespace, evaluate, parsed
from nbautograd.magics.cell_magics import AuditMagics, ExerciseMagics, FunctionMagics
from nbautograd.magics.explain import ExplainMagics
from nbautograd.magics.lines import LineMagics

_CELL_MAGIC = re.compile(r"%%(autograd_\w+|exercise)(?![\w?])")


class InertMagicLines:
    """An input transformer that empties the lines of nbautograd's cell magics at the top of a cell."""

    has_side_effects = True  # as ``transformer.BlankMagicLines``

    def __call__(self, lines: list[str]) -> list[str]:
        """Return the lines as IPython is to run them."""
        for number, line in enumerate(lines):
            if line.strip() and not _CELL_MAGIC.match(line):
                # another cell magic below is only seen by IPython when it stands first
                return lines[number:] if line.startswith("%%") else ["\n"] * number + lines[number:]
        return lines


def magics_without_effect(shell: Any) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Yield kind (``"line"`` or ``"cell"``), name and function of all of nbautograd's magics."""

    @no_var_expand
    def run_cell(line: str, cell: str) -> None:
        shell.run_cell(cell, store_history=False)

    @no_var_expand
    def run_line(line: str) -> Any:
        return _run_call(line, shell.user_ns)

    for cls in (FunctionMagics, LineMagics, ExplainMagics, AuditMagics, ExerciseMagics):
        for kind, names in cls.magics.items():
            yield from ((kind, name, run_cell if kind == "cell" else run_line) for name in names)


def _run_call(line: str, namespace: Namespace) -> Any:
    """Run the call that a line begins with, whatever follows it, and return what it returns; None without a call."""
    text = re.sub(r"^(--\w+[ =]+\S+\s+)+", "", line.strip())
    call = next((c for end in range(len(text), 0, -1) if isinstance(c := parsed(text[:end]), ast.Call)), None)
    if call is None:
        return None
    try:
        function = evaluate(call.func, namespace)
        if isinstance(function, type) and function_class(function) is not None:
            call.func = ast.Attribute(call.func, "apply", ast.Load())
        return evaluate(call, namespace)
    except EvaluationError as error:
        raise (error.__cause__ or error) from None
