"""What the source text of a Function tells: names of arguments, saved and returned values, lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from nbautograd.core.display import Displayable


@dataclass(frozen=True)
class Returned:
    """One value of a ``return`` statement.

    Attributes:
        name: the variable's name (``"grad_weight"``), or None when an expression is returned.
        line: line of the cell or file where its value is computed (the last assignment), counted from 1.
        expression: the source of that value (``"input.mm(grad_output)"``), or None.
    """

    name: str | None
    line: int | None
    expression: str | None


@dataclass(frozen=True, repr=False)
class FunctionSource(Displayable):
    """What the source of a Function class tells without running it.

    Attributes:
        name: the class's name.
        file: file name as Python knows it (for a cell, IPython's name of it).
        first_line: line of ``class`` (or of its first decorator) in the cell or file, counted from 1.
        text: the source of the class, dedented.
        style: ``"combined"`` (``forward(ctx, ...)``), ``"setup_context"`` or ``"legacy"`` (instance methods).
        inputs: names of forward's arguments without ctx; a ``*args`` is ``"*args"``.
        outputs: what forward returns.
        saved: names given to ``save_for_backward``, or None when they cannot be known.
        grad_outputs: names of backward's arguments without ctx.
        gradients: what backward returns, one per input.
        lines: line of each method's ``def``.
    """

    name: str
    file: str
    first_line: int
    text: str
    style: Literal["combined", "setup_context", "legacy"]
    inputs: tuple[str, ...] = ()
    outputs: tuple[Returned, ...] = ()
    saved: tuple[str, ...] | None = None
    grad_outputs: tuple[str, ...] = ()
    gradients: tuple[Returned, ...] = ()
    lines: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<FunctionSource {self.name} line {self.first_line}>"


def read_source(cls: type) -> FunctionSource | None:
    """Read a Function class's source; None when there is none to read (``exec``, a compiled file)."""
    return None
