"""LiveLog: a CallLog that reads the ring when it is looked at; pickled and copied as a plain CallLog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nbautograd.core.recording.calls import Call, CallLog
from nbautograd.core.recording.reading import call_of
from nbautograd.core.recording.ring import Ring
from nbautograd.core.recording.state import (
    FORWARD,
    INDEX,
    METHOD,
    SUBJECT,
    SUBJECTS,
    Packed,
    Subject,
)
from nbautograd.core.recording.unpacking import unpacked


class LiveLog(CallLog):
    """The calls of some Functions since some moment.

    Args:
        ring: where the records are.
        subjects: whose calls; None for everybody's.
        engine: gives the name of the engine.
        problems: gives the sentences of what could not be recorded.
        first: the first index that counts.
        name: also the calls of earlier classes of this name (a cell that was run again).
    """

    def __init__(
        self,
        ring: Ring,
        subjects: Sequence[Subject | None] | None,
        engine: Callable[[], str],
        problems: Callable[[], tuple[str, ...]],
        first: int = 0,
        name: str | None = None,
    ) -> None:
        keep: dict[str, Any] = {
            "_ring": ring,
            "_subjects": None if subjects is None else {s.number for s in subjects if s is not None},
            "_first": first,
            "_name": name,
            "_engine": engine,
            "_problems": problems,
            "_built": {},
            "_closed": None,
        }
        self.__dict__.update(keep)
        older = sum(1 for call in ring.finished() if self._of_ours(call)) if first else 0
        self.__dict__["_not_ours"] = self._gone() + older if first else 0  # these go before the first of ours does

    def _packed(self) -> list[Packed]:
        """The records of these calls, as the ring holds them."""
        if self.__dict__["_closed"] is not None:
            closed: list[Packed] = self.__dict__["_closed"]
            return closed
        return [call for call in self.__dict__["_ring"].finished() if self._mine(call)]

    def _mine(self, call: Packed) -> bool:
        return call[INDEX] >= self.__dict__["_first"] and self._of_ours(call)

    def _of_ours(self, call: Packed) -> bool:
        return self._is_ours(call[SUBJECT])

    def _is_ours(self, number: int) -> bool:
        """Is the subject of this number one of the log's?"""
        subjects, name = self.__dict__["_subjects"], self.__dict__["_name"]
        return subjects is None or number in subjects or (name is not None and SUBJECTS[number].name == name)

    def _gone(self) -> int:
        """How many calls of the log's Functions the ring has let go, ever."""
        return sum(count for number, count in list(self.__dict__["_ring"].gone.items()) if self._is_ours(number))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that are left, oldest first."""
        packed = self._packed()
        built: dict[int, Call] = self.__dict__["_built"]
        fresh = [call for call in packed if call[INDEX] not in built]
        built |= {call.index: call for call in read(fresh, packed)}
        self.__dict__["_built"] = {call[INDEX]: built[call[INDEX]] for call in packed}
        return tuple(self.__dict__["_built"].values())

    @property
    def dropped(self) -> int:
        """How many calls of this log the byte budget let go."""
        fixed = self.__dict__.get("_dropped")
        return int(fixed) if fixed is not None else max(self._gone() - self.__dict__["_not_ours"], 0)

    @property
    def engine(self) -> str:
        """The engine that recorded."""
        name: str = self.__dict__["_engine"]()
        return name

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be recorded and why."""
        fixed = self.__dict__.get("_problems_at_end")
        sentences: tuple[str, ...] = self.__dict__["_problems"]() if fixed is None else fixed
        return sentences

    def close(self) -> None:
        """Take in no more calls; those that are there stay, whatever the ring lets go later."""
        self.__dict__.update(_problems_at_end=self.problems, _dropped=self.dropped, _closed=self._packed())

    def __len__(self) -> int:
        return len(self._packed())

    def __reduce__(self) -> tuple[Any, ...]:
        return CallLog, (self.calls, self.dropped, self.engine, self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as of a plain CallLog."""
        return CallLog(self.calls, self.dropped, self.engine, self.problems).to_dict()


def read(wanted: Sequence[Packed], among: Sequence[Packed]) -> list[Call]:
    """The Calls that these records tell.

    Args:
        wanted: the records to read.
        among: where their forward and setup_context are to be found.
    """
    by_index = {call[INDEX]: call for call in among}
    set_up = {call[FORWARD]: call for call in among if call[METHOD] == "setup_context"}
    calls = []
    for call in wanted:
        link = call[FORWARD]
        forward = unpacked(by_index[link], set_up.get(link)) if link in by_index else None
        calls.append(call_of(unpacked(call, set_up.get(call[INDEX])), forward))
    return calls
