"""Session: the work around every cell while the extension is loaded."""

from __future__ import annotations

import contextlib
import weakref
from dataclasses import dataclass, field
from typing import Any

from nbautograd.core.checking.progress import watching
from nbautograd.core.recording import api as log
from nbautograd.core.recording.api import instrument, uninstrument
from nbautograd.core.recording.class_creation import ClassCreation
from nbautograd.core.torch_private import library
from nbautograd.core.tracing.log import overrides, trace, untrace
from nbautograd.magics import output
from nbautograd.magics.exercise import Exercises
from nbautograd.magics.options import MAGIC
from nbautograd.magics.output import Cards
from nbautograd.magics.presenter import CellPresenter
from nbautograd.magics.progress import Bars
from nbautograd.magics.transformer import Request
from nbautograd.widgets.notebook_cells import remember_running


@dataclass(eq=False)
class Cell:
    """A cell that is running.

    Attributes:
        info: IPython's ExecutionInfo of it; None when the registered cell magic runs it.
        request: what its magics' lines ask for, or None.
        first_call: index of the first call that it can make.
        new_functions: the Functions that it defined so far.
        overriding: the classes with ``__torch_function__`` or ``__torch_dispatch__`` that were there before, by ``id``.
        handled_by_inner_cell: True when a cell inside it (run by another cell magic above ours) does what is asked.
        cleanup: what is undone when it ends.
    """

    info: Any
    request: Request | None
    first_call: int = 0
    new_functions: list[type] = field(default_factory=list)
    overriding: dict[int, type] = field(default_factory=dict)
    handled_by_inner_cell: bool = False
    cleanup: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


class Session:
    """The extension's state in one shell.

    Args:
        shell: the InteractiveShell.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.registry = Registry()
        self.bars = Bars(shell)
        self.cards = Cards(updates=hasattr(shell, "kernel"))
        self.presenter = CellPresenter(shell, self.cards)
        self.exercises = Exercises(shell)
        self._cells: list[Cell] = []
        self._next: Request | None = None
        remember_running(shell)  # the cell that loads the extension may define a Function too

    def take(self, request: Request | None) -> None:
        """Take what the transformer read: for the cell that begins next, or that runs it under another cell magic.

        ``%%time`` and ``%timeit`` transform what stands below them while their own cell runs, and run it without the
        events of a cell; ``%%capture`` runs a cell of its own, which then begins with this request.
        """
        self._next = request
        try:
            if request is not None and self._cells and self._cells[-1].request is None:
                self._watch(self._cells[-1], request)
        except Exception as error:
            _stumbled(error)

    def before_cell(self, info: Any) -> None:
        """Watch for Functions when the cell has one of the magics: IPython's ``pre_run_cell``."""
        request, self._next = self._next, None
        try:
            remember_running(self.shell)
            self.begin(Cell(info, request))
        except Exception as error:
            _stumbled(error)

    def after_cell(self, result: Any) -> None:
        """Show what the cell asked for, and bring the cards up to date: IPython's ``post_run_cell``."""
        info = getattr(result, "info", None)
        if self._cells and (result is None or self._cells[-1].info is info):
            self.end(self._cells[-1], result)

    def close(self) -> None:
        """Stop watching, also a cell that runs now, and leave all classes as written."""
        while self._cells:
            self._cells.pop().cleanup.close()
        log.set_cell(None)
        self.registry.forget()

    def begin(self, cell: Cell) -> None:
        """Start watching a cell."""
        self._cells.append(cell)
        if len(self._cells) == 1:
            log.set_cell(self._number(cell.info))
            cell.cleanup.callback(self.bars.clear)
            cell.cleanup.enter_context(watching(self.bars.around))
            cell.cleanup.enter_context(self.cards.watching(self.shell.display_pub))
        if cell.request is not None:
            self._watch(cell, cell.request)

    def end(self, cell: Cell, result: Any) -> None:
        """Stop watching a cell, and show."""
        if cell not in self._cells:  # unloaded by the cell itself
            return
        self._cells.remove(cell)
        cell.cleanup.close()
        try:
            if not self._cells:
                log.clear_open_calls()  # an interrupt may have left some open
            self._show(cell, result)
        except KeyboardInterrupt:
            output.show_message("magics.interrupted")
            output.count_as_interrupted(self.shell, result)
        except Exception as error:
            _stumbled(error)
        if not self._cells:
            log.set_cell(None)
        request = cell.request
        if request is not None and request.exercise is not None and not cell.handled_by_inner_cell:
            self.exercises.check(request.exercise, request.body, result is not None and bool(result.success))

    def _watch(self, cell: Cell, request: Request) -> None:
        cell.request = request
        for outer in self._cells[:-1]:
            outer.handled_by_inner_cell = True
        cell.first_call, cell.overriding = log.mark(), self._overriding()
        cell.cleanup.enter_context(ClassCreation(lambda cls: self._born(cell, cls)))

    def _number(self, info: Any) -> int:
        """Return the number in the cell's ``In [n]``; IPython counts up before this event or after, by version."""
        count: int = self.shell.execution_count
        if info is None or not info.store_history or self.shell.history_manager is None:
            return count
        following = len(self.shell.history_manager.input_hist_parsed)
        return following if following in (count - 1, count) else count

    def _show(self, cell: Cell, result: Any) -> None:
        if cell.request is not None and not cell.handled_by_inner_cell:
            operations = self.registry.new_operations()
            functions = list({cls.__name__: cls for cls in (*cell.new_functions, *operations)}.values())
            self.registry.record([*cell.new_functions, *operations])
            self.cards.retire(tuple(cls.__name__ for cls in functions))
            traced = [cls for key, cls in self._overriding().items() if key not in cell.overriding]
            self.registry.trace(traced)
            self.presenter.show(cell.request.options, functions, cell.first_call, result, traced)
        self.cards.refresh()

    def _overriding(self) -> dict[int, type]:
        values = self.shell.user_ns.values()
        return {id(cls): cls for cls in values if overrides(cls) and cls.__module__ == "__main__"}

    def _born(self, cell: Cell, cls: type) -> None:
        if library.is_generated(cls):
            self.registry.operation_born(cls)
        if cls.__module__ == "__main__":
            self.registry.born(cls)
            cell.new_functions.append(cls)


