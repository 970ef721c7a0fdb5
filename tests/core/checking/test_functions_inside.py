"""gradcheck of a callable names a Function inside as wrong only where that Function fails by itself."""

from __future__ import annotations

import threading

import pytest
import torch
from fn import Fn, source_line
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import Function

import nbautograd
from nbautograd.core.checking import functions_inside, other_arguments
from nbautograd.core.checking.jacobian import forward_values

# whole checks, one for each kind of what is asked: `.ci/run` runs them with the slow tests
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_fixes")]

F64 = torch.float64


Sine = Fn.of("Sine", "x: save(x); return x.sin()", "grad_output: (x,) = saved; return grad_output * x.cos()")
# Backward forgets the factor.
Scaled = Fn.of("Scaled", "x, weight, factor: save(x, weight); ctx.factor = factor; return factor * (x @ weight)",
    "grad_output: x, weight = saved; "
    "return grad_output @ weight.t(), ctx.factor * (x.t() @ grad_output), None")  # fmt: skip
# The same mistake with setup_context.
Apart = Fn.of("Apart", "x, factor: return factor * x",
    "grad_output: return grad_output / ctx.factor, None",
    setup_context="inputs, output: ctx.factor = inputs[1]")  # fmt: skip


class OfClass(Function):
    """The same mistake with a forward that is a classmethod."""

    @classmethod
    def forward(cls, ctx, x):
        return 3 * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class Child(OfClass):
    """Inherits forward and backward."""


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4, dtype=F64)

    def forward(self, x):
        return Scaled.apply(Sine.apply(self.linear(x)), self.linear.weight, 3.0).tanh()


@pytest.fixture
def x():
    return torch.randn(3, 4, dtype=F64, generator=torch.Generator().manual_seed(5)).requires_grad_()


def check(fn, x, **options):
    torch.manual_seed(0)
    return nbautograd.gradcheck(fn, (x,), **options)


def inside(report):
    return [f.params["function"] for f in report.findings if f.code == "wrong_inside"]


@pytest.mark.usefixtures("fixes")
def test_a_function_that_is_right_is_not_blamed_for_what_stands_around_it(x):
    report = check(lambda x: Sine.apply(x * x.detach()), x)
    assert report.verdict == "wrong"
    assert report.function == "<lambda>"
    assert inside(report) == []
    assert all(finding.fix is None for finding in report.findings)
    assert [f.code for f in report.findings if f.kind == "note"] == ["functions_right_inside"]
    assert "`Sine`" in report.findings[-1].message


@pytest.mark.parametrize("cls", [Apart, OfClass, Child])
def test_every_style_of_forward_is_checked_alone(cls, x):
    arguments = (2.0,) if cls is Apart else ()
    report = check(lambda x: Sine.apply(cls.apply(x, *arguments)), x)
    assert inside(report) == [cls.__name__]


def test_single_precision_is_checked_again_in_double(x):
    report = check(lambda x: Scaled.apply(Sine.apply(x), torch.eye(4), 3.0), x.detach().float().requires_grad_())
    assert report.verdict == "wrong"
    assert inside(report) == ["Scaled"]


def test_nothing_is_said_of_calls_that_were_not_checked(x):
    def fn(x):
        for _ in range(functions_inside.CALLS + 1):
            x = Sine.apply(x)
        return x * x.detach()

    report = check(fn, x)
    assert report.verdict == "wrong"
    assert [f for f in report.findings if f.code in ("wrong_inside", "functions_right_inside")] == []


@pytest.mark.parametrize("bytes_", [0, 95, 96])
def test_large_arguments_are_left_out(bytes_, x, monkeypatch):
    monkeypatch.setattr(functions_inside, "BYTES", bytes_)
    report = check(lambda x: Sine.apply(x) * x.detach(), x)  # 3 * 4 * 8 bytes
    assert [f.code for f in report.findings if f.kind == "note"] == ["functions_right_inside"] * (bytes_ == 96)


def test_classes_are_left_as_they_were(x):
    nbautograd.instrument(Scaled)
    try:
        before = {cls: dict(vars(cls)) for cls in (Sine, Scaled, Child)}
        nbautograd.calls()
        check(lambda x: Child.apply(Scaled.apply(Sine.apply(x), torch.eye(4, dtype=F64), 3.0)), x)
        for cls, names in before.items():
            now = {k: v for k, v in vars(cls).items() if k != "_backward_cls"}
            assert now == {k: v for k, v in names.items() if k != "_backward_cls"}
        assert len(nbautograd.calls(Scaled)) == 0
    finally:
        nbautograd.uninstrument(Scaled)


