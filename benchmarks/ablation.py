"""Ablation: what each hypothesis and each kind of edit is good for, on the mistakes at hand.

    python benchmarks/ablation.py [--set FILE.py ...] [--only hypotheses|edits]

The sets are those of ``tests/support``, the shared catalogue where it is at hand (``NBAUTOGRAD_BUGS``), and any file
given that has ``MISTAKES`` of the same form. Each mistake is checked once; then each hypothesis and each kind of edit
is left out in turn, and the mistakes that it named or mended are checked again without it. A row of the table says how
many it named or mended, and how many are named less well, or not mended, when it is gone.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import nbautograd
from nbautograd.core.checking.diagnosis import table
from nbautograd.core.checking.repair import grammar, search

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))
OPTIONAL = ("localized", "small_systematic")  # sentences without a claim that no other row relies on
PLAIN = ("causes.wrong_derivative", "causes.wrong_unclassified", "checking.wrong_unclassified")


@dataclass(frozen=True)
class Case:
    """One mistake: its name, with the set it is from, how to call it, and the codes that name it."""

    name: str
    fn: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]
    codes: tuple[str, ...]


def loaded(path: Path) -> Any:
    """Import a file by its path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def cases(extra: list[Path]) -> Iterator[Case]:
    """Yield the mistakes of all sets."""
    names = ("own_mistakes", "mistakes_in_layers", "mistakes_in_plumbing", "mistakes_in_reductions")
    for path in (*(ROOT / "tests" / "support" / f"{name}.py" for name in names), *extra):
        for mistake in loaded(path).MISTAKES:
            yield Case(f"{path.stem}/{mistake.name}", mistake.fn, mistake.inputs, tuple(mistake.codes))
    catalogue = Path(os.environ.get("NBAUTOGRAD_BUGS", ROOT.parent / "shared" / "bugs" / "catalogue.py"))
    for name, bug in loaded(catalogue).BUGS.items() if catalogue.is_file() else ():
        if bug.kind == "bug" and bug.family != "second_order":
            yield Case(f"catalogue/{name}", bug.fn, bug.make_inputs, (bug.expected, *bug.also_ok))


def told(case: Case, hints: str) -> tuple[str, int, frozenset[str]]:
    """Check a case; return the top sentence's id, how well it names the mistake, and the inputs that fixes mend.

    2 for a sentence with a code that names the mistake, 1 for another that names a cause, 0 for a plain one.
    """
    torch.manual_seed(0)
    report = nbautograd.gradcheck(case.fn, case.inputs(), hints=hints, order=1)
    top = report.findings[0] if report.findings else None
    plain = top is None or top.message_id.removesuffix("_part") in PLAIN
    good = 2 if top is not None and top.code in case.codes else 0 if plain else 1
    mended = {name for f in report.findings if f.fix for name in (f.fix.inputs or (str(f.params.get("input", "")),))}
    return "" if top is None else top.message_id, good, frozenset(mended)


def hypotheses(all_cases: list[Case]) -> None:
    """Print the row of each hypothesis."""
    rows, used = table.HYPOTHESES, defaultdict[int, set[str]](set)
    first = table.first_confirmed
    current = ""

    def watched(case: table.Case) -> Any:
        for number, row in enumerate(rows):
            cause = row.cause(case)
            if cause is not None:
                used[number].add(current)
                return cause
        raise LookupError

    table.first_confirmed = watched
    before = {}
    for case in all_cases:
        current = case.name
        before[case.name] = told(case, "where")
    table.first_confirmed = first
    print("| hypothesis | named | named less well without it | by |")
    print("|---|---|---|---|")
    for number, row in enumerate(rows):
        if not row.confirmation.claims and row.code not in OPTIONAL:
            continue  # others rely on what it lets through
        table.HYPOTHESES = (*rows[:number], *rows[number + 1 :])
        after = {case.name: told(case, "where") for case in all_cases if case.name in used[number]}
        lost = [name for name, (_, good, _) in after.items() if good < before[name][1]]
        other = Counter(message.split(".")[-1] for message, _, _ in after.values())
        instead = ", ".join(f"{m} {n}" for m, n in other.most_common(3))
        print(f"| {row.code} ({row.predicate.__name__}) | {len(used[number])} | {len(lost)} | {instead} |", flush=True)
    table.HYPOTHESES = rows


def kinds(all_cases: list[Case]) -> None:
    """Print the row of each kind of edit."""
    used = defaultdict[str, set[str]](set)
    fix, current = search.Repair.fix, ""

    def watched(self: search.Repair, mended: search.Mended) -> Any:
        for name in mended.kinds:
            used[name].add(current)
        return fix(self, mended)

    search.Repair.fix = watched  # type: ignore[method-assign]
    before = {}
    for case in all_cases:
        current = case.name
        before[case.name] = told(case, "fix")
    search.Repair.fix = fix  # type: ignore[method-assign]
    print(f"fixes for {sum(bool(mended) for _, _, mended in before.values())} of {len(before)} mistakes\n")
    print("| kind of edit | mends | not mended without it |")
    print("|---|---|---|")
    every = dict(grammar.KINDS)
    for name in every:
        grammar.KINDS.pop(name)
        after = {case.name: told(case, "fix") for case in all_cases if case.name in used[name]}
        grammar.KINDS.clear()
        grammar.KINDS.update(every)
        lost = [n for n, (_, _, mended) in after.items() if not before[n][2] <= mended]
        print(f"| {name} | {len(used[name])} | {len(lost)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", type=Path, action="append", default=[], help="a file with MISTAKES of its own")
    parser.add_argument("--only", choices=["hypotheses", "edits"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    every = list(cases(options.set))
    print(f"{len(every)} mistakes\n")
    if options.only != "edits":
        hypotheses(every)
        print()
    if options.only != "hypotheses":
        kinds(every)


if __name__ == "__main__":
    main()
