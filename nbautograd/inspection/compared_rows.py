"""Rows of a sweep in a report: what each says, the findings of all together, and why some leave the verdict open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from nbautograd.core.checking.block import Verdict
from nbautograd.core.display import Phrase, UserValue
from nbautograd.core.findings import Finding
from nbautograd.core.kernel.golden import coarsest, readable
from nbautograd.core.kernel.sweep import Case, Result, refusal, shapes_of
from nbautograd.core.values import describe, dtype_and_shape, sizes_text
from nbautograd.inspection.comparison import ComparedCase

# Rows of the sweep that may be "cannot tell" beside a right verdict: a kernel may refuse a layout or two, or one size.
FEW_ROWS, SHARE_OF_ROWS = 3, 0.25


def unknown_rows(rows: Sequence[Result]) -> Phrase | None:
    """Return why nothing is right that is right at the given inputs: rows of the sweep that cannot be told."""
    # where the reference itself is NaN there is no bound
    beyond = [one for one in rows if one.ratio > 1.0 and not one.wrong and not _of_no_number(one)]
    if beyond:
        return Phrase("compare.beyond")
    untold = [one for one in rows if row_verdict(one) == "cannot tell"]
    if len(untold) <= max(FEW_ROWS, SHARE_OF_ROWS * len(rows)):
        return None
    return Phrase("compare.rows_unknown", count=len(untold), tried=len(rows), reason=refusal(untold[0]))


def findings_of(results: Sequence[Result], least: Case | None) -> Iterator[Finding]:
    """Yield what the sweep says, once for each kind of change: the first that failed, with its cause."""
    known: set[str] = set()
    if any(one.wrong and not one.case.change and not one.case.name for one in results):
        known.add("stacked")  # one more dimension is more rows, which are wrong without it
    for result in results:
        case = result.case
        kind = "case" if case.required and case.name else case.change
        if kind in known or not result.findings or known & set(case.layouts):  # of two layouts one alone is wrong
            continue
        known.add(kind)
        if not result.wrong:
            yield _refusal(result)
            continue
        alike = [one for one in results if one.wrong and one.case.change == case.change]
        params: dict[str, Any] = {
            "shapes": _shapes(case),
            "cause": result.findings[0].phrase("what"),
            "count": len([one for one in alike if bool(one.case.name) is bool(case.name)]),
        }
        if kind in ("mixed", "autocast", "large", "stacked"):
            layout = Phrase(f"views.compare_change.{kind}")
            params["what"] = Phrase("compare.layout.what", layout=layout, cause=params["cause"])
            code = "compare_layout" if kind == "stacked" else f"compare_{kind}"
            yield Finding(code, "bug" if case.fatal else "lint", f"compare.{kind}", params)
        elif kind == "odd":
            yield Finding("compare_sizes", "lint", "compare.odd", params)
        elif kind == "case":
            yield Finding("compare_case", "bug", "compare.case", {**params, "name": case.name})
        elif case.layouts:
            yield Finding("compare_layout", "bug", "compare.layout", {**params, "layout": _layout(case)})
        else:
            yield Finding("compare_sizes", "bug", "compare.sizes", {**params, "least": _shapes(least or case)})


def _layout(case: Case) -> Phrase:
    first, *second = (Phrase(f"views.compare_change.{one}") for one in case.layouts)
    return Phrase("views.and", first=first, last=second[0]) if second else first


def _refusal(result: Result) -> Finding:
    which = _layout(result.case) if result.case.layouts else _shapes(result.case)
    return Finding("compare_refuses", "lint", "compare.refuses", {"error": result.refused, "which": which})


def _of_no_number(row: Result) -> bool:
    return row.outcome is not None and any(track.undefined for track in row.outcome.trial.tracks)


def row_verdict(result: Result) -> Verdict:
    """Return the verdict on a row."""
    if result.wrong:
        return "wrong"
    return "cannot tell" if result.outcome is None or result.excused else "right"


def row(result: Result) -> ComparedCase:
    """Return a row as plain data."""
    dtype = coarsest(result.case.inputs)
    return ComparedCase(
        shapes_of(result.case.inputs),
        str(dtype).removeprefix("torch."),
        result.case.change,
        row_verdict(result),
        result.ratio,
        result.quantity,
        tuple(finding.code for finding in result.findings),
        refusal(result) if not result.wrong else result.findings[0].phrase("what") or "",
        result.case.name,
        bool(result.refused) and not (result.findings or result.case.asked or result.case.required),
    )


def _shapes(case: Case) -> str:
    return ", ".join(map(sizes_text, shapes_of(case.inputs)))


def kind(x: Any) -> str:
    """Return what an argument is, in short."""
    if isinstance(x, torch.Tensor) and not readable(x):
        return type(x).__name__
    if not isinstance(x, torch.Tensor):
        return UserValue(describe("", x).repr)
    return dtype_and_shape(x)
