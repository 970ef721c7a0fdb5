"""Tensors that a function reaches besides its arguments: what a check has written into them is undone.

Running means, counters and the ``.grad`` of parameters belong to the user. Forward may write into the former and
backward into the latter; a check runs both many times, each time from the same values, and leaves all as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.class_state import names_outside
from nbautograd.core.checking.tensor_kinds import unreadable_kind
from nbautograd.core.numerics.compare import agree_bitwise

LARGEST = 2**22  # elements of a tensor that is copied in case it is written into: 32 MiB of float64
MOST = 1000  # items of a container, or attributes of an object, that are looked through


@dataclass
class _Watched:
    """A tensor that the function reaches.

    Attributes:
        name: what the user calls it.
        tensor: itself.
        value: a copy of it; None for one that requires grad, and for a large one.
        version: its in-place counter where it last had that value.
        grad, grad_value, grad_version: its ``.grad`` as the user had it, a copy, and its in-place counter.
    """

    name: str
    tensor: Tensor
    value: Tensor | None
    version: int
    grad: Tensor | None
    grad_value: Tensor | None
    grad_version: int

    def gradient_changed(self) -> bool:
        """Return True where ``.grad`` is another one, or was written into."""
        grad = self.tensor.grad
        return grad is not self.grad or (grad is not None and grad._version != self.grad_version)


class SharedTensors:
    """The tensors that a function reaches, as they are when this is made.

    Args:
        named: they, with what the user calls them.
    """

    def __init__(self, named: Iterable[tuple[str, Tensor]]) -> None:
        found = {id(tensor): (name, tensor) for name, tensor in named if _ordinary(tensor)}
        self._watched = [_watched(name, tensor) for name, tensor in found.values()]
        self._copied = [one for one in self._watched if one.value is not None]

    def put_back_values(self) -> None:
        """Undo what was written into tensors without grad, as far as their in-place counters tell."""
        for one in self._copied:
            if one.tensor._version != one.version:
                _put_back(one)

    def put_back(self) -> None:
        """Undo all that was written, also past the in-place counters, and put each ``.grad`` back."""
        for one in self._copied:
            if one.tensor._version != one.version or not agree_bitwise(one.tensor, one.value):
                _put_back(one)
        self.put_back_gradients()

    def put_back_gradients(self) -> None:
        """Put each ``.grad`` back: the same tensor with the same elements."""
        for one in self._watched:
            if one.gradient_changed():
                one.tensor.grad = one.grad
                if one.grad is not None and one.grad_value is not None:
                    one.grad.detach().copy_(one.grad_value)
                    one.grad_version = one.grad._version

    def changed_gradients(self) -> list[str]:
        """Return the names of the tensors whose ``.grad`` is not what it was."""
        return [one.name for one in self._watched if one.gradient_changed()]


def _ordinary(tensor: Tensor) -> bool:
    try:
        return unreadable_kind(tensor) is None and not tensor.is_inference() and tensor.numel() >= 0
    except (RuntimeError, ValueError):  # of a lazy module, without a shape so far
        return False


def _watched(name: str, tensor: Tensor) -> _Watched:
    copied = not tensor.requires_grad and tensor.numel() <= LARGEST
    grad = tensor.grad if tensor.is_leaf and tensor.requires_grad else None
    return _Watched(
        name,
        tensor,
        tensor.detach().clone() if copied else None,
        tensor._version,
        grad,
        None if grad is None else grad.detach().clone(),
        0 if grad is None else grad._version,
    )


def _put_back(one: _Watched) -> None:
    assert one.value is not None
    if one.tensor.requires_grad and not one.tensor._is_view():  # forward wrote a function of its inputs, in grad mode
        one.tensor.detach_()
    with torch.no_grad():
        one.tensor.copy_(one.value)
    one.version = one.tensor._version


def reachable(fn: Any, cls: type | None, inputs: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors that a function can read or write besides the tensors it is given, with their names.

    These are the parameters and buffers of modules, and tensors in closures, globals and attributes that are named by
    its code, by that of the modules and Functions it names, and by the methods of its own Function; containers of them
    too.

    Args:
        fn: what is checked.
        cls: its Function class, where that is known.
        inputs: by name, what it is given.
    """
    given = ((name, value) for name, value in inputs.items() if not isinstance(value, Tensor))
    values = [("", fn), ("", getattr(fn, "__self__", None)), *given, *names_outside(fn, cls)]
    parts = {type(part) for _, value in values if isinstance(value, torch.nn.Module) for part in value.modules()}
    values += (pair for part in parts for pair in names_outside(part.forward, None))
    classes = {value for _, value in values if isinstance(value, type) and issubclass(value, torch.autograd.Function)}
    for one in classes | ({cls} if cls is not None else set()):
        values += (*vars(one).items(), *names_outside(None, one))
    for name, value in values:
        yield from _inside(name, value)


def _inside(name: str, value: Any, depth: int = 2) -> Iterator[tuple[str, Tensor]]:
    """Yield a tensor, or those in a module, in a container or among the attributes of a plain object."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, torch.nn.Module):
        for inner, tensor in (*value.named_parameters(), *value.named_buffers()):
            yield f"{name}.{inner}" if name else inner, tensor
    elif callable(value) or not depth or type(value).__module__.startswith("nbautograd."):
        return
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value[:MOST]):
            yield from _inside(f"{name}[{i}]", item, depth - 1)
    elif isinstance(value, dict):
        for key, item in list(value.items())[:MOST]:
            yield from _inside(f"{name}[{key!r}]", item, depth - 1)
    elif type(value).__module__ != "builtins" and isinstance(getattr(value, "__dict__", None), dict):
        for key, item in list(vars(value).items())[:MOST]:
            yield from _inside(f"{name}.{key}", item, depth - 1)
