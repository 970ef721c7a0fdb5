"""The judge's side: a child, and stand-ins whose forward and backward ask it.

A check calls a stand-in as it would the answer itself. It lives in the judge's process with nothing of the student's in
it: tensors go out and come back. An answer that calls autograd itself to get its gradients right is not seen here.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import os
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nbautograd.core.pytrees import tensors
from nbautograd.core.stumbles import hands_over
from nbautograd.course.marking import wire
from nbautograd.course.marking.child import FORK, KILL, replaced

START = 60.0  # seconds for an import of torch on a machine with other things to do


class LostError(BaseException):
    """The end of a child: no check catches it, so it ends the whole exercise.

    Attributes:
        code: ``"too_slow"``, ``"process_ended"``, ``"out_of_memory"`` or ``"garbled"``.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class BatchError(RuntimeError):
    """A call inside vmap, which is asked one by one instead."""


class Nursery:
    """The process that children are forked from; started anew when it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def born(self, limits: Mapping[str, Any]) -> Nursling:
        """Return a new child, confined, that has run nothing yet."""
        ours, its = socket.socketpair()
        control = self._running()
        try:
            socket.send_fds(control, [FORK], [its.fileno()])
            pid = control.recv(4)
        except OSError:
            pid = b""
        finally:
            its.close()
        if len(pid) < 4:
            self.close()
            raise LostError("process_ended")
        return Nursling(self, pid, ours, limits)

    def kill(self, pid: bytes) -> None:
        """End a child."""
        try:
            self._running().sendall(KILL + pid)
        except OSError:
            self.close()

    def close(self) -> None:
        """End the nursery; its children end with it."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._control = None

    def _running(self) -> socket.socket:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._control is None:
            self._control, its = socket.socketpair()
            self._control.settimeout(START)
            threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
            path = os.pathsep.join([str(Path(__file__).resolve().parents[3]), *filter(None, sys.path)])
            here = {"PYTHONPATH": path, "MPLBACKEND": "agg", **threads}  # what else is set is no business of a student
            here |= {k: os.environ[k] for k in ("PATH", "LD_LIBRARY_PATH", "LANG") if k in os.environ}
            command = [sys.executable, "-m", "nbautograd.course.marking.child", str(its.fileno())]
            null = subprocess.DEVNULL
            self._process = subprocess.Popen(
                command, pass_fds=[its.fileno()], stdin=null, stdout=null, stderr=null, env=here, cwd="/",
                start_new_session=True,
            )  # fmt: skip
            its.close()
        return self._control


