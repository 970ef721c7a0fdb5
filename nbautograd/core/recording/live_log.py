"""LiveLog: a CallLog that reads the ring, and decodes a record into a Call when somebody looks at it.

Names come from the user's source, statistics from the elements that were copied. Pickled, it is a plain CallLog.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any, TypeVar, overload

from nbautograd.core.display import Phrase, render
from nbautograd.core.recording.call import Call, CallLog
from nbautograd.core.recording.record import CallRecord, CallRing, CtxRecord, InstrumentedFunction
from nbautograd.core.recording.snapshot import ObjectSnapshot, Snapshot, TensorSnapshot, measures
from nbautograd.core.user_source import Returned
from nbautograd.core.values import CtxSnapshot, TensorSummary, Value, tensor_repr


class DecodedCalls(Sequence[Call]):
    """The Calls of some records, each decoded when it is looked at, and kept with its record as the ring has room."""

    def __init__(self, records: Sequence[CallRecord], among: Sequence[CallRecord], ring: CallRing) -> None:
        self.records, self._ring = records, ring
        self._among = among
        self._forwards: dict[int, CallRecord] | None = None
        self._set_ups: dict[int | None, CallRecord] = {}

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Call, ...]: ...
    def __getitem__(self, index: int | slice) -> Call | tuple[Call, ...]:
        if isinstance(index, slice):
            return tuple(map(self._decoded, self.records[index]))
        return self._decoded(self.records[index])

    def __iter__(self) -> Iterator[Call]:
        return map(self._decoded, self.records)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)

    def _decoded(self, record: CallRecord) -> Call:
        known = record.call  # another thread may let it go
        if known is not None:
            return known
        if self._forwards is None:
            self._forwards = {one.index: one for one in self._among if one.method == "forward"}
            self._set_ups = {one.forward: one for one in self._among if one.method == "setup_context"}
        own = record.index if record.method == "forward" else record.forward
        forward = None if record.forward is None else self._forwards.get(record.forward)
        call = call_of(record, forward, self._set_ups.get(own))
        self._ring.keep_decoded(record, call, decoded_weight(call))
        return call


class LiveLog(CallLog):
    """The calls of some Functions since some moment."""

    def __init__(
        self,
        ring: CallRing,
        functions: Sequence[InstrumentedFunction] | None,
        problems: Callable[[], tuple[Phrase, ...]],
        first: int = 0,
    ) -> None:
        self.__dict__.update(
            _ring=ring,
            _numbers=None if functions is None else {function.number for function in functions},
            _first=first,
            _problems=problems,
            _closed=None,
        )
        older = sum(1 for record in ring.finished() if self._is_ours(record.function)) if first else 0
        self.__dict__["_not_ours"] = self._gone() + older if first else 0  # these go before the first of ours does

    @property
    def records(self) -> list[CallRecord]:
        """The records of these calls, in the order in which the calls began."""
        closed: list[CallRecord] | None = self.__dict__["_closed"]
        if closed is not None:
            return closed
        first = self.__dict__["_first"]
        return [one for one in self.__dict__["_ring"].finished() if one.index >= first and self._is_ours(one.function)]

    def _is_ours(self, function: InstrumentedFunction) -> bool:
        numbers = self.__dict__["_numbers"]
        return numbers is None or function.number in numbers

    def _gone(self) -> int:
        ring: CallRing = self.__dict__["_ring"]
        ring.settle()
        return sum(count for function, count in list(ring.gone.items()) if self._is_ours(function))

    @property
    def calls(self) -> DecodedCalls:
        """The calls that are left, oldest first; each is decoded when it is looked at."""
        records = self.records
        return DecodedCalls(records, records, self.__dict__["_ring"])

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the Functions whose calls these are; no call is decoded for it."""
        return tuple(dict.fromkeys(record.function.name for record in self.records))

    @property
    def names(self) -> dict[int, str]:
        """Name each call, by index; no call is decoded for it."""
        return {record.index: f"#{record.number}" for record in self.records}

    @property
    def dropped(self) -> int:
        """Number of calls of this log that the byte budget let go."""
        fixed = self.__dict__.get("_dropped_at_end")
        return int(fixed) if fixed is not None else max(self._gone() - self.__dict__["_not_ours"], 0)

    @property
    def problems(self) -> tuple[Phrase, ...]:
        """Notes on what could not be recorded, and why."""
        fixed: tuple[Phrase, ...] | None = self.__dict__.get("_problems_at_end")
        now: tuple[Phrase, ...] = self.__dict__["_problems"]() if fixed is None else fixed
        return now

    def close(self) -> LiveLog:
        """Take in no more calls; those that are there stay, whatever the ring lets go later. Returns the log."""
        self.__dict__.update(_problems_at_end=self.problems, _dropped_at_end=self.dropped, _closed=self.records)
        return self

    def __len__(self) -> int:
        return len(self.records)

    def __reduce__(self) -> tuple[Any, ...]:
        return CallLog, (tuple(self.calls), self.dropped, self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as of a plain CallLog."""
        return CallLog(tuple(self.calls), self.dropped, self.problems).to_dict()


T = TypeVar("T")


def value_of(name: str | Phrase, one: Snapshot, same_as: str = "") -> Value:
    """Return the Value that a snapshot tells."""
    if isinstance(one, ObjectSnapshot):
        return Value(name, one.type, one.repr, None, same_as)
    summary = summary_of(one)
    return Value(name, one.type, tensor_repr(summary), summary, same_as)


def summary_of(one: TensorSnapshot) -> TensorSummary:
    """Return the TensorSummary that a snapshot tells, with the statistics of the elements that were copied."""
    described: dict[str, Any] = {
        "shape": tuple(one.shape or ()),
        "dtype": str(one.dtype).removeprefix("torch."),
        "device": str(one.device),
        "requires_grad": one.requires_grad,
        "grad_fn": one.grad_fn,
        "version": one.version,
        "numel": math.prod(one.shape) if one.shape is not None else 0,
    }
    measured = one.measured or measures(one)
    return TensorSummary(**described, **measured) if measured else TensorSummary(**described, reason=one.reason)


def call_of(record: CallRecord, forward: CallRecord | None, set_up: CallRecord | None) -> Call:
    """Return the Call that a record tells.

    Args:
        forward: the forward call whose ctx it got, if that is still there.
        set_up: the setup_context call of that forward (or of this one), if there was one.
    """
    function, places = record.function, tensor_places(record)
    source = function.source
    code = function.methods.code(record.method)
    line = None if source is None else source.line(record.method)
    return Call(
        index=record.index,
        number=record.number,
        function=function.name,
        method=record.method,  # type: ignore[arg-type]  # one of Method by construction
        parent=record.parent,
        forward=record.forward,
        inputs=_values(input_names(record), record.inputs, places, "input"),
        outputs=_values(output_names(record), record.outputs, places, "output"),
        ctx=_ctx(record, forward, set_up),
        seconds=record.seconds,
        thread=record.thread,
        stdout="".join(record.printed or ()),
        exception=record.exception,
        line=line if line is not None else (code.co_firstlineno if code is not None else None),
        caller_line=_line_of(record.caller),
        cell=record.cell,
        create_graph=record.create_graph,
        run=record.run if record.method == "backward" else 0,
        first=record.first,
        warnings=render("warnings of a call", record, forward, set_up),
        missing=() if record.missing is None else (Phrase("recording.incomplete", reason=record.missing),),
    )


_CALL, _VALUE = 1_200, 1_000  # bytes of a Call, and of each of its Values besides elements and thumbnails; measured


def decoded_weight(call: Call) -> int:
    """Return the bytes that a Call takes, estimated."""
    values = (*call.inputs, *call.outputs, *call.ctx.saved_tensors, *call.ctx.attributes.values())
    tensors = [value.tensor for value in values if value.tensor is not None]
    thumbnails = sum([one.thumbnail.nbytes * (3 if one.ranges else 1) for one in tensors if one.thumbnail is not None])
    elements = sum([32 * len(one.values) for one in tensors if one.values is not None])
    return _CALL + _VALUE * len(values) + thumbnails + elements + len(call.stdout)


def _line_of(caller: tuple[CodeType, int] | None) -> int | None:
    if caller is None:
        return None
    code, at = caller
    return next((line for start, end, line in code.co_lines() if start <= at < end), None)


def tensor_places(record: CallRecord) -> dict[int, str]:
    """Return for each tensor of a call, by its id, where it was met first: ``"input 0"``, ``"output 1"``."""
    places: dict[int, str] = {}
    split = record.setup_inputs if record.method == "setup_context" else len(record.inputs)
    for i, one in enumerate(record.inputs):
        if isinstance(one, TensorSnapshot) and one.key:
            places.setdefault(one.key, f"input {i}" if i < split else f"output {i - split}")
    for i, one in enumerate(record.outputs):
        if isinstance(one, TensorSnapshot) and one.key:
            places.setdefault(one.key, f"output {i}")
    return places


def place_of(one: Snapshot, places: dict[int, str]) -> str:
    """Return the place where the same tensor was met, empty when it was not."""
    return places.get(one.key, "") if isinstance(one, TensorSnapshot) else ""


def _values(
    names: Sequence[str | Phrase], taken: Sequence[Snapshot], places: dict[int, str], kind: str | None = None
) -> tuple[Value, ...]:
    same = [place_of(one, places) for one in taken]
    same = ["" if place == f"{kind} {i}" else place for i, place in enumerate(same)]
    return tuple(value_of(*triple) for triple in zip(names, taken, same, strict=True))


def _ctx(record: CallRecord, forward: CallRecord | None, set_up: CallRecord | None) -> CtxSnapshot:
    saver = ctx_saver(record, forward, set_up)
    ctx = saver.ctx if saver is not None else None
    if saver is None or ctx is None:
        return CtxSnapshot(freed=record.freed)
    places = tensor_places(saver)
    inputs, outputs = forward_names(saver)
    return CtxSnapshot(
        saved_tensors=_values(saved_names(saver.function, ctx, places, inputs, outputs), ctx.saved, places),
        attributes=dict(
            zip(ctx.attributes, _values(tuple(ctx.attributes), tuple(ctx.attributes.values()), places), strict=True)
        ),
        needs_input_grad=ctx.needs_input_grad,
        dirty=tuple(readable(places.get(key, "?"), inputs, outputs) for key in ctx.dirty),
        non_differentiable=tuple(readable(places.get(key, "?"), inputs, outputs) for key in ctx.non_differentiable),
        materialize_grads=ctx.materialize_grads,
        bytes=_held(ctx),
        freed=record.freed,
    )


def _held(ctx: CtxRecord) -> int:
    """Return the bytes that saved tensors keep alive: each storage once, a view's is its base's."""
    held: dict[int, int] = {}
    for one in ctx.saved:
        if isinstance(one, TensorSnapshot) and one.storage:
            held[one.storage] = max(held.get(one.storage, 0), one.held)
    return sum(held.values())


def ctx_saver(record: CallRecord, forward: CallRecord | None, set_up: CallRecord | None) -> CallRecord | None:
    """Return the call that filled the ctx which a call had: itself, its setup_context, or its forward."""
    if record.method in ("forward", "setup_context"):
        return set_up if record.ctx is None and set_up is not None else record
    return set_up if forward is not None and forward.ctx is None and set_up is not None else forward


def input_names(record: CallRecord) -> tuple[str, ...]:
    """Return the names of a call's inputs: by the user's source where it tells, by position where it does not."""
    function, count = record.function, len(record.inputs)
    code = function.methods.code(record.method)
    if record.method == "forward":
        return (*_forward_inputs(function, count - len(record.keywords)), *record.keywords)
    if record.method == "setup_context":  # forward's inputs, then its outputs
        split = min(record.setup_inputs, count)
        by_position = _forward_inputs(function, split - len(record.keywords))
        return (*by_position, *record.keywords, *_forward_outputs(function, count - split))
    if record.method == "backward":
        names = argument_names(code, count, True, "grad_output")
        if record.boxed:
            return tuple(f"{names[0]}[{i}]" for i in range(count))
        return names
    return argument_names(code, count, record.method != "vmap", "input")


def output_names(record: CallRecord) -> tuple[str | Phrase, ...]:
    """Return the names of a call's outputs; a gradient that the source does not name is a Phrase."""
    count = len(record.outputs)
    if record.method == "forward":
        return _forward_outputs(record.function, count)
    if record.method == "backward":
        source = record.function.source
        otherwise = [Phrase("recording.gradient_of", input=name) for name in _forward_inputs(record.function, count)]
        return _returned_names(source.gradients if source is not None else (), otherwise)
    return tuple(f"output {i}" for i in range(count))


def forward_names(saver: CallRecord) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of forward's inputs and outputs that the places in a call's ctx speak of."""
    if saver.method == "setup_context":
        names = input_names(saver)
        return names[: saver.setup_inputs], names[saver.setup_inputs :]
    return input_names(saver), _forward_outputs(saver.function, len(saver.outputs))


def argument_names(code: CodeType | None, count: int, takes_ctx: bool, otherwise: str) -> tuple[str, ...]:
    """Return the names of ``count`` arguments after ctx, from a method's code, ``*args`` spelt out."""
    if code is None:
        return tuple(f"{otherwise} {i}" for i in range(count))
    positional = code.co_varnames[1 if takes_ctx and code.co_argcount else 0 : code.co_argcount]
    names = list(positional[:count])
    if len(names) < count and code.co_flags & _VARARGS:
        star = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        names += [f"{star}[{i}]" for i in range(count - len(names))]
    return tuple(names) + tuple(f"{otherwise} {i}" for i in range(len(names), count))


_VARARGS = 0x04  # of co_flags, see the inspect module


def _forward_inputs(function: InstrumentedFunction, count: int) -> tuple[str, ...]:
    return argument_names(function.methods.code("forward"), count, not function.sets_up, "input")


def _forward_outputs(function: InstrumentedFunction, count: int) -> tuple[str, ...]:
    source = function.source
    return _returned_names(source.outputs if source is not None else (), [f"output {i}" for i in range(count)])


def _returned_names(values: Sequence[Returned], otherwise: list[T]) -> tuple[str | T, ...]:
    if len(values) != len(otherwise):
        return tuple(otherwise)
    return tuple(value.name or name for value, name in zip(values, otherwise, strict=True))


def readable(place: str, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """Return ``"input 1"`` as the name of that input; other texts as they are."""
    kind, _, number = place.partition(" ")
    names = {"input": inputs, "output": outputs}.get(kind, ())
    return names[int(number)] if number.isdigit() and int(number) < len(names) else place


def saved_names(
    function: InstrumentedFunction,
    ctx: CtxRecord,
    places: dict[int, str],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> list[str]:
    """Return names of the saved tensors: the source's, else the argument or output they are, else ``"saved[1]"``."""
    source = function.source
    names = source.saved if source is not None else None
    if names is not None and len(names) == len(ctx.saved):
        return list(names)
    same = [place_of(one, places) for one in ctx.saved]
    return [readable(place, inputs, outputs) or f"saved[{i}]" for i, place in enumerate(same)]
