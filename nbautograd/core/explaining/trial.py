"""A change of a program, tried: runs of it in copies of the process, and what their gradients have to agree with."""

from __future__ import annotations

import ast
import contextlib
import gc
import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.weak import TensorWeakRef

from nbautograd.core.explaining.cause import TrialEdit
from nbautograd.core.explaining.not_finite import BackwardWatch
from nbautograd.core.explaining.optimizer_steps import StepWatch
from nbautograd.core.explaining.program import node_of
from nbautograd.core.explaining.watch import Pass, Watch, all_finite, mark, tensors_of
from nbautograd.core.process_copy import Refused, in_copy
from nbautograd.core.stumbles import any_errors, hands_over, record
from nbautograd.core.torch_private.nodes import leaf_tensor
from nbautograd.core.user_source import codes_in, parse


@dataclass
class Rerun:
    """A program that can be run once more.

    Attributes:
        call: runs it, given its texts.
        texts: the cells or files that ``call`` compiles anew, so that an edit of them needs no function to be changed.
        returned: gives what a function returns, as it is written.
        scope: the variables that it runs with, where they are known.
        asks: True where what it returns is the one tensor that is asked about.
    """

    call: Callable[[Mapping[str, str]], Any]
    texts: Mapping[str, str] = field(default_factory=dict)
    returned: Callable[[], str] = str
    scope: Mapping[str, Any] = field(default_factory=dict)
    asks: bool = False

    def __call__(self, edit: TrialEdit | None = None) -> Any:
        """Run it, changed or as it is."""
        texts = dict(self.texts)
        if edit is not None and edit.file in texts:
            texts[edit.file] = edited(texts[edit.file], edit)
        elif edit is not None:
            change_functions(edit)
        return self.call(texts)


def edited(text: str, edit: TrialEdit) -> str:
    """Return a source with an edit, on as many lines as before.

    Raises:
        ValueError: where the lines are not as the edit says.
    """
    rows, before = text.split("\n"), edit.before.split("\n")
    first, last = edit.line - 1, edit.line - 1 + len(before)
    row = rows[first] if 0 <= first < len(rows) else ""
    indent = row[: len(row) - len(row.lstrip())]
    if [one.removeprefix(indent).rstrip() for one in rows[first:last]] != [one.rstrip() for one in before]:
        raise ValueError(f"line {edit.line} is {row!r}")
    after = edit.after.split("\n") if len(before) > 1 else [edit.after.replace("\n", "; ")]
    rows[first:last] = [indent + one if one else one for one in after]
    return "\n".join(rows)


def change_functions(edit: TrialEdit) -> None:
    """Give every function of a file the code that it has with an edit; only ever called in a copy of the process.

    Raises:
        ValueError: where no function has the line.
    """
    text = edited("".join(linecache.getlines(edit.file)), edit)
    codes = {(c.co_name, c.co_firstlineno): c for c in codes_in(compile(text, edit.file, "exec"))}
    changed = 0
    for function in _functions(edit.file):
        code = function.__code__
        new = codes.get((code.co_name, code.co_firstlineno))
        if new is not None and new.co_freevars == code.co_freevars:
            function.__code__ = new
            changed += 1
    if not changed:
        raise ValueError(f"no function of {edit.file}")


def _functions(file: str) -> set[FunctionType]:
    modules = [one for one in list(sys.modules.values()) if getattr(one, "__file__", None) == file]
    spaces = [getattr(module, "__dict__", {}) for module in (*modules, sys.modules["__main__"])]
    held: list[Any] = [value for space in spaces for value in list(space.values())]
    methods = [value for cls in held if issubclass(type(cls), type) for value in list(vars(cls).values())]
    bound = [one.__func__ for one in methods if isinstance(one, (staticmethod, classmethod))]
    inside = (*held, *methods, *bound, *gc.get_objects())
    return {one for one in inside if type(one) is FunctionType and one.__code__.co_filename == file}


