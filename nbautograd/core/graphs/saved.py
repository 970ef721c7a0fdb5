"""Saved tensors of a node, read without side effects: their memory, and which were changed in place since.

``ctx.saved_tensors`` and ``grad_fn._saved_self`` run unpack hooks (a checkpoint would recompute), check versions and
raise once the buffers are freed. Here the raw slots are looked at instead: no hook runs, nothing raises, and what
cannot be seen that way is said to be packed, not shown by this torch, or freed.
"""

from __future__ import annotations

import ast
import linecache
import re
import weakref
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import FrameType
from typing import Any, NamedTuple

import torch

from nbautograd.core import stumbles
from nbautograd.core.graphs.graph import Stale, Storage
from nbautograd.core.graphs.names import calling_frame
from nbautograd.core.stumbles import any_errors, ask
from nbautograd.core.torch_private.nodes import (
    function_of,
    node_name,
    raw_slot_names,
    raw_slots,
    refuses,
    saved_peek,
)
from nbautograd.core.user_source import FunctionSource, in_place, read_source, tree_of
from nbautograd.core.values import CtxSnapshot, TensorSummary, Value, describe, tensor_repr

CELLS = 20  # how many of the notebook's latest cells are looked at


class ChangingLine(NamedTuple):
    """A line that changes a variable in place: its number in the cell or file, from 1, and what is written there."""

    line: int
    text: str


def find_change(name: str, code: str) -> ChangingLine | None:
    """Find the last line of some code that changes the variable ``name`` in place."""
    # walking a cell's tree for each of many stale tensors is what costs: a name that is not written there needs none
    changes = [node for node in _nodes(code) if _changes(node, name)] if name in code else []
    return max((ChangingLine(node.lineno, ast.unparse(node)) for node in changes), default=None)


def _sources_of(frame: FrameType) -> Iterator[str]:
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


def _changes(node: ast.stmt | ast.expr, name: str) -> bool:
    if isinstance(node, ast.AugAssign):
        target: ast.expr = node.target
        return _is(target, name) or (isinstance(target, ast.Subscript) and _is(target.value, name))
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Subscript) and _is(target.value, name) for target in node.targets)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is(node.func.value, name):
        return in_place(node.func.attr)
    return False


@lru_cache(maxsize=CELLS)
def _nodes(code: str) -> tuple[ast.stmt | ast.expr, ...]:
    tree = tree_of(code)
    nodes = () if tree is None else ast.walk(tree)
    return tuple([node for node in nodes if isinstance(node, (ast.AugAssign, ast.Assign, ast.Call))])


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == name


# what stands in place of a saved tensor that only unpacking would show
UNSEEN = {
    "packed": "packed",  # a saved_tensors_hooks context packed it
    "hidden": f"not shown by torch {torch.__version__.split('+')[0]}",
}

METHODS = ("forward", "setup_context", "backward", "vjp")

# the source of each class and the methods that it was read for; reading parses the whole cell or file
_sources: weakref.WeakKeyDictionary[type, tuple[tuple[int, ...], FunctionSource | None]] = weakref.WeakKeyDictionary()


class SavedReader:
    """Reads ctx and saved tensors of the nodes of one graph.

    Args:
        name_of: gives the user's name of a tensor, or an empty text.
    """

    def __init__(self, name_of: Callable[[torch.Tensor], str]) -> None:
        self._name_of = name_of
        self._left = 256  # saved tensors that get statistics and previews; the rest only shape and dtype

    def source(self, cls: type | None) -> FunctionSource | None:
        """Return the class's source, or None when it cannot be read."""
        if cls is None:
            return None
        written = tuple(id(vars(cls).get(name)) for name in METHODS)
        known = _sources.get(cls)
        if known is None or known[0] != written:
            source = None
            with any_errors("source of a graph's node"):  # the source is an extra; a graph is drawn without it
                source = read_source(cls)
            known = _sources[cls] = (written, source)
        return known[1]

    def op(self, node: Any) -> tuple[tuple[Value, ...], bool]:
        """Read the tensors that one of torch's own nodes saved, and the flag that they were freed."""
        values: list[Value] = []
        slots = gone = 0
        for name in raw_slot_names(type(node)):
            for where, slot in raw_slots(node, name) or ():
                tensor, state = saved_peek(slot)
                slots += 1
                gone += state == "gone"
                if tensor is not None:
                    values.append(_shape_only(f"{name}{where}", tensor))
                elif state in UNSEEN:
                    values.append(Value(f"{name}{where}", "Tensor", UNSEEN[state]))
        return tuple(values), slots == gone and refuses(node)

    def ctx(self, node: Any, source: FunctionSource | None) -> CtxSnapshot:
        """Read the ctx of a custom Function, which is the node itself."""
        saved, size, freed = self._saved(node, source)
        flags = ask(lambda: tuple(node.needs_input_grad), ())  # not every torch lets it be read after backward
        return CtxSnapshot(
            saved_tensors=saved,
            attributes={
                name: describe(name, value)
                for name, value in sorted(getattr(node, "__dict__", {}).items(), key=lambda item: str(item[0]))
            },
            needs_input_grad=tuple(map(bool, flags)),
            bytes=size,
            freed=freed,
        )

    def _saved(self, node: Any, source: FunctionSource | None) -> tuple[tuple[Value, ...], int, bool]:
        names = (source.saved if source is not None else None) or ()
        slots = raw_slots(node, "tensors")
        if slots is None:
            freed = tuple(Value(name, "Tensor", "freed") for name in names)
            return freed, 0, True
        values: list[Value] = []
        storages: dict[int, int] = {}
        for i, (_, slot) in enumerate(slots):
            tensor, state = saved_peek(slot)
            name = names[i] if len(names) == len(slots) else ""
            if tensor is None:
                kind = ("Tensor", UNSEEN[state]) if state in UNSEEN else ("NoneType", "None")
                values.append(Value(name or f"saved[{i}]", *kind))
                continue
            storages.update([_memory(tensor)])
            shown = describe if self._left > 0 else _shape_only
            values.append(shown(name or self._name_of(tensor) or f"saved[{i}]", tensor))
            self._left -= 1
        return tuple(values), sum(storages.values()), False


