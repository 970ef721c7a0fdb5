"""The private torch names by which a node of the backward graph tells about itself, each behind a probe.

Belongs to ``tensors.py``: what a torch version does not have is answered with "not known", never with an error.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from nbautograd.core.stumbles import ask, hands_over

# without these attributes only unpacking shows what was saved, and that runs hooks (a checkpoint would recompute)
SHOWS_SAVED = all(hasattr(getattr(torch._C._autograd, "SavedTensor", None), name) for name in ("data", "unpack_hook"))

TWICE = "backward through the graph a second time"  # in what torch raises for a freed node

# Nodes of one graph that are looked at. Once a node has been seen from Python, torch 2.13 deletes it by recursion: a
# chain of 50,000 such nodes overflows a stack of 8 MiB when the user's loss goes, and that ends the process; 40,000
# do not.
MOST_NODES = 30_000

_slot_names: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()


def graph_nodes(tensors: Iterable[torch.Tensor]) -> Iterator[Any]:
    """Yield the nodes of the graph of some tensors, nearest first, at most ``MOST_NODES``."""
    queue: deque[Any] = deque(t.grad_fn for t in tensors if t.grad_fn is not None)
    seen: set[Any] = set()
    while queue and len(seen) < MOST_NODES:
        node = queue.popleft()
        if node not in seen:
            seen.add(node)
            yield node
            queue.extend(following for following, _ in node.next_functions if following is not None)


def root_edge(tensor: torch.Tensor) -> tuple[Any | None, int]:
    """Return the node that backward enters for this tensor, and which of its outputs; ``(None, 0)`` without a graph."""
    if not ask(lambda: tensor.requires_grad, False):
        return None, 0
    if ask(lambda: tensor.grad_fn, None) is not None:
        return ask(lambda: (tensor.grad_fn, tensor.output_nr), (None, 0))
    with torch.enable_grad():
        found: tuple[Any | None, int] = ask(lambda: tensor.view_as(tensor).grad_fn.next_functions[0], (None, 0))  # type: ignore[union-attr]
    return found


def node_name(node: Any) -> str:
    """Return the name that ``print(grad_fn)`` shows, without torch's namespace."""
    name: str = node.name()
    return name.removeprefix("torch::autograd::")


def sequence_number(node: Any) -> int | None:
    """Return the engine's sequence number: higher was made later and runs earlier."""
    number: int | None = ask(lambda: node._sequence_nr(), None)
    return number


def next_sequence_number() -> int | None:
    """Return the number that this thread's next node will get."""
    number: int | None = ask(lambda: torch.autograd._get_sequence_nr(), None)  # type: ignore[attr-defined]
    return number


def leaf_tensor(node: Any) -> torch.Tensor | None:
    """Return the tensor that an AccumulateGrad node accumulates into; None for other nodes."""
    tensor = getattr(node, "variable", None)
    return tensor if isinstance(tensor, torch.Tensor) else None


def gradient_slots(node: Any) -> list[tuple[tuple[int, ...] | None, torch.dtype | None, Any]]:
    """Return shape, dtype and device of the gradient that each output of the node expects, or nothing."""
    nothing = (None, None, None)  # nested tensors have no one shape; an output that was None has no metadata
    slots: list[Any] = ask(lambda: list(node._input_metadata), [])
    return [ask(functools.partial(_slot, meta), nothing) for meta in slots]


@hands_over
def _slot(meta: Any) -> tuple[tuple[int, ...] | None, torch.dtype | None, Any]:
    return tuple(meta.shape), meta.dtype, meta.device


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
    names = raw_slot_names(type(node))
    if not SHOWS_SAVED:
        # torch says so when a saved tensor is unpacked; no hook runs
        return any(TWICE in _refusal(node, f"_saved_{name}") for name in names)
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
    except AttributeError:  # as without SHOWS_SAVED
        return False
    return refuses(node)


def _refusal(node: Any, name: str) -> str:
    """Return what torch raises for an attribute, empty where nothing; no Python function is entered."""
    if sys.getprofile() is not None:  # a profiler's, which could not be put back
        return ""
    sys.setprofile(_refuse)
    try:
        getattr(node, name)
    except (AttributeError, RuntimeError, PermissionError) as error:
        return str(error)  # torch's own
    finally:
        sys.setprofile(None)
    return ""


def _refuse(frame: Any, event: str, argument: Any) -> None:
    if event == "call":
        raise PermissionError(event)


def refuses(node: Any) -> bool:
    """Return True if empty slots of one of torch's own nodes were freed: torch raises then, but gives a saved None."""
    refused = object()  # a freed one raises RuntimeError; a torch without the name cannot tell
    names = raw_slot_names(type(node))
    return any(ask(functools.partial(getattr, node, "_saved_" + name), refused) is refused for name in names)


def raw_slots(node: Any, name: str) -> list[tuple[str, Any]] | None:
    """Return the raw saved slots behind one name, with their place in a list; None when they were freed."""
    try:
        slots = getattr(node, f"_raw_saved_{name}")
    except RuntimeError:
        return None
    except AttributeError:  # not in this torch
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
    hidden = object()  # as without SHOWS_SAVED
    hook = ask(lambda: slot.unpack_hook, hidden)
    if hook is not None:
        return None, "hidden" if hook is hidden else "packed"
    data = ask(lambda: slot.data, hidden)
    if data is hidden:
        return None, "hidden"
    return (data, "") if isinstance(data, torch.Tensor) else (None, "gone")
