"""What the live card costs: the lecture's KillHead under SGD, recorded with a card that follows and without.

``python benchmarks/card.py [rounds]`` prints, per thumbnail-sized and larger batch, the ratio of the process's CPU time
of a loop of about a second with the card to the same loop recorded alone (least and median over rounds, in
alternation; noise is the loop alone over the loop alone), how many updates were sent, and their least distance in time.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import time
from typing import Any

import torch
from IPython.core.interactiveshell import InteractiveShell

from nbautograd.core.recording import api as log

CELL = """%%autograd_function
class KillHead(Function):
    @staticmethod
    def forward(ctx, input, n):
        ctx.n = n
        result = input.clone()
        result[:, 0:ctx.n] = 0
        return result

    @staticmethod
    def backward(ctx, grad_output):
        result = grad_output.clone()
        result[:, 0:ctx.n] = 0
        return result, None

criterion = torch.nn.MSELoss()
"""
LOOP = """import time
y, x = torch.randn({rows}, 8), torch.randn({rows}, 8).requires_grad_()
optimizer = torch.optim.SGD([x], lr=1.0)
cpu, wall = time.process_time(), time.perf_counter()
for k in range({steps}):
    loss = criterion(KillHead.apply(x, 2), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
took = time.process_time() - cpu, time.perf_counter() - wall
"""


class Sent:
    """A publisher that encodes, as a kernel does, and throws away."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def publish(self, data: dict[str, str], *rest: Any, **more: Any) -> None:
        json.dumps(data).encode()
        if more.get("update"):
            self.times.append(time.perf_counter())


def once(shell: Any, rows: int, steps: int, card: bool) -> tuple[float, list[float]]:
    log.clear()
    cards = shell.session_of_nbautograd.cards
    cards.updates, shell.display_pub.times = card, []
    shell.run_cell(LOOP.format(rows=rows, steps=steps))
    took: tuple[float, float] = shell.user_ns["took"]
    return took[0], shell.display_pub.times


def main(rounds: int) -> None:
    torch.set_num_threads(1)
    shell: Any = InteractiveShell.instance()
    shell.display_pub = Sent()
    shell.run_cell("import torch\nfrom torch.autograd import Function\n%load_ext nbautograd")
    after_cell = next(f for f in shell.events.callbacks["post_run_cell"] if "nbautograd" in f.__module__)
    shell.session_of_nbautograd = after_cell.__self__
    shell.run_cell(CELL)
    print(f"{'batch':>8}{'steps':>7}{'alone s':>9}{'least':>7}{'median':>8}{'noise':>8}{'updates':>9}{'apart s':>9}")
    for rows, steps in ((3, 500), (3, 8000), (2000, 4000)):
        once(shell, rows, steps, card=False)
        alone, ratios, noise, sent = [], [], [], []
        for _ in range(rounds):
            bare, _none = once(shell, rows, steps, card=False)
            followed, times = once(shell, rows, steps, card=True)
            alone.append(bare)
            noise.append(once(shell, rows, steps, card=False)[0] / bare)
            ratios.append(followed / bare)
            sent.append(times[:-1])  # the last is the final state, after the cell
        apart = [b - a for times in sent for a, b in itertools.pairwise(times)]
        least = f"{min(apart):.2f}" if apart else "-"
        print(
            f"{rows:>5} x 8{steps:>7}{statistics.median(alone):9.2f}{min(ratios):7.3f}"
            f"{statistics.median(ratios):8.3f}{statistics.median(noise):8.3f}"
            f"{statistics.mean(map(len, sent)):9.1f}{least:>9}"
        )


if __name__ == "__main__":
    main(rounds=int(sys.argv[1]) if len(sys.argv) > 1 else 7)
