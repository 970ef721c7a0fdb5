"""Kernels of Liger-Kernel in Triton's interpreter, each beside its formula: the field report's table, row by row.

``.ci/triton`` brings triton and the package into a folder of its own, which ``NBAUTOGRAD_TRITON`` names.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div, silu

from nbautograd import compare

FOLDER = os.environ.get("NBAUTOGRAD_TRITON", "")
pytestmark = pytest.mark.skipif(
    not os.path.isdir(os.path.join(FOLDER, "liger_kernel")),
    reason="NBAUTOGRAD_TRITON names no folder with liger-kernel",
)


@pytest.fixture(scope="module")
def ops() -> Iterator[ModuleType]:
    """The package's Functions; in the interpreter a float stays Python's, and libdevice's functions are missing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        patch.syspath_prepend(FOLDER)
        interpreter = importlib.import_module("triton.runtime.interpreter")
        convert = interpreter._implicit_cvt
        patch.setattr(
            interpreter, "_implicit_cvt", lambda x: _tensor(interpreter, x) if type(x) is float else convert(x)
        )
        libdevice, language = map(importlib.import_module, ("triton.language.extra.libdevice", "triton.language"))
        patch.setattr(libdevice, "rsqrt", lambda x: language.rsqrt(x))  # as it is while a kernel runs
        yield importlib.import_module("liger_kernel.ops")
        for name in [name for name in sys.modules if name.partition(".")[0] in ("triton", "liger_kernel")]:
            patch.delitem(sys.modules, name)


def _tensor(interpreter: ModuleType, x: float) -> Any:
    handle = interpreter.TensorHandle(torch.tensor([x]).numpy(), interpreter.tl.float32)
    return interpreter.tl.tensor(handle, interpreter.tl.float32)


def rms(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w


def gated(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return silu(a) * b


def rotated(q: Tensor, k: Tensor, c: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    half = [torch.cat((-x[..., 8:], x[..., :8]), -1) for x in (q, k)]
    return q * c[:, None] + half[0] * s[:, None], k * c[:, None] + half[1] * s[:, None]


def divergence(x: Tensor, target: Tensor) -> Tensor:
    return kl_div(x, target, reduction="batchmean")


def n(*shape: int) -> Tensor:
    return torch.randn(shape, requires_grad=True)


def logits(*shape: int) -> Tensor:
    return torch.randn(shape).log_softmax(-1).requires_grad_()


LABELS = torch.tensor([0, 39, -100, 7])
ANGLE = torch.outer(torch.arange(3.0), torch.rand(8)).repeat(1, 2)[None]
TWO, CROSS = lambda: (n(4, 40), n(4, 40)), "LigerCrossEntropyFunction"
NORM = (lambda: (n(4, 40), n(40)), rms)
# the Function and its further arguments; inputs and the formula; layouts, the verdict and codes
ROWS: list[
    tuple[tuple[Any, ...], tuple[Callable[[], tuple[Any, ...]], Callable[..., Any]], list[str], str, set[str]]
] = [
    (("LigerRMSNormFunction", 1e-6, 0.0, "llama", False), NORM, ["transposed"], "right", set()),
    (("LigerRMSNormFunction", 1e-6), NORM, [], "wrong", {"mutates_grad_output"}),
    (("LigerSoftmaxFunction",), (lambda: (n(4, 40),), lambda x: x.softmax(-1)), ["transposed"], "right", set()),
    (("LigerKLDivLossFunction",), (lambda: (logits(4, 40), torch.rand(4, 40)), divergence), [], "right", set()),
    (("LigerSiLUMulFunction",), (TWO, lambda a, b: silu(a) * b), [], "wrong", {"mutates_saved"}),
    (("LigerFusedGateUpSiLUMulFunction",), (lambda: (n(4, 40),), gated), ["stacked"], "right", {"compare_refuses"}),
    (
        (CROSS, None),
        (lambda: (n(4, 40), LABELS), cross_entropy),
        ["transposed"],
        "wrong",
        {"compare_layout", "mutates_saved", "mutates_input"},
    ),
    (
        ("LigerRopeFunction",),
        (lambda: (n(1, 2, 3, 16), n(1, 1, 3, 16), ANGLE.cos(), ANGLE.sin()), rotated),
        [],
        "wrong",
        {"mutates_grad_output", "mutates_input"},
    ),
]


@pytest.mark.parametrize(("function", "formula", "layouts", "verdict", "codes"), ROWS, ids=[one[0][0] for one in ROWS])
def test_the_field_reports_verdict(ops, function, formula, layouts, verdict, codes):
    name, *further = function
    inputs, eager = formula

    def kernel(*args: Any) -> Any:
        made = getattr(ops, name).apply(*args, *further)
        return made[0] if name == CROSS else made

    torch.manual_seed(0)
    report = compare(kernel, eager, inputs(), sizes=(), layouts=layouts or None)
    assert (report.verdict, {finding.code for finding in report.findings}) == (verdict, codes)
