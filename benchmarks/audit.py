"""What watching a program costs: a small transformer with three custom Functions, watched and bare in turn.

``python benchmarks/audit.py [steps]`` prints, for each device there is, the watched time of a training run over the
bare time: the median over rounds of pairs (process time on the CPU, wall time on a GPU), the least over the least, and
bare over bare, which is the noise of the machine. A watch begins with each round, so that copies are part of it; they
are told apart by a round that begins with situations already known.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import nn

from nbautograd.core.recording.watching import FunctionWatch

STEPS, ROUNDS = 200, 3
WIDTH, HEADS, LAYERS, BATCH, LENGTH = 128, 4, 2, 8, 64


class Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(1.702 * x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(1.702 * x)
        return grad * s * (1 + 1.702 * x * (1 - s))


class RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        r = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(x, weight, r)
        return x * r * weight

    @staticmethod
    def backward(ctx, grad):
        x, weight, r = ctx.saved_tensors
        g, y = grad * weight, x * r
        return r * (g - y * (g * y).mean(-1, keepdim=True)), (grad * y).flatten(0, -2).sum(0), None


class Scores(torch.autograd.Function):
    @staticmethod
    def forward(q, k, scale):
        return (q @ k.transpose(-1, -2) * scale).softmax(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        q, k, ctx.scale = inputs
        ctx.save_for_backward(q, k, output)

    @staticmethod
    def backward(ctx, grad):
        q, k, p = ctx.saved_tensors
        d = p * (grad - (grad * p).sum(-1, keepdim=True)) * ctx.scale
        return d @ k, d.transpose(-1, -2) @ q, None


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Parameter(torch.ones(WIDTH)) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        split = self.qkv(RmsNorm.apply(x, self.first, 1e-6)).view(*x.shape[:2], 3, HEADS, -1)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        x = x + self.out((Scores.apply(q, k, q.shape[-1] ** -0.5) @ v).transpose(1, 2).flatten(2))
        return x + self.down(Gelu.apply(self.up(RmsNorm.apply(x, self.second, 1e-6))))


def trained(device: str) -> Callable[[int], None]:
    torch.manual_seed(0)
    model = nn.Sequential(*(Layer() for _ in range(LAYERS))).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    x = torch.randn(BATCH, LENGTH, WIDTH, device=device)

    def run(steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            (model(x) - x.flip(1)).square().mean().backward()
            optimizer.step()
        if device != "cpu":
            torch.cuda.synchronize()

    return run


def seconds(run: Callable[[int], None], steps: int, clock: Callable[[], float]) -> float:
    begin = clock()
    run(steps)
    return clock() - begin


def measure(device: str, steps: int) -> None:
    run, clock = trained(device), time.process_time if device == "cpu" else time.perf_counter
    run(20)
    bare, again, watched, known = [], [], [], []
    for _ in range(ROUNDS):
        bare.append(seconds(run, steps, clock))
        with FunctionWatch() as watch:
            watched.append(seconds(run, steps, clock))
            known.append(seconds(run, steps, clock))
        again.append(seconds(run, steps, clock))
    calls = sum(found.calls for found in watch.functions.values()) // 2
    print(
        f"{device}: {steps} steps, {len(watch.functions)} Functions, {calls} calls, {watch.bytes / 2**20:.1f} MiB kept"
    )
    for name, times in (("watched", watched), ("watched, situations known", known), ("bare again", again)):
        paired = statistics.median(t / b for t, b in zip(times, bare, strict=True))
        print(f"  {name:26} / bare: median {paired:.3f}, least / least {min(times) / min(bare):.3f}")
    print(f"  bare: {1e3 * min(bare) / steps:.3f} ms a step")


if __name__ == "__main__":
    for where in ("cpu", *(["cuda"] if torch.cuda.is_available() else [])):
        measure(where, int(sys.argv[1]) if len(sys.argv) > 1 else STEPS)
