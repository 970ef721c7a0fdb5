"""Each check lets right answers pass and finds what it is there for."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from written_answers import PRODUCT, define, function, modern, product

from nbautograd import messages
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.course.attempt import Attempt
from nbautograd.course.checks import ROUTINES
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import CHECKS, Exercise
from nbautograd.course.run import check


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


def test_a_right_answer_passes_what_it_should():
    plain = asked("value gradient edges own_function double_backward context cost", saved_bytes=2 * 12 * 8)
    assert check(plain, product()).codes == ()
    assert check(asked("value gradient edges own_function double_backward forward_mode vmap context"), modern()).passed


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
        ("value gradient", {"returned": "return g.abs() * b, g * a"}, "nonlinear_in_grad_output"),
        ("value gradient", {"returned": "return g * b"}, "exception_number_of_gradients"),
        ("value gradient", {"returned": "return torch.stack([g * b, g * b]), g * a"}, "grad_shape_reduced"),
        ("value gradient", {"returned": "return (g * b).float(), g * a"}, "grad_dtype_cast"),
        ("value gradient", {"returned": "g.mul_(1)\n        return g * b, g * a"}, "mutates_grad_output"),
        ("value gradient", {"value": "(a * b, a.zero_())[0]"}, "mutates_input"),
        ("value gradient", {"returned": "return g * b * torch.rand(()).double(), g"}, "nondeterministic_backward"),
        ("value gradient", {"returned": f"return g * b, g * a if {WANTED}[0] else None"}, "needs_input_grad_wrong"),
        ("value gradient", {"returned": f"assert {WANTED}[1]\n        return g * b, g * a"}, "needs_input_grad_wrong"),
        ("value gradient", {"save": "ctx.save_for_backward(y := a * b)", "value": "y",
                            "unpack": "(y,) = ctx.saved_tensors",
                            "returned": "return y.mul_(g), g"}, "mutates_saved"),
        ("value gradient", {"unpack": f"{UNPACK}; k = globals(); k['n'] = k.get('n', 0) + 1; assert k['n'] > 1"},
            "backward_raised"),
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
    assert all(outcome.sentences("what") for outcome in result.outcomes if outcome.state == "failed")


def test_a_wrong_value_is_shown_beside_the_right_one():
    """The first sentence has two numbers, also where only large inputs show the mistake: a shape would mislead."""
    large = [(torch.tensor([1.0, -1e9]), torch.tensor([2.0, 3.0]))]
    (found,) = check(asked("value"), product(value="a * b + 1")).outcomes[0].failures
    assert float(found.params["got"]) == pytest.approx(float(found.params["expected"]) + 1, abs=2e-3)
    result = check(asked("value edges", edges=lambda draw: large), product(value="a.clamp(-1e6) * b"))
    (found,) = [failure for outcome in result.outcomes for failure in outcome.failures]
    assert [found.params[name] for name in ("got", "expected")] == ["-3e6", "-3e9"]
    infinite = [(torch.tensor([-torch.inf, 1.0]), torch.tensor([2.0, 3.0]))]
    result = check(asked("value edges", edges=lambda draw: infinite), product(value="a * b + (a == 1)"))
    (found,) = result.outcomes[1].failures
    assert [found.params[name] for name in ("got", "expected")] == ["4.0", "3.0"]


RULE = """@staticmethod
    def vmap(info, in_dims, a, b):
        moved = [t.expand(info.batch_size, *t.shape) if d is None else t.movedim(d, 0) for t, d in zip((a, b), in_dims)]
        return {}, 0
