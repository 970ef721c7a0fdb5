"""Precision and recall of the audit on released packages that nobody prepared for it.

The packages of ``packages.txt`` are called by ``drawn_programs.py``, each in its own process. Per class:

- what the audit says;
- what plain torch says at the inputs of the program: each gradient against central differences along random
  directions, in double precision where forward takes it. No code of nbautograd has a part in that;
- where the audit says right: backward is given one wrong term, drawn by the name of the class, and audited again.

    NBAUTOGRAD_PACKAGES=folder PYTHONPATH=tests/support python benchmarks/packages.py [name ...] > table.tsv
"""

from __future__ import annotations

import contextlib
import copy
import importlib.metadata
import json
import os
import subprocess
import sys
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionMeta

Function = torch.autograd.Function
MOST = 4  # calls of a class that are settled, the smallest
DIRECTIONS = 3  # random ones for each input
STEPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)  # of central differences in double precision, times the size of the input
COARSE = (1e-1, 3e-2, 1e-2)  # in single precision
SINGLE = 0.05  # what a right gradient may differ by there, relative to the slope
PLANTS = "scaled", "dropped", "term", "entry"
SECONDS = 3600  # for one part of a package; what a check may take is counted in time of the processor


def every(cls: type = Function) -> Iterator[type]:
    """Yield all Functions that are defined."""
    for sub in cls.__subclasses__():
        yield sub
        yield from every(sub)


def key(cls: type) -> str:
    """Return a class's name, its module first."""
    return f"{cls.__module__}:{cls.__qualname__}"


def changed(args: tuple[Any, ...], change: Callable[[Tensor], Tensor]) -> tuple[Any, ...]:
    """Return a copy with each tensor changed; a parameter that a module holds as well stays one object."""
    memo: dict[int, Any] = {}
    tensors = [one for arg in args for one in (arg if type(arg) in (list, tuple) else [arg]) if isinstance(one, Tensor)]
    memo.update((id(one), change(one)) for one in tensors)
    copies = []
    for one in args:
        try:
            copies.append(copy.deepcopy(one, memo))
        except Exception:
            copies.append(one)  # a generator, a lock: handed on
    if change is double:
        for one in copies:
            if isinstance(one, torch.nn.Module):
                one.double()
    return tuple(copies)


