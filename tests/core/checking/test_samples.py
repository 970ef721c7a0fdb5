"""Where very many entries differ a sample is refined; what it does not speak for is looked at as before."""

from __future__ import annotations

import pytest
import torch
from fn import Fn

import nbautograd
from nbautograd.core.checking.jacobian import forward_values
from nbautograd.core.checking.jacobian.forward_values import Forward
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.steps.refine import DRAWN, WORST

# whole checks, one for each kind of what is asked: `.ci/run` runs them with the slow tests
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_fixes")]

COUNT = 3000


def values(count: int = COUNT) -> torch.Tensor:
    torch.manual_seed(5)
    return (torch.rand(count, dtype=torch.float64) + 0.5).requires_grad_()


def cube_times(factor, kink=False):
    """A cube, or half of one beside zero, whose gradient is off by a factor that may depend on x."""

    class Cube(Fn):
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0) ** 3 + (0.25 * x.clamp(min=0) if kink else 0)

        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            slope = 3 * x.clamp(min=0) ** 2 + (0.25 * (x > 0) if kink else 0)
            return g * slope * factor(x)

    return Cube


@pytest.mark.usefixtures("fixes")
def test_one_error_in_all_entries_is_counted_everywhere_and_refined_in_a_sample():
    report = nbautograd.gradcheck(cube_times(lambda x: 1.5), values())
    [block] = report.blocks.values()
    assert (block.verdict, block.wrong) == ("mismatch", COUNT)
    assert block.wrong - block.not_refined == WORST + DRAWN
    [finding] = report.findings
    assert finding.code == "missing_factor"  # of the edit that leaves the factor out
    assert finding.fix.source.strip() == "return g * slope"


def test_a_small_error_beside_a_large_one_is_refined_too():
    small = values() < 1.49
    factor = torch.where(small, 1 + 3e-6, 2.0).detach()
    [block] = nbautograd.gradcheck(cube_times(lambda x: factor), values(), hints="where").blocks.values()
    assert (block.verdict, block.wrong) == ("mismatch", COUNT)


def test_kinks_are_not_counted_by_what_a_sample_says():
    x = values().detach()
    x[::2] = 0.0
    with torch.no_grad():
        factor = torch.ones(COUNT, dtype=torch.float64)
    slope = cube_times(lambda x: factor, kink=True)

    class Between(slope):
        """At zero any slope between those of the two sides is right."""

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return slope.backward(ctx, g) + g * 0.1 * (x == 0)

    [block] = nbautograd.gradcheck(Between, x.requires_grad_()).blocks.values()
    assert (block.verdict, block.wrong, block.reason) == ("subgradient", 0, "kink")


def test_the_sample_goes_by_the_seed_and_the_verdict_does_not():
    fn = cube_times(lambda x: 1.5)
    first, again, other = (nbautograd.gradcheck(fn, values(), seed=s, hints="what").blocks[0, 0] for s in (0, 0, 1))
    assert first.worst == again.worst
    assert other.wrong == first.wrong == COUNT


class SquaresSummed(Fn):
    """One output of many inputs."""

    FACTOR = 2.0

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x**2).sum()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return SquaresSummed.FACTOR * x * g


# Two inputs, many outputs.
Spread = Fn.of("Spread", "x: t = torch.linspace(0, 1, 200_000, dtype=x.dtype); save(x, t); "
    "return x[0] * t.sin() + x[0] * x[1] * t.cos()",
    "g: x, t = saved; "
    "return torch.stack([(g * (t.sin() + x[1] * t.cos())).sum(), (g * x[0] * t.cos()).sum()])")  # fmt: skip


@pytest.mark.parametrize(("fn", "count"), [(SquaresSummed, 200_000), (Spread, 2)])
def test_a_thin_jacobian_that_would_take_too_long_is_sampled(fn, count, monkeypatch):
    calls, plain = [], Problem.evaluate
    monkeypatch.setattr(Problem, "evaluate", lambda self, given: (calls.append(1), plain(self, given))[1])
    report = nbautograd.gradcheck(fn, values(count), order=1)
    assert report.verdict == "right"
    assert [b.structure for b in report.blocks.values()] == ["sampled"]
    assert "sampled" in str(report)
    assert len(calls) < 1000


def test_a_factor_in_a_sampled_block_is_named(monkeypatch):
    monkeypatch.setattr(SquaresSummed, "FACTOR", 3.0)
    report = nbautograd.gradcheck(SquaresSummed, values(60_000), order=1, hints="where")
    assert [f.code for f in report.findings] == ["constant_factor"]


def test_points_for_a_sample_are_never_all_held_at_once(monkeypatch):
    """Each holds the whole input: 10^7 elements at 128 points would take 10 GB."""
    most, plain = [], Forward.at
    monkeypatch.setattr(forward_values, "CHUNK_ELEMENTS", 400_000)
    monkeypatch.setattr(Forward, "at", lambda self, which, points: (most.append(len(points)),
                                                                    plain(self, which, points))[1])  # fmt: skip
    nbautograd.gradcheck(SquaresSummed, values(100_000), order=1)
    assert max(most) <= 4
