"""Code that made tensors, such as that which called this package: its text and variables, what they say of a tensor."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import torch
from torch import nn

from nbautograd.core.graphs.names import calling_frame, variables_of
from nbautograd.core.graphs.source_cuts import CELLS, Cut, find_change, tree_of
from nbautograd.core.graphs.source_dataflow import DataflowReader, Flow, Frame


class CallerCode:
    """Code that made tensors.

    Args:
        sources: files, functions or cells, the latest first.
        values: its variables.
        line: of the latest source, up to which it was run; None where all of it was.
    """

    def __init__(self, sources: Sequence[str], values: Mapping[str, Any], line: int | None = None) -> None:
        self._sources, self._values, self._line = sources, dict(values), line

    @classmethod
    def here(cls) -> CallerCode:
        """Return the code that called this package."""
        frame = calling_frame()
        sources = [] if frame is None else [piece for piece in _sources(frame) if piece]
        return cls(sources, variables_of(frame), 0 if frame is None else frame.f_lineno)

    def follow(self, tensor: torch.Tensor | None, name: str, goals: Sequence[str]) -> Cut | None:
        """Return the line where what is made of a tensor loses its way back to one of the variables ``goals``.

        Args:
            tensor: the tensor, where it is at hand.
            name: what it is called.
            goals: variables, such as the loss; else what the calling line hands over.
        """
        held = {name, *(() if tensor is None else held_as(tensor, self._values))}
        frame = Frame(self._values, set(held), held=frozenset(held))
        follower, flow = DataflowReader(), Flow()
        try:
            for piece in reversed(self._sources):
                latest = piece is self._sources[0]
                before = [s for s in _statements(piece) if not latest or self._line is None or s.lineno <= self._line]
                follower.read(before, frame)
            for call in self._calling():
                flow |= follower.flow(call, frame)
        except Exception:  # the line is an extra; whatever the source holds, a graph is drawn without it
            return None
        return next((frame.dead[goal] for goal in goals if goal in frame.dead), flow.cut)

    def _calling(self) -> list[ast.expr]:
        """Return the arguments in the statement that called."""
        tree = tree_of(self._sources[0]) if self._sources and self._line is not None else None
        here = [s for s in ast.walk(tree) if isinstance(s, ast.stmt) and not hasattr(s, "body")] if tree else []
        at = [s for s in here if s.lineno <= (self._line or 0) <= (s.end_lineno or 0)]
        return [argument for s in at for part in ast.walk(s) if isinstance(part, ast.Call) for argument in part.args]

    def change(self, name: str) -> Cut | None:
        """Return the line that changes ``name`` in place."""
        return next((found for code in self._sources if (found := find_change(name, code))), None)


def _sources(frame: FrameType) -> Iterator[str]:
    code = frame.f_code
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    if code.co_name == "<module>":
        yield "".join(lines)
        cells = frame.f_globals.get("In")
        if isinstance(cells, list):
            yield from [cell for cell in reversed(cells[-CELLS:]) if isinstance(cell, str)]
        return
    last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    body = lines[code.co_firstlineno - 1 : last]
    indent = len(body[0]) - len(body[0].lstrip()) if body else 0
    # as many lines before it as in the file, so that line numbers are the file's
    yield "\n" * (code.co_firstlineno - 1) + "".join(line[indent:] or "\n" for line in body)


def held_as(tensor: torch.Tensor, values: dict[str, Any]) -> set[str]:
    """Return the names by which code can reach a tensor: its variables, and its paths in modules."""
    names = {name for name, value in values.items() if value is tensor}
    for name, module in list(values.items()):
        if isinstance(module, nn.Module):
            names |= {f"{name}.{path}" for path, parameter in module.named_parameters() if parameter is tensor}
    return names


def _statements(piece: str) -> list[ast.stmt]:
    """Return the statements of a file or a cell, or those of the function that is all of it."""
    tree = tree_of(piece)
    body = [] if tree is None else tree.body
    if len(body) == 1 and isinstance(body[0], ast.FunctionDef):
        return body[0].body
    return body
