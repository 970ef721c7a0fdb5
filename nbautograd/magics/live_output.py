"""An output of a cell that changes in its place: a card that follows calls, a bar that a report replaces."""

from __future__ import annotations

from typing import Any

from IPython.core.displaypub import DisplayPublisher
from IPython.display import DisplayHandle


class LiveOutput:
    """One output: each thing it shows takes the place of the one before.

    Attributes:
        shown: True once something was shown.
    """

    def __init__(self) -> None:
        self._handle: Any = DisplayHandle()
        self.shown = False

    def show(self, bundle: dict[str, str], publisher: Any = None) -> None:
        """Show a MIME bundle.

        Args:
            bundle: its texts by MIME type.
            publisher: a shell's display publisher of an earlier moment, for threads; what a cell captures meanwhile is
                the user's. None takes the one of now.
        """
        update, self.shown = self.shown, True
        if publisher is not None:
            publisher.publish(bundle, {}, transient={"display_id": self._handle.display_id}, update=update)
        elif update:
            self._handle.update(bundle, raw=True)
        else:
            self._handle.display(bundle, raw=True)

    def replace(self, value: Any) -> None:
        """Show a value as ``display`` does, in the place of what was shown."""
        self._handle.update(value)


def can_update(publisher: Any) -> bool:
    """Return whether the front end can change what it has shown; a terminal would print it again."""
    return type(publisher) is not DisplayPublisher
