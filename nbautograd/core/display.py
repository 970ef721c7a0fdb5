"""Display of a plain value that does not know who draws it.

``core`` may not import views or widgets: ``nbautograd.renderers`` says who draws.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Generic, TypeVar

import numpy as np

from nbautograd import messages
from nbautograd.renderers import RENDERERS

Redacted = TypeVar("Redacted")


def render(kind: str, value: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call the function that draws this kind of picture on a value."""
    module, _, name = RENDERERS[kind].partition(":")
    return getattr(importlib.import_module(f"nbautograd.{module}"), name)(value, *args, **kwargs)


def plural(count: int, noun: str) -> str:
    """Write a count for a ``repr``: ``1 finding``, ``2 findings``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class UserValue(str):
    """Text of a value of the user's: a number, a string, a path, an entry. A redacted report does not print it."""

    __slots__ = ()


class Phrase:
    """A sentence, or a piece of one, put into words when it is read, in the language of that moment."""

    def __init__(self, message_id: str, **params: Any) -> None:
        self.message_id = message_id
        self.params = params

    def shows(self, name: str) -> bool:
        """Return True where the words show the parameter of this name, their own or that of a phrase in them."""
        shown = {key: self.params[key] for key in messages.fields(self.message_id) if key in self.params}
        return name in shown or any(isinstance(value, Phrase) and value.shows(name) for value in shown.values())

    def __str__(self) -> str:
        return messages.text(self.message_id, **self.params)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __contains__(self, text: str) -> bool:
        return text in str(self)

    def __repr__(self) -> str:
        return f"Phrase({self.message_id!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Phrase) and (self.message_id, self.params) == (other.message_id, other.params)

    def __hash__(self) -> int:
        return hash(self.message_id)


class Displayable:
    """Base of every public value: it shows itself, becomes a widget, becomes plain data.

    ``str`` of a value is its text, the same that a notebook stores as ``text/plain``; ``repr`` is one line.
    """

    __slots__ = ()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        written = vars(cls).get("__repr__")  # one line, in which a name of the user's may hold control characters
        if written is not None:
            cls.__repr__ = lambda self: messages.printable(written(self))  # type: ignore[method-assign]

    def __str__(self) -> str:
        text: str = render("text", self)
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain data that ``json.dumps`` takes: dicts, lists, strings, numbers, None.

        Arrays become nested lists; numbers that are not finite become the strings ``"nan"``, ``"inf"``, ``"-inf"``;
        complex numbers become ``[real, imag]``; a tuple used as a key becomes its items joined by commas.
        """
        result = plain(self)
        assert isinstance(result, dict)
        return result

    def widget(self) -> Any:
        """Return the interactive view of this value, an anywidget."""
        return render("widget", self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = render("mimebundle", self)
        return bundle


class Plottable(Displayable):
    """Base of the values that hold Jacobians."""

    __slots__ = ()

    def plot(self, ax: Any = None) -> Any:
        """Draw what backward says, what finite differences say and the difference with matplotlib.

        Args:
            ax: an Axes to draw the most interesting block into; a new figure with up to six blocks when None.

        Returns:
            The Figure; the worst entry of a wrong block has a frame, exact zeros are white, NaN is hatched.

        Raises:
            InputError: when there is no block with entries.
        """
        return render("plot", self, ax=ax)


class Redactable(Displayable, Generic[Redacted]):
    """Base of the reports that can be passed on without the numbers of the user's data."""

    __slots__ = ()

    def redact(self) -> Redacted:
        """Return the report without a number of your data, to be copied: shapes, verdicts, codes, sentences, lines.

        Returns:
            The same kind, of a FunctionReport its check; print it, or take its ``to_dict()``. Names and lines of code
            stay.
        """
        return render("redact", self)  # type: ignore[no-any-return]


def plain(value: Any) -> Any:
    """Return a value of dataclasses, tuples, mappings and arrays as JSON-ready data; see ``Displayable.to_dict``."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, Phrase):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.repr}
        return {"type": type(value).__name__, **named}
    if isinstance(value, Mapping):
        return {(",".join(map(str, k)) if isinstance(k, tuple) else str(k)): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, (tuple, list, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)
