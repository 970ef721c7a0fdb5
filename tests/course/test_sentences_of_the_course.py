"""Sentences of the course's notebooks that no cell of theirs runs, by torch's own word."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from fn import Fn
from torch.nn import functional

from nbautograd import gradcheck
from nbautograd.errors import GradcheckError


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()


LostTranspose = Fn.of("LostTranspose", "input, weight: save(input, weight); return input.mm(weight)",
    "g: input, weight = saved; return g.mm(weight.t()), input.mm(g)")  # fmt: skip


def test_02_a_lost_transpose_fails_at_once_where_the_input_is_not_square():
    LostTranspose.apply(numbers(2, 2), numbers(2, 3)).sum().backward()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        LostTranspose.apply(numbers(3, 2), numbers(2, 3)).sum().backward()


# A sum with a bias whose gradient is not summed, and two values too many.
Forgiven = Fn.of("Forgiven", "x, bias: return x + bias", "g: return g, g, None, None")


def test_02_the_engine_sums_what_the_input_broadcasts_to_and_ignores_none_at_the_end():
    x, bias, g = numbers(3, 4), numbers(4), numbers(3, 4).detach()
    assert torch.equal(torch.autograd.grad(Forgiven.apply(x, bias), bias, g)[0], g.sum(0))
    report = gradcheck(Forgiven, (x, bias))
    assert report.verdict == "right"
    assert [(found.code, found.kind) for found in report.findings] == [("grad_shape_reduced", "lint")]


def test_03_a_check_calls_forward_twice_for_each_number_that_goes_in():
    calls = []

    def layer(data, weights):
        calls.append(1)
        return data.mm(weights)

    assert torch.autograd.gradcheck(layer, (numbers(20, 20), numbers(20, 30)), eps=1e-6, atol=1e-4)
    assert 2000 <= len(calls) < 2010


@pytest.mark.filterwarnings("ignore:Input #0 requires gradient and is not a double precision")
@pytest.mark.parametrize("right", [torch.sin, torch.exp, torch.sigmoid, torch.square])
def test_03_the_usual_step_fails_a_right_function_of_float32(right):
    x = torch.tensor([0.6, 1.1, 1.7])
    assert torch.autograd.gradcheck(right, (x.double().requires_grad_(),))
    assert not torch.autograd.gradcheck(right, (x.requires_grad_(),), raise_exception=False)


# The identity, but for one entry of its gradient.
OneWrong = Fn.of("OneWrong", "x: return x.clone()", "g: return torch.cat([g[:1] * 1.01, g[1:]])")


def test_03_fast_mode_can_miss_a_single_wrong_entry():
    x = numbers(500)
    assert not torch.autograd.gradcheck(OneWrong.apply, (x,), atol=1e-4, raise_exception=False)
    assert torch.autograd.gradcheck(OneWrong.apply, (x,), atol=1e-4, fast_mode=True, raise_exception=False)


def test_03_the_floor_of_a_central_difference_is_lower_and_further_right_and_in_float32_near_1e_5():
    steps = [10.0 ** (k / 4) for k in range(-60, 0)]
    for dtype, floor in ((torch.float64, 1e-11), (torch.float32, 1e-5)):
        x = torch.linspace(0.5, 2, 100, dtype=dtype)
        lows = []
        for behind in (0, 1):
            errors = [
                (((x + h).sin() - (x - behind * h).sin()) / ((1 + behind) * h) - x.cos()).abs().max().item()
                for h in steps
            ]
            lows.append((min(errors), steps[errors.index(min(errors))]))
        (forward, at), (central, later) = lows
        assert central < forward
        assert later > at
        assert floor / 3 < central < floor * 3


def test_03_a_float32_function_that_bends_too_much_cannot_be_told():
    x = torch.tensor([0.6, 1.1, 1.7], requires_grad=True)
    assert gradcheck(torch.sin, (x,)).verdict == "right"
    assert gradcheck(lambda x: (50 * x).sin(), (x,)).verdict == "cannot tell"


Cube = Fn.of("Cube", "x: save(x); return x**3")
WritesIntoGradOutput = Cube.of("WritesIntoGradOutput", backward="g: (x,) = saved; return g.mul_(3 * x * x)")
LosesDigits = Cube.of("LosesDigits", backward="g: (x,) = saved; return (3 * x * x * g).float()")
Detached = Cube.of("Detached", backward="g: (x,) = saved; return 3 * x.detach() ** 2 * g")


@pytest.mark.parametrize(
    ("fault", "code", "fails"),
    [
        (WritesIntoGradOutput, "mutates_grad_output", True),
        (LosesDigits, "grad_dtype_cast", False),
        (Detached, "not_twice_differentiable", True),
    ],
)
def test_03_two_of_the_faults_fail_a_test_and_a_lost_dtype_is_in_the_report(fault, code, fails):
    report = gradcheck(fault, (numbers(3),), order=2)
    assert [found.code for found in report.findings] == [code]
    if fails:
        with pytest.raises(GradcheckError):
            report.raise_if_wrong()
    else:
        assert report.raise_if_wrong() is report


class Scaled(Fn):
    got = 0

    def forward(x, factor=2.0):
        return x * factor

    def setup_context(ctx, inputs, output):
        Scaled.got = len(inputs)


def test_04_defaults_are_filled_in_before_setup_context_and_keywords_are_a_matter_of_the_version():
    Scaled.apply(numbers(2))
    assert Scaled.got == 2
    if torch.__version__.startswith("2.6."):
        with pytest.raises(TypeError, match="keyword"):
            Scaled.apply(numbers(2), factor=3.0)
    elif torch.__version__.startswith("2.13."):
        assert Scaled.apply(numbers(2), factor=3.0).requires_grad


Twice = Fn.of("Twice", "x: return x * 2, x * 3",
    "g_double, g_triple: assert torch.equal(g_triple, torch.zeros(3, dtype=torch.float64)); "
    "return g_double * 2")  # fmt: skip


def test_04_an_output_that_nobody_uses_sends_back_zeros():
    x = numbers(3)
    Twice.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


SavesItsNumber = Fn.of("SavesItsNumber", "x, n: save(x, n); return x * x")
Square = SavesItsNumber.of("Square", backward="g: x, _ = saved; return g * 2 * x, None")


def test_04_save_for_backward_takes_tensors_and_none_and_notices_a_change():
    with pytest.raises(TypeError, match="can only save variables"):
        Square.apply(numbers(2), 2.0)
    moved = 1 * numbers(2)
    square = Square.apply(moved, None)
    moved.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()


KeepsItsInput = Fn.of("KeepsItsInput", "x: ctx.x = x; return x * x", "g: return g * 2 * ctx.x")


def test_04_a_check_mentions_an_input_kept_as_an_attribute():
    report = gradcheck(KeepsItsInput, (numbers(1),))
    assert (report.verdict, [found.code for found in report.findings]) == ("right", ["tensor_on_ctx"])


def test_05_at_a_tie_max_gives_all_to_one_and_amax_shares():
    x = torch.tensor([3.0, 3.0, 1.0, 3.0], requires_grad=True)
    taken = torch.max(x, 0)
    (all_to_one,) = torch.autograd.grad(taken.values, x)
    assert all_to_one.tolist() == [float(k == taken.indices) for k in range(4)]
    (shared,) = torch.autograd.grad(torch.amax(x, 0), x)
    assert torch.equal(shared, torch.tensor([1.0, 1.0, 0.0, 1.0]) / 3)


def test_05_an_assignment_by_index_keeps_one_of_three():
    index, g = torch.tensor([1, 1, 1]), torch.tensor([1.0, 2.0, 4.0])
    assigned, added = torch.zeros(2), torch.zeros(2)
    assigned[index] = g
    added[index] += g
    assert assigned[1].item() in g.tolist()
    assert added[1].item() in g.tolist()
    assert torch.zeros(2).index_add_(0, index, g).tolist() == [0, 7]
    assert torch.zeros(2).index_put_((index,), g, accumulate=True).tolist() == [0, 7]


def test_06_torch_calls_relu_wrong_at_zero_and_abs_right():
    origin = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    assert not torch.autograd.gradcheck(torch.relu, (origin,), raise_exception=False)
    assert torch.autograd.gradcheck(torch.abs, (origin,), raise_exception=False)
    assert (origin / origin.abs()).isnan()


StraightThrough = Fn.of("StraightThrough", "x: return x.round()", "g: return g")


def test_06_nobody_can_tell_of_a_straight_through_gradient():
    report = gradcheck(StraightThrough, (torch.tensor([0.3, -1.2, 1.8], dtype=torch.float64, requires_grad=True),))
    assert report.verdict == "cannot tell"
    assert "flat" in str(report)


def test_06_the_surrogate_is_the_slope_of_the_fast_sigmoid():
    v, k = numbers(5), 3.0
    (slope,) = torch.autograd.grad((v / (1 + k * v.abs())).sum(), v)
    assert torch.allclose(slope, 1 / (1 + k * v.abs()) ** 2)


def test_06_the_slopes_of_a_smooth_function_differ_by_the_step_times_the_second_derivative():
    x, h = torch.ones(1, dtype=torch.float64), 1e-6
    at, before, behind = ((5 * y).exp() for y in (x, x - h, x + h))
    apart = (behind - at) / h - (at - before) / h
    assert torch.allclose(apart, h * 25 * at, rtol=1e-3)
    assert apart < 0.05


Dirty = Fn.of("Dirty", "x: ctx.mark_dirty(x); return x.exp_()", "g: return g")


def test_07_a_leaf_that_requires_grad_cannot_be_changed_in_place():
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        Dirty.apply(numbers(2))
    assert Dirty.apply(1 * numbers(2)).requires_grad
    parameter = numbers(2)
    with torch.no_grad():
        assert parameter.add_(1).is_leaf


def test_07_a_write_through_data_is_not_counted():
    x = numbers(2)
    y = 3 * x
    z = y**2
    y.data.add_(1)
    assert y._version == 0
    assert torch.allclose(torch.autograd.grad(z.sum(), x)[0], 6 * (3 * x + 1))  # 18 x is right


def test_07_sine_keeps_its_input_and_exp_its_output():
    sine = (2 * numbers(2)).sin()
    chain = sine.exp()
    assert torch.equal(chain.grad_fn._saved_result, chain)
    assert torch.allclose(sine.grad_fn._saved_self.sin(), sine)


Unmarked = Fn.of("Unmarked", "x: x.exp_(); save(x); return x", "g: (y,) = saved; return g * y")


def test_07_without_mark_dirty_what_was_given_has_the_gradient_1_and_torch_is_content():
    x = numbers(2)
    h = 1 * x
    assert torch.equal(h, Unmarked.apply(h))
    assert torch.autograd.grad(h.sum(), x)[0].tolist() == [1, 1]
    assert torch.autograd.gradcheck(lambda x: Unmarked.apply(1 * x), (x,))
    report = gradcheck(Unmarked, (1 * x,))
    assert report.verdict == "wrong"
    assert "mutates_input" in [found.code for found in report.findings]


Greedy = Fn.of("Greedy", "x: return x * 3", "g: g *= 3; return g")


def test_07_torch_is_content_with_a_changed_grad_output():
    assert torch.autograd.gradcheck(Greedy.apply, (numbers(1),))
    assert [found.code for found in gradcheck(Greedy, (numbers(1),)).findings] == ["mutates_grad_output"]


class Knotted(Fn):
    def forward(ctx, x):
        ctx.y = x.tanh()
        Knotted.context = weakref.ref(ctx)
        return ctx.y


def test_07_the_node_is_ctx_and_an_output_on_it_waits_for_the_collector():
    gc.collect()
    gc.disable()
    try:
        y = Knotted.apply(numbers(2))
        assert y.grad_fn is Knotted.context()
        del y
        assert Knotted.context() is not None
    finally:
        gc.enable()
    gc.collect()
    assert Knotted.context() is None


Once = Fn.of("Once", "x: save(3 * x**2); return x**3", "g: (slope,) = saved; return g * slope", once=True)


def test_08_a_second_backward_that_may_leave_inputs_out_never_enters_the_node():
    x = numbers(3)
    (g,) = torch.autograd.grad((Once.apply(x) ** 2).sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x, allow_unused=True, retain_graph=True) == (None,)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def softplus(name, fake_dtype, deaf):
    """Softplus as an operation with a name; its fake or its gradient may be wrong."""

    @torch.library.custom_op(f"sentences::{name}", mutates_args=())
    def operation(x: torch.Tensor) -> torch.Tensor:
        return functional.softplus(x)

    operation.register_fake(lambda x: torch.empty_like(x, dtype=fake_dtype))
    operation.register_autograd(
        lambda ctx, g: ctx.saved_tensors[0].sigmoid() * (1 if deaf else g),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    return operation


@pytest.mark.parametrize(
    ("name", "fake_dtype", "deaf", "opcheck", "gradcheck"),
    [
        ("right", torch.float64, False, True, True),
        ("other_dtype", torch.float32, False, False, True),
        ("deaf", torch.float64, True, True, False),
    ],
)
def test_11_opcheck_notices_a_dtype_and_a_gradient_check_a_forgotten_grad_output(
    name, fake_dtype, deaf, opcheck, gradcheck
):
    operation, x = softplus(name, fake_dtype, deaf), numbers(3)
    outcomes = torch.library.opcheck(operation, (x,), raise_exception=False)
    assert all(outcome == "SUCCESS" for outcome in outcomes.values()) is opcheck
    doubled = lambda x: 2 * operation(x)  # noqa: E731
    assert torch.autograd.gradcheck(doubled, (x,), raise_exception=False) is gradcheck


def test_12_a_subclass_is_asked_before_its_parent_and_else_from_left_to_right():
    asked = []

    def answering(name, *parents):
        def answer(cls, func, types, args=(), kwargs=None):
            asked.append(name)
            return NotImplemented

        return type(name, parents, {"__torch_function__": classmethod(answer)})

    first, other = answering("first"), answering("other")
    child = answering("child", first)
    for left, right, order in ((first, other, ["first", "other"]), (first, child, ["child", "first"])):
        asked.clear()
        with pytest.raises(TypeError):
            torch.add(left(), right())
        assert asked == order
