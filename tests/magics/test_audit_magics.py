"""%%autograd_audit over a cell, %autograd_audit before a call."""

from __future__ import annotations

import re

import pytest
from fn import written
from said import pattern, says

CLASSES = (
    written("Wrong", "a: save(a); return a.exp()", "grad: (a,) = saved; return 2 * grad * a.exp()")
    + """\
wrong = Wrong.apply
a = torch.tensor([0.2, -0.3], dtype=torch.double, requires_grad=True)
"""
)


@pytest.fixture
def filled(notebook):
    assert notebook(CLASSES).result.success
    return notebook


def test_a_cell_runs_as_it_would_and_its_report_follows(filled) -> None:
    ran = filled("%%autograd_audit\nb = wrong(a).sum()\nb.backward()\nprint('done')\nb.item() > 0")
    assert ran.result.success
    texts = [bundle["text/plain"] for bundle in ran.bundles]
    assert texts[0] == "True"
    assert says(texts[1], "views.audit.wrong", count=1, wrong=1, names="`Wrong`")
    assert "* 2" not in texts[1].split("+ ")[1].split("\n")[0]
    assert filled("a.grad is not None").result.result is True
    assert "cell 1, line 1" in texts[1]
    assert '`_audit.save_repro("folder")`' in texts[1]
    assert "_audit.functions[0].situations[0].report" in ran.bundles[1]["text/html"]
    assert filled("_audit.functions[0].situations[0].report.verdict").result.result == "wrong"


def test_a_cell_that_raises_counts_as_failed_and_what_ran_is_told(filled) -> None:
    ran = filled("%%autograd_audit\nwrong(a)\n1 / 0")
    assert not ran.result.success
    assert "`Wrong`" in ran.bundles[-1]["text/plain"]
    assert says(ran.text, "audit.program_raised")


def test_a_cell_without_custom_functions_says_so(filled) -> None:
    ran = filled("%%autograd_audit\nx = a.exp().sum()")
    assert says(ran.text, "audit.no_functions")


@pytest.mark.parametrize("line", ["wrong(a)", "--budget 20 wrong(a).sum()", "torch.stack([wrong(a), Wrong.apply(a)])"])
def test_the_line_takes_what_is_to_be_run(filled, line: str) -> None:
    report = filled(f"%autograd_audit {line}").result.result
    assert repr(report) == "<AuditReport wrong: 1 of 1 Functions wrong>"


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%autograd_audit", pattern("magics.no_call")),
        ("%autograd_audit undefined(a)", pattern("magics.line_undefined", name="undefined")),
        ("%%autograd_audit --bugdet 3\nwrong(a)", "--budget"),
        ("%%autograd_audit --budget never\nwrong(a)", "never"),
    ],
)
def test_a_line_that_makes_no_sense_is_a_sentence(filled, cell: str, words: str, capsys) -> None:
    ran = filled(cell)
    assert not ran.result.success
    assert re.search(words, f"{ran.result.error_in_exec} {capsys.readouterr()}")
