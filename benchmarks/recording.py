"""What recording costs: an instrumented Function beside the bare one, alternating in one process.

``python benchmarks/recording.py`` prints, per style, size and level, recorded time / bare time of one forward and
backward, twice: the median over rounds, and least / least, which busy neighbours change less; and the least bare time.
Rounds are short, so that some of them fall into quiet moments. The column ``wrapped`` has an empty Python function
around each method: what any recorder costs. The last column pairs bare with bare: the noise of the machine.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import threading
import time
from collections.abc import Callable

import torch

from nbautograd.core.recording import api as log

SIZES = (1, 1_000, 1_000_000)
LEVELS = ("off", "paused", "shapes", "summary", "values")  # paused: at level "summary", inside ``log.paused()``


def combined() -> type:
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    return Mul


def with_setup_context() -> type:
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    return Mul


def step(cls: type, size: int) -> Callable[[], None]:
    x, y = torch.randn(size, requires_grad=True), torch.randn(size, requires_grad=True)
    g = torch.ones(size)

    def once() -> None:
        torch.autograd.grad(cls.apply(x, y), (x, y), g)

    return once


def timed(once: Callable[[], None], repeats: int) -> float:
    start = time.thread_time_ns()
    for _ in range(repeats):
        once()
    return (time.thread_time_ns() - start) / repeats / 1000


def wrapped(cls: type) -> type:
    """An empty Python function around each method."""

    def around(function: Callable[..., object]) -> staticmethod:
        return staticmethod(lambda *args, **kwargs: function(*args, **kwargs))

    for name in ("forward", "backward"):
        setattr(cls, name, around(getattr(cls, name)))
    return cls


def paired(
    first: Callable[[], None], second: Callable[[], None], repeats: int, rounds: int
) -> tuple[float, float, float]:
    """Second / first over alternating rounds, median and least / least, and the least of first in microseconds."""
    timed(first, repeats), timed(second, repeats)
    ratios, bare, recorded = [], [], []
    for i in range(rounds):
        if i % 2:
            b, a = timed(second, repeats), timed(first, repeats)
        else:
            a, b = timed(first, repeats), timed(second, repeats)
        ratios.append(b / a)
        bare.append(a)
        recorded.append(b)
    return statistics.median(ratios), min(recorded) / min(bare), min(bare)


def fill_the_ring(once: Callable[[], None], size: int) -> Callable[[], None]:
    """Call a step until its records are kept in memory that older ones gave back, as in a long run; return the step.

    The first 16 MiB of records come on fresh pages, and each page costs a fault.
    """
    for _ in range(3_000 if size < 1_000_000 else 20):
        once()
    return once


def definitions(instrument: Callable[[type], type] = log.instrument, count: int = 1_000) -> float:
    """A class defined, instrumented and called once, again and again, over the same without recording; median."""

    def once(recorded: bool) -> float:
        x = torch.ones(3, requires_grad=True)
        start = time.thread_time_ns()
        for _ in range(count // 10):
            cls = combined()
            if recorded:
                instrument(cls)
            cls.apply(x, x).sum().backward()
        return time.thread_time_ns() - start

    once(True), once(False)
    ratio = statistics.median(once(True) / once(False) for _ in range(10))
    for cls in log.instrumented():
        log.uninstrument(cls)
    return ratio


def listing(count: int = 100_000) -> tuple[float, float]:
    """Seconds for ``calls()`` and for its text, with so many records; the ring is made large for it."""
    before, log._ring.budget = log._ring.budget, 2**31
    cls = combined()
    once = step(cls, 3)
    try:
        with log.recording(cls):
            for _ in range(count // 2):
                once()
        start = time.thread_time()
        calls = log.calls()
        middle = time.thread_time()
        str(calls)
        calls._repr_mimebundle_()
        return middle - start, time.thread_time() - middle
    finally:
        log._ring.budget = before
        log.clear()


def beside_a_busy_thread(rounds: int = 5) -> float:
    """Level summary over bare by the clock on the wall, while another thread computes in Python; median."""
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            sum(range(1000))

    def wall(once: Callable[[], None]) -> float:
        start = time.perf_counter()
        for _ in range(600):  # so long that turns of 5 ms even out
            once()
        return time.perf_counter() - start

    cls = combined()
    bare, recorded = step(combined(), 1_000), step(cls, 1_000)
    thread = threading.Thread(target=busy)
    thread.start()
    try:
        with log.recording(cls):
            return statistics.median(wall(recorded) / wall(bare) for _ in range(rounds))
    finally:
        stop.set()
        thread.join()


def main(rounds: int) -> None:
    torch.set_num_threads(1)
    columns = ("wrapped", *LEVELS, "bare")
    print(f"{'style':14}{'size':>9}{'bare us':>9}" + "".join(f"{name:>12}" for name in columns))
    for style in (combined, with_setup_context):
        for size in SIZES:
            repeats = max(2, min(20, 20_000 // size))
            bare = step(style(), size)
            row = [] if style is with_setup_context else [paired(bare, step(wrapped(style()), size), repeats, rounds)]
            for level in LEVELS:
                cls = style()
                pausing = log.paused() if level == "paused" else contextlib.nullcontext()
                with log.recording(cls, level="summary" if level == "paused" else level), pausing:
                    row.append(paired(bare, fill_the_ring(step(cls, size), size), repeats, rounds))
                log.clear()
            row.append(paired(bare, step(style(), size), repeats, rounds))
            cells = "".join(f"{f'{median:.2f} {least:.2f}':>12}" for median, least, _ in row)
            cells = cells if style is combined else f"{'':>12}{cells}"
            print(f"{style.__name__[:13]:14}{size:9}{min(us for *_, us in row):9.1f}{cells}", flush=True)
    print(f"1,000 definitions, each called once: {definitions():.2f} times bare")
    print("100,000 records: calls() {:.2f} s, its text and HTML {:.2f} s".format(*listing()))
    print(f"beside a busy thread, by the wall: {beside_a_busy_thread():.2f} times bare")


if __name__ == "__main__":
    main(rounds=int(sys.argv[1]) if len(sys.argv) > 1 else 201)
