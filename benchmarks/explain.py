"""Explain: what the loaded extension costs a cell, and what a search for the first NaN costs beside anomaly mode.

    python benchmarks/explain.py [--repeats N]

CPU seconds, medians of alternating runs, one thread. The watched runs are of this process; a copy of it takes the time
of a ``fork`` besides, which is printed on a line of its own.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import torch
from IPython.core.interactiveshell import InteractiveShell

from nbautograd import explain
from nbautograd.core.process_copy import in_copy


def small() -> None:
    x = torch.randn(16, 8, requires_grad=True)
    (x.exp() * x).sum().backward()


def network(width: int, depth: int, batch: int) -> Callable[[], None]:
    layers = [part for _ in range(depth) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    net, x = torch.nn.Sequential(*layers), torch.randn(batch, width)

    def step() -> None:
        net(x).pow(2).mean().backward()

    return step


def anomaly(step: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.autograd.detect_anomaly():
                step()

    return run


def seconds(run: Callable[[], None]) -> float:
    begin = time.thread_time()
    run()
    return time.thread_time() - begin


def medians(runs: dict[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(repeats):
        for name, run in runs.items():
            taken[name].append(seconds(run))
    return {name: statistics.median(several) for name, several in taken.items()}


def programs(repeats: int) -> None:
    print(f"{'program':34}{'plain':>10}{'watched':>10}{'anomaly':>10}")
    cases = {
        "2 ops, 128 numbers": small,
        "20 layers of 32, batch 16": network(32, 20, 16),
        "6 layers of 512, batch 256": network(512, 6, 256),
    }
    for name, step in cases.items():
        runs = {"plain": step, "watched": lambda s=step: explain(s, apart=False), "anomaly": anomaly(step)}
        took = medians(runs, repeats)
        ratios = "".join(f"{took[kind] / took['plain']:9.1f}x" for kind in ("watched", "anomaly"))
        print(f"{name:34}{took['plain'] * 1e3:8.2f}ms{ratios}")


def cells() -> None:
    """Time an empty cell with and without what this adds to the extension."""
    from nbautograd.magics.explain import ExplainMagics

    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    explainer = ExplainMagics(shell)
    result = shell.run_cell("1", store_history=False, silent=True)
    cell = seconds(lambda: [shell.run_cell("x = 1", store_history=False) for _ in range(50)]) / 50
    added = seconds(lambda: [explainer.after_cell(result) for _ in range(100_000)]) / 100_000
    print(f"a cell takes {cell * 1e6:.0f} us; what stands behind it adds {added * 1e9:.0f} ns")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    torch.manual_seed(0)
    programs(repeats)
    begin = time.perf_counter()
    in_copy(bool)
    print(f"a copy of the process takes {(time.perf_counter() - begin) * 1e3:.0f} ms")
    cells()


if __name__ == "__main__":
    main()
