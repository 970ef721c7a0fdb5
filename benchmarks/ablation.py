"""Ablation: what each hypothesis and each kind of edit is good for, on the mistakes at hand.

    python benchmarks/ablation.py [--set FILE.py ...] [--only hypotheses|edits] [--name PART]

The sets are those of ``tests/support``, the shared catalogue where it is at hand (``NBAUTOGRAD_BUGS``), and any file
given that has ``MISTAKES`` of the same form, or ``CASES`` as sets of unseen mistakes have. Each mistake is checked
once; then each hypothesis and each kind of edit, least used first, is left out, and the mistakes that it named or
mended are checked again. Where none loses anything it stays out while the others are tried. A row of the table says
how many it named or mended, and how many lose without it: a code that the set accepts, a sentence that says more, a
fix, or a fix that is not longer.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import warnings
from collections import Counter
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
OPTIONAL = ("small_systematic",)  # sentences without a claim that no other row relies on
PLAIN = ("", "causes.wrong_derivative", "causes.wrong_unclassified", "checking.wrong_unclassified")
VAGUE = ("causes.missing_entries", "causes.extra_entries", "causes.extra_entries_wide", "causes.small_systematic")
EDIT = "edit: "  # before the name of a kind of edit: a hypothesis may have the same one
LONGER = 4  # letters by which a fix may be longer and count as the same


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
        for mistake in getattr(loaded(path), "MISTAKES", ()):
            yield Case(f"{path.stem}/{mistake.name}", mistake.fn, mistake.inputs, tuple(mistake.codes))
        for case in getattr(sys.modules[path.stem], "CASES", ()):
            yield Case(f"{path.stem}/{case['id']}", case["wrong"], case["inputs"], ())
    catalogue = Path(os.environ.get("NBAUTOGRAD_BUGS", ROOT.parent / "shared" / "bugs" / "catalogue.py"))
    for name, bug in loaded(catalogue).BUGS.items() if catalogue.is_file() else ():
        if bug.kind == "bug" and bug.family != "second_order":
            yield Case(f"catalogue/{name}", bug.fn, bug.make_inputs, (bug.expected, *bug.also_ok))


@dataclass(frozen=True)
class Outcome:
    """What a check says of a case.

    Attributes:
        message: id of the top sentence.
        named: whether its code names the mistake.
        said: 2 where it names a cause, 1 where it says which entries are wrong, 0 where it is plain.
        mended: the inputs that fixes mend.
        length: of all fixes, in letters.
        used: the hypotheses that held and were confirmed, and the kinds of edit in its fixes, each after ``EDIT``.
    """

    message: str
    named: bool
    said: int
    mended: frozenset[str]
    length: int
    used: frozenset[str]

    def loses(self, other: Outcome) -> bool:
        """Whether less is said or mended than in the other."""
        less = (self.named, self.said) != (max(self.named, other.named), max(self.said, other.said))
        return less or not other.mended <= self.mended or self.length > other.length + LONGER


class Ablation:
    """Hypotheses and kinds of edit left out one after the other.

    Args:
        cases: the mistakes.
    """

    def __init__(self, cases: list[Case]) -> None:
        self.cases = {case.name: case for case in cases}
        self._used = set[str]()
        first, fix = table.first_confirmed, search.Repair.fix

        def watched_cause(case: table.Case) -> Any:
            cause = first(case)
            self._used |= {row.predicate.__name__ for row in table.HYPOTHESES if cause.message in row.messages}
            return cause

        def watched_fix(repair: search.Repair, mended: search.Mended, *others: Any) -> Any:
            self._used |= {EDIT + name for name in mended.kinds}
            return fix(repair, mended, *others)

        table.first_confirmed = watched_cause
        search.Repair.fix = watched_fix  # type: ignore[method-assign]
        self.outcomes = {name: self.outcome(case) for name, case in self.cases.items()}

    def outcome(self, case: Case) -> Outcome:
        """Check a case."""
        self._used = set()
        torch.manual_seed(0)
        report = nbautograd.gradcheck(case.fn, case.inputs(), order=1)
        top = report.findings[0] if report.findings else None
        message = "" if top is None else top.message_id
        said = 0 if message in PLAIN else 1 if message.removesuffix("_part") in (*PLAIN, *VAGUE) else 2
        fixes = [(f, f.fix) for f in report.findings if f.fix is not None]
        mended = frozenset(str(f.params.get("input", "")) for f, _ in fixes)
        named, length = top is not None and top.code in case.codes, sum(len(fix.source) for _, fix in fixes)
        return Outcome(message, named, said, mended, length, frozenset(self._used))

    def left_out(self, name: str, remove: Callable[[], None], restore: Callable[[], None]) -> None:
        """Print the row of one hypothesis or kind of edit; it stays out where nothing is lost."""
        before = {case: o for case, o in self.outcomes.items() if name in o.used}
        remove()
        after = {case: self.outcome(self.cases[case]) for case in before}
        lost = sum(o.loses(before[case]) for case, o in after.items())
        if lost:
            restore()
        else:
            self.outcomes.update(after)
        instead = Counter(o.message.split(".")[-1] for case, o in after.items() if o.loses(before[case]))
        words = ", ".join(f"{message} {n}" for message, n in instead.most_common(3))
        print(f"| {name} | {len(before)} | {lost} | {words} |", flush=True)

    def least_used_first(self, names: list[str]) -> list[str]:
        """Return the names, those that fewest cases need first."""
        uses = Counter(name for outcome in self.outcomes.values() for name in outcome.used)
        return sorted(names, key=lambda name: uses[name])

    def hypotheses(self, part: str) -> None:
        """Print the rows of the hypotheses that others do not rely on."""
        rows = [r for r in table.HYPOTHESES if r.confirmation.claims or r.code in OPTIONAL]
        for name in self.least_used_first([row.predicate.__name__ for row in rows]):
            kept = table.HYPOTHESES

            def remove(name: str = name) -> None:
                table.HYPOTHESES = tuple(r for r in table.HYPOTHESES if r.predicate.__name__ != name)

            def restore(kept: tuple[table.Hypothesis, ...] = kept) -> None:
                table.HYPOTHESES = kept

            if part in name:
                self.left_out(name, remove, restore)

    def edits(self, part: str) -> None:
        """Print the rows of the kinds of edit."""
        for name in self.least_used_first([EDIT + name for name in grammar.KINDS]):
            kept = dict(grammar.KINDS)

            def restore(kept: dict[str, grammar.Kind] = kept) -> None:
                grammar.KINDS.clear()
                grammar.KINDS.update(kept)

            if part in name:
                self.left_out(name, lambda name=name: grammar.KINDS.pop(name.removeprefix(EDIT)) and None, restore)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", type=Path, action="append", default=[], help="a file with MISTAKES of its own")
    parser.add_argument("--only", choices=["hypotheses", "edits"])
    parser.add_argument("--name", default="", help="only hypotheses and kinds whose name has this in it")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    ablation = Ablation(list(cases(options.set)))
    outcomes = ablation.outcomes.values()
    named, fixed = sum(o.said == 2 for o in outcomes), sum(bool(o.mended) for o in outcomes)
    print(f"{len(outcomes)} mistakes, {named} causes named, {fixed} with a fix\n")
    print("| name | used | lost without it | instead |\n|---|---|---|---|")
    if options.only != "edits":
        ablation.hypotheses(options.name)
    if options.only != "hypotheses":
        ablation.edits(options.name)


if __name__ == "__main__":
    main()
