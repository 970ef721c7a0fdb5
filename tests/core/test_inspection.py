"""inspect and compare: one call that does everything, and a Function beside its reference."""

import pickle

import pytest
import torch
from fn import Fn
from own_mistakes import ProductSwapped

import nbautograd
from nbautograd.core.recording.api import instrumented
from nbautograd.inspection.report import run_inspection

F64 = torch.float64


Product = Fn.of("Product", 'a, b: save(b, a); print("forward ran"); return a * b',
    "grad_output: b, a = saved; return b * grad_output, a * grad_output")  # fmt: skip


def leaves(*shapes):
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(*s, dtype=F64, generator=generator).requires_grad_() for s in shapes)


def test_the_report_holds_calls_graph_check_and_source():
    report = nbautograd.inspect(Product, *leaves((2, 3), (2, 3)))
    assert report.verdict == "right"
    assert [call.method for call in report.calls] == ["forward", "backward"]
    assert report.calls[0].stdout == "forward ran\n"
    assert [v.name for v in report.calls[0].ctx.saved_tensors] == ["b", "a"]
    assert [n.label for n in report.graph.leaves] == ["a", "b"]
    assert all(edge.gradient is not None for edge in report.graph.edges)
    assert set(report.jacobian.blocks) == {(0, 0), (0, 1)}
    assert report.source.inputs == ("a", "b")


def test_inspection_leaves_no_trace(capsys):
    a, b = leaves((3,), (3,))
    torch.manual_seed(7)
    expected = torch.get_rng_state()
    forward = Product.__dict__["forward"]
    nbautograd.inspect(Product, a, b, reference=torch.mul)
    assert a.grad is None
    assert b.grad is None
    assert torch.equal(torch.get_rng_state(), expected)
    assert capsys.readouterr().out == ""
    assert Product.__dict__["forward"] is forward
    assert Product not in instrumented()


def test_a_report_survives_pickle_and_becomes_plain_data():
    report = nbautograd.inspect(ProductSwapped, *leaves((2,), (2,)))
    again = pickle.loads(pickle.dumps(report))
    assert again.verdict == report.verdict == "wrong"
    assert again.to_dict()["type"] == "FunctionReport"
    assert [f.message for f in again.findings] == [f.message for f in report.findings]


def test_a_forward_that_raises_is_the_users_own_error():
    with pytest.raises(RuntimeError, match="size of tensor"):
        nbautograd.inspect(Product, *leaves((2,), (3,)))


def test_a_wrapper_function_is_traced_to_its_class():
    def product(a, b):
        return Product.apply(a, b).sum()

    report = nbautograd.inspect(product, *leaves((2,), (2,)))
    assert [call.function for call in report.calls] == ["Product", "Product"]


def test_a_callable_without_a_function_says_so():
    report = nbautograd.inspect(torch.mul, *leaves((2,), (2,)))
    assert len(report.calls) == 0
    assert "inspection.no_function" in [note.message_id for note in report.notes]


def test_a_reference_that_raises_becomes_a_note():
    report = run_inspection(Product, leaves((2,), (2,)), reference=torch.inverse, reference_name="inverse")
    assert report.comparison is None
    assert any("inverse" in str(note) for note in report.notes)


def test_hints_cut_what_a_report_gives_away():
    inputs = leaves((2,), (2,))
    told, kept = nbautograd.inspect(ProductSwapped, *inputs), nbautograd.inspect(ProductSwapped, *inputs, hints="what")
    assert any(f.fix for f in told.findings)
    assert kept.verdict == "wrong"
    assert not any(f.fix or f.line for f in kept.findings)
    with pytest.raises(nbautograd.CallError):
        nbautograd.inspect(ProductSwapped, *inputs, hints="all")


class Watched(Fn):
    """Keeps the gradients that its backward is given."""

    given: list[torch.Tensor] = []

    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        Watched.given.append(grad_output)
        return b * grad_output, a * grad_output


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_gradient_that_is_shown_is_none_of_the_users_random_numbers(seed):
    torch.manual_seed(seed)
    inputs = tuple(torch.randn(3, 4, dtype=F64).requires_grad_() for _ in range(2))
    Watched.given.clear()
    report = nbautograd.inspect(Watched, *inputs)
    [shown] = [call.inputs[0].tensor.values for call in report.calls if call.method == "backward"]
    assert all(shown != tuple(x.flatten().tolist()) for x in inputs)
    nbautograd.compare(Watched, torch.mul, inputs, sizes=(), time=True)
    assert not any(torch.equal(given, x) for given in Watched.given for x in inputs)
