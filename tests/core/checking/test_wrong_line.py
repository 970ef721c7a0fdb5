"""The line of backward that goes wrong is found by putting the right value in place of what it computes."""

from __future__ import annotations

import linecache
import sys

import pytest
import torch
from fn import Fn, source_line
from own_mistakes import draw

import nbautograd
from nbautograd.core.findings import Finding

pytestmark = pytest.mark.usefixtures("without_fixes")


def first(cls, *inputs) -> tuple[Finding, str]:
    """Return the first finding of a check, and the text of the line that it names."""
    report = nbautograd.gradcheck(cls, inputs, order=1)
    assert report.verdict == "wrong"
    found = report.findings[0]
    return found, source_line(cls, found.line)


# What forward adds before the root is forgotten where backward computes it again.
Norm = Fn.of("Norm", "x, weight: r = torch.rsqrt(x.square().mean(-1, keepdim=True) + 0.3); save(x, weight); "
    "return x * r * weight",
    "g: x, weight = saved; r = torch.rsqrt(x.square().mean(-1, keepdim=True)); gn = g * weight; "
    "gx = r * gn - x * r**3 * (gn * x).mean(-1, keepdim=True); return gx, (g * x * r).sum(0)")  # fmt: skip
# The rows of the gradient of the scores are not centred with the probabilities as weights.
Attention = Fn.of("Attention",
    "q, k, v: scores = q @ k.t(); p = torch.softmax(scores, -1); save(q, k, v, p); return p @ v",
    "g: q, k, v, p = saved; gv = p.t() @ g; gp = g @ v.t(); "
    "gs = p * (gp - (gp * p).mean(-1, keepdim=True)); return gs @ k, gs.t() @ q, gv")  # fmt: skip
# Where it goes wrong is the return: what comes before, made right, would be right after it as well.
Centred = Fn.of("Centred", "x: save(x); return x.cumsum(0) - x.mean(0)",
    "g: part = g.flip(0).cumsum(0).flip(0) * 1.0; return part + 0.25 * (part.mean(0) - g.mean(0))")  # fmt: skip


def slope_of(x):
    """Differentiates another function than forward's."""
    return 0.5 * (1 + torch.erf(x * 0.5**0.5)) + x * torch.exp(-0.5 * x * x) * 0.4


# Calls a function beside the class for the derivative.
Approximate = Fn.of("Approximate", "x: save(x); return x * torch.sigmoid(1.7 * x)",
    "g: (x,) = saved; return g * slope_of(x)")  # fmt: skip


def slope_of_mean_exp(z):
    """Has the series of ``(exp(z) - 1) / z`` where that of its derivative belongs."""
    series = 1 + z / 2
    return torch.where(z.abs() < 1e-5, series, (z * z.exp() - z.exp() + 1) / (z + (z == 0)) ** 2)


MeanExp = Fn.of(
    "MeanExp",
    "z: save(z); return torch.where(z.abs() < 1e-5, 1 + z / 2 + z**2 / 6, z.expm1() / (z + (z == 0)))",
    "g: (z,) = saved; return g * slope_of_mean_exp(z)",
)


@pytest.mark.usefixtures("fixes")
def test_no_fix_leaves_a_term_that_is_too_small_to_see() -> None:
    report = nbautograd.gradcheck(
        MeanExp, (torch.tensor([0.0, 0.7, -0.4, 0.0], dtype=torch.float64, requires_grad=True),)
    )
    assert report.verdict == "wrong"
    assert report.findings[0].fix is None


TILE = 4  # rows


# Drops the rows that fill no whole tile.
Tiled = Fn.of("Tiled", "x, w: save(x, w); return x @ w",
    "g: x, w = saved; gw = torch.zeros_like(w); rows = x.shape[0]; tiles = rows // TILE; "
    "for k in range(tiles): gw += x[k * TILE : (k + 1) * TILE].t() @ g[k * TILE : (k + 1) * TILE]; "
    "return g @ w.t(), gw")  # fmt: skip


@pytest.mark.usefixtures("fixes")
def test_no_fix_is_right_by_the_value_of_a_number_outside_alone() -> None:
    report = nbautograd.gradcheck(Tiled, (draw(10, 3), draw(3, 4, seed=1)), order=1)
    fix = report.findings[0].fix
    assert fix is None  # neither TILE times as many rows nor as many tiles as rows: of either more would do


GAIN = 3.0


Gained = Fn.of("Gained", "x: save(x); return GAIN * x.sin()", "g: return g * ctx.saved_tensors[0].cos()")
# The gain of 3 is right by its name alone, and so is its square.
GainedTwice = Gained.of("GainedTwice", "x: save(x); return GAIN**2 * x.sin()",
    "g: return g * GAIN * ctx.saved_tensors[0].cos()")  # fmt: skip


