"""Names: what the user calls the tensors of a graph, and the tensors that the user means."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.utils.weak import TensorWeakRef

from nbautograd.core.stumbles import ask
from nbautograd.core.values import attributes

ALONE = 3  # references to a frame's copy of its variables: the frame's, ours and that of the call which counts them
DEPTH = 3  # how deep a container in the user's namespace is looked into
WIDTH = 256  # how many items of such a container
PACKAGE = __name__.partition(".")[0]


class Names:
    """The user's names of tensors, and the modules whose parameters they are.

    A plain variable wins over a parameter's path, a parameter's path over a place in a container.

    Attributes:
        labels: id of a tensor -> its name.
        tensors: name -> tensor.
        modules: module path -> type name.
        paths: id of a module -> its path.
        nodes: grad_fn of a tensor that is no leaf -> the tensor's name.
        wanting: name and tensor of all that need a gradient.
        homes: id of a parameter -> paths of the modules whose own it is, several where it is shared.
        module_of: id of a parameter -> id of the outermost module that it was found in.
        explicit: True when tensors were named one by one, False when they are all variables of some code.
    """

    def __init__(self, names: Mapping[str, Any] | nn.Module | None) -> None:
        self.labels: dict[int, str] = {}
        self.tensors: dict[str, torch.Tensor] = {}
        self.modules: dict[str, str] = {}
        self.paths: dict[int, str] = {}
        self.nodes: dict[Any, str] = {}
        self.wanting: list[tuple[str, torch.Tensor]] = []
        self.homes: dict[int, list[str]] = {}
        self.module_of: dict[int, int] = {}
        # a module's or a notebook's whole namespace names much that this graph has nothing to do with
        self.explicit = names is not None and not (isinstance(names, Mapping) and "__name__" in names)
        found = (
            variables_of(calling_frame()) if names is None else {"": names} if isinstance(names, nn.Module) else names
        )
        hidden = {"In", "Out", "exit", "quit", "get_ipython"}
        items = [(str(k), v) for k, v in list(found.items())]
        self._take([(k, v) for k, v in items if not k.startswith("_") and k not in hidden])

    def label(self, tensor: torch.Tensor | None) -> str:
        """Return the name of a tensor, or an empty text."""
        return "" if tensor is None else self.labels.get(id(tensor), "")

    def _take(self, found: list[tuple[str, Any]]) -> None:
        modules = [(name, value) for name, value in found if isinstance(value, nn.Module)]
        tensors = [(name, value) for name, value in found if isinstance(value, torch.Tensor)]
        for name, tensor in tensors:
            self._name(name, tensor)
        for name, module in modules:
            self._parameters(name if len({id(m) for _, m in modules}) > 1 else "", module)
        for name, value in found:
            if isinstance(value, (list, tuple, dict)):
                for place, tensor in _inside(name, value):
                    self._name(place, tensor)

    def _name(self, name: str, tensor: torch.Tensor) -> None:
        if id(tensor) in self.labels:
            return
        self.labels[id(tensor)] = name
        self.tensors.setdefault(name, tensor)
        if tensor.requires_grad:
            self.wanting.append((name, tensor))
        # it raises for a view whose base was changed in place under no_grad
        if (node := ask(lambda: tensor.grad_fn, None)) is not None:
            self.nodes.setdefault(node, name)

    def _parameters(self, name: str, module: nn.Module) -> None:
        prefix = f"{name}." if name else ""
        for path, child in module.named_modules():
            where = (prefix + path).rstrip(".")
            self.modules.setdefault(where, type(child).__name__)
            if where:
                self.paths.setdefault(id(child), where)
            for own, parameter in child.named_parameters(recurse=False):
                self._name(f"{where}.{own}".lstrip("."), parameter)
                self.module_of.setdefault(id(parameter), id(module))
                if home := self.paths.get(id(child)):
                    self.homes.setdefault(id(parameter), []).append(home)


class NamedTensors:
    """Tensors by the names that they had at one moment; it keeps none of them alive, and pickles as empty."""

    def __init__(self, tensors: Mapping[str, torch.Tensor] | None = None) -> None:
        # a plain weak reference may be dead although the tensor still lives in C++: torch's own knows
        self._references = {name: TensorWeakRef(tensor) for name, tensor in (tensors or {}).items()}

    @property
    def names(self) -> tuple[str, ...]:
        """All names, of tensors that are gone too."""
        return tuple(self._references)

    def get(self, name: str) -> torch.Tensor | None:
        """Return the tensor that had a name, or None when it is gone or there was none."""
        reference = self._references.get(name)
        tensor: torch.Tensor | None = None if reference is None else reference()
        return tensor

    def __reduce__(self) -> tuple[type[NamedTensors], tuple[()]]:
        return NamedTensors, ()


def _inside(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    stack: list[tuple[str, Any, int]] = [(name, value, 0)]
    while stack:
        place, item, depth = stack.pop()
        if isinstance(item, torch.Tensor):
            yield place, item
        elif depth < DEPTH and isinstance(item, dict):
            pairs = list(item.items())[:WIDTH]
            stack += [(f"{place}[{key!r}]", x, depth + 1) for key, x in reversed(pairs) if isinstance(key, (str, int))]
        elif depth < DEPTH and isinstance(item, (list, tuple)):
            stack += [(f"{place}[{i}]", x, depth + 1) for i, x in reversed(list(enumerate(item[:WIDTH])))]


def calling_frame() -> FrameType | None:
    """Return the nearest frame outside this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame = frame.f_back
    return frame


def variables_of(frame: FrameType | None) -> dict[str, Any]:
    """Return the variables that a line of a frame sees; only read."""
    if frame is None:
        return {}
    code, found = frame.f_code, {**frame.f_globals, **(here := frame.f_locals)}
    # before Python 3.13 the frame of a function keeps this copy, and all that is in it, to its end; one that locals()
    # gave to the user has another holder, and a debugger writes it back. What exec() put there stands nowhere else
    own = type(here) is dict and code.co_flags & CO_OPTIMIZED and sys.gettrace() is None
    if own and sys.getrefcount(here) <= ALONE:
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            here.pop(name, None)
    return found


def tensors_in(tensors: Any) -> list[tuple[str, torch.Tensor]]:
    """Return all tensors in what a user calls an output, with their places in it.

    Takes a tensor, any nesting of lists, tuples and dicts (a model's output class is a dict), and objects that keep
    tensors as attributes.
    """
    found: list[tuple[str, torch.Tensor]] = []
    stack: list[tuple[str, Any]] = [("", tensors)]
    seen: set[int] = set()
    while stack:
        place, value = stack.pop()
        if isinstance(value, torch.Tensor):
            found.append((place, value))
        elif id(value) not in seen and (children := _children(value)):
            seen.add(id(value))
            stack += [(_place(place, key), part) for key, part in reversed(children)]
    return found


def _place(outer: str, key: Any) -> str:
    if not outer:
        return str(key)
    return f"{outer}.{key}" if isinstance(key, str) else f"{outer}[{key}]"


def _children(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=False))
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, range)):
        return list(enumerate(value))
    if value is None or isinstance(value, (str, bytes, int, float, complex, type, nn.Module)):
        return []
    return list(attributes(value).items())
