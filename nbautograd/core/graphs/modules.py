"""Modules: which call of which module made each node, exactly where the call was watched, else inferred.

Forward numbers its nodes in the order in which it makes them, so that the numbers at the beginning and at the end of a
module's call tell which nodes are its own. Nothing is kept alive: a call is a pair of numbers and the module's id.

Where nothing was watched, a node next to a parameter belongs to the parameter's module, and a node made between two
others belongs to the module that encloses both. An ``nn.Sequential`` has no ops of its own: what lies between two of
its parts is made by one of them.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from nbautograd.core.graphs.graph import Node
from nbautograd.core.graphs.segments import CONTAINERS, common_path
from nbautograd.core.torch_private.nodes import next_sequence_number

MEETS = ("embedding", "mm", "conv")  # in names of ops at which a parameter meets data, which may need no gradient
MOST_CALLS = 100_000  # of modules, the newest: three numbers each, some 10 MB


class ModuleCall(NamedTuple):
    """One call of a module.

    Attributes:
        first, last: sequence numbers of the first node that was made during the call, and one past the last.
        module: the module's id.
    """

    first: int
    last: int
    module: int


class MakingCall(NamedTuple):
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


def exact_modules(sequence: Sequence[int | None], paths: Mapping[int, str]) -> dict[int, MakingCall]:
    """Return the module call that made each node, of those that were watched; empty when none was."""
    met = {call for call in _calls if call.module in paths and call.first < call.last}
    calls = sorted(met, key=lambda call: (call.first, -call.last, len(paths[call.module])))
    firsts, (around, chains, homes) = [call.first for call in calls], _nested(calls, paths)
    found: dict[int, MakingCall] = {}
    for i, number in enumerate(sequence):
        at = bisect_right(firsts, number) - 1 if number is not None else -1
        while at >= 0 and number is not None and number >= calls[at].last:
            at = around[at]
        if at >= 0:
            found[i] = MakingCall(paths[calls[homes[at]].module], chains[homes[at]])
    return found


def _nested(
    calls: Sequence[ModuleCall], paths: Mapping[int, str]
) -> tuple[list[int], list[tuple[int, ...]], list[int]]:
    """Return for each call, an outer one before those inside of it, three things that its place among them tells.

    The innermost one that encloses it, or -1; the calls of the modules around it, outermost first; and itself, or the
    one around it where its module lives elsewhere, as if shared.
    """
    around, chains, homes, open_calls = list[int](), list[tuple[int, ...]](), list[int](), list[int]()
    for at, call in enumerate(calls):
        while open_calls and calls[open_calls[-1]].last < call.last:
            open_calls.pop()
        around.append(open_calls[-1] if open_calls else -1)
        chain, home = (chains[around[at]], homes[around[at]]) if open_calls else ((), -1)
        depth = paths[call.module].count(".")
        chains.append((*chain[:depth], *(0,) * (depth - len(chain)), at + 1))
        path = paths[calls[home].module] if home >= 0 else ""
        homes.append(home if path and not f"{paths[call.module]}.".startswith(f"{path}.") else at)
        open_calls.append(at)
    return around, chains, homes


Following = Sequence[Sequence[tuple[int, int, int]]]


def infer_scopes(
    labels: Mapping[int, str],
    numbers: Sequence[int],
    following: Following,
    modules: Mapping[str, str],
    ops: Sequence[str],
    frozen: Mapping[int, str],
) -> dict[int, str]:
    """Find the path of the module that made each node.

    Args:
        labels: leaf -> path of the parameter.
        numbers: sequence number of each node.
        following: for each node (target, ...) of its edges.
        modules: module path -> type name.
        ops: name of each node.
        frozen: node -> path of a parameter that it saved and that needs no gradient.

    Returns:
        Node -> module path, for the nodes inside a module.
    """
    owners = {i: _owner(label, modules) for i, label in labels.items()}
    if not modules or all(owner is None for owner in owners.values()):
        return {}
    inner = sorted((i for i in range(len(numbers)) if i not in labels), key=numbers.__getitem__)
    known = {i: owner for i, label in frozen.items() if (owner := _owner(label, modules))}
    handed = {i for i in inner if len(following[i]) == 1 and not any(word in ops[i].lower() for word in MEETS)}
    scopes = _between(inner, {**known, **_scopes_of_parameters(inner, following, owners, handed)})
    scopes.update(_ends_of_parts(inner, scopes, modules, ops))
    return {**scopes, **{i: owner for i, owner in owners.items() if owner}}


def scope_types(nodes: Sequence[Node], modules: Mapping[str, str]) -> dict[str, str]:
    """Return the type names by module path, for the scopes that occur and those around them."""
    scopes = [scope.split(".") for scope in {node.scope for node in nodes} if scope]
    met = {".".join(names[:k]) for names in scopes for k in range(1, len(names) + 1)}
    return {path: modules.get(path, "") for path in sorted(met)}


def _owner(label: str, modules: Mapping[str, str]) -> str | None:
    path, dot, _ = label.rpartition(".")
    return path if dot and path in modules else None


def _scopes_of_parameters(
    inner: Sequence[int], following: Following, owners: Mapping[int, str | None], handed: Container[int]
) -> dict[int, str]:
    """Return the scopes of what uses a parameter, or what became of one in a node that only hands it on."""
    known: dict[int, str] = {}
    for i in inner:
        found = []
        for target, _, _ in following[i]:
            scope = owners[target] if target in owners else known.get(target) if target in handed else None
            if scope is not None:
                found.append(scope)
        if found:
            known[i] = found[0] if len(found) == 1 else common_path(found)
    return known


def _between(inner: Sequence[int], known: Mapping[int, str]) -> dict[int, str]:
    scopes: dict[int, str] = {}
    waiting: list[int] = []
    before: str | None = None
    for i in inner:
        here = known.get(i)
        if here is None:
            waiting.append(i)
            continue
        if waiting:
            scopes.update(dict.fromkeys(waiting, "" if before is None else common_path([before, here])))
            waiting = []
        scopes[i] = before = here
    return scopes


def _ends_of_parts(
    inner: Sequence[int], scopes: Mapping[int, str], modules: Mapping[str, str], ops: Sequence[str]
) -> dict[int, str]:
    """Give the parts of a container the ops beside what is known of them that are their own.

    Of equal parts, such as residual blocks with their ``relu(x + y)``, those at their ends: between two parts lies the
    end of the first or the beginning of the second, and it is the end where the same ops follow the last part too. Of
    parts without parameters the ops that are called as they, such as ``Relu`` in ``Sequential(Conv2d, ReLU)``.
    """
    met: dict[str, list[int]] = {}  # by module, where its nodes are
    for at, i in enumerate(inner):
        names = scopes.get(i, "").split(".")
        for depth in range(1, len(names) + 1 if names[0] else 1):
            met.setdefault(".".join(names[:depth]), []).append(at)
    children: dict[str, list[str]] = {}
    for path in filter(None, modules):
        children.setdefault(path.rpartition(".")[0], []).append(path)
    found: dict[int, str] = {}
    for container, parts in children.items():
        if modules.get(container) not in CONTAINERS or not any(part in met for part in parts):
            continue
        if len(parts) > 1 and len({modules[part] for part in parts}) == 1:
            there = [part for part in parts if part in met]  # frozen ones at the beginning are not
            places = [met[part] for part in there]
            if len(there) > 1 and all(one[-1] < two[0] for one, two in pairwise(places)):
                ends = [inner[one[-1] + 1 : two[0]] for one, two in pairwise(places)]
                names = [ops[i] for i in ends[0]]
                ends.append(inner[places[-1][-1] + 1 :][: len(names)])
                if all([ops[i] for i in end] == names for end in ends):
                    found.update((i, part) for end, part in zip(ends, there, strict=True) for i in end)
        elif modules.get(container) == "Sequential":
            places = [met.get(part, []) for part in parts]
            known = [k for k, place in enumerate(places) if place]
            beside = [(1, places[k][-1], parts[k + 1 : after]) for k, after in pairwise([*known, len(parts)])]
            for way, last, silent in (*beside, (-1, places[known[0]][0], parts[: known[0]][::-1])):
                for at, part in enumerate(silent, start=1):
                    i = inner[last + way * at] if 0 <= last + way * at < len(inner) else -1
                    outside = i >= 0 and f"{container}.".startswith(f"{scopes.get(i) or container}.")
                    if not outside or not ops[i].lower().startswith(modules[part].lower()):
                        break
                    found[i] = part
    return found
