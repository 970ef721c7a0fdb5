"""What happens around every cell while the extension is loaded."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

from nbautograd.core.recording import log
from nbautograd.core.recording.birth import births
from nbautograd.core.recording.prints import teed
from nbautograd.magics import saying
from nbautograd.magics.card import Cards
from nbautograd.magics.options import MAGIC
from nbautograd.magics.outcome import Outcome
from nbautograd.magics.registry import Registry
from nbautograd.magics.transformer import Request, request


@dataclass
class Cell:
    """A cell that is running.

    Attributes:
        info: IPython's ExecutionInfo of it; None when the registered cell magic runs it.
        request: what its magic's line asks for, or None.
        since: index of the first call that it can make.
        born: the Functions that it defined so far.
        taken: True when a cell inside it (run by another cell magic above ours) does what the line asks.
    """

    info: Any
    request: Request | None
    since: int = 0
    born: list[type] = field(default_factory=list)
    taken: bool = False
    around: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


class Session:
    """The extension's state in one shell.

    Args:
        shell: the InteractiveShell.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.registry = Registry()
        self.cards = Cards(updates=hasattr(shell, "kernel"))
        self.outcome = Outcome(shell, self.cards)
        self._cells: list[Cell] = []

    def before_cell(self, info: Any) -> None:
        """IPython's ``pre_run_cell``: watch for Functions when the cell has the magic."""
        self.begin(Cell(info, request(info.raw_cell)))

    def after_cell(self, result: Any) -> None:
        """IPython's ``post_run_cell``: show what the cell asked for, bring the cards up to date."""
        info = getattr(result, "info", None)
        if self._cells and (result is None or self._cells[-1].info is info):
            self.end(self._cells[-1], result)

    def begin(self, cell: Cell) -> None:
        """Start watching a cell."""
        if not self._cells:
            log.set_cell(self._number(cell.info))
            cell.around.enter_context(teed())
        if cell.request is not None:
            for outer in self._cells:
                outer.taken = True
            cell.since = log.mark()
            cell.around.enter_context(births(lambda cls: self._born(cell, cls)))
        self._cells.append(cell)

    def end(self, cell: Cell, result: Any) -> None:
        """Stop watching a cell, and show."""
        self._cells.remove(cell)
        cell.around.close()
        if not self._cells:
            log.clear_open_calls()  # an interrupt may have left some open
        try:
            self._show(cell, result)
        except KeyboardInterrupt:
            saying.say("magics.interrupted")
            saying.count_as_interrupted(self.shell, result)
        except Exception as error:
            saying.say("magics.stumbled", magic=MAGIC, error=f"{type(error).__name__}: {error}")
        if not self._cells:
            log.set_cell(None)

    def _number(self, info: Any) -> int:
        """The number in the cell's ``In [n]``; IPython counts up before this event or after, as its version goes."""
        count: int = self.shell.execution_count
        if info is None or not info.store_history or self.shell.history_manager is None:
            return count
        following = len(self.shell.history_manager.input_hist_parsed)
        return following if following in (count - 1, count) else count

    def _show(self, cell: Cell, result: Any) -> None:
        if cell.request is not None and not cell.taken:
            functions = _newest(cell.born)
            self.registry.record(cell.born)
            self.cards.retire(tuple(cls.__name__ for cls in functions))
            self.outcome.show(cell.request.options, functions, cell.since, result)
        self.cards.refresh()

    def _born(self, cell: Cell, cls: type) -> None:
        if cls.__module__ == "__main__":
            self.registry.born(cls)
            cell.born.append(cls)


def _newest(classes: list[type]) -> list[type]:
    """One class per name, the last one."""
    return list({cls.__name__: cls for cls in classes}.values())
