"""A watched run: which line made each node, wrote into each tensor, cut the graph, ran a backward, made the first NaN.

Only ``explain`` starts one, and only when it is asked to run something. A ``TorchFunctionMode`` sees every call of
torch that the program makes, before autograd does, so that the results come with their nodes.
"""

from __future__ import annotations

import ast
import cmath
import inspect
import itertools
import linecache
import re
import sys
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple, TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdRef

from nbautograd.core import pytrees, stumbles
from nbautograd.core.explaining.cause import SourceLine
from nbautograd.core.explaining.program import (
    OURS,
    Program,
    node_of,
    nodes_behind,
    place_of,
    users_frame,
    version,
    window,
)
from nbautograd.core.explaining.torch_errors import WATCHED_CALL
from nbautograd.core.graphs.names import variables_of
from nbautograd.core.stumbles import hands_over
from nbautograd.core.this_thread import undone
from nbautograd.core.torch_private.nodes import leaf_tensor, next_sequence_number, sequence_number
from nbautograd.core.torch_private.tensors import modes_restored, storage_address
from nbautograd.core.user_source import tree_of
from nbautograd.core.values import attributes

MARK = "nbautograd"  # what a node is marked with, in the dict that torch keeps for anybody
MOST_EVENTS = 200_000  # of a kind, some 50 MB; of a longer run the first are forgotten
MOST_LEFT = 1_000  # values that left torch, each kept as it is
MOST_FROZEN = 16  # parameters that are remembered of one result
MOST_BEHIND = 1_000  # nodes of a graph that is left, up to which its leaves are remembered
FROM_PYTHON = ("tensor", "as_tensor", "from_numpy", "full", "scalar_tensor")  # make a tensor of numbers or an array
LEAVES_TORCH = {"item", "tolist", "numpy", "__float__", "__int__", "__bool__", "__array__", "__index__", "__format__"}
_ASKED_ONLY = {"__get__", "__repr__", "size", "dim", "is_floating_point", "is_complex", "__len__", "__hash__"}
WRITES_CONSTANTS = {"masked_fill", "masked_fill_", "where", "full", "full_like", "fill_", "__setitem__", "tensor"}
_SWITCHES = ("no_grad", "inference_mode", "set_grad_enabled")
_DETACHES = {"data", "detach", "detach_"}
_signature = lru_cache(inspect.signature)  # it takes as long as a small backward
_VIEWS = {"data", "T", "mT", "H", "mH", "real", "imag"}


class Spot(NamedTuple):
    """A line as it ran, cheap to take; made a place when it is needed."""

    code: CodeType
    line: int
    scope: Mapping[str, Any]

    def place(self) -> SourceLine:
        """Return the line as plain data."""
        return place_of(self.code, self.line, self.scope)


class Write(NamedTuple):
    """A tensor's memory was written into: its versions before and after, the line, the operation, the tensor's name.

    ``number`` is that of the next node, ``created`` the line that made the tensor.
    """

    storage: int
    before: int
    after: int
    spot: Spot | None
    op: str
    name: str
    window: Any = None  # which elements of the memory the tensor shows
    module: tuple[str, str] | None = None  # torch's that was told to write, as it is called and as it is written
    number: int = -1
    created: Spot | None = None


class Pass(NamedTuple):
    """A backward that ran: its line, ``"backward"`` or ``"grad"``."""

    spot: Spot | None
    call: str


class Cut(NamedTuple):
    """A result without a graph, computed from tensors with one: why, the line, the tensor, where gradients went off.

    ``leaves`` are those behind the tensor; none where its graph is large. ``after`` says how many backwards had run,
    ``anew`` which line made a tensor again of numbers that had left torch.
    """

    reason: str
    spot: Spot | None
    op: str
    source: str
    off: Spot | None = None
    tensor: weakref.ref[torch.Tensor] | None = None
    leaves: frozenset[WeakIdRef] = frozenset()
    after: int = 0
    anew: Spot | None = None

    def was(self, tensor: torch.Tensor) -> bool:
        """Return True when this tensor was taken out of the graph, or what was computed from it."""
        return (self.tensor is not None and self.tensor() is tensor) or WeakIdRef(tensor) in self.leaves


class Left(NamedTuple):
    """What went from a tensor with a graph into a Python number, a list or an array; and the cut that this is."""

    value: Any
    cut: Cut