class GradientWatch(Watch):
    """A watch that collects the gradients of all backwards.

    Args:
        together: run all backwards as one, at the end, which nothing between them can disturb.

    Attributes:
        backward: the first NaN or infinity of the backwards that ran.
        raised: the first error of a backward, which the program may have caught.
        reached: identities of the parameters that each backward reached, in order.
        served: identities of the leaves that had a gradient after some backward, whatever removed it since.
        values: of all that was differentiated, in order, as arrays; not kept where NaN is looked for.
        steps: the steps of optimizers, where it is entered beside this watch.
    """

    def __init__(self, finite: bool = False, together: bool = False) -> None:
        super().__init__(finite)
        self.together = together
        self.backward = BackwardWatch()
        self.values: list[Any] = []
        self._roots: list[Callable[[], Any]] = []
        self.raised: Exception | None = None
        self.reached: list[set[int]] = []
        self.served: set[int] = set()
        # where NaN is looked for the program itself may run, for hours, and nothing of it is to live longer
        self._keep: Callable[[torch.Tensor], Callable[[], Any]] = TensorWeakRef if finite else lambda t: lambda: t
        self._leaves: dict[int, Callable[[], Any]] = {}
        self.steps = StepWatch(self._leaves)
        self._returned: list[Callable[[], Any]] = []
        self._waiting: list[tuple[Any, Any]] = []

    def _after_bad_backward(self) -> bool:
        return bool(self.backward.node)

    @hands_over
    def _differentiate(
        self, name: str, func: Callable[..., Any], args: Any, kwargs: Any, roots: Sequence[Any], nodes: Sequence[Any]
    ) -> Any:
        self._roots = [lambda root=root: root for root in roots]  # type: ignore[misc]
        if not self.finite:
            self.values += map(_array, self.roots)
        leaves = [leaf for node in nodes if (leaf := leaf_tensor(node)) is not None]
        self.reached.append({id(leaf) for leaf in leaves if isinstance(leaf, torch.nn.Parameter)})
        for leaf in leaves:
            if self._leaves.get(id(leaf), object)() is not leaf:
                self._leaves[id(leaf)] = self._keep(leaf)
        if self.together and name == "backward":
            gradient = args[1] if len(args) > 1 else kwargs.get("gradient")
            self._waiting.append((tuple(roots), gradient))
            self.events.add(Pass(None, name))
            self.passes += 1
            return None
        if self.finite and not self.backward.node and self.bad_root is None:
            self.bad_root = next((root for root in roots if not all_finite(root)), None)
            self.backward.attach(nodes if self.bad_root is None else ())
        try:
            result = super()._differentiate(name, func, args, kwargs, roots, nodes)
        except Exception as error:
            self.raised = self.raised or error
            raise
        finally:
            self.backward.remove()
        if roots and "freed" not in mark(node_of(roots[0])):  # a graph that is kept holds what it saved
            self._roots = [*map(self._keep, roots)]
        self.served |= {id(leaf) for leaf in leaves if leaf.grad is not None}
        if name == "grad":
            given = result if isinstance(result, tuple) else (result,)
            self._returned += [type(None) if one is None else self._keep(one) for one in given]
        return result

    def run_deferred_backwards(self) -> None:
        """Run all deferred backwards in one call of the engine."""
        roots = [root for several, _ in self._waiting for root in several]
        given = [gradient for several, gradient in self._waiting for _ in several]
        if roots:
            torch.autograd.backward(roots, given)

    def gradients(self) -> list[Any]:
        """Return the gradients that the program has now, and what was differentiated last, as arrays."""
        return [None if g is None else _array(g) for g in (*self.arrived(), *self.roots)]

    def leaves(self) -> list[Any]:
        """Return the leaves that backwards reached, as they are now, as arrays."""
        return [_array(leaf()) for leaf in self._leaves.values()]

    @property
    def roots(self) -> tuple[torch.Tensor, ...]:
        """What was differentiated last; a graph that was kept lives no longer than the program lets it."""
        return tuple(root for ref in self._roots if (root := ref()) is not None)

    @property
    def returned(self) -> int:
        """How many gradients were returned, not collected."""
        return sum(gradient() is not None for gradient in self._returned)

    def arrived(self) -> list[torch.Tensor | None]:
        """Return the gradients of all leaves that were reached, and those that were returned."""
        alive = [leaf for ref in self._leaves.values() if (leaf := ref()) is not None]
        return [*(leaf.grad for leaf in alive), *(gradient() for gradient in self._returned)]


def _array(tensor: torch.Tensor) -> Any:
    return tensor.detach().to_dense().cpu().double().numpy().copy()


def mends(run: Rerun, edit: TrialEdit, kind: str) -> bool:
    """Return True where a changed program ends without an error, and with the gradients of an independent way.

    For what was changed in place the other way is the program as it is, where torch clones what it saved; for a second
    backward, all backwards run as one.
    """
    written = kind == "in_place"  # a parameter has to be written into as well
    changed = in_copy(lambda: _gradients(run, edit, contextlib.nullcontext(), together=False, leaves=written))
    if not isinstance(changed, list) or not changed:
        return False
    saving = torch.autograd.graph.allow_mutation_on_saved_tensors if written else contextlib.nullcontext
    other = in_copy(lambda: _gradients(run, None, saving(), together=not written, leaves=written))
    return _all_agree(changed, other)


