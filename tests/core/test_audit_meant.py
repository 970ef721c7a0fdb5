"""What is meant to be no derivative: straight-through, surrogate, reversed and scaled gradients, at every size.

Forward decides, not backward: it is flat but for jumps, or hands a tensor on as it is. Everything else with the same
backward stays wrong.
"""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from torch import distributed

import nbautograd
from nbautograd.core.checking.meant import meant_pairs
from nbautograd.core.checking.problem import Problem

SIZES = {"4x10": (4, 10), "32x128": (32, 128), "256x1024": (256, 1024)}
LONG = {"budget": 3600.0, "per_function": 3600.0}


def made(forward, backward):
    class Made(Fn):
        def forward(ctx, *args):
            ctx.args = args
            return forward(*args)

        def backward(ctx, *grads):
            return backward(*grads, *ctx.args)

    return Made


def values(kind, shape):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(shape, generator=generator)
    if kind == "on a jump":  # as QAT scales weights: the largest of each row is exactly between two numbers
        x = x / x.abs().amax(-1, keepdim=True) * 7.5
    return {"ones": torch.ones(shape), "outside": 5 + x.abs()}.get(kind, x).requires_grad_()


def spike(x):
    return (x > 1).to(x.dtype)


def absmax(x):
    scale = x.abs().amax(-1, keepdim=True) / 7.5
    return (x / scale).round().clamp(-8, 7) * scale


def binary(x):
    return (x - x.mean()).sign() * x.abs().mean()


def same(x):
    return x.view_as(x)


def unchanged(g, x):
    return g


MEANT = {
    "round": (made(torch.round, unchanged), "checking.instead_unchanged"),
    "round, many stairs": (made(lambda x: (100 * x).round() / 100, unchanged), "checking.instead_unchanged"),
    "round, scaled": (made(torch.round, lambda g, x: 0.25 * g), "checking.instead_multiple"),
    "round, clipped": (made(torch.round, lambda g, x: g.clamp(-0.1, 0.1)), "checking.instead_clipped"),
    "sign with a window": (made(torch.sign, lambda g, x: g * (x.abs() <= 1)), "checking.instead_window"),
    "spike with a window": (made(spike, lambda g, x: g * ((x - 1).abs() < 0.5)), "checking.instead_window"),
    "spike below, and far below": (
        made(lambda x: 1.0 * (x < -1), lambda g, x: g * (x < -2)),
        "checking.instead_window",
    ),
    "spike, smooth": (made(spike, lambda g, x: g / (1 + 10 * (x - 1).abs()) ** 2), "checking.instead_entrywise"),
    "spike, steep": (made(spike, lambda g, x: g * (-40 * (x - 1).abs()).exp()), "checking.instead_entrywise"),
    "spike, drawn": (made(spike, lambda g, x: g * torch.rand_like(x)), "checking.instead_entrywise"),
    "spike, root": (made(spike, lambda g, x: g * (x - 1).sqrt()), "checking.instead_nan"),
    "ranks": (made(lambda x: x.argsort(-1).argsort(-1).to(x.dtype), unchanged), "checking.instead_unchanged"),
    "absmax": (made(absmax, unchanged), "checking.instead_unchanged"),
    "binary, scaled by all": (made(binary, unchanged), "checking.instead_unchanged"),
    "reversal": (made(same, lambda g, x: -0.5 * g), "checking.instead_multiple"),
    "scale": (made(same, lambda g, x: 0.1 * g), "checking.instead_multiple"),
    "stopped": (made(torch.clone, lambda g, x: None), "checking.instead_zero"),
    "clipped": (made(torch.clone, lambda g, x: g.clamp(-0.1, 0.1)), "checking.instead_clipped"),
    "clipped by norm": (made(torch.clone, lambda g, x: g / max(1.0, float(g.norm()))), "checking.instead_clipped"),
}
WRONG = {
    "relu": made(torch.relu, lambda g, x: g),
    "relu, twofold": made(torch.relu, lambda g, x: 2 * g * (x > 0)),
    "clamp": made(lambda x: x.clamp(-1, 1), lambda g, x: 2 * g * (x.abs() < 1)),
    "clamp to little": made(lambda x: x.clamp(-0.1, 0.1), lambda g, x: g),
    "maximum": made(lambda x: x.amax(-1), lambda g, x: 2 * g[..., None] * (x == x.amax(-1, keepdim=True))),
    "median": made(lambda x: x.median(-1)[0], lambda g, x: 2 * g[..., None] * (x == x.median(-1, True)[0])),
    "sorted": made(lambda x: x.sort(-1)[0], lambda g, x: g),
    "dropout": made(torch.nn.functional.dropout, lambda g, x: g),
    "zeros": made(torch.zeros_like, lambda g, x: g),
    "threshold": made(lambda x: x * (x.abs() > 0.5), lambda g, x: 2 * g * (x.abs() > 0.5)),
    "a slope and a jump": made(lambda x: 2 * x + (x > 0), lambda g, x: g),
    "remainder": made(lambda x: 0.02 * x % 1, lambda g, x: 0.04 * g),
    "steep": made(lambda x: (1000 * x).tanh(), lambda g, x: g),
    "twice the input": made(lambda x: 2 * x, lambda g, x: g),
}
LEARNED = {
    "step size": made(
        lambda x, s: (x / s).round().clamp(-4, 3) * s,
        lambda g, x, s: (
            g * ((x / s >= -4) & (x / s <= 3)),
            (g * ((x / s).round() - x / s).where((x / s >= -4) & (x / s <= 3), (x / s).clamp(-4, 3))).sum().view(1),
        ),
    ),
    "step size, scaled": made(
        lambda x, s: (x / s).round().clamp(-4, 3) * s,
        lambda g, x, s: (g, 0.1 * (g * ((x / s).round() - x / s)).sum().view(1)),
    ),
    "threshold": made(lambda x, t: (x > t).to(x.dtype), lambda g, x, t: (g, -g.sum().view(1))),
    "clip level": made(
        lambda x, a: (x.clamp(min=0).minimum(a) * 7 / a).round() * a / 7,
        lambda g, x, a: (g * ((x > 0) & (x < a)), (g * (x >= a)).sum().view(1)),
    ),
}