class Bad(NamedTuple):
    """The first result with a NaN or infinity: the line, the operation, what went in, what no call had put there."""

    what: str
    spot: Spot | None
    op: str
    arguments: tuple[Any, ...]
    source: str
    bad: int
    size: int
    came_in: str
    after_backward: bool
    order: int = 0


class Made(NamedTuple):
    """A tensor was made: the line, the operation, and of which parameters that asked for no gradient.

    Each of these stands with the line that had switched it off. What ``.data`` gives counts its own changes.
    """

    spot: Spot | None
    op: str
    frozen: tuple[tuple[weakref.ref[torch.Tensor], Spot | None], ...] = ()


class Switched(NamedTuple):
    """The ``requires_grad`` of a tensor was set."""

    spot: Spot | None
    on: bool


class Removed(NamedTuple):
    """The ``.grad`` of a tensor was set to None, when so many backwards had run."""

    spot: Spot | None
    after: int


Event = TypeVar("Event")


class Events:
    """What happened in a run, appended in order; and of each tensor that lives which event of a kind was the last.

    Attributes:
        count: how many there were.
    """

    def __init__(self) -> None:
        self.count = 0
        # kept by kind, as every question is about one; a value that left torch is kept alive, so that these are fewer
        self._log: dict[type, deque[Any]] = defaultdict(partial(deque, maxlen=MOST_EVENTS))
        self._log[Left] = deque(maxlen=MOST_LEFT)
        # by id; a weak dictionary takes ten times as long to write
        self._last: dict[type, dict[int, tuple[Callable[[], Any], Any]]] = defaultdict(dict)

    def add(self, event: Any, *about: torch.Tensor) -> None:
        """Append an event, of some tensors the last one of its kind."""
        self.count += 1
        self._log[type(event)].append(event)
        self.explain(event, *about)

    def explain(self, event: Any, *tensors: torch.Tensor) -> None:
        """Have an earlier event explain other tensors as well."""
        for tensor in tensors:
            self._last[type(event)][id(tensor)] = weakref.ref(tensor), event

    def forget(self, kind: type, tensor: torch.Tensor) -> None:
        """Have no event of a kind explain a tensor any more."""
        self._last[kind].pop(id(tensor), None)

    def all(self, kind: type[Event]) -> Iterator[Event]:
        """Yield the events of a kind, the newest first."""
        log: deque[Event] = self._log[kind]
        return reversed(log)

    def last(self, kind: type[Event], tensor: torch.Tensor | None) -> Event | None:
        """Return the last event of a kind that explains a tensor."""
        ref, event = self._last[kind].get(id(tensor), (object, None))
        return event if ref() is tensor else None  # a place in memory may be another tensor's by now

    def any(self, kind: type) -> bool:
        """Return True where something was explained by an event of a kind."""
        return bool(self._last[kind])

    def alive(self, kind: type[Event]) -> Iterator[tuple[torch.Tensor, Event]]:
        """Yield the tensors that live still, each with its last event of a kind."""
        pairs = [*self._last[kind].values()]
        yield from ((tensor, event) for ref, event in pairs if (tensor := ref()) is not None)


