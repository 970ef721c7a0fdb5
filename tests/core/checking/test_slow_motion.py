"""Backward in slow motion: which lines are right, which goes wrong first, what it should be, where nothing is known."""

from __future__ import annotations

import pickle

import pytest
import torch
from fn import Fn
from own_mistakes import normal

from nbautograd import gradcheck
from nbautograd.core.checking.slow_motion import slow_motion
from nbautograd.errors import InputError
from nbautograd.views.builders.motion import stop_text

Silu = Fn.of(
    "Silu",
    "x: h = torch.sigmoid(x); save(x, h); return h * x",
    "g: x, h = saved; gh = g * x; slope = h * (1 + h); gx = g * h; return gx + gh * slope",
)
Linear = Fn.of(
    "Linear",
    "x, w, b: save(x, w); return x @ w.T + b",
    "g: x, w = saved; gx = g @ w.flip(0); gw = x.T @ g; gb = g.sum(0); return gx, gw.T * 2, gb",
)
Right = Fn.of("Right", "x: save(x); return x.exp() + x", "g: (x,) = saved; e = x.exp(); return g * e + g")
Cube = Fn.of("Cube", "x: save(x); return x * x * x", "g: (x,) = saved; slope = 3 * x; return slope * g")
Raises = Fn.of("Raises", "x: save(x); return x * x", "g: (x,) = saved; twice = 2 * x; return twice @ g.reshape(7, 7)")
Nans = Fn.of("Nans", "x: save(x); return x.sqrt()", "g: (x,) = saved; root = (-x).sqrt(); return g / (2 * root)")
Loop = Fn.of("Loop", "x: save(x); return 3 * x", "g: total = 0; for turn in range(3): total = total + g; return total")
Deaf = Fn.of(
    "Deaf",
    "x, w: save(x, w); return x.mm(w)",
    "g: x, w = saved; ones = x.new_ones(len(x), w.shape[1]); return ones.mm(w.t()), x.t().mm(ones)",
)
Plain = Fn.of("Plain", "x: return x.clone()", "g: return g")


LINEAR = (normal(4, 3), normal(5, 3, seed=1), normal(5, seed=2))
# the stops as the statement and what is known of it, then what is known of each gradient
CASES = [
    (Silu, (normal(4, 3),), "fix", ["right", "wrong", "right", "follows"], ["wrong"]),
    # only what comes out is known: the line that is wrong is before it, and nothing is said of that
    (Silu, (normal(4, 3),), "none", ["right", "", "", "wrong by here"], ["wrong"]),
    (Linear, LINEAR, "none", ["wrong", "", "right", "wrong by here"], ["wrong", "wrong", "right"]),
    (Deaf, (normal(3, 4), normal(4, 2)), "fix", ["wrong", "follows"], ["wrong", "wrong"]),
    (Cube, (normal(3),), "none", ["wrong", "follows"], ["wrong"]),
    (Right, (normal(3),), "fix", ["right", "right"], ["right"]),
    (Raises, (normal(3),), "none", [""], []),
    (Nans, (normal(3).detach().abs().requires_grad_(),), "none", ["wrong", "follows"], ["wrong"]),
    (Loop, (normal(3),), "fix", ["right", "right", "right"], ["right"]),
    (Plain, (normal(0, 3),), "fix", [], [""]),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "inputs", "hints", "stops", "gradients"), CASES)
def test_what_is_known_of_each_line_and_gradient(cls, inputs, hints, stops, gradients) -> None:
    motion = gradcheck(cls, inputs, hints=hints).slow_motion()
    assert [stop.known for stop in motion.stops] == stops, str(motion)
    assert [gradient.known for gradient in motion.gradients] == gradients
    assert motion.raised is (cls is Raises)
    assert str(pickle.loads(pickle.dumps(motion))) == str(motion)
    html = motion._repr_mimebundle_()["text/html"]
    assert ("✗" in html) is any(gradient.known == "wrong" for gradient in motion.gradients)
    assert "<table" in html


def test_what_a_value_should_be_is_what_torch_computes() -> None:
    x = normal(4, 3)
    motion = gradcheck(Silu, (x,)).slow_motion()
    slope, returned = motion.stops[1].values[0], motion.gradients[0]
    h = torch.sigmoid(x.detach())

    def elements(value) -> torch.Tensor:
        return torch.tensor(value.tensor.values, dtype=torch.float64).view(4, 3)

    assert elements(slope.right).allclose(h * (1 - h))
    (right,) = torch.autograd.grad(torch.nn.functional.silu(x), x, elements(motion.arrived[0]))
    assert elements(returned.right).allclose(right)
    assert (stop_text(motion, motion.stops[1]), motion.stops[1].reads) == ("slope = h * (1 + h)", ("h",))


def test_a_check_takes_no_longer_for_it(monkeypatch) -> None:
    calls = []
    monkeypatch.setattr("nbautograd.core.checking.slow_motion.slow_motion", lambda report: calls.append(report))
    report = gradcheck(Silu, (normal(4, 3),))
    assert report._repr_mimebundle_()
    assert not calls
    report.slow_motion()
    assert calls == [report]


def test_a_backward_without_source_has_numbers() -> None:
    space: dict = {}
    exec(  # as in a module that came without its text
        "import torch\nclass Bare(torch.autograd.Function):\n @staticmethod\n def forward(ctx, x): return 2 * x\n"
        " @staticmethod\n def backward(ctx, g):\n  return 3 * g\n",
        space,
    )
    motion = gradcheck(space["Bare"], (normal(3),)).slow_motion()
    assert (motion.lines, [stop.line for stop in motion.stops], motion.gradients[0].known) == ((), [7], "wrong")


@pytest.mark.parametrize(
    ("fn", "code"),
    [(torch.sin, "motion_no_function"), (lambda x: Silu.apply(2 * x), "motion_no_function"), (Right, "not_kept")],
)
def test_what_has_no_backward_of_its_own_and_a_report_of_another_session_are_a_sentence(fn, code) -> None:
    report = gradcheck(fn, (normal(3),))
    with pytest.raises(InputError) as raised:
        slow_motion(report if fn is not Right else pickle.loads(pickle.dumps(report)))
    assert raised.value.message_id == f"checking.{code}"