def _stumbled(error: Exception) -> None:
    output.show_stumble(MAGIC, error)


class Registry:
    """The classes that cells with the magic defined."""

    def __init__(self) -> None:
        self._classes: dict[str, list[weakref.ref[type]]] = {}
        self._recorded: weakref.WeakSet[type] = weakref.WeakSet()
        self._generated: weakref.WeakKeyDictionary[type, None] = weakref.WeakKeyDictionary()  # in their order
        self._shown: weakref.WeakSet[type] = weakref.WeakSet()
        self._traced: weakref.WeakSet[type] = weakref.WeakSet()

    def record(self, classes: list[type]) -> None:
        """Keep a cell's classes in the place of older ones of the same name, which are left as written."""
        names = {cls.__qualname__ for cls in classes}
        for name in names:
            for old in [cls for reference in self._classes.get(name, ()) if (cls := reference()) is not None]:
                if old not in classes and "<locals>" not in name:
                    uninstrument(old)
            self._classes[name] = [weakref.ref(cls) for cls in classes if cls.__qualname__ == name]

    def born(self, cls: type) -> None:
        """Record a class from its birth on."""
        instrument(cls)
        self._recorded.add(cls)

    def trace(self, classes: list[type]) -> None:
        """Trace what torch dispatches to classes of a cell, once it ran: calls in the cell itself are not seen."""
        for cls in classes:
            self._traced.add(trace(cls))

    def operation_born(self, generated: type) -> None:
        """Record an operation of ``torch.library`` from its birth on; its gradient is registered later."""
        self._generated[generated] = None
        if library.written_in_main(generated):
            self.born(generated)

    def new_operations(self) -> list[type]:
        """Return for operations whose gradient was registered since the last time Functions of the same methods."""
        made = [made for cls in list(self._generated) if (made := library.function_for_generated(cls)) is not None]
        new = [cls for cls in made if cls.__module__ == "__main__" and cls not in self._shown]
        for cls in new:
            self._shown.add(cls)
            self.born(cls)
        return new

    def forget(self) -> None:
        """Leave all classes as they were written."""
        for cls in list(self._recorded):
            uninstrument(cls)
        for cls in list(self._traced):
            untrace(cls)
        self._traced.clear()
        self._recorded.clear()
        self._generated.clear()
        self._shown.clear()
        self._classes.clear()
