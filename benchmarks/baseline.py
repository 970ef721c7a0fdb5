"""What the checker says of each Function at hand, so that a change shows all that it changes.

    python benchmarks/baseline.py run OUT.json [--set FILE.py ...] [--only PART] [--part 1/2]
    python benchmarks/baseline.py compare BEFORE.json AFTER.json [--runs]

``run`` checks the mistakes and the right Functions of ``tests/support``, the shared catalogue where it is at hand
(``NBAUTOGRAD_BUGS``), and any file given that has ``MISTAKES``, ``CORRECT`` or ``CASES`` of the same form. For each it
writes the verdict, how often user code was run, and of each finding the code, the sentence, the line and the fix.
``compare`` lists what differs between two of these files and sums it up.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import nbautograd
from nbautograd.core.checking.budget import Meter

ROOT = Path(__file__).parents[1]
SUPPORT = ROOT / "tests" / "support"
SETS = ("own_mistakes", "mistakes_in_layers", "mistakes_in_plumbing", "odd_but_right", "right_functions")
Case = tuple[str, bool, Callable[..., Any], Callable[[], tuple[Any, ...]]]  # its name, whether it is right


def loaded(path: Path) -> Any:
    """Import a file by its path."""
    if path.stem in sys.modules:
        return sys.modules[path.stem]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def cases(extra: list[Path]) -> Iterator[Case]:
    """Yield the Functions of all sets."""
    sys.path.insert(0, str(SUPPORT))
    for path in (*(SUPPORT / f"{name}.py" for name in SETS), *extra):
        module = loaded(path)
        for kind in ("MISTAKES", "CORRECT", "RIGHT"):
            for one in getattr(module, kind, ()):
                yield f"{path.stem}/{one.name}", kind != "MISTAKES", one.fn, one.inputs
        for case in getattr(module, "CASES", ()):
            yield f"{path.stem}/{case['id']}", False, case["wrong"], case["inputs"]
    catalogue = Path(os.environ.get("NBAUTOGRAD_BUGS", ROOT.parent / "shared" / "bugs" / "catalogue.py"))
    for name, bug in loaded(catalogue).BUGS.items() if catalogue.is_file() else ():
        yield f"catalogue/{name}", bug.kind != "bug", bug.fn, bug.make_inputs
        if bug.fixed is not None:
            yield f"catalogue/{name}/right", True, bug.fixed, bug.make_inputs


@contextlib.contextmanager
def counted_runs() -> Iterator[Callable[[], int]]:
    """Count how often user code is run, on whichever points."""
    count, runs = Meter.count, 0

    def counting(meter: Meter) -> None:
        nonlocal runs
        runs += 1
        count(meter)

    Meter.count = counting  # type: ignore[method-assign]
    try:
        yield lambda: runs
    finally:
        Meter.count = count  # type: ignore[method-assign]


def outcome(fn: Callable[..., Any], inputs: tuple[Any, ...]) -> dict[str, Any]:
    """Return what one check says, as plain data."""
    torch.manual_seed(0)
    with counted_runs() as runs:
        report = nbautograd.gradcheck(fn, inputs)
    return {
        "verdict": report.verdict,
        "runs": runs(),
        "findings": [
            [f.kind, f.code, f.message_id, f.line, None if f.fix is None else f.fix.source] for f in report.findings
        ],
    }


def run(out: Path, extra: list[Path], only: str, part: str) -> None:
    """Check all, or those whose names have ``only`` in them, and write what is said."""
    k, n = map(int, part.split("/"))
    told = {}
    for number, (name, right, fn, inputs) in enumerate(cases(extra)):
        if only in name and number % n == k - 1:
            told[name] = {"right": right, **outcome(fn, inputs())}
    out.write_text(json.dumps(told, indent=1))


def compare(before: Path, after: Path, runs: bool) -> None:
    """Print what differs, and the sums."""
    old, new = (json.loads(path.read_text()) for path in (before, after))
    both = [name for name in old if name in new]
    for name in both:
        lines = list(_differences(old[name], new[name]))
        if runs and old[name]["runs"] != new[name]["runs"]:
            lines.append(f"runs: {old[name]['runs']} -> {new[name]['runs']}")
        if lines:
            print("\n".join((name, *(f"    {line}" for line in lines))))
    for label, told in (("before", old), ("after", new)):
        print(f"{label}: {_sums([told[name] for name in both])}")


def _differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    if old["verdict"] != new["verdict"]:
        yield f"VERDICT: {old['verdict']} -> {new['verdict']}"
    tops = [next(iter(told["findings"]), [None] * 5) for told in (old, new)]
    fixes = [[f[4] for f in told["findings"] if f[4] is not None] for told in (old, new)]
    if tops[0][1:3] != tops[1][1:3]:
        yield f"top: {tops[0][2]} ({tops[0][1]}) -> {tops[1][2]} ({tops[1][1]})"
    if tops[0][3] != tops[1][3]:
        yield f"line: {tops[0][3]} -> {tops[1][3]}"
    if fixes[0] != fixes[1]:
        yield f"{'FIX LOST' if len(fixes[1]) < len(fixes[0]) else 'fix'}: {fixes[0]} -> {fixes[1]}"
    others = [sorted({f[1] for f in told["findings"][1:]}) for told in (old, new)]
    if others[0] != others[1]:
        yield f"others: {others[0]} -> {others[1]}"


def _sums(told: list[dict[str, Any]]) -> str:
    wrong = [t for t in told if not t["right"]]
    mended = sum(any(f[4] is not None for f in t["findings"]) for t in wrong)
    found, accused = (sum(t["verdict"] == "wrong" for t in told if t["right"] is right) for right in (False, True))
    runs = sum(t["runs"] for t in told)
    return f"{len(told)} Functions, {found} of {len(wrong)} found, {mended} mended, {accused} accused, {runs:,} runs"


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_subparsers(dest="what", required=True)
    one = what.add_parser("run")
    one.add_argument("out", type=Path)
    one.add_argument("--set", type=Path, action="append", default=[])
    one.add_argument("--only", default="")
    one.add_argument("--part", default="1/1", help="every n-th Function, from the k-th on")
    two = what.add_parser("compare")
    two.add_argument("before", type=Path)
    two.add_argument("after", type=Path)
    two.add_argument("--runs", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if options.what == "run":
        run(options.out, options.set, options.only, options.part)
    else:
        compare(options.before, options.after, options.runs)


if __name__ == "__main__":
    main()