# what is told where all inputs lie outside
OUTSIDE = {
    "spike with a window": "checking.instead_zero_here",
    "spike below, and far below": "checking.instead_zero_here",
    "sign with a window": "checking.instead_zero_here",
    "spike, root": "checking.instead_entrywise",
}


def audited(cls, *args):
    with nbautograd.audit(**LONG) as audit:
        cls.apply(*args)
    return audit.report()


def large(table, names):
    """Every row at the middle size, and some at all of them."""
    rows = [(name, "32x128") for name in table]
    return rows + [(name, size) for name in names for size in ("4x10", "256x1024")]


@pytest.mark.parametrize("kind", ["usual", "outside", "on a jump"])
@pytest.mark.parametrize(("name", "size"), large(MEANT, ("round", "spike with a window", "reversal", "clipped")))
def test_a_gradient_that_is_meant_to_be_no_derivative_is_never_wrong(name, size, kind):
    cls, instead = MEANT[name]
    report = audited(cls, values(kind, SIZES[size]))
    assert report.verdict == "meant"
    assert not report.wrong
    (situation,) = report.functions[0].situations
    assert situation.cause is None
    assert situation.report.verdict == "cannot tell"
    assert [f for f in situation.findings if f.fix is not None] == []
    assert situation.reason.params["instead"].message_id == ((kind == "outside" and OUTSIDE.get(name)) or instead)


@pytest.mark.parametrize("seed", range(3))
def test_stairs_of_probabilities_are_meant_or_cannot_be_told(seed):
    """``bernoulli`` takes nothing beyond 0 and 1, where stairs are looked for: its own entries in another order do."""
    torch.manual_seed(seed)
    report = audited(made(torch.bernoulli, unchanged), torch.rand(4, 8).requires_grad_())
    assert report.verdict in ("meant", "cannot tell")


