"""What finds the faults of tests/real_faults: nbautograd, assert_close at three tolerances, gradcheck, opcheck.

Usage: PYTHONPATH=tests/support:tests/real_faults python tests/support/fault_judges.py
(it writes docs/evidence/real-faults.md).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from nbautograd import compare
from nbautograd.types import Comparison

ROOT = Path(__file__).parents[2]
NAMES = sorted(file.stem for file in (ROOT / "tests" / "real_faults").glob("*.py") if not file.stem.startswith("test_"))
PAGE = ROOT / "docs" / "evidence" / "real-faults.md"
TOLERANCES = (1e-2, 1e-3, 1e-5)
COLUMNS = (
    "fault",
    "thread",
    "when",
    "sweep",
    "cases",
    *(f"assert_close {t:g}" for t in TOLERANCES),
    "gradcheck",
    "opcheck",
)
_libraries = (torch.library.Library(f"real_faults_{k}", "DEF") for k in itertools.count())

INTRODUCTION = """# Twenty real faults of 2024 to 2026

Kernels that people run had these faults, or got them from torch.compile. `tests/real_faults/` rebuilds each in 29 to 48
lines of our own, from what its thread says, on the CPU in float32. A miniature has the mechanism that the thread names,
and nothing else of the kernel. If a thread does not tell the mechanism in full, the list below says what was assumed.
nbautograd judges the mended version of each to be right.

A fault is found by a judge that refuses it and accepts its mended twin. All get the same inputs: contiguous, and of the
sizes that hide the fault, as in a project's own test. *sweep* is `nbautograd.compare` with nothing else given. *cases*
is the same with the named cases of the file, which a kernel's author has to write. `assert_close` compares outputs and
gradients with the reference's at `rtol = atol`; gradcheck runs in float64. opcheck has the kernel as a custom
operation; it does not claim to check gradients. The name of a finding stands where nbautograd found it; "no" is a fault
that was missed. Two faults of torch.compile do not show with this torch; the list says with which they did. Races,
hardware and compilers are not among these: nothing here ran on a GPU.

This table is written by `PYTHONPATH=.:tests/support:tests/real_faults python tests/support/fault_judges.py`;
torch {torch}.

"""


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


def applied(kernel: Any) -> Any:
    return kernel.apply if isinstance(kernel, type) else kernel


def ours(fault: ModuleType, wrong: bool, cases: bool) -> Comparison:
    """The report on a kernel or on its mended twin."""
    torch.manual_seed(0)
    options = {"cases": fault.cases} if cases else getattr(fault, "GATE", {})
    return compare(fault.kernel(wrong), fault.reference, () if cases else given(fault), **options)


def given(fault: ModuleType) -> tuple[Any, ...]:
    torch.manual_seed(0)
    inputs = tuple(fault.inputs())
    chosen = any(x.requires_grad for x in inputs)
    return tuple(x.detach().requires_grad_(x.requires_grad) if chosen else leaf(x) for x in inputs)


def leaf(x: Tensor) -> Tensor:
    return x.detach().requires_grad_() if x.is_floating_point() else x


def values(fn: Any, inputs: tuple[Any, ...]) -> list[Tensor | None]:
    """Outputs and gradients at copies of the inputs."""
    args = [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]
    y = applied(fn)(*args)
    torch.manual_seed(1)
    leaves = [x for x in args if x.requires_grad]
    return [y.detach(), *torch.autograd.grad(y, leaves, torch.randn(y.shape, dtype=y.dtype), allow_unused=True)]


def close(fault: ModuleType, wrong: bool, tolerance: float) -> bool:
    ours, theirs = (values(one, given(fault)) for one in (fault.kernel(wrong), fault.reference))
    try:
        for a, b in zip(ours, theirs, strict=True):
            assert a is not None
            assert b is not None
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    except AssertionError:
        return False
    return True


def gradcheck(fault: ModuleType, wrong: bool) -> bool:
    wide = [(x.detach().double() if x.is_floating_point() else x, x.requires_grad) for x in given(fault)]
    double = tuple(x.requires_grad_(needed) for x, needed in wide)
    try:
        return torch.autograd.gradcheck(applied(fault.kernel(wrong)), double, raise_exception=False)
    except Exception:
        return False


def opcheck(fault: ModuleType, wrong: bool) -> bool:
    """Check the kernel as a custom operation, whose backward is one as well."""
    inputs, kernel = given(fault), applied(fault.kernel(wrong))
    shape, which = kernel(*given(fault)).shape, [k for k, x in enumerate(inputs) if x.requires_grad]
    library, names = next(_libraries), [f"Tensor x{k}" for k in range(len(inputs))]
    library.define(f"forward({', '.join(names)}) -> Tensor")
    library.define(f"backward(Tensor g, {', '.join(names)}) -> Tensor[]")

    def forward(*args: Tensor) -> Tensor:
        return kernel(*(x.clone() for x in args)).detach()

    def gradients(g: Tensor, *args: Tensor) -> list[Tensor]:
        with torch.enable_grad():
            args = tuple(x.clone().requires_grad_(k in which) for k, x in enumerate(args))
            found = torch.autograd.grad(kernel(*args), [args[k] for k in which], g, allow_unused=True)
        return [torch.zeros_like(args[k]) if d is None else d.clone() for k, d in zip(which, found, strict=True)]

    for name, run in (("forward", forward), ("backward", gradients)):
        library.impl(name, run, "CompositeExplicitAutograd")
    here = getattr(torch.ops, library.ns)
    torch.library.register_fake(f"{library.ns}::forward", lambda *args: args[0].new_empty(shape))
    torch.library.register_fake(f"{library.ns}::backward", lambda g, *args: [torch.empty_like(args[k]) for k in which])

    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        found = iter(here.backward(g, *ctx.saved_tensors))
        return tuple(next(found) if k in which else None for k in range(len(inputs)))

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    torch.library.register_autograd(f"{library.ns}::forward", backward, setup_context=setup)
    try:
        torch.library.opcheck(here.forward.default, inputs)
    except Exception:
        return False
    return True


def told(report: Comparison) -> str:
    codes = [one.code for one in report.findings if one.kind == "bug" or one.code == "compare_compile"]
    return f"`{codes[0]}`" if codes else "no"


def row(name: str) -> tuple[str, ...]:
    """What each judge says of a fault, in the columns of the table."""
    fault = load(name)
    with contextlib.redirect_stdout(None):
        sweep = told(ours(fault, True, False))
        cases = told(ours(fault, True, True)) if hasattr(fault, "cases") else ""
        judges = [*(functools.partial(close, tolerance=one) for one in TOLERANCES), gradcheck, opcheck]
        others = [not judge(fault, True) and judge(fault, False) for judge in judges]
    where = f"[{fault.THREAD}](https://github.com/{fault.THREAD.replace('#', '/issues/')})"
    return (name, where, fault.WHEN, sweep, cases, *("found" if one else "no" for one in others))


def table() -> str:
    """The page."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *map(row, NAMES)]
    shown = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    mechanisms = "\n".join(f"- `{name}` ({load(name).VERSIONS}): {load(name).MECHANISM}." for name in NAMES)
    introduction = INTRODUCTION.replace("{torch}", torch.__version__)
    return f"{introduction}{shown}\n\n## Mechanisms\n\n{mechanisms}\n"


if __name__ == "__main__":
    PAGE.write_text(table(), encoding="utf-8")