def _shape_only(name: str, tensor: torch.Tensor) -> Value:
    dtype = str(tensor.dtype).removeprefix("torch.")
    summary = TensorSummary(tuple(tensor.shape), dtype, numel=tensor.numel())
    return Value(name, type(tensor).__name__, tensor_repr(summary), summary)


def _memory(tensor: torch.Tensor) -> tuple[int, int]:
    storage = ask(lambda: tensor.untyped_storage(), None)  # functorch, sparse and meta tensors have none to count
    otherwise = id(tensor), tensor.numel() * tensor.element_size()
    return (
        otherwise if storage is None else ask(lambda: (storage.data_ptr() or id(tensor), storage.nbytes()), otherwise)
    )


VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")


class SavedMemory:
    """Reads the memory and the versions of the nodes of one graph.

    Args:
        name_of: gives the user's name of a tensor, or an empty text.
    """

    def __init__(self, name_of: Callable[[torch.Tensor], str]) -> None:
        self._name_of = name_of
        self._numbers: dict[int, int] = {}
        self._code: list[str] | None = None  # that called this package: a file, a function, or cells, the latest first

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
            key, size = _memory(tensor)
            storage = Storage(self._numbers.setdefault(key, len(self._numbers)), size, self._name_of(tensor))
            held.setdefault(storage.number, storage)
            if changed := self._stale(node, name, slot, tensor):
                stale.append(changed)
        return tuple(held.values()), tuple(stale)

    def _stale(self, node: Any, name: str, slot: Any, tensor: torch.Tensor) -> Stale | None:
        versions = _versions(node, name, slot, tensor)
        if versions is None:
            return None
        maker = tensor.grad_fn  # where that is not the op that the node's gradient goes to
        foreign = maker is not None and not any(maker is other for other, _ in node.next_functions)
        stale = Stale(name, self._name_of(tensor), *versions, node_name(maker) if foreign else "")
        if not stale.name:
            return stale
        if self._code is None:
            frame = calling_frame()
            self._code = [] if frame is None else [piece for piece in _sources_of(frame) if piece]
        line = next((line for code in self._code if (line := find_change(stale.name, code))), None)
        return stale if line is None else Stale(*stale[:4], line.text, line.line)


def changed_slots(node: Any) -> Iterator[tuple[str, torch.Tensor, int, int]]:
    """Yield the saved tensors of a node that were changed since: slot, tensor, version when saved, version now."""
    for name, slot in _slots(node, ()):
        tensor, _ = saved_peek(slot)
        if tensor is not None and (versions := _versions(node, name, slot, tensor)) is not None:
            yield name, tensor, *versions


def _versions(node: Any, name: str, slot: Any, tensor: torch.Tensor) -> tuple[int, int] | None:
    """Return the version that was saved and the one now, where they differ.

    Torch itself says both, in what it raises when a changed tensor is unpacked; no hook runs.
    """
    if ask(lambda: tensor._version, 0) == 0:  # inference tensors have no version
        return None
    found = VERSIONS.search(_refusal(slot.unpack)) or VERSIONS.search(_refusal(lambda: _unpacked(node, name)))
    return None if found is None else (int(found[2]), int(found[1]))


def _refusal(unpack: Callable[[], Any]) -> str:
    try:
        unpack()
    except (AttributeError, RuntimeError) as error:
        return stumbles.said(error)
    return ""


def _unpacked(node: Any, name: str) -> Any:
    if function_of(node) is None:
        return getattr(node, f"_saved_{name.partition('[')[0]}")
    slots = raw_slots(node, "tensors") or []
    return None if any(saved_peek(slot)[1] for _, slot in slots) else node.saved_tensors


def _slots(node: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if function_of(node) is not None:
        slots = raw_slots(node, "tensors") or []
        for i, (_, slot) in enumerate(slots):
            yield names[i] if len(names) == len(slots) else f"saved[{i}]", slot
        return
    for name in raw_slot_names(type(node)):
        for where, slot in raw_slots(node, name) or ():
            yield name + where, slot
