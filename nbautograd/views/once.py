"""What is made of a value once, and then kept with it: the stored report and the live view beside it take the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from torch.utils.weak import WeakIdKeyDictionary

from nbautograd import messages

T = TypeVar("T")


def once(make: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return a function that is run once for each value and language, and holds on to no value.

    Example:
        >>> from nbautograd.core.values import Value
        >>> from nbautograd.views.once import once
        >>> made = once(lambda value: [value.name])
        >>> x = Value("x", "int", "3")
        >>> made(x) is made(x)
        True
    """
    kept: Any = WeakIdKeyDictionary()

    def kept_or_made(value: Any) -> T:
        known = kept.setdefault(value, {})
        language = messages.language()
        if language not in known:
            known[language] = make(value)
        made: T = known[language]
        return made

    return kept_or_made
