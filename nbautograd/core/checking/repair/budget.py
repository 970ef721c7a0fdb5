"""How much trying a fix is worth, counted in work, so that every machine finds the same one."""

from __future__ import annotations

import time

from nbautograd.core.checking.repair.verification_points import Stage

TRIES = 1200.0  # calls of an edited backward on something small: about half a second
PAIRS = 200.0  # of these, for two edits in sequence
ELEMENTS = 20_000  # that make a call as dear as the call of something small
SECONDS = 2.0  # of this thread's time, after which it ends whatever was tried: for calls that take long by themselves


class Budget:
    """Calls of an edited backward that are left.

    Args:
        tries: how many calls on something small there may be.
    """

    def __init__(self, tries: float = TRIES) -> None:
        self.left = tries
        self._until = time.thread_time() + SECONDS

    def paid(self, stage: Stage) -> bool:
        """Take off one call at this stage; always True."""
        self.left -= 1 + stage.elements / ELEMENTS
        return True

    def last_part(self) -> None:
        """What follows is unlikely: at most ``PAIRS`` more."""
        self.left = min(self.left, PAIRS)

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.left <= 0 or time.thread_time() > self._until
