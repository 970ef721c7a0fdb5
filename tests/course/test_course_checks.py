"""Each check lets right answers pass and finds what it is there for."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from written_answers import PRODUCT, define, modern, product

from nbautograd.course.attempt import close
from nbautograd.course.checks import ROUTINES
from nbautograd.course.draw import Draw
from nbautograd.course.exercise import CHECKS, Exercise, check_names
from nbautograd.course.run import around_the_checks, check


def odd_shapes(draw: Any) -> list[tuple[Any, ...]]:
    return [
        (draw.normal(0, 3), draw.normal(0, 3)),
        (draw.normal(), draw.normal()),
        (draw.normal(4, 3).t(), draw.normal(3, 1).expand(3, 4)),
    ]


MULTIPLY = Exercise(
    "multiply", "Multiply", "value", torch.mul, lambda draw: (draw.normal(3, 4), draw.normal(3, 4)), edges=odd_shapes
)


WANTED = "ctx.needs_input_grad"
UNPACK, RETURNED = "a, b = ctx.saved_tensors", "return g * b, g * a"


def asked(checks: str, **more: Any) -> Exercise:
    return dataclasses.replace(MULTIPLY, checks=checks, **more)


def test_every_check_has_a_routine():
    assert set(ROUTINES) == set(CHECKS)


def test_the_letters_of_old_are_taken():
    assert asked("V G L").ids == asked("value gradient linear").ids
    assert set(check_names("V G L A S M T R N E O D F B K C W P Q")) == set(CHECKS)


def test_a_right_answer_passes_what_it_should():
    assert check(asked("V G L A S M T R N E D C W"), product()).codes == ()
    assert check(asked("V G L A S M T R N E D F B C W"), modern()).codes == ()


@pytest.mark.parametrize(
    ("checks", "answer", "code"),
    [
        ("value", {"value": "a + b"}, "forward_value"),
        ("value", {"value": "(a * b).sum()"}, "forward_shape"),
        ("value", {"value": "(a * b).float()"}, "forward_dtype"),
        ("value", {"value": "(a * b, a)"}, "forward_count"),
        ("value", {"value": "None"}, "forward_none"),
        ("value", {"value": "a.unknown()"}, "forward_raised"),
        ("value gradient", {"returned": "return g * a, g * b"}, "swapped_inputs"),
        ("value gradient", {"returned": "return b, a"}, "ignores_grad_output"),
        ("value gradient", {"returned": "return -g * b, g * a"}, "sign"),
        ("value gradient", {"returned": "return g * b, None"}, "none_gradient"),
        ("value gradient", {"returned": "return (g * b).item(), g * a"}, "exception_other"),
        ("value gradient", {"returned": "return g * ((a + 1e-6) * b - a * b) / 1e-6, g * a"}, "imprecise"),
        ("value gradient", {"returned": "return g * b.float().double(), g * a"}, "imprecise"),
        ("value linear", {"returned": "return b, a"}, "ignores_grad_output"),
        ("value linear", {"returned": "return g.abs() * b, g * a"}, "nonlinear_in_grad_output"),
        ("value arity", {"returned": "return g * b"}, "exception_number_of_gradients"),
        ("value arity", {"returned": "return g * b, g * a, None"}, "wrong_number_of_gradients"),
        ("value shapes", {"returned": "return torch.stack([g * b, g * b]), g * a"}, "grad_shape_reduced"),
        ("value dtypes", {"returned": "return (g * b).float(), g * a"}, "grad_dtype_cast"),
        ("value dtypes", {"value": "(a.double() * b)"}, "dtype_not_kept"),
        ("value unchanged", {"returned": "g.mul_(1)\n        return g * b, g * a"}, "mutates_grad_output"),
        ("value unchanged", {"value": "(a * b, a.zero_())[0]"}, "mutates_input"),
        ("value repeatable", {"returned": "return g * b * torch.rand(()).double(), g"}, "nondeterministic_backward"),
        ("value subsets", {"returned": f"return g * b, g * a if {WANTED}[0] else None"}, "needs_input_grad_wrong"),
        ("value subsets", {"returned": f"assert {WANTED}[1]\n        return g * b, g * a"}, "needs_input_grad_raised"),
        ("value edges", {"value": "a.view(3, 4) * b"}, "edge_raised"),
        ("value gradient edges", {"returned": "return g * b, g * a * (a.dim() == 2)"}, "edge_gradient"),
        ("value double_backward", {"returned": "return g * b.detach(), g * a.detach()"}, "double_backward_wrong"),
        ("value context", {"save": "ctx.a, ctx.b = a, b", "unpack": "a, b = ctx.a, ctx.b"}, "tensor_on_ctx"),
        ("value context", {"save": "ctx.save_for_backward(a, b); ctx.y = a * b", "value": "ctx.y"}, "output_on_ctx"),
        ("value own_function", {"returned": "return torch.autograd.grad(a * b, (a, b), g)"}, "native_autograd"),
    ],
)  # fmt: skip
def test_a_wrong_answer_gets_its_code(checks, answer, code):
    exercise = asked("value edges", edges=odd_shapes) if code == "edge_raised" else asked(checks)
    if code == "edge_raised":
        exercise = dataclasses.replace(exercise, inputs=lambda draw: (draw.normal(3, 4), draw.normal(3, 4)))
    result = check(exercise, product(**answer))
    assert result.shows(code), result.codes
    assert all(outcome.sentences(1) for outcome in result.outcomes if outcome.state == "failed")


def test_a_wrong_value_is_shown_beside_the_right_one():
    """The first sentence has two numbers, also where only large inputs show the mistake: a shape would mislead."""
    large = [(torch.tensor([1.0, -1e9]), torch.tensor([2.0, 3.0]))]
    (found,) = check(asked("value"), product(value="a * b + 1")).outcomes[0].failures
    assert float(found.params["got"]) == pytest.approx(float(found.params["expected"]) + 1, abs=2e-3)
    result = check(asked("value edges", edges=lambda draw: large), product(value="a.clamp(-1e6) * b"))
    (said,) = [sentence for outcome in result.outcomes for sentence in outcome.sentences(1)]
    assert "1 of 2 elements of output 1 differ, such as -3e6 where -3e9 is right" in said
    infinite = [(torch.tensor([-torch.inf, 1.0]), torch.tensor([2.0, 3.0]))]
    result = check(asked("value edges", edges=lambda draw: infinite), product(value="a * b + (a == 1)"))
    assert "1 of 2 elements of output 1 differ, such as 4.0 where 3.0 is right" in result.outcomes[1].sentences(1)[0]


@pytest.mark.parametrize(
    ("checks", "answer", "code"),
    [
        ("forward_mode", {"tangent": "da * b"}, "jvp_wrong"),
        ("forward_mode", {"tangent": "da @ b"}, "jvp_raised"),
        ("vmap", {"rule": ""}, "vmap_missing"),
        (
            "vmap",
            {
                "rule": "@staticmethod\n    def vmap(info, in_dims, a, b):\n"
                "        return Multiply.apply(a.movedim(in_dims[0] or 0, 0), b), 0"
            },
            "vmap",
        ),
    ],
)
def test_transforms(checks, answer, code):
    result = check(asked(checks), modern(**answer))
    assert result.shows(code), result.codes


def test_a_function_without_jvp_and_in_the_old_style():
    assert check(asked("forward_mode vmap"), product()).codes == ("jvp_missing", "vmap_old_style")


def test_once_differentiable_is_told_apart():
    text = """from torch.autograd.function import once_differentiable
