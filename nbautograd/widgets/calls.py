"""The Calls view: the time line of recorded calls and what each of them saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nbautograd.core.recording.call import Call, CallLog
from nbautograd.core.recording.trends import Trends, trends
from nbautograd.errors import InputError
from nbautograd.views.builders.calls import ctx_column, first_bad, method_document, not_finite
from nbautograd.views.packing import array, state_of
from nbautograd.widgets.base import Question, ViewWidget
from nbautograd.widgets.states import CallsAnswer, CallsState, CallState, TrendsState

MOST_CALLS = 500  # the newest are on the time line at first; the page asks for so many others at once
WHOLE = 250_000  # bytes of calls that are sent with all that they saw, the newest; the page asks for the others
BYTES, BYTES_WITH_RANGE = 4, 10  # of a cell as it is sent; measured, as the 450 of a value's words are
COLUMNS = 800  # of a trend


def call_state(call: Call, names: Mapping[int, str]) -> CallState:
    """Return one call with its values, ctx, prints and warnings."""
    return replace(listed_state(call), document=method_document(call, names), ctx=ctx_column(call.ctx))


def listed_state(call: Call) -> CallState:
    """Return what the time line shows of a call."""
    bad = not_finite(call)[0] == "returned"
    facts = {"noticed": len(call.warnings), "printed": bool(call.stdout), "bad": bad}
    return state_of(CallState, call, **facts, ctx=None)


def calls_state(log: CallLog) -> CallsState:
    """Return the newest calls of a log, oldest first, and what is missing from it."""
    calls, names = log.calls, log.names
    shown = calls[-MOST_CALLS:]
    measured = trends(log)
    states, room = [], WHOLE
    for call in reversed(shown):
        state = call_state(call, names) if room > 0 else listed_state(call)
        room -= _weight(call) if room > 0 else 0
        states.append(state)
    return CallsState(
        calls=states[::-1],
        first=len(calls) - len(shown),
        dropped=log.dropped,
        problems=list(map(str, log.problems)),
        finding=first_bad(log, measured.first_bad),
        trends=_trends_state(measured, calls) if len(calls) > 2 else None,
    )


def _weight(call: Call) -> int:
    """Estimate the bytes of all that a call saw: a name and a few numbers of each value, and the cells of its map."""
    values = (*call.inputs, *call.outputs, *call.ctx.saved_tensors, *call.ctx.attributes.values())
    tensors = [v.tensor for v in values if v.tensor is not None]
    maps = [(t.thumbnail.size, t.ranges) for t in tensors if t.thumbnail is not None]
    cells = sum(size * (BYTES if ranges is None else BYTES_WITH_RANGE) for size, ranges in maps)
    return 450 * len(values) + len(call.stdout) + cells


def _trends_state(measured: Trends, calls: Sequence[Call]) -> TrendsState:
    """Return the trends in so many columns at most: of some calls the largest number, and bad elements summed."""
    count = len(measured.seconds)
    starts = np.unique(np.linspace(0, count, min(count, COLUMNS), endpoint=False).astype(int))
    columns = {
        "incoming": np.fmax.reduceat(measured.incoming, starts),
        "outgoing": np.fmax.reduceat(measured.outgoing, starts),
        "bad": np.add.reduceat(measured.bad, starts),
        "seconds": np.fmax.reduceat(measured.seconds, starts),
    }
    return TrendsState(
        count=count,
        starts=array(starts),
        first_bad=measured.first_bad,
        bad_call=None if measured.first_bad is None else calls[measured.first_bad].name,
        **{name: array(column, "float32") for name, column in columns.items()},
    )


def some_calls(log: CallLog, question: Mapping[str, Any]) -> CallsAnswer:
    """Answer the page's question for what the time line shows of older calls.

    Args:
        log: where the calls are.
        question: ``first``, the position of the first call, and ``count``, how many.

    Raises:
        InputError: when there are none.
    """
    first, count = question.get("first"), question.get("count")
    calls = log.calls
    if type(first) is not int or type(count) is not int or not 0 <= first < len(calls) or count < 1:
        raise InputError("widgets.no_call")
    return CallsAnswer(calls=[listed_state(call) for call in calls[first : first + min(count, MOST_CALLS)]])


def one_call(log: CallLog, question: Mapping[str, Any]) -> CallsAnswer:
    """Answer the page's question for all that some calls saw.

    Args:
        log: where the calls are.
        question: ``calls``, at most 8 numbers of calls.

    Raises:
        InputError: when they are not kept any more.
    """
    wanted = question.get("calls")
    sound = isinstance(wanted, list) and len(wanted) <= 8 and all(type(n) is int for n in wanted)
    numbers = set(wanted or ()) if sound else set()
    calls, names = log.calls, log.names
    found = [calls[at] for at, index in enumerate(names) if index in numbers]
    if not found:
        raise InputError("widgets.no_call")
    return CallsAnswer(calls=[call_state(call, names) for call in found])


def calls_questions(log: CallLog) -> dict[str, Question]:
    """Answer what the page may ask about calls."""
    return {
        "calls": lambda question: one_call(log, question),
        "some_calls": lambda question: some_calls(log, question),
    }


class CallsWidget(ViewWidget):
    """Forward and backward calls in the order in which PyTorch made them."""

    KIND = "calls"

    def make_state(self, value: CallLog) -> CallsState:
        """Return the calls."""
        return calls_state(value)

    def questions(self) -> dict[str, Question]:
        """Return the question by which the page asks for what older calls saw."""
        return calls_questions(self.value)