class Watch(TorchFunctionMode):
    """Sees the calls of torch that a program makes.

    Args:
        finite: look for the first NaN and infinity as well, which reads every result once.

    Attributes:
        events: what happened, and of each tensor the last event of each kind.
        passes: how many backwards ran.
        bad_root: what was differentiated first though it was not finite.
    """

    def __init__(self, finite: bool = False) -> None:
        super().__init__()
        self.finite = finite
        self.events = Events()
        self.passes = 0
        self.bad_root: torch.Tensor | None = None
        self._off: Spot | None = None
        self._outer_off: list[Spot | None] = []  # of where gradients are switched on inside of where they are off
        self._held: set[int] = set()  # by identity, what was not finite before it is written into

    @contextmanager
    def on(self) -> Iterator[None]:
        """Watch calls of torch, and parameters that are made of what was computed."""
        made = nn.Parameter.__dict__["__new__"]  # torch has no hook for it

        def new(cls: type, *args: Any, **kwargs: Any) -> Any:
            parameter = made.__func__(cls, *args, **kwargs)
            data = args[0] if args else kwargs.get("data")
            if isinstance(data, torch.Tensor) and node_of(data) is not None:
                noted(self._note_new_leaf, parameter, data)
            return parameter

        with undone(partial(setattr, nn.Parameter, "__new__", made)), modes_restored():
            nn.Parameter.__new__ = staticmethod(new)  # type: ignore[method-assign]
            self.__enter__()  # type: ignore[no-untyped-call] # left by its place on the stack: an interrupt may have done so
            yield

    def cut(self, tensor: torch.Tensor | None) -> Cut | None:
        """Return why a tensor has no graph, where it was taken out of one."""
        return self.events.last(Cut, tensor)

    def _note_new_leaf(self, parameter: torch.Tensor, data: torch.Tensor) -> None:
        leaves = self._leaves_behind(data)
        made_of = _named(data), None, weakref.ref(data), leaves
        self.events.add(Cut("new_leaf", line_here(), "", *made_of), parameter)

    def _leaves_behind(self, *tensors: torch.Tensor) -> frozenset[WeakIdRef]:
        leaves = frozenset[WeakIdRef]().union(*map(leaves_behind, tensors))
        alive = [leaf for ref in leaves if self.events.any(Cut) and (leaf := ref()) is not None]
        return leaves.union(*(cut.leaves for leaf in alive if (cut := self.cut(leaf)) is not None))

    @hands_over
    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run a call of torch and note what it did."""
        if torch.compiler.is_compiling():  # Dynamo traces into a mode
            return func(*args, **(kwargs or {}))
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in ("__get__", "__set__"):
            name = getattr(getattr(func, "__self__", None), "__name__", "") + ("=" if name == "__set__" else "")
            # of what is no leaf torch would warn here
            if name == "grad=" and args[1] is None and args[0].is_leaf and args[0].grad is not None:
                self.events.add(Removed(line_here(), self.passes), args[0])
            if name not in (*_VIEWS, "requires_grad=", "data="):
                return as_called(func, args, kwargs)
        if name in ("requires_grad=", "requires_grad_"):
            noted(self._note_switch, args, kwargs)
            return as_called(func, args, kwargs)
        if name == "data=":
            noted(self._note_taken_over, *args)
            return as_called(func, args, kwargs)
        if name in ("backward", "grad") and getattr(func, "__module__", "").startswith("torch"):
            roots = tensors_of(args[:1] or (kwargs.get("tensors"), kwargs.get("outputs"), kwargs.get("self")))
            starts = [node for root in roots if (node := node_of(root)) is not None]
            return self._differentiate(name, func, args, kwargs, roots, nodes_behind(*starts))
        if name == "_set_grad_enabled":
            noted(self._note_grad_mode, bool(args and args[0]))
            return as_called(func, args, kwargs)
        given = tensors_of((args, kwargs) if kwargs else args)
        before = [*map(version, given)]
        self._held = self._not_finite(given) if name.endswith("_") else set()
        first = next_sequence_number()
        result = as_called(func, args, kwargs)
        if name not in _ASKED_ONLY:
            noted(self._note, name, args, given, before, result, first)
        return result

    def _note(
        self, name: str, args: Any, given: list[torch.Tensor], before: list[int], result: Any, first: int | None
    ) -> None:
        spot = line_here()
        self._note_writes(given, before, spot, name, first)
        if name == "__setitem__" and (node := node_of(given[0])) is not None:  # which returns nothing
            mark_new(node, first, spot)
        self._note_results(name, args, given, result, first, spot)

    def _note_writes(
        self, given: list[torch.Tensor], before: list[int], spot: Spot | None, name: str, first: int | None
    ) -> None:
        noted_now: set[tuple[int, int]] = set()
        for tensor, earlier in zip(given, before, strict=True):
            now = version(tensor)
            if now == earlier:
                continue
            made = self.events.last(Made, tensor)  # what ``.data`` gives counts its own changes
            if any(one is not None and one.op == "data" for one in (made, self.events.last(Made, tensor._base))):
                continue
            key = _storage(tensor)
            if (key, now) not in noted_now:
                noted_now.add((key, now))
                shown = _named(tensor), window(tensor), _module(), -1 if first is None else first
                self.events.add(Write(key, earlier, now, spot, name, *shown, None if made is None else made.spot))

    def _note_results(
        self, name: str, args: Any, given: list[torch.Tensor], result: Any, first: int | None, spot: Spot | None
    ) -> None:
        results = tensors_of(result)
        if name in LEAVES_TORCH and not results:
            self._note_leaving(name, given, result, spot)
        known = {*map(id, given)}
        for tensor in results:
            new = id(tensor) not in known
            graph = node_of(tensor) is not None
            if new:
                frozen = () if graph or tensor.requires_grad else self._frozen(given)
                self.events.add(Made(spot, name, frozen), tensor)
            if graph:
                mark_new(node_of(tensor), first, spot)
                if self.events.any(Cut):
                    cuts = [cut for t in given if (cut := self.cut(t)) is not None]
                    mark(node_of(tensor)).setdefault("cuts", []).extend(cuts)
            elif new and (cut := self._cut(name, args, given, tensor, spot)) is not None:
                self.events.add(cut, tensor)
            if self.finite and (tensor.is_floating_point() or tensor.is_complex()):
                self._note_bad(name, args, given, tensor, spot)

    def _note_grad_mode(self, on: bool) -> None:
        frame = sys._getframe(2)
        leaving = "__exit__" in (frame.f_code.co_name, frame.f_back.f_code.co_name if frame.f_back else "")
        was_on = torch.is_grad_enabled()
        if on and not was_on:
            self._outer_off += [] if leaving else [self._off]
            self._off = None
        elif was_on and not on:  # a block in another one switches nothing off
            self._off = self._outer_off.pop() if leaving and self._outer_off else _switch()

    def _note_switch(self, args: Any, kwargs: Any) -> None:
        wanted = kwargs.get("requires_grad", args[1] if len(args) > 1 else True)
        self.events.add(Switched(line_here(), bool(wanted)), args[0])

    def _note_taken_over(self, tensor: torch.Tensor, source: Any) -> None:
        if isinstance(source, torch.Tensor) and source.requires_grad:
            leaves = self._leaves_behind(source)
            self.events.add(Cut("data", line_here(), "data", _named(tensor), None, None, leaves), tensor)

    def switched_off(self, tensor: torch.Tensor) -> Spot | None:
        """Return the line that set a tensor's ``requires_grad`` to False, where that is what it is since."""
        last = self.events.last(Switched, tensor)
        return None if last is None or last.on else last.spot

    def _frozen(self, given: list[torch.Tensor]) -> tuple[Any, ...]:
        own = [t for t in given if isinstance(t, nn.Parameter) and not t.requires_grad]
        several: dict[int, Any] = {id(t): (weakref.ref(t), self.switched_off(t)) for t in own}
        for made in [made for t in given if (made := self.events.last(Made, t)) is not None]:
            several |= {id(t): note for note in made.frozen if (t := note[0]()) is not None}
        return tuple([*several.values()][:MOST_FROZEN])

    def frozen_in(self, tensor: torch.Tensor) -> list[tuple[torch.Tensor, SourceLine | None]]:
        """Return the parameters that a result was computed from, each with the line that had switched it off."""
        made = self.events.last(Made, tensor)
        notes = [(t, spot) for ref, spot in (() if made is None else made.frozen) if (t := ref()) is not None]
        return [(t, None if spot is None else spot.place()) for t, spot in notes]

    def _note_leaving(self, name: str, given: list[torch.Tensor], result: Any, spot: Spot | None) -> None:
        source = next((t for t in given if t.requires_grad), None)
        if source is not None and name != "__format__":
            cut = Cut("python", spot, name, _named(source), leaves=self._leaves_behind(source), after=self.passes)
            self.events.add(Left(result, cut))
        elif given and (earlier := self.cut(given[0])) is not None:
            # ``x.detach().numpy()``: without the detach torch would refuse the array, which has no graph anyhow
            same = earlier.reason == "detach" and earlier.spot == spot
            cut = earlier._replace(reason="python", op=name) if same else earlier
            self.events.add(Left(result, cut._replace(after=self.passes)))

    def _cut(self, name: str, args: Any, given: list[torch.Tensor], tensor: Any, spot: Spot | None) -> Cut | None:
        """Return why a result has no graph, where something that it was computed from has one."""
        earlier = {id(t): cut for t in given if (cut := self.cut(t)) is not None}
        # rather than one on purpose, as a detach is for the most part
        inherited: Cut | None = min(earlier.values(), key=lambda cut: cut.reason == "detach", default=None)
        # a view that was made with gradients off says that it requires grad
        views = {key for key, cut in earlier.items() if cut.reason == "no_grad"}
        sources = [t for t in given if t.requires_grad and not (id(t) in views and node_of(t) is None)]
        source = sources[0] if sources else None
        if source is None:
            if inherited is not None and name in _DETACHES:  # on purpose, whatever it was before
                return inherited._replace(op=name)
            return inherited or self._from_python(args, name, spot) or self._from_array(given)
        if name in _DETACHES:
            reason = "detach"
        elif not torch.is_grad_enabled():
            leaves = self._leaves_behind(*sources)
            return Cut("no_grad", spot, name, _named(source), self._off, weakref.ref(source), leaves)
        elif not (tensor.is_floating_point() or tensor.is_complex()):
            reason = "integer"
        elif name == "tensor":
            reason = "copied"
        else:
            return inherited
        return Cut(reason, spot, name, _named(source), None, weakref.ref(source), self._leaves_behind(source))

    def _from_python(self, args: Any, name: str, spot: Spot | None) -> Cut | None:
        """Return the cut of the number or array that a tensor is made of: by identity, or read by the same line."""
        if name not in FROM_PYTHON or spot is None:
            return None
        for value in (*args, *pytrees.leaves(args)):
            if isinstance(value, (float, list)) or hasattr(value, "__array__"):  # a whole number may be from anywhere
                for left in self.events.all(Left):
                    if value is left.value:
                        return left.cut._replace(anew=spot)
        lines = ((left.cut, left.cut.spot) for left in self.events.all(Left))
        return next((c for c, s in lines if s is not None and (s.code, s.line) == (spot.code, spot.line)), None)

    def _from_array(self, given: list[torch.Tensor]) -> Cut | None:
        """Return the cut of an array that a tensor shares memory with; ``torch.from_numpy`` itself is not seen."""
        addresses = {_storage(tensor) for tensor in given}
        for left in self.events.all(Left):
            place = getattr(left.value, "__array_interface__", {}).get("data", (0,))[0]
            if place and place in addresses:
                return left.cut
        return None

    def _note_bad(self, name: str, args: Any, given: list[torch.Tensor], tensor: Any, spot: Spot | None) -> None:
        if all_finite(tensor):
            if self.events.any(Bad):
                self.events.forget(Bad, tensor)
            return
        count = int(tensor.detach().isfinite().logical_not_().sum())
        what = _what([tensor])
        several = [bad for t in (*given, tensor) if (bad := self.events.last(Bad, t)) is not None]
        earlier: Bad | None = min(several, key=lambda bad: bad.order, default=None)
        if earlier is not None and not (what == "NaN" != earlier.what and earlier.op in WRITES_CONSTANTS):
            self.events.explain(earlier, tensor)
            return
        held = [t for t in given if (id(t) in self._held if t is tensor else not all_finite(t))]
        source = next((_named(t) for t in held or given), "")
        kept = tuple(
            value.detach().clone() if isinstance(value, torch.Tensor) else value for value in pytrees.leaves(args)
        )
        came_in = _what(held) if held and earlier is None else ""
        size, after = tensor.numel(), self._after_bad_backward()
        order = self.events.count
        self.events.add(Bad(what, spot, name, kept, source, count, size, came_in, after, order), tensor)

    def _not_finite(self, given: list[torch.Tensor]) -> set[int]:
        with stumbles.beside_program("watched call"):
            return {id(tensor) for tensor in given if self.finite and not all_finite(tensor)}
        return set()

    def _after_bad_backward(self) -> bool:
        return False

    @hands_over
    def _differentiate(
        self, name: str, func: Callable[..., Any], args: Any, kwargs: Any, roots: Sequence[Any], nodes: Sequence[Any]
    ) -> Any:
        """Run a backward from some roots through the nodes behind them, and note what it was."""
        spot = line_here()
        given = _signature(func).bind_partial(*args, **kwargs).arguments
        graph = bool(given.get("create_graph"))
        kept = graph if given.get("retain_graph") is None else bool(given["retain_graph"])
        inputs = tensors_of(given.get("inputs"))
        result = as_called(func, args, kwargs)
        ran = Pass(spot, name)
        self.events.add(ran)
        self.passes += 1
        passed = nodes
        if inputs:  # to these alone it goes through what leads to them; a result's own node is none of it
            ends = {node for tensor in inputs if (node := node_of(tensor)) is not None}
            through = {node for node in nodes if any(leaf_tensor(node) is tensor for tensor in inputs)}
            for node in sorted(nodes, key=lambda node: sequence_number(node) or 0):
                if any(following in through or following in ends for following, _ in node.next_functions):
                    through.add(node)
            passed = [*through]
        for node in () if kept else passed:
            mark(node).setdefault("freed", ran)
        if name == "grad" and not graph:
            for gradient in tensors_of(result):
                self.events.add(Cut("create_graph", spot, name, next(map(_named, roots), "")), gradient)
        return result


