"""The bar of long work with its stop button, drawn while the kernel is busy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from nbautograd.widgets.base import Question, ViewWidget
from nbautograd.widgets.front_ends import heard_while_busy, kernel_id
from nbautograd.widgets.states import HeardAnswer, ProgressState


class Work(Protocol):
    """Long work as its bar sees it."""

    def state(self) -> ProgressState:
        """Return how far it is."""

    def stop(self) -> None:
        """End the work with what it has."""

    def seen(self) -> None:
        """The bar stands on a page, and the page's messages arrive."""


class ProgressWidget(ViewWidget):
    """Bar that shows how far long work is; its button ends the work with what is done by then.

    Args:
        work: the work.
        anchor: class of the static bar whose place this one takes.
    """

    KIND = "progress"
    OPTIONS = ()

    def __init__(self, work: Work, *, anchor: str = "") -> None:
        super().__init__(work, anchor=anchor)
        heard_while_busy(self.comm)

    def make_state(self, value: Work) -> ProgressState:
        """Return how far the work is, and which kernel does it, for pages that can only interrupt that."""
        return replace(value.state(), kernel=kernel_id())

    def tell(self) -> None:
        """Bring the page up to date."""
        self.state = replace(self.value.state(), kernel=self.state.kernel)

    def questions(self) -> dict[str, Question]:
        """The page may say that it is there, and end the work; both are heard while the kernel is busy."""
        return {"ready": self._ready, "stop": self._stop}

    def _ready(self, _question: Mapping[str, Any]) -> HeardAnswer:
        self.value.seen()
        return HeardAnswer()

    def _stop(self, _question: Mapping[str, Any]) -> HeardAnswer:
        self.value.stop()
        return HeardAnswer()
