"""Problem: what is being checked, ready to be called and differentiated as often as a check needs."""

from __future__ import annotations

import contextlib
import functools
import inspect
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nbautograd.core import pytrees, stumbles
from nbautograd.core.checking import prepared_inputs
from nbautograd.core.checking.budget import Meter, note_users
from nbautograd.core.checking.outside_state import ClassState, SharedTensors, names_outside, reachable
from nbautograd.core.checking.prepared_inputs import refuse_unreadable, unreadable_kind
from nbautograd.core.checking.quiet import Numbers, own_generators, quiet
from nbautograd.core.display import Phrase
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.compare import agree_bitwise
from nbautograd.core.stumbles import hands_over
from nbautograd.core.torch_private import library
from nbautograd.core.torch_private.casts import CastWatch, spacing
from nbautograd.core.torch_private.nodes import graph_nodes
from nbautograd.core.torch_private.tensors import gradients
from nbautograd.core.user_source import FunctionSource, function_class, read_source
from nbautograd.errors import InputError


@dataclass
class Casts:
    """Coarseness of the numbers inside a function and its backward, however precise their inputs and outputs are.

    Attributes:
        in_forward, in_backward: the coarsest dtype that finer numbers were rounded to on their way to an output or to a
            gradient; None where none were.
        hidden: the same of numbers that forward rounded and that reach no output, such as those that are saved in few
            bytes.
    """

    in_forward: torch.dtype | None = None
    in_backward: torch.dtype | None = None
    hidden: torch.dtype | None = None

    @property
    def forward(self) -> float:
        """Spacing at 1 of the numbers inside forward; 0 where none were rounded."""
        return spacing(self.in_forward)

    @property
    def backward(self) -> float:
        """Spacing at 1 of the numbers inside backward; 0 where none were rounded."""
        return spacing(self.in_backward)

    @property
    def dtype(self) -> torch.dtype | None:
        """The coarser one of both."""
        return max(self.in_forward, self.in_backward, key=spacing)

    @property
    def coarsest(self) -> float:
        """The larger spacing of both."""
        return spacing(self.dtype)


class Outputs(tuple[Tensor, ...]):
    """The output tensors of one call, the inputs that this call was given, and what the function rounds to inside."""

    inputs: tuple[Any, ...]
    casts: Casts
    used_up = False  # True once a backward of this graph raised that one of another graph does not

    def __new__(cls, tensors: Sequence[Tensor], inputs: tuple[Any, ...], casts: Casts) -> Outputs:
        """Remember inputs and casts beside the tensors."""
        self = super().__new__(cls, tensors)
        self.inputs, self.casts = inputs, casts
        return self


