"""Classes with ``__torch_function__`` or ``__torch_dispatch__`` in a cell with the magic: traced from birth on."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from typing import Any

from nbautograd import messages
from nbautograd.core.stumbles import any_errors
from nbautograd.core.tracing.log import dispatches, mark, trace, untrace
from nbautograd.core.tracing.spying import PROTOCOLS
from nbautograd.magics.output import LiveOutput
from nbautograd.views.bundle import mimebundle
from nbautograd.views.card import Notice


class Traced:
    """The classes that cells with the magic traced, one per name, and the card that shows their dispatches.

    Args:
        updates: whether the front end can change what it has shown.
    """

    def __init__(self, updates: bool) -> None:
        self.updates = updates
        self._classes: dict[str, type] = {}
        self._born: list[type] = []
        self._cards: list[DispatchCard] = []

    @contextlib.contextmanager
    def at_birth(self, transformers: list[Any]) -> Iterator[None]:
        """Trace what cells define meanwhile, by one more of the shell's transformers."""
        ours = TraceDecoratorInserter()
        transformers.append(ours)
        _tracing.append(self)
        try:
            yield
        finally:
            _tracing.remove(self)
            if ours in transformers:
                transformers.remove(ours)

    def born(self, cls: Any) -> Any:
        """Trace a class that the cell has just defined; gives the class back, whatever happens."""
        with any_errors("tracing of a class"):  # the cell's own business goes on
            trace(cls)
            self._born.append(cls)
        return cls

    def take(self) -> list[type]:
        """Return the classes born since the last call; older ones of the same names are left as written."""
        born, self._born = list({cls.__name__: cls for cls in self._born}.values()), []
        for cls in born:
            old = self._classes.get(cls.__name__)
            if old is not None and old is not cls:
                untrace(old)
            self._classes[cls.__name__] = cls
        return born

    def show(self, classes: list[type], since: int) -> None:
        """Put a card under the cell; cards of classes of the same names stop following."""
        names = {cls.__name__ for cls in classes}
        self._cards = [card for card in self._cards if not names & {cls.__name__ for cls in card.classes}]
        card = DispatchCard(tuple(classes), since)
        self._cards.append(card)
        card.show()

    def refresh(self) -> None:
        """Bring the cards up to date, once per cell."""
        if self.updates:
            for card in self._cards:
                card.refresh()

    def forget(self) -> None:
        """Leave all classes as written."""
        for cls in self._classes.values():
            untrace(cls)
        self._classes.clear()
        self._cards.clear()


class TraceDecoratorInserter(ast.NodeTransformer):
    """Puts a decorator on each class of a cell whose body defines one of the two methods.

    Source, line numbers and tracebacks stay as they are: the decorator has the class's own place and runs last. A
    ``__build_class__`` of ours would stand between the class and its frame, by which pydantic finds local names.
    """

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        """Visit a class of the cell, or of a function or class in it."""
        self.generic_visit(node)
        if any(isinstance(part, ast.FunctionDef) and part.name in PROTOCOLS for part in node.body):
            place = node.decorator_list[0] if node.decorator_list else node
            decorator = ast.parse(f"__import__({__name__!r}, fromlist=('born',)).born", mode="eval").body
            for part in ast.walk(decorator):
                ast.copy_location(part, place)
            node.decorator_list.insert(0, decorator)
        return node


_tracing: list[Traced] = []  # those whose cells run, the innermost last


def born(cls: Any) -> Any:
    """Trace a class, as the decorator that ``TraceDecoratorInserter`` writes."""
    return _tracing[-1].born(cls) if _tracing else cls


class DispatchCard:
    """The card of traced classes: what torch asked them last."""

    def __init__(self, classes: tuple[type, ...], since: int) -> None:
        self.classes, self.since, self.seen = classes, since, mark()
        self._output = LiveOutput()

    def show(self) -> None:
        """Put the card under the cell that runs now."""
        self.seen = mark()
        self._output.show(self._bundle())

    def refresh(self) -> None:
        """Bring the card up to date; nothing is sent when nothing was asked since."""
        if mark() != self.seen:
            self.seen = mark()
            self._output.show(self._bundle())

    def _bundle(self) -> dict[str, str]:
        log = dispatches(*self.classes, since=self.since)
        names = messages.text("views.comma").join(f"`{cls.__name__}`" for cls in self.classes)
        if not log.dispatches:
            hint = f"`torch.add({self.classes[-1].__name__[:1].lower()}, 1)`"
            waiting = messages.text("tracing.card", names=names, hint=hint)
            return mimebundle(Notice((waiting, *map(str, log.problems))))
        return mimebundle(log)
