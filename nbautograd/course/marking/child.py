"""The child: runs the cells of one answer and answers what it gives, with nothing in reach that says what is right.

``python -m nbautograd.course.marking.child FD`` is the nursery: it imports torch once, then forks a child for every
socket that the judge sends it over ``FD``. A fork takes 10 ms, an import of torch 2 s. The nursery runs nothing of
what was handed in, and holds nothing that a child could find.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib
import inspect
import itertools
import linecache
import os
import signal
import socket
import sys
import tempfile
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from nbautograd.core.checking.backward_call import backward_replaced, nodes, user_backward
from nbautograd.core.checking.prepared_inputs import callable_of
from nbautograd.core.checking.quiet import seed_all
from nbautograd.core.migration import recognise
from nbautograd.core.numerics.compare import agree_bitwise
from nbautograd.core.pytrees import tensors
from nbautograd.core.user_source import function_class
from nbautograd.course.attempt import Attempt, is_float, plain
from nbautograd.course.catalogue import declared_by
from nbautograd.course.checks import ROUTINES
from nbautograd.course.marking import wire
from nbautograd.course.marking.confine import confine
from nbautograd.course.result import failure_dict

FUNCTIONS = FunctionType, BuiltinFunctionType, MethodType
Changed = list[list[Any]]


class ChildCall:
    """One call of the answer: what went in, what came out, and the graph between them.

    Attributes:
        args: copies of the arguments.
        leaves: the tensors that are differentiated, one per tensor that went in; None for the others.
        outputs: the tensors that came out.
        batched: True under vmap, where a Function gets other tensors than went in: its batches moved or put together.
    """

    def __init__(self, args: Any, leaves: list[Tensor | None], outputs: list[Tensor], batched: bool = False) -> None:
        self.args, self.leaves, self.outputs, self.batched = args, leaves, outputs, batched


class Child:
    """Answers of one child to the judge's questions, one method each.

    Args:
        cells: file name and text, in the order in which they run.
        name: what the answer is called.
    """

    def __init__(self, cells: Sequence[tuple[str, str]], name: str) -> None:
        self.name = name
        self.raised: dict[str, Any] | None = None
        self.calls: dict[int, ChildCall] = {}
        self._numbers = itertools.count()
        self.text = cells[-1][1] if cells else ""
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        for file, text in cells:
            self._run(file, text)
        self.answer = self.namespace.get(name, ...)
        self.cls = self.answer if isinstance(self.answer, type) and function_class(self.answer) else None

    def _run(self, file: str, text: str) -> None:
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        try:
            exec(compile(text, file, "exec"), self.namespace)
        except Exception as error:  # silent: a notebook's next cell runs as well, with what was defined before
            self.raised = raised(error)

    def described(self, blob: bytearray) -> dict[str, Any]:
        """Tell the judge what kind of thing the answer is."""
        said: dict[str, Any] = {"raised": self.raised, "name": type(self.answer).__name__}
        if self.name not in self.namespace:
            return {**said, "kind": "missing"}
        if self.cls is not None:
            cls: Any = self.cls
            own = {n: getattr(cls, n) is not getattr(torch.autograd.Function, n) for n in ("jvp", "vmap")}
            own["vmap"] |= bool(cls.generate_vmap_rule)
            combined = cls.setup_context is torch.autograd.Function.setup_context
            legacy = recognise(self.cls) is not None
            said["parameters"] = parameters(cls.forward)
            return {**said, "kind": "class", "name": self.cls.__name__, "combined": combined, "legacy": legacy, **own}
        if isinstance(self.answer, FUNCTIONS):
            return {**said, "kind": "function", "parameters": parameters(self.answer)}
        with contextlib.suppress(wire.CannotCrossError):
            return {**said, "kind": "data", "value": wire.encode(self.answer, blob)}
        return {**said, "kind": "object"}

    def forward(self, args: Any, needs: Sequence[bool], leaf: Sequence[bool], dims: Any, blob: bytearray) -> Any:
        """Call the answer; the graph is kept under the number that ``call`` is."""
        given = list(tensors(args))
        kept = [x.clone() for x in given]
        leaves: list[Tensor | None] = []
        handed = {}
        for x, needed, is_leaf in zip(given, needs, leaf, strict=True):
            leaves.append(x.requires_grad_() if needed else None)
            handed[id(x)] = x if is_leaf or not needed else x.clone()  # in place on a leaf is an error of torch's own
        positional, named = replaced(args, handed)
        call = callable_of(self.answer)
        raw = call(*positional, **named) if dims is None else torch.func.vmap(call, in_dims=tuple(dims))(*positional)
        outputs = list(tensors(raw))
        inputs = list(handed.values())
        number = next(self._numbers)
        with_copies = replaced(args, dict(zip(map(id, given), kept, strict=True)))
        self.calls[number] = ChildCall(with_copies, leaves, outputs, dims is not None)
        same = [next((k for k, x in enumerate(inputs) if y is x), None) for y in outputs]
        return {
            "call": number,
            "value": wire.encode(_plain(raw), blob, lambda v: {"foreign": type(v).__name__}),
            "grad": [y.requires_grad for y in outputs],
            "same": same,
            "changed": _changed(inputs, kept, blob),
        }

    def vjp(self, call: int, grads: Sequence[Tensor | None], graph: bool, blob: bytearray) -> Any:
        """Run backward; of a Function class that stands alone in the graph, what its backward returned, as it is."""
        done = self.calls[call]
        grads = [g.requires_grad_() if graph and g is not None and is_float(g) else g for g in grads]
        handed = [None if g is None else g.clone() if graph else g for g in grads]
        before = [None if g is None else g.detach().clone() for g in handed]
        found, is_raw = self._pulled(done, handed, graph)
        changed = _changed(handed, before, blob)
        number = next(self._numbers)
        self.calls[number] = ChildCall((), [*done.leaves, *grads], [g for g in found if isinstance(g, Tensor)])
        kinds = [_graph_of(g) if graph else 0 for g in found]
        coded = [wire.encode(_plain(g), blob, lambda v: {"foreign": type(v).__name__}) for g in found]
        return {"call": number, "grads": coded, "graph": kinds, "raw": is_raw, "changed": changed}

    def _pulled(self, done: ChildCall, grads: Sequence[Tensor | None], graph: bool) -> tuple[Sequence[Any], bool]:
        pairs = [(y, g) for y, g in zip(done.outputs, grads, strict=True) if g is not None and y.requires_grad]
        leaves = [x for x in done.leaves if x is not None]
        if not pairs or not leaves:
            return [None] * len(done.leaves), False
        ys, gs = zip(*pairs, strict=True)
        options = {"retain_graph": True, "create_graph": graph, "allow_unused": True}
        own = nodes(done.outputs)
        if done.batched or self.cls is None or len(own) != 1 or own[0]._forward_cls is not self.cls:
            found = iter(torch.autograd.grad(ys, leaves, gs, **options))
            return [None if x is None else next(found) for x in done.leaves], False
        returned: list[Any] = []

        def backward(ctx: Any, *received: Any) -> Any:
            result = user_backward(self.cls)(ctx, *received)
            returned[:] = [result]
            return result

        with backward_replaced(own[0], backward):
            try:
                torch.autograd.grad(ys, leaves, gs, **options)
            except Exception:  # silent: of what was returned the judge's own engine says the same
                if not returned:
                    raise
        if not returned:
            return [None] * len(done.leaves), False
        return returned[0] if isinstance(returned[0], tuple) else (returned[0],), True

    def second(self, call: int, grads: Sequence[Tensor | None], blob: bytearray) -> Any:
        """Differentiate what ``vjp`` gave, with respect to inputs and grad_outputs."""
        done = self.calls[call]
        pairs = [(y, g) for y, g in zip(done.outputs, grads, strict=True) if g is not None and y.requires_grad]
        wanted = [x for x in done.leaves if x is not None and x.requires_grad]
        found: Iterator[Tensor | None] = iter([None] * len(wanted))
        if pairs and wanted:
            ys, gs = zip(*pairs, strict=True)
            found = iter(torch.autograd.grad(ys, wanted, gs, retain_graph=True, allow_unused=True))
        ordered = [next(found) if x is not None and x.requires_grad else None for x in done.leaves]
        return {"grads": [wire.encode(_plain(g), blob) for g in ordered]}

    def jvp(self, call: int, tangents: Sequence[Tensor | None], blob: bytearray) -> Any:
        """Run forward mode."""
        args = self.calls[call].args
        with forward_ad.dual_level():
            dual = {
                id(x): x if t is None else forward_ad.make_dual(x, t)
                for x, t in zip(tensors(args), tangents, strict=True)
            }
            positional, named = replaced(args, dual)
            raw = callable_of(self.answer)(*positional, **named)
            found = [forward_ad.unpack_dual(y).tangent for y in tensors(raw)]
        return {"tangents": [wire.encode(_plain(t), blob) for t in found]}

    def report(self, texts: Mapping[str, str], exercise: str, check: str, seed: int) -> Any:
        """Make a check here, in the submission's own process; the judge notes that it had to be believed."""
        attempt = Attempt(declared_by(texts, [exercise])[exercise], self.answer, seed, self.text)
        return {"failures": [failure_dict(failure) for failure in ROUTINES[check](attempt)]}


