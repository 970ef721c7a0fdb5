"""Kernels in low precision as people write them, right ones and wrong twins, with what they replace."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A Function made of a forward and a backward, and what it should compute.

    Attributes:
        name: for test ids.
        eager: the reference.
        shapes: of the differentiable inputs.
        forward: of the inputs; returns the output and what is saved.
        backward: of what was saved and the grad_output; returns the gradients.
        wrong: backwards of wrong twins, by name.
    """

    name: str
    eager: Callable[..., Tensor]
    shapes: tuple[tuple[int, ...], ...]
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    wrong: dict[str, Callable[..., Any]] = dataclasses.field(default_factory=dict)

    def inputs(self, dtype: torch.dtype, seed: int = 0) -> tuple[Tensor, ...]:
        """Random inputs."""
        generator = torch.Generator().manual_seed(seed)
        return tuple(torch.randn(s, generator=generator).to(dtype).requires_grad_() for s in self.shapes)

    def function(self, twin: str = "") -> Callable[..., Tensor]:
        """The Function's apply, or that of a wrong twin."""
        return function(self.forward, self.wrong[twin] if twin else self.backward, twin or self.name)


def function(forward: Callable[..., Any], backward: Callable[..., Any], name: str = "kernel") -> Callable[..., Tensor]:
    """Make a Function of two plain functions; the gradients come out in the dtypes of the inputs."""

    def run(ctx: Any, *args: Tensor) -> Any:
        out, saved = forward(*args)
        ctx.saved, ctx.dtypes = saved, [a.dtype for a in args]
        return out.to(args[0].dtype)

    def back(ctx: Any, g: Tensor) -> Any:
        grads = backward(ctx.saved, g)
        grads = grads if isinstance(grads, tuple) else (grads,)
        return tuple(None if d is None else d.to(t) for d, t in zip(grads, ctx.dtypes, strict=True))

    cls: Any = type(name, (torch.autograd.Function,), {"forward": staticmethod(run), "backward": staticmethod(back)})
    return cls.apply  # type: ignore[no-any-return]


