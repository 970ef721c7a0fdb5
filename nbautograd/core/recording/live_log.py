"""LiveLog: a CallLog that reads the ring and decodes a call when it is looked at; pickled as a plain CallLog."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from nbautograd.core.display import Phrase
from nbautograd.core.recording.call import Call, CallLog
from nbautograd.core.recording.decode import call_of, decoded_weight
from nbautograd.core.recording.function import InstrumentedFunction
from nbautograd.core.recording.record import CallRecord
from nbautograd.core.recording.ring import Ring


class DecodedCalls(Sequence[Call]):
    """The Calls of some records, each decoded when it is looked at, and kept with its record as the ring has room.

    Args:
        records: whose calls.
        among: where their forward and setup_context are to be found.
        ring: bounds what is kept.
    """

    def __init__(self, records: Sequence[CallRecord], among: Sequence[CallRecord], ring: Ring) -> None:
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
    """The calls of some Functions since some moment.

    Args:
        ring: where the records are.
        functions: whose calls; None for everybody's.
        engine: gives the name of the engine.
        problems: gives what could not be recorded.
        first: the first index that counts.
        name: also the calls of earlier classes of this name (a cell that was run again).
    """

    def __init__(
        self,
        ring: Ring,
        functions: Sequence[InstrumentedFunction] | None,
        engine: Callable[[], str],
        problems: Callable[[], tuple[Phrase, ...]],
        first: int = 0,
        name: str | None = None,
    ) -> None:
        self.__dict__.update(
            _ring=ring,
            _numbers=None if functions is None else {function.number for function in functions},
            _first=first,
            _name=name,
            _engine=engine,
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
        numbers, name = self.__dict__["_numbers"], self.__dict__["_name"]
        return numbers is None or function.number in numbers or (name is not None and function.name == name)

    def _gone(self) -> int:
        """Count the calls of the log's Functions that the ring has let go, ever."""
        ring: Ring = self.__dict__["_ring"]
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
    def dropped(self) -> int:
        """How many calls of this log the byte budget let go."""
        fixed = self.__dict__.get("_dropped_at_end")
        return int(fixed) if fixed is not None else max(self._gone() - self.__dict__["_not_ours"], 0)

    @property
    def engine(self) -> str:
        """The engine that recorded."""
        name: str = self.__dict__["_engine"]()
        return name

    @property
    def problems(self) -> tuple[Phrase, ...]:
        """What could not be recorded and why."""
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
        return CallLog, (tuple(self.calls), self.dropped, self.engine, self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as of a plain CallLog."""
        return CallLog(tuple(self.calls), self.dropped, self.engine, self.problems).to_dict()
