"""The one error of the command line."""

from __future__ import annotations


class CommandError(Exception):
    """Something a person can mend; its message says how. Shown as one sentence, never as a traceback.

    Attributes:
        status: the exit status of the command.
    """

    status = 1