"""


@pytest.mark.parametrize(
    ("checks", "answer", "code"),
    [
        ("forward_mode", {"tangent": "da * b"}, "jvp_wrong"),
        ("forward_mode", {"tangent": "da @ b"}, "jvp_raised"),
        ("vmap", {"rule": ""}, "vmap_missing"),
        ("vmap", {"rule": RULE.format("Multiply.apply(a, b)")}, "vmap_wrong"),
        ("vmap", {"rule": RULE.format("Multiply.apply(moved[0], moved[1].detach())")}, "vmap_gradient"),
        ("vmap", {"rule": RULE.format("moved[0] * moved[1]")}, "vmap_without_function"),
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


def test_a_wrong_second_derivative_is_told_where_the_checker_saw_none(monkeypatch):
    monkeypatch.setattr(Attempt, "gradcheck", lambda *_: GradcheckReport("Multiply", "right"))
    answer = product(returned="return g * b.detach(), g * a.detach()")
    assert check(asked("double_backward"), answer).codes == ("double_backward_wrong",)


def test_an_output_that_leads_to_itself_is_a_leak():
    held = "ctx.held = [(y := a * b)]\n        ctx.save_for_backward(a, b)"
    assert check(asked("value context"), product(save=held, value="y")).codes == ("leak",)


@pytest.mark.parametrize(
    ("plus", "third", "codes"),
    [
        (" + (0 if bias is None else bias)", "None if bias is None else g.sum(0)", ()),
        (" + bias", "g.sum(0)", ("omitted_raised", "none_raised")),
        (
            " + (ctx.save_for_backward(2 * x, w, bias) or 0 if bias is None else bias)",
            "None if bias is None else g.sum(0)",
            ("omitted_gradient", "none_gradient"),
        ),
        (" + (1 if bias is None else bias)", "None if bias is None else g.sum(0)", ("omitted_value", "none_value")),
    ],
)
def test_optional_arguments(plus, third, codes):
    def formula(x, w, bias=None):
        return x @ w if bias is None else x @ w + bias

    exercise = Exercise(
        "linear", "Linear", "value gradient edges", formula, lambda d: (d.normal(2, 3), d.normal(3, 4), d.normal(4))
    )
    assert (
        check(
            exercise,
            function(
                "Linear",
                f"x, w, bias=None: save(x, w, bias); return x @ w{plus}",
                f"g: x, w, bias = saved; return g @ w.t(), x.t() @ g, {third}",
            ),
        ).codes
        == codes
    )


def rounding(returned: str) -> Any:
    return function("Round", "x: return x.round()", f"g: return {returned}")


@pytest.mark.parametrize(
    ("returned", "code"),
    [("g", ""), ("-g", "sign"), ("g * 0", "zero_gradient"), ("2 * g", "constant_factor"),
     ("torch.ones_like(g)", "ignores_grad_output"), ("g.sign()", "nonlinear_in_grad_output")],
)  # fmt: skip
def test_a_declared_backward(returned, code):
    exercise = Exercise(
        "ste", "Round", "value gradient", torch.round, lambda draw: (draw.normal(5),), vjp=lambda x, g: g
    )
    result = check(exercise, rounding(returned))
    assert result.passed if not code else result.shows(code), result.codes


def test_a_declared_gradient_is_spoken_of_only_where_one_is_declared():
    """A finding that an edit mends has the code of a failure to give what is declared, and is none."""
    ste = Exercise("ste", "Round", "gradient", torch.round, lambda draw: (draw.normal(5),), vjp=lambda x, g: g)
    declared = check(ste, rounding("-g"))
    derived = check(asked("gradient"), product(returned="return -g * b, g * a"))
    assert declared.codes == derived.codes == ("sign",)
    spoken = [
        messages.text("course.asked.wrong_unclassified.advice") in r.outcomes[0].sentences("fix")
        for r in (declared, derived)
    ]
    assert spoken == [True, False]


def test_a_declared_gradient_is_the_same_whichever_inputs_want_one():
    both = Exercise("ste", "Multiply", "value gradient", lambda a, b: a.round() + b.round(),
        lambda draw: (draw.normal(3), draw.normal(3)), vjp=lambda a, b, g: (g, g))  # fmt: skip
    answer = product(value="a.round() + b.round()", returned=f"return g, g if {WANTED}[0] else None")
    assert check(both, answer).codes == ("needs_input_grad_wrong",)


@pytest.mark.parametrize(
    ("there", "stated", "codes"),
    [("0.0", False, ()), ("1.0", False, ()), ("-0.5", False, ()), ("7.0", False, ("kink_wrong",)),
     ("1.0", True, ()), ("0.0", True, ("kink_convention",))],
)  # fmt: skip
def test_at_a_kink_any_value_between_the_one_sided_derivatives_will_do_but_a_stated_one_is_asked_for(
    there, stated, codes
):
    exercise = Exercise(
        "abs", "Abs", "value gradient kinks", torch.abs, lambda draw: (draw.normal(5),),
        kinks=lambda draw: [(draw.normal(2) * 0,)],
        vjp=(lambda x, g: g * torch.where(x < 0, -1.0, 1.0)) if stated else None,
    )  # fmt: skip
    backward = f"g: (x,) = saved; return g * torch.where(x == 0, {there}, x.sign())"
    assert check(exercise, function("Abs", "x: save(x); return x.abs()", backward)).codes == codes


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
        forward_calls=lambda f, x: 2 * x.numel() + 1, tolerance=1e-5,
    )  # fmt: skip
    assert check(exercise, define(NUMERICAL.format(extra=extra), "Numerical")).codes == codes


@pytest.mark.parametrize(("most", "codes"), [(2 * 12 * 8, ()), (12 * 8, ("saved_too_much",))])
def test_saved_bytes_are_counted(most, codes):
    assert check(asked("value cost", saved_bytes=most), product()).codes == codes


def test_what_does_not_go_through_the_function():
    assert check(asked("value own_function"), lambda a, b: a * b).codes == ("not_through_function",)
    assert check(asked("value", apply=lambda cls: cls.forward), 3).codes == ("cannot_call",)
    assert check(asked("value own_function", apply=lambda cls: cls.forward), define(
        "class Multiply:\n    forward = staticmethod(lambda a, b: a * b)", "Multiply"
    )).codes == ("no_function_class",)  # fmt: skip


@pytest.mark.parametrize(
    ("written", "name"),
    [("torch.autograd.grad(a * b, (a, b), g)", "grad"), ("torch.func.vjp(torch.mul, a, b)", "vjp"),
     ("jacrev(torch.mul)(a, b)", "jacrev"), ("(a * b).backward(g)", "backward")],
)  # fmt: skip
def test_a_derivative_that_torch_is_asked_for_is_named_with_its_line(written, name):
    answer = product(unpack=f"{UNPACK}\n        pull = lambda: {written}")
    [failure] = check(asked("own_function"), answer).outcomes[0].failures
    assert (failure.code, failure.params) == ("native_autograd", {"name": name, "line": 10})


def test_what_another_function_of_ones_own_gives_is_asked_of_nobody():
    text = f"{PRODUCT}\nclass Same(Multiply):\n    @staticmethod\n    def backward(ctx, g):\n"
    text = text.format(save="ctx.save_for_backward(a, b)", value="a * b", unpack=UNPACK, returned=RETURNED)
    for inherited in ("super(Same, Same).backward(ctx, g)", "Multiply.backward(ctx, g)"):
        answer = define(f"{text}        return {inherited}\n", "Same")
        assert check(asked("value gradient own_function"), answer).passed


def test_a_helper_of_ones_own_may_be_called_as_torch_calls_its_derivative():
    text = f"def grad(g, x):\n    return g * x\n\n{PRODUCT}".format(
        save="ctx.save_for_backward(a, b)", value="a * b", unpack=UNPACK, returned="return grad(g, b), grad(g, a)"
    )
    assert check(asked("value gradient own_function"), define(text, "Multiply")).passed


@pytest.mark.parametrize(("method", "line"), [("forward", 4), ("backward", 9)])
def test_an_operation_that_is_to_be_written_is_named_with_its_line(method, line):
    refused = asked("own_function", ready_made={method: {"softmax"}})
    where = {"forward": {"save": "ctx.save_for_backward(a, b); a.softmax(1)"}, "backward": {
        "unpack": f"{UNPACK}; torch.nn.functional.softmax(a, 1)"}}  # fmt: skip
    [failure] = check(refused, product(**where[method])).outcomes[0].failures
    assert (failure.code, failure.params) == ("ready_made", {"name": "softmax", "line": line})
    other = {"forward": "backward", "backward": "forward"}[method]
    assert check(refused, product(**where[other])).passed


# right answers that a watch over the kernel once refused
DEBUGGED = {
    "a print of the numbers": "print(g.numpy(), a.tolist())",
    "parts of complex numbers by name": "real, imag = a, b; a, b = real, imag",
    "words in a string": "assert g is not None, 'NaN in f_back, not complex'",
    "a progress bar with a thread": "import threading; threading.Thread(target=print, daemon=True).start()",
}


@pytest.mark.parametrize("written", DEBUGGED.values(), ids=DEBUGGED)
def test_a_right_answer_passes_with_what_people_write_to_see_what_happens(written):
    text = PRODUCT.format(
        save="ctx.save_for_backward(a, b)", value="a * b", unpack=f"{UNPACK}; {written}", returned=RETURNED
    )
    everything = asked("value gradient edges context own_function")
    assert check(everything, define(text, "Multiply"), source=text).passed


def test_samples_of_a_batch_have_the_sizes_of_the_first():
    def pair(draw: InputGenerator) -> tuple[Any, ...]:
        shape = draw.sizes(2)
        return draw.normal(*shape), draw.normal(*shape)

    assert check(asked("value gradient vmap", inputs=pair), modern()).passed
    assert check(asked("vmap", inputs=pair), modern(rule="")).codes == ("vmap_missing",)


def test_sizes_differ_from_each_other_and_from_point_to_point():
    for seed in range(30):
        points = [InputGenerator(seed, turn).sizes(3) for turn in range(3)]
        assert all(len(set(sizes)) == 3 for sizes in points)
        assert all(len(set(places)) == 3 for places in zip(*points, strict=True))


@pytest.mark.parametrize(("kept", "codes"), [("ctx.factor", ()), ("Scale.factor", ("shared_state",))])
def test_a_number_kept_on_the_class_is_shared_state(kept, codes):
    exercise = Exercise("scale", "Scale", "value gradient", lambda x, factor: factor * x,
        lambda draw: (draw.normal(3), float(draw.normal())))  # fmt: skip
    answer = function("Scale", f"x, factor: {kept} = factor; return factor * x", f"g: return {kept} * g, None")
    assert check(exercise, answer).codes == codes


def test_prints_of_an_answer_are_not_shown(capsys):
    check(asked("value gradient"), product(value="(print('hello'), a * b)[1]"))
    assert capsys.readouterr().out == ""
