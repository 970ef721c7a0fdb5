"""A fix is offered only after it was tried at fresh points and shapes, and trying it does no harm."""

from __future__ import annotations

import itertools
import random
import time
from pathlib import Path

import pytest
import torch
from fn import Fn
from mistakes_in_plumbing import ClampedWithWrongBound
from own_mistakes import draw
from torch.autograd import Function

import nbautograd
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.repair import script
from nbautograd.core.checking.repair import search as repair
from nbautograd.core.checking.repair.search import Mending, Tries
from nbautograd.core.findings import Fix


class LinearNoTranspose(Fn):
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight)
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        print("FORWARD", output.shape)
        return output

    def backward(ctx, grad_output):
        print("BACKWARD", grad_output.shape)
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight.t())
        if ctx.needs_input_grad[1]:
            grad_weight = input.mm(grad_output)  # should be input.t()
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0).squeeze(0)
        return grad_input, grad_weight, grad_bias


def fix_of(fn, inputs) -> Fix | None:
    return next((f.fix for f in nbautograd.gradcheck(fn, inputs).findings if f.fix is not None), None)


def seed_inputs():
    a = torch.arange(4.0).view(2, 2).double().requires_grad_()
    b = torch.arange(6.0).view(2, 3).double().requires_grad_()
    return a, b


def test_the_mended_line_makes_the_gradient_right_where_it_was_never_tried() -> None:
    fix = fix_of(LinearNoTranspose.apply, seed_inputs())
    text = Path(__file__).read_text(encoding="utf-8").replace(fix.before, fix.source)
    body = text[text.index("class LinearNoTranspose") : text.index("def fix_of")]
    scope = {"Fn": Fn, "torch": torch}
    exec(body, scope)
    x, w, b = draw(5, 7), draw(7, 3, seed=1), draw(3, seed=2)
    assert torch.autograd.gradcheck(scope["LinearNoTranspose"].apply, (x, w, b))


# At x == 1 a changed constant gives the right number, anywhere else it does not.
AgreesAtOnesOnly = Fn.of("AgreesAtOnesOnly", "x: save(x); return x**4 + x.sin()", "g: (x,) = saved; return g * 2 * x")


def test_no_fix_that_fails_at_fresh_points_is_offered() -> None:
    report = nbautograd.gradcheck(AgreesAtOnesOnly.apply, (torch.ones(3, dtype=torch.float64, requires_grad=True),))
    assert report.verdict == "wrong"
    assert all(f.fix is None for f in report.findings)


# The sum over the wrong dimension fits a square input; so would an edit that only fits square inputs.
RightForSquareOnly = Fn.of("RightForSquareOnly", "x, b: ctx.columns = b.shape[0]; return x * 2 + b",
    "g: return 2 * g, g.sum(1)")  # fmt: skip
# No derivative on purpose: a reversal, one that forgets a None as well, a row that pads and is not learned.
Reversal = Fn.of("Reversal", "x, factor: ctx.factor = factor; return x.view_as(x)", "g: return -ctx.factor * g, None")
ReversalShort = Reversal.of("ReversalShort", "x, factor: return Reversal.forward(ctx, x, factor)",
    "g: return -ctx.factor * g")  # fmt: skip
Padded = Fn.of("Padded", "w, rows: save(rows); ctx.n = len(w); return w[rows]",
    "g: (rows,) = saved; gw = g.new_zeros(ctx.n, 2).index_add(0, rows, g); gw[0] = 0; return gw, None")  # fmt: skip


@pytest.mark.parametrize(
    ("fn", "inputs", "hinted"),
    [
        (Reversal, (draw(3), 0.5), True),
        (ReversalShort, (draw(3), 0.5), False),
        (Padded, (draw(4, 2), torch.tensor([0, 2, 1])), False),
    ],
)
def test_what_is_no_derivative_on_purpose_is_not_mended(fn, inputs, hinted) -> None:
    report = nbautograd.gradcheck(fn, inputs, order=1)
    assert report.verdict == "wrong"
    assert {f.fix for f in report.findings} == {None}
    assert [f.code for f in report.findings if f.kind != "bug"] == ["surrogate"] * hinted


