"""gradcheck and jacobian as a user meets them."""

from __future__ import annotations

import math
import random

import functions_checked as checked
import numpy as np
import pytest
import torch
from fn import Fn
from functions_checked import Exp, LinearWrong
from own_mistakes import normal
from said import pattern

import nbautograd
from nbautograd import gradcheck, jacobian, messages
from nbautograd.errors import CallError, InputError

pytestmark = pytest.mark.usefixtures("without_fixes")


def seed_inputs():
    a = torch.arange(4).view(2, 2).double().requires_grad_()
    b = torch.arange(6).view(2, 3).double().requires_grad_()
    return a, b


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_an_object_of_a_function_is_not_taken_for_one_of_old_torch():
    class Old(torch.autograd.Function):
        def forward(self, x):
            return x

    with pytest.raises(CallError, match=r"pass Exp\.apply"):
        gradcheck(Exp(), normal(2))
    with pytest.raises(CallError, match=pattern("checking.legacy", name="Old")):
        gradcheck(Old(), normal(2))


@pytest.mark.parametrize("call", [Exp, Exp.apply, lambda x: Exp.apply(x), torch.exp])
def test_a_class_its_apply_and_any_callable_can_be_checked(call):
    assert gradcheck(call, normal(3, 2)).verdict == "right"


def test_one_entry_of_many_that_is_off_by_a_hundred_thousandth_is_found():
    report = gradcheck(checked.Offset, normal(2500))
    block = report.blocks[0, 0]
    assert (block.verdict, block.wrong, block.worst.input_index) == ("mismatch", 1, (7,))
    assert block.worst.error_bar < 1e-8


def test_couplings_that_the_backward_lacks_are_seen():
    report = gradcheck(checked.Softmax, normal(6, 4))
    block = report.blocks[0, 0]
    assert block.structure == "block diagonal"
    assert block.wrong == 6 * 4 * 3


@pytest.mark.slow
def test_a_million_elements_stay_a_diagonal():
    x = normal(1_000_000)
    block = gradcheck(Exp, x, order=1).blocks[0, 0]
    assert (block.verdict, block.structure, block.entries) == ("match", "diagonal", 10**12)
    part = block.analytical(slice(0, 3), [0, 1, 2])
    np.testing.assert_allclose(part, np.diag(x[:3].exp().detach()))
    pooled = block.pooled(8, 8)
    assert pooled.analytical.shape == (8, 8)
    assert pooled.rows == 125_000
    with pytest.raises(InputError, match="pooled"):
        block.analytical()


def test_a_wrong_entry_of_a_jacobian_too_large_to_hold_is_searched_for():
    report = gradcheck(checked.Coupled, normal(3000), order=1)
    block = report.blocks[0, 0]
    assert (block.structure, block.verdict) == ("sampled", "mismatch")
    assert (block.worst.output_index, block.worst.input_index) == ((1234,), (11,))
    assert np.isnan(block.analytical(slice(0, 200), slice(0, 200))).any()


@pytest.mark.parametrize(("at_zero", "verdict"), [(0.0, "subgradient"), (0.3, "subgradient"), (2.0, "mismatch")])
def test_at_a_kink_anything_between_the_slopes_is_right(monkeypatch, at_zero, verdict):
    monkeypatch.setattr(checked.Relu, "at_zero", at_zero)
    x = torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    report = gradcheck(checked.Relu, x)
    assert report.blocks[0, 0].verdict == verdict
    assert report.verdict == ("wrong" if verdict == "mismatch" else "right")


def test_complex_numbers_count_as_pairs():
    z = torch.tensor([1 + 2j, -0.5j], dtype=torch.complex128, requires_grad=True)
    block = gradcheck(lambda z: z * z, z).blocks[0, 0]
    assert block.verdict == "match"
    assert (block.output_shape, block.input_shape) == ((2, 2), (2, 2))
    derivative = 2 * z.detach()[0]
    expected = [[derivative.real, -derivative.imag], [derivative.imag, derivative.real]]
    np.testing.assert_allclose(block.analytical(slice(0, 2), slice(0, 2)), expected, atol=1e-12)


def test_an_exception_in_forward_is_the_users_own():
    with pytest.raises(ZeroDivisionError, match="own forward"):
        gradcheck(checked.ForwardRaises, normal(3))