def noted(note: Callable[..., None], *given: Any) -> None:
    """Take a note; where that fails the program that is watched goes on."""
    with stumbles.beside_program("watch"):
        note(*given)


def _what(tensors: Sequence[torch.Tensor]) -> str:
    return "NaN" if any(bool(tensor.detach().isnan().any()) for tensor in tensors) else "Inf"


def all_finite(tensor: torch.Tensor) -> bool:
    """Return True for a tensor without NaN and infinity; one sum over it says so for nearly every one."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return True
    plain = tensor.detach()

    def finite() -> bool:
        held = plain._values() if plain.layout is torch.sparse_coo else plain  # the gradient of a sparse embedding
        if plain.layout is torch.strided and 0 in plain.stride():  # of an expanded dimension all entries are one
            held = plain[tuple(slice(1) if step == 0 else slice(None) for step in plain.stride())]
        return cmath.isfinite(held.sum().item()) or bool(held.isfinite().all())

    return stumbles.ask(finite, True)  # under ``vmap`` nobody can look at the numbers


def mark(node: Any) -> dict[str, Any]:
    """Return what this package knows of a node: a dict that lives as long as the node."""
    known: dict[str, Any] = stumbles.ask(lambda: node.metadata.setdefault(MARK, {}), {})
    return known


def mark_new(root: Any, first: int | None, spot: Spot | None) -> None:
    """Mark the nodes that one call made with its line."""
    if first is not None and next_sequence_number() == first + 1 == (sequence_number(root) or 0) + 1:
        mark(root).setdefault("spot", spot)  # the only one
        return
    stack = [root]
    while stack:
        node = stack.pop()
        number = sequence_number(node)
        if number is None or first is None or number < first or leaf_tensor(node) is not None:
            continue
        known = mark(node)
        if "spot" in known:
            continue
        known["spot"] = spot
        stack += [following for following, _ in node.next_functions if following is not None]


def node_line(node: Any) -> SourceLine | None:
    """Return the line that made a node, where a watched run saw it."""
    spot = mark(node).get("spot") if node is not None else None
    return None if spot is None else spot.place()


def creation_line(program: Program, tensor: torch.Tensor | None) -> SourceLine | None:
    """Return the line that made a tensor, where a watched run saw it."""
    if tensor is None or program.watch is None:
        return None
    made: Made | None = program.watch.events.last(Made, tensor)  # its node may be of a later write
    if made is not None and made.spot is not None:
        return made.spot.place()
    return None if version(tensor) else node_line(node_of(tensor))


def writes_into(program: Program, tensor: torch.Tensor) -> list[Write]:
    """Return the writes into a tensor's memory that a watched run saw, the newest first."""
    writes = () if program.watch is None else program.watch.events.all(Write)
    return [write for write in writes if write.storage == storage_address(tensor)]


