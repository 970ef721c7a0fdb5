"""Fused kernels as models run them, in plain torch: right ones, and the same with one fault that such kernels have had.

They follow the formulas of released kernels: a norm with the gradient of its weight summed over blocks of rows, SwiGLU,
attention by tiles with what is saved rounded to the dtype, and attention over ragged sequences. Where a kernel takes a
pointer, ``by_pointer`` stands for it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from kernels import function
from torch import Tensor

TILE = 16


@dataclasses.dataclass(frozen=True)
class Fused:
    """A kernel, what it should compute, and the same with faults.

    Attributes:
        name: for test ids.
        make: inputs of a dtype and a seed.
        eager: references by name: ``"float32"`` computes in float32 inside, ``"steps"`` rounds each step.
        kernel: the right one.
        faults: by name, the same with one fault.
        dtypes: what it is written for.
    """

    name: str
    make: Callable[[torch.dtype, int], tuple[Any, ...]]
    eager: dict[str, Callable[..., Tensor]]
    kernel: Callable[..., Tensor]
    faults: dict[str, Callable[..., Tensor]]
    dtypes: tuple[torch.dtype, ...] = (torch.float16, torch.bfloat16, torch.float32)


def normal(*shapes: Sequence[int]) -> Callable[[torch.dtype, int], tuple[Tensor, ...]]:
    def make(dtype: torch.dtype, seed: int) -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(seed)
        return tuple(torch.randn(*s, generator=generator).to(dtype).requires_grad_() for s in shapes)

    return make


def in_float32(formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The formula on float32, rounded once at the end."""

    def eager(*args: Any) -> Tensor:
        wide = (a.float() if isinstance(a, Tensor) and a.is_floating_point() else a for a in args)
        return formula(*wide).to(args[0].dtype)

    return eager


def both(formula: Callable[..., Tensor]) -> dict[str, Callable[..., Tensor]]:
    return {"float32": in_float32(formula), "steps": formula}


def by_pointer(x: Tensor) -> Tensor:
    """A tensor as a kernel sees it that takes its first address and its sizes, and no strides."""
    strides = torch.empty(x.shape, device="meta").stride()
    return x.as_strided(x.shape, strides)


def by_rows(x: Tensor) -> Tensor:
    """A tensor as a kernel sees it that asks for neighbouring columns and takes rows to follow each other."""
    return by_pointer(x if x.stride(-1) == 1 else x.contiguous())


# ---- RMSNorm: the gradient of the weight is summed up over blocks of rows


