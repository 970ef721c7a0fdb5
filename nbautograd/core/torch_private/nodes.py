"""The private torch names by which a node of the backward graph tells about itself, each behind a probe.

Belongs to ``tensors.py``: what a torch version does not have is answered with "not known", never with an error.
"""

from __future__ import annotations

import os
import re
import sys
import weakref
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

# without these attributes only unpacking shows what was saved, and that runs hooks (a checkpoint would recompute)
SHOWS_SAVED = all(hasattr(getattr(torch._C._autograd, "SavedTensor", None), name) for name in ("data", "unpack_hook"))

TWICE = "backward through the graph a second time"  # in what torch raises for a freed node

_slot_names: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()


def root_edge(tensor: torch.Tensor) -> tuple[Any | None, int]:
    """Return the node that backward enters for this tensor, and which of its outputs; ``(None, 0)`` without a graph."""
    try:
        if not tensor.requires_grad:
            return None, 0
        if tensor.grad_fn is not None:
            return tensor.grad_fn, tensor.output_nr
        with torch.enable_grad():
            return tensor.view_as(tensor).grad_fn.next_functions[0]  # type: ignore[union-attr]
    except Exception:  # a tensor subclass or a wrapped tensor that cannot say
        return None, 0


def node_name(node: Any) -> str:
    """Return the name that ``print(grad_fn)`` shows, without torch's namespace."""
    name: str = node.name()
    return name.removeprefix("torch::autograd::")


def sequence_number(node: Any) -> int | None:
    """Return the engine's sequence number: higher was made later and runs earlier."""
    try:
        number: int = node._sequence_nr()
    except Exception:  # not in this torch
        return None
    return number


def next_sequence_number() -> int | None:
    """Return the number that this thread's next node will get."""
    try:
        number: int = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]
    except Exception:  # not in this torch
        return None
    return number


def leaf_tensor(node: Any) -> torch.Tensor | None:
    """Return the tensor that an AccumulateGrad node accumulates into; None for other nodes."""
    tensor = getattr(node, "variable", None)
    return tensor if isinstance(tensor, torch.Tensor) else None


def gradient_slots(node: Any) -> list[tuple[tuple[int, ...] | None, torch.dtype | None, Any]]:
    """Return shape, dtype and device of the gradient that each output of the node expects, or nothing."""
    try:
        return [_slot(meta) for meta in node._input_metadata]
    except Exception:  # not in this torch
        return []


def _slot(meta: Any) -> tuple[tuple[int, ...] | None, torch.dtype | None, Any]:
    try:
        return tuple(meta.shape), meta.dtype, meta.device
    except Exception:  # nested tensors have no one shape; an output that was None has no metadata
        return None, None, None


def function_of(node: Any) -> type | None:
    """Return the class of a custom Function's node, or None for torch's own nodes."""
    if not isinstance(node, BackwardCFunction):
        return None
    cls = getattr(type(node), "_forward_cls", None)
    return cls if isinstance(cls, type) else type(node)


def raw_slot_names(node_type: type) -> tuple[str, ...]:
    """Return names of what torch's own nodes of a type save: ``("self", "other")`` for a product."""
    names = _slot_names.get(node_type)
    if names is None:
        prefix = "_raw_saved_"
        names = tuple(name.removeprefix(prefix) for name in dir(node_type) if name.startswith(prefix))
        _slot_names[node_type] = names
    return names


def all_gone(node: Any) -> bool:
    """Return True if everything that one of torch's own nodes saved is gone; quick, for graphs of many nodes."""
    if not SHOWS_SAVED:
        return _unpacks_nothing(node)
    names = raw_slot_names(type(node))
    try:
        for name in names:
            slot = getattr(node, "_raw_saved_" + name)
            if isinstance(slot, (tuple, list)):
                if any(saved_peek(one)[1] != "gone" for one in slot):
                    return False
            elif slot.data is not None or slot.unpack_hook is not None:
                return False
    except RuntimeError:  # a list of freed tensors cannot be read at all
        return True
    except Exception:  # as without SHOWS_SAVED
        return False
    return refuses(node)


def _unpacks_nothing(node: Any) -> bool:
    """Return True if torch says that a node is freed when its saved tensors are unpacked; no hook runs."""
    return any(TWICE in _refusal(node, f"_saved_{name}") for name in raw_slot_names(type(node)))


def _refusal(node: Any, name: str) -> str:
    """Return what torch raises for an attribute, empty where nothing; no Python function is entered."""
    if sys.getprofile() is not None:  # a profiler's, which could not be put back
        return ""
    sys.setprofile(_refuse)
    try:
        getattr(node, name)
    except Exception as error:
        return str(error)
    finally:
        sys.setprofile(None)
    return ""


def _refuse(frame: Any, event: str, argument: Any) -> None:
    if event == "call":
        raise PermissionError(event)


def refuses(node: Any) -> bool:
    """Return True if empty slots of one of torch's own nodes were freed: torch raises then, but gives a saved None."""
    try:
        for name in raw_slot_names(type(node)):
            getattr(node, "_saved_" + name)
    except Exception:  # a freed one raises RuntimeError; a torch without the name cannot tell
        return True
    return False


def raw_slots(node: Any, name: str) -> list[tuple[str, Any]] | None:
    """Return the raw saved slots behind one name, with their place in a list; None when they were freed."""
    try:
        slots = getattr(node, f"_raw_saved_{name}")
    except RuntimeError:
        return None
    except Exception:  # not in this torch
        return []
    if isinstance(slots, (tuple, list)):
        return [(f"[{i}]", slot) for i, slot in enumerate(slots)]
    return [("", slots)]


def saved_peek(slot: Any) -> tuple[torch.Tensor | None, str]:
    """Look at a raw saved slot without unpacking it: the tensor, or why there is none.

    Returns:
        ``(tensor, "")``, ``(None, "packed")`` when hooks packed it, ``(None, "hidden")`` when this torch does not tell,
        ``(None, "gone")`` when it is empty: freed by a backward, or None was saved.
    """
    try:
        if slot.unpack_hook is not None:
            return None, "packed"
        data = slot.data
    except Exception:  # as without SHOWS_SAVED
        return None, "hidden"
    return (data, "") if isinstance(data, torch.Tensor) else (None, "gone")


def forward_line(node: Any) -> int | None:
    """Line of the innermost frame outside torch that made the node; torch keeps it only under ``detect_anomaly``."""
    try:
        frames = node.metadata.get("traceback_") or []
    except Exception:  # not in this torch
        return None
    for frame in reversed(frames):
        found = re.match(r'\s*File "(.*)", line (\d+)', frame)
        if found and f"{os.sep}torch{os.sep}" not in found[1]:
            return int(found[2])
    return None