def parameters(function: Any) -> list[list[Any]]:
    """Return the names and defaults of a function's arguments; nothing where it takes any number, or odd defaults.

    Sentences name the arguments, and ``apply`` of a Function with ``setup_context`` fills in the defaults.
    """
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    plain_kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    fine = all(
        p.kind in plain_kinds
        and (p.default is p.empty or p.default is None or type(p.default) in (bool, int, float, str))
        for p in found
    )
    return [[p.name, *([] if p.default is p.empty else [p.default])] for p in found] if fine else []


def raised(error: BaseException) -> dict[str, Any]:
    """Return an exception as plain data: its kind, its text and the line of the cell."""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith("<"):
            line = trace.tb_lineno
        trace = trace.tb_next
    kinds = [t.__name__ for t in type(error).__mro__ if getattr(builtins, t.__name__, None) is t]
    return {"type": type(error).__name__, "kind": kinds[0], "text": str(error)[:500], "line": line}


def replaced(value: Any, handed: Mapping[int, Any]) -> Any:
    """Return a value with others in the place of tensors, by their ids."""
    if isinstance(value, Tensor):
        return handed.get(id(value), value)
    if type(value) in (tuple, list):
        return type(value)(replaced(x, handed) for x in value)
    return {k: replaced(x, handed) for k, x in value.items()} if isinstance(value, dict) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return plain(value)
    return type(value)(map(_plain, value)) if type(value) in (tuple, list) else value


