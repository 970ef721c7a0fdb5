"""Values of a backward that keep edits from being tried: what cannot be computed, and what nothing wrong depends on."""

from __future__ import annotations

import ast

import torch
from fn import Fn

import nbautograd
from nbautograd.core.checking.point import Point
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.repair.grammar import edits
from nbautograd.core.checking.repair.script import Hints, names, places, read
from nbautograd.core.checking.repair.values import idle, noted_values
from nbautograd.core.checking.repair.verification_points import Stage

RowsWeighed = Fn.of("RowsWeighed", "x, w, power: save(x, w); ctx.power = power; return x**power * w[:, None]",
    "g: x, w = saved; rows = x.shape[0]; slope = ctx.power * x ** (ctx.power - 1); "
    "gx = g * slope * w[:, None]; gw = (g * x**ctx.power).sum(0); late = gw[:rows]; "
    "return gx, late, None")  # fmt: skip


def weighed() -> tuple[torch.Tensor, torch.Tensor, int]:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(3, 4, generator=generator, dtype=torch.float64) + 0.5
    return x.requires_grad_(), torch.rand(3, generator=generator, dtype=torch.float64).requires_grad_(), 3


def noted():
    problem = Problem(RowsWeighed, weighed())
    script = read(RowsWeighed)
    at = Stage(Point(problem, problem.fresh()))
    return script, noted_values(script, at)


def test_edits_that_cannot_be_computed_are_not_made():
    script, known = noted()
    given = [*names(script), "ctx.power"]
    everything = {(e.node.lineno, e.replacement) for e in edits(script, given, Hints(), {})}
    kept = {(e.node.lineno, e.replacement) for e in edits(script, given, Hints(), {}, known)}
    line = next(p.line for p in places(script) if script.source(p.value).startswith("g * slope"))
    left_out = {text for at, text in everything - kept if at == line}
    assert "g * slope * w[:, None] * late" in left_out  # not assigned before
    assert "g * slope * w[:, None] * w" in left_out  # three elements beside rows of four
    assert {"(g * slope * w[:, None]).conj()", "w.t()"} <= left_out  # of real numbers, of one dimension
    assert {"g * slope * w[:, None] * x", "-(g * slope * w[:, None])"} <= {text for at, text in kept if at == line}
    assert kept < everything


def test_values_that_differ_from_pass_to_pass_count_as_unknown():
    Looped = Fn.of(
        "Looped",
        "x: save(x); return x.cumsum(0)",
        "g: part = g; for _ in range(2): part = part[1:]; return g.flip(0).cumsum(0).flip(0) + 0 * part.sum()",
    )

    problem = Problem(Looped, (torch.ones(4, dtype=torch.float64, requires_grad=True),))
    script, at = read(Looped), Stage(Point(problem, problem.fresh()))
    known = noted_values(script, at)
    cut = next(p.value for p in places(script) if script.source(p.value) == "part[1:]")
    assert known.of[id(cut)] is None
    assert known.names[id(cut)]["part"] is None
    assert known.names[id(cut)]["g"].shape == (4,)


def idle_text(body: str, *arguments: int) -> set[str]:
    tree = ast.parse(f"def backward(ctx, g):\n{body}").body[0]
    lines = f"def backward(ctx, g):\n{body}".split("\n")
    return {lines[a - 1][b:d] for a, b, c, d in idle(tree, arguments)}


def test_values_that_no_wrong_gradient_is_computed_from_are_idle():
    body = "    a = g * 2\n    b = a.sum()\n    c = g.exp()\n    return a, b, c"
    assert idle_text(body, 0) == {"a.sum()", "g.exp()", "b", "c"}
    assert idle_text(body, 1) == {"g.exp()", "a", "c"}
    assert idle_text(body, 0, 1, 2) == set()


def test_what_is_changed_in_place_or_tested_is_never_idle():
    written = "    a = g * 2\n    b = a.view(-1)\n    b[0] = g.sum()\n    c = a.mul_(3)\n    return a, c"
    assert idle_text(written, 0) == {"c"}
    called = "    a = g * 2\n    b = g.exp()\n    a.add_(b)\n    return a, g"
    assert idle_text(called, 1) == {"a"}
    tested = "    a = g * 2\n    if a.sum() > 0:\n        g = g + 1\n    return g, a"
    assert idle_text(tested, 0) == {"a"}
    closed = "    a = g * 2\n    def f(x):\n        return a * x\n    return f(g), g"
    assert idle_text(closed, 0) == {"g"}
    assert idle_text("    return (*g, 1)", 0) == set()


def test_a_wrong_gradient_is_mended_though_another_value_beside_it_has_many_edits():
    class SignBeside(RowsWeighed):
        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            gx = g * ctx.power * x ** (ctx.power - 1) * w[:, None]
            gw = -(g * x**ctx.power).sum(1)
            return gx, gw, None

    found = nbautograd.gradcheck(SignBeside, weighed(), order=1).findings[0]
    assert found.fix is not None
    assert found.fix.source.strip() == "gw = (g * x**ctx.power).sum(1)"