@pytest.mark.parametrize(
    ("fn", "inputs", "error", "advice"),
    [
        (3, (normal(2),), CallError, "^(?!gradcheck).* MyFunction.* int"),  # `inspect` and others say it, too
        (torch.exp, 3, CallError, "^(?!gradcheck).* tuple.* int"),
        (torch.exp, (torch.arange(3),), InputError, "double"),
        (torch.exp, (3.0,), InputError, "tensor"),
        (torch.mul, (normal(1), torch.ones(1).expand(2**62)), InputError, "4611686018427387904"),
    ],
)
def test_a_call_that_makes_no_sense_gets_advice(fn, inputs, error, advice):
    with pytest.raises(error, match=advice):
        gradcheck(fn, inputs)


TakesMask = Fn.of(
    "TakesMask",
    "x, index, mask, scale: save(mask); return x * mask",
    "grad: return grad * ctx.saved_tensors[0], None, None, None",
)


@pytest.mark.parametrize(
    ("x", "mask", "checked", "left"),
    [
        (torch.rand(3, 2).double(), torch.tensor([0.0, 1.0]).double(), [0], True),
        (torch.rand(3, 2).double(), torch.tensor([False, True]), [0], False),
        (torch.ones(2).double(), torch.tensor(True), [0], False),
        (torch.rand(2).double().requires_grad_(), torch.rand(2).double(), [0], False),
    ],
)
def test_where_no_input_requires_grad_all_floating_ones_but_masks_are_checked(x, mask, checked, left):
    given = (x, torch.arange(2), mask, 3.0)
    report = gradcheck(TakesMask, given)
    assert report.verdict == "right"
    assert sorted(i for _, i in report.blocks) == checked
    assert [bool(note.params.get("left")) for note in report.notes] == ([] if x.requires_grad else [left])
    assert all(str(note) in " ".join(str(report).split()) for note in report.notes)
    assert x.grad is None
    assert not mask.requires_grad
    assert sorted(i for _, i in jacobian(TakesMask, given).blocks) == checked
    assert nbautograd.inspect(TakesMask, *given).gradcheck.notes == report.notes


def test_a_wrong_gradient_shows_without_requires_grad():
    assert gradcheck(LinearWrong, (torch.rand(2, 2), torch.rand(2, 2), torch.zeros(2))).wrong


def test_a_mistake_of_ours_is_not_blamed_on_backward(monkeypatch):
    from nbautograd.core.checking.jacobian import structure

    def broken(*_):
        raise IndexError("ours")

    monkeypatch.setattr(structure, "matching", broken)
    with pytest.raises(IndexError, match="ours"):
        gradcheck(Exp, normal(3))


def test_an_interrupt_of_the_first_call_leaves_nothing_and_says_so():
    def interrupted(x):
        raise KeyboardInterrupt

    report = gradcheck(interrupted, normal(2))
    assert (report.verdict, dict(report.blocks)) == ("cannot tell", {})
    assert str(report.reason) == messages.text("checking.interrupted_early")


def test_nothing_of_the_users_is_changed(capsys):
    x = normal(4)
    before, version, threads = x.detach().clone(), x._version, torch.get_num_threads()
    torch.manual_seed(5), np.random.seed(5), random.seed(5)

    def noisy(x):
        print("forward")
        return x * (torch.rand(4) > -1)

    with torch.no_grad():
        gradcheck(noisy, x)
        assert not torch.is_grad_enabled()
    drawn = torch.rand(1).item(), np.random.rand(), random.random()
    torch.manual_seed(5), np.random.seed(5), random.seed(5)
    assert drawn == (torch.rand(1).item(), np.random.rand(), random.random())
    assert torch.equal(x, before)
    assert x._version == version
    assert x.grad is None
    assert torch.get_num_threads() == threads
    assert capsys.readouterr().out == ""


PseudoInverse = Fn.of("PseudoInverse", "x: y = torch.linalg.pinv(x); save(y); return y",
    "g: (y,) = saved; return -y.mH @ g @ y.mH")  # fmt: skip


def test_tolerances_of_the_caller_rule():
    x = normal(6)
    slightly = gradcheck(checked.Offset, normal(10), atol=1e-3, rtol=1e-3)
    assert slightly.blocks[0, 0].verdict == "match"
    assert gradcheck(Exp, x, eps=1e-4).verdict == "right"