# A mask that takes the diagonal with it, in a statement of its own; a minus before `j` would take nothing.
Causal = Fn.of("Causal", "x: i = torch.arange(x.shape[0])[:, None]; j = torch.arange(x.shape[1])[None]; "
    "p = x.masked_fill(j > i, -torch.inf).softmax(-1); save(p); return p.tril()",
    "g: (p,) = saved; i = torch.arange(p.shape[0])[:, None]; j = torch.arange(p.shape[1])[None]; "
    "g = g.masked_fill(j >= i, 0); return p * (g - (g * p).sum(-1, keepdim=True))")  # fmt: skip
# A number that a density, a power rule or a slope lacks is solved for: it stands nowhere else in the Function.
Gelu = Fn.of(
    "Gelu",
    "x: save(x); return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))",
    "g: (x,) = saved; pdf = torch.exp(-0.5 * x * x); return g * (0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * pdf)",
)
Erf = Fn.of("Erf", "x: save(x); return torch.erf(x)", "g: (x,) = saved; return g * 2 * torch.exp(-(x**2))")
Fast = Fn.of(
    "Fast",
    "x: save(x); u = 0.79788456 * (x + 0.044715 * x**3); return x * (1 + torch.tanh(u))",
    "g: (x,) = saved; t = torch.tanh(0.79788456 * (x + 0.044715 * x**3)); "
    "d = 0.79788456 * (1 + 0.044715 * x**2); return g * (1 + t + x * (1 - t * t) * d)",
)
Softplus = Fn.of(
    "Softplus",
    "x, beta: save(x); ctx.beta = beta; return torch.nn.functional.softplus(x, beta)",
    "g: (x,) = saved; return g * torch.sigmoid(x), None",
)
Swapped = Fn.of("Swapped", "x, w: save(x, w); return x @ w.t()",
    "g: x, w = saved; return g @ w, x.t() @ g")  # fmt: skip


@pytest.mark.parametrize(
    ("fn", "inputs", "mended"),
    [
        (Gelu, (draw(3, 4),), "pdf = torch.exp(-0.5 * x * x) / (2 * math.pi) ** 0.5"),
        (Erf, (draw(3, 4),), "return g * (2 / math.pi ** 0.5) * torch.exp(-(x**2))"),
        (Fast, (draw(3, 4),), "d = 0.79788456 * (1 + 3 * 0.044715 * x**2)"),
        (Softplus, (draw(3, 4), 2.0), "return g * torch.sigmoid(x * ctx.beta), None"),
        (Swapped, (draw(4, 4), draw(4, 4, seed=1)), "return g @ w, g.t() @ x"),
        (RightForSquareOnly, (draw(3, 3), draw(3, seed=1)), "return 2 * g, g.sum(0)"),
        (Causal, (draw(4, 4),), "g = g.masked_fill(j > i, 0)"),
    ],
)
def test_a_fix_is_what_a_person_would_write_and_works_for_other_shapes(fn, inputs, mended) -> None:
    fix = fix_of(fn, inputs)
    assert fix.source.strip() == mended


def test_trying_prints_nothing_and_leaves_random_numbers_alone(capsys) -> None:
    torch.manual_seed(3)
    random.seed(3)
    before = torch.get_rng_state(), random.getstate()
    assert fix_of(LinearNoTranspose.apply, seed_inputs()) is not None
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert capsys.readouterr().out == ""


def test_the_users_class_is_untouched() -> None:
    before = dict(vars(LinearNoTranspose))
    fix_of(LinearNoTranspose.apply, seed_inputs())
    assert dict(vars(LinearNoTranspose)) == before


WritesAFile = Fn.of("WritesAFile", "x: return x * 2", "g: import os; return g * 3 * (os.getpid() > 0)")


class CallsOpen(Fn):
    def forward(ctx, x):
        return x * 2

    def backward(ctx, g):
        with open(__file__) as file:
            return g * 3 * bool(file)


@pytest.mark.parametrize("cls", [WritesAFile, CallsOpen])
def test_a_backward_that_imports_or_opens_files_is_never_edited(cls) -> None:
    assert script.read(cls) is None
    report = nbautograd.gradcheck(cls, (draw(3),))
    assert report.verdict == "wrong"
    assert all(f.fix is None for f in report.findings)


def test_a_class_without_source_gets_no_fix_and_no_error() -> None:
    scope = {"Function": Function}
    text = (
        "class Unseen(Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n        return x * 2\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n        return g * 3\n"
    )
    exec(compile(text, "<nowhere>", "exec"), scope)
    report = nbautograd.gradcheck(scope["Unseen"], (draw(3),))
    assert report.findings[0].code == "constant_factor"
    assert report.findings[0].fix is None


