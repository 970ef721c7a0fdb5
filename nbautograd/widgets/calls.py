"""The Calls view: the time line of recorded calls and what each of them saw."""

from __future__ import annotations

from typing import Any

from nbautograd.core.display import plain
from nbautograd.core.recording.calls import Call, CallLog
from nbautograd.widgets import parts
from nbautograd.widgets.base import ViewWidget

MOST_CALLS = 200  # the newest ones are shown
MOST_PRINTED = 4_000  # characters of one call's prints


def call_state(call: Call) -> dict[str, Any]:
    """One call with its values, ctx, prints and warnings."""
    names = ("index", "function", "method", "parent", "forward", "thread", "exception", "line", "caller_line", "cell")
    return {
        **{name: getattr(call, name) for name in names},
        "seconds": plain(call.seconds),
        "create_graph": call.create_graph,
        "inputs": parts.values(call.inputs),
        "outputs": parts.values(call.outputs),
        "ctx": parts.ctx(call.ctx),
        "stdout": call.stdout[:MOST_PRINTED],
        "warnings": parts.findings(call.warnings),
        "missing": list(call.missing),
    }


def calls_state(log: CallLog) -> dict[str, Any]:
    """The newest calls of a log, oldest first, and what is missing from it."""
    shown = log.calls[-MOST_CALLS:]
    left_out = log.dropped + len(log.calls) - len(shown)
    return {"calls": [call_state(call) for call in shown], "dropped": left_out, "problems": list(log.problems)}


class CallsWidget(ViewWidget):
    """Forward and backward calls in the order in which PyTorch made them."""

    KIND = "calls"

    def make_state(self, value: CallLog) -> dict[str, Any]:
        """The calls."""
        return calls_state(value)
