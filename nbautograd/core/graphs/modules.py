"""Modules as they are called: which call of which module made each node, exactly.

Forward numbers its nodes in the order in which it makes them, so that the numbers at the beginning and at the end of a
module's call tell which nodes are its own. Nothing is kept alive: a call is a pair of numbers and the module's id.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from nbautograd.core.torch_private.nodes import next_sequence_number

MOST_CALLS = 100_000


class ModuleCall(NamedTuple):
    """One call of a module.

    Attributes:
        first, last: sequence numbers of the first node that was made during the call, and one past the last.
        module: the module's id.
    """

    first: int
    last: int
    module: int


class Made(NamedTuple):
    """The module call that made a node.

    Attributes:
        scope: path of the module.
        calls: which call it was of each module around it, outermost first; from 1, and 0 for one that was not called,
            such as a list of modules.
    """

    scope: str
    calls: tuple[int, ...]


_calls: deque[ModuleCall] = deque(maxlen=MOST_CALLS)


@contextmanager
def watch_modules() -> Iterator[None]:
    """Note which module makes which nodes while a forward runs, so that ``graph`` need not guess it.

    Example:
        >>> import torch, nbautograd
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
        >>> with nbautograd.watch_modules():
        ...     loss = model(torch.ones(1, 2)).sum()
        >>> [node.scope for node in nbautograd.graph(loss, names=model).nodes][1]
        '1'
    """
    thread = threading.get_ident()
    running: list[tuple[int, int]] = []

    def begins(module: Any, args: Any) -> None:
        if threading.get_ident() == thread and (number := next_sequence_number()) is not None:
            running.append((id(module), number))

    def ends(module: Any, args: Any, output: Any) -> None:
        if threading.get_ident() != thread:
            return
        while running:
            begun, first = running.pop()
            if begun == id(module):
                _calls.append(ModuleCall(first, next_sequence_number() or first, begun))
                return

    handles = [register_module_forward_pre_hook(begins), register_module_forward_hook(ends, always_call=True)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def made_by(sequence: Sequence[int | None], paths: Mapping[int, str]) -> dict[int, Made]:
    """Return the module call that made each node, of those that were watched; empty when none was.

    Args:
        sequence: sequence number of each node.
        paths: id of a module -> its path.
    """
    met = {call for call in _calls if call.module in paths and call.first < call.last}
    calls = sorted(met, key=lambda call: (call.first, -call.last, len(paths[call.module])))
    firsts, around = [call.first for call in calls], _around(calls)
    chains, homes = _chains(calls, around, paths), _homes(calls, around, paths)
    found: dict[int, Made] = {}
    for i, number in enumerate(sequence):
        at = bisect_right(firsts, number) - 1 if number is not None else -1
        while at >= 0 and number is not None and number >= calls[at].last:
            at = around[at]
        if at >= 0:
            found[i] = Made(paths[calls[homes[at]].module], chains[homes[at]])
    return found


def _around(calls: Sequence[ModuleCall]) -> list[int]:
    """For each call the innermost one that encloses it, or -1; an outer call comes before those inside of it."""
    around: list[int] = []
    open_calls: list[int] = []
    for at, call in enumerate(calls):
        while open_calls and calls[open_calls[-1]].last < call.last:
            open_calls.pop()
        around.append(open_calls[-1] if open_calls else -1)
        open_calls.append(at)
    return around


def _homes(calls: Sequence[ModuleCall], around: Sequence[int], paths: Mapping[int, str]) -> list[int]:
    """For each call itself, or the one around it where its module lives elsewhere, such as a shared activation."""
    homes: list[int] = []
    for at, call in enumerate(calls):
        outer = homes[around[at]] if around[at] >= 0 else -1
        path = paths[calls[outer].module] if outer >= 0 else ""
        homes.append(outer if path and not f"{paths[call.module]}.".startswith(f"{path}.") else at)
    return homes


def _chains(calls: Sequence[ModuleCall], around: Sequence[int], paths: Mapping[int, str]) -> list[tuple[int, ...]]:
    """For each call the calls around it and itself, by the depth of their modules."""
    chains: list[tuple[int, ...]] = []
    for at, call in enumerate(calls):
        outer = chains[around[at]] if around[at] >= 0 else ()
        depth = paths[call.module].count(".")
        chains.append((*outer[:depth], *(0,) * (depth - len(outer)), at + 1))
    return chains