def leaves_behind(tensor: torch.Tensor) -> frozenset[WeakIdRef]:
    """Return the leaves that a tensor was computed from; none of a graph that is large."""
    node = node_of(tensor)
    if node is None:
        return frozenset([WeakIdRef(tensor)] if tensor.requires_grad else [])
    nodes = nodes_behind(node, most=MOST_BEHIND)
    leaves = (leaf_tensor(one) for one in nodes) if len(nodes) < MOST_BEHIND else ()
    return frozenset(WeakIdRef(leaf) for leaf in leaves if leaf is not None)


def cuts_into(node: Any) -> list[Cut]:
    """Return the cuts of the tensors that went into a node, where a watched run saw it."""
    cuts: list[Cut] = mark(node).get("cuts", [])
    return cuts


def freed_by(node: Any) -> Pass | None:
    """Return the backward that freed a node, where a watched run saw it."""
    ran: Pass | None = mark(node).get("freed")
    return ran


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Return the tensors in arguments or results."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [one for part in value for one in tensors_of(part)]


def line_here() -> Spot | None:
    """Return the line of the user's that runs now; None outside of the user's code."""
    frame = users_frame()
    return None if frame is None else Spot(frame.f_code, frame.f_lineno, frame.f_globals)


_CALL: CodeType = (lambda func, args, kwargs: func(*args, **kwargs)).__code__.replace(co_name=WATCHED_CALL)


