"""Probes see what the engine hides, touch nothing of the user's, and say nothing about what is right."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from own_mistakes import draw

import nbautograd
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.relations import inputs_laid_out

pytestmark = pytest.mark.usefixtures("without_fixes")


Scaled = Fn.of("Scaled", "x, w: save(x, w); return (x * w).mean(0)",
    "g: x, w = saved; rows = x.shape[0]; return (g * w).expand_as(x) / rows, (g * x / rows).float()")  # fmt: skip


def test_what_the_engine_summed_and_cast_is_told_as_lints() -> None:
    report = nbautograd.gradcheck(Scaled, (draw(5, 3), draw(3, seed=1)), order=1)
    lints = {f.code for f in report.findings if f.kind == "lint"}
    assert {"grad_shape_reduced", "grad_dtype_cast"} <= lints


NegativeLost = Fn.of("NegativeLost", "x: ctx.shape = x.shape; return x.sum()",
    "g: return g.clamp(min=0).expand(ctx.shape)")  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_a_lost_negative_grad_output_is_seen_whatever_the_random_signs(seed: int) -> None:
    report = nbautograd.gradcheck(NegativeLost, (draw(3),), order=1, seed=seed)
    assert report.findings[0].code == "nonlinear_in_grad_output"


class WarmStart(Fn):
    """Solves with a symmetric matrix; backward starts at its last answer, in single precision, and takes few steps."""

    matrix = torch.tensor([[3.0, 1.0, 0.5], [1.0, 2.0, -0.3], [0.5, -0.3, 1.5]])
    last = torch.zeros(3)

    def forward(ctx, b):
        return torch.linalg.solve(WarmStart.matrix.to(b), b)

    def backward(ctx, g):
        x = WarmStart.last
        for _ in range(60):
            x = x + 0.4 * (g.float() - WarmStart.matrix @ x)
        WarmStart.last = x
        return x.to(g)


WarmClipped = WarmStart.of("WarmClipped", backward="g: return WarmStart.backward(ctx, g.clamp(-1, 1))")
WarmAndMore = WarmStart.of("WarmAndMore", backward="g: return WarmStart.backward(ctx, g) + 1e-3")


@pytest.mark.parametrize(
    ("fn", "code"),
    [(WarmStart, None), (WarmClipped, "nonlinear_in_grad_output"), (WarmAndMore, "affine_in_grad_output")],
)
def test_what_a_solver_keeps_of_its_last_answer_is_not_nonlinear(fn, code) -> None:
    report = nbautograd.gradcheck(fn, (draw(3).float().detach().requires_grad_(),), order=1)
    assert (report.verdict == "wrong") == (code is not None)
    assert code is None or code in {finding.code for finding in report.findings}
    assert code is not None or not {f.code for f in report.findings if f.kind == "bug"}


class Unsteady(Fn):
    calls = 0

    def forward(ctx, x):
        Unsteady.calls += 1
        return x * (1 + Unsteady.calls % 7)

    def backward(ctx, g):
        return g


def test_a_forward_that_changes_from_call_to_call_cannot_be_judged() -> None:
    report = nbautograd.gradcheck(Unsteady, (draw(3),))
    assert [(f.code, f.kind) for f in report.findings] == [("nondeterministic_forward", "lint")]
    assert report.verdict == "cannot tell"


def jittered(size):
    class Jittered(Fn):
        calls = 0

        def forward(ctx, x):
            Jittered.calls += 1
            return 2 * x * (1 + size * (Jittered.calls % 7))

        def backward(ctx, g):
            return 3 * g

    return Jittered


def test_last_digits_that_change_from_call_to_call_hide_no_wrong_gradient() -> None:
    assert nbautograd.gradcheck(jittered(1e-15), (draw(3),)).verdict == "wrong"


@pytest.mark.parametrize("size", [1e-8, 1e-6])
def test_a_block_that_differs_is_never_right(size) -> None:
    report = nbautograd.gradcheck(jittered(size), (draw(3),))
    assert {f.code for f in report.findings} == {"nondeterministic_forward"}
    assert (report.verdict, report.blocks[0, 0].verdict == "match") == ("cannot tell", False)


OnlyMatrices = Fn.of("OnlyMatrices", "x, w: save(x, w); return x @ w", "g: x, w = saved; return g @ w.t(), x.t() @ g")
MixesTheBatch = OnlyMatrices.of("MixesTheBatch", backward="g: x, w = saved; gx = g @ w.transpose(-2, -1); "
    "return gx.flip(0) if gx.dim() > 2 else gx, x.flatten(0, -2).t() @ g.flatten(0, -2)")  # fmt: skip


@pytest.mark.parametrize(("cls", "said"), [(OnlyMatrices, "fails"), (MixesTheBatch, "wrong")])
def test_a_backward_for_one_sample_only_is_noted_last(cls: type, said: str) -> None:
    report = nbautograd.gradcheck(cls, (draw(3, 4), draw(4, 2, seed=1)))
    assert report.verdict == "right"
    assert [(f.code, f.kind) for f in report.findings] == [("fails_batched", "note")]
    assert said in report.findings[0].message


# Right for each input alone and for all three, wrong for the first two.
OnlyTogether = Fn.of("OnlyTogether", "a, b, c: save(a, b, c); return a * b * c",
    "grad: a, b, c = saved; wrong = 2 if ctx.needs_input_grad == (True, True, False) else 1; "
    "return wrong * grad * b * c, grad * a * c, grad * a * b")  # fmt: skip


# Right for any input that has memory of its own for each element.
ReadsMemory = Fn.of("ReadsMemory", "x: save(x); return x * x",
    "grad: (x,) = saved; return 2 * grad * (x if 0 not in x.stride() else x * x)")  # fmt: skip


@pytest.mark.parametrize(
    ("fn", "inputs", "code"),
    [
        (OnlyTogether, tuple(draw(3, seed=k) for k in range(3)), "needs_input_grad_wrong"),
        (ReadsMemory, (draw(3, 4),), "wrong_noncontiguous_input"),
    ],
)
def test_subsets_of_the_inputs_and_inputs_whose_elements_share_memory_are_tried(fn, inputs, code):
    found = nbautograd.gradcheck(fn, inputs, order=1).findings
    assert [f.code for f in found if f.kind == "bug"] == [code]


# The second gradient is computed from what the first one left of grad_output.
OverwritesFirst = Fn.of("OverwritesFirst", "a, b: save(a, b); return a * b + b",
    "g: a, b = saved; return g.mul_(b), g * (a + 1)")  # fmt: skip


def test_a_backward_that_writes_into_grad_output_does_not_write_into_what_it_is_compared_by() -> None:
    report = nbautograd.gradcheck(OverwritesFirst, (draw(3, 4), draw(3, 4, seed=1)))
    assert report.blocks[0, 0].verdict == "match"
    assert report.blocks[0, 1].verdict == "mismatch"
    assert "mutates_grad_output" in {f.code for f in report.findings}


# Its ``view`` takes one number seen everywhere, and not what is transposed.
NeedsAView = Fn.of("NeedsAView", "x: return 2 * x", "g: return (2 * g.view(-1)).view(g.shape)")
# Takes a gradient in any order, as a kernel that is handed strides, but none that is one number.
NeedsMemory = Fn.of("NeedsMemory", "x: return 2 * x",
    'g: if 0 in g.stride(): raise RuntimeError("a stride of 0"); return 2 * g')  # fmt: skip


@pytest.mark.parametrize(("fn", "after"), [(NeedsAView, "y.t()"), (NeedsMemory, "y.sum()")])
def test_a_layout_is_named_only_after_what_really_fails(fn, after: str) -> None:
    (finding,) = (f for f in nbautograd.gradcheck(fn, (draw(3, 4),), order=1).findings if f.kind == "bug")
    assert (finding.code, finding.params["after"]) == ("fails_noncontiguous_grad", after)


def cross_entropy(name: str, taken: str) -> type:
    """As public ones that make the gradient in the memory of what they saved; it takes several backwards."""
    return Fn.of(name, "x: y = x.softmax(-1); save(y); return -y.log()[..., 0], y.sum()",
        f"g, _: (y,) = saved; y[..., 0] -= {taken}; return y.mul_(g[..., None])")  # fmt: skip


ONCE = (
    (Fn.of("Frees", "x: ctx.y = x.detach().tanh(); return ctx.y * 1",
        "g: y, ctx.y = ctx.y, None; return g * (1 - y * y)"), "right"),
    (Fn.of("WritesKept", "x: y = x.exp(); save(y); return y * 2", "g: (y,) = saved; return y.mul_(g * 2)"), "right"),
    (cross_entropy("Entropy", "1"), "right"),
    (cross_entropy("WrongEntropy", "0.9"), "wrong"),
)  # fmt: skip
TABLE = torch.ones(4, dtype=torch.float64)
WRITES_SAVED = (
    Fn.of("WritesOutput", "x: y = x.exp(); save(y); return y", "g: (y,) = saved; return y.mul_(g)"),
    Fn.of("WritesInput", "x: save(x); return x ** 2", "g: (x,) = saved; return x.detach().mul_(2).mul_(g)"),
    Fn.of("PopsOutput", "x: y = x.exp(); ctx.kept = [y.detach()]; return y", "g: return ctx.kept.pop().mul_(g)"),
    Fn.of("WritesTable", "x: save(TABLE); return x * TABLE", "g: (t,) = saved; return t.mul_(g)"),
)


@pytest.mark.parametrize(("fn", "verdict"), ONCE)
def test_a_backward_that_works_once_is_judged_by_its_values(fn: type, verdict: str) -> None:
    assert nbautograd.gradcheck(fn, (draw(3, 4),), order=1).verdict == verdict


@pytest.mark.parametrize("fn", WRITES_SAVED)
def test_a_backward_that_writes_over_what_forward_saved_is_named(fn) -> None:
    report = nbautograd.gradcheck(fn, (draw(4),), order=1)
    assert (report.verdict, report.findings[0].code) == ("wrong", "mutates_saved")
    assert report.findings[0].line is not None


# Cannot be called at a matrix of one number, whatever its layout.
Inverse = Fn.of("Inverse", "x: y = torch.linalg.inv(x); save(y); return y", "g: (y,) = saved; return -y.T @ g @ y.T")


def test_a_layout_is_no_reason_where_the_same_numbers_raise_without_it():
    problem = Problem(Inverse, (draw(3, 3),))
    with problem.session():
        problem.call()
        with pytest.raises(torch.linalg.LinAlgError):
            list(inputs_laid_out(problem))


DropsInBackward = Fn.of("DropsInBackward", "x: return 4 * x", "g: return 4 * g * (torch.rand_like(g) > 0.1)")


@pytest.mark.parametrize("seed", range(6, 14))
def test_a_backward_that_drops_little_is_found_whatever_the_seed(seed: int) -> None:
    assert nbautograd.gradcheck(DropsInBackward, (draw(6),), seed=seed).findings[0].code == "nondeterministic_backward"
