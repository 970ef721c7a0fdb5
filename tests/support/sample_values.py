"""Values made by hand for the tests of the views: no torch, no checker, no recorder behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nbautograd.core.checking.block import Block, Entry, GradcheckReport, Pooled, Statement
from nbautograd.core.findings import Finding, Fix
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Node
from nbautograd.core.recording.call import Call, CallLog
from nbautograd.core.values import CtxSnapshot, TensorSummary, Value
from nbautograd.inspection.comparison import ComparedQuantity, Comparison
from nbautograd.inspection.report import FunctionReport

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, repr=False)
class DenseBlock(Block):
    """A block whose ``matrices`` are simply (analytical, numerical)."""

    def analytical(self, rows: Any = None, cols: Any = None) -> Array:
        return self._cut(0, rows, cols)

    def numerical(self, rows: Any = None, cols: Any = None) -> Array:
        return self._cut(1, rows, cols)

    def wrong_entries(self) -> Array:
        with np.errstate(invalid="ignore"):
            return np.argwhere(~(np.abs(self.matrices[0] - self.matrices[1]) <= 1e-5))

    def pooled(self, h: int = 32, w: int = 32) -> Pooled:
        a, n = self.matrices
        per_row, per_col = -(-a.shape[0] // h) or 1, -(-a.shape[1] // w) or 1
        with np.errstate(invalid="ignore"):
            return Pooled(*(_pool(m, per_row, per_col) for m in (a, n, a - n)), per_row, per_col)

    def _cut(self, which: int, rows: Any, cols: Any) -> Array:
        matrix = self.matrices[which]
        return matrix[slice(None) if rows is None else rows][:, slice(None) if cols is None else cols]


def _pool(matrix: Array, rows: int, cols: int) -> Array:
    if rows == cols == 1:
        return matrix
    h, w = -(-matrix.shape[0] // rows), -(-matrix.shape[1] // cols)
    out = np.zeros((h, w))
    for r in range(h):
        for c in range(w):
            part = matrix[r * rows : (r + 1) * rows, c * cols : (c + 1) * cols].ravel()
            out[r, c] = part[np.argmax(np.abs(part))]
    return out


def block(
    analytical: Any,
    numerical: Any = None,
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
    names: tuple[str, str] = ("output", "input"),
    **more: Any,
) -> DenseBlock:
    a = np.asarray(analytical)
    n = a if numerical is None else np.asarray(numerical)
    out_shape, in_shape = shapes or ((a.shape[0],), (a.shape[1],))
    with np.errstate(invalid="ignore"):
        difference = np.abs(a - n)
    wrong = int((difference > 1e-5).sum() + np.isnan(difference).sum())
    worst = None
    if a.size:
        r, c = np.unravel_index(int(np.nan_to_num(difference, nan=np.inf, posinf=np.inf).argmax()), a.shape)
        unravel = lambda k, s: tuple(int(i) for i in np.unravel_index(k, s)) if s else ()  # noqa: E731
        worst = Entry(unravel(r, out_shape), unravel(c, in_shape), a[r, c].item(), n[r, c].item(), 1e-10)
    known: dict[str, Any] = {
        "verdict": "mismatch" if wrong else "match",
        "wrong": wrong,
        "worst": worst,
        "largest_error": float(np.nan_to_num(difference, nan=np.inf, posinf=np.inf).max()) if a.size else 0.0,
        "witnesses": WITNESSES,
        "steps": np.geomspace(1e-10, 1e-1, 10),
        "structure": "dense",
        "errors": np.array([1e-6, 1e-7, 1e-8, 1e-9, 3e-10, 1e-9, 1e-8, 1e-6, 1e-4, 1e-2]),
    }
    return DenseBlock(0, 0, *names, out_shape, in_shape, entries=a.size, matrices=(a, n), **{**known, **more})


WITNESSES = (
    Statement("backward", True, "2 values returned"),
    Statement("finite differences", True, "agrees", 3e-10),
    Statement("autograd of forward", True, "agrees", 1e-16),
    Statement("jvp", False, "the class has no jvp"),
)


def tensor(values: Any, dtype: str = "float64", **more: Any) -> TensorSummary:
    a = np.asarray(values)
    finite = a[np.isfinite(a)]
    numbers: dict[str, Any] = {"numel": a.size, "values": tuple(a.ravel().tolist()) if a.size <= 64 else None}
    if finite.size and not np.iscomplexobj(a):
        numbers |= {"min": float(finite.min()), "max": float(finite.max()), "mean": float(finite.mean())}
        numbers |= {"std": float(finite.std()), "norm": float(np.linalg.norm(finite))}
    return TensorSummary(
        a.shape, dtype, nan=int(np.isnan(a).sum()), inf=int(np.isinf(a).sum()),
        zeros=int((a == 0).sum()), thumbnail=np.atleast_2d(a)[:32, :32] if a.size else None, **{**numbers, **more},
    )  # fmt: skip


def value(name: str, values: Any, **more: Any) -> Value:
    summary = tensor(values, **more)
    return Value(name, "Tensor", f"{summary.dtype} {'x'.join(map(str, summary.shape))}", summary)


# the seed's LinearFunction: y = input.mm(weight), input 2x2, weight 2x3
X = np.arange(4.0).reshape(2, 2)
W = np.arange(6.0).reshape(2, 3)
D_INPUT = np.kron(np.eye(2), W.T)
D_WEIGHT = np.kron(X, np.eye(3))
WRONG_D_WEIGHT = np.kron(X.T, np.eye(3))
SHAPES = {"input": ((2, 3), (2, 2)), "weight": ((2, 3), (2, 3))}

TRANSPOSED = Finding(
    "transposed_grad",
    "bug",
    "report.as_text",
    {
        "text": "The returned `grad_weight` (2nd value, `input.mm(grad_output)`) is what you get with `input` "
        "in place of `input.t()`."
    },
    where=(0, 1),
    line=23,
    fix=Fix(
        "            grad_weight = input.t().mm(grad_output)",
        True,
        23,
        "            grad_weight = input.mm(grad_output)",
    ),
)
NOTE = Finding(
    "tensor_on_ctx", "lint", "report.as_text", {"text": "`ctx.scale` keeps a tensor; `save_for_backward` is safer."}
)


def gradcheck(wrong: bool = False, **more: Any) -> GradcheckReport:
    blocks = {
        (0, 0): block(D_INPUT, D_INPUT + 3e-10, SHAPES["input"], ("output", "input"), structure="block diagonal"),
        (0, 1): block(
            WRONG_D_WEIGHT if wrong else D_WEIGHT, D_WEIGHT, SHAPES["weight"], ("output", "weight"),
            structure="block diagonal",
        ),
    }  # fmt: skip
    known: dict[str, Any] = {
        "function": "LinearFunction",
        "verdict": "wrong" if wrong else "right",
        "findings": (TRANSPOSED, NOTE) if wrong else (),
        "blocks": blocks,
        "input_names": ("input", "weight"),
        "output_names": ("output",),
        "seconds": 0.04,
    }
    return GradcheckReport(**{**known, **more})


def cannot_tell() -> GradcheckReport:
    blocks = {
        (0, 0): block(np.eye(3), np.diag([1.0, 0.5, 1.0]), names=("y", "x"), verdict="subgradient", reason="kink"),
    }
    reason = "`x[1]` is exactly 0, where forward has a kink."
    return GradcheckReport("Abs", "cannot tell", blocks=blocks, reason=reason)


def calls() -> CallLog:
    ctx = CtxSnapshot(
        (value("input", X), value("weight", W)),
        {"scale": Value("scale", "float", "2.0"), "bias": Value("bias", "NoneType", "None")},
        (True, True, False),
        bytes=80,
    )
    forward = Call(
        0, "LinearFunction", "forward",
        inputs=(value("input", X), value("weight", W), Value("bias", "NoneType", "None")),
        outputs=(value("output", X @ W),), ctx=ctx, seconds=4.2e-5, stdout="FORWARD: output= tensor([[ 3., 4., 5.]])\n",
        line=5, caller_line=30,
    )  # fmt: skip
    backward = Call(
        1, "LinearFunction", "backward", forward=0, inputs=(value("grad_output", np.ones((2, 3))),),
        outputs=(value("grad_input", np.ones((2, 3)) @ W.T), value("grad_weight", X.T @ np.ones((2, 3)))),
        ctx=ctx, seconds=0.0013, line=14,
    )  # fmt: skip
    return CallLog((forward, backward))


def graph() -> AutogradGraph:
    nodes = (
        Node(0, "SumBackward0", "op", label="loss", shape=(), dtype="float64", gradient=tensor(1.0), outputs=(0,)),
        Node(1, "LinearFunctionBackward", "function", shape=(2, 3), gradient=tensor(np.ones((2, 3)))),
        Node(2, "AccumulateGrad", "leaf", label="a", shape=(2, 2), gradient=tensor(np.ones((2, 3)) @ W.T)),
        Node(3, "AccumulateGrad", "leaf", label="b", shape=(2, 3), gradient=tensor(X.T @ np.ones((2, 3)))),
    )
    edges = (Edge(0, 1, 0, 0, (2, 3)), Edge(1, 2, 0, 0, (2, 2)), Edge(1, 3, 1, 0, (2, 3)))
    return AutogradGraph(nodes, edges, ((0, "loss"),), (0, 1, 2, 3))


def compared(kind: str, pair: Any, largest: float = 0.0) -> ComparedQuantity:
    """A quantity of a comparison; wrong where the two are apart."""
    shape, verdict = pair[0].tensor.shape, "wrong" if largest else "right"
    numbers = (largest, 0.0, 0.0, 0.0, 1e-7, 1e-7)
    return ComparedQuantity(kind, pair[0].name, shape, "float64", verdict, *numbers, values=pair, largest=largest)


def comparison(agree: bool = True) -> Comparison:
    y, a = value("output", X @ W), value("a", W)
    quantities = (compared("output", (y, y)), compared("gradient", (a, a), 0.0 if agree else 1.5))
    return Comparison(
        "f", "torch.mul", "right" if agree else "wrong", quantities=quantities, dtype="float64",
        saved_bytes=(96, 48), seconds_of_each=(3.1e-5, 1.2e-5),
    )  # fmt: skip


def report(wrong: bool = False, **more: Any) -> FunctionReport:
    check = gradcheck(wrong)
    known: dict[str, Any] = {
        "function": "LinearFunction",
        "calls": calls(),
        "graph": graph(),
        "gradcheck": check,
        "findings": check.findings,
    }
    return FunctionReport(**{**known, **more})