@lru_cache(maxsize=1_000)
def _call_from(file: str, line: int) -> CodeType:
    return _CALL.replace(co_filename=file, co_firstlineno=line)


@hands_over
def as_called(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call torch from a frame with the place and globals of the code that called it before it was watched.

    What Python and torch warn of is said to be at the innermost frame, and shown or not by the line and module there;
    at one further out where torch's own Python warns, of which that many are there.
    """
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    handled = frame.f_code is _HANDLED  # a function of torch's in Python is called a second time
    frame, call, given = frame.f_back.f_back if handled else frame, func, (args, kwargs)
    for _ in range(WARNED_FROM if handled else 1):
        if frame is not None:
            one = FunctionType(_call_from(frame.f_code.co_filename, frame.f_lineno), frame.f_globals)
            call, given, frame = one, ((call, *given), {}), frame.f_back
    return call(*given[0], **given[1])


WARNED_FROM = 4  # callers: ``nn.Softmax`` warns at the third of ``F.softmax``
_HANDLED: CodeType = torch.overrides.handle_torch_function.__code__
_DECORATOR: CodeType = torch.no_grad()(lambda: None).__code__


def left_side(place: SourceLine | None) -> str:
    """Return what a line assigns, where it assigns one thing."""
    tree = tree_of(place.text) if place is not None else None
    statement = tree.body[0] if tree is not None and tree.body else None
    return ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else ""


def _switch() -> Spot | None:
    """Return the line that switches gradients off: that of the decorator, where a decorated function is entered."""
    frame = users_frame(_decorates)
    function = frame.f_locals.get("func") if frame is not None and _decorates(frame) else None
    if not isinstance(function, FunctionType):
        return line_here()
    first = function.__code__.co_firstlineno
    lines = linecache.getlines(function.__code__.co_filename, function.__globals__)[first - 1 :]
    above = itertools.takewhile(lambda line: not line.lstrip().startswith(("def ", "async def ")), lines)
    off = (k for k, line in enumerate(above) if any(word in line for word in _SWITCHES))
    return Spot(function.__code__, first + next(off, 0), function.__globals__)


def _decorates(frame: FrameType) -> bool:
    """Return True in what torch puts around a decorated function, whose name is not the same in every torch."""
    return frame.f_code.co_filename == _DECORATOR.co_filename and "func" in frame.f_code.co_freevars


def _named(tensor: torch.Tensor) -> str:
    frame = users_frame()
    if frame is None:
        return ""
    spoken: list[str] = [name for name, value in frame.f_locals.items() if value is tensor and not name.startswith("_")]
    if spoken:
        return min(spoken, key=len)
    owner = frame.f_locals.get("self")
    parts = {**attributes(owner), **getattr(owner, "_buffers", {}), **getattr(owner, "_parameters", {})}
    return next((f"self.{name}" for name, value in parts.items() if value is tensor), "")


def _module() -> tuple[str, str] | None:
    """Return torch's own module that runs with ``inplace=True``: what the user calls it, and how it is written."""
    frame = users_frame()
    inside = users_frame(lambda frame: issubclass(type(frame.f_locals.get("self")), nn.Module))
    module = inside.f_locals.get("self") if inside is not None else None
    if frame is None or not type(module).__module__.startswith("torch.") or getattr(module, "inplace", 0) is not True:
        return None
    for name, value in variables_of(frame).items():
        for path, part in nn.Module.named_modules(value) if issubclass(type(value), nn.Module) else ():
            if part is module:
                return re.sub(r"\.(\d+)", r"[\1]", f"{name}.{path}".rstrip(".")), repr(module)
    return None


def _storage(tensor: torch.Tensor) -> int:
    return stumbles.ask(lambda: storage_address(tensor), id(tensor))  # sparse and wrapped tensors have none