@pytest.mark.parametrize(("name", "size"), large(WRONG, ("relu", "maximum", "zeros")))
def test_a_wrong_gradient_of_a_forward_that_has_one_stays_wrong(name, size):
    assert audited(WRONG[name], values("usual", SIZES[size])).verdict == "wrong"


@pytest.mark.parametrize("size", SIZES)
def test_zeros_where_forward_is_flat_are_right(size):
    assert audited(made(spike, lambda g, x: torch.zeros_like(g)), values("usual", SIZES[size])).verdict == "right"


def test_a_right_gradient_beside_jumps_is_right():
    """Slopes up and down between the jumps come to nothing on a way, and are what backward says all the same."""
    cls = made(lambda x: 10 * x.floor() + (20 * x).sin() / 20, lambda g, x: g * (20 * x).cos())
    assert audited(cls, values("usual", (4, 10))).verdict == "right"


@pytest.mark.parametrize("name", ["weight", "bias"])
def test_an_input_beside_the_stairs_keeps_its_verdict(name):
    """Rounding is straight-through; what is multiplied or added to it has a derivative, and that one is wrong."""
    forward, backward = {
        "weight": (lambda x, w: x.round() * w, lambda g, x, w: (g * w, 2 * g * x.round())),
        "bias": (lambda x, w: x.round() + w, lambda g, x, w: (g, 2 * g)),
    }[name]
    x, w = values("usual", (4, 10)), values("usual", (4, 10)).detach().exp().requires_grad_()
    report = audited(made(forward, backward), x, w)
    assert report.verdict == "wrong"
    assert {f.where[1] for f in report.functions[0].situations[0].findings if f.kind == "bug"} == {1}


def test_a_broken_contract_of_a_surrogate_stays_wrong():
    def overwriting(g, x):
        return g.mul_(2)

    report = audited(made(torch.round, overwriting), values("usual", (4, 10)))
    assert report.verdict == "wrong"
    assert "mutates_grad_output" in [f.code for f in report.functions[0].situations[0].findings]


def test_a_tensor_that_is_handed_on_with_the_gradient_of_another_is_meant():
    cls = made(lambda x, y: y.clone(), lambda g, x, y: (g, None))
    assert audited(cls, values("usual", (4, 10)), values("ones", (4, 10))).verdict == "meant"


def normed(x):
    return x / x.norm(), x.clone()


@pytest.mark.parametrize(
    ("forward", "backward", "more"),
    [
        (lambda x: x.clamp(-10, 10), lambda g, x: g * (x.abs() > 10), ()),  # hands on what lies within alone
        (torch.dropout, lambda g, x, p, training: (g * (1 - p), None, None), (0.5, False)),
        (lambda x, order: x[order], lambda g, x, order: (g.flip(0), None), (torch.arange(4),)),
        (lambda x: x * (torch.rand(1) >= 0.1), lambda g, x: 1.5 * g, ()),  # a path that most draws keep
        (lambda x: x - 0 * x, lambda g, x: 0.97 * g, ()),  # as theseus' minimum of a distance is the other point
        (normed, lambda g, kept, x: g / x.norm() - x * (g * x).sum() / x.norm() ** 3, ()),  # beside what it computes
    ],
    ids=["clamp", "dropout", "order", "drawn", "minimum", "residual"],
)
def test_what_hands_its_input_on_here_alone_keeps_its_verdict(forward, backward, more):
    assert audited(made(forward, backward), values("usual", (4, 10)), *more).verdict == "wrong"


@pytest.fixture
def one_process():
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def summed(x):
    distributed.all_reduce(y := x.clone())
    return y


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize(
    ("forward", "verdict"),
    [
        (summed, "wrong"),
        (lambda x: x.clone() if distributed.group.WORLD.size() == 1 else summed(x), "meant"),  # so no scale is accused
        (torch.clone, "meant"),  # of which the gradient is summed up, as of a column-parallel layer
    ],
    ids=["reduced", "asked", "copied"],
)
def test_what_a_collective_among_one_process_hands_on_keeps_its_verdict(forward, verdict):
    report = audited(made(forward, lambda g, x: 1.5 * summed(g)), values("usual", (4, 10)))
    assert report.verdict == verdict
    if verdict == "meant":
        why = report.functions[0].situations[0].reason.params["why"]
        assert why.message_id == "checking.because_handed_on_alone"
        assert "ranks=2" in str(report)
    assert audited(made(forward, lambda g, x: summed(g)), values("usual", (4, 10))).verdict != "wrong"