@pytest.mark.usefixtures("fixes")
@pytest.mark.parametrize("fn", [Gained, GainedTwice])
def test_a_number_that_the_function_has_by_a_name_is_not_written_out(fn) -> None:
    fix = nbautograd.gradcheck(fn, (draw(5),), order=1).findings[0].fix
    assert fix is None or "3" not in fix.source
    assert GAIN == 3.0


# Weighs with something else than the power below; of a square that is the base itself.
PowerOf = Fn.of("PowerOf", "x, p: base = x.abs(); save(x); ctx.p = p; return (base**p).sum()",
    "g: (x,) = saved; weight = x.abs().exp(); return g * ctx.p * weight * x.sign(), None")  # fmt: skip


@pytest.mark.usefixtures("fixes")
def test_the_class_stays_as_it_is_while_it_is_checked() -> None:
    met = set()

    class Watched(Attention):
        @staticmethod
        def forward(ctx, q, k, v):
            met.add((id(vars(Watched)["forward"]), id(vars(Watched)["backward"])))
            scores = q @ k.t()
            p = torch.softmax(scores, -1)
            ctx.save_for_backward(q, k, v, p)
            return p @ v

        @staticmethod
        def backward(ctx, g):
            q, k, v, p = ctx.saved_tensors
            gp = g @ v.t()
            gs = p * gp
            return gs @ k, gs.t() @ q, p.t() @ g

    own = id(vars(Watched)["forward"]), id(vars(Watched)["backward"])
    inputs = draw(4, 3), draw(5, 3, seed=1), draw(5, 2, seed=2)
    assert nbautograd.gradcheck(Watched, inputs, order=1).verdict == "wrong"
    assert met == {own}


# ``g`` is written twice; the second time from the first.
Gated = Fn.of("Gated", "gates, c: f, g = gates.chunk(2, 1); f, g = f.sigmoid(), g.tanh(); save(f, g, c); "
    "return f * c + g",
    "grad_output: f, g, c = saved; df = grad_output * c * f * (1 - f); "
    "dg = grad_output * g * (1 - g); return torch.cat([df, dg], 1), grad_output * f")  # fmt: skip
# The residual is scaled in forward, and not where backward asks which ones are outliers.
Biweight = Fn.of("Biweight", "r, s, c: u = r / (s * c); rho = (c * c / 6) * (1 - (1 - u * u) ** 3); save(r); "
    "ctx.s, ctx.c = s, c; return torch.where(u.abs() < 1, rho, torch.full_like(rho, c * c / 6))",
    "g: (r,) = saved; s, c = ctx.s, ctx.c; u = r / (s * c); psi = (r / s**2) * (1 - u * u) ** 2; "
    "inlier = r.abs() < c; return g * psi * inlier, None, None")  # fmt: skip
# Scores that are capped and made probabilities; backward takes the cap's slope at the capped scores.
SoftCap = Fn.of("SoftCap", "q, k, v: capped = 2 * torch.tanh(q @ k.t() / 2); p = torch.softmax(capped, -1); "
    "save(q, k, v, capped, p); return p @ v",
    "grad_output: q, k, v, capped, p = saved; dp = grad_output @ v.t(); "
    "ds = p * (dp - (dp * p).sum(-1, keepdim=True)); ds = ds * (1 - torch.tanh(capped / 2) ** 2); "
    "return ds @ k, ds.t() @ q, p.t() @ grad_output")  # fmt: skip


def _third(p, gp):
    return p * (gp - (gp * p).sum(-1, keepdim=True) / 3)


ATTENTION = "q, k, v: scores = q @ k.t(); p = torch.softmax(scores, -1); save(q, k, v, p); return p @ v"
BACK = "return gs @ k, gs.t() @ q, p.t() @ g"
# The line of backward is meant, not that of the helper, which others may call as well.
InAHelper = Fn.of("InAHelper", ATTENTION, f"g: q, k, v, p = saved; gs = _third(p, g @ v.t()); {BACK}")
STEPS = ("states = [x]; for _ in range(3): states.append(torch.tanh(states[-1] {0} w)); save(w, *states); "
    "return states[-1] * 2")  # fmt: skip
# The second turn alone is wrong.
InALoop = Fn.of("InALoop", "x, w: " + STEPS.format("*"),
    "g: w, *states = saved; gz = g * 2; slopes = [states[1].cos() if k == 1 else 1 - states[k + 1].square() "
    "for k in range(3)]; for turn in (2, 1, 0): gz = gz * slopes[turn] * w; return gz, None")  # fmt: skip
