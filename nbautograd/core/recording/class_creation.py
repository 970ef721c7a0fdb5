"""Creation of Function classes: for the time of a cell, a callback is called with each new one."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from torch.autograd.function import FunctionMeta

from nbautograd.core.stumbles import record

OnClass = Callable[[type], None]


class ClassCreation:
    """Calls ``on_class(cls)`` for each Function class that comes to be between ``start`` and ``stop``.

    ``FunctionMeta.__init__`` is replaced for that time and put back after; a callback that raises does not reach the
    code that defines the class, its error is kept in ``errors``.
    """

    def __init__(self, on_class: OnClass) -> None:
        self.on_class = on_class
        self.errors: list[Exception] = []
        self._before: Any = None
        self._ours: Any = None

    def start(self) -> ClassCreation:
        """Begin; doing it twice changes nothing."""
        if self._ours is None:
            self._before = FunctionMeta.__init__
            self._ours = _announcing(self._before, self._announce)
            FunctionMeta.__init__ = self._ours  # type: ignore[method-assign]
        return self

    def stop(self) -> None:
        """End, and put ``FunctionMeta.__init__`` back unless somebody has replaced ours meanwhile."""
        if self._ours is not None and FunctionMeta.__init__ is self._ours:
            FunctionMeta.__init__ = self._before  # type: ignore[method-assign]
        self._ours = None

    def _announce(self, cls: type) -> None:
        if self._ours is None or cls.__module__.startswith("nbautograd."):  # the self-test makes a class of its own
            return
        try:
            self.on_class(cls)
        except Exception as error:
            record(error, "recording")
            self.errors.append(error)

    def __enter__(self) -> ClassCreation:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def _announcing(before: Any, announce: Callable[[type], None]) -> Any:
    def __init__(cls: type, name: str, bases: tuple[type, ...], attrs: dict[str, Any], **kwargs: Any) -> None:  # noqa: N807
        before(cls, name, bases, attrs, **kwargs)
        announce(cls)

    return __init__
