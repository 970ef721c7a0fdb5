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
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
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
    homes: Mapping[int, Sequence[str]],
    numbers: Sequence[int],
    following: Following,
    modules: Mapping[str, str],
    ops: Sequence[str],
    frozen: Mapping[int, str],
) -> dict[int, str]:
    """Find the path of the module that made each node.

    Args:
        homes: leaf -> paths of the modules whose own parameter it is.
        numbers: sequence number of each node.
        following: for each node (target, ...) of its edges.
        modules: module path -> type name.
        ops: name of each node.
        frozen: node -> path of the module of a parameter that it saved and that needs no gradient.

    Returns:
        Node -> module path, for the nodes inside a module.
    """
    owners = {i: paths[0] for i, paths in homes.items() if paths}
    if not owners:
        return {}
    inner = sorted((i for i in range(len(numbers)) if i not in homes), key=numbers.__getitem__)
    known = {i: owner for i, owner in frozen.items() if owner}
    scopes = _between(inner, {**known, **_scopes_of_parameters(inner, following, homes, modules, ops)})
    scopes.update(_ends_of_parts(inner, scopes, modules, ops))
    last: dict[str, str] = {}  # by module, the part of it that made something last
    for i in inner:
        scope = scopes.get(i)
        if scope is not None and modules.get(scope) in CONTAINERS:  # which runs nothing by itself
            scope = scopes[i] = last.get(scope, scope)
        while scope:
            outer = scope.rpartition(".")[0]
            last[outer], scope = scope, outer
    return {**scopes, **owners}


def scope_types(nodes: Sequence[Node], modules: Mapping[str, str]) -> dict[str, str]:
    """Return the type names by module path, for the scopes that occur and those around them."""
    scopes = [scope.split(".") for scope in {node.scope for node in nodes} if scope]
    met = {".".join(names[:k]) for names in scopes for k in range(1, len(names) + 1)}
    return {path: modules.get(path, "") for path in sorted(met)}


def _scopes_of_parameters(
    inner: Sequence[int],
    following: Following,
    homes: Mapping[int, Sequence[str]],
    modules: Mapping[str, str],
    ops: Sequence[str],
) -> dict[int, str]:
    """Return the scopes of what uses a parameter, or what became of one in a node that only hands it on.

    Of the modules that share one the one that is called as the op is, as ``Embedding``; else they use it in turn.
    """
    known: dict[int, str] = {}
    uses = Counter[int]()
    for i in inner:
        found = []
        for target, _, _ in following[i]:
            if paths := homes.get(target):
                turn = paths[min(uses[target], len(paths) - 1)]
                found.append(next((path for path in paths if _is_called(ops[i], modules[path])), turn))
                uses[target] += 1
            elif target in known and len(following[target]) == 1 and not any(w in ops[target].lower() for w in MEETS):
                found.append(known[target])
        if found:
            known[i] = common_path(found)
    return known


def _is_called(op: str, module: str) -> bool:
    return op.lower().startswith(module.lower())


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
    """Give the parts of a container the ops beside what is known of them that are their own."""
    made, where = [ops[i] for i in inner], [scopes.get(i, "") for i in inner]
    met: dict[str, list[int]] = {}  # by module, where its nodes are
    for at, scope in enumerate(where):
        names = scope.split(".")
        for depth in range(1, len(names) + 1 if scope else 1):
            met.setdefault(".".join(names[:depth]), []).append(at)
    children: dict[str, list[str]] = {}
    for path in filter(None, modules):
        children.setdefault(path.rpartition(".")[0], []).append(path)
    found: dict[int, str] = {}
    for container, parts in children.items():
        there = [part for part in parts if part in met]  # frozen ones at the beginning are not
        if there and modules.get(container) in CONTAINERS:
            if len(parts) > 1 and len({modules[part] for part in parts}) == 1:
                found.update(_equal_ends(made, there, [met[part] for part in there]))
            elif modules[container] == "Sequential":
                places = [(part, met.get(part, [])) for part in parts]
                found.update(_silent_parts(made, where, container, places, modules))
    return {inner[at]: part for at, part in found.items()}


def _equal_ends(
    made: Sequence[str], parts: Sequence[str], places: Sequence[Sequence[int]]
) -> Iterator[tuple[int, str]]:
    """Yield what follows equal parts, such as residual blocks with their ``relu(x + y)``, where it is the same.

    Between two parts lies the end of the first or the beginning of the second: it is the end where the same ops follow
    the last part too.
    """
    if any(one[-1] > two[0] for one, two in pairwise(places)):
        return
    ends = [range(one[-1] + 1, two[0]) for one, two in pairwise(places)]
    ends += [range(places[-1][-1] + 1, places[-1][-1] + 1 + len(end)) for end in ends[:1]]
    if len({tuple(made[end.start : end.stop]) for end in ends}) == 1:
        yield from ((at, part) for end, part in zip(ends, parts, strict=True) for at in end)


def _silent_parts(
    made: Sequence[str],
    where: Sequence[str],
    container: str,
    parts: Sequence[tuple[str, Sequence[int]]],
    modules: Mapping[str, str],
) -> Iterator[tuple[int, str]]:
    """Yield of parts without parameters the ops called as they, such as ``Relu`` in ``Sequential(Conv2d, ReLU)``."""
    known = [k for k, (_, places) in enumerate(parts) if places]
    beside = [(1, parts[k][1][-1], parts[k + 1 : after]) for k, after in pairwise([*known, len(parts)])]
    for way, last, silent in (*beside, (-1, parts[known[0]][1][0], parts[: known[0]][::-1])):
        places = range(last + way, len(made) if way > 0 else -1, way)
        for at, (part, _) in zip(places, silent, strict=False):
            outside = f"{container}.".startswith(f"{where[at] or container}.")
            if not outside or not _is_called(made[at], modules[part]):
                break
            yield at, part