class Nursling:
    """A child as the judge sees it: questions go in, answers come out, within its seconds.

    Attributes:
        layers: of its confinement.
        left: seconds that it may still take to answer, all questions together.
    """

    def __init__(self, nursery: Nursery, pid: bytes, channel: socket.socket, limits: Mapping[str, Any]) -> None:
        self._nursery, self._pid, self._channel = nursery, pid, channel
        self._freed: list[int] = []
        self.left = START
        start = {"memory": int(limits["memory"]), "seconds": int(limits["seconds"]) + 2}
        self.layers = [str(x) for x in self._exchange({"limits": start}, b"")[0]["layers"]]
        self.left = float(limits["seconds"])

    def __enter__(self) -> Nursling:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        self._nursery.kill(self._pid)

    def start(self, cells: Sequence[tuple[str, str]], name: str) -> tuple[dict[str, Any], bytes]:
        """Run the cells; returns what kind of thing the answer is."""
        return self._exchange({"cells": list(cells), "name": name}, b"")

    def ask(self, op: str, given: Any = None, **more: Any) -> tuple[dict[str, Any], bytes]:
        """Ask a question.

        Raises:
            CannotCrossError: when something in ``given`` cannot be sent.
            LostError: when there is no answer.
            Exception: what the answer raised.
        """
        held = bytearray()
        try:
            coded = {"given": wire.encode(given, held), "random": wire.encode(torch.get_rng_state(), held)}
        except NotImplementedError as error:  # torch's own, for a tensor inside vmap: it has no bytes
            raise BatchError(str(error)) from None
        freed, self._freed = self._freed, []
        answer, blob = self._exchange({"op": op, "free": freed, **coded, **more}, held)
        if "raised" in answer:
            _raise(answer["raised"])
        if "random" in answer:
            torch.set_rng_state(self.decoded(answer["random"], blob))
        return answer, blob

    def decoded(self, coded: Any, blob: bytes) -> Any:
        """Return a value of an answer."""
        try:
            return wire.decode(coded, blob)
        except wire.WireError:
            raise LostError("garbled") from None

    def changed(self, answer: Mapping[str, Any], blob: bytes, given: Sequence[Any]) -> None:
        """Write into the judge's tensors what the answer wrote into its own."""
        for k, coded in answer["changed"]:
            now = self.decoded(coded, blob)
            if isinstance(given[k], Tensor) and isinstance(now, Tensor) and given[k].shape == now.shape:
                with torch.no_grad():
                    given[k].copy_(now)

    def watch(self, holder: Any, number: int) -> None:
        """Let the child forget a call when nothing in the judge refers to it any more."""
        weakref.finalize(holder, self._freed.append, number)

    def _exchange(self, question: Any, blob: bytes | bytearray) -> tuple[dict[str, Any], bytes]:
        begun = time.monotonic()
        try:
            self._channel.settimeout(max(self.left, 0.01))
            wire.send(self._channel, question, blob)
            answer, came = wire.receive(self._channel, self.left)
        except TimeoutError:
            raise LostError("too_slow") from None
        except (EOFError, OSError):
            raise LostError("process_ended") from None
        except wire.WireError:
            raise LostError("garbled") from None
        self.left -= time.monotonic() - begun
        if not isinstance(answer, dict):
            raise LostError("garbled")
        if "lost" in answer:
            raise LostError("out_of_memory")
        return answer, came


