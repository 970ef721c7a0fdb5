"""How much trying a fix is worth, counted in work and in nothing else, so that every machine finds the same one."""

from __future__ import annotations

from nbautograd.core.checking.repair.verification_points import Stage

TRIES = 1200.0  # calls of an edited backward on something small: about half a second
PAIRS = 200.0  # of these, for two edits in sequence


class Tries:
    """Calls of an edited backward that are left.

    Args:
        tries: how many calls on something small there may be; see ``Stage.price`` for others.
    """

    def __init__(self, tries: float = TRIES) -> None:
        self.left = tries

    def pay(self, stage: Stage) -> None:
        """Take off one call at this stage."""
        self.left -= stage.price

    def last_part(self) -> None:
        """What follows is unlikely: at most ``PAIRS`` more."""
        self.left = min(self.left, PAIRS)

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.left <= 0
