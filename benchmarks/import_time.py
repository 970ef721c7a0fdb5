"""What `import nbautograd` costs beyond torch: pairs of fresh processes, with and without, one after the other.

python benchmarks/import_time.py [pairs]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

TIMED = """
import sys, time
import torch
before, begin = set(sys.modules), time.perf_counter()
{statement}
print(time.perf_counter() - begin, len(set(sys.modules) - before))
"""


def cost(statement: str) -> tuple[float, int]:
    """Seconds that a statement takes in a fresh process where torch is imported, and the modules that it brings."""
    code = TIMED.format(statement=statement)
    seconds, modules = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    return float(seconds), int(modules)


def main(pairs: int) -> None:
    """Print median and range, in milliseconds, of each statement."""
    statements = {
        "import nbautograd": "import nbautograd",
        "... and the first use of gradcheck": "import nbautograd; nbautograd.gradcheck",
        "... and load the magics": "import nbautograd.magics",
        "for scale: import IPython": "import IPython",
        "for scale: import matplotlib.pyplot": "import matplotlib.pyplot",
    }
    rounds = [{name: cost(statement) for name, statement in statements.items()} for _ in range(pairs)]
    for name in statements:
        times = [1e3 * one[name][0] for one in rounds]
        row = {"median_ms": statistics.median(times), "min_ms": min(times), "max_ms": max(times)}
        print(f"{name:<38}", json.dumps({k: round(v, 1) for k, v in row.items()}), f"{rounds[0][name][1]} modules")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