@hands_over
def _raise(told: Any) -> None:
    """Raise what the answer raised, from the same line of a cell."""
    kind = getattr(builtins, str(told["kind"]), None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind = RuntimeError
    name = str(told["type"])[:80]
    try:
        error = (kind if kind.__name__ == name else type(name, (RuntimeError,), {}))(str(told["text"])[:500])
    except Exception:  # silent: a kind that wants more than a text, as UnicodeDecodeError does
        error = type(name, (RuntimeError,), {})(str(told["text"])[:500])
    line = told["line"]
    if isinstance(line, int) and 0 < line < 10_000:
        exec(compile("\n" * (line - 1) + "raise error", "<submission>", "exec"), {"error": error})
    raise error


class Asked:
    """One call of the answer, as ctx keeps it: no tensor is in here, so that ctx holds no output of its own.

    Attributes:
        tensors: for each argument, True if it is a tensor.
        in_place: True if it returned an argument.
        many: True if it returned several values.
    """

    def __init__(self, child: Nursling, number: int, args: Any, in_place: bool, value: Any) -> None:
        self.child, self.number, self.in_place = child, number, in_place
        self.tensors = [isinstance(x, Tensor) for x in args]
        self.many = isinstance(value, (tuple, list))
        child.watch(self, number)

    def vjp(self, grads: Sequence[Tensor | None], graph: bool) -> tuple[list[Any], dict[str, Any]]:
        """Return the gradients, and what else the child said of them."""
        answer, blob = self.child.ask("vjp", tuple(grads), call=self.number, graph=graph)
        self.child.changed(answer, blob, grads)
        found = [self.child.decoded(g, blob) for g in answer["grads"]]
        if len(found) != len(answer["graph"]):
            raise LostError("garbled")
        return found, answer

    def pulled(self, found: Sequence[Any]) -> tuple[Any, ...]:
        """Return the gradients of tensors, each at the place of its argument."""
        each = iter(found)
        return tuple(next(each, None) if is_tensor else None for is_tensor in self.tensors)

    def jvp(self, tangents: Sequence[Tensor | None]) -> Any:
        """Return the tangents of the outputs."""
        answer, blob = self.child.ask("jvp", tuple(tangents), call=self.number)
        found = tuple(self.child.decoded(t, blob) for t in answer["tangents"])
        return found if self.many or not found else found[0]


class Answered:
    """What came back from a call: its value, and what ctx is to be told.

    Args:
        child: to ask.
        args: the arguments, and those by name.
        dims: of the batch, under vmap.
    """

    def __init__(self, child: Nursling, args: Sequence[Any], kwargs: Mapping[str, Any], dims: Any = None) -> None:
        self.given = list(tensors((args, kwargs)))
        needs, leaf = [x.requires_grad for x in self.given], [x.is_leaf for x in self.given]
        answer, blob = child.ask("forward", ((tuple(args), dict(kwargs)), dims), needs=needs, leaf=leaf)
        value = child.decoded(answer["value"], blob)
        outputs = list(tensors(value))
        if not len(outputs) == len(answer["grad"]) == len(answer["same"]):
            raise LostError("garbled")
        child.changed(answer, blob, self.given)
        known = range(len(self.given))
        self.same = {id(y): self.given[k] for y, k in zip(outputs, answer["same"], strict=True) if k in known}
        self.value = replaced(value, self.same)
        self.outputs = tuple(tensors(self.value))
        asked_for = any(needs)  # of a call that wants no gradient, as in forward mode, nothing is known
        self.plain = [y for y, grad in zip(self.outputs, answer["grad"], strict=True) if asked_for and not grad]
        self.asked = Asked(child, int(answer["call"]), args, bool(self.same), value)

    def set_up(self, ctx: Any) -> None:
        """Tell torch of the call what the answer told it."""
        ctx.asked = self.asked
        ctx.set_materialize_grads(False)
        if self.same:
            ctx.mark_dirty(*self.same.values())
        else:
            ctx.save_for_backward(*self.given)
        ctx.mark_non_differentiable(*self.plain)


class _Gradient(Function):
    """The vjp, to be differentiated itself: its inputs are those of the call and the grad_outputs."""

    @staticmethod
    def forward(ctx: Any, asked: Asked, count: int, told: dict[str, Any], *given: Tensor | None) -> Any:
        found, answer = asked.vjp(given[count:], True)
        told.update(answer)
        ctx.child, ctx.number = asked.child, int(answer["call"])
        asked.child.watch(ctx, ctx.number)
        ctx.set_materialize_grads(False)
        ctx.places = [k for k, g in enumerate(found) if isinstance(g, Tensor)]
        kinds = zip(found, answer["graph"], strict=True)
        ctx.mark_non_differentiable(*(g for g, kind in kinds if isinstance(g, Tensor) and kind == 0))
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        answer, blob = ctx.child.ask("second", tuple(grads[k] for k in ctx.places), call=ctx.number)
        return (None, None, None, *(ctx.child.decoded(g, blob) for g in answer["grads"]))


@hands_over
def _pull(ctx: Any, grads: Sequence[Tensor | None]) -> tuple[list[Any], bool]:
    """Return the gradients, and whether they are what a backward returned, one for each argument."""
    asked: Asked = ctx.asked
    if not torch.is_grad_enabled() or asked.in_place:
        found, answer = asked.vjp(grads, False)
        return found, bool(answer["raw"])
    told: dict[str, Any] = {}
    inputs = ctx.saved_tensors
    found = list(_Gradient.apply(asked, len(inputs), told, *inputs, *grads))  # type: ignore[no-untyped-call]
    if 2 in told["graph"]:
        ended: Any = once_differentiable(lambda ctx, *g: tuple(found))(ctx, *grads)
        found = [ended] if isinstance(ended, Tensor) else list(ended)
    return found, bool(told["raw"])


def class_of(child: Nursling, about: Mapping[str, Any]) -> type[Function]:
    """Return a Function class that stands for the one in the child."""
    latest: list[Answered] = []

    def forward(*inputs: Any) -> Any:
        latest[:] = [Answered(child, inputs, {})]
        return latest[0].value

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        latest.pop().set_up(ctx)

    def combined(ctx: Any, *inputs: Any) -> Any:
        answered = Answered(child, inputs, {})
        answered.set_up(ctx)
        return answered.value

    def backward(ctx: Any, *grads: Any) -> Any:
        found, raw = _pull(ctx, grads)
        return tuple(found) if raw else ctx.asked.pulled(found)

    def jvp(ctx: Any, *tangents: Any) -> Any:
        return ctx.asked.jvp([t for t, is_tensor in zip(tangents, ctx.asked.tensors, strict=True) if is_tensor])

    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        value = _Whole.apply(child, in_dims, *inputs)  # type: ignore[no-untyped-call]
        return value, 0 if isinstance(value, Tensor) else (0,) * len(value)

    methods: dict[str, Any] = {"forward": forward, "setup_context": setup_context, "backward": backward}
    if about["combined"]:
        methods = {"forward": combined, "backward": backward}
    methods |= {name: method for name, method in (("jvp", jvp), ("vmap", vmap)) if about[name]}
    methods = {name: _without_source(method) for name, method in methods.items()}
    _name_arguments(methods["forward"], about)
    named = {name: staticmethod(method) for name, method in methods.items()}
    return type(str(about["name"])[:80], (Function,), named)


def _name_arguments(function: Any, about: Mapping[str, Any]) -> None:
    """Give a function the answer's names and defaults of its arguments, if they are that."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    with contextlib.suppress(TypeError, ValueError):
        named = [
            inspect.Parameter(str(name), kind, default=default[0] if default else inspect.Parameter.empty)
            for name, *default in about["parameters"]
        ]
        if named:
            function.__signature__ = inspect.Signature(named)


def _without_source(function: Any) -> Any:
    """Return the function without a file: what reads an answer's source must not read this one."""
    code = function.__code__.replace(co_filename="<in the child>")
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__qualname__ = function.__name__
    return made


def function_of(child: Nursling, name: str, about: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function that stands for the one in the child."""

    def answer(*args: Any, **kwargs: Any) -> Any:
        arguments = _Arguments((args, kwargs))
        if not arguments.tensors:
            return Answered(child, args, kwargs).value
        found = iter(_Any.apply(child, arguments, *arguments.tensors))  # type: ignore[no-untyped-call]
        return replaced(arguments.value, {id(y): next(found) for y in tensors(arguments.value)})

    answer.__name__ = answer.__qualname__ = name
    _name_arguments(answer, about)
    return answer


class _Arguments:
    """Arguments of a call, and what came back: an object, as torch.func copies lists and tuples on their way."""

    def __init__(self, args: Any) -> None:
        self.args, self.tensors = args, tuple(tensors(args))
        self.value: Any = None
        self.answered: Answered | None = None

    def filled(self, given: Sequence[Any]) -> Any:
        return replaced(self.args, dict(zip(map(id, self.tensors), given, strict=True)))


class _Any(Function):
    """A call of a function with any arguments; its tensors are inputs, in order."""

    @staticmethod
    def forward(child: Nursling, arguments: _Arguments, *given: Tensor) -> Any:
        arguments.answered = Answered(child, *arguments.filled(given))
        arguments.value = arguments.answered.value
        return arguments.answered.outputs

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        answered, inputs[1].answered = inputs[1].answered, None
        if answered is None:
            raise BatchError("a gradient around a batch")
        answered.set_up(ctx)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, *_pull(ctx, grads)[0])

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        found = ctx.asked.jvp(tangents[2:])
        return found if isinstance(found, tuple) else (found,)

    @staticmethod
    def vmap(info: Any, in_dims: Any, child: Nursling, arguments: _Arguments, *given: Tensor) -> Any:
        inputs = arguments.filled(given)[0]
        dims = dict(zip(map(id, given), in_dims[2:], strict=True))
        where = tuple(dims.get(id(x)) for x in inputs)
        arguments.value = _Whole.apply(child, where, *inputs)  # type: ignore[no-untyped-call]
        outputs = arguments.value if isinstance(arguments.value, tuple) else (arguments.value,)
        return outputs, (0,) * len(outputs)


class _Whole(Function):
    """A call under vmap, which the child runs: its batch is the first dimension of what comes back."""

    @staticmethod
    def forward(ctx: Any, child: Nursling, dims: Any, *inputs: Any) -> Any:
        answered = Answered(child, inputs, {}, tuple(dims))
        answered.set_up(ctx)
        return answered.value

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, *ctx.asked.pulled(_pull(ctx, grads)[0]))
