"""Every error that nbautograd raises, with its message as data.

Each carries the id of its sentence and the parameters, so that a caller can show it in another language.
"""

from __future__ import annotations

from typing import Any

from nbautograd import messages


class NbautogradError(Exception):
    """Base of all errors raised by nbautograd.

    Args:
        message_id: the id of a sentence in ``nbautograd.messages``.
        params: what the sentence speaks of.
    """

    def __init__(self, message_id: str, **params: Any) -> None:
        self.message_id = message_id
        self.params = params
        super().__init__(messages.text(message_id, **params))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message_id, self.params)


def _rebuild(cls: type[NbautogradError], message_id: str, params: dict[str, Any]) -> NbautogradError:
    return cls(message_id, **params)


class CallError(NbautogradError, TypeError):
    """A call that makes no sense, such as a Function without inputs: raised with advice."""


class InputError(NbautogradError, ValueError):
    """Inputs that cannot be differentiated, such as integers only: raised with advice."""


class GradcheckError(NbautogradError, AssertionError):
    """Raised by ``GradcheckReport.raise_if_wrong``; its message is the report's text."""


class CommandError(Exception):
    """What a person who typed a command can mend; its message, one sentence, says how. No traceback is shown."""
