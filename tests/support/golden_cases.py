"""Reports of the checker as plain data, so that a change of the house shows every change of what a user is told.

``python tests/support/golden_cases.py --update`` writes the file anew; explain each line that differs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import functions_checked as checked
import mistakes_in_layers
import mistakes_in_plumbing
import odd_but_right
import own_mistakes
from own_mistakes import draw

import nbautograd
from nbautograd.core.display import plain

GOLDEN = Path(__file__).parents[1] / "core" / "checking" / "golden" / "reports.json"

# the search for fixes is dear, so a sample of the wrong ones has it too: what the demo shows, and one in this many
FIXED = 4

SETS = {
    "own": own_mistakes.MISTAKES,
    "right": own_mistakes.CORRECT,
    "layers": mistakes_in_layers.MISTAKES,
    "plumbing": mistakes_in_plumbing.MISTAKES,
    "odd": odd_but_right.CORRECT,
}

Case = tuple[str, Callable[..., Any], Callable[[], tuple[Any, ...]], str]


def cases() -> Iterator[Case]:
    """Yield the name, function, inputs and hints of each case."""
    yield "demo/Linear", checked.Linear.apply, lambda: (draw(3, 4), draw(4, 2, seed=1)), "fix"
    yield "demo/LinearWrong", checked.LinearWrong.apply, lambda: (draw(4, 4), draw(4, 2, seed=1)), "fix"
    yield "demo/LinearWrong/where", checked.LinearWrong.apply, lambda: (draw(4, 4), draw(4, 2, seed=1)), "where"
    yield "demo/LinearWrong/what", checked.LinearWrong.apply, lambda: (draw(4, 4), draw(4, 2, seed=1)), "what"
    for name in ("Exp", "Softmax", "RoundStraightThrough", "ClampNoMask", "Raises", "NumpySin", "OwnJvp"):
        yield f"checked/{name}", getattr(checked, name).apply, lambda: (draw(2, 3),), "where"
    for room, mistakes in SETS.items():
        for number, mistake in enumerate(mistakes):
            yield f"{room}/{mistake.name}", mistake.fn, mistake.inputs, "where"
            if mistake.codes and number % FIXED == 0:
                yield f"{room}/{mistake.name}/fix", mistake.fn, mistake.inputs, "fix"


def summary(fn: Callable[..., Any], inputs: tuple[Any, ...], hints: str) -> dict[str, Any]:
    """Return what a user is told by one check: verdicts, and each finding with its sentence and fix."""
    report = nbautograd.gradcheck(fn, inputs, hints=hints)
    return {
        "verdict": report.verdict,
        "complete": report.complete,
        "has_reason": bool(report.reason),
        "order2": None if report.order2 is None else [report.order2.verdict, *(f.code for f in report.order2.findings)],
        "blocks": {
            f"{o},{i}": f"{b.verdict} {b.wrong}/{b.entries} {b.structure}" for (o, i), b in report.blocks.items()
        },
        "findings": [
            {
                "code": finding.code,
                "kind": finding.kind,
                "message_id": finding.message_id,
                "params": {key: plain_parameter(value) for key, value in finding.params.items()},
                "where": finding.where,
                "line": finding.line,
                "fix": None if finding.fix is None else finding.fix.source,
            }
            for finding in report.findings
        ],
    }


def plain_parameter(value: Any) -> Any:
    """Return a parameter of a sentence as plain data, a phrase as its id and its own parameters."""
    if hasattr(value, "message_id"):
        return {"phrase": value.message_id, **{key: plain_parameter(item) for key, item in value.params.items()}}
    return plain(value)


def written() -> str:
    """Return the file's text for the checker as it is."""
    nbautograd.set_language("en")
    try:
        reports = {name: summary(fn, inputs(), hints) for name, fn, inputs, hints in cases()}
    finally:
        nbautograd.set_language(None)
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {lines(reports[name])}" for name in sorted(reports)) + "\n}\n"


def lines(report: dict[str, Any]) -> str:
    """Return a report as JSON with a line for each finding, so that a difference shows the whole of one."""
    findings = ",".join(f"\n  {json.dumps(finding, sort_keys=True)}" for finding in report["findings"])
    head = json.dumps({key: report[key] for key in report if key != "findings"}, sort_keys=True)
    return f'{head[:-1]}, "findings": [{findings}]}}'


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("golden_cases.py --update")
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(written(), encoding="utf-8")
