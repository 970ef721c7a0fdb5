"""What .ci/gpu runs on a device: kernels right and planted, the page's kernels, a cell, the fidelity battery.

Usage: python tests/support/on_gpu.py DEVICE
"""

from __future__ import annotations

import importlib
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nbautograd import compare

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evidence" / "compatibility.md"
HEADING = "## Seen on a GPU"
CELL = """
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g
Square.apply(torch.ones(3, device="{device}", requires_grad=True)).sum().backward()
"""


def moved(inputs: tuple[Any, ...], device: str) -> tuple[Any, ...]:
    return tuple(x.detach().to(device).requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def triton_kernels(device: str) -> Iterator[tuple[str, bool]]:
    """Three kernels right, and each with a tail left out, a lost term and a race."""
    kernels = importlib.import_module("triton_kernels")
    for name, eager in kernels.KERNELS.items():
        for twin in (0, 1, 4, 5):
            report = compare(getattr(kernels, name)(twin), eager, moved(kernels.inputs(name), device), sizes=())
            yield f"{name}, {kernels.TWINS.get(twin, 'right')}: {report.verdict}", report.wrong is bool(twin)


def page_kernels(device: str) -> Iterator[tuple[str, bool]]:
    """The kernels of docs/tutorials/kernels.md."""
    text = (ROOT / "docs" / "tutorials" / "kernels.md").read_text(encoding="utf-8")
    page: dict[str, Any] = {}
    exec(compile(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], "kernels.md", "exec"), page)
    for name, wrong in (("RMSNorm", False), ("Blocked", True)):
        report = compare(page[name], page["eager"], moved(page["inputs"](), device))
        yield f"{name} of docs/tutorials/kernels.md: {report.verdict}", report.wrong is wrong


def cell(device: str) -> Iterator[tuple[str, bool]]:
    """A cell with the magic; the script ends with an error where the cell did."""
    text = CELL.format(device=device)
    script = f"%load_ext nbautograd\n_ = get_ipython().run_cell_magic('autograd_function', '', {text!r})\n"
    run = subprocess.run([sys.executable, "-m", "IPython", "-c", script], cwd=ROOT, capture_output=True, text=True)
    yield "%%autograd_function", run.returncode == 0 and "Error" not in run.stdout


def battery(device: str) -> Iterator[tuple[str, bool]]:
    """The fidelity battery, whose tensors are made on the device by default."""
    code = f"import sys, torch, pytest; torch.set_default_device({device!r}); sys.exit(pytest.main(sys.argv[1:]))"
    run = subprocess.run([sys.executable, "-c", code, "-q", "tests/fidelity/test_battery.py"], cwd=ROOT)
    yield "tests/fidelity/test_battery.py", run.returncode == 0


def main(device: str) -> int:
    """Run all, write the page, and return 1 where something was not as it should be."""
    known = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if device != "cpu" and (known is None or known.type != torch.device(device).type):
        print(f"There is no {device} here: nothing was tried, and the page stays as it is.")
        return 0
    rows = []
    parts: tuple[Callable[[str], Iterator[tuple[str, bool]]], ...] = (page_kernels, cell, battery, triton_kernels)
    for part in parts:
        try:
            rows += list(part(device))
        except Exception as error:
            rows.append((f"{part.__name__}: {type(error).__name__}: {error}".splitlines()[0], False))
    name = platform.processor() or "cpu" if device == "cpu" else torch.cuda.get_device_name()
    lines = [f"- {'as it should be' if fine else '**not as it should be**'}: {what}" for what, fine in rows]
    seen = f"{HEADING}\n\n{name}, torch {torch.__version__}, Python {platform.python_version()}, by `.ci/gpu`:\n\n"
    report = seen + "\n".join(lines) + "\n"
    print(report)
    if device != "cpu":
        PAGE.write_text(PAGE.read_text(encoding="utf-8").partition(f"\n{HEADING}")[0] + "\n" + report, encoding="utf-8")
    return int(not all(fine for _, fine in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