def test_an_interrupt_in_the_check_of_a_function_inside_keeps_the_verdict(x, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(functions_inside, "_checked", interrupted)
    report = check(Network(), x)
    assert not report.complete
    assert report.blocks[0, 0].verdict == "mismatch"


@pytest.mark.slow
@settings(max_examples=10)
@given(st.lists(st.sampled_from(["sine", "square", "scaled", "apart"]), min_size=1, max_size=4), st.integers(0, 99))
def test_of_any_chain_exactly_the_wrong_ones_are_named(chain, seed):
    generator = torch.Generator().manual_seed(seed)
    x = (0.5 + torch.rand(2, 2, dtype=F64, generator=generator)).requires_grad_()
    weight = torch.randn(2, 2, dtype=F64, generator=generator) + 2 * torch.eye(2, dtype=F64)
    steps = {
        "sine": Sine.apply,
        "square": torch.square,
        "scaled": lambda x: Scaled.apply(x, weight, 3.0),  # thirds and fours never cancel
        "apart": lambda x: Apart.apply(x, 0.5),
    }

    def fn(x):
        for step in (*chain, "sine"):
            x = steps[step](x)
        return x

    report = check(fn, x)
    wrong = {name for name, step in (("Scaled", "scaled"), ("Apart", "apart")) if step in chain}
    assert (report.verdict == "wrong") == bool(wrong)
    assert set(inside(report)) == wrong


class Configured(Fn):
    """All calls share one dict of settings, which a later call changes."""

    DEFAULTS = {"power": 3}

    def forward(ctx, x, overrides):
        ctx.settings = Configured.DEFAULTS
        ctx.settings.update(overrides)
        ctx.save_for_backward(x)
        return x ** ctx.settings["power"]

    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ctx.settings["power"] * x ** (ctx.settings["power"] - 1), None


ConfiguredApart = Configured.of("ConfiguredApart",
    'x, overrides: ctx.settings = {**Configured.DEFAULTS, **overrides}; save(x); '
    'return x ** ctx.settings["power"]')  # fmt: skip


def test_of_calls_that_are_right_alone_one_that_disturbs_another_is_named(x):
    report = check(lambda x: Configured.apply(x, {"power": 3}) + Configured.apply(2 * x, {"power": 2}), x)
    assert report.verdict == "wrong"
    assert [f.code for f in report.findings] == ["shared_state"]


def test_calls_that_do_not_disturb_each_other_are_not_accused_of_it(x):
    cut = check(lambda x: ConfiguredApart.apply(x, {"power": 3}) + ConfiguredApart.apply(x.detach(), {"power": 2}), x)
    assert "shared_state" not in {f.code for f in cut.findings}
    assert check(lambda x: ConfiguredApart.apply(ConfiguredApart.apply(x, {"power": 3}), {}), x).verdict == "right"


# A straight-through output, and a loss with a wrong mean.
Quantised = Fn.of("Quantised", "x, codes: index = torch.cdist(x, codes).argmin(1); save(x, codes[index], index); "
    "ctx.shape = codes.shape; return codes[index], ((x - codes[index]) ** 2).sum(1).mean()",
    "grad_codes, grad_loss: x, near, index = saved; d = grad_loss * 2 * (x - near) / x.numel(); "
    "return grad_codes + d, x.new_zeros(ctx.shape).index_add_(0, index, -d)")  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("fixes")
def test_an_output_that_hands_its_gradient_through_is_not_the_first_to_blame():
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(n, 3, dtype=F64, generator=generator).requires_grad_() for n in (4, 2)]
    for fn, loss in ((Quantised, 1), (lambda x, codes: Quantised.apply(x, codes)[1], 0)):
        found = nbautograd.gradcheck(fn, inputs, order=1).findings[0]
        assert (found.code, found.where) == ("wrong_derivative", (loss, 0))
        assert source_line(Quantised, found.line).startswith("d = grad_loss")
    assert found.fix.source.strip().endswith(("/ index.numel()", "/ x.shape[0]"))


class Meeting:
    """A callable around ``Scaled`` that has another thread use the Function while it is called itself."""

    def __init__(self, apply):
        self.apply, self.before, self.met = apply, dict(vars(Scaled)), []

    def elsewhere(self):
        y = Scaled.apply(torch.ones(2, 2, requires_grad=True), torch.eye(2), 3.0)
        self.met.append((getattr(y.grad_fn, "_forward_cls", None) is Scaled, dict(vars(Scaled)) == self.before))

    def __call__(self, x):
        thread = threading.Thread(target=self.elsewhere)
        thread.start()
        thread.join()
        return (self.apply or Scaled.apply)(x, torch.eye(4, dtype=F64).expand(4, 4) * 2, 3.0).exp()


@pytest.mark.usefixtures("fixes")
@pytest.mark.parametrize("kept", [False, True])
def test_another_thread_meets_the_function_as_it_is_while_it_is_checked(x, kept, monkeypatch):
    replaced = []
    for module in (functions_inside, forward_values, other_arguments):
        real = module.apply_replaced

        def seen(*args, real=real, name=module.__name__, **more):
            replaced.append(name)
            return real(*args, **more)

        monkeypatch.setattr(module, "apply_replaced", seen)
    fn = Meeting(Scaled.apply if kept else None)
    report = check(fn, x)
    assert "Scaled" in str(report)
    assert report.verdict == "wrong"
    assert {name.rpartition(".")[2] for name in replaced} == {"functions_inside", "forward_values", "other_arguments"}
    assert len(fn.met) > 10
    assert set(fn.met) == {(True, True)}
    assert "apply" not in vars(torch.autograd.function._SingleLevelFunction)


# The larger one; at a tie both gradients are 0, which is a slope of each alone and none of both.
Larger = Fn.of("Larger", "a, b: save(a, b); return torch.maximum(a, b)",
    "g: a, b = saved; return g * (a > b), g * (b > a)")  # fmt: skip
# Attention, whose scores lack the sum over a row; the third gradient is right.
Attention = Fn.of("Attention", "q, k, v: p = torch.softmax(q @ k.mT, -1); save(q, k, v, p); return p @ v",
    "g: q, k, v, p = saved; s = p * (g @ v.mT); return s @ k, s.mT @ q, p.mT @ g")  # fmt: skip


@pytest.mark.parametrize(
    ("fn", "told"),
    [(lambda v: Larger.apply(v, v), {"zero_gradient"}), (lambda v: Attention.apply(v, v, v), {"wrong_inside"})],
)
def test_one_tensor_that_is_given_twice_accuses_nothing_that_is_right(fn, told):
    x = torch.tensor([[0.5, -1.0], [0.2, 0.7], [-0.4, 0.1]], dtype=F64, requires_grad=True)
    report = nbautograd.gradcheck(fn, x, order=1)
    assert report.verdict == "wrong"
    assert {finding.code for finding in report.findings} == told
