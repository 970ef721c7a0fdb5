"""Saved memory: how much each node holds for its backward, and which saved tensors were changed in place since."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from nbautograd.core.graphs.caller_code import CallerCode
from nbautograd.core.graphs.graph import Stale, Storage
from nbautograd.core.torch_private.nodes import function_of, node_name, raw_slot_names, raw_slots, saved_peek

VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")


class SavedMemory:
    """Reads the memory and the versions of the nodes of one graph.

    Args:
        name_of: gives the user's name of a tensor, or an empty text.
    """

    def __init__(self, name_of: Callable[[torch.Tensor], str]) -> None:
        self._name_of = name_of
        self._numbers: dict[int, int] = {}
        self._code: CallerCode | None = None

    def read(self, node: Any, names: tuple[str, ...]) -> tuple[tuple[Storage, ...], tuple[Stale, ...]]:
        """Read the storages of a node, each once, and its stale tensors.

        Args:
            node: torch's node.
            names: for a custom Function the names of its saved tensors, where the source gives them.
        """
        held: dict[int, Storage] = {}
        stale: list[Stale] = []
        for name, slot in _slots(node, names):
            tensor, _ = saved_peek(slot)
            if tensor is None:
                continue
            storage = self._storage(tensor)
            held.setdefault(storage.number, storage)
            if changed := self._stale(node, name, slot, tensor):
                stale.append(changed)
        return tuple(held.values()), tuple(stale)

    def _storage(self, tensor: torch.Tensor) -> Storage:
        try:
            memory = tensor.untyped_storage()
            key, size = memory.data_ptr() or id(tensor), memory.nbytes()
        except Exception:  # functorch, sparse and meta tensors have no storage to count
            key, size = id(tensor), tensor.numel() * tensor.element_size()
        return Storage(self._numbers.setdefault(key, len(self._numbers)), size, self._name_of(tensor))

    def _stale(self, node: Any, name: str, slot: Any, tensor: torch.Tensor) -> Stale | None:
        """Torch itself says both versions, in what it raises when a changed tensor is unpacked; no hook runs."""
        try:
            if tensor._version == 0:
                return None
        except Exception:  # inference tensors have no version
            return None
        versions = VERSIONS.search(_refusal(slot.unpack)) or VERSIONS.search(_refusal(lambda: _unpacked(node, name)))
        if versions is None:
            return None
        stale = Stale(name, self._name_of(tensor), int(versions[2]), int(versions[1]), _changer(node, tensor))
        return self._told(stale)

    def _told(self, stale: Stale) -> Stale:
        """With the line that changes the tensor, where the calling code shows one."""
        if not stale.name:
            return stale
        self._code = self._code or CallerCode()
        line = self._code.change(stale.name)
        return stale if line is None else Stale(*stale[:4], line.text, line.line)


def _refusal(unpack: Callable[[], Any]) -> str:
    """Return the error that torch raises when a saved tensor is unpacked; empty when there is none."""
    try:
        unpack()
    except Exception as error:
        return str(error)
    return ""


def _unpacked(node: Any, name: str) -> Any:
    """A saved output, which only the node itself can unpack."""
    if function_of(node) is None:
        return getattr(node, f"_saved_{name.partition('[')[0]}")
    slots = raw_slots(node, "tensors") or []
    return None if any(saved_peek(slot)[1] for _, slot in slots) else node.saved_tensors


def _changer(node: Any, tensor: torch.Tensor) -> str:
    """The op that made the tensor what it is now, when that is not the one that the node's gradient goes to."""
    maker = tensor.grad_fn
    if maker is None or any(maker is other for other, _ in node.next_functions):
        return ""
    return node_name(maker)


def _slots(node: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if function_of(node) is not None:
        slots = raw_slots(node, "tensors") or []
        for i, (_, slot) in enumerate(slots):
            yield names[i] if len(names) == len(slots) else f"saved[{i}]", slot
        return
    for name in raw_slot_names(type(node)):
        for where, slot in raw_slots(node, name) or ():
            yield name + where, slot