@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (lambda x: x.mul_(3), normal(3)),
        (lambda x: x * 3, normal(1, 3).expand(4, 3)),
        (lambda x: x.t() * 3, normal(4, 3).t()),
        (lambda x: x.float().sin(), torch.linspace(0.1, 2, 6).requires_grad_()),  # cannot be promoted
        (PseudoInverse, normal(4, 4).detach().to(torch.complex128).requires_grad_()),  # other under a dispatch mode
    ],
)
def test_in_place_functions_expanded_inputs_and_numbers_of_other_dtypes_can_be_checked(fn, x):
    assert gradcheck(fn, x, order=1).verdict == "right"


def test_a_complex_output_with_one_infinite_part_cannot_be_told():
    report = gradcheck(torch.log, torch.tensor([0, 1 + 1j], dtype=torch.complex128, requires_grad=True))
    assert (report.verdict, report.blocks[0, 0].reason) == ("cannot tell", "domain edge")
    assert not report.findings


def test_a_domain_edge_is_judged_from_inside():
    x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    block = gradcheck(lambda x: x * x.sqrt(), x).blocks[0, 0]
    assert block.verdict != "mismatch" or math.isnan(block.worst.analytical)


def test_jacobian_has_both_matrices_and_no_verdict():
    a, b = seed_inputs()
    report = jacobian(LinearWrong, (a, b))
    assert report.complete
    assert not hasattr(report.blocks[0, 1], "verdict")
    assert report.blocks[0, 1].analytical().shape == (6, 6)
    assert report.blocks[0, 1].numerical([0], slice(2)).shape == (1, 2)


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_a_function_that_differentiates_by_itself_is_checked_as_torch_checks_it(factor):
    """A gradient penalty calls torch.autograd.grad; a difference of two values needs that as well."""
    cube = Fn.of("Cube", "x: save(x); return x**3", f"g: (x,) = saved; return {factor} * 3 * x * x * g")

    def penalty(x):
        return torch.autograd.grad(cube.apply(x).sum(), x, create_graph=True)[0].square().sum()

    x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(penalty, x)  # of what it returns, whatever cube's backward says
    assert nbautograd.gradcheck(penalty, x).verdict == "right"


# Smooth at zero, and wrong only there.
SquareOffset = Fn.of("SquareOffset", "x: save(x); return 3 * x + x * x",
    "grad: (x,) = saved; return grad * (3 + 2 * x) * (x != 0)")  # fmt: skip
# Wrong at its kink, where 2 is outside the slopes to both sides.
ReluTwo = Fn.of("ReluTwo", "x: save(x); return x.relu()",
    "grad: (x,) = saved; return grad * ((x > 0) + 2.0 * (x == 0))")  # fmt: skip


@pytest.mark.parametrize(("fn", "kink"), [(SquareOffset, False), (ReluTwo, True)])
def test_a_mismatch_at_zero_is_a_kink_only_where_the_slopes_to_both_sides_differ(fn, kink):
    x = torch.tensor([-1.0, 0.0, 2.0, 0.0, 0.5], dtype=torch.float64, requires_grad=True)
    report = gradcheck(fn, x, hints="where")
    assert report.blocks[0, 0].wrong == 2
    assert (report.findings[0].code == "kink") is kink


def test_a_small_derivative_is_still_checked_where_the_output_is_small_too():
    Tiny = Fn.of("Tiny", "x: save(x); return 1e-12 * x.sin()", "grad: return torch.zeros_like(grad)")
    assert nbautograd.gradcheck(Tiny, normal(5), order=1).verdict == "wrong"


def test_an_in_place_function_does_not_move_the_points_that_it_is_asked_at():
    # wrong, so that the ladder is climbed
    in_place = Fn.of("InPlace", "x: ctx.mark_dirty(x); return x.exp_().sub_(1)", "grad: return grad")
    x = torch.linspace(0.5, 1, 5, dtype=torch.float64, requires_grad=True)
    block = nbautograd.gradcheck(in_place, x, order=1).blocks[0, 0]
    assert block.verdict == "mismatch"
    assert torch.allclose(torch.as_tensor(block.numerical()).diag(), x.detach().exp(), rtol=1e-9)
