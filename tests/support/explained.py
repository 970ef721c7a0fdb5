"""Programs and what their explanation names: the code, the tensor, the lines, and the change that was tried."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nbautograd import explain
from nbautograd.views.bundle import text


class Programs(list[Any]):
    """Parameters of a test, kept by a decorator of each program."""

    def case(
        self, why: str, code: str, tensor: str | None = None, *, lines: str = "", says: str = "", slow: bool = False,
        **expected: Any,
    ) -> Callable[..., Any]:  # fmt: skip
        """Keep a program under a sentence about it.

        Args:
            why: What an earlier version got wrong of the like, or what has to be named.
            code: The code of the explanation.
            tensor: The tensor that is named, where the test is about that.
            lines: Those of ``did``, ``made`` and ``saved`` that have to be the line with such a comment.
            says: Codes of findings without their ``explain_``.
            slow: Whether the program is for the slow tests.
            **expected: ``fix``, for which the program runs in a copy of the process; a place that has to be None; and
                for a code of a finding params that it has to hold.
        """
        wanted = {"code": code, **dict.fromkeys(lines.split(), True), **{c: {} for c in says.split()}, **expected}
        if tensor is not None:
            wanted["tensor"] = tensor

        def keep(program: Any) -> Any:
            self.append(pytest.param(program, wanted, id=why, marks=pytest.mark.slow if slow else ()))
            return program

        return keep


def marked(place: Any, name: str) -> bool | None:
    """Whether the line of a place has the place's name as a comment; None where there is no place."""
    return place and name in linecache.getline(place.file, place.line).partition("  # ")[2].strip().split(", ")


def check(program: Any, expected: dict[str, Any]) -> None:
    """Explain a program, and compare what is named with what is expected."""
    torch.optim.SGD([torch.ones(1)], lr=0.1)  # torch makes folders with the first one
    found = explain(program, apart="fix" in expected)
    text(found)
    params = {f.code.removeprefix("explain_"): f.params for f in reversed(found.findings)}
    named = {
        "code": found.code,
        "tensor": found.tensor,
        **{name: marked(getattr(found, name), name) for name in ("did", "made", "saved")},
        "fix": found.fix and found.fix.source,
        **{
            code: {name: params[code].get(name) for name in wanted} if code in params else None
            for code, wanted in expected.items()
            if isinstance(wanted, dict)
        },
    }
    assert {name: named[name] for name in expected} == expected
