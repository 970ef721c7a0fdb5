"""NBAUTOGRAD_DISABLE=1: every magic runs its cell or its call, and nothing more."""

from __future__ import annotations

import pytest
import torch
from fn import written
from said import says

import nbautograd
from nbautograd.core.recording.api import instrumented

CELL = "%%autograd_function --inputs a --nonsense\n"
CELL += written("Cube", "x: print('forward'); save(x); return x ** 3", "wrong: return wrong") + "Cube.__name__\n"


@pytest.fixture
def disabled(bare, monkeypatch):
    monkeypatch.setenv("NBAUTOGRAD_DISABLE", "1")
    bare.shell.extension_manager.load_extension("nbautograd")
    bare("a = torch.ones(2, dtype=torch.double, requires_grad=True)")
    return bare


def test_a_cell_runs_and_nothing_is_recorded_or_shown(disabled) -> None:
    before = instrumented(), len(nbautograd.calls())  # another test may have left some
    ran = disabled(CELL)
    assert ran.result.success
    assert ran.result.result == "Cube"
    assert [bundle["text/plain"] for bundle in ran.bundles] == ["'Cube'"]
    assert (ran.stdout, ran.stderr) == ("", "")
    assert disabled("Cube.apply(a)").stdout == "forward\n"
    assert (instrumented(), len(nbautograd.calls())) == before


def test_line_numbers_and_tracebacks_are_those_of_the_cell(disabled) -> None:
    ran = disabled("%%autograd_function\n\nx = 1\nraise ValueError('four')")
    assert "line 4" in ran.stdout
    assert "nbautograd" not in ran.stdout


@pytest.mark.parametrize(
    "line",
    [
        "%gradcheck Cube.apply(a)",
        "%gradcheck Cube(a)",
        "%gradcheck --hints what Cube.apply(a) --order 2",
        "%autograd_graph Cube.apply(a)",
        "%autograd_compare Cube.apply(a) a ** 3",
        "%gradcheck --budget 5 Cube.apply(a) --reference 'torch.pow(a, 3)'",
        "%gradcheck Cube.apply(a) --reference torch.pow(a, 3)",
        "%autograd_audit Cube.apply(a)",
    ],
)
def test_a_line_makes_its_call_once_and_gives_its_value(disabled, line: str) -> None:
    disabled(CELL)
    ran = disabled(f"value = {line}")
    assert ran.result.success
    assert ran.stdout == "forward\n"
    assert ran.bundles == []
    assert torch.equal(disabled["value"], torch.ones(2, dtype=torch.double))


@pytest.mark.parametrize(
    "line",
    [
        "%autograd_calls Cube",
        "%autograd_graph a",
        "%autograd_explain",
        "%autograd_explain --on",
    ],
)
def test_a_line_without_a_call_does_nothing(disabled, line: str) -> None:
    ran = disabled(line)
    assert ran.result.success
    assert (ran.stdout, ran.bundles) == ("", [])


def test_a_cell_to_be_audited_runs_alone(disabled) -> None:
    disabled(CELL)
    ran = disabled("%%autograd_audit --order 2\nCube.apply(a).sum().backward()")
    assert ran.result.success
    assert (ran.stdout, ran.bundles) == ("forward\n", [])
    assert torch.equal(disabled["a"].grad, torch.ones(2, dtype=torch.double))
    assert "_audit" not in disabled.shell.user_ns
    assert type(vars(disabled["Cube"])["forward"]) is staticmethod


def test_a_gradient_error_has_its_traceback_alone(disabled) -> None:
    ran = disabled("y = a.exp()\ny += 1\ny.sum().backward()")
    assert isinstance(ran.error, RuntimeError)
    assert ran.bundles == []
    assert "nbautograd" not in ran.stdout


def test_an_error_of_the_call_is_the_users(disabled) -> None:
    assert isinstance(disabled("%gradcheck torch.nope(a)").error, AttributeError)


@pytest.mark.parametrize("above", ["%%exercise 01.1", "\n%%autograd_function", "%%autograd_function\n%%exercise 01.1"])
def test_other_cell_magics_are_emptied_as_well(disabled, above: str) -> None:
    ran = disabled(f"{above}\ny = 5")
    assert ran.result.success
    assert disabled["y"] == 5
    assert disabled("%%autograd_function\n%%capture\nprint(1)").stdout == ""


def test_every_magic_of_the_extension_is_there_and_gone_after_unloading(bare, monkeypatch) -> None:
    def names() -> set[tuple[str, str]]:
        return {(kind, name) for kind, table in bare.shell.magics_manager.magics.items() for name in table}

    before = names()
    bare.shell.extension_manager.load_extension("nbautograd")
    usual = names() - before
    bare.shell.extension_manager.unload_extension("nbautograd")
    monkeypatch.setenv("NBAUTOGRAD_DISABLE", "1")
    bare.shell.extension_manager.load_extension("nbautograd")
    assert names() - before == usual
    assert len(usual) >= 9
    bare.shell.extension_manager.unload_extension("nbautograd")
    assert names() == before
    assert not any("nbautograd" in type(t).__module__ for t in bare.shell.input_transformers_cleanup)


def test_zero_leaves_it_enabled(bare, monkeypatch) -> None:
    monkeypatch.setenv("NBAUTOGRAD_DISABLE", "0")
    bare.shell.extension_manager.load_extension("nbautograd")
    bare("a = torch.ones(2, dtype=torch.double, requires_grad=True)")
    assert says(bare(CELL.replace(" --nonsense", "")).text, "views.headline.wrong_for", function="Cube", inputs="`x`")
