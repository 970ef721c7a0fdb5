"""The memory that one call keeps for its backward, which a check holds several times over."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.outside_state import reached_inside
from nbautograd.core.checking.problem import Outputs
from nbautograd.core.stumbles import ask
from nbautograd.core.torch_private.nodes import graph_nodes, raw_slot_names, saved_peek
from nbautograd.core.torch_private.tensors import storage_address


def kept_bytes(outputs: Outputs) -> int:
    """Return the bytes that the graph of a call holds beside its inputs and outputs, as far as they can be seen."""
    own = {_address(t) for t in (*outputs, *outputs.inputs) if isinstance(t, Tensor)} | {0}
    held: dict[int, int] = defaultdict(int)
    for tensor in (tensor for node in graph_nodes(outputs) for tensor in _tensors(node)):
        address = _address(tensor)
        if address not in own:
            held[address] = max(held[address], tensor.numel() * tensor.itemsize)
    return sum(held.values())


def _address(tensor: Tensor) -> int:
    return ask(lambda: storage_address(tensor), 0) if tensor.layout is torch.strided else 0


def _tensors(node: Any) -> Iterator[Tensor]:
    for name in raw_slot_names(type(node)):
        slots = ask(functools.partial(getattr, node, f"_raw_saved_{name}"), ())
        for slot in slots if isinstance(slots, (tuple, list)) else (slots,):
            tensor, _ = saved_peek(slot)
            if tensor is not None:
                yield tensor
    for name, value in ask(lambda: list(vars(node).items()), []):
        yield from (found for _, found in reached_inside(name, value) if isinstance(found, Tensor))
