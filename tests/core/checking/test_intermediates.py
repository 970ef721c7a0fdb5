"""The variable or condition of backward that goes wrong is found by putting the right value in its place."""

from __future__ import annotations

import pytest
import torch
from fn import Fn, source_line
from own_mistakes import draw

import nbautograd
from nbautograd.core.checking.diagnosis.intermediates import wrong_variable
from nbautograd.core.checking.diagnosis.replacement_point import ReplacementPoint
from nbautograd.core.checking.problem import Problem
from nbautograd.core.findings import Finding, Phrase

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
# Backward has another threshold than forward.
Huber = Fn.of("Huber", "x: save(x); inner = x.abs() < 1.5; "
    "return torch.where(inner, 0.5 * x * x, 1.5 * (x.abs() - 0.75)).sum()",
    "g: (x,) = saved; slope = torch.where(x.abs() < 0.8, x, 1.5 * x.sign()); return g * slope")  # fmt: skip
# What backward takes for the output is the input.
Saves = Fn.of("Saves", "x: y = x.sigmoid(); z = y * 2; save(x); return z",
    "g: (y,) = saved; slope = y * (1 - y); return 2 * g * slope")  # fmt: skip
# The gradient of the bias waits for another input to need one.
Guarded = Fn.of("Guarded", "x, bias: return x.square() + bias",
    "g: gb = None; if ctx.needs_input_grad[0]: gb = g.sum(0); return None, gb")  # fmt: skip
# Where it goes wrong is the return: what comes before, made right, would be right after it as well.
Centred = Fn.of("Centred", "x: save(x); return x.cumsum(0) - x.mean(0)",
    "g: part = g.flip(0).cumsum(0).flip(0) * 1.0; return part + 0.25 * (part.mean(0) - g.mean(0))")  # fmt: skip


def _slope(x, bound):
    inner = x.abs() < 2 * bound
    return torch.where(inner, x, bound * x.sign())


# The condition is wrong in a function that backward calls.
Helped = Fn.of("Helped", "x, bound: save(x); ctx.bound = bound; "
    "return 0.5 * x.clamp(-bound, bound).square() + bound * (x.abs() - bound).clamp(min=0)",
    "g: (x,) = saved; return g * _slope(x, ctx.bound), None")  # fmt: skip
# Backward takes the first of what is saved for the second.
Takes = Fn.of("Takes", "x: y = x.sigmoid(); save(x, y); return y * 2",
    "g: y, _ = saved; slope = y * (1 - y); return 2 * g * slope")  # fmt: skip
# A number is wrong, and the line that uses it is not.
Counted = Fn.of("Counted", "x: return x - x.mean(0)", "g: n = g.numel(); return g - g.sum(0) / n")


