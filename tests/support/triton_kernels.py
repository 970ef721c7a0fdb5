"""Kernels in Triton with wrong twins: a softmax, an RMSNorm and a cross-entropy, one program for each row.

Written for ``TRITON_INTERPRET=1``, under which they run on the CPU, one program after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
import triton
import triton.language as tl
from torch import Tensor

TILE = 16  # columns that a program takes at a time


@triton.jit
def _softmax_rows(x, y, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=-float("inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * columns + at, (power / tl.sum(power, 0)).to(y.dtype.element_ty), mask=inside)


@triton.jit
def _softmax_grad(y, g, dx, columns, TILE: tl.constexpr, LIMIT: tl.constexpr, TWIN: tl.constexpr):
    """Twins: 1 leaves out the last tile, 2 reads past the row, 3 accumulates in bfloat16, 4 has no sum, 5 races."""
    row = tl.program_id(0)
    start = row * columns
    total = tl.zeros((1,), tl.bfloat16 if TWIN == 3 else tl.float32)
    for first in range(0, LIMIT, TILE):
        at = first + tl.arange(0, TILE)
        inside = at < columns
        if TWIN == 2:
            inside = at < LIMIT
        p = tl.load(y + start + at, mask=inside, other=0.0).to(tl.float32)
        flow = tl.load(g + start + at, mask=inside, other=0.0).to(tl.float32)
        if TWIN == 3:
            for k in range(TILE):
                total += tl.sum(tl.where(tl.arange(0, TILE) == k, p * flow, 0.0), 0).to(tl.bfloat16)
        else:
            total += tl.sum(p * flow, 0)
    if TWIN == 4:
        total = total * 0
    for first in range(0, LIMIT, TILE):
        at = first + tl.arange(0, TILE)
        inside = at < columns
        if TWIN == 1:
            inside = at < columns // TILE * TILE
        p = tl.load(y + start + at, mask=inside, other=0.0).to(tl.float32)
        flow = tl.load(g + start + at, mask=inside, other=0.0).to(tl.float32)
        place = start + at
        if TWIN == 5:  # two rows write to one place, and the last one wins
            place = (row // 2) * 2 * columns + at
        tl.store(dx + place, (p * (flow - total)).to(dx.dtype.element_ty), mask=inside)


@triton.jit
def _rms_rows(x, w, y, scale, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    r = 1 / tl.sqrt(tl.sum(value * value, 0) / columns + 1e-6)
    weight = tl.load(w + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(scale + row, r)
    tl.store(y + row * columns + at, (value * r * weight).to(y.dtype.element_ty), mask=inside)


@triton.jit
def _rms_grad(x, w, scale, g, dx, dw, columns, TILE: tl.constexpr, LIMIT: tl.constexpr, TWIN: tl.constexpr):
    """Twins: 1 leaves out the last tile, 2 reads past the row, 3 accumulates in bfloat16, 4 has no mean, 5, 6 race."""
    row = tl.program_id(0)
    start = row * columns
    r = tl.load(scale + row)
    total = tl.zeros((1,), tl.bfloat16 if TWIN == 3 else tl.float32)
    for first in range(0, LIMIT, TILE):
        at = first + tl.arange(0, TILE)
        inside = at < columns
        if TWIN == 2:
            inside = at < LIMIT
        value = tl.load(x + start + at, mask=inside, other=0.0).to(tl.float32) * r
        flow = tl.load(g + start + at, mask=inside, other=0.0).to(tl.float32)
        flow = flow * tl.load(w + at, mask=at < columns, other=1.0).to(tl.float32)
        if TWIN == 3:
            for k in range(TILE):
                total += tl.sum(tl.where(tl.arange(0, TILE) == k, value * flow, 0.0), 0).to(tl.bfloat16)
        else:
            total += tl.sum(value * flow, 0)
    mean = total / columns
    if TWIN == 4:
        mean = mean * 0
    for first in range(0, LIMIT, TILE):
        at = first + tl.arange(0, TILE)
        inside = at < columns
        if TWIN == 1:
            inside = at < columns // TILE * TILE
        value = tl.load(x + start + at, mask=inside, other=0.0).to(tl.float32) * r
        flow = tl.load(g + start + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(w + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(dx + start + at, (r * (flow * weight - value * mean)).to(dx.dtype.element_ty), mask=inside)
        if TWIN == 5:  # each row writes its part over what the others wrote
            tl.store(dw + at, flow * value, mask=inside)
        elif TWIN == 6:  # as little atomic, and what no run in order can show
            part = tl.load(dw + at, mask=inside, other=0.0) + flow * value
            tl.store(dw + at, part, mask=inside)
        else:
            tl.atomic_add(dw + at, flow * value, mask=inside)


@triton.jit
def _entropy_rows(x, target, losses, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    top = tl.max(value, 0)
    right = tl.load(x + row * columns + tl.load(target + row)).to(tl.float32)
    tl.store(losses + row, top + tl.log(tl.sum(tl.exp(value - top), 0)) - right)


@triton.jit
def _entropy_grad(x, target, g, dx, rows, columns, TILE: tl.constexpr, LIMIT: tl.constexpr, TWIN: tl.constexpr):
    """Twins: 1 leaves out the last tile, 2 reads past the row, 3 accumulates in bfloat16, 4 has no target, 5 races."""
    row = tl.program_id(0)
    start = row * columns
    total = tl.zeros((1,), tl.bfloat16 if TWIN == 3 else tl.float32)
    for first in range(0, LIMIT, TILE):
        at = first + tl.arange(0, TILE)
        inside = at < columns
        if TWIN == 2:
            inside = at < LIMIT
        power = tl.exp(tl.load(x + start + at, mask=inside, other=-float("inf")).to(tl.float32))
        if TWIN == 3:
            for k in range(TILE):
                total += tl.sum(tl.where(tl.arange(0, TILE) == k, power, 0.0), 0).to(tl.bfloat16)
        else:
            total += tl.sum(power, 0)
    flow = tl.load(g).to(tl.float32) / rows
    right = tl.load(target + row)
    for first in range(0, LIMIT, TILE):
        at = first + tl.arange(0, TILE)
        inside = at < columns
        if TWIN == 1:
            inside = at < columns // TILE * TILE
        p = tl.exp(tl.load(x + start + at, mask=inside, other=-float("inf")).to(tl.float32)) / total
        if TWIN != 4:
            p = p - tl.where(at == right, 1.0, 0.0)
        place = start + at
        if TWIN == 5:
            place = (row // 2) * 2 * columns + at
        tl.store(dx + place, (p * flow).to(dx.dtype.element_ty), mask=inside)


def _tiles(columns: int) -> int:
    return triton.cdiv(columns, TILE) * TILE


def _padded(t: Tensor) -> Tensor:
    """The same numbers with sevens behind them, for a twin that reads past the last row."""
    room = torch.full((t.numel() + TILE,), 7.0, dtype=t.dtype)
    room[: t.numel()] = t.reshape(-1)
    return room[: t.numel()].view(t.shape)


def _function(forward: Callable[..., Any], backward: Callable[..., Any], name: str, twin: int) -> Any:
    return type(name, (torch.autograd.Function,), {
        "forward": staticmethod(forward),
        "backward": staticmethod(lambda ctx, g: backward(ctx, g.contiguous(), twin)),
    })  # fmt: skip


def _softmax_forward(ctx: Any, x: Tensor) -> Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    rows, columns = x.shape
    _softmax_rows[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
    ctx.save_for_backward(y)
    return y


def _softmax_backward(ctx: Any, g: Tensor, twin: int) -> Tensor:
    y, g = _padded(ctx.saved_tensors[0]), _padded(g)
    dx = torch.zeros_like(y)
    rows, columns = y.shape
    _softmax_grad[(rows,)](y, g, dx, columns, TILE=TILE, LIMIT=_tiles(columns), TWIN=twin)
    return dx


def _rms_forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
    x, w = x.contiguous(), w.contiguous()
    y, scale = torch.empty_like(x), torch.empty(x.shape[0])
    rows, columns = x.shape
    _rms_rows[(rows,)](x, w, y, scale, columns, BLOCK=triton.next_power_of_2(columns))
    ctx.save_for_backward(x, w, scale)
    return y


def _rms_backward(ctx: Any, g: Tensor, twin: int) -> tuple[Tensor, Tensor]:
    x, w, scale = ctx.saved_tensors
    x, g = _padded(x), _padded(g)
    dx, dw = torch.zeros_like(x), torch.zeros(w.shape)
    rows, columns = x.shape
    _rms_grad[(rows,)](x, w, scale, g, dx, dw, columns, TILE=TILE, LIMIT=_tiles(columns), TWIN=twin)
    return dx, dw.to(w.dtype)


def _entropy_forward(ctx: Any, x: Tensor, target: Tensor) -> Tensor:
    x = x.contiguous()
    losses = torch.empty(x.shape[0])
    rows, columns = x.shape
    _entropy_rows[(rows,)](x, target, losses, columns, BLOCK=triton.next_power_of_2(columns))
    ctx.save_for_backward(x, target)
    return losses.mean().to(x.dtype)


def _entropy_backward(ctx: Any, g: Tensor, twin: int) -> tuple[Tensor, None]:
    x, target = ctx.saved_tensors
    x = _padded(x)
    dx = torch.zeros_like(x)
    rows, columns = x.shape
    _entropy_grad[(rows,)](x, target, g, dx, rows, columns, TILE=TILE, LIMIT=_tiles(columns), TWIN=twin)
    return dx, None


def softmax(twin: int = 0) -> Any:
    """The Function."""
    return _function(_softmax_forward, _softmax_backward, "Softmax", twin)


def rms_norm(twin: int = 0) -> Any:
    """The Function."""
    return _function(_rms_forward, _rms_backward, "RMSNorm", twin)


def cross_entropy(twin: int = 0) -> Any:
    """The Function."""
    return _function(_entropy_forward, _entropy_backward, "CrossEntropy", twin)


def eager_softmax(x: Tensor) -> Tensor:
    """The reference."""
    return torch.softmax(x, -1)


def eager_rms_norm(x: Tensor, w: Tensor) -> Tensor:
    """The reference."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6) * w.float()).to(x.dtype)


def eager_cross_entropy(x: Tensor, target: Tensor) -> Tensor:
    """The reference."""
    return F.cross_entropy(x, target)


def inputs(name: str, columns: int = 40) -> tuple[Tensor, ...]:
    """Inputs of 4 rows; 40 columns are two tiles and a half."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, columns, generator=generator).bfloat16().requires_grad_()
    if name == "rms_norm":
        return x, (torch.rand(columns, generator=generator) + 0.5).bfloat16().requires_grad_()
    return (x, torch.tensor([3, 17, 31, 0])) if name == "cross_entropy" else (x,)


KERNELS = {"softmax": eager_softmax, "rms_norm": eager_rms_norm, "cross_entropy": eager_cross_entropy}
TWINS = {1: "tile tail", 2: "missing mask", 3: "accumulated in bfloat16", 4: "lost term", 5: "race"}
