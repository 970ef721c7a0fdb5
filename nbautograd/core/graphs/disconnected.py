"""Ghosts: tensors of the user that no way leads to, and where they were cut off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from nbautograd.core.graphs.caller_code import CallerCode
from nbautograd.core.graphs.graph import Ghost
from nbautograd.core.graphs.names import Names
from nbautograd.core.graphs.source_cuts import Cut
from nbautograd.core.torch_private.nodes import function_of, raw_slot_names, raw_slots, saved_peek

MOST_GHOSTS = 12
MOST_FOLLOWED = 6  # ghosts whose way through functions is looked for
MOST_SEARCHED = 300  # nodes whose saved tensors are looked at
FEW_NAMES = 16  # tensors named one by one are all meant; a whole namespace is not


def disconnected_tensors(
    live: Sequence[Any], leaves: Sequence[torch.Tensor | None], names: Names, roots: Sequence[str]
) -> tuple[Ghost, ...]:
    """Find the named tensors that need a gradient and get none from this graph.

    A parameter counts when others of its module are in the graph; another tensor when a line cuts it off and what that
    gives goes on into a root, when a node saved what it holds, or when it was named one by one.

    Args:
        live: torch's nodes of the graph.
        leaves: for each of them the tensor, for AccumulateGrad.
        names: the user's names.
        roots: the user's names of the roots that have one.
    """
    reached = {id(leaf) for leaf in leaves if leaf is not None}
    missing = [(name, tensor) for name, tensor in names.wanting if id(tensor) not in reached]
    if not missing or not live:
        return ()
    inner = set(live)
    missing = [(name, t) for name, t in missing if t.is_leaf or t.grad_fn not in inner]
    users = _users(live, missing, {_place(leaf) for leaf in leaves if leaf is not None})
    modules = {names.module_of[id(leaf)] for leaf in leaves if leaf is not None and id(leaf) in names.module_of}
    code, goals = CallerCode(), set(roots)
    found: list[Ghost] = []
    for name, tensor in missing:
        user = users.get(_place(tensor))
        cut = code.follow(tensor, name, roots) if len(found) < MOST_FOLLOWED else None
        if cut is None and (cut := code.cut(name)) is not None and user is None and not code.leads(name, goals):
            cut = None
        expected = names.module_of.get(id(tensor)) in modules or (names.given and len(names.wanting) <= FEW_NAMES)
        if cut is not None or (tensor.is_leaf and (user is not None or expected)):
            found.append(_ghost(name, tensor, cut, user))
    return tuple(found[:MOST_GHOSTS])


def _ghost(name: str, tensor: torch.Tensor, cut: Cut | None, user: int | None) -> Ghost:
    reason = cut.reason if cut is not None else "detach" if user is not None else "unused"
    line, text = (cut.line, cut.text) if cut is not None else (None, "")
    where, sure = (cut.where, cut.sure) if cut is not None else ("", True)
    return Ghost(name, reason, line, text, tuple(tensor.shape), user, where, sure)


def _users(live: Sequence[Any], missing: Sequence[tuple[str, torch.Tensor]], reached: set[int]) -> dict[int, int]:
    """Find the nodes that saved a missing tensor's memory and pass one of their inputs no gradient."""
    wanted = {_place(tensor) for _, tensor in missing} - reached - {0}
    users: dict[int, int] = {}
    if not wanted or len(live) > MOST_SEARCHED:
        return users
    for i, node in enumerate(live):
        if all(target is not None for target, _ in node.next_functions):
            continue
        for name in ("tensors",) if function_of(node) is not None else raw_slot_names(type(node)):
            for _, slot in raw_slots(node, name) or ():
                tensor, _ = saved_peek(slot)
                if tensor is not None and (place := _place(tensor)) in wanted:
                    users.setdefault(place, i)
    return users


def _place(tensor: torch.Tensor) -> int:
    """Return the address of the tensor's first element; 0 for tensors without memory of their own."""
    try:
        return tensor.data_ptr()
    except Exception:  # functorch, sparse and meta tensors
        return 0