def _turned(x, angle):
    a, b = x.unbind(-1)
    return torch.stack((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)


# Backward turns by the same angle once more.
Turned = Fn.of("Turned", "x, angle: save(angle); return _turned(x, angle)",
    "g: return _turned(g, *ctx.saved_tensors), None")  # fmt: skip


def test_a_function_that_forward_calls_too_is_not_blamed() -> None:
    _, line = first(Turned, draw(4, 2), draw(4, seed=1).detach())
    assert line == "return _turned(g, *ctx.saved_tensors), None"


def test_what_is_taken_from_ctx() -> None:
    found, line = first(Takes, draw(3, 4))
    assert (found.message_id, line) == ("causes.wrong_saved", "y, _ = ctx.saved_tensors")


def variable(cls, *inputs, position=0):
    """Return the variable of backward that is found to go wrong for an input."""
    problem = Problem(cls, inputs)
    with problem.session():
        problem.call()
        return wrong_variable(problem, position)


def test_a_line_is_not_blamed_alone_where_a_number_may_be_wrong() -> None:
    found = variable(Counted, draw(3, 3))  # which of the two sizes belongs there is not known
    assert found is not None
    assert (found.unknown, found.site.text) == (("n",), "g - g.sum(0) / n")
    assert not found.before()
    assert "or on the way to it" in str(found.params(1)["begins"])


# What arrives at one of two products is taken for what arrives at the other.
Gates = Fn.of("Gates", "x, w, h, u: gi = x @ w; gh = h @ u; n = torch.tanh(gi * 0.5 + gi.sigmoid() * gh); "
    "save(x, w, h, u, gi, gh, n); return n",
    "g: x, w, h, u, gi, gh, n = saved; s = gi.sigmoid(); dn = g * (1 - n * n); "
    "d_gi = dn * (0.5 + gh * s * (1 - s)); d_gh = d_gi * 1; "
    "return d_gi @ w.t(), x.t() @ d_gi, d_gh @ u.t(), h.t() @ d_gh")  # fmt: skip


def test_a_variable_that_is_called_after_what_belongs_there() -> None:
    inputs = draw(3, 4), draw(4, 5, seed=1), draw(3, 2, seed=2), draw(2, 5, seed=3)
    _, line = first(Gates, *inputs)
    assert line == "d_gh = d_gi * 1"
    found = variable(Gates, *inputs, position=2)
    assert found is not None
    assert found.expression == "gh"


# One of the weights of backward is another than forward's.
Window = Fn.of("Window", "x: ctx.size = x.shape[1]; return torch.fft.rfft(x).real.cumsum(1)",
    "g: twice = torch.full((ctx.size // 2 + 1,), 1.0, dtype=g.dtype); twice[2] = 0.5; "
    "return torch.fft.fft(g.flip(1).cumsum(1).flip(1) * twice, n=ctx.size).real")  # fmt: skip
# The mean of backward is over all elements, that of forward over the positive ones.
Support = Fn.of("Support", "x: there = (x > 0).to(x.dtype); save(there); "
    "return there * (x - (x * there).sum(1, keepdim=True) / there.sum(1, keepdim=True))",
    "g: (there,) = saved; mean = (g * there).sum(1, keepdim=True) / there.shape[1]; "
    "return there * (g - mean)")  # fmt: skip


PARTLY = [[0.9, -0.4, 0.3, 1.2, -0.8, 0.5], [-0.6, 0.7, 1.1, 0.2, -1.3, 0.4], [0.8, 0.6, -0.9, 0.1, 1.4, -0.2]]


# Backward leaves out that the mean is taken off as well.
Divergence = Fn.of("Divergence", "a, b: log_p, log_q = a.log_softmax(-1), b.log_softmax(-1); save(log_p, log_q); "
    "return (log_p.exp() * (log_p - log_q)).sum(-1)",
    "g: log_p, log_q = saved; slope = log_p.exp() * (log_p - log_q); "
    "return g[..., None] * slope, g[..., None] * (log_q.exp() - log_p.exp())")  # fmt: skip


class SelectiveScan(Fn):
    """Backward takes the state after the step where the one before it belongs, for the decay alone."""

    def forward(ctx, x, a, b):
        states = [torch.zeros_like(b)]
        for row in x:
            states.append(torch.exp(a * row.sum()) * states[-1] + row * b)
        ctx.save_for_backward(x, a, b, torch.stack(states))
        return torch.stack(states[1:])

    def backward(ctx, g):
        x, a, b, states = ctx.saved_tensors
        gx, ga, gb = (torch.zeros_like(t) for t in (x, a, b))
        gh = torch.zeros_like(b)
        for t in reversed(range(len(x))):
            gh = gh + g[t]
            decay = torch.exp(a * x[t].sum())
            slope = gh * decay * states[t + 1]
            ga += slope * x[t].sum()
            gx[t] = gh * b + (slope * a).sum()
            gb += gh * x[t]
            gh = gh * decay
        return gx, ga, gb


def test_the_variable_of_a_loop_that_alone_enters_all_that_is_wrong() -> None:
    found, line = first(SelectiveScan, draw(4, 3), 0.5 * draw(3, seed=1).detach().requires_grad_(), draw(3, seed=2))
    assert line == "slope = gh * decay * states[t + 1]"
    assert "`slope` enters all that is wrong, and nothing that is right" in found.message
    assert found.names_its_line


def test_a_variable_that_alone_enters_all_that_is_wrong_at_one_point_is_not_blamed(monkeypatch) -> None:
    asked, first_point = ReplacementPoint.alone_wrong, list[ReplacementPoint]()

    def there_alone(self, number):
        first_point.append(self)
        return self is first_point[0] and asked(self, number)

    monkeypatch.setattr(ReplacementPoint, "alone_wrong", there_alone)
    found, _ = first(SelectiveScan, draw(4, 3), 0.5 * draw(3, seed=1).detach().requires_grad_(), draw(3, seed=2))
    assert found.message_id != "causes.wrong_variable_entering"
    assert len({id(point) for point in first_point}) > 1


# What backward begins with is right as the gradient of the output, and not as what its name says.
Scaled = Fn.of("Scaled", "x, scale: wide = x.exp() + x; save(x, scale); return wide * scale",
    "g: x, _ = saved; gw = g * 1; gx = gw * (x.exp() + 1); return gx * 1, (g * (x.exp() + x)).sum(0)")  # fmt: skip


def test_of_two_lines_that_may_lack_a_factor_the_later_is_named_and_the_earlier_not_called_right() -> None:
    problem = Problem(Scaled, (draw(4, 3), draw(3, seed=1)))
    with problem.session():
        problem.call()
        found = wrong_variable(problem, 0)
    assert found is not None
    assert (found.site.name, found.unknown) == ("gx", ("gw",))


# Solves nothing on the way back: what comes out of the solve is grad_output as it went in.
Fixed = Fn.of("Fixed", "w, x: z = torch.zeros_like(x); for _ in range(200): z = torch.tanh(w @ z + x); save(w, z); "
    "return z",
    "g: _, z = saved; slope = 1 - z * z; "
    "u = torch.linalg.solve(torch.eye(len(z), dtype=z.dtype), g); gx = u * slope; "
    "return torch.outer(gx, z), gx")  # fmt: skip


def test_what_comes_out_as_grad_output_went_in_is_not_called_right() -> None:
    inputs = 0.4 * draw(4, 4).detach(), draw(4, seed=1)
    found = variable(Fixed, inputs[0].requires_grad_(), inputs[1], position=1)
    assert found is None or not found.alone
    assert found is None or (found.site.name, found.alone) != ("slope", True)


def test_a_statement_that_reads_only_what_agrees_is_to_blame_alone() -> None:
    found = variable(Attention, draw(4, 3), draw(5, 3, seed=1), draw(5, 2, seed=2))
    assert found is not None
    assert found.alone


class Unrolled(Fn):
    """The gradient of the state is added to from pass to pass, and right before the first alone."""

    def forward(ctx, w, x):
        states = [x]
        for _ in range(3):
            states.append(torch.tanh(states[-1] @ w))
        ctx.save_for_backward(w, *states)
        return states[-1] * 2

    def backward(ctx, g):
        w, *states = ctx.saved_tensors
        gz = g * 2
        gw = torch.zeros_like(w)
        for before, after in zip(reversed(states[:-1]), reversed(states[1:]), strict=True):
            gs = gz * (1 - after.square())
            gw = gw + before.t() @ gs
            gz = gz + gs @ w.t()
        return gw, None


def test_what_a_loop_writes_is_not_said_to_agree_by_its_value_before_it() -> None:
    found = variable(Unrolled, draw(3, 3), draw(2, 3, seed=1).detach())
    assert found is not None
    assert (found.site.name, found.site.loop > 0) == ("gw", True)
    assert "gz" in found.site.reads
    assert "gz" in found.unknown


# Backward goes one step less than forward went; the number of steps is the same on both sides.
OneStepShort = Fn.of("OneStepShort",
    "w, x, steps: for _ in range(steps): x = x @ w; save(w); ctx.steps = steps; return x",
    "g: (w,) = saved; for _ in range(ctx.steps - 1, 0, -1): g = g @ w.T; return None, g, None")  # fmt: skip


def test_a_number_in_the_head_of_a_loop_is_not_said_to_agree() -> None:
    report = nbautograd.gradcheck(OneStepShort, (draw(3, 3).detach(), draw(2, 3, seed=1), 3))
    assert report.verdict == "wrong"
    assert "ctx.steps" not in report.findings[0].message


class Scan(Fn):
    """The decay's gradient uses the states after the steps, and is scaled by a number that is as in forward."""

    def forward(ctx, a, b, scale):
        states = [torch.zeros_like(b[:, 0])]
        for t in range(a.shape[1]):
            states.append(a[:, t] * states[-1] + b[:, t])
        h = torch.stack(states, 1)
        half = scale / 2
        ctx.save_for_backward(a, h)
        ctx.scale = scale
        return h[:, 1:] * half

    def backward(ctx, g):
        a, h = ctx.saved_tensors
        half = ctx.scale / 2
        carry = torch.zeros_like(h[:, 0])
        gb = torch.empty_like(a)
        for t in range(a.shape[1] - 1, -1, -1):
            carry = carry + g[:, t]
            gb[:, t] = carry
            carry = carry * a[:, t]
        gb = gb * half
        ga = gb * h[:, 1:]
        return ga, gb, None


def test_a_line_that_uses_nothing_but_what_is_right_is_to_blame_itself() -> None:
    found, line = first(Scan, draw(2, 4), draw(2, 4, seed=1), 3.0)
    assert line == "ga = gb * h[:, 1:]"
    assert found.message_id == "causes.wrong_variable_whole"
    assert "Go over `ga = gb * h[:, 1:]` again." in found.message


def test_a_number_is_right_where_forward_calls_it_so() -> None:
    class Late(Scan):
        @staticmethod
        def backward(ctx, g):
            gb = Scan.backward(ctx, g)[1]
            _, h = ctx.saved_tensors
            half = ctx.scale / 2
            other = ctx.scale / 4
            ga = gb * h[:, 1:] * half / other / 2
            return ga, gb, None

    found = variable(Late, draw(2, 4), draw(2, 4, seed=1), 3.0)
    assert found is not None
    assert "half" not in found.unknown
    assert "other" in found.unknown


# One number comes out, and elements of a mask that weigh enough make it up, whatever is wrong.
Weighed = Fn.of("Weighed", "w, a: save(a); return w * (a.sum() - 10)",
    "g: (a,) = saved; return g * (a * (a > 0)).sum(), None")  # fmt: skip


def test_a_value_that_backward_computes_again() -> None:
    found, line = first(Norm, draw(4, 5), draw(5, seed=1))
    assert found.message_id == "causes.wrong_variable_value"
    assert line == "r = torch.rsqrt(x.square().mean(-1, keepdim=True))"
    assert found.params["known"] == Phrase("causes.all_right_before", line=found.line)


def test_a_gradient_on_the_way() -> None:
    found, line = first(Attention, draw(4, 3), draw(5, 3, seed=1), draw(5, 2, seed=2))
    assert line == "gs = p * (gp - (gp * p).mean(-1, keepdim=True))"
    assert "gradient of `scores`" in found.message


# Takes the derivative of the squares in the denominator for one.
Dice = Fn.of("Dice", "p, t: save(p, t); return 1 - 2 * (p * t).sum(1) / (p.square() + t.square()).sum(1)",
    "g: p, t = saved; whole = (p.square() + t.square()).sum(1, keepdim=True); "
    "slope = -2 * (t * whole - (p * t).sum(1, keepdim=True)) / whole**2; "
    "return g[:, None] * slope, None")  # fmt: skip


def slope_of(x):
    """Differentiates another function than forward's."""
    return 0.5 * (1 + torch.erf(x * 0.5**0.5)) + x * torch.exp(-0.5 * x * x) * 0.4


class Approximate(Fn):
    """Calls a function beside the class for the derivative."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(1.7 * x)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * slope_of(x)


def test_the_derivative_of_the_output_in_place_of_a_variable_that_grad_output_is_not_in() -> None:
    found, line = first(Dice, draw(3, 4).detach().abs().requires_grad_(), draw(3, 4, seed=1).detach().abs())
    assert line == "slope = -2 * (t * whole - (p * t).sum(1, keepdim=True)) / whole**2"
    assert "With the derivative of `output` with respect to `p` in place of `slope` it is right" in found.message
    assert found.params["known"].message_id == "causes.all_right_before"
    found, line = first(Approximate, draw(5))
    assert line == "return 0.5 * (1 + torch.erf(x * 0.5**0.5)) + x * torch.exp(-0.5 * x * x) * 0.4"
    assert found.message_id == "causes.wrong_variable_derivative"


def test_a_condition() -> None:
    found, line = first(Huber, torch.linspace(-2, 2.1, 9, dtype=torch.float64, requires_grad=True))
    assert line == "slope = torch.where(x.abs() < 0.8, x, 1.5 * x.sign())"
    assert "With what `inner` is in forward" in found.message


def sinc(t):
    series = 1 - t**2 / 6 + t**4 / 120 - t**6 / 5040 + t**8 / 362880 - t**10 / 39916800
    return torch.where(t < 0.5, series, torch.sin(t) / t)


def sinc_slope(t):
    """Differentiates the first term of the series wrongly."""
    small = -t / 6 + t**3 / 30 - t**5 / 840 + t**7 / 45360 - t**9 / 3991680 + t**11 / 518918400
    large = (t * torch.cos(t) - torch.sin(t)) / t**2
    return torch.where(t < 0.5, small, large)


class Sinc(Fn):
    def forward(ctx, w):
        t = w.norm(dim=-1, keepdim=True)
        ctx.save_for_backward(w, t)
        return sinc(t) * w

    def backward(ctx, g):
        w, t = ctx.saved_tensors
        slope = (g * w).sum(-1, keepdim=True) * sinc_slope(t)
        return g * sinc(t) + slope * w / t


def short_and_long():
    w = torch.tensor([[3.0, 4.0], [4.0, -3.0], [-3.0, 4.0], [-4.0, -3.0]], dtype=torch.float64)
    return (w / 5 * torch.tensor([[1.4], [0.45], [0.8], [0.4]], dtype=torch.float64)).requires_grad_()


def test_a_way_that_is_never_right_is_no_mistake_of_the_condition() -> None:
    problem = Problem(Sinc, (short_and_long(),))
    with problem.session():
        problem.call()
        found = wrong_variable(problem, 0)
    assert found is None or not found.condition
    assert "condition" not in first(Sinc, short_and_long())[0].message


def slope_of_mean_exp(z):
    """Has the series of ``(exp(z) - 1) / z`` where that of its derivative belongs."""
    series = 1 + z / 2
    return torch.where(z.abs() < 1e-5, series, (z * z.exp() - z.exp() + 1) / (z + (z == 0)) ** 2)


class MeanExp(Fn):
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return torch.where(z.abs() < 1e-5, 1 + z / 2 + z**2 / 6, z.expm1() / (z + (z == 0)))

    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return g * slope_of_mean_exp(z)


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


def test_what_only_has_to_be_large_enough_is_no_size() -> None:
    found, _ = first(Tiled, draw(10, 3), draw(3, 4, seed=1))
    assert "numel()" not in found.message
    assert "shape[" not in found.message.split("in place of")[0]


@pytest.mark.usefixtures("fixes")
def test_no_fix_is_right_by_the_value_of_a_number_outside_alone() -> None:
    report = nbautograd.gradcheck(Tiled, (draw(10, 3), draw(3, 4, seed=1)), order=1)
    fix = report.findings[0].fix
    assert fix is None  # neither TILE times as many rows nor as many tiles as rows: of either more would do


GAIN = 3.0


Gained = Fn.of("Gained", "x: save(x); return GAIN * x.sin()", "g: return g * ctx.saved_tensors[0].cos()")


class GainedTwice(Gained):
    """The gain of 3 is right by its name alone, and so is its square."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return GAIN**2 * x.sin()

    @staticmethod
    def backward(ctx, g):
        return g * GAIN * ctx.saved_tensors[0].cos()


@pytest.mark.usefixtures("fixes")
@pytest.mark.parametrize("fn", [Gained, GainedTwice])
def test_a_number_that_the_function_has_by_a_name_is_not_written_out(fn) -> None:
    fix = nbautograd.gradcheck(fn, (draw(5),), order=1).findings[0].fix
    assert fix is None or "3" not in fix.source
    assert GAIN == 3.0


# Weighs with something else than the power below; of a square that is the base itself.
PowerOf = Fn.of("PowerOf", "x, p: base = x.abs(); save(x); ctx.p = p; return (base**p).sum()",
    "g: (x,) = saved; weight = x.abs().exp(); return g * ctx.p * weight * x.sign(), None")  # fmt: skip


def test_what_belongs_in_a_variables_place_does_so_for_other_arguments_too() -> None:
    found, line = first(PowerOf, draw(6), 2)
    assert line in ("weight = x.abs().exp()", "return g * ctx.p * weight * x.sign(), None")
    assert "With what `base` is" not in found.message


def test_what_is_saved() -> None:
    found, line = first(Saves, draw(3, 4))
    assert found.message_id == "causes.wrong_saved"
    assert line == "ctx.save_for_backward(x)"


# Counts the images anew, from what is wrapped already: none.
Wrapped = Fn.of("Wrapped", "x, edge: wrapped = x - torch.round(x / edge) * edge; save(wrapped, edge); return wrapped",
    "g: x, edge = saved; return g, -(g * torch.round(x / edge)).sum()")  # fmt: skip


def test_the_line_that_saves_is_quoted_where_it_is_named() -> None:
    x, edge = torch.tensor([0.2, 0.9, -1.4, 2.3], dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64)
    found, line = first(Wrapped, x.requires_grad_(), edge.requires_grad_())
    assert line == "ctx.save_for_backward(wrapped, edge)"
    assert f"line {found.line}: `{line}`" in found.message


class Steps(Fn):
    """Takes the last state for that before each step."""

    def forward(ctx, x, t, matrix):
        states = []
        for _ in range(3):
            states.append(x)
            x = x - t * (matrix @ x)
        states.append(x)
        ctx.save_for_backward(t, matrix, *states)
        return x

    def backward(ctx, g):
        t, matrix, *states = ctx.saved_tensors
        slope = torch.zeros_like(t)
        for _ in range(3):
            slope = slope - (g * (matrix @ states[-1])).sum()
            g = g - t * (matrix @ g)
        return g, slope, None


def test_of_a_line_that_uses_what_may_be_wrong_nothing_is_called_right() -> None:
    matrix = draw(4, 4, seed=1).detach()
    t = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    found, line = first(Steps, draw(4), t, matrix + matrix.t())
    assert line == "slope = slope - (g * (matrix @ states[-1])).sum()"
    assert not found.params["shared"]


def test_the_line_of_an_operation_inside_a_callable_is_its_authors() -> None:
    @torch.library.custom_op("nbautograd_tests::swish_inside", mutates_args=())
    def swish(x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(x)

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return g * (s + x * s)

    swish.register_autograd(backward, setup_context=setup_context)
    report = nbautograd.gradcheck(lambda x: 2 * swish(x), draw(5), order=1)
    found = report.findings[0]
    with open(__file__, encoding="utf-8") as file:
        line = file.read().split("\n")[found.line - 1].strip()
    assert (report.verdict, line) == ("wrong", "return g * (s + x * s)")


def test_nothing_is_said_of_a_variable_before_a_wrong_return() -> None:
    found, line = first(Centred, draw(6, 3))
    assert line.startswith("return")
    assert not found.message_id.startswith("causes.wrong_variable")


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


def test_a_name_that_forward_writes_twice_is_told_by_the_line_of_the_value_that_is_meant():
    gates = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).requires_grad_()
    found, _ = first(Gated, gates, torch.ones(3, 2, dtype=torch.float64).requires_grad_())
    chunk = Gated.forward.__code__.co_firstlineno + 1
    assert f"gradient of `g` (line {chunk})" in found.message


# Forgets a term that only the diagonal has, which is larger than 0.5 here, and the rest is not.
LogDensity = Fn.of("LogDensity", "x, L: z = torch.linalg.solve_triangular(L, x.T, upper=False); save(z, L); "
    "return -0.5 * (z**2).sum(0) - L.diagonal().log().sum()",
    "grad_output: z, L = saved; s = torch.linalg.solve_triangular(L.T, z, upper=True); "
    "return -(s * grad_output).T, ((s * grad_output) @ z.T).tril()")  # fmt: skip


def test_entries_that_are_places_are_not_told_by_values_that_lie_so():
    numbers = torch.Generator().manual_seed(1)
    x = torch.randn(4, 5, dtype=torch.float64, generator=numbers).requires_grad_()
    below = 0.3 * torch.randn(5, 5, dtype=torch.float64, generator=numbers).clamp(-1, 1).tril(-1)
    L = (below + torch.linspace(0.9, 1.6, 5, dtype=torch.float64).diag()).requires_grad_()
    found, _ = first(LogDensity, x, L)
    assert "|L|" not in found.message
    assert "i == j" in found.message


# The residual is scaled in forward, and not where backward asks which ones are outliers.
Biweight = Fn.of("Biweight", "r, s, c: u = r / (s * c); rho = (c * c / 6) * (1 - (1 - u * u) ** 3); save(r); "
    "ctx.s, ctx.c = s, c; return torch.where(u.abs() < 1, rho, torch.full_like(rho, c * c / 6))",
    "g: (r,) = saved; s, c = ctx.s, ctx.c; u = r / (s * c); psi = (r / s**2) * (1 - u * u) ** 2; "
    "inlier = r.abs() < c; return g * psi * inlier, None, None")  # fmt: skip


def _outside(u, rho, c):
    return torch.where(u.abs() < 1, rho, torch.full_like(rho, c * c / 6))


def test_a_factor_is_not_blamed_for_the_mask_beside_it() -> None:
    """The derivative, which is zero outside, would mend the gradient in the place of either."""
    r = torch.linspace(-2.6, 2.5, 20, dtype=torch.float64).requires_grad_()
    found, line = first(Biweight, r, 0.5, 2.0)
    assert (found.message_id, line) == ("causes.wrong_variable_value", "inlier = r.abs() < c")


# The half weights of the two ends are forgotten.
Trapezoid = Fn.of("Trapezoid", "f, at, h: lam = torch.exp(f); save(lam, at); ctx.h = h; "
    "return f[at].sum() - h * (lam[1:] + lam[:-1]).sum() / 2",
    "g: lam, at = saved; gf = -ctx.h * lam; gf.index_add_(0, at, torch.ones_like(lam[at])); "
    "return g * gf, None, None")  # fmt: skip


def test_of_a_wrong_variable_the_part_is_said_that_is_wrong() -> None:
    found, _ = first(Trapezoid, draw(9), torch.tensor([0, 2, 5, 8, 2]), 0.2)
    assert found.message_id == "causes.wrong_variable_derivative"
    assert "Only `f[[0, -1]]` is wrong." in found.message


# A symmetric loss of which backward forgets the columns; the identity that it subtracts is right.
BothWays = Fn.of("BothWays", "a, b: scores = a @ b.t(); rows, columns = scores.log_softmax(1), scores.log_softmax(0); "
    "save(a, b, rows, columns); return -(rows.diagonal().mean() + columns.diagonal().mean())",
    "grad_output: a, b, rows, _columns = saved; identity = torch.eye(len(a), dtype=a.dtype); "
    "wrong = grad_output * (rows.exp() - identity) / len(a); return wrong @ b, wrong.t() @ a")  # fmt: skip


def test_what_is_made_without_the_inputs_numbers_is_not_blamed_where_each_input_needs_another():
    found, line = first(BothWays, draw(4, 3, seed=9), draw(4, 3, seed=10))
    assert line == "wrong = grad_output * (rows.exp() - identity) / len(a)"
    assert "at `identity`" not in str(found)


# Scores that are capped and made probabilities; backward takes the cap's slope at the capped scores.
SoftCap = Fn.of("SoftCap", "q, k, v: capped = 2 * torch.tanh(q @ k.t() / 2); p = torch.softmax(capped, -1); "
    "save(q, k, v, capped, p); return p @ v",
    "grad_output: q, k, v, capped, p = saved; dp = grad_output @ v.t(); "
    "ds = p * (dp - (dp * p).sum(-1, keepdim=True)); ds = ds * (1 - torch.tanh(capped / 2) ** 2); "
    "return ds @ k, ds.t() @ q, p.t() @ grad_output")  # fmt: skip


def test_what_varies_with_the_inputs_is_not_blamed_because_other_values_of_it_would_mend():
    _, line = first(SoftCap, draw(4, 3, seed=1), draw(5, 3, seed=2), draw(5, 3, seed=3))
    assert line == "ds = ds * (1 - torch.tanh(capped / 2) ** 2)"