def test_edits_keep_letters_beyond_ascii_in_place() -> None:
    class Umlaut(Fn):
        def forward(ctx, x):
            return x * 2

        def backward(ctx, grad):
            größe = grad  # 梯度
            return größe * 3

    fix = fix_of(Umlaut, (draw(3),))
    assert fix.source.strip() == "return größe * 2"


TwiceWrong = Fn.of("TwiceWrong", "x, w: save(x, w); return x @ w", "g: x, w = saved; return g @ w.t(), -(g.t() @ x)")


def test_two_edits_in_sequence_mend_what_one_cannot() -> None:
    fix = fix_of(TwiceWrong, (draw(4, 4), draw(4, 4, seed=1)))
    assert fix.verified
    right = {"return g @ w.t(), x.t() @ g", "return g @ w.t(), (g.t() @ x).t()"}
    assert fix.source.strip() in right


def test_a_change_that_is_right_at_a_few_points_only_is_not_offered() -> None:
    # x ** 2 < 0.3 is right at these inputs, and wrong between 0.3 and its root
    fix = fix_of(
        ClampedWithWrongBound, torch.tensor([-0.9, -0.1, 0.2, 0.25, 0.8, -0.7], dtype=torch.float64, requires_grad=True)
    )
    assert fix.source.strip() == "return g * (x.abs() < 0.3)"


def test_an_argument_that_is_none_here_is_not_given_up_for_good() -> None:
    Optional = Fn.of(
        "Optional",
        "x, bias: save(x, bias); return 3 * x if bias is None else 3 * x + bias",
        "g: _x, bias = saved; return 3 * g, g.sum(bias.shape)",
    )
    assert fix_of(Optional, (draw(4), None)) is None


def test_the_same_tries_are_made_on_any_machine(monkeypatch) -> None:
    left = []

    def counted(seconds_of_a_call: float) -> dict:
        clock = itertools.count()
        for name in ("time", "thread_time", "process_time", "perf_counter", "monotonic"):
            monkeypatch.setattr(time, name, lambda: next(clock) * seconds_of_a_call)
        made: list[Tries] = []
        monkeypatch.setattr(repair, "Tries", lambda tries: made.append(Tries(tries)) or made[0])
        problem = Problem(Unmendable, (draw(4),))
        with problem.session():
            problem.call()
            found = Mending()(problem, findings)
        left.append(made[0].left)
        return found

    findings = nbautograd.gradcheck(Unmendable, (draw(4),), hints="where").findings
    assert counted(1e-9) == counted(1e4) == findings
    assert left[0] == left[1]


Unmendable = Fn.of("Unmendable", "x: save(x); return torch.special.bessel_j0(x)", "g: (x,) = saved; return g * x.sin()")
MeanLoss = Fn.of("MeanLoss", "logits, target: said = logits.log_softmax(1); save(said, target); "
    "return -said.gather(1, target[:, None]).mean()",
    "g: said, target = saved; p = said.exp(); p[torch.arange(len(target)), target] -= 1; "
    "return g * p, None")  # fmt: skip


def test_labels_keep_the_size_of_their_samples_when_others_are_tried() -> None:
    fix = fix_of(MeanLoss, (draw(4, 3), torch.tensor([0, 2, 1, 1])))
    assert fix is not None
    sizes = ("target.numel()", "target.shape[0]", "p.shape[0]", "said.shape[0]")
    assert fix.source.strip() in {f"return g * p / {n}, None" for n in sizes}


Reordered = Fn.of("Reordered", "x, order: save(order); return x[:, order]",
    "g: (order,) = saved; return g[:, order], None")  # fmt: skip


def test_a_permutation_stays_one_when_others_are_tried() -> None:
    fix = fix_of(Reordered, (draw(5, 4), torch.tensor([2, 0, 3, 1])))
    assert fix.source.strip() == "return g[:, order.argsort()], None"


# What arrives for the second output is lost on the way to both inputs, each of which needs its own change.
Cell = Fn.of("Cell", "a, b: save(a, b); return a * b, a * a + 3 * b",
    "ga, gb: a, b = saved; return torch.stack([ga[0] * b[0], *(ga * b)[1:]]), ga * a + 3 * ga")  # fmt: skip