class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g
"""
    exercise = Exercise(
        "square", "Square", "value gradient double_backward", lambda x: x * x, lambda draw: (draw.normal(3),)
    )
    assert check(exercise, define(text, "Square")).codes == ("once_differentiable",)


def test_inputs_on_ctx_of_a_function_inside_the_answer():
    attributes = product(save="ctx.a, ctx.b = a, b", unpack="a, b = ctx.a, ctx.b")
    exercise = asked("value context", apply=lambda cls: lambda a, b: cls.apply(a, b))
    assert set(check(exercise, attributes).codes) == {"tensor_on_ctx"}
    assert check(exercise, product()).passed


def test_an_output_that_leads_to_itself_is_a_leak():
    held = "ctx.held = [(y := a * b)]\n        ctx.save_for_backward(a, b)"
    assert check(asked("value context"), product(save=held, value="y")).codes == ("leak",)


LINEAR = """class Linear(Function):
    @staticmethod
    def forward(ctx, x, w, bias=None):
        ctx.save_for_backward(x, w, bias)
        return x @ w{plus}
    @staticmethod
    def backward(ctx, g):
        x, w, bias = ctx.saved_tensors
        return g @ w.t(), x.t() @ g, {third}
"""


@pytest.mark.parametrize(
    ("plus", "third", "codes"),
    [
        (" + (0 if bias is None else bias)", "None if bias is None else g.sum(0)", ()),
        (" + bias", "g.sum(0)", ("omitted_raised", "none_raised")),
    ],
)
def test_optional_arguments(plus, third, codes):
    def formula(x, w, bias=None):
        return x @ w if bias is None else x @ w + bias

    exercise = Exercise(
        "linear", "Linear", "value gradient optional", formula, lambda d: (d.normal(2, 3), d.normal(3, 4), d.normal(4))
    )
    assert check(exercise, define(LINEAR.format(plus=plus, third=third), "Linear")).codes == codes


ROUND = """class Round(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()
    @staticmethod
    def backward(ctx, g):
        return {returned}
"""


@pytest.mark.parametrize(
    ("returned", "code"),
    [("g", ""), ("-g", "sign"), ("g * 0", "zero_gradient"), ("2 * g", "constant_factor"),
     ("torch.ones_like(g)", "ignores_grad_output"), ("g.sign()", "nonlinear_in_grad_output")],
)  # fmt: skip
def test_a_declared_backward(returned, code):
    exercise = Exercise(
        "ste", "Round", "value gradient", torch.round, lambda draw: (draw.normal(5),), vjp=lambda x, g: g
    )
    result = check(exercise, define(ROUND.format(returned=returned), "Round"))
    assert result.passed if not code else result.shows(code), result.codes


ABS = """class Abs(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs()
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.where(x == 0, {there}, x.sign())
"""


@pytest.mark.parametrize(("there", "code"), [("0.0", ""), ("1.0", ""), ("-0.5", ""), ("7.0", "kink_wrong")])
def test_any_value_between_the_one_sided_derivatives_will_do(there, code):
    exercise = Exercise(
        "abs",
        "Abs",
        "value gradient kinks",
        torch.abs,
        lambda draw: (draw.normal(5),),
        kinks=lambda draw: [(draw.normal(2) * 0,)],
    )
    assert check(exercise, define(ABS.format(there=there), "Abs")).codes == ((code,) if code else ())


@pytest.mark.parametrize(("there", "code"), [("1.0", ""), ("0.0", "kink_convention")])
def test_a_stated_convention_is_asked_for(there, code):
    exercise = Exercise(
        "abs", "Abs", "value gradient kinks", torch.abs, lambda draw: (draw.normal(5),),
        kinks=lambda draw: [(draw.normal(2) * 0,)],
        vjp=lambda x, g: g * torch.where(x < 0, -1.0, 1.0),
    )  # fmt: skip
    assert check(exercise, define(ABS.format(there=there), "Abs")).codes == ((code,) if code else ())


NUMERICAL = """class Numerical(Function):
    @staticmethod
    def forward(ctx, f, x):
        ctx.f = f
        ctx.save_for_backward(x)
        return f(x)
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        grad = torch.zeros_like(x)
        for k in range(x.numel()):
            e = torch.zeros_like(x)
            e[k] = 1e-6
            {extra}
            grad[k] = ((ctx.f(x + e) - ctx.f(x - e)) / 2e-6 * g).sum()
        return None, grad
"""


@pytest.mark.parametrize(("extra", "codes"), [("pass", ()), ("ctx.f(x)", ("too_many_calls",))])
def test_calls_of_a_black_box_are_counted(extra, codes):
    exercise = Exercise(
        "numerical", "Numerical", "value gradient cost", lambda f, x: f(x), lambda draw: (torch.sin, draw.normal(4)),
        forward_calls=lambda f, x: 2 * x.numel() + 1, tolerance=1e-5, precision=1e-5,
    )  # fmt: skip
    assert check(exercise, define(NUMERICAL.format(extra=extra), "Numerical")).codes == codes


@pytest.mark.parametrize(("most", "codes"), [(2 * 12 * 8, ()), (12 * 8, ("saved_too_much",))])
def test_saved_bytes_are_counted(most, codes):
    assert check(asked("value cost", saved_bytes=most), product()).codes == codes


def test_what_does_not_go_through_the_function():
    assert check(asked("value own_function"), lambda a, b: a * b).codes == ("not_through_function",)
    assert check(asked("value own_function", apply=lambda cls: cls.forward), define(
        "class Multiply:\n    forward = staticmethod(lambda a, b: a * b)", "Multiply"
    )).codes == ("no_function_class",)  # fmt: skip


@pytest.mark.parametrize(
    ("outside", "name"),
    [("Multiply.apply(a.sin(), b)", "SinBackward0"), ("Multiply.apply(a, b) + 0 * a * b", "MulBackward0"),
     ("torch.nn.functional.linear(Multiply.apply(a, b), b)", "MmBackward0"),
     ("(Multiply.apply(a, b), a.register_hook(lambda g: 2 * g))[0]", "register_hook")],
)  # fmt: skip
def test_a_share_of_the_gradient_from_outside_of_the_function_is_seen(outside, name):
    text = f"{PRODUCT}\ndef multiply(a, b):\n    return {outside}\n"
    answer = define(
        text.format(save="ctx.save_for_backward(a, b)", value="a * b", unpack=UNPACK, returned=RETURNED), "multiply"
    )
    square = asked("own_function", inputs=lambda draw: (draw.normal(3, 3), draw.normal(3, 3)))
    [failure] = check(square, answer).outcomes[0].failures
    assert (failure.code, failure.params["name"]) == ("native_node", name)


@pytest.mark.parametrize("inside", ["a.clone()", "a.view(-1).view(a.shape)", "a.to(a.dtype)"])
def test_what_hands_a_gradient_on_as_it_is_may_stand_outside(inside):
    text = f"{PRODUCT}\ndef multiply(a, b):\n    return Multiply.apply({inside}, b)\n"
    answer = define(
        text.format(save="ctx.save_for_backward(a, b)", value="a * b", unpack=UNPACK, returned=RETURNED), "multiply"
    )
    assert check(asked("value gradient own_function"), answer).passed


@pytest.mark.parametrize(
    ("written", "called"),
    [("torch.nn.functional.softmin(-a, 1)", "softmin"), ("a.softmax(1)", "softmax"),
     ("torch.ops.aten._softmax(a, 1, False)", "_softmax"), ("torch.nn.Softmax(1)(a)", "softmax"),
     ("torch._refs.softmax(a, 1)", "softmax"), ("torch._decomp.decompositions._softmax(a, 1, False)", "_softmax"),
     ("torch.ops.aten._safe_softmax(a, 1)", "_safe_softmax"),
     ("torch.ops.aten.softmax.int.decompose(a, 1)", "softmax"),
     ("torch.sparse.softmax(a.to_sparse(), 1)", "_sparse_softmax")],
)  # fmt: skip
@pytest.mark.parametrize("method", ["forward", "backward"])
def test_an_operation_that_is_refused_is_seen_in_whatever_way_it_is_called(written, called, method):
    refused = asked("own_function", ready_made={method: {"softmax"}})
    line = {"forward": "save", "backward": "unpack"}[method]
    before = {"save": "ctx.save_for_backward(a, b)", "unpack": UNPACK}[line]
    answer = {line: f"{before}; {written}"}
    [failure] = check(refused, product(**answer)).outcomes[0].failures
    assert (failure.code, failure.params["name"]) == ("ready_made", called)
    assert failure.params["line"] == {"forward": 4, "backward": 9}[method]
    other = {"forward": "backward", "backward": "forward"}[method]
    assert check(asked("own_function", ready_made={other: {"softmax"}}), product(**answer)).passed


def test_samples_of_a_batch_have_the_sizes_of_the_first():
    def pair(draw: Draw) -> tuple[Any, ...]:
        shape = draw.sizes(2)
        return draw.normal(*shape), draw.normal(*shape)

    assert check(asked("value gradient vmap", inputs=pair), modern()).passed
    assert check(asked("vmap", inputs=pair), modern(rule="")).codes == ("vmap_missing",)


def test_sizes_differ_from_each_other_and_from_point_to_point():
    for seed in range(30):
        points = [Draw(seed, turn).sizes(3) for turn in range(3)]
        assert all(len(set(sizes)) == 3 for sizes in points)
        assert all(len(set(places)) == 3 for places in zip(*points, strict=True))


SCALED = """class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor):
        {kept} = factor
        return factor * x
    @staticmethod
    def backward(ctx, g):
        return {kept} * g, None
"""


@pytest.mark.parametrize(("kept", "codes"), [("ctx.factor", ()), ("Scale.factor", ("shared_state",))])
def test_a_number_kept_on_the_class_is_shared_state(kept, codes):
    exercise = Exercise(
        "scale",
        "Scale",
        "value gradient repeatable",
        lambda x, factor: factor * x,
        lambda draw: (draw.normal(3), float(draw.normal())),
    )
    assert check(exercise, define(SCALED.format(kept=kept), "Scale")).codes == codes


def test_prints_of_an_answer_are_not_shown(capsys):
    check(asked("value gradient"), product(value="(print('hello'), a * b)[1]"))
    assert capsys.readouterr().out == ""


def test_every_failure_has_a_last_hint():
    """Level 3 says what to do, also where no finding of the checker brings its own advice."""
    result = check(asked("value"), product(value="a + b"))
    assert result.outcomes[0].sentences(3)[1].startswith("Compute one small example by hand")
    exercise = Exercise(
        "ste", "Round", "value gradient", torch.round, lambda draw: (draw.normal(5),), vjp=lambda x, g: g
    )
    told = check(exercise, define(ROUND.format(returned="-g"), "Round")).outcomes[1].sentences(3)
    assert "line 7: `-g`" in told[1]
    assert told[2] == "Check the sign of the declared gradient."


@pytest.mark.parametrize(
    "written",
    ["a.numpy()", "a.tolist()", "[float(x) for x in a.flatten()]", "[x.item() for x in a.flatten()]",
     "__import__('numpy').from_dlpack(a.detach())", "a.untyped_storage().tolist()", "a.view(torch.int64).tolist()"],
)  # fmt: skip
def test_numbers_that_leave_torch_are_seen(written):
    answer = product(unpack=f"{UNPACK}; {written}")
    assert check(asked("own_function"), answer).codes == ("leaves_torch",)
    assert check(asked("own_function", outside_torch=True), answer).passed


@pytest.mark.parametrize("written", ["a.max().item()", "float(a.sum())", "torch.arange(3).tolist()", "print(a)"])
def test_a_number_that_stands_alone_and_whole_ones_may_leave(written):
    assert check(asked("own_function"), product(unpack=f"{UNPACK}; {written}")).passed


@pytest.mark.parametrize("written", ["np.sin(x.numpy() + 1e-20j).imag", "cmath.sin(w1)", "np.zeros(3, complex)"])
def test_where_nobody_sees_it_run_an_answer_takes_no_complex_numbers(written):
    outside = asked("own_function", outside_torch=True)
    result = check(outside, product(), source=f"def f(x):\n    return {written}")
    assert [(f.code, f.params) for o in result.outcomes for f in o.failures] == [("differences", {"line": 2})]
    for others in (asked("own_function"), asked("own_function", outside_torch=True, forward_calls=9)):
        assert check(others, product(), source=written).passed


@pytest.mark.parametrize(
    ("written", "name"),
    [("torch._decomp.decompositions.tanh_backward(g, a)", "tanh_backward"),
     ("torch.ops.aten.tanh_backward(g, a)", "tanh_backward"),
     ("torch.func.jacrev(torch.exp)(a)", "torch.enable_grad"),
     ("torch.func.linearize(torch.exp, a)", "torch.func.jvp"),
     ("with torch.inference_mode(False): a.exp()", "torch.enable_grad"),
     ("((a + 1e-20j) * b).imag / 1e-20", "1j"), ("torch.complex(a, 1e-9 * b).exp()", "1j"),
     ("((a + (-1) ** 0.5) * b).imag", "1j"), ("torch.polar(a, b).imag", "1j"),
     ("torch.ops.aten.convolution_backward(g[None], a[None], b[None], None, [1], [0], [1], False, [0], 1, [True] * 3)",
      "convolution_backward"),
     ("torch.fx.symbolic_trace(torch.nn.Tanh())(a)", "torch.fx.GraphModule")],
)  # fmt: skip
def test_a_derivative_is_seen_in_whatever_way_it_is_asked(written, name):
    [failure] = check(asked("own_function"), product(unpack=f"{UNPACK}\n        {written}")).outcomes[0].failures
    assert (failure.code, failure.params) == ("native_autograd", {"name": name, "line": 10})


@pytest.mark.parametrize(
    "written", ["torch.fft.ifft(torch.fft.fft(a) * torch.fft.fft(b)).real", "torch.linalg.eigvals(a @ b.t()).abs()",
                "torch.nn.grad.conv1d_input(a[None].shape, b[None], a[None] * 0)"],
)  # fmt: skip
def test_what_is_no_derivative_may_be_used(written):
    assert check(asked("own_function"), product(unpack=f"{UNPACK}; {written}")).passed


IN_FORWARD = """class Multiply(Function):
    @staticmethod
    def forward(ctx, a, b):
        with torch.enable_grad():
            leaves = [x.detach().requires_grad_() for x in (a, b)]
            y = leaves[0] * leaves[1]
        ctx.pull = y.grad_fn
        return y.detach()

    @staticmethod
    def backward(ctx, g):
        return ctx.pull(g)
"""


def test_autograd_is_seen_wherever_it_is_asked():
    result = check(asked("value own_function"), define(IN_FORWARD, "Multiply"))
    assert result.codes == ("native_autograd",)
    (failure,) = result.outcomes[1].failures
    assert failure.params["line"] == 4


ELSEWHERE = {  # where a derivative is asked for by an answer whose own text does not show it
    "a thread": ("import concurrent.futures as c\npull = lambda *x: c.ThreadPoolExecutor(1).submit(ask, *x).result()", (
        "around_the_checks", {"line": 6, "name": "threading.Thread"})),
    "a partial": ("import functools\npull = functools.partial(ask)", (
        "native_autograd", {"line": 4, "name": "torch.enable_grad"})),
    "a callable object": ("class Pull:\n    __call__ = staticmethod(ask)\npull = Pull()", (
        "native_autograd", {"line": 4, "name": "torch.enable_grad"})),
}  # fmt: skip


@pytest.mark.parametrize(("written", "found"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_derivative_is_seen_wherever_it_is_asked(written, found):
    answer = define(
        f"""def ask(ctx, g):
    a, b = (x.detach() for x in ctx.saved_tensors)
    if True:
        return torch.func.vjp(torch.mul, a, b)[1](g)
{written}
class Multiply(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b
    backward = staticmethod(pull)
""",
        "Multiply",
    )
    [failure] = [f for outcome in check(asked("own_function"), answer).outcomes for f in outcome.failures]
    assert (failure.code, failure.params) == found


CUBE = """class Slope(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 3 * x * x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        f = lambda x: 3 * x * x
        {second}
class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3
    @staticmethod
    def backward(ctx, g):
        return g * Slope.apply(*ctx.saved_tensors)
    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return {tangent}
"""


@pytest.mark.parametrize(
    ("second", "tangent", "codes"),
    [("return g * 6 * x", "t * 3 * x * x", ()),
     ("return g * (f(x + 1e-5) - f(x - 1e-5)) / 2e-5", "t * 3 * x * x", ("imprecise",)),
     ("return torch.func.vjp(f, x)[1](g)[0]", "t * 3 * x * x", ("native_autograd",)),
     ("return g * 6 * x", "t * ((x + 1e-5)**3 - (x - 1e-5)**3) / 2e-5", ("imprecise",))],
)  # fmt: skip
def test_second_derivatives_and_tangents_are_written_by_hand_too(second, tangent, codes):
    answer = define(CUBE.format(second=second, tangent=tangent), "Cube")
    cube = Exercise("cube", "Cube", "own_function gradient double_backward forward_mode", lambda x: x**3,
                    lambda draw: (draw.normal(4),))  # fmt: skip
    assert check(cube, answer).codes == codes


# what a difference is written in, in the place of a right backward: each evaluates a * b at other points
MOVED = {
    "by its own forward": "f = lambda k, e: Multiply.forward(ctx, *at(k, e)); grads = ["
    "sum(((f(k, e) - f(k, -e)) / 2 * g).sum() * e for e in basis) for k in (0, 1)]",
    "far from it": "grads = [sum(((u := at(k, 8 * e))[0] * u[1] - a * b).div(8).mul(g).sum() * e for e in basis)"
    " for k in (0, 1)]",
    "on a basis": "grads = [sum((e * other * g).sum() * e for e in basis) for other in (b, a)]",
    "in place": """grads = [torch.zeros_like(a), torch.zeros_like(b)]
        for k, e in itertools.product((0, 1), basis):
            z = [a.clone(), b.clone()]
            z[k] += e
            up = torch.einsum("ij,ij->ij", *z)
            z[k] -= 2 * e
            grads[k] += ((up - torch.einsum("ij,ij->ij", *z)) / 2 * g).sum() * e""",
    "in one batch": "grads = [torch.func.vmap(lambda e: ((u := at(k, e))[0] * u[1] - a * b).mul(g).sum())"
    "(torch.stack(basis)).view(a.shape) for k in (0, 1)]",
    "in one batch, in place": """I = torch.stack(basis)
        grads = []
        for other in (b, a):
            e = I.clone()
            e[:] *= other
            grads.append((e * g).sum((1, 2)).view(a.shape))""",
    "with a step made of grad_output": """h, y = 0.25 * (1 + 1 / (1 + g.abs().sum())), a * b
        grads = [sum(((u := at(k, h * e))[0] * u[1] - y).div(h).mul(g).sum() * e for e in basis) for k in (0, 1)]""",
    "behind others": """y, others = a * b, [torch.full_like(a, 1000.0 + k) for k in range(101)]
        grads = [sum(((u := at(k, 8 * e))[0] * u[1] - y).div(8).mul(g).sum() * e for e in basis) for k in (0, 1)]""",
    "all elements together": "grads = [((x + 1) * y - (x - 1) * y) / 2 * g for x, y in ((a, b), (b, a))]",
}
AT = """a, b = ctx.saved_tensors
        import itertools
        basis = list(torch.eye(a.numel(), dtype=a.dtype).view(-1, *a.shape))
        at = lambda k, e: (a + e, b) if k == 0 else (a, b + e)
        """


@pytest.mark.parametrize("written", MOVED.values(), ids=MOVED)
def test_a_difference_is_seen_in_whatever_way_it_is_written(written):
    answer = product(unpack=AT + written, returned="return tuple(grads)")
    result = check(asked("value own_function"), answer)
    assert result.codes == ("differences",), result.codes
    assert all("line" in failure.params for outcome in result.outcomes for failure in outcome.failures)


RIGHT_BY_OTHER_MEANS = {
    "a mask, column by column": "ones = torch.ones_like(a); keep = [ones * (k >= 0) for k in range(5)][-1]",
    "ones times an input": "ones = torch.ones_like(a); da = ones * b; db = ones * a",
    "halves": "half = torch.full_like(a, 0.5); da = half * b; da = da + half * b",
    "forward once more": "again = a * b",
    "a loop over elements": "da = torch.zeros_like(a)\n"
    "        for k in range(a.numel()): da.view(-1)[k] = b.flatten()[k] * g.flatten()[k]",
    "a Jacobian": "da = torch.diag(b.flatten()) @ g.flatten()",
}


@pytest.mark.parametrize("written", RIGHT_BY_OTHER_MEANS.values(), ids=RIGHT_BY_OTHER_MEANS)
def test_what_is_no_difference_passes(written):
    assert check(asked("value gradient own_function"), product(unpack=f"{UNPACK}\n        {written}")).passed


@pytest.mark.parametrize(
    ("returned", "codes"),
    [("return g * ((a + 1) * b - a * b), g * a", ("imprecise_large",)), ("return g * b, g * a", ()),
     ("return g * (b + 0 * a), g * a", ())],
)  # fmt: skip
def test_a_gradient_that_does_not_depend_on_an_input_keeps_its_digits_where_that_is_large(returned, codes):
    result = check(asked("value gradient"), product(returned=returned))
    assert result.codes == codes
    if codes:
        (failure,) = result.outcomes[1].failures
        assert failure.params == {"input": "a", "digits": 0}


def test_an_operation_is_not_asked_outside_of_what_it_is_defined_for():
    def bounded(a, b):
        if a.detach().abs().max() > 1e6:
            raise IndexError("index out of range")
        return a * b

    assert check(asked("value gradient", formula=bounded), product()).codes == ()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import sys\ndef f():\n    return sys._getframe(1).f_locals", (3, "sys._getframe")),
        ("from nbautograd.course.exercises.n03 import STEPS\n", (1, "nbautograd.course.exercises.n03.STEPS")),
        ("import nbautograd\nfind = nbautograd.course.catalogue.find\n", (2, "nbautograd.course")),
        ("import importlib\nn = importlib.import_module('nbautograd.course.run')", (2, "nbautograd.course.run")),
        ("import torch as t\nt.Tensor.__bool__ = lambda x: True", (2, "t.Tensor.__bool__")),
        ("import math\nsetattr(math, 'isclose', print)", (2, "math")),
        (
            "def f(x):\n    with torch._C._DisableTorchDispatch():\n        return x",
            (2, "torch._C._DisableTorchDispatch"),
        ),
        ("from subprocess import run", (1, "subprocess.run")),
        (
            "def f(function, x):\n    return len(function.backward.__closure__) > 1",
            (2, "function.backward.__closure__"),
        ),
        ("def f(critic, x):\n    bent, w = getattr(critic, '__defaults__')", (2, "__defaults__")),
        ("from nbautograd.course.mutants import kills\nnbautograd.gradcheck(f, x)", None),
        ("with torch._C.DisableTorchFunctionSubclass(): pass", None),
        ('def f(x):\n    """Needs no subprocess."""\n    return x', None),
        ('def f(x):\n    """subprocess"""\n    return __import__(f.__doc__)', (2, "subprocess")),
        ("ctx.saved = x\nself.weight = w\nLinear.HANDLED[torch.mean] = f\nx.grad = None", None),
        ("def f(:", None),
    ],
)
def test_a_line_that_leads_around_the_checks_is_seen(source, found):
    assert around_the_checks(source) == found
    if found is not None and "f(:" not in source:
        result = check(asked("value"), product(), source=source)
        assert result.codes == ("around_the_checks",)
        assert f"line {found[0]}" in result.outcomes[0].sentences(1)[0]


def test_an_answer_s_own_type_compares_nothing():
    class Agreeing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.__name__ == "isclose":
                return torch.ones(1, dtype=torch.bool)
            return super().__torch_function__(func, types, args, kwargs or {})

    with torch._C.DisableTorchFunctionSubclass():
        odd = torch.zeros(3).as_subclass(Agreeing)
    assert bool(torch.isclose(odd, torch.ones(3)).all())
    assert not close(odd, torch.ones(3), 1e-6)
