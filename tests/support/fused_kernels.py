"""Fused kernels as models run them, in plain torch: right ones, and the same with one fault that such kernels have had.

They follow the formulas of released kernels: a norm with the gradient of its weight summed over blocks of rows, SwiGLU,
a linear layer fused with its cross entropy, rotary positions, attention by tiles with what is saved rounded to the
dtype, attention over ragged sequences, gated linear attention, and a layer norm with a residual. Where a kernel takes a
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


# ---- a linear layer fused with its cross entropy, by chunks of rows, gradients computed in forward


def linear_cross_entropy(x: Tensor, w: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(x @ w.T, target)


def _linear_cross_entropy(mean: bool = True, last: bool = True, flowing: bool = True) -> Any:
    def forward(x: Tensor, w: Tensor, target: Tensor) -> Any:
        loss, dx, dw = torch.zeros(()), torch.zeros(x.shape), torch.zeros(w.shape)
        for start in range(0, len(x), TILE):
            rows, wanted = x[start : start + TILE].float(), target[start : start + TILE]
            logits = rows @ w.float().T
            p = torch.softmax(logits, -1)
            loss += F.cross_entropy(logits, wanted, reduction="sum") / len(x)
            dlogits = p - F.one_hot(wanted, len(w))
            dlogits = dlogits / len(x) if mean else dlogits
            dx[start : start + TILE] = dlogits @ w.float()
            if last or start + TILE <= len(x) or start == 0:
                dw += dlogits.T @ rows
        return loss, (dx, dw)

    def backward(saved: Any, g: Tensor) -> Any:
        return (*((g.float() if flowing else 1.0) * d.float() for d in saved), None)

    return function(forward, backward, "linear_cross_entropy")


def _rows_and_targets(dtype: torch.dtype, seed: int) -> tuple[Tensor, ...]:
    x, w = normal((48, 32), (40, 32))(dtype, seed)
    w = (0.3 * w).detach().requires_grad_()
    return x, w, torch.randint(40, (48,), generator=torch.Generator().manual_seed(seed))


LINEAR_CROSS_ENTROPY = Fused(
    "linear_cross_entropy",
    _rows_and_targets,
    both(linear_cross_entropy),
    _linear_cross_entropy(),
    {
        "no mean": _linear_cross_entropy(mean=False),
        "last chunk": _linear_cross_entropy(last=False),
        "grad_output": _linear_cross_entropy(flowing=False),
    },
)


# ---- rotary positions, of (positions, heads, columns)


def _angles(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    half = x.shape[-1] // 2
    angle = torch.arange(count)[:, None, None] / 1000.0 ** (torch.arange(half) / half)
    return angle.cos(), angle.sin()


def rope(x: Tensor) -> Tensor:
    cos, sin = (t.to(x.dtype) for t in _angles(x, x.shape[-3]))
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def _rope(sign: float = 1.0, rows: bool = False, last: bool = True) -> Callable[..., Tensor]:
    def forward(x: Tensor) -> Any:
        cos, sin = (t.to(x.dtype).float() for t in _angles(x, x.shape[-3]))
        a, b = x.float().chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1), (x,)

    def backward(saved: Any, g: Tensor) -> Tensor:
        (x,) = saved
        flat = g.float().reshape(-1, *g.shape[-2:])
        count = x.shape[-3]
        at = torch.arange(len(flat)) if rows else torch.arange(len(flat)) % count
        cos, sin = (t.to(x.dtype).float()[at] for t in _angles(x, len(flat)))
        a, b = flat.chunk(2, -1)
        out = torch.cat((a * cos + sign * b * sin, b * cos - sign * a * sin), -1)
        if not last and x.shape[-2] > 1:
            out[:, -1] = 0
        return out.reshape(g.shape)

    return function(forward, backward, "rope")


ROPE = Fused(
    "rope",
    normal((24, 3, 32)),
    both(rope),
    _rope(),
    {"sign": _rope(sign=-1.0), "one more dimension": _rope(rows=True), "last head": _rope(last=False)},
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


# ---- gated linear attention: a state of keys and values that decays


def gated(q: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Tensor:
    state, out = torch.zeros(*k.shape[:-2], k.shape[-1], v.shape[-1], dtype=q.dtype), []
    decay = torch.sigmoid(gate)
    for t in range(q.shape[-2]):
        state = decay[..., t, :, None] * state + k[..., t, :, None] * v[..., t, None, :]
        out.append((q[..., t, None, :] @ state)[..., 0, :])
    return torch.stack(out, -2)


def _gated(across: bool = True, gates: bool = True) -> Callable[..., Tensor]:
    def forward(q: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Any:
        wide = [t.float() for t in (q, k, v, gate)]
        return gated(*wide), (q, k, v, gate)

    def backward(saved: Any, g: Tensor) -> Any:
        q, k, v, gate = (t.float() for t in saved)
        g, decay = g.float(), torch.sigmoid(gate)
        states = [torch.zeros(*k.shape[:-2], k.shape[-1], v.shape[-1])]
        for t in range(q.shape[-2]):
            states.append(decay[..., t, :, None] * states[-1] + k[..., t, :, None] * v[..., t, None, :])
        grads = [torch.zeros(t.shape) for t in (q, k, v, gate)]
        flow = torch.zeros(states[0].shape)
        for t in reversed(range(q.shape[-2])):
            flow = flow + q[..., t, :, None] * g[..., t, None, :]
            grads[0][..., t, :] = (states[t + 1] @ g[..., t, :, None])[..., 0]
            grads[1][..., t, :] = (flow @ v[..., t, :, None])[..., 0]
            grads[2][..., t, :] = (k[..., t, None, :] @ flow)[..., 0, :]
            slope = decay[..., t, :] * (1 - decay[..., t, :]) if gates else decay[..., t, :]
            grads[3][..., t, :] = (flow * states[t]).sum(-1) * slope
            keep = across or t % TILE
            flow = decay[..., t, :, None] * flow * (1.0 if keep else 0.0)
        return tuple(grads)

    return function(forward, backward, "gated")


GATED = Fused(
    "gated_linear_attention",
    normal(*((2, 20, 8),) * 4),
    both(gated),
    _gated(),
    {"chunks": _gated(across=False), "slope": _gated(gates=False)},
)


# ---- a layer norm of a sum


def residual_norm(x: Tensor, r: Tensor, w: Tensor, b: Tensor) -> Tensor:
    h = x + r
    h = h - h.mean(-1, keepdim=True)
    return h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5) * w + b


def _residual(
    mean: bool = True, read: Callable[[Tensor], Tensor] = lambda x: x, sums: torch.dtype = torch.float32
) -> Callable[..., Tensor]:
    def forward(x: Tensor, r: Tensor, w: Tensor, b: Tensor) -> Any:
        h = x.float() + r.float()
        m = h.mean(-1, keepdim=True)
        scale = torch.rsqrt((h - m).square().mean(-1, keepdim=True) + 1e-5)
        return (h - m) * scale * w.float() + b.float(), (x, r, w, m, scale)

    def backward(saved: Any, g: Tensor) -> Any:
        x, r, w, m, scale = saved
        g = g.float()
        hat, gw = (x.float() + read(r).float() - m) * scale, g * w.float()
        dh = scale * (gw - mean * gw.mean(-1, keepdim=True) - hat * (gw * hat).mean(-1, keepdim=True))
        dw = db = torch.zeros(x.shape[-1], dtype=sums)
        lines = (t.reshape(-1, x.shape[-1]).split(4) for t in (g * hat, g))
        for block, rows in zip(*lines, strict=True):
            dw, db = dw + block.sum(0).to(sums), db + rows.sum(0).to(sums)
        return dh, dh, dw, db

    return function(forward, backward, "residual_norm")


RESIDUAL_NORM = Fused(
    "residual_norm",
    normal((88, 96), (88, 96), (96,), (96,)),
    both(residual_norm),
    _residual(),
    {
        "mean": _residual(mean=False),
        "layout": _residual(read=by_pointer),
        "fused slices": _residual(read=by_rows),
        "sums in bfloat16": _residual(sums=torch.bfloat16),
    },
)

FUSED = (
    RMS_NORM, SWIGLU, LINEAR_CROSS_ENTROPY, ROPE, FLASH, FLASH_CAUSAL, RAGGED, GATED, RESIDUAL_NORM
)  # fmt: skip