def rms_norm(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w


def _rms_forward(x: Tensor, w: Tensor) -> Any:
    r = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
    return x.float() * r * w.float(), (x, w, r)


def _rms_backward(
    saved: Any,
    g: Tensor,
    sums: torch.dtype = torch.float32,
    read: Callable[[Tensor], Tensor] = lambda x: x,
    full: bool = False,
    lines: bool = False,
) -> Any:
    x, w, r = saved
    wide, gw = read(x).float(), g.float() * w.float()
    hat = wide * r
    dx = r * (gw - hat * (gw * hat).mean(-1, keepdim=True))
    if lines:  # as many rows as the first size says
        dx.view(-1, x.shape[-1])[x.shape[0] :] = 0
    rows = (g.float() * hat).reshape(-1, x.shape[-1])
    rows = rows[: len(rows) // 4 * 4] if full and len(rows) > 4 else rows
    dw = torch.zeros(x.shape[-1], dtype=sums)
    for block in rows.split(4):
        dw = dw + block.sum(0).to(sums)
    return dx, dw


def _rms(**fault: Any) -> Callable[..., Tensor]:
    return function(_rms_forward, functools.partial(_rms_backward, **fault), "rms_norm")


RMS_NORM = Fused(
    "rms_norm",
    normal((88, 128), (128,)),
    both(rms_norm),
    _rms(),
    {
        "sums in bfloat16": _rms(sums=torch.bfloat16),
        "layout": _rms(read=by_pointer),
        "fused slices": _rms(read=by_rows),
        "last block of rows": _rms(full=True),
        "one more dimension": _rms(lines=True),
    },
)


# ---- SwiGLU


def swiglu(a: Tensor, b: Tensor) -> Tensor:
    return F.silu(a) * b


def _swiglu(read: Callable[[Tensor], Tensor] = lambda x: x, sign: float = 1.0, packed: bool = False) -> Any:
    def backward(saved: Any, g: Tensor) -> Any:
        if packed and saved[0].untyped_storage().data_ptr() == saved[1].untyped_storage().data_ptr():
            g = -g  # a way of its own for what comes out of one linear layer
        a, b = (read(x).float() for x in saved)
        s = torch.sigmoid(a)
        return g.float() * b * s * (1 + sign * a * (1 - s)), g.float() * a * s

    return function(lambda a, b: (F.silu(a.float()) * b.float(), (a, b)), backward, "swiglu")


SWIGLU = Fused(
    "swiglu",
    normal((24, 96), (24, 96)),
    both(swiglu),
    _swiglu(),
    {
        "sign": _swiglu(sign=-1.0),
        "layout": _swiglu(read=by_pointer),
        "fused slices": _swiglu(read=by_rows),
        "packed": _swiglu(packed=True),
    },
)


# ---- attention by tiles, with the output saved as it is stored


def attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    return torch.softmax(scores, -1) @ v


def _tiles(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """Return output and log-sum-exp, by an online softmax over tiles of keys."""
    scale, out = q.shape[-1] ** -0.5, torch.zeros(*q.shape[:-1], v.shape[-1])
    top, total = torch.full((*q.shape[:-1], 1), -math.inf), torch.zeros(*q.shape[:-1], 1)
    rows = torch.arange(q.shape[-2])[:, None]
    for start in range(0, k.shape[-2], TILE):
        keys, values = k[..., start : start + TILE, :].float(), v[..., start : start + TILE, :].float()
        s = q.float() @ keys.transpose(-1, -2) * scale
        if causal:
            s = s.masked_fill(torch.arange(start, start + keys.shape[-2]) > rows, -math.inf)
        new = torch.maximum(top, s.amax(-1, keepdim=True))
        p, shrink = torch.exp(s - new), torch.exp(top - new)
        # the product of probabilities and values takes both in the dtype, as tensor cores do
        out = out * shrink + p.to(q.dtype).float() @ values
        total, top = total * shrink + p.sum(-1, keepdim=True), new
    return out / total, top + total.log()


def _flash(
    causal: bool = False,
    scaled: bool = True,
    delta: bool = True,
    last: bool = True,
    read: Callable[[Tensor], Tensor] = lambda x: x,
) -> Callable[..., Tensor]:
    def forward(q: Tensor, k: Tensor, v: Tensor) -> Any:
        out, lse = _tiles(q, k, v, causal)
        return out, (q, k, v, out.to(q.dtype), lse)

    def backward(saved: Any, g: Tensor) -> Any:
        q, k, v, out, lse = saved
        half = q.dtype
        q, k, v, out, g = q.float(), read(k).float(), v.float(), out.float(), g.float()
        scale = q.shape[-1] ** -0.5
        s = q @ k.transpose(-1, -2) * scale
        if causal:
            s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
        p = torch.exp(s - lse)
        rows = (g * out).sum(-1, keepdim=True)
        ds = p * (g @ v.transpose(-1, -2) - (rows if delta else 0))
        if not last and ds.shape[-1] > TILE:
            ds[..., ds.shape[-1] // TILE * TILE :] = 0
        p, ds = p.to(half).float(), ds.to(half).float()
        return ds @ k * (scale if scaled else 1.0), ds.transpose(-1, -2) @ q * scale, p.transpose(-1, -2) @ g

    return function(forward, backward, "flash")


FLASH, FLASH_CAUSAL = (
    Fused(
        f"flash{'_causal' if causal else ''}",
        normal(*((1, 3, 48, 16),) * 3),
        both(functools.partial(attention, causal=causal)),
        _flash(causal),
        {
            "scale": _flash(causal, scaled=False),
            "delta": _flash(causal, delta=False),
            "last tile": _flash(causal, last=False),
            "layout": _flash(causal, read=by_pointer),
        },
        (torch.float16, torch.bfloat16),
    )
    for causal in (False, True)
)


# ---- attention over ragged sequences: (tokens, heads, columns), and where each sequence starts


def ragged_attention(q: Tensor, k: Tensor, v: Tensor, starts: Tensor) -> Tensor:
    ends = starts.tolist()
    parts = [
        attention(*(t[a:b].transpose(0, 1) for t in (q, k, v))).transpose(0, 1) for a, b in itertools.pairwise(ends)
    ]
    return torch.cat([*parts, q[ends[-1] :] * 0])


def _ragged(last: bool = True) -> Callable[..., Tensor]:
    def forward(q: Tensor, k: Tensor, v: Tensor, starts: Tensor) -> Any:
        if int(starts[-1]) != len(q) or int(starts[0]) or bool((starts.diff() < 0).any()):
            raise ValueError("the sequences do not cover the tokens")
        out = torch.empty(v.shape)
        for a, b in _sequences(starts):
            out[a:b] = _tiles(*(t[a:b].transpose(0, 1) for t in (q, k, v)), causal=False)[0].transpose(0, 1)
        return out, (q, k, v, out.to(q.dtype), starts)

    def backward(saved: Any, g: Tensor) -> Any:
        *tensors, starts = saved
        grads = [torch.zeros(t.shape) for t in tensors[:3]]
        for a, b in _sequences(starts):
            q, k, v, out, go = (t[a:b].float().transpose(0, 1) for t in (*tensors, g))
            scale = q.shape[-1] ** -0.5
            p = torch.softmax(q @ k.transpose(-1, -2) * scale, -1)
            ds = p * (go @ v.transpose(-1, -2) - (go * out).sum(-1, keepdim=True))
            dk, dv = ds.transpose(-1, -2) @ q * scale, p.transpose(-1, -2) @ go
            if not last and b - a > TILE:
                full = (b - a) // TILE * TILE
                dk[:, full:], dv[:, full:] = 0, 0
            for grad, d in zip(grads, (ds @ k * scale, dk, dv), strict=True):
                grad[a:b] = d.transpose(0, 1)
        return (*grads, None)

    return function(forward, backward, "ragged")


def _sequences(starts: Tensor) -> list[tuple[int, int]]:
    ends = starts.tolist()
    return [(a, b) for a, b in itertools.pairwise(ends) if b > a]


def _ragged_inputs(dtype: torch.dtype, seed: int) -> tuple[Any, ...]:
    starts = torch.tensor([0, 16, 48, 64], dtype=torch.int32)
    return (*normal(*((64, 2, 16),) * 3)(dtype, seed), starts)


RAGGED = Fused(
    "ragged_attention",
    _ragged_inputs,
    both(ragged_attention),
    _ragged(),
    {"tail": _ragged(last=False)},
    (torch.float16, torch.bfloat16),
)


FUSED = (RMS_NORM, SWIGLU, FLASH, FLASH_CAUSAL, RAGGED)
