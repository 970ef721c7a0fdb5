"""The quick way to write calls down: for methods that only compute, when a call looks like one before it.

A training loop calls the same methods with the same shapes again and again. What a method that changes nothing was
given can as well be described at its end, together with what it gave; and when all of that looks as in an earlier call
(``forms.py``), only what differs is written down (``short.py``). Everything else goes the writer's own way.

The hot path: what a closure reads is local to it, and each branch that is taken often asks as little as it can.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch

from nbautograd.core import torch_internals as internals
from nbautograd.core.recording import prints
from nbautograd.core.recording.forms import Forms
from nbautograd.core.recording.reading_ctx import beside_saved, innermost, places
from nbautograd.core.recording.recorder import CALLERS, USERS, caller, whose
from nbautograd.core.recording.ring import EVERY, SHORT, Ring
from nbautograd.core.recording.short import TAKEN
from nbautograd.core.recording.snapshot import SUMMARY
from nbautograd.core.recording.state import BEGAN, NUMBER, PRINTED, Head, Open, ThreadState, local
from nbautograd.core.recording.unrolled import picks
from nbautograd.core.recording.writer import Writer

_Method = Callable[..., Any]
_NOBODY = (None, 0)

_tracing, _modes = internals.tracing, internals.function_mode_active
_grad_enabled, _keep_graph = torch.is_grad_enabled, internals.keep_graph
_get_frame, _heard = sys._getframe, prints.heard


def wrapper(function: _Method, writer: Writer) -> _Method | None:
    """A function that runs the user's and has most calls written down the quick way; None where there is none.

    It takes itself out of tracebacks, as ``engine.wrapper`` does.
    """
    if writer.watch.awake or writer.method not in _KINDS:
        return None
    writer.quick = True
    kind = _combined if writer.method == "forward" and not writer.sets_up else _KINDS[writer.method]
    run = kind(function, writer)
    internals.skip_in_dynamo(run.__code__, with_calls=False)
    return run


def _long_way(call: Open, args: tuple[Any, ...], result: Any, state: ThreadState, writer: Writer) -> None:
    """The end of a call that looks like none before."""
    if not _tracing():
        writer.end(call, args, result, state)
    elif call in state.stack:  # torch.jit.trace would write down what we ask
        _unwind(state.stack, call)


def _unwind(stack: list[Open], call: Open) -> None:
    """Take a call off the stack with what an interrupt left above it."""
    while stack and stack.pop() is not call:
        pass


def _combined(function: _Method, writer: Writer) -> _Method:
    """Of a forward that gets ctx."""
    subject, number, forms, links, add = writer.subject, writer.number, writer.forms, writer.links, writer.add
    next_index, recorder, ring, uses, only_saves = (
        writer.next_index, writer.recorder, writer.ring, writer.uses, writer.only_saves
    )  # fmt: skip

    def run(*args: Any) -> Any:
        __tracebackhide__ = True
        state: ThreadState = local.state
        form, call = forms.last, None
        if form is None:
            call = writer.begin(args, state)
        else:
            try:
                index, ctx, stack = next_index(), state.armed_ctx, state.stack
                if ctx:
                    state.armed_ctx = 0
                    links[ctx] = (index, number, False, 0, None)
                frame = _get_frame(CALLERS)
                code = frame.f_code
                around = stack[-1][NUMBER] if stack else None
                if whose[code.co_filename] == USERS:
                    head: Head = around, code, frame.f_lasti
                else:
                    head = around, *(caller(_get_frame(1)) or _NOBODY)
                call = [index, None, 0.0, writer, head, ctx, None, None]
                if sys.stdout is not _heard[0]:
                    prints.follow()
                stack.append(call)
                call[BEGAN] = perf_counter()
            except Exception as error:
                recorder.note(error)
        try:
            result = function(*args)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            if call is not None:
                writer.fail(call, error, state, args)
            raise
        if call is None:
            return result
        if form is None or call[PRINTED] is not None or _modes():
            _long_way(call, args, result, state, writer)
            return result
        seconds = perf_counter() - call[BEGAN]
        try:
            saved: Any = getattr(args[0], "to_save", None)
            if saved is None:
                saved = ()
            elif type(saved) is not tuple:  # put there by hand
                _long_way(call, args, result, state, writer)
                return result
            met = (*args[1:], *result, *saved) if type(result) is tuple else (*args[1:], result, *saved)
            level = subject.level
            taken = form.take(*met) if form.count == len(met) and form.level == level else None
            if taken is not None or (taken := forms.take(met, level)) is not None:
                on_ctx: Any = ()
                if not only_saves or level >= SUMMARY:
                    on_ctx = beside_saved(args[0], saved, uses, taken[0][-1], level)
                if on_ctx is not None:
                    if stack.pop() is not call:
                        _unwind(stack, call)
                    add((
                        index, number, "forward", None, taken[1], state.name, seconds, recorder.cell, head, taken,
                        on_ctx,
                    ))  # fmt: skip
                    if not index % EVERY:
                        ring.settle()
                    return result
            _long_way(call, args, result, state, writer)
        except Exception as error:
            writer.incomplete(call, seconds, error, state)
        return result

    return run


def _forward(function: _Method, writer: Writer) -> _Method:
    """Of a forward that setup_context follows, which will want to know what it met."""
    subject, number, forms, add = writer.subject, writer.number, writer.forms, writer.add
    next_index, recorder, ring = writer.next_index, writer.recorder, writer.ring

    def run(*args: Any) -> Any:
        __tracebackhide__ = True
        state: ThreadState = local.state
        form, call, state.handed = forms.last, None, None
        if form is None:
            call = writer.begin(args, state)
        else:
            try:
                index, stack = next_index(), state.stack
                frame = _get_frame(CALLERS)
                code = frame.f_code
                around = stack[-1][NUMBER] if stack else None
                if whose[code.co_filename] == USERS:
                    head: Head = around, code, frame.f_lasti
                else:
                    head = around, *(caller(_get_frame(1)) or _NOBODY)
                call = [index, None, 0.0, writer, head, state.armed_ctx, None, None]
                if sys.stdout is not _heard[0]:
                    prints.follow()
                stack.append(call)
                call[BEGAN] = perf_counter()
            except Exception as error:
                recorder.note(error)
        try:
            result = function(*args)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            if call is not None:
                writer.fail(call, error, state, args)
            raise
        if call is None:
            return result
        if form is None or call[PRINTED] is not None or _modes():
            _long_way(call, args, result, state, writer)
            return result
        seconds = perf_counter() - call[BEGAN]
        try:
            met = (*args, *result) if type(result) is tuple else (*args, result)
            level = subject.level
            taken = form.take(*met) if form.count == len(met) and form.level == level else None
            if taken is not None or (taken := forms.take(met, level)) is not None:
                if stack.pop() is not call:
                    _unwind(stack, call)
                short = index, number, "forward", None, taken[1], state.name, seconds, recorder.cell, head, taken, None
                add(short)
                if not index % EVERY:
                    ring.settle()
                state.handed, state.pending = (number, index, id(result), short), subject
                return result
            _long_way(call, args, result, state, writer)
        except Exception as error:
            writer.incomplete(call, seconds, error, state)
        return result

    return run


def _setup_context(function: _Method, writer: Writer) -> _Method:
    subject, number, links, add, hidden = (
        writer.subject, writer.number, writer.links, writer.add, writer.subject.backward_class
    )  # fmt: skip
    next_index, recorder, ring, uses, only_saves = (
        writer.next_index, writer.recorder, writer.ring, writer.uses, writer.only_saves
    )  # fmt: skip
    at: tuple[int, ...] = ()  # where among what forward met each saved tensor was found in the call before
    these: Callable[..., bool] = bool  # tells whether they are found there again
    last: Any = None  # what the form of that forward has told

    def run(*args: Any) -> Any:
        nonlocal at, these, last
        __tracebackhide__ = True
        state: ThreadState = local.state
        handed, state.handed, call = state.handed, None, None
        if handed is None or handed[0] != number or state.paused:
            handed = None
            call = writer.begin(args, state)
        else:
            try:
                ctx, stack, forward = args[0], state.stack, handed[1]
                ctx = ctx if type(ctx) is hidden() else innermost(ctx)
                key, index = id(ctx), next_index()
                links[key] = (forward, number, False, 0, None)
                head: Head = stack[-1][NUMBER] if stack else None, len(args[1])
                call = [index, None, 0.0, writer, head, key, forward, None]
                if sys.stdout is not _heard[0]:
                    prints.follow()
                stack.append(call)
                call[BEGAN] = perf_counter()
            except Exception as error:
                recorder.note(error)
        try:
            result = function(*args)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            if call is not None:
                writer.fail(call, error, state, args)
            raise
        if call is None:
            return result
        if handed is None or call[PRINTED] is not None or _modes():
            _long_way(call, args, result, state, writer)
            return result
        seconds = perf_counter() - call[BEGAN]
        try:
            output, saved = args[2], getattr(ctx, "to_save", None)
            if saved is None:
                saved = ()
            elif type(saved) is not tuple:
                _long_way(call, args, result, state, writer)
                return result
            told, inputs = handed[3][TAKEN][0], args[1]
            if (
                told is not last
                or len(saved) != len(at)
                or not (these(*inputs, *output, *saved) if type(output) is tuple else these(*inputs, output, *saved))
            ):
                met = (*inputs, *output) if type(output) is tuple else (*inputs, output)
                found = places(met, saved)
                if found is None:  # saved something else
                    _long_way(call, args, result, state, writer)
                    return result
                at, these, last = found, picks(len(met), found), told
            level = subject.level
            on_ctx: Any = ()
            if not only_saves or level >= SUMMARY:
                on_ctx = beside_saved(ctx, saved, uses, True, level)
            if on_ctx is not None and id(output) == handed[2]:
                if stack.pop() is not call:
                    _unwind(stack, call)
                add((
                    index, number, "setup_context", forward, SHORT, state.name, seconds, recorder.cell, head,
                    (at, handed[3]), on_ctx,
                ))  # fmt: skip
                if not index % EVERY:
                    ring.settle()
                return result
            _long_way(call, args, result, state, writer)
        except Exception as error:
            writer.incomplete(call, seconds, error, state)
        return result

    return run


def _backward(function: _Method, writer: Writer) -> _Method:
    subject, number, forms, links, add = writer.subject, writer.number, writer.forms, writer.links, writer.add
    next_index, recorder, ring, hidden = writer.next_index, writer.recorder, writer.ring, writer.subject.backward_class

    def run(*args: Any) -> Any:
        __tracebackhide__ = True
        state: ThreadState = local.state
        form, call = forms.last, None
        if form is None or type(args[-1]) is list:
            form = None
            call = writer.begin(args, state)
        else:
            try:
                ctx, index, stack = args[0], next_index(), state.stack
                key = id(ctx if type(ctx) is hidden() else innermost(ctx))
                forward, first, freed, run = None, None, False, 0
                link = links.get(key)
                if link is not None and link[1] == number:
                    forward, _, freed, run, first = link
                    run, first = run + 1, index if first is None else first
                    links[key] = forward, number, freed or not _keep_graph(), run, first
                head: Head = stack[-1][NUMBER] if stack else None, _grad_enabled(), freed, run, first
                call = [index, None, 0.0, writer, head, key, forward, None]
                if sys.stdout is not _heard[0]:
                    prints.follow()
                stack.append(call)
                call[BEGAN] = perf_counter()
            except Exception as error:
                recorder.note(error)
        try:
            result = function(*args)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            if call is not None:
                writer.fail(call, error, state, args)
            raise
        if call is None:
            return result
        if form is None or call[PRINTED] is not None or _modes():
            _long_way(call, args, result, state, writer)
            return result
        seconds = perf_counter() - call[BEGAN]
        try:
            met = (*args[1:], *result) if type(result) is tuple else (*args[1:], result)
            level = subject.level
            taken = form.take(*met) if form.count == len(met) and form.level == level else None
            if taken is not None or (taken := forms.take(met, level)) is not None:
                if stack.pop() is not call:
                    _unwind(stack, call)
                add((
                    index, number, "backward", forward, taken[1], state.name, seconds, recorder.cell, head, taken,
                    None,
                ))  # fmt: skip
                if not index % EVERY:
                    ring.settle()
                return result
            _long_way(call, args, result, state, writer)
        except Exception as error:
            writer.incomplete(call, seconds, error, state)
        return result

    return run


_KINDS: dict[str, Callable[[_Method, Writer], _Method]] = {
    "forward": _forward,
    "setup_context": _setup_context,
    "backward": _backward,
}
for _function in (_long_way, _unwind, beside_saved, innermost, places, caller, prints.follow, Ring.settle,
                  Forms.take, Writer.begin, Writer.end, Writer.fail, Writer.incomplete):  # fmt: skip
    internals.skip_in_dynamo(_function.__code__, with_calls=True)
