"""The remains of a program that stopped: its frames, their variables, its source, what was differentiated."""

from __future__ import annotations

import ast
import linecache
import os
import re
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from types import CodeType, FrameType
from typing import Any

import torch
from torch import nn

from nbautograd.core.explaining.cause import SourceLine
from nbautograd.core.explaining.torch_errors import WATCHED_CALL, entries, is_torch
from nbautograd.core.forks import cached
from nbautograd.core.graphs.names import tensors_in
from nbautograd.core.stumbles import ask
from nbautograd.core.torch_private.nodes import MOST_NODES
from nbautograd.core.torch_private.tensors import data_address, storage_address
from nbautograd.core.user_source import tree_of
from nbautograd.core.values import attributes

PACKAGE = __name__.partition(".")[0]
OURS = os.path.dirname(os.path.abspath(sys.modules[PACKAGE].__file__ or "")) + os.sep
_STANDARD = os.path.join(sysconfig.get_paths()["stdlib"], "")
_HOSTS = tuple(f"{os.sep}{name}{os.sep}" for name in ("IPython", "ipykernel", "nbclient", "_pytest", "pluggy"))


@lru_cache(maxsize=1_000)  # a watched run asks of every frame of every call
def is_users(file: str) -> bool:
    """Return True for a file or cell that is neither torch's, nor this package's, nor the notebook's machinery."""
    if is_torch(file) or file.startswith((OURS, "<frozen")) or any(host in file for host in _HOSTS):
        return False
    return not file.startswith(_STANDARD) or "site-packages" in file


def users_frame(stop: Callable[[FrameType], bool] | None = None) -> FrameType | None:
    """Return the innermost of the user's frames that run, or a frame inside it at which to stop."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _runs_users_code(frame.f_code) and not (stop is not None and stop(frame)):
        frame = frame.f_back
    return frame


def _runs_users_code(code: CodeType) -> bool:
    return code.co_name != WATCHED_CALL and is_users(code.co_filename)


def place_of(code: CodeType, line: int, scope: Mapping[str, Any]) -> SourceLine:
    """Return a line of a running program as a place."""
    file = code.co_filename
    function = "" if code.co_name == "<module>" else code.co_qualname.replace(".<locals>", "")
    text = linecache.getline(file, line, dict(scope)).strip()
    return SourceLine(line, text, function, file, cell_number(file, scope))


def cell_number(file: str, scope: Mapping[str, Any]) -> int | None:
    """Return the number of the cell that a file name stands for, by the text of the notebook's cells."""
    cells = scope.get("In")
    if not isinstance(cells, list) or os.path.isfile(file):
        return None
    source = "".join(linecache.getlines(file)).strip()
    numbers = [i for i, cell in enumerate(cells) if isinstance(cell, str) and cell.strip() == source and source]
    return numbers[-1] if numbers else None


class Program:
    """The evidence that an error, or a tensor, leaves behind.

    Args:
        error: one of torch's errors, None where nothing was raised.
        scope: the variables to look at where there is no error.
        roots: what was differentiated, where there is no error.

    Attributes:
        frames: the user's frames, the outermost first, each with the line that ran.
        roots: the tensors that were differentiated.
        inputs: with ``torch.autograd.grad`` the tensors that it was asked for.
        watch: what a watched run saw; None when only the remains are there.
    """

    def __init__(
        self,
        error: BaseException | None = None,
        scope: Mapping[str, Any] | None = None,
        roots: tuple[torch.Tensor, ...] = (),
        watch: Any = None,
    ) -> None:
        self.error = error
        self.watch = watch
        self.frames: list[tuple[FrameType, int]] = []
        self.roots = roots
        self.inputs: tuple[torch.Tensor, ...] = ()
        self._scope = scope or {}
        for entry in entries(error) if error is not None else ():
            frame = entry.tb_frame
            if is_users(frame.f_code.co_filename):
                self.frames.append((frame, entry.tb_lineno))
            elif frame.f_code.co_name in ("backward", "grad") and not self.roots:
                known = frame.f_locals
                asked = next((known[name] for name in ("self", "tensors", "outputs") if name in known), ())
                self.roots = tuple(tensor for _, tensor in tensors_in(asked))
                self.inputs = tuple(tensor for _, tensor in tensors_in(known.get("inputs")))

    def torch_object(self, kind: type, variable: str = "self") -> Any:
        """Return the object that the innermost of torch's functions with such a variable ran with; None if none did."""
        found = [entry.tb_frame.f_locals.get(variable) for entry in entries(self.error)] if self.error else []
        return next((value for value in reversed(found) if isinstance(value, kind)), None)

    @property
    def caller(self) -> SourceLine | None:
        """The user's line that raised, or that called torch."""
        if not self.frames:
            return None
        frame, line = self.frames[-1]
        return place_of(frame.f_code, line, frame.f_globals)

    @cached
    def statement(self) -> ast.stmt | None:
        """The innermost statement of the user's that raised, or that called torch."""
        if not self.frames:
            return None
        frame, line = self.frames[-1]
        tree = tree_of("".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)))
        statements = [n for n in ast.walk(tree) if isinstance(n, ast.stmt)] if tree is not None else []
        return next((s for s in reversed(statements) if s.lineno <= line <= (s.end_lineno or 0)), None)

    @cached
    def variables(self) -> dict[str, Any]:
        """All variables that are alive: those of inner frames hide those of outer ones."""
        found: dict[str, Any] = dict(self._scope)
        for frame, _ in self.frames:
            found |= frame.f_globals
        for frame, _ in self.frames:
            found |= frame.f_locals
        return found

    @cached
    def tensors(self) -> dict[str, torch.Tensor]:
        """Every tensor that the user can name."""
        named: dict[str, torch.Tensor] = {}
        for name, value in self.variables.items():
            if name.startswith("_") or name in ("In", "Out"):
                continue
            for place, tensor in _tensors_of(name, value):
                named.setdefault(place, tensor)
        return named

    def name_of(self, tensor: torch.Tensor | None) -> str:
        """Return the user's name of a tensor, or of another that shows the same memory in the same shape.

        Two leaves that ask for a gradient are two for autograd, whatever memory they have.
        """
        if tensor is None:
            return ""
        same = [name for name, other in self.tensors.items() if other is tensor]
        others = {} if same else {name: t for name, t in self.tensors.items() if not (_asks(t) and _asks(tensor))}
        shown = [name for name, t in others.items() if t.numel() == tensor.numel() > 0 and shares(t, tensor)]
        same = same or [name for name in shown if window(others[name]) == window(tensor)]
        # a parameter by its place in a module rather than by a loop's variable
        owned = [name for name in same if "." in name] if isinstance(tensor, nn.Parameter) else []
        return min(owned or same, key=lambda name: (name.count("."), len(name)), default="")

    def nodes(self) -> list[Any]:
        """Return the live nodes behind what was differentiated."""
        return nodes_behind(*[node for root in self.roots if (node := node_of(root)) is not None])


