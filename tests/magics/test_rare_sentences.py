"""Sentences that no other test meets: what each row's program returns says those that it names, and is shown as it is.

``NBAUTOGRAD_UNSAID=1`` lists what no test of a run said (CONTRIBUTING).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import said
import torch
from fn import Fn
from notebook_shell import Notebook

import nbautograd
from nbautograd.command.finding import rule
from nbautograd.core.graphs.graph import Ghost
from nbautograd.views.bundle import html, text
from nbautograd.views.issue import for_issue
from nbautograd.views.layout.contents import ghost_word, norm_texts

THREE = Fn.of("Three", "a, b, c: return a + b + 2 * c", "g: return g, g, g")
VIEWED = Fn.of("Viewed", "x: save(x); return x.view(-1) * 2", "g: return 2 * g.view(ctx.saved_tensors[0].shape)")
INFINITE = Fn.of("Infinite", "x: return x / 0", "g: return g")
DOUBLE = Fn.of("Double", "x: return 2 * x", "g: return 2 * g")
SQUARE = Fn.of("Square", "x: save(x); return x * x", "g: (x,) = saved; return 2 * g * x")
INSIDE = Fn.of("Inside", "x: return Double.apply(x)", "g: return 2 * g")
DETACHED = Fn.of("Detached", "x: y = x * 2; ctx.mark_non_differentiable(y); return y", "g: return g")
TAKES = Fn.of("Takes", "x, other: return 2 * x", "g: return 2 * g, None")
ODD = torch.empty(40, dtype=torch.bits8)
KEPT = [torch.ones(3, dtype=torch.double, requires_grad=True)]
CENTRED = Fn.of("Centred", "x: return x - x.mean(-1, keepdim=True)", "g: return g")
HIDDEN = Fn.of("Hidden", "x: save(x); return x * KEPT[0]", "g: return g * KEPT[0]")


def x(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.double, requires_grad=True)


def recorded(function: type, run, level: str = "values"):
    with nbautograd.recording(function, DOUBLE, level=level) as log:
        run(function)
    return log


def again(function: type) -> None:
    (grad,) = torch.autograd.grad(function.apply(y := x(3)).sum(), y, create_graph=True)
    grad.sum().backward()


def refused(run) -> Exception:
    with pytest.raises(nbautograd.NbautogradError) as caught:
        run()
    return caught.value


ROWS = [
    ("views.aside.right.many", lambda: nbautograd.gradcheck(THREE.apply, (x(2), x(2), x(2)))),
    ("causes.fails_noncontiguous_input.what", lambda: nbautograd.gradcheck(VIEWED.apply, (x(2, 3),))),
    ("views.tensor.inf", lambda: recorded(INFINITE, lambda f: f.apply(x(30)))),
    ("views.call.double_backward", lambda: recorded(SQUARE, again)),
    ("views.call.inside", lambda: recorded(INSIDE, lambda f: f.apply(x(3)))),
    ("recording.missing.dtype views.tensor.unknown", lambda: recorded(TAKES, lambda f: f.apply(x(3), ODD))),
    ("inspection.no_graph", lambda: nbautograd.inspect(DETACHED, x(3))),
    ("checking.budget_unknown", lambda: refused(lambda: nbautograd.gradcheck(DOUBLE.apply, (x(3),), budget="much"))),
    ("compare.outputs_differ", lambda: refused(lambda: nbautograd.compare(DOUBLE.apply, lambda a: (a, a), (x(3),)))),
    (
        "compare.reference_raises",
        lambda: nbautograd.compare(DOUBLE.apply, lambda a: a.view(3) * 2, (x(3),), cases=[("four", (x(4),))]),
    ),
    (
        "compare.overflow",
        lambda: nbautograd.compare(SQUARE.apply, lambda a: a * a, (torch.tensor([1e30, 2.0, 3.0]).requires_grad_(),)),
    ),
    (
        "compare.offset.what compare.offset.advice",
        lambda: nbautograd.compare(
            CENTRED.apply, lambda a: a - a.mean(-1, keepdim=True), (torch.randn(16, 64, requires_grad=True),)
        ),
    ),
    ("views.issue.repro", lambda: for_issue(nbautograd.gradcheck(THREE.apply, (x(2), x(2), x(2))))),
    ("views.issue.other_values", lambda: for_issue(nbautograd.gradcheck(THREE.apply, (x(2), x(2), x(2))), redact=True)),
    ("graphs.cut.integer", lambda: ghost_word(Ghost("x", "integer", (3,), None))),
    ("graphs.cut.not_required", lambda: ghost_word(Ghost("x", "not_required", (3,), None))),
    ("graphs.cut.unused", lambda: ghost_word(Ghost("x", "unused", (3,), None))),
    ("explain.empty_optimizer.rule", lambda: rule("empty_optimizer")),
    ("explain.unused.rule", lambda: rule("unused")),
    ("explain.unused_parameters.rule", lambda: rule("unused_parameters")),
    ("graphs.exploding", lambda: norm_texts((1.0, 1e3, 1e6, 1e9))),
    ("graphs.listed", lambda: nbautograd.why_none(x(3), (x(2) * 2, x(2) * 3))),
    ("causes.tensor_of_shape", lambda: nbautograd.gradcheck(HIDDEN.apply, (x(3),))),
]


CELLS = [
    ("magics.empty_body", "%%autograd_function"),
    ("explain.turned_off", "%autograd_explain --off"),
    (
        "tracing.card_last",
        """\
%%autograd_function
class Asked:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return 1
for _ in range(501):
    torch.add(Asked(), 1)
""",
    ),
]


@contextmanager
def says(ids: str) -> Iterator[None]:
    before = set(said.SAID)
    said.SAID.clear()
    yield
    now = set(said.SAID)
    said.SAID.update(before)
    assert set(ids.split()) - now == set()


@pytest.mark.parametrize(("ids", "program"), ROWS, ids=[row[0] for row in ROWS])
def test_a_program_says_it(ids: str, program: Callable[[], Any]) -> None:
    with says(ids):
        if dataclasses.is_dataclass(told := program()):
            text(told), html(told)


@pytest.mark.parametrize(("ids", "cell"), CELLS, ids=[row[0] for row in CELLS])
def test_a_cell_says_it(ids: str, cell: str, notebook: Notebook) -> None:
    with says(ids):
        notebook(cell)
