"""LiveLog: a CallLog that reads the ring when it is looked at; pickled and copied as a plain CallLog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nbautograd.core.recording.calls import Call, CallLog
from nbautograd.core.recording.reading import call_of
from nbautograd.core.recording.ring import Ring
from nbautograd.core.recording.state import Record, Subject


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
            "_subjects": None if subjects is None else {id(s): s for s in subjects},
            "_first": first,
            "_name": name,
            "_dropped_before": ring.dropped if first else 0,
            "_engine": engine,
            "_problems": problems,
            "_built": {},
            "_closed": None,
        }
        self.__dict__.update(keep)

    def _records(self) -> list[Record]:
        if self.__dict__["_closed"] is not None:
            closed: list[Record] = self.__dict__["_closed"]
            return closed
        return [record for record in self.__dict__["_ring"].finished() if self._mine(record)]

    def _mine(self, record: Record) -> bool:
        subjects, name = self.__dict__["_subjects"], self.__dict__["_name"]
        if record.index < self.__dict__["_first"]:
            return False
        return subjects is None or id(record.subject) in subjects or (name is not None and record.subject.name == name)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that are left, oldest first."""
        records = self._records()
        by_index = {record.index: record for record in records}
        built: dict[int, Call] = self.__dict__["_built"]
        calls = {}
        for record in records:
            forward = by_index.get(record.forward) if record.forward is not None else None
            calls[record.index] = built.get(record.index) or call_of(record, forward)
        self.__dict__["_built"] = calls
        return tuple(calls.values())

    @property
    def dropped(self) -> int:
        """How many older calls the byte budget let go since the log began."""
        fixed = self.__dict__.get("_dropped")
        return int(fixed if fixed is not None else self.__dict__["_ring"].dropped - self.__dict__["_dropped_before"])

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
        self.__dict__.update(_problems_at_end=self.problems, _dropped=self.dropped, _closed=self._records())

    def __len__(self) -> int:
        return len(self._records())

    def __reduce__(self) -> tuple[Any, ...]:
        return CallLog, (self.calls, self.dropped, self.engine, self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as of a plain CallLog."""
        return CallLog(self.calls, self.dropped, self.engine, self.problems).to_dict()
