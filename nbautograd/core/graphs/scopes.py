"""Modules in the backward graph: which module made each node.

Nothing needs to have been watched: a node next to a parameter belongs to the parameter's module, and forward numbers
its nodes in the order in which it makes them, so that a node made between two others belongs to the module that
encloses both. An ``nn.Sequential`` has no ops of its own: what lies between two of its parts is made by one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from nbautograd.core.graphs.graph import Node

Following = Sequence[Sequence[tuple[int, int, int]]]


def infer_scopes(
    labels: Mapping[int, str],
    numbers: Sequence[int],
    following: Following,
    modules: Mapping[str, str],
    ops: Sequence[str],
) -> dict[int, str]:
    """Find the path of the module that made each node.

    Args:
        labels: leaf -> path of the parameter.
        numbers: sequence number of each node.
        following: for each node (target, ...) of its edges.
        modules: module path -> type name.
        ops: name of each node.

    Returns:
        Node -> module path, for the nodes inside a module.
    """
    owners = {i: _owner(label, modules) for i, label in labels.items()}
    if not modules or all(owner is None for owner in owners.values()):
        return {}
    inner = sorted((i for i in range(len(numbers)) if i not in labels), key=numbers.__getitem__)
    scopes = _between(inner, _beside_parameters(inner, following, owners))
    scopes.update(_ends_of_parts(inner, scopes, modules, ops))
    return {**scopes, **{i: owner for i, owner in owners.items() if owner}}


def scope_types(nodes: Sequence[Node], modules: Mapping[str, str]) -> dict[str, str]:
    """Module path -> type name, for the scopes that occur and those around them."""
    met = {path for scope in {node.scope for node in nodes} for path in _outward(scope)}
    return {path: modules.get(path, "") for path in sorted(met)}


def _owner(label: str, modules: Mapping[str, str]) -> str | None:
    """The module of a parameter's path, or None when the label is no such path."""
    path, dot, _ = label.rpartition(".")
    return path if dot and path in modules else None


def _outward(path: str) -> list[str]:
    """The path and every path around it, innermost first."""
    paths = []
    while path:
        paths.append(path)
        path = path.rpartition(".")[0]
    return paths


def _beside_parameters(inner: Sequence[int], following: Following, owners: Mapping[int, str | None]) -> dict[int, str]:
    """Nodes that pass a gradient to a parameter, directly or through a node that only reshapes it (``TBackward0``)."""
    known: dict[int, str] = {}
    for i in inner:
        found = []
        for target, _, _ in following[i]:
            scope = owners[target] if target in owners else known.get(target) if len(following[target]) == 1 else None
            if scope is not None:
                found.append(scope)
        if found:
            known[i] = found[0] if len(found) == 1 else _common(found)
    return known


def _common(scopes: list[str]) -> str:
    parts = scopes[0].split(".")
    for scope in scopes[1:]:
        other = scope.split(".")
        same = 0
        while same < min(len(parts), len(other)) and parts[same] == other[same]:
            same += 1
        parts = parts[:same]
    return ".".join(parts)


def _between(inner: Sequence[int], known: Mapping[int, str]) -> dict[int, str]:
    """In the order of forward, what lies between two known scopes belongs to what encloses both."""
    scopes: dict[int, str] = {}
    waiting: list[int] = []
    before: str | None = None
    for i in inner:
        here = known.get(i)
        if here is None:
            waiting.append(i)
            continue
        if waiting:
            scopes.update(dict.fromkeys(waiting, "" if before is None else _common([before, here])))
            waiting = []
        scopes[i] = before = here
    return scopes


def _ends_of_parts(
    inner: Sequence[int], scopes: Mapping[int, str], modules: Mapping[str, str], ops: Sequence[str]
) -> dict[int, str]:
    """Give the ops after each of the equal parts of a sequence, such as ``relu(x + y)`` of a residual block, to it.

    Between two parts lies the end of the first or the beginning of the second. It is the end where the same ops follow
    the last part too.
    """
    parts_of: dict[str, list[str]] = {}
    for path in modules:
        parts_of.setdefault(path.rpartition(".")[0], []).append(path)
    found: dict[int, str] = {}
    for sequence, parts in parts_of.items():
        alike = len(parts) > 1 and len({modules[part] for part in parts}) == 1
        if not alike or modules.get(sequence) != "Sequential":
            continue
        within: dict[str, list[int]] = {part: [] for part in parts}
        depth = parts[0].count(".") + 1
        for at, i in enumerate(inner):
            if (part := ".".join(scopes.get(i, "").split(".")[:depth])) in within:
                within[part].append(at)
        places = list(within.values())
        if not all(places) or any(one[-1] >= two[0] for one, two in pairwise(places)):
            continue
        ends = [inner[one[-1] + 1 : two[0]] for one, two in pairwise(places)]
        names = [ops[i] for i in ends[0]]
        ends.append(inner[places[-1][-1] + 1 :][: len(names)])
        if all([ops[i] for i in end] == names for end in ends):
            found.update((i, part) for end, part in zip(ends, parts, strict=True) for i in end)
    return found
