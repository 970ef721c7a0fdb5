"""Registry of the Functions that the magic records: the newest of each name; their calls; how to let go of them."""

from __future__ import annotations

import weakref

from nbautograd.core.recording.api import instrument, uninstrument


class Registry:
    """The classes that cells with the magic defined."""

    def __init__(self) -> None:
        self._classes: dict[str, list[weakref.ref[type]]] = {}
        self._recorded: weakref.WeakSet[type] = weakref.WeakSet()

    def record(self, classes: list[type]) -> None:
        """Keep a cell's classes in the place of older ones of the same name, which are left as written."""
        names = {cls.__qualname__ for cls in classes}
        for name in names:
            for old in self._living(name):
                if old not in classes and "<locals>" not in name:
                    uninstrument(old)
            self._classes[name] = [weakref.ref(cls) for cls in classes if cls.__qualname__ == name]

    def born(self, cls: type) -> None:
        """Record a class from its birth on."""
        instrument(cls)
        self._recorded.add(cls)

    def forget(self) -> None:
        """Leave all classes as they were written."""
        for cls in list(self._recorded):
            uninstrument(cls)
        self._recorded.clear()
        self._classes.clear()

    def _living(self, name: str) -> list[type]:
        return [cls for reference in self._classes.get(name, ()) if (cls := reference()) is not None]
