"""Names of repeats and of their parts: the modules' type, the custom Function, or the ops that a part is made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeVar

from nbautograd import messages
from nbautograd.core.graphs.graph import AutogradGraph, Node
from nbautograd.core.graphs.segments import Stretch

T = TypeVar("T")
MOST_OPS = 3  # of a part that are named


def named(graph: AutogradGraph, nodes: list[int], times: int) -> Stretch:
    """A repeat with its name: ``"Block ×12"``, ``"Linear + Relu ×50"``, ``"Tanh, Add, Mm, … ×20"``.

    Args:
        graph: the graph.
        nodes: of all parts, in the engine's order.
        times: how many parts they are.
    """
    path = common_path([graph.nodes[i].scope for i in nodes])
    if times < 2:
        return Stretch(path, nodes)
    modules = _modules(graph, Stretch(path, nodes, times))
    kinds = {tuple([graph.scopes.get(module, "") for module in own]) for own in modules}
    first = nodes[: len(nodes) // times]
    known = len(set(modules)) == times and len(kinds) == 1 and 0 < len(modules[0]) <= MOST_OPS
    what = _with_ops(graph, first, modules[0]) if known else ops(graph, first)
    return Stretch(path, nodes, times, messages.text("graphs.repeat", name=what, times=times))


def parts(graph: AutogradGraph, repeat: Stretch) -> list[Stretch]:
    """The parts of a repeat, each with its module, or with its number."""
    found = []
    slices = zip(sliced(repeat.nodes, repeat.times), _modules(graph, repeat), strict=True)
    for number, (nodes, modules) in enumerate(slices, start=1):
        if len(modules) == 1:
            found.append(Stretch(modules[0], nodes, 1, f"{modules[0]} {_with_ops(graph, nodes, modules)}"))
        else:
            what = _with_ops(graph, nodes, modules) if 0 < len(modules) <= MOST_OPS else ops(graph, nodes)
            name = messages.text("graphs.part", name=what, number=number, times=repeat.times)
            found.append(Stretch(repeat.path, nodes, 1, name))
    return found


def sibling_modules(graph: AutogradGraph, runs: Sequence[Stretch]) -> set[str]:
    """The modules that are of the type of the parts of repeats, and lie as deep."""
    beside: set[str] = set()
    for run in runs:
        own = {modules[0] for modules in _modules(graph, run) if len(modules) == 1}
        kinds = {(graph.scopes.get(path, ""), path.count(".")) for path in own}
        beside |= {path for path, kind in graph.scopes.items() if kind and (kind, path.count(".")) in kinds}
    return beside


def sibling_of(scope: str, siblings: Collection[str]) -> str:
    """The one of some modules that a scope lies in."""
    while scope and scope not in siblings:
        scope = scope.rpartition(".")[0]
    return scope


def sliced(nodes: list[T], times: int) -> list[list[T]]:
    """The nodes of each part."""
    size = len(nodes) // times
    return [nodes[at : at + size] for at in range(0, len(nodes), size)]


def ops(graph: AutogradGraph, part: Sequence[int]) -> str:
    """What a part is made of, custom Functions first."""
    nodes = [graph.nodes[i] for i in part]
    names = list(dict.fromkeys([short(n) for n in nodes if n.function] + [short(n) for n in nodes]))
    return ", ".join(names[:MOST_OPS]) + (", …" if len(names) > MOST_OPS else "")


def short(node: Node) -> str:
    """``"Tanh"`` for ``"TanhBackward0"``."""
    return node.function or re.sub(r"Backward\d*$", "", node.name) or node.name


def common_path(scopes: Sequence[str]) -> str:
    """The module that all scopes lie in, those of no module left out."""
    paths = [scope.split(".") for scope in scopes if scope]
    shared = []
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return ".".join(shared)


def sibling_depth(scopes: Sequence[Sequence[str]], size: int) -> int:
    """How deep the modules lie of which each part has its own, by the first two parts; 0 when there are none."""
    found: Counter[int] = Counter()
    for one, two in zip(scopes[:size], scopes[size : 2 * size], strict=True):
        differing = next((k for k, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), None)
        if differing is not None and one != [""] and two != [""]:
            found[differing + 1] += 1
    return max(found, key=lambda depth: (found[depth], -depth), default=0)


def _modules(graph: AutogradGraph, repeat: Stretch) -> list[tuple[str, ...]]:
    """For each part of a repeat the modules of its own that have made it, but for what is made outside of them."""
    size = len(repeat.nodes) // repeat.times
    scopes = [graph.nodes[i].scope.split(".") for i in repeat.nodes]
    depth = sibling_depth(scopes, size)
    if not depth:
        return [()] * repeat.times
    inside = [".".join(scope[:depth]) if len(scope) >= depth else "" for scope in scopes]
    return [tuple(dict.fromkeys(filter(None, part))) for part in sliced(inside, repeat.times)]


def _with_ops(graph: AutogradGraph, part: Sequence[int], modules: Sequence[str]) -> str:
    """The types of some modules, and the ops beside them in the same part."""
    kinds = ", ".join(dict.fromkeys([graph.scopes.get(module, module) for module in modules]))
    inside = tuple([f"{module}." for module in modules])
    beside = [i for i in part if not f"{graph.nodes[i].scope}.".startswith(inside)]
    watched = any(graph.nodes[i].calls for i in part)  # else a few ops at the border may well be the module's own
    return f"{kinds} + {ops(graph, beside)}" if len(beside) * 4 >= len(part) or (beside and watched) else kinds
