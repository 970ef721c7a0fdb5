"""Named cases, inputs that a maker makes, and memory layouts by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from kernels import function
from said import pattern
from torch import Tensor

from nbautograd import compare
from nbautograd.core.checking.problem import Problem
from nbautograd.core.kernel.cases import NamedCase
from nbautograd.core.kernel.layouts import GRADS, INPUTS, layout_cases
from nbautograd.errors import CallError

Arguments = tuple[Tensor, Tensor]


def ragged_softmax(x: Tensor, starts: Tensor) -> Tensor:
    """Softmax over each piece of the first dimension; the starts are checked as a kernel's launch would."""
    assert int(starts[-1]) == len(x), "starts were made up"
    return torch.cat([x[a:b].softmax(0) for a, b in itertools.pairwise(starts.tolist())])


class Ragged(torch.autograd.Function):
    """Its backward takes the first piece's sum of squares for that of the last where that has an odd length."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, starts: Tensor) -> Tensor:
        y = ragged_softmax(x, starts)
        ctx.save_for_backward(y, starts)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        y, starts = ctx.saved_tensors
        pieces = []
        for a, b in itertools.pairwise(starts.tolist()):
            total = (y[a:b] * g[a:b]).sum(0)
            pieces.append(y[a:b] * (g[a:b] - (0.5 * total if (b - a) % 2 and b - a > 1 else total)))
        return torch.cat(pieces), None


def arguments(*lengths: int) -> Arguments:
    x = torch.randn(sum(lengths), 6, generator=torch.Generator().manual_seed(3))
    return x.requires_grad_(), torch.tensor((0, *itertools.accumulate(lengths)), dtype=torch.int32)


def cases() -> Iterator[tuple[str, Arguments]]:
    yield "even", arguments(4, 8, 2)
    yield "one row each", arguments(1, 1, 1)
    yield "ragged 5/7/19", arguments(5, 7, 19)


def test_a_callable_around_a_function_is_what_every_case_compares() -> None:
    whole = [("even", arguments(4, 8, 2)), ("a tail", arguments(6, 2))]
    report = compare(lambda x, k: 2 * Ragged.apply(x, k), lambda x, k: 2 * ragged_softmax(x, k), cases=whole)
    assert {case.name: case.verdict for case in report.cases} == {"even": "right", "a tail": "right"}


def test_each_named_case_is_a_row_and_the_wrong_one_is_named() -> None:
    report = compare(Ragged, ragged_softmax, cases=cases)
    assert (report.verdict, [finding.code for finding in report.findings]) == ("wrong", ["compare_case"])
    assert report.findings[0].params["name"] == "ragged 5/7/19"
    verdicts = {case.name: case.verdict for case in report.cases}
    # a softmax of one row has no gradient that zeros would not pass for
    assert verdicts == {"even": "right", "one row each": "cannot tell", "ragged 5/7/19": "wrong"}
    assert report.smallest is None
    assert report.to_dict()["functions"][0]["situations"][1]["name"] == "ragged 5/7/19"


def test_no_metadata_is_made_up_for_named_cases() -> None:
    lengths: list[list[int]] = []

    def watched(x: Tensor, starts: Tensor) -> Tensor:
        lengths.append(starts.tolist())
        return ragged_softmax(x, starts)

    assert compare(watched, ragged_softmax, cases=[("a", arguments(4, 3)), ("b", arguments(2, 9))]).verdict == "right"
    assert {tuple(one) for one in lengths} == {(0, 4, 7), (0, 2, 11)}


def test_a_named_case_by_itself_is_not_resized_either() -> None:
    report = compare(Ragged, ragged_softmax, NamedCase("ragged", arguments(5, 7)))
    assert (report.verdict, report.cases, report.smallest) == ("wrong", (), None)


def test_a_case_that_cannot_be_told_is_no_pass() -> None:
    report = compare(Ragged, ragged_softmax, cases=list(cases())[:2])
    assert report.verdict == "cannot tell"
    assert "one row each" in str(report.reason)


def test_cases_may_differ_in_what_requires_grad() -> None:
    def scaled(x: Tensor, weight: Tensor | None = None) -> Tensor:
        return x.sin() if weight is None else x.sin() * weight

    x, w = torch.ones(5, requires_grad=True), torch.full((5,), 2.0, requires_grad=True)
    assert compare(scaled, lambda *a: scaled(*a), cases=[("bare", (x, None)), ("weighted", (x, w))]).verdict == "right"


@pytest.mark.parametrize(
    ("given", "options", "key"),
    [
        ((), {"cases": []}, "cases_alike"),
        ((), {"cases": [("a", torch.ones(2)), ("a", torch.ones(3))]}, "cases_alike"),
        ((), {"cases": [torch.ones(2)]}, "case_unfit"),
        ((torch.ones(3),), {"layouts": ["diagonal"]}, "layout_unknown"),
        ((torch.ones(3),), {"layouts": ["channels_last"]}, "layout_unfit"),
    ],
)
def test_cases_and_layouts_that_are_none_are_refused(given: Any, options: Any, key: str) -> None:
    with pytest.raises(CallError, match=pattern(f"compare.{key}")):
        compare(torch.sin, torch.sin, *given, **options)


def half_at(size: int) -> Any:
    """A Function for tanh whose gradient is halved at one number of rows."""
    return function(
        lambda x: (torch.tanh(x), (torch.tanh(x),)),
        lambda saved, g: g * (1 - saved[0] ** 2) * (0.5 if len(g) == size else 1),
    )


def test_a_maker_of_a_size_is_called_and_nothing_is_resized() -> None:
    made: list[int] = []

    def make(rows: int = 20) -> tuple[Tensor]:
        made.append(rows)
        return (torch.randn(rows, 3, requires_grad=True),)

    state = torch.random.get_rng_state()
    report = compare(half_at(17), torch.tanh, make)
    assert torch.equal(state, torch.random.get_rng_state())
    assert (report.verdict, report.smallest) == ("wrong", ((17, 3),))
    assert {case.shapes[0][1] for case in report.cases} == {
        3,
        *(case.shapes[0][1] for case in report.cases if case.change),
    }
    assert {1, 15, 16, 17, 19, 21, 64} <= set(made)
    assert compare(half_at(0), torch.tanh, lambda: torch.ones(4)).verdict == "right"


def test_each_size_of_a_maker_is_changed() -> None:
    def make(rows: int = 5, columns: int = 8, dtype: torch.dtype = torch.float32) -> tuple[Tensor]:
        if columns == 31:
            raise ValueError("no such size")
        return (torch.randn(columns, rows, dtype=dtype, requires_grad=True),)

    report = compare(half_at(17), torch.tanh, make, layouts=())
    assert (report.verdict, report.smallest) == ("wrong", ((17, 5),))
    rows, columns = ({case.shapes[0][k] for case in report.cases} for k in (1, 0))
    assert {1, 4, 5, 6, 65} <= rows
    assert {1, 7, 8, 9, 65} <= columns
    assert 31 in rows - columns


def test_all_layouts_are_tried_for_inputs_and_grad_outputs() -> None:
    x = torch.randn(2, 3, 4, 5, requires_grad=True)
    reference = Problem(torch.mul, (x, x.detach().clone().requires_grad_()))
    with reference.session():
        reference.call()
        rows = list(layout_cases(reference, "all"))
    pairs = {row.layouts for row in rows if row.layouts}
    assert pairs == {(a,) for a in (*INPUTS, *GRADS)} | set(itertools.product(INPUTS, GRADS))
    assert len(pairs) + 1 == 8 * 7  # with the contiguous ones
    for name, change in GRADS.items():
        laid = change(x.detach())
        behind = laid.storage_offset() > 0
        assert (laid.stride(), behind) != (x.stride(), False), name
        assert name == "grad_expanded" or torch.equal(laid, x), name


def test_rows_that_lie_in_memory_as_before_are_left_out() -> None:
    reference = Problem(torch.tanh, (torch.randn(1, 16, requires_grad=True),))
    with reference.session():
        reference.call()
        rows = {row.change for row in layout_cases(reference, "all")}
    changing = {"strided", "offset", "stacked", "grad_strided", "grad_expanded", "grad_offset"}
    assert changing <= rows
    assert not rows & {
        "transposed",
        "expanded",
        "fused",
        "channels_last",
        "grad_transposed",
        "grad_fused",
        "grad_channels_last",
    }


def test_layouts_are_tried_at_the_case_with_the_most_dimensions() -> None:
    def backward(saved: tuple[Tensor, ...], g: Tensor) -> Tensor:
        return g.view(-1).view(g.shape) * (1 - saved[0] ** 2)

    views = function(lambda x: (torch.tanh(x), (torch.tanh(x),)), backward)
    named = [("one row", torch.randn(1, 16)), ("rows", torch.randn(4, 16))]
    report = compare(views, torch.tanh, cases=named, layouts="all")
    assert (report.verdict, report.findings[0].code) == ("wrong", "compare_layout")
    assert compare(views, torch.tanh, cases=named[:1], layouts="all").verdict == "right"


def test_a_grad_output_that_backward_writes_into_is_wrong() -> None:
    scaled = function(lambda x: (x * 3, ()), lambda saved, g: g.mul_(3))
    report = compare(scaled, lambda x: x * 3, torch.randn(4, 5, requires_grad=True))
    assert (report.verdict, report.findings[0].code) == ("wrong", "mutates_grad_output")
    assert {one.verdict for one in report.quantities} == {"right"}


@pytest.mark.parametrize("layout", [*(name for name in GRADS if name != "grad_expanded"), "offset"])
def test_a_kernel_that_reads_memory_in_order_is_wrong_in_each_layout(layout: str) -> None:
    def in_order(t: Tensor) -> Tensor:
        """Read a tensor's storage from its beginning, as a kernel does that is handed neither strides nor offset."""
        flat = t.as_strided((t.untyped_storage().nbytes() // t.element_size(),), (1,), 0)
        return flat[: t.numel()].reshape(t.shape).clone()

    kernel = function(lambda x: (torch.tanh(in_order(x)), (torch.tanh(x),)), lambda s, g: in_order(g) * (1 - s[0] ** 2))
    x = torch.randn(2, 3, 4, 5, requires_grad=True)
    report = compare(kernel, torch.tanh, x, sizes=(), layouts=[layout])
    assert [(case.change, case.verdict) for case in report.cases] == [(layout, "wrong")]


@pytest.mark.parametrize("option", ["sizes", "cases"])
def test_what_was_not_compared_to_its_end_is_not_right(option: str) -> None:
    def tanh(x: Tensor) -> Tensor:
        if len(x) == 17:
            raise KeyboardInterrupt
        return x.tanh()

    others = {"sizes": [4, 17, 5], "cases": [(str(n), torch.linspace(-1, 1, n).requires_grad_()) for n in (4, 17, 5)]}
    given = [] if option == "cases" else [torch.linspace(-1, 1, 6).requires_grad_()]
    report = compare(tanh, torch.tanh, *given, **{option: others[option]})
    assert (report.verdict, report.complete, report.overall, bool(report)) == ("right", False, "cannot tell", False)
    assert [note.params["done"] for note in report.notes if note.message_id == "compare.sweep_stopped"] == [1]


@pytest.mark.parametrize("at", range(1, 4))
def test_an_interrupt_of_the_first_calls_stays_in_the_report(at: int) -> None:
    calls = iter(range(1, 100))

    def tanh(x: Tensor) -> Tensor:
        if next(calls) == at:
            raise KeyboardInterrupt
        return x.tanh()

    report = compare(tanh, torch.tanh, torch.linspace(-1, 1, 6).requires_grad_(), sizes=())
    assert (report.complete, report.overall) == (False, "cannot tell")
