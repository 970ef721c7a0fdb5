"""An error of ours in the kernel's check or an audit: nothing is right by it, and it is said."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fn import Fn
from injected import broken

import nbautograd
from nbautograd.core import stumbles
from nbautograd.core.checking.probes.run_probes import PROBES
from nbautograd.core.recording import watching
from nbautograd.inspection import audit_checks
from nbautograd.inspection import compare as comparing


def doubled(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


Tripled = Fn.of("Tripled", "x: return 2 * x", "g: return 3 * g")


@pytest.fixture(autouse=True)
def kept():
    yield
    assert stumbles.recent()
    stumbles.forget()


@pytest.mark.parametrize(
    ("name", "fn", "verdict"),
    [
        ("check", doubled, "cannot tell"),
        ("compared", doubled, "cannot tell"),
        ("check", Tripled, "wrong"),  # as other inputs show
        ("compared", Tripled, "wrong"),
        ("smallest", Tripled, "wrong"),
    ],
)
def test_a_kernel_is_not_right_where_its_check_failed(name, fn, verdict, monkeypatch):
    monkeypatch.setattr(comparing, name, broken("inspection/injected.py"))
    report = nbautograd.compare(fn, doubled, (torch.ones(2, 3, requires_grad=True),))
    assert report.verdict == verdict
    assert "stumbled" in {finding.code for finding in report.findings}
    assert "renamed" in str(report)


def audited(cls: Any) -> Any:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    return nbautograd.audit(lambda: cls.apply(x).sum().backward())


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (PROBES, "layout"),
        (PROBES, "state"),
        (audit_checks, "same_function"),
        (audit_checks, "manageable"),
        (audit_checks.Checks, "_first_verdict"),
    ],
    ids=["layout", "state", "same_function", "manageable", "_first_verdict"],
)
def test_an_audited_function_is_not_right_where_its_check_failed(owner, name, monkeypatch):
    spoil = monkeypatch.setitem if isinstance(owner, dict) else monkeypatch.setattr
    spoil(owner, name, broken("inspection/injected.py"))

    Right = Fn.of("Right", "x: return 2 * x", "g: return 2 * g")
    report = audited(Right)
    [function] = report.functions
    assert [situation.verdict for situation in function.situations] == ["cannot tell"]
    assert "renamed" in str(report)


def test_a_call_that_the_watch_could_not_see_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching.FunctionWatch, "see", broken("core/recording/injected.py"))
    report = audited(Tripled)
    assert "renamed" in str(report)
    assert all(situation.verdict != "right" for function in report.functions for situation in function.situations)
