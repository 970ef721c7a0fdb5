"""Meter: how often a check has run the user's forward and backward, and how often it still may."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from nbautograd.core.checking import budget


class OutOfRunsError(KeyboardInterrupt):
    """There may be no more runs; like an interrupt it passes through what catches exceptions of the user's code."""


class Meter:
    """Counts runs of forward and backward, many points at once as one; the same on every machine.

    Attributes:
        runs: how many there were.
        limit: number of runs beyond which ``OutOfRunsError`` is raised, or None.

    Example:
        >>> from nbautograd.core.checking.meter import Meter
        >>> meter = Meter()
        >>> meter.count()
        >>> meter.runs
        1
    """

    def __init__(self) -> None:
        self.runs = 0
        self.limit: int | None = None

    @property
    def exceeded(self) -> bool:
        """Whether there were more runs than allowed."""
        return self.limit is not None and self.runs > self.limit

    def count(self) -> None:
        """Take note of one run.

        Raises:
            OutOfRunsError: there may be no more of them.
            OutOfBudgetError: the time of the check is up.
        """
        budget.tick()
        self.runs += 1
        if self.exceeded:
            raise OutOfRunsError

    @contextlib.contextmanager
    def limited(self, runs: int) -> Iterator[None]:
        """Allow so many more runs within the block."""
        before, self.limit = self.limit, self.runs + runs
        try:
            yield
        finally:
            self.limit = before