def _rms(x: Tensor, w: Tensor) -> Tensor:
    xf = x.float()
    return (xf * torch.rsqrt(xf.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


def _rms_forward(x: Tensor, w: Tensor) -> Any:
    xf = x.float()
    r = torch.rsqrt(xf.pow(2).mean(-1, keepdim=True) + 1e-6)
    return xf * r * w.float(), (x, w, r)


def _rms_backward(saved: Any, g: Tensor, factor: float = 1.0, lost: bool = False, half: bool = False) -> Any:
    x, w, r = saved
    x, w, g, r = (t if half else t.float() for t in (x, w, g, r.to(x.dtype) if half else r))
    xh, gw = x * r, g * w
    dx = factor * r * (gw - (0 if lost else xh * (gw * xh).mean(-1, keepdim=True)))
    return dx, (g * xh).sum(tuple(range(x.dim() - 1)))


RMS = Kernel(
    "rms_norm",
    _rms,
    ((16, 200), (200,)),
    _rms_forward,
    _rms_backward,
    {
        "factor": lambda s, g: _rms_backward(s, g, factor=0.98),
        "lost": lambda s, g: _rms_backward(s, g, lost=True),
        "tail": lambda s, g: (lambda d: (torch.cat((d[0][:, :192], 0 * d[0][:, 192:]), 1), d[1]))(_rms_backward(s, g)),
        "row": lambda s, g: (lambda d: (torch.cat((d[0][:-1], 0 * d[0][-1:])), d[1]))(_rms_backward(s, g)),
        "none": lambda s, g: (_rms_backward(s, g)[0], None),
        "zero": lambda s, g: (0 * _rms_backward(s, g)[0], _rms_backward(s, g)[1]),
        "sequential": lambda s, g: (_rms_backward(s, g)[0], _sequential(g, s)),
    },
)


def _sequential(g: Tensor, saved: Any) -> Tensor:
    x, _, r = saved
    total = torch.zeros(g.shape[-1], dtype=g.dtype)
    for row in (g * x * r.to(g.dtype)).repeat_interleave(8, 0) / 8:
        total = total + row.abs()  # of one sign, so that a sum in the dtype stops growing
    return total


def _ln(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), w, b)


def _ln_forward(x: Tensor, w: Tensor, b: Tensor) -> Any:
    xf = x.float()
    mean, var = xf.mean(-1, keepdim=True), xf.var(-1, keepdim=True, unbiased=False)
    r = torch.rsqrt(var + 1e-5)
    return (xf - mean) * r * w.float() + b.float(), (x, w, mean, r)


def _ln_backward(saved: Any, g: Tensor, mean_term: bool = True) -> Any:
    x, w, mean, r = (t.float() for t in saved)
    g = g.float()
    xh, gw = (x - mean) * r, g * w
    dx = r * (gw - mean_term * gw.mean(-1, keepdim=True) - xh * (gw * xh).mean(-1, keepdim=True))
    rows = tuple(range(x.dim() - 1))
    return dx, (g * xh).sum(rows), g.sum(rows)


LAYER_NORM = Kernel(
    "layer_norm",
    _ln,
    ((6, 5, 96), (96,), (96,)),
    _ln_forward,
    _ln_backward,
    {
        "mean": lambda s, g: _ln_backward(s, g, mean_term=False),
        "bias": lambda s, g: (*_ln_backward(s, g)[:2], g.float().mean((0, 1))),
        "head": lambda s, g: (lambda d: (d[0] * _head(d[0].shape), *d[1:]))(_ln_backward(s, g)),
    },
)


def _head(shape: Any) -> Tensor:
    scale = torch.ones(shape)
    scale[:, 2] = 0.5
    return scale


def _softmax_forward(x: Tensor) -> Any:
    y = torch.softmax(x.float(), -1)
    return y, (y.to(x.dtype),)  # saved in few bytes


def _softmax_backward(saved: Any, g: Tensor) -> Any:
    (y,) = saved
    y, g = y.float(), g.float()
    return y * (g - (g * y).sum(-1, keepdim=True))


SOFTMAX = Kernel(
    "softmax",
    lambda x: torch.softmax(x, -1),
    ((12, 70),),
    _softmax_forward,
    _softmax_backward,
    {
        "lost": lambda s, g: s[0].float() * g.float(),
        "mean": lambda s, g: s[0].float() * (g.float() - (g.float() * s[0].float()).mean(-1, keepdim=True)),
        "mask": lambda s, g: torch.where(g > 0, _softmax_backward(s, g), 0.0),
    },
)


def _swiglu(a: Tensor, b: Tensor) -> Tensor:
    return F.silu(a) * b


def _swiglu_forward(a: Tensor, b: Tensor) -> Any:
    return F.silu(a.float()) * b.float(), (a, b)


def _swiglu_backward(saved: Any, g: Tensor, term: float = 1.0) -> Any:
    a, b, g = (t.float() for t in (*saved, g))
    s = torch.sigmoid(a)
    return g * b * (s + term * a * s * (1 - s)), g * a * s


SWIGLU = Kernel(
    "swiglu",
    _swiglu,
    ((10, 130), (10, 130)),
    _swiglu_forward,
    _swiglu_backward,
    {"term": lambda s, g: _swiglu_backward(s, g, term=0.0), "swapped": lambda s, g: _swiglu_backward(s, g)[::-1]},
)


def _gelu_backward(saved: Any, g: Tensor, tanh: bool = False) -> Any:
    x = saved[0].float().requires_grad_()
    with torch.enable_grad():
        y = F.gelu(x, approximate="tanh" if tanh else "none")
    return torch.autograd.grad(y, x, g.float())[0]


GELU = Kernel(
    "gelu",
    F.gelu,
    ((20, 64),),
    lambda x: (F.gelu(x.float()), (x,)),
    _gelu_backward,
    {"sign": lambda s, g: -_gelu_backward(s, g), "abs": lambda s, g: _gelu_backward(s, g.abs())},
)


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v)


def _attention_forward(q: Tensor, k: Tensor, v: Tensor) -> Any:
    """Online softmax over tiles of keys, accumulated in float32."""
    qf, kf, vf = (t.float() for t in (q, k, v))
    scale = q.shape[-1] ** -0.5
    top = torch.full((*q.shape[:-1], 1), -torch.inf)
    total, out = torch.zeros_like(top), torch.zeros_like(qf)
    for start in range(0, k.shape[-2], 8):
        s = qf @ kf[..., start : start + 8, :].transpose(-1, -2) * scale
        new = torch.maximum(top, s.amax(-1, keepdim=True))
        p, shrink = torch.exp(s - new), torch.exp(top - new)
        total, out = total * shrink + p.sum(-1, keepdim=True), out * shrink + p @ vf[..., start : start + 8, :]
        top = new
    out = out / total
    return out, (q, k, v, out.to(q.dtype), top + total.log())