def _graph_of(gradient: Any) -> int:
    """Return 0 for a gradient without a graph, 1 for one with, 2 where ``once_differentiable`` ends it."""
    if not isinstance(gradient, Tensor) or not gradient.requires_grad:
        return 0
    return 2 if "Error" in type(gradient.grad_fn).__name__ else 1


def _changed(now: Sequence[Any], before: Sequence[Any], blob: bytearray) -> Changed:
    with torch.no_grad():
        return [
            [k, wire.encode(plain(x), blob)]
            for k, (x, was) in enumerate(zip(now, before, strict=True))
            if isinstance(x, Tensor) and not agree_bitwise(plain(x), was)
        ]


def serve(channel: socket.socket) -> None:
    """Answer the judge until it hangs up; runs in a process of its own."""
    start, _ = wire.receive(channel)
    wire.send(channel, {"layers": confine(start["limits"])})
    child: Child | None = None
    while True:
        question, blob = wire.receive(channel)
        answer, held = {}, bytearray()
        try:
            if child is None:
                child = Child([(file, text) for file, text in question["cells"]], question["name"])
                answer = child.described(held)
            else:
                for number in question["free"]:
                    child.calls.pop(number, None)
                answer = _with_numbers(child, question, blob, held)
        except MemoryError:
            held.clear()
            answer = {"lost": "out_of_memory"}
        except Exception as error:
            held.clear()
            answer = {"raised": raised(error)}
        wire.send(channel, answer, held)


def _with_numbers(child: Child, question: dict[str, Any], blob: bytes, held: bytearray) -> Any:
    """Answer with the judge's random numbers: what draws here draws what it would have drawn there."""
    state = wire.decode(question["random"], blob)
    seed_all(zlib.crc32(state.numpy()))
    torch.default_generator.set_state(state)
    answer = _answered(child, question, wire.decode(question["given"], blob), held)
    after = torch.default_generator.get_state()
    if not torch.equal(after, state):
        answer["random"] = wire.encode(after, held)
    return answer


def _answered(child: Child, question: dict[str, Any], given: Any, held: bytearray) -> Any:
    match question["op"]:
        case "forward":
            args, dims = given
            return child.forward(args, question["needs"], question["leaf"], dims, held)
        case "vjp":
            return child.vjp(question["call"], given, question["graph"], held)
        case "second":
            return child.second(question["call"], given, held)
        case "jvp":
            return child.jvp(question["call"], given, held)
        case "report":
            return child.report(question["texts"], question["exercise"], question["check"], question["seed"])
    raise ValueError(question["op"])


FORK, KILL = b"F", b"K"


def nursery(control: socket.socket) -> None:
    """Fork a child for every socket that comes, and end those that the judge is done with."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the judge's
    sys.dont_write_bytecode = True
    gc.freeze()
    while True:
        order, sockets, _, _ = socket.recv_fds(control, 5, 1)
        if not order:
            return
        if order[:1] == KILL:
            pid = int.from_bytes(order[1:], "little")
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            continue
        pid = os.fork()
        if pid == 0:
            control.close()
            os.setsid()
            with contextlib.suppress(BaseException):
                serve(socket.socket(fileno=sockets[0]))
            os._exit(0)
        os.close(sockets[0])
        control.sendall(pid.to_bytes(4, "little"))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    tempfile.tempdir = "/tmp"  # some imports ask for it, and Python looks for one that can be written to
    importlib.import_module("torch.fx.experimental.symbolic_shapes")  # a first backward imports it, with sympy: 0.3 s
    torch.set_num_threads(1)
    nursery(socket.socket(fileno=int(sys.argv[1])))