def test_a_change_that_leaves_another_input_wrong_is_not_offered() -> None:
    report = nbautograd.gradcheck(Cell, (draw(4), draw(4, seed=1)))
    wrong = {report.input_names[f.where[1]] for f in report.findings if f.kind == "bug" and f.where is not None}
    assert wrong == {"a", "b"}
    assert [f.fix for f in report.findings if f.fix is not None] == []


# A matrix shared by a batch gets the mean; where it has a batch of its own, or there is none, all is right.
MeanOverTheBatch = Fn.of("MeanOverTheBatch", "a, b: save(a, b); return a @ b",
    "g: a, b = saved; ga, gb = g @ b.mT, a.mT @ g; if ga.dim() > a.dim(): ga = ga.mean(0); "
    "if gb.dim() > b.dim(): gb = gb.sum(0); return ga, gb")  # fmt: skip


def test_a_factor_that_is_right_for_one_shape_of_batch_is_no_fix() -> None:
    report = nbautograd.gradcheck(MeanOverTheBatch, (draw(3, 3), draw(4, 3, 2, seed=1)))
    assert report.verdict == "wrong"
    for fix in (f.fix for f in report.findings if f.fix is not None):
        assert "shape" not in fix.source
        assert "return" not in fix.source


# The second gradient is computed from what the first one left of grad_output.
MasksInPlace = Fn.of("MasksInPlace", "x, y: save(x); return torch.relu(x) + y",
    "g: (x,) = saved; return g.mul_(x > 0), g.clone()")  # fmt: skip


def test_what_a_change_in_place_spoils_gets_no_cause_beside_it() -> None:
    report = nbautograd.gradcheck(MasksInPlace, (draw(6), draw(6, seed=1)))
    bugs = [f for f in report.findings if f.kind == "bug"]
    assert [f.message_id for f in bugs] == ["causes.mutates_grad_output", "checking.wrong_unclassified"]
    assert "g.mul(x > 0)" in bugs[0].fix.source


# The second output is of whole numbers, so nothing flows into it.
Shifted = Fn.of("Shifted",
    "x: y, at = torch.max_pool1d_with_indices(x, 2); save(x, at); ctx.mark_non_differentiable(at); return y, at",
    "g, g_at: x, at = saved; last = x.shape[-1] - 1; "
    "return torch.zeros_like(x).scatter_add_(-1, (at + 1).clamp(max=last), g)")  # fmt: skip
# A factor is missing from what a later value is computed from.
Gate = Fn.of("Gate", "x, w: t = torch.tanh(x); save(x, t, w); return t * w.sigmoid() + x",
    "g: _, t, w = saved; o = w.sigmoid(); do = g * t; return g * (1 + o * (1 - t * t)), do * o")  # fmt: skip


@pytest.mark.parametrize(
    ("cls", "inputs", "part"),
    [
        (Shifted, (draw(2, 6),), "at.clamp(max=last)"),
        (Gate, (draw(6), draw(6, seed=1)), "* (1 - o)"),
    ],
)
def test_a_change_is_made_of_what_makes_a_difference(cls, inputs, part) -> None:
    fix = fix_of(cls, inputs)
    assert part in fix.source


RowsWeighed = Fn.of("RowsWeighed", "x, w, power: save(x, w); ctx.power = power; return x**power * w[:, None]",
    "g: x, w = saved; rows = x.shape[0]; slope = ctx.power * x ** (ctx.power - 1); "
    "gx = g * slope * w[:, None]; gw = (g * x**ctx.power).sum(0); late = gw[:rows]; "
    "return gx, late, None")  # fmt: skip


def weighed() -> tuple[torch.Tensor, torch.Tensor, int]:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(3, 4, generator=generator, dtype=torch.float64) + 0.5
    return x.requires_grad_(), torch.rand(3, generator=generator, dtype=torch.float64).requires_grad_(), 3


def test_a_wrong_gradient_is_mended_though_another_value_beside_it_has_many_edits():
    class SignBeside(RowsWeighed):
        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            gx = g * ctx.power * x ** (ctx.power - 1) * w[:, None]
            gw = -(g * x**ctx.power).sum(1)
            return gx, gw, None

    found = nbautograd.gradcheck(SignBeside, weighed(), order=1).findings[0]
    assert found.fix.source.strip() == "gw = (g * x**ctx.power).sum(1)"
