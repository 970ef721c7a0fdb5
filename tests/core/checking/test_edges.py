"""Points where the true slope is infinite or the numbers run out: nobody is accused there."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from functions_checked import Square
from said import says

import nbautograd

Root = Fn.of("Root", "x: root = x.sqrt(); save(root); return root",
    "grad_output: (root,) = saved; return grad_output / (2 * root)")  # fmt: skip
WrongRoot = Root.of("WrongRoot", backward="grad_output: (root,) = saved; return grad_output / root")


def check(cls, *values):
    return nbautograd.gradcheck(cls, (torch.tensor(values, dtype=torch.float64, requires_grad=True),))


def test_a_root_at_zero_cannot_be_told():
    report = check(Root, 0.0, 1.0)
    assert (report.verdict, report.blocks[0, 0].reason) == ("cannot tell", "domain edge")
    assert check(Root, 1.0, 2.0).verdict == "right"


def test_the_element_at_the_edge_is_named_with_its_value():
    report = check(Root, 4.0, 0.0, 1.0)
    assert says(report.reason, "checking.because_domain_edge", output="root[1]", input="x[1] = 0.0")
    assert report.blocks[0, 0].worst.input_index == (1,)
    nbautograd.set_language("zh")
    assert "`x[1] = 0.0` 旁边" in str(report.reason)


def test_an_output_that_is_not_finite_itself_is_named_and_no_input_blamed():
    x = torch.tensor([3.0, 0.5, -1.0], dtype=torch.float64, requires_grad=True)
    for whole, said in (
        (torch.log, "`output[2]` is NaN at these inputs"),
        (lambda x: x.log().sum(), "`output` is NaN"),
    ):
        reason = str(nbautograd.gradcheck(whole, (x,)).reason)
        assert reason.startswith(said)
        assert "x[" not in reason


def test_an_input_that_is_not_finite_is_named():
    for value, said in ((float("nan"), "`x[1]` is NaN"), (float("inf"), "`x[1]` is ∞")):
        assert said in str(check(Root, 4.0, value).reason)


# Jumps at 2, with a slope that belongs to neither side.
Step = Fn.of("Step", "x: return torch.where(x >= 2, 3 * x, x * x)", "grad_output: return 2 * grad_output")
# 0 / 0 at 0, where forward jumps.
LogOrZero = Fn.of("LogOrZero", "x: save(x); return torch.where(x > 0, x.log(), 0.0)",
    "grad_output: (x,) = saved; return grad_output * (x > 0) / x")  # fmt: skip


@pytest.mark.parametrize(
    ("cls", "values", "why", "at"),
    [(Step, (1.0, 2.0), "because_jump", "x[1] = 2.0"), (LogOrZero, (2.0, 0.0), "because_nan", "x[1] = 0.0")],
)
def test_the_element_at_a_jump_is_named_with_its_value(cls, values, why, at):
    assert says(check(cls, *values).reason, f"checking.{why}", input=at)


def test_a_wrong_root_is_wrong_elsewhere_all_the_same():
    assert check(WrongRoot, 0.0, 1.0).verdict == "wrong"


def test_numbers_that_underflow_are_no_mistake():
    assert check(Square, 1e-200, -3e-190).verdict == "cannot tell"


def test_a_large_single_precision_function_is_not_accused_of_its_second_derivative():
    for seed, size in enumerate((50, 300)):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(size, size, generator=generator).requires_grad_()
        assert nbautograd.gradcheck(Square, (x,)).verdict == "right"


Scale = Fn.of("Scale", "x, factor: save(x, factor); return x * factor",
    "grad_output: x, factor = saved; return grad_output * factor, (grad_output * x).sum()")  # fmt: skip


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

    def forward(self, signal):
        return Scale.apply(signal, self.factor)


def test_what_a_module_hands_to_its_function_is_not_hidden():
    report = nbautograd.gradcheck(Scaled(), (torch.ones(3, dtype=torch.float64, requires_grad=True),))
    assert (report.verdict, report.input_names) == ("right", ("signal",))


FACTOR = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)


Hidden = Fn.of("Hidden", "x: return x * FACTOR", "grad_output: return grad_output * FACTOR")


def test_what_forward_takes_from_outside_is():
    assert [f.code for f in check(Hidden, 1.0, 3.0).findings][:1] == ["hidden_input"]
    direct = nbautograd.gradcheck(lambda x: Hidden.apply(x), (torch.ones(3, dtype=torch.float64, requires_grad=True),))
    assert [f.code for f in direct.findings][:1] == ["hidden_input"]


# Wrong by a number, with an argument that it does not use.
ScaledMean = Fn.of("ScaledMean", "x, y, unused: save(x, y); return (x * y).mean(0).sin()",
    "g: x, y = saved; h = g * (x * y).mean(0).cos(); return h * y / 3, h * x / 4, None")  # fmt: skip


@pytest.mark.parametrize(("shape", "dtype"), [((0,), torch.float64), ((0,), torch.int64), ((0, 3), torch.float64)])
def test_an_empty_tensor_among_the_inputs_has_no_values_to_draw_from(shape, dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(4, 3, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    report = nbautograd.gradcheck(ScaledMean, (x, y, torch.empty(shape, dtype=dtype)), order=1)
    assert report.verdict == "wrong"
    assert [f.where for f in report.findings if f.kind == "bug"] == [(0, 0)]