def nodes_behind(*roots: Any, most: int = MOST_NODES) -> list[Any]:
    """Return the nodes that a backward from some nodes would reach, themselves among them."""
    seen: dict[Any, None] = {}
    stack = list(roots)
    while stack and len(seen) < most:
        node = stack.pop()
        if node not in seen:
            seen[node] = None
            stack += [following for following, _ in reversed(node.next_functions) if following is not None]
    return list(seen)


def version(tensor: torch.Tensor) -> int:
    """Return how often a tensor's memory was written into; 0 for tensors that do not count it."""
    return ask(lambda: tensor._version, 0)  # inference tensors have none


def node_of(tensor: torch.Tensor) -> Any:
    """Return a tensor's node; None also where ``grad_fn`` raises: a view changed under ``no_grad``."""
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def shares(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return True for tensors that share memory."""
    places = [ask(partial(storage_address, tensor), None) for tensor in (one, other)]
    if None in places:  # sparse, meta and wrapped tensors have no storage
        return one is other
    return places[0] == places[1] != 0


def window(tensor: torch.Tensor) -> Any:
    """Return which elements of its memory a tensor shows, the same for all its transposed and flattened views."""
    at, strides = ask(lambda: (data_address(tensor), tensor.stride()), (None, ()))
    if at is None:  # sparse and wrapped tensors show none
        return None
    dims = sorted(((step, size) for step, size in zip(strides, tensor.shape, strict=True) if size > 1))
    merged: list[tuple[int, int]] = []
    for step, size in dims:
        if merged and merged[-1][0] * merged[-1][1] == step:
            merged[-1] = (merged[-1][0], merged[-1][1] * size)
        else:
            merged.append((step, size))
    return at, tuple(merged)


def _asks(tensor: torch.Tensor) -> bool:
    try:
        return tensor.is_leaf and tensor.requires_grad
    except RuntimeError:  # a view of what was written into
        return False


MOST_OBJECTS = 3  # the user's own, one in the other, whose tensors are named
_MODULES_OWN = frozenset(vars(nn.Module()))  # what torch keeps in every module
_CONTAINERS = (list, tuple, dict, deque)


def _tensors_of(name: str, value: Any, around: tuple[int, ...] = ()) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a variable by name: itself, places in a container, attributes of a module or object."""
    if id(value) in around:  # a container in itself
        return
    around = (*around, id(value))
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, nn.Module):
        for path, module in value.named_modules():
            prefix = re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", f"{name}.{path}") if path else name
            private = _MODULES_OWN if _of_user(type(module)) else {key for key in vars(module) if key.startswith("_")}
            own = {key: part for key, part in vars(module).items() if key not in private}
            for key, part in {**own, **module._parameters, **module._buffers}.items():
                inside = len(around) < MOST_OBJECTS and _of_user(type(part))
                if inside or isinstance(part, (torch.Tensor, *_CONTAINERS)):
                    yield from _tensors_of(f"{prefix}.{key}", part, around)
    elif isinstance(value, _CONTAINERS):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for _, (key, part) in zip(range(64), items, strict=False):
            if isinstance(part, (torch.Tensor, nn.Module, list, tuple)):
                yield from _tensors_of(f"{name}[{key!r}]", part, around)
    elif not isinstance(value, type) and _of_user(type(value)):
        for key, part in attributes(value).items():
            held = isinstance(part, (torch.Tensor, nn.Module, *_CONTAINERS))
            if held or (len(around) < MOST_OBJECTS and _of_user(type(part))):
                yield from _tensors_of(f"{name}.{key}", part, around)


def _of_user(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    return kind.__module__ == "__main__" or is_users(getattr(module, "__file__", None) or "<frozen")