InPlace = Fn.of("InPlace", "logp, target: save(target); ctx.shape = logp.shape; "
    "return -logp[torch.arange(len(target)), target].mean()",
    "g: (target,) = saved; out = torch.zeros(ctx.shape, dtype=g.dtype); "
    "out[torch.arange(len(target)), target] = 1 / len(target); return g * out, None")  # fmt: skip


BENT = torch.linspace(-2.6, 2.5, 20, dtype=torch.float64).requires_grad_()
CASES = [
    # what belongs there is a gradient, a value or a derivative of forward's; in the place of which variable
    (Norm, (draw(4, 5), draw(5, seed=1)), "r = torch.rsqrt(x.square().mean(-1, keepdim=True))", "value", "`r`"),
    (
        Attention,
        (draw(4, 3), draw(5, 3, seed=1), draw(5, 2, seed=2)),
        "gs = p * (gp - (gp * p).mean(-1, keepdim=True))",
        "gradient",
        "`scores`",
    ),
    (Approximate, (draw(5),), "return g * slope_of(x)", "derivative", "`slope_of(x)`"),
    (Biweight, (BENT, 0.5, 2.0), "inlier = r.abs() < c", "value", "`inlier`"),
    (
        SoftCap,
        (draw(4, 3, seed=1), draw(5, 3, seed=2), draw(5, 3, seed=3)),
        "ds = ds * (1 - torch.tanh(capped / 2) ** 2)",
        "value",
        "`torch.tanh(capped / 2)`",
    ),
    (
        Gated,
        (draw(3, 4, seed=3), torch.ones(3, 2, dtype=torch.float64).requires_grad_()),
        "dg = grad_output * g * (1 - g)",
        "gradient",
        "`g` (line 3)",
    ),
    (InAHelper, (draw(4, 3), draw(5, 3, seed=1), draw(5, 2, seed=2)), "gs = _third(p, g @ v.t())", "gradient", ""),
    (
        InALoop,
        (draw(4), draw(4, seed=1).detach()),
        "gz = gz * slopes[turn] * w",
        "gradient",
        "`states[-1] * w`",
    ),
    (InPlace, (draw(4, 3), torch.tensor([1, 0, 2, 2])), "out[torch.arange(len(target)), target] = 1 / len(target)",
     "", ""),
    # the gradient itself: any line up to the return may be meant
    (Centred, (draw(6, 3),), "return part + 0.25 * (part.mean(0) - g.mean(0))", "", ""),
    # what `base` is, and `weight`, is right for a square alone
    (PowerOf, (draw(6), 2), "return g * ctx.p * weight * x.sign(), None", "gradient", "`base`"),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "inputs", "line", "kind", "words"), CASES)
def test_the_line_that_goes_wrong(cls, inputs, line, kind, words) -> None:
    found, text = first(cls, *inputs)
    assert text == line
    assert (found.message_id.partition("wrong_line_")[2], text) == (kind, line), str(found)
    assert words in found.message


def test_the_line_is_found_under_a_debugger_which_stays() -> None:
    def follow(frame, event, arg):
        return follow

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        found, line = first(Attention, draw(4, 3), draw(5, 3, seed=1), draw(5, 2, seed=2))
        assert sys.gettrace() is follow
    finally:
        sys.settrace(before)
    assert (found.message_id, line) == (
        "causes.wrong_line_gradient",
        "gs = p * (gp - (gp * p).mean(-1, keepdim=True))",
    )


def test_the_line_of_an_operation_inside_a_callable_is_its_authors() -> None:
    swish = torch.library.custom_op("nbautograd_tests::swish_inside", lambda x: x * torch.sigmoid(x), mutates_args=(),
                                    schema="(Tensor x) -> Tensor")  # fmt: skip

    def backward(ctx, g):
        s = torch.sigmoid(ctx.x)
        return g * (s + ctx.x * s)

    swish.register_autograd(backward, setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0]))
    report = nbautograd.gradcheck(lambda x: 2 * swish(x), draw(5), order=1)
    assert report.verdict == "wrong"
    assert linecache.getline(__file__, report.findings[0].line).strip() == "return g * (s + ctx.x * s)"


class Turns(Fn):
    """Its third turn has the sine of what belongs there."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.stack([row.exp() * (k + 1) for k, row in enumerate(x)])

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        out = torch.zeros_like(x)
        for k in range(len(x)):
            e = x[k].exp()
            if k == 2:
                e = e.sin()
            out[k] = g[k] * e * (k + 1)
        return out


def test_what_one_turn_of_a_comprehension_makes_is_not_called_by_the_whole() -> None:
    found, _ = first(Turns, draw(4, 3))
    assert "enumerate" not in found.message
