"""From a loss to a picture: CPU time, bytes, memory, crossings; beside torchviz and torchlens where they are installed.

    python benchmarks/graph.py [a b c d e] [--repeat 5]

The five workloads (4, 16, 489, 2,032 and 9,994 nodes) lie beside the checkout, in ``../shared/workloads/graphs.py``.
Each is drawn whole, and then folded as a notebook shows it to begin with. The least of several runs counts, since the
machine may be busy; a loop of plain Python, timed between the runs, tells how busy it was.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import nbautograd
from nbautograd.views.layout import Layout, layout
from nbautograd.views.layout import Path as Edge
from nbautograd.views.svg import draw, svg

WORKLOADS = Path(__file__).resolve().parents[2] / "shared" / "workloads" / "graphs.py"
BARS = {"a": (5, 5), "b": (5, 5), "c": (30, 120), "d": (100, 450), "e": (1000, 2500)}  # CPU ms, kB
FOLDED = 300  # boxes that a notebook shows at most to begin with
LARGEST_PEER = 3000  # nodes; above, the peers run for minutes or fail
Point = tuple[float, float]


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("workloads", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def least(run: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """The least CPU time of several runs in ms, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeat):
        start = time.process_time()
        result = run()
        best = min(best, time.process_time() - start)
    return best * 1e3, result


def busyness() -> float:
    """CPU ms of a fixed loop: about 10 on a quiet machine of 2024, where none of another's work shares the core."""

    def loop() -> int:
        total = 0
        for i in range(300_000):
            total += i & 7
        return total

    return least(loop, 5)[0]


def sampled(edge: Edge) -> list[Point]:
    """The curve as straight pieces."""
    points: list[Point] = [edge.points[0]]
    for k in range(0, len(edge.points) - 1, 3):
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = edge.points[k : k + 4]
        for t in (0.2, 0.4, 0.6, 0.8, 1.0):
            s = 1 - t
            a, b, c, d = s**3, 3 * s * s * t, 3 * s * t * t, t**3
            points.append((a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3))
    return points


def crossings(made: Layout) -> int:
    """Drawn crossings of edges that share no end."""
    curves = [(edge, sampled(edge)) for edge in made.paths]
    spans = sorted((min(y for _, y in p), max(y for _, y in p), i) for i, (_, p) in enumerate(curves))
    count = 0
    open_spans: list[tuple[float, int]] = []
    for top, bottom, i in spans:
        open_spans = [(end, j) for end, j in open_spans if end > top]
        edge, points = curves[i]
        for _, j in open_spans:
            other, others = curves[j]
            if not {edge.source, edge.target} & {other.source, other.target}:
                count += _cross(points, others)
        open_spans.append((bottom, i))
    return count


def _cross(p: Sequence[Point], q: Sequence[Point]) -> bool:
    def side(a: Point, b: Point, c: Point) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    return any(
        side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0
        for a, b in pairwise(p)
        for c, d in pairwise(q)
    )


def ours(name: str, model: Any, inputs: Any, repeat: int, boxes: int | None) -> int:
    """Measure one workload, whole or folded, and print its line; returns the number of nodes."""
    loss = model(*inputs)
    quiet, (cpu, picture) = busyness(), least(lambda: svg(nbautograd.graph(loss, names=model), boxes=boxes), repeat)
    quiet = min(quiet, busyness())
    graph = nbautograd.graph(loss, names=model)
    made = layout(graph, boxes=boxes)
    assert draw(made) == picture
    tracemalloc.start()
    svg(nbautograd.graph(loss, names=model), boxes=boxes)
    memory = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    size = len(picture.encode()) / 1000
    bar_cpu, bar_size = BARS[name]
    met = "met" if cpu <= bar_cpu and size <= bar_size else "MISSED"
    print(
        f"{name}  {'whole ' if boxes is None else 'folded'}  {len(graph.nodes):6} nodes  {len(made.boxes):6} boxes  "
        f"{cpu:8.1f} ms (bar {bar_cpu})  {size:8.1f} kB (bar {bar_size})  {memory:6.1f} MiB  "
        f"{crossings(made):4} crossings  {made.width}x{made.height} px  loop {quiet:.1f} ms  {met}",
        flush=True,
    )
    return len(graph.nodes)


def with_children(run: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time of one run in ms, the programs that it started counted, and its result."""

    def spent() -> float:
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system

    start = spent()
    result = run()
    return (spent() - start) * 1e3, result


def peers(model: Any, inputs: Any, nodes: int) -> None:
    """Measure torchviz and torchlens on the same workload, where they are installed; both draw by the program `dot`."""
    if nodes > LARGEST_PEER:
        return
    if importlib.util.find_spec("torchviz"):
        from torchviz import make_dot

        loss, names = model(*inputs), dict(model.named_parameters())
        runs = [with_children(lambda: make_dot(loss, params=names).pipe(format="svg")) for _ in range(3)]
        cpu, picture = min(runs, key=lambda run: run[0])
        print(f"   torchviz  {cpu:8.1f} ms to SVG  {len(picture) / 1000:.1f} kB")
    if importlib.util.find_spec("torchlens"):
        cpu, size = with_children(lambda: torchlens_picture(model, inputs))
        print(f"   torchlens {cpu:8.1f} ms to SVG, its own forward counted  {size / 1000:.1f} kB")


def torchlens_picture(model: Any, inputs: Any) -> int:
    """Bytes of the SVG that torchlens draws of a backward."""
    import torchlens

    trace = torchlens.trace(model, inputs)
    trace.log_backward(trace[trace.output_layers[0]].out)
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "backward")
        trace.draw_backward(vis_outpath=target, vis_save_only=True, vis_fileformat="svg")
        return sum(path.stat().st_size for path in Path(folder).glob("*.svg"))


def main() -> None:
    """Measure the workloads named on the command line, all of them when none is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=list(BARS))
    parser.add_argument("--repeat", type=int, default=5)
    chosen = parser.parse_args()
    if not WORKLOADS.is_file():
        print("The workloads are not here: expected them beside the checkout, in ../shared/workloads/graphs.py.")
        return
    torch.set_num_threads(1)
    built = load(WORKLOADS)
    print(f"a loop of plain Python takes {busyness():.1f} ms (about 10 when nothing else runs)")
    for name in chosen.workloads:
        model, inputs = built.build(name)
        nodes = ours(name, model, inputs, chosen.repeat, None)
        ours(name, model, inputs, chosen.repeat, FOLDED)
        peers(model, inputs, nodes)


if __name__ == "__main__":
    main()
