"""A fix or a cause that holds for the arguments given alone is not offered, or says that it depends on them."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from own_mistakes import normal

from nbautograd import gradcheck
from nbautograd.core.checking.points import points
from nbautograd.core.checking.problem import Problem

# whole checks, one for each kind of what is asked: `.ci/run` runs them with the slow tests
pytestmark = pytest.mark.slow


# A running sum, without the element itself where it is exclusive; backward forgets that.
ExclusiveSum = Fn.of("ExclusiveSum",
    "x, exclusive: ctx.exclusive = exclusive; y = x.cumsum(-1); return y - x if exclusive else y",
    "grad_output: grad = grad_output.flip(-1).cumsum(-1).flip(-1); return grad, None")  # fmt: skip
# A divergence of logarithms, or of probabilities; backward forgets the inner derivative of the former.
Divergence = Fn.of("Divergence", "q, target, log_target: logt = target if log_target else target.log(); "
    "t = target.exp() if log_target else target; save(q, logt, t); ctx.log_target = log_target; "
    "return (t * (logt - q)).sum()",
    "g: q, logt, t = saved; return -g * t, g * (logt - q + 1), None")  # fmt: skip
# One of two curves, chosen by a string; backward has the derivative of one of them.
Named = Fn.of("Named", 'x, kind: save(x); return x.square() * 3 if kind != "flat" else x.square()',
    "g: (x,) = saved; return 2 * g * x, None")  # fmt: skip
# A weight of the output, or none; backward always forgets it.
Weighted = Fn.of("Weighted",
    "x, scale: save(x); ctx.scale = scale; return x.square() if scale is None else x.square() * scale",
    "g: (x,) = saved; return 2 * g * x, None")  # fmt: skip


def fixes(report):
    return [finding.fix.source for finding in report.findings if finding.fix is not None]


def test_no_fix_for_one_value_of_a_flag():
    report = gradcheck(ExclusiveSum.apply, (normal(3, 4), True))
    assert report.verdict == "wrong"
    assert all("exclusive" in fix for fix in fixes(report))


@pytest.mark.parametrize("given", [True, False])
def test_no_fix_for_one_value_of_a_flag_where_the_other_one_needs_other_values(given):
    """The logarithms given are negative, so the other branch has to be tried at other numbers."""
    q, target = normal(4, 3), -normal(4, 3, seed=1).detach().abs() - 0.1
    target = (target if given else target.exp()).requires_grad_()
    report = gradcheck(Divergence, (q, target, given), order=1)
    assert report.verdict == ("wrong" if given else "right")
    assert not fixes(report)


@pytest.mark.parametrize(("cls", "argument"), [(Named, "steep"), (Weighted, 0.3)])
def test_no_fix_for_one_of_the_strings_that_the_code_compares_nor_that_fails_where_one_may_be_none(cls, argument):
    report = gradcheck(cls, (normal(5), argument), order=1)
    assert report.verdict == "wrong"
    assert not fixes(report)


def test_a_flag_that_a_callable_gives_to_its_function_is_tried_the_other_way_too():
    inside = gradcheck(lambda x: ExclusiveSum.apply(x, True), normal(3, 4))
    assert inside.verdict == "wrong"
    assert all("if ctx.exclusive else" in fix for fix in fixes(inside))
    assert "apply" not in vars(ExclusiveSum)


def test_inputs_keep_their_names_where_an_argument_inside_is_another():
    def steep(angle):
        return Powered.apply(angle, 3.0)

    found = gradcheck(steep, normal(6)).findings[0]
    assert found.code == "missing_factor"
    assert "`angle`" in found.message


# The inner derivative of the cosine is forgotten.
Powered = Fn.of("Powered", "x, scale: save(x); ctx.scale = scale; return scale * (x**2).sin()",
    "grad_output: (x,) = saved; return grad_output * ctx.scale * (x**2).cos(), None")  # fmt: skip


class Norm(Fn):
    """The p-norm, which grows by the number itself in place of its sign where p is infinite."""

    def forward(ctx, x, p):
        y = x.abs().amax(-1) if p == float("inf") else x.abs().pow(p).sum(-1) ** (1 / p)
        y = x.abs().sum(-1) if p == 1 else y
        ctx.p = p
        ctx.save_for_backward(x, y)
        return y

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        largest = y.unsqueeze(-1)
        if ctx.p == 1:
            slope = x.sign()
        elif ctx.p == float("inf"):
            slope = x * (x.abs() == largest)
        else:
            slope = x.sign() * (x.abs() / largest) ** (ctx.p - 1)
        weighted = g.unsqueeze(-1) * slope
        return weighted, None


# An absolute error at several levels, each a number of a list: one more size than backward divides by.
Levels = Fn.of("Levels", "x, levels: away = x - x.new_tensor(levels); save(away); return away.abs().mean()",
    "g: (away,) = saved; slope = g * away.sign(); return slope / away.shape[0], None")  # fmt: skip
# A filter on a half spectrum, whose last number stands once only where the length is even.
Spectrum = Fn.of("Spectrum", "x, h: save(x, h); return torch.fft.irfft(torch.fft.rfft(x) * h, n=x.shape[-1])",
    "g: x, h = saved; spectrum = torch.fft.rfft(g); times = torch.full(h.shape, 2.0, dtype=x.dtype); "
    "times[0] = 1.0; times[-1] = 1.0; "
    "grad_h = times / x.shape[-1] * (spectrum * torch.fft.rfft(x).conj()).sum(0); "
    "return torch.fft.irfft(spectrum * h.conj(), n=x.shape[-1]), grad_h")  # fmt: skip


def wrong_report(fn, *inputs):
    own = [x.detach().clone().requires_grad_() if isinstance(x, torch.Tensor) else x for x in inputs]
    wrong = gradcheck(fn, tuple(own), order=1)
    assert wrong.verdict == "wrong"
    return wrong


def test_a_fix_for_an_infinite_argument_leaves_finite_ones_right():
    assert gradcheck(Norm, (normal(3, 4), 1.0), order=1).verdict == "right"
    tried = points(Problem(Norm, (normal(3, 4), float("inf")))).of("argument")
    assert {at.inputs[1] for at in tried} == {1.0, 3.0}
    for fix in fixes(wrong_report(Norm, normal(3, 4), float("inf"))):  # in its own branch alone
        assert fix.strip().startswith("slope = x *")


# The exponent is halved with integers, which is right where it is even.
HalvedExponent = Fn.of("HalvedExponent", "x, p: e = 1 + (x * x).sum(-1); save(x, e); ctx.p = p; return e ** (p / 2)",
    "g: x, e = saved; h = ctx.p // 2; return (g * 2 * h * e ** (h - 1))[..., None] * x, None")  # fmt: skip


def test_a_factor_of_one_odd_number_is_not_named_where_another_takes_another():
    found = wrong_report(HalvedExponent, normal(4, 3), 3).findings[0]
    assert "1.5" not in found.message


def test_a_factor_is_the_length_of_a_list_and_no_number():
    found = wrong_report(Levels, normal(5, 3), [0.1, 0.5, 0.9])
    assert not any("3" in fix for fix in fixes(found))
    assert gradcheck(Levels, (normal(5, 1), [0.1]), order=1).verdict == "right"


def test_a_fix_holds_for_lengths_that_are_one_less():
    h = torch.complex(normal(5).detach(), normal(5, seed=1).detach())
    assert gradcheck(Spectrum, (normal(3, 8), h.requires_grad_()), order=1).verdict == "right"
    assert not any(fix.strip() == "times[-1] = 2.0" for fix in fixes(wrong_report(Spectrum, normal(3, 9), h)))