def reaches_readers(run: Rerun, edit: TrialEdit) -> bool:
    """Return True where all that read a tensor which a line writes into read what the changed line writes.

    Behind the line what it has written is made other numbers, in the changed program and in the program as it is, where
    torch clones what it saved: a new tensor under one of several names leaves the others what they were.
    """
    name = edit.after.partition(" = ")[0]
    changed, same = (replace(edit, after=_with_other_numbers(text, name)) for text in (edit.after, edit.before))
    saving = torch.autograd.graph.allow_mutation_on_saved_tensors
    one = in_copy(lambda: _gradients(run, changed, contextlib.nullcontext(), together=False, leaves=True))
    other = in_copy(lambda: _gradients(run, same, saving(), together=False, leaves=True))
    return _all_agree(one, other)


def _with_other_numbers(text: str, name: str) -> str:
    """Return a line behind which, or before whose return, a tensor has other numbers; those between 0 and 1 stay so."""
    statements = [*map(ast.unparse, parse(text).body)]  # without a comment, behind which nothing would run
    value = statements[-1].removeprefix("return ")
    returned = [f"{name}_ = {value}", f"return {name}_"] if value != statements[-1] else [value]
    return "\n".join([*statements[:-1], returned[0], f"{name}.data.mul_(0.98).add_(0.01)", *returned[1:]])


def _all_agree(one: Any, other: Any) -> bool:
    both = isinstance(one, list) and isinstance(other, list)
    return both and 0 < len(one) == len(other) and all(map(_agree, one, other))


def ends_finite(run: Rerun, edit: TrialEdit) -> bool:
    """Return True where a changed program has the same losses, finite gradients, and the same wherever they were."""
    before = in_copy(lambda: _gradients(run, None, contextlib.nullcontext(), together=False))
    after = in_copy(lambda: _gradients(run, edit, contextlib.nullcontext(), together=False))
    if not (isinstance(before, list) and isinstance(after, list) and len(before) == len(after)):
        return False
    pairs = [(one, other) for one, other in zip(before, after, strict=True) if one is not None]
    finite = all(other is not None and np.isfinite(other).all() for _, other in pairs)
    return finite and all(_agree(one[np.isfinite(one)], other[np.isfinite(one)]) for one, other in pairs)


def reaches(run: Rerun, edit: TrialEdit, further: bool = False) -> bool:
    """Return True where a changed program ends without an error, differentiates the same values, and gradients arrive.

    Of a graph that is cut on purpose, or that was cut, there is no other way to have the gradients.

    Args:
        run: the program.
        edit: its change.
        further: they have to arrive at more leaves than before, and an optimizer that steps with them changes the
            values from there on.
    """
    before, after = in_copy(lambda: _reached(run, None)), in_copy(lambda: _reached(run, edit))
    if isinstance(before, Refused) or isinstance(after, Refused):
        return False
    values, changed = before[0][: before[2]] if further else before[0], after[0]
    same = 0 < len(values) <= len(changed) and all(map(_agree, values, changed))
    return same and after[1] > (before[1] if further else 0) and (further or after[3])


def _reached(run: Rerun, edit: TrialEdit | None) -> tuple[list[Any], int, int | None, bool]:
    """Return the values of what a program differentiates, and how many gradients arrive; 0 if one is not finite.

    The third says how many of the values come before the first step of an optimizer, None where there is none; the
    last is True where the last backward reached every parameter that the first one to any of them did.
    """
    watch, stepped = GradientWatch(), list[int]()
    handle = register_optimizer_step_pre_hook(lambda *_: stepped.append(len(watch.values)))
    try:
        with watch.on():
            roots = tensors_of(run(edit))
            for root in [] if watch.passes else roots[:1]:  # its backward is left to its caller
                root.sum().backward()
    except Exception as error:
        record(error, "run with a change")
        return watch.values, 0, next(iter(stepped), None), False
    finally:
        handle.remove()
    gradients = [gradient for gradient in watch.arrived() if gradient is not None]
    count = len(watch.served) + watch.returned if all(map(all_finite, gradients)) else 0
    last = watch.reached[-1] if watch.reached else set()
    # cells that were run before have backwards of their own, to other parameters
    first = next((parameters for parameters in watch.reached if parameters & last), last)
    return watch.values, count, next(iter(stepped), None), first <= last


def _gradients(
    run: Rerun, edit: TrialEdit | None, around: Any, together: bool, leaves: bool = False
) -> list[Any] | None:
    watch = GradientWatch(together=together)
    with any_errors("run with a change") as guard, around:
        with watch.on():
            run(edit)
        watch.run_deferred_backwards()
    if guard.failed:  # the changed program, or the other way, does not come to its end: no evidence
        return None
    return watch.gradients() + (watch.leaves() if leaves else [])


def _agree(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return bool(
        one.shape == other.shape
        and torch.allclose(torch.from_numpy(one), torch.from_numpy(other), rtol=1e-4, atol=1e-6)
    )