def kept(tensor: Tensor) -> Tensor:
    """Return a copy that nothing is differentiated through, strides and flag included."""
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def double(tensor: Tensor) -> Tensor:
    """Return a copy in double precision."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor.detach().clone()
    dtype = torch.complex128 if tensor.is_complex() else torch.float64
    return tensor.detach().clone().to(dtype).requires_grad_(tensor.requires_grad)


def recorded(run: Callable[[], Any]) -> dict[type, list[tuple[Any, ...]]]:
    """Run a program and return the arguments of each call of a Function's ``apply``, the smallest calls of each."""
    calls: dict[type, list[tuple[Any, ...]]] = {}
    original = Function.__dict__["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.is_grad_enabled() and any(isinstance(one, Tensor) and one.requires_grad for one in args):
            calls.setdefault(cls, []).append(changed(args, kept))
        return original.__func__(cls, *args, **kwargs)

    apply.__annotations__.clear()  # torch's own has none: torch.jit.script reads them as types
    Function.apply = classmethod(apply)  # type: ignore[assignment, method-assign]
    try:
        run()
    finally:
        Function.apply = original  # type: ignore[method-assign]

    def size(args: tuple[Any, ...]) -> int:
        return sum(one.numel() for one in args if isinstance(one, Tensor))

    return {cls: sorted(each, key=size)[:MOST] for cls, each in calls.items()}


def outputs(cls: Any, args: tuple[Any, ...]) -> list[Tensor]:
    """Call a Function with the same random numbers each time and return what is differentiable."""
    torch.manual_seed(1)
    result = cls.apply(*(one.clone() if isinstance(one, Tensor) else one for one in args))
    return [one for one in (result if isinstance(result, tuple) else (result,)) if differentiable(one)]


def differentiable(one: Any) -> bool:
    """Return True for a tensor with a graph behind it."""
    return isinstance(one, Tensor) and one.requires_grad and (one.is_floating_point() or one.is_complex())


def real(one: Tensor) -> Tensor:
    """Return a tensor as real numbers."""
    return torch.view_as_real(one) if one.is_complex() else one


def dot(one: Tensor, other: Tensor) -> float:
    """Return the real inner product."""
    return float((real(one.resolve_conj()) * real(other)).double().sum())


def directional(cls: Any, args: tuple[Any, ...], k: int, steps: tuple[float, ...]) -> list[tuple[float, float]]:
    """Return for random directions of one input: the relative difference at the best step, and the slope."""
    results = []
    for seed in range(DIRECTIONS):
        draw = torch.Generator().manual_seed(seed)
        given = changed(args, kept)
        ends = outputs(cls, given)
        weights = [torch.randn(end.shape, generator=draw, dtype=torch.float64).to(end.dtype) for end in ends]
        end = sum((real(end) * real(weight)).sum() for end, weight in zip(ends, weights, strict=True))
        (grad,) = torch.autograd.grad(end, [given[k]], allow_unused=True)
        grad = torch.zeros_like(args[k]) if grad is None else grad
        direction = torch.randn(args[k].shape, generator=draw, dtype=torch.float64).to(args[k].dtype)
        size = max(1e-3, float(args[k].detach().abs().double().mean()) if args[k].numel() else 0)
        slope = dot(grad, direction)
        best, least = float("inf"), float("inf")
        for step in steps:
            found = []
            for sign in (1, -1):
                there = changed(args, kept)
                there[k].data.add_(sign * step * size * direction)
                found.append([one.detach() for one in outputs(cls, there)])
            # output by output: one that nobody wrote, as fairscale's phony tensor, may be as large as memory had it
            pairs = zip(*found, weights, strict=True)
            difference = sum(dot(up - low, weight) for up, low, weight in pairs) / (2 * step * size)
            least = min(least, abs(difference))
            best = min(best, abs(difference - slope) / max(abs(difference), abs(slope), 1e-12))
        flat = least < 1e-9 < abs(slope)
        results.append((float("nan") if flat else best, abs(slope)))
    return results


def settled(cls: Any, calls: list[tuple[Any, ...]]) -> str:
    """Return what plain torch says of a class: agrees, flat, differs, or why nothing was computed."""
    worst, flat, bound, error = 0.0, False, 1e-4, "no input with a gradient"
    for args in calls:
        for change, steps in ((double, STEPS), (kept, COARSE)):
            try:
                given = changed(args, change)
                for k, one in enumerate(given):
                    if differentiable(one):
                        differences = [best for best, _ in directional(cls, given, k, steps)]
                        flat = flat or any(best != best for best in differences)
                        worst = max([worst, *(best for best in differences if best == best)])
                        error, bound = "", bound if change is double else SINGLE
                break
            except Exception as raised:
                error = f"raises {type(raised).__name__}: {raised}".replace("\n", " ").replace("\t", " ")[:120]
    if error:
        return error
    return f"differs by {worst:.1e}" if worst > bound else "flat" if flat else f"agrees to {max(worst, 1e-16):.0e}"


@contextlib.contextmanager
def planted(names: Collection[str]) -> Iterator[None]:
    """Give the backward of each class of these names one wrong term, of those too that a program defines meanwhile."""
    before: list[tuple[type, str, Any]] = []
    made = FunctionMeta.__init__

    def plant(cls: Any) -> None:
        if short(cls) in names and hasattr(cls, "backward"):
            name = "backward" if cls.backward is not Function.backward else "vjp"
            before.append((cls, name, cls.__dict__.get(name)))
            setattr(cls, name, staticmethod(faulty(getattr(cls, name), short(cls))))

    def initialise(cls: Any, *args: Any) -> None:
        made(cls, *args)
        plant(cls)

    for cls in list(every()):
        plant(cls)
    FunctionMeta.__init__ = initialise  # type: ignore[method-assign]
    try:
        yield
    finally:
        FunctionMeta.__init__ = made  # type: ignore[method-assign]
        for cls, name, own in reversed(before):
            delattr(cls, name) if own is None else setattr(cls, name, own)


def kind_of(name: str) -> str:
    """Return which wrong term a class gets."""
    return PLANTS[zlib.crc32(name.encode()) % len(PLANTS)]


def faulty(backward: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a backward with one wrong term in one gradient that is needed and not zero."""
    kind, seed = kind_of(name), zlib.crc32(name.encode()) // len(PLANTS)

    def wrong(ctx: Any, *grads: Any) -> Any:
        result = backward(ctx, *grads)
        several = isinstance(result, (tuple, list))
        values = list(result) if several else [result]
        needed = [
            k
            for k, one in enumerate(values)
            if isinstance(one, Tensor) and ctx.needs_input_grad[k] and bool((one.detach() != 0).any())
        ]
        if needed:
            k = needed[seed % len(needed)]
            values[k] = term(values[k], kind)
        return tuple(values) if several else values[0]

    return wrong


def term(grad: Tensor, kind: str) -> Tensor:
    """Return a gradient with a wrong term in it."""
    if kind == "scaled":
        return grad * 1.5
    if kind == "dropped":
        return grad * 0
    if kind == "term":
        return grad + 0.3 * grad.flip(tuple(range(grad.dim())))
    factor = torch.ones_like(grad).flatten()
    factor[grad.detach().abs().flatten().argmax()] = 1.5
    return grad * factor.view(grad.shape)


def audited(run: Callable[[], Any], seconds: float) -> dict[str, tuple[str, str]]:
    """Return verdict and reason of each class that a program calls."""
    import nbautograd
    from nbautograd.inspection import audit_checks

    audit_checks.Checks._second_look = lambda *_: None  # type: ignore[method-assign, assignment] # verdicts, not their causes
    torch.manual_seed(0)
    with nbautograd.audit(budget=SECONDS, per_function=seconds) as audit:
        run()
    verdicts = {}
    for one in (one for one in audit.report().functions if one.situations):
        reason = one.situations[0].message
        verdicts[f"{one.module}:{one.name}"] = one.verdict, reason.replace("\n", " ").replace("\t", " ")
    return verdicts


def plain(run: Callable[[], Any]) -> dict[str, list[str]]:
    """Return for each class what plain torch says of it, as it is and with the wrong term."""
    torch.manual_seed(0)
    calls = recorded(run)
    rows = {short(cls): [settled(cls, each)] for cls, each in calls.items()}
    for cls, each in calls.items():  # one after the other: a Function may call another
        with planted({short(cls)}):
            rows[short(cls)].append(settled(cls, each))
    return rows


def short(cls: type) -> str:
    """Return a class's name as an audit gives it."""
    return f"{cls.__module__}:{cls.__qualname__.rpartition('<locals>.')[2]}"


def count_processor_time() -> None:
    """Let budgets count the processor's time of this process and its copies: no verdict depends on a machine's load."""
    before = [0.0]

    def clock() -> float:
        return before[0] + time.process_time()

    def forked() -> None:
        before.append(clock())

    def copied() -> None:  # its own time begins at zero
        before[0] = before.pop()

    os.register_at_fork(before=forked, after_in_parent=before.pop, after_in_child=copied)
    time.perf_counter = clock


def one_package(name: str, what: str) -> Any:
    """Do one part of the work on one package, in a process of its own."""
    count_processor_time()
    from drawn_programs import PROGRAMS

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    run = PROGRAMS[name]
    if what == "plain":
        return plain(run)
    verdicts = audited(run, 30)
    right = {name for name, (verdict, _) in verdicts.items() if verdict == "right"}
    with planted(right):
        again = audited(run, 30) if right else {}
    return verdicts, {name: again.get(name, ("not called", "")) for name in right}


def child(name: str, what: str) -> Any:
    """Run a part in another process; what it could not do is named."""
    command = [sys.executable, __file__, "--part", name, what]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"{what}: more than {SECONDS} s"
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    return json.loads(line[7:]) if line else f"{what}: {(done.stderr.strip() or 'nothing').splitlines()[-1][:150]}"


def rows_of(name: str) -> Iterator[list[str]]:
    """Yield one row for each class of a package."""
    version = importlib.metadata.version(name)
    audit, by_torch = child(name, "audit"), child(name, "plain")
    for failure in (audit, by_torch):
        if isinstance(failure, str):
            print(name, failure, file=sys.stderr)
    if isinstance(audit, str):
        yield [name, version, "", "no report", "", "", "", "", audit]
        return
    verdicts, plants = audit
    for cls, (verdict, reason) in verdicts.items():
        says, shows = ["", ""] if isinstance(by_torch, str) else (*by_torch.get(cls, []), "", "")[:2]
        then, why = plants.get(cls, ("", ""))
        why = "" if then == "wrong" else why or reason if verdict != "right" else why
        kind = kind_of(cls) if then else ""
        yield [name, version, cls, verdict, says, kind, shows if kind else "", then, why]


def main() -> None:
    """Print the table, and the shares to stderr."""
    folder = os.environ["NBAUTOGRAD_PACKAGES"]
    sys.path.append(folder)
    if sys.argv[1:2] == ["--part"]:
        try:
            result = one_package(*sys.argv[2:])
        except Exception:
            traceback.print_exc()
            raise SystemExit(1) from None
        print("\nRESULT " + json.dumps(result))
        return
    from drawn_programs import PROGRAMS

    print("\t".join(["package", "version", "class", "audit", "torch", "planted", "shows", "then", "reason"]))
    rows = []
    for name in sys.argv[1:] or PROGRAMS:
        for row in rows_of(name):
            print("\t".join(row), flush=True)
            rows.append(row)
    print(Path(__file__).name, torch.__version__, Counter(row[3] for row in rows), file=sys.stderr)
    print("planted:", Counter(row[7] for row in rows if row[5]), file=sys.stderr)


if __name__ == "__main__":
    main()