class Problem:
    """A Function (or any callable) with the inputs to check it at.

    Complex tensors are differentiated as pairs of real numbers: wherever a Jacobian is spoken of, they count as real
    tensors with one more dimension of size 2 (real, imaginary) at the end, as ``torch.view_as_real`` shows them.

    Args:
        fn: a Function class, its ``apply`` or any callable; an operation made by ``torch.library.custom_op`` counts as
            a Function of the methods that were registered for it.
        inputs: what to call it with; a single tensor counts as a tuple of one.
        seed: given to all random generators before each call and each backward.

    Attributes:
        fn: what is called.
        assumed: positions of inputs that are checked although they require no grad.
        cls: the Function class, or the only one in the graph of a callable's outputs; None when there is none.
        direct: True when ``fn`` is the class itself or its ``apply``, so that inputs are the arguments of forward.
        source: what the source of ``cls`` tells, or None.
        inputs: detached copies of the inputs, strides kept, requiring grad as the caller's did.
        differentiable: positions of the floating or complex tensors among them that require grad.
        output_names: one per output tensor; filled in by the first call.
        has_functions: True when there is any Function in the graph of the outputs.
        arguments: which argument of the Function's forward each input became, by its position, as far as it was handed
            on as it is; filled in by the first call.
        state: what the class kept outside ctx before its first call; before the second for a callable around it.
        meter: counts how often forward and backward were run.
        numbers: knows whether the function draws random numbers.
        kept: bytes that one call keeps for its backward; filled in by the check.
        read_outside: positions of inputs that the function also reads, or only, from outside its arguments.
        casts: what numbers are rounded to inside; filled in by the first call, and by backwards that are watched.
        sampled: True for a function along a few directions of the inputs that stands for one of all elements.
        shared: the tensors that the function reaches besides its inputs, during a session.
        stream: of the points at which it is asked, during a session; see ``points``.
        overwrites: names of tensors that it is meant to write over, which is no break of the contract then.

    Raises:
        CallError: ``fn`` cannot be called, is an old-style Function, or the inputs are no tuple.
        InputError: nothing among the inputs can be differentiated.

    Example:
        >>> import torch
        >>> from nbautograd.core.checking.problem import Problem
        >>> problem = Problem(lambda x: x * x, torch.tensor([3.0], requires_grad=True))
        >>> outputs = problem.call()
        >>> problem.vjp(outputs, [torch.ones(1)])
        (tensor([6.]),)
    """

    def __init__(self, fn: Any, inputs: Any, seed: int = 0, *, assume_grad: bool = False) -> None:
        fn = library.as_function(fn)
        self.fn = prepared_inputs.callable_of(fn)
        self.inputs = prepared_inputs.prepare(inputs, assume_grad)
        given = (inputs,) if isinstance(inputs, Tensor) else inputs
        pairs = enumerate(zip(self.inputs, given, strict=True))
        self.assumed = tuple(
            i
            for i, (x, y) in pairs
            if prepared_inputs.is_differentiable(x) and not prepared_inputs.is_differentiable(y)
        )
        self._containers = any(not isinstance(x, Tensor) and prepared_inputs.copy(x) is not x for x in self.inputs)
        self.differentiable = tuple(i for i, item in enumerate(self.inputs) if prepared_inputs.is_differentiable(item))
        self.seed = seed
        bound = isinstance(fn, functools.partial) and fn.args  # a callable around the class: its inputs are the others
        self.cls: type | None = None if bound else function_class(fn)
        self.direct = self.has_functions = self.cls is not None
        self.source: FunctionSource | None = None if self.cls is None else _source(self.cls)
        self.input_names = _input_names(self._signed(), self.source if self.direct else None, len(self.inputs))
        self.output_names: tuple[str, ...] = ()
        self.arguments: dict[int, int] = {i: i for i in range(len(self.inputs))} if self.direct else {}
        self._originals = tuple(weakref.ref(item) if isinstance(item, Tensor) else None for item in given)
        self.read_outside: tuple[int, ...] = ()
        self.state = ClassState(self.cls)
        self.meter = Meter()
        self.numbers = Numbers()
        self.kept = 0
        self.casts = Casts()
        self.shared = SharedTensors(())
        self.stream: Any = None
        self._used: list[tuple[str, Any]] = []
        self.mutates_inputs = self.sampled = False
        self.overwrites: frozenset[str] = frozenset()
        self._through_clone = False
        self._differentiates = False  # it calls torch.autograd.grad by itself, as a gradient penalty does
        self._depth = 0

    def _signed(self) -> Callable[..., Any]:
        if isinstance(self.fn, torch.nn.Module):
            return self.fn.forward
        cls = function_class(self.fn)
        if cls is None:
            return self.fn
        forward: Callable[..., Any] = cls.forward  # type: ignore[attr-defined]
        given = getattr(self.fn, "args", ()) if self.cls is None else ()
        return functools.partial(forward, *([] if separate_context(cls) else [None]), *given)

    @property
    def name(self) -> str:
        """Name of the Function in sentences: the class's, else the function's."""
        if self.cls is not None:
            return self.cls.__name__
        return getattr(self.fn, "__name__", type(self.fn).__name__)

    @property
    def notes(self) -> tuple[Phrase, ...]:
        """What is checked although no input requires grad, and which floating inputs are not."""
        if not self.assumed:
            return ()
        left_out = [i for i, x in enumerate(self.inputs) if prepared_inputs.is_floating(x) and i not in self.assumed]
        which = "checking.assumed_grad_but" if left_out else "checking.assumed_grad"
        checked, left = (", ".join(f"`{self.input_names[i]}`" for i in some) for some in (self.assumed, left_out))
        return (Phrase(which, names=checked, left=left) if left_out else Phrase(which, names=checked),)

    @property
    def identity(self) -> str:
        """Module and qualified name of what is checked, by which Functions of one name are told apart."""
        checked = self.cls if self.cls is not None else self.fn
        return f"{getattr(checked, '__module__', '')}.{getattr(checked, '__qualname__', self.name)}"

    @contextlib.contextmanager
    def session(self, *, recorded: bool = False) -> Iterator[None]:
        """Stay in the quiet room for several calls; each call enters it by itself otherwise."""
        if self._depth:
            yield
            return
        note_users(self.cls)
        with quiet(recorded=recorded):
            used = [*reachable(self.fn, self.cls, dict(zip(self.input_names, self.inputs, strict=True)))]
            self._used, self.shared = used, SharedTensors(used)
            self._depth += 1
            try:
                with own_generators(one for _, one in used):
                    yield
            finally:
                self._depth -= 1
                self.stream = None  # its graphs with it
                self.shared.put_back()

    def disown(self) -> None:
        """Speak for no Function class any more: the only one inside a callable was not shown to be wrong."""
        self.cls = self.source = None
        self.state, self.arguments = ClassState(None), {}

    def fresh(self) -> tuple[Any, ...]:
        """Return new copies of the inputs, tensors among them requiring grad as ``inputs`` do."""
        return tuple(prepared_inputs.copy(item) for item in self.inputs)

    def changed_inputs(
        self,
        change: Callable[[Tensor], Tensor],
        positions: Sequence[int] | None = None,
        inputs: Sequence[Any] | None = None,
    ) -> tuple[Any, ...]:
        """Return copies of these inputs (the problem's by default), those at some positions changed.

        By default they are all to differentiate.
        """
        which = self.differentiable if positions is None else positions
        given = self.fresh() if inputs is None else map(prepared_inputs.copy, inputs)
        return tuple(change(x.detach()).requires_grad_() if k in which else x for k, x in enumerate(given))

    def handed(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return what one call is handed for these inputs: containers among them anew, the rest as it is."""
        return [x if isinstance(x, Tensor) else prepared_inputs.copy(x) for x in inputs] if self._containers else inputs

    def call(self, inputs: tuple[Any, ...] | None = None, seed: int | None = None) -> Outputs:
        """Call the function with the random generators seeded; on fresh copies of the inputs when none are given.

        Args:
            inputs: what to call it with.
            seed: given to the generators in place of the problem's own.

        Returns:
            The output tensors, flat and in order (lists, tuples and dicts opened, other objects left out).
        """
        seed = self.seed if seed is None else seed
        with self.session():
            if not self.output_names:
                return self._first_call(inputs, seed)
            given = self.fresh() if inputs is None else inputs
            tensors = self.numbers.run(seed, "forward", lambda: self._counted(given))
            return Outputs(tensors, given, self.casts)

    def _first_call(self, inputs: tuple[Any, ...] | None, seed: int) -> Outputs:
        copies, once = self.inputs if inputs is None else tuple(map(prepared_inputs.copy, inputs)), inputs

        def run() -> tuple[tuple[Any, ...], CastWatch, torch.dtype | None, tuple[Tensor, ...]]:
            nonlocal once
            given, once = tuple(map(prepared_inputs.copy, copies)) if once is None else once, None
            # torch.linalg.pinv gives other complex numbers under any dispatch mode (torch 2.13)
            apart = any(isinstance(x, Tensor) and x.is_complex() for x in copies)
            watched = tuple(map(prepared_inputs.copy, copies)) if apart else given
            with CastWatch(watched) as watch:
                tensors = self._counted(watched)
            return given, watch, watch.behind(tensors), self._counted(given) if apart else tensors

        given, watch, coarsest, tensors = self.numbers.run(seed, "forward", run)
        casts = self.casts
        casts.in_forward = coarsest
        casts.hidden = watch.dtype if spacing(watch.dtype) > casts.forward else None
        self._learn(tensors, given if inputs is None else None)
        return Outputs(tensors, given, self.casts)

    def _counted(self, given: tuple[Any, ...]) -> tuple[Tensor, ...]:
        self.meter.count()
        self.shared.put_back_values()
        return tuple(pytrees.tensors(self._run(given)))

    @contextlib.contextmanager
    def watched_backward(self) -> Iterator[None]:
        """Note what the backwards that run meanwhile round to inside."""
        with CastWatch() as watch:
            yield
        casts = self.casts
        hidden = casts.hidden if watch.read >= spacing(casts.hidden) else None
        casts.in_backward = max(casts.in_backward, watch.dtype, hidden, key=spacing)

    @hands_over
    def evaluate(self, inputs: tuple[Any, ...], draw: int = 0) -> tuple[Tensor, ...]:
        """Call within a session, in the caller's grad mode, random generators seeded; the short way for many values.

        Args:
            inputs: what to call it with.
            draw: another number lets the function draw other random numbers.
        """
        self.meter.count()
        self.numbers.seed(draws.child(self.seed, draw) if draw else self.seed)
        self.shared.put_back_values()
        try:
            if not self._differentiates:
                return tuple(pytrees.tensors(self.fn(*self.handed(inputs))))
        except RuntimeError as error:
            if torch.is_grad_enabled() or "does not require grad" not in stumbles.said(error):
                raise
            self._differentiates = True
        with torch.enable_grad():
            leaves = self.changed_inputs(lambda x: x, inputs=inputs)
            return tuple(t.detach() for t in pytrees.tensors(self.fn(*self.handed(leaves))))

    def vjp(self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
        """Return the gradients of the differentiable inputs for these cotangents; the graph stays for the next call.

        Args:
            cotangents: one per output, None for an output that nothing flows into.

        Returns:
            One gradient per position in ``differentiable``, None where none came.
        """
        inputs = getattr(outputs, "inputs", self.inputs)
        leaves = [inputs[i] for i in self.differentiable]
        with self.session():
            self.meter.count()
            return self.numbers.run(self.seed, "backward", lambda: pullback(outputs, leaves, cotangents))

    def differentiable_outputs(self, outputs: Sequence[Tensor]) -> tuple[int, ...]:
        """Return positions of the floating or complex outputs that require grad."""
        return tuple(i for i, o in enumerate(outputs) if o.requires_grad and (o.is_floating_point() or o.is_complex()))

    @hands_over
    def _run(self, given: tuple[Any, ...]) -> Any:
        if self._through_clone:
            return self.fn(*(_cloned(item) for item in self.handed(given)))
        try:
            return self.fn(*self.handed(given))
        except RuntimeError as error:
            if "leaf Variable that requires grad" not in stumbles.said(error):
                raise
        # an in-place Function cannot be given a leaf; users clone first, so do we, and undo what it did to the leaves
        self._through_clone = True
        for item, before in zip(given, self.inputs, strict=True):
            if isinstance(item, Tensor):
                item.detach().copy_(before.detach())
        return self.fn(*(_cloned(item) for item in self.handed(given)))

    def _learn(self, tensors: tuple[Tensor, ...], given: tuple[Any, ...] | None) -> None:
        refuse_unreadable(enumerate(tensors), "output_")
        if given is not None:
            pairs = [(a, b) for a, b in zip(given, self.inputs, strict=True) if isinstance(a, Tensor)]
            changed = any(unreadable_kind(b) is None and not agree_bitwise(a, b) for a, b in pairs)
            self.mutates_inputs = changed or self._through_clone
        if self.cls is None:
            found = functions_of(tensors)
            self.has_functions = bool(found)
            self.cls = found.pop() if len(found) == 1 else None
            if self.cls is not None and library.written_as(self.cls) is not self.cls:
                self.cls = None  # torch's Function around an operation: what its author wrote is checked by itself
            self.source = None if self.cls is None else _source(self.cls)
            note_users(self.cls)
            self.state = ClassState(self.cls)
            self._used += names_outside(None, self.cls)
            self.arguments = _handed_on(tensors, self.cls, given or ())
        if given is not None:
            self._look_outside(tensors, given)
        named = [r.name for r in self.source.outputs] if self.direct and self.source is not None else []
        names = named if len(named) == len(tensors) else [None] * len(tensors)
        alone = len(names) == 1
        self.output_names = tuple(name or ("output" if alone else f"output {i}") for i, name in enumerate(names))

    def _look_outside(self, tensors: tuple[Tensor, ...], given: tuple[Any, ...]) -> None:
        """Find the caller's own tensors among what the outputs lead to and what the code reaches by a name alone.

        Raises:
            InputError: when the outputs lead to these alone, so that moving the copies would show nothing.
        """
        originals = {id(t): i for i, ref in enumerate(self._originals) if ref is not None and (t := ref()) is not None}
        leaves = [node.variable for node in graph_nodes(tensors) if hasattr(node, "variable")]
        reached = {originals[id(leaf)] for leaf in leaves if id(leaf) in originals}
        by_name = {originals[id(v)] for name, v in self._used if id(v) in originals and name.isidentifier()}
        self.read_outside = tuple(sorted(reached | by_name))
        copies = {id(item) for item in given}
        if reached and not any(id(leaf) in copies for leaf in leaves):
            raise InputError("checking.reads_inputs_outside", positions=", ".join(map(str, sorted(reached))))


_sources: weakref.WeakKeyDictionary[type, FunctionSource | None] = weakref.WeakKeyDictionary()


def _source(cls: type) -> FunctionSource | None:
    if cls not in _sources:
        _sources[cls] = read_source(cls)
    return _sources[cls]


def pullback(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...]:
    """Return the gradients of these tensors for these cotangents of the outputs, None for what nothing flows into."""
    pairs = [(y, v) for y, v in zip(outputs, cotangents, strict=True) if v is not None and y.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    tensors, grads = zip(*pairs, strict=True)
    return gradients(tensors, inputs, grads)


def own_method(cls: type | None, name: str) -> bool:
    """Return True for a class with a ``jvp`` or ``vmap`` of its own, in place of torch's that only raises."""
    return getattr(cls, name, None) not in (None, getattr(torch.autograd.Function, name))


def separate_context(cls: type) -> bool:
    """Return True for a class with ``setup_context``, whose forward takes no ctx."""
    return getattr(cls, "setup_context", None) is not torch.autograd.Function.setup_context


def functions_of(tensors: Sequence[Tensor]) -> set[type]:
    """Return the Function classes in the graph of these tensors."""
    found = (getattr(node, "_forward_cls", None) for node in graph_nodes(tensors))
    return {cls for cls in found if isinstance(cls, type)}


def _handed_on(tensors: Sequence[Tensor], cls: type | None, given: Sequence[Any]) -> dict[int, int]:
    """Map each input to the argument that it became, where one call of the Function got the input itself."""
    nodes = [] if cls is None else [n for n in graph_nodes(tensors) if getattr(n, "_forward_cls", None) is cls]
    if len(nodes) != 1:
        return {}
    edges = [following for following, _ in nodes[0].next_functions if following is not None]
    arguments = [k for k, needed in enumerate(nodes[0].needs_input_grad) if needed]  # one edge for each, in order
    found = {id(getattr(edge, "variable", None)): k for edge, k in zip(edges, arguments, strict=False)}
    return {i: found[id(x)] for i, x in enumerate(given) if isinstance(x, Tensor) and id(x) in found}


def _cloned(item: Any) -> Any:
    return item.clone() if isinstance(item, Tensor) and item.requires_grad else item


def _input_names(fn: Callable[..., Any], source: FunctionSource | None, count: int) -> tuple[str, ...]:
    names = list(source.inputs) if source is not None else []
    with contextlib.suppress(TypeError, ValueError):  # of what has no signature
        signed = inspect.signature(fn).parameters.values() if source is None else ()
        named = [p for p in signed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
        names += [f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in named]
    if names and names[-1].startswith("*"):
        star = names.pop().lstrip("*")
        names += [f"{star}[{i}]" for i in range(count - len(names))]
    return tuple(names[i] if i < len(names) else f"input {i}" for i in range(count))