def _attention_backward(saved: Any, g: Tensor, delta: bool = True, scaled: bool = True, last: bool = True) -> Any:
    q, k, v, out, lse = (t.float() for t in saved)
    g, scale = g.float(), q.shape[-1] ** -0.5
    p = torch.exp(q @ k.transpose(-1, -2) * scale - lse)  # recomputed
    dv = p.transpose(-1, -2) @ g
    ds = p * (g @ v.transpose(-1, -2) - (delta * (g * out).sum(-1, keepdim=True)))
    if not last:
        ds[..., -4:] = 0
    factor = scale if scaled else 1.0
    return ds @ k * factor, ds.transpose(-1, -2) @ q * scale, dv


ATTENTION = Kernel(
    "attention",
    _attention,
    ((2, 3, 20, 16), (2, 3, 20, 16), (2, 3, 20, 16)),
    _attention_forward,
    _attention_backward,
    {
        "delta": lambda s, g: _attention_backward(s, g, delta=False),
        "scale": lambda s, g: _attention_backward(s, g, scaled=False),
        "keys": lambda s, g: _attention_backward(s, g, last=False),
    },
)


def _linear_backward(saved: Any, g: Tensor) -> Any:
    x, w = saved
    return g @ w, g.t() @ x, g.sum(0)


LINEAR = Kernel(
    "linear",
    F.linear,
    ((24, 32), (40, 32), (40,)),
    lambda x, w, b: (F.linear(x, w, b), (x, w)),
    _linear_backward,  # in the dtype itself, as eager does
    {
        "bias": lambda s, g: (*_linear_backward(s, g)[:2], g.sum(0) / 2),
        "rows": lambda s, g: (g @ s[1], g[:-1].t() @ s[0][:-1], g.sum(0)),
    },
)


def _targets(x: Tensor) -> Tensor:
    return torch.arange(x.shape[0], device=x.device) * 7 % x.shape[1]


def _cross_entropy_backward(saved: Any, g: Tensor, hot: bool = True, mean: bool = True) -> Any:
    (x,) = saved
    p = torch.softmax(x.float(), -1)
    if hot:
        p[torch.arange(len(x)), _targets(x)] -= 1
    return g.float() * p / (len(x) if mean else 1)


CROSS_ENTROPY = Kernel(
    "cross_entropy",
    lambda x: F.cross_entropy(x, _targets(x)),
    ((30, 100),),
    lambda x: (F.cross_entropy(x.float(), _targets(x)), (x,)),
    _cross_entropy_backward,
    {
        "hot": lambda s, g: _cross_entropy_backward(s, g, hot=False),
        "mean": lambda s, g: _cross_entropy_backward(s, g, mean=False),
        "ignores": lambda s, g: _cross_entropy_backward(s, torch.ones_like(g)),
    },
)


def _rope(x: Tensor) -> Tensor:
    cos, sin = _angles(x)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def _angles(x: Tensor) -> tuple[Tensor, Tensor]:
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] / 100.0 ** (torch.arange(half) / half)
    return angle.cos().to(x.dtype), angle.sin().to(x.dtype)


def _rope_backward(saved: Any, g: Tensor, sign: float = -1.0) -> Any:
    cos, sin = (t.float() for t in saved)
    a, b = g.float().chunk(2, -1)
    return torch.cat((a * cos - sign * b * sin, b * cos + sign * a * sin), -1)


ROPE = Kernel(
    "rope",
    _rope,
    ((3, 18, 32),),
    lambda x: (_rope(x), _angles(x)),
    _rope_backward,
    {"sign": lambda s, g: _rope_backward(s, g, sign=1.0), "cut": lambda s, g: _rope_backward(s, g) * _front(g)},
)


def _front(g: Tensor) -> Tensor:
    return (torch.arange(g.shape[-2]) < 16)[:, None]


def _focal(x: Tensor) -> Tensor:
    p = torch.sigmoid(x.float())
    return (-((1 - p) ** 2) * p.log()).to(x.dtype)


def _focal_backward(saved: Any, g: Tensor, full: bool = True) -> Any:
    p = torch.sigmoid(saved[0].float())
    return g.float() * (full * 2 * p * (1 - p) ** 2 * p.log() - (1 - p) ** 3)


FOCAL = Kernel(
    "focal_loss",
    _focal,
    ((15, 60),),
    lambda x: (_focal(x), (x,)),
    _focal_backward,
    {"half": lambda s, g: _focal_backward(s, g, full=False)},
)

KERNELS = (RMS, LAYER_NORM, SOFTMAX, SWIGLU, GELU, ATTENTION, LINEAR, CROSS_ENTROPY, ROPE, FOCAL)