def test_beside_a_reference_nothing_is_meant():
    """A column-parallel layer copies its input in forward; its gradient has to be summed up all the same."""
    x = values("usual", (4, 10)).detach().double().requires_grad_()
    compared = nbautograd.compare(MEANT["reversal"][0], lambda x: x + 0, x, sizes=())
    assert compared.verdict == "wrong"


@pytest.mark.parametrize("name", ["round", "spike, smooth", "absmax"])
def test_a_callable_around_a_surrogate_is_flat_as_well(name):
    cls, _ = MEANT[name]
    x = values("usual", (4, 10)).detach().double().requires_grad_()
    with Problem(lambda x: 3 * cls.apply(2 * x), (x,)).session():
        found = meant_pairs(Problem(lambda x: 3 * cls.apply(2 * x), (x,)))
    assert [one.reason for one in found.values()] == ["staircase"]


@pytest.mark.parametrize("size", [(5,), (4, 10), (32, 128)], ids=str)
@pytest.mark.parametrize("name", ["round", "round, clipped", "spike with a window", "spike, smooth", "absmax"])
def test_gradcheck_calls_no_surrogate_wrong_and_offers_no_change(name, size):
    x = values("on a jump", size).detach().double().requires_grad_()
    report = nbautograd.gradcheck(MEANT[name][0], x, order=1)
    assert report.verdict in ("cannot tell", "right")
    assert not any(finding.fix for finding in report.findings)


@pytest.mark.parametrize("name", LEARNED)
def test_gradcheck_offers_no_change_for_a_learned_scale(name):
    x, scale = values("usual", (4, 10)), torch.tensor([0.5])
    given = [item.detach().double().requires_grad_() for item in (x, scale)]
    report = nbautograd.gradcheck(LEARNED[name], tuple(given), order=1)
    assert report.verdict == "cannot tell"
    assert not any(finding.fix for finding in report.findings)


def test_no_fix_for_one_input_takes_the_surrogate_gradient_of_another():
    Scaled = Fn.of("Scaled", "x, w: save(x, w); return x.round() * w", "grad: x, w = saved; return grad * w, grad * x")
    given = [torch.linspace(-3, 3, 7, dtype=torch.float64).add(k / 3 + 0.1).requires_grad_() for k in range(2)]
    report = nbautograd.gradcheck(Scaled, tuple(given), order=1)
    assert report.verdict == "wrong"
    fixes = [finding.fix for finding in report.findings if finding.fix is not None]
    assert all("grad * w" in fix.source for fix in fixes)


@pytest.mark.usefixtures("fixes")
def test_no_fix_moves_a_surrogate_gradient_to_another_argument():
    Moved = Fn.of("Moved", "x, w: return (x > 0).to(x.dtype) + 2 * w", "grad: return 2 * grad, None")
    given = [torch.linspace(-3, 3, 7, dtype=torch.float64).add(k / 3 + 0.1).requires_grad_() for k in range(2)]
    report = nbautograd.gradcheck(Moved, tuple(given), order=1)
    assert report.verdict == "wrong"
    assert not any(finding.fix and "None," in finding.fix.source for finding in report.findings)


@pytest.mark.parametrize("frozen", [False, True], ids=["both", "of the data none"])
@pytest.mark.parametrize(("name", "size"), large(LEARNED, ("step size",)))
def test_a_learned_scale_or_threshold_is_meant_as_well(name, size, frozen):
    x, scale = values("usual", SIZES[size]), torch.tensor([0.5], requires_grad=True)
    assert audited(LEARNED[name], x.detach() if frozen else x, scale).verdict == "meant"
