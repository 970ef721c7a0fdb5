"""Sentences that no other test meets: what each row's program returns says those that it names, and is shown as it is.

``NBAUTOGRAD_UNSAID=1`` lists what no test of a run said (CONTRIBUTING).
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import said
import sharded_layers as layers
import torch
from fn import Fn
from notebook_shell import Notebook

import nbautograd
from nbautograd.command import freeze, main
from nbautograd.command.audit import _Line
from nbautograd.command.doctor import _torch
from nbautograd.command.finding import program, rule, table
from nbautograd.command.github import commands
from nbautograd.core import stumbles
from nbautograd.core.explaining.program import Program
from nbautograd.core.graphs.graph import Ghost
from nbautograd.core.kernel.sharded import Values
from nbautograd.core.recording import api
from nbautograd.inspection.compared_compiled import _way
from nbautograd.views.bundle import html, text
from nbautograd.views.issue import for_issue
from nbautograd.views.layout.contents import ghost_word, norm_texts
from nbautograd.widgets.slow_motion import motion_state

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
THRICE = Fn.of("Thrice", "x: return 2 * x", "g: return 3 * g")
UNUSED = Fn.of("Unused", "x: return 2 * x", "g: return None")
LONG = Fn.of("Long", "x: save(x); return x**2", "g: (x,) = saved; y = x; for _ in range(150): y = y + x; return g * y")
HALF = Fn.of(
    "Half", "x: assert x.dtype is torch.half; y = x.exp(); save(y); return y", "g: (y,) = saved; return 1.1 * g * y"
)
INNER = Fn.of(
    "Inner", "x: assert 0.5 - 1e-7 < x < 0.5 + 1e-7; save(x); return x * x", "g: (x,) = saved; return 2 * g * x"
)
ONCE = Fn.of(
    "Once",
    "x: return x",
    "g: if not torch.autograd._is_checkpoint_valid(): raise RuntimeError('only backward()'); return g",
)
MIXED = Fn.of("Mixed", "x: return x - x.mean(0, keepdim=True)", "g: return g - g.mean(0, keepdim=True)")
BATCHED = torch.library.custom_op("rare::doubled", lambda t: 2 * t, mutates_args=(), schema="(Tensor t) -> Tensor")
BATCHED.register_vmap(lambda info, dims, t: (3 * t, dims[0]))
PUSHED = Fn.of(
    "Pushed", "x: return 2 * x", "g: return 2 * g", setup_context="inputs, output: pass", jvp="t: return BATCHED(t)"
)
PUSHED.generate_vmap_rule = True
PRODUCT = Fn.of("Product", "a, b: save(a, b); return a @ b", "g: a, b = saved; return g @ b.T, a.T @ g")
SIZES = (2, 4), (4, 2)
GONE = Fn.of("Gone", "x: return 2 * x", "g: return 3 * g")
del globals()["Gone"]


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


def patched(name: str, value: Any, run: Callable[[], Any]) -> Any:
    with patch(f"nbautograd.{name}", value):
        return run()


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def audited(*calls: Callable[[], Any], **options: Any) -> Any:
    with nbautograd.audit() as audit:
        for call in calls:
            call()
    return audit.report(**options)


def in_folder(run: Callable[[str], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return run(folder)


def scripts(function: type) -> Any:
    return in_folder(audited(lambda: function.apply(x(3))).save_repro)


def page(code: str) -> Any:
    """The report of the program on the page of a finding."""
    space = {"x": x(3, 4)}
    exec(program(table()[code]), space)
    return space["report"]


def ranks(**told: Any) -> Any:
    ran = SimpleNamespace(**{"values": (), "stacks": {}, "errors": {}, **told})
    given = (x(4, 3),)
    check = lambda: nbautograd.compare(layers.tanh, layers.tanh, given, ranks=2, placements={})  # noqa: E731
    return patched("core.kernel.sharded.launched", lambda *_: ran, check)


def torch_that_is_broken() -> None:
    broken = SimpleNamespace(find_spec=lambda *_: (_ for _ in ()).throw(OSError("libtorch.so is missing")))
    with patch.dict(sys.modules), patch.object(sys, "meta_path", [broken]):
        del sys.modules["torch"]
        _torch()


def incomplete() -> Any:
    log = patched("core.recording.recorder.ForwardRecorder.leave", 1, lambda: recorded(DOUBLE, lambda f: f.apply(x(2))))
    text(log)
    api._recorder.errors.clear()
    stumbles.forget()
    return log


def marked() -> None:
    with (
        patch("nbautograd.course.marking.submissions.assignment"),
        patch("nbautograd.course.marking.submissions.submissions", lambda *_: {}),
        patch("nbautograd.course.marking.batch.mark_all", lambda *args: args[-1](1) or interrupted()),
        patch("sys.stderr.isatty", lambda: True, create=True),
    ):
        main(["mark", "out", "in", "-o", "nowhere.csv"])


def integers() -> None:
    torch.ones(3, dtype=torch.int64).sum().backward()


def infinite() -> torch.Tensor:
    return torch.ones(2, requires_grad=True) * INFINITY


INFINITY = torch.tensor([1.0, torch.inf])


def held_by_no_optimizer() -> Any:
    weight, other = x(2), x(2)
    optimizer = torch.optim.SGD([other], lr=0.1)  # noqa: F841
    weight.sum().backward()
    return nbautograd.explain(weight)


def waiting() -> Any:
    net = SimpleNamespace(module=torch.nn.Linear(2, 1))
    late = "Expected to have finished reduction in the prior iteration: did not receive grad for rank 0: 0 1"
    kind = "nbautograd.core.explaining.explain.kind_of"
    with patch.object(Program, "torch_object", lambda *_: net), patch(kind, lambda _: "unused_parameters"):
        return nbautograd.explain(RuntimeError(late))


ROWS = [
    ("audit.others", lambda: patched("core.recording.watching.SITUATIONS", 1, lambda: audited(lambda:
        TAKES.apply(x(3), 1), lambda: TAKES.apply(x(3), 2)))),
    ("audit.processes", lambda: audited(lambda: os.waitpid(os.fork() or os._exit(0), 0))),
    ("audit.traced", lambda: audited(lambda: torch.jit.trace(lambda a: DOUBLE.apply(a), (x(3),)))),
    ("audit.checking", lambda: patched("core.process_copy.why_not", lambda: "fork", lambda: audited(lambda:
        DOUBLE.apply(x(3)), progress=lambda *_: None))),
    ("views.audit.without_gradient", lambda: audited(lambda: DOUBLE.apply(torch.ones(3)))),
    ("views.audit.by_slice", lambda: audited(lambda: DOUBLE.apply(x(1000, 50)))),
    ("views.audit.by_directions", lambda: audited(lambda: MIXED.apply(x(1000, 50)))),
    ("audit.unclear_along", lambda: patched("inspection.evidence.directional_derivative", lambda *_, **__: None,
        lambda: audited(lambda: MIXED.apply(x(1000, 50))))),
    ("audit.repro_name", lambda: scripts(GONE)),
    ("audit.repro_needs_data", lambda: patched("inspection.repro._drawn_inputs", lambda *_: None, lambda:
        scripts(THRICE))),
    ("checking.because_half", lambda: list(commands(nbautograd.gradcheck(HALF.apply,
        (torch.randn(3).half().requires_grad_(),)), None, None))),
    ("checking.inside_smaller", lambda: nbautograd.gradcheck(INNER.apply,
        (x(1).mul(0).add(0.5).detach().requires_grad_(),))),
    ("checking.jvp_batched_wrong.what checking.jvp_batched_wrong.advice", lambda: nbautograd.gradcheck(PUSHED.apply,
        (x(3),))),
    ("checking.only_backward.advice", lambda: nbautograd.gradcheck(ONCE.apply, (x(3),))),
    ("checking.order2_too_large", lambda: patched("core.checking.second_order.TOO_MANY", 2, lambda:
        nbautograd.gradcheck(SQUARE.apply, (x(3),), order=2))),
    ("command.interrupted", lambda: patched("command.doctor.doctor", interrupted, lambda: main(["doctor"]))),
    ("command.doctor.torch_broken", torch_that_is_broken),
    ("command.freeze.unknown", lambda: freeze._say(freeze.Count(frozen=1, unknown=1), freeze.Path("copy"))),
    ("compare.autocast.advice", lambda: page("compare_autocast")),
    pytest.param("compare.compile.what compare.compile.advice", lambda: page("compare_compile"),
        marks=pytest.mark.slow),
    ("compare.compile_discarded", lambda: _way("discarded")),
    ("compare.mixed.advice", lambda: page("compare_mixed")),
    ("compare.ranks_hang", lambda: ranks(stacks={0: "line 3"})),
    ("compare.ranks_outputs", lambda: refused(lambda: ranks(values=[[Values((1, 2, 3), 1)]]))),
    ("compare.ranks_raised", lambda: ranks(errors={0: "ValueError"})),
    ("compare.sweep_stopped", lambda: patched("inspection.compare.Compare._sweep", interrupted, lambda:
        nbautograd.compare(DOUBLE.apply, lambda a: 2 * a, (x(2),), cases=[("four", (x(4),))]))),
    ("explain.no_grad.integer_root", lambda: nbautograd.explain(integers, apart=False)),
    ("explain.not_finite.came_in", lambda: nbautograd.explain(infinite, apart=False)),
    ("explain.optimizer_holds_others", held_by_no_optimizer),
    ("explain.refused_fork", lambda: patched("core.process_copy.why_not", lambda: "fork", lambda:
        nbautograd.explain(integers))),
    ("explain.unused_parameters.what", waiting),
    ("recording.incomplete", incomplete),
    ("command.page", lambda: in_folder(lambda folder: patched("command.page.write_page", str, lambda: main(["lab",
        "--headless", "--folder", folder])))),
    ("command.mark.progress command.mark.stopped", marked),
    ("command.audit.progress", lambda: _Line()(1, 2, "Double")),
    ("recording.failed_to_install", lambda: patched("core.recording.spy.private_ctx.backward_class", lambda _: None,
        lambda: recorded(Fn.of("Bare", "x: return x", "g: return g"), lambda f: f.apply(x(2))))),
    ("recording.missing.off", lambda: patched("core.recording.memory.off", True, lambda:
        patched("core.recording.memory.copier", lambda: None, lambda: recorded(DOUBLE, lambda f: f.apply(x(30)))))),
    ("views.compare.one_is_none", lambda: nbautograd.compare(UNUSED.apply, lambda a: 2 * a, (x(2),))),
    ("views.comparison.condition", lambda: nbautograd.compare(lambda a: 1 / (a - 1), lambda a: 1 / (a - 1), ((1 +
        0.0001 * torch.rand(8)).requires_grad_(),))),
    ("views.comparison.unseen", lambda: nbautograd.compare(PRODUCT.apply, torch.mm, tuple(torch.randn(*size,
        dtype=torch.bfloat16).requires_grad_() for size in SIZES))),
    ("views.motion.cut views.motion.line", lambda: motion_state(nbautograd.gradcheck(LONG.apply,
        (x(2),)).slow_motion())),
    ("views.aside.right.many", lambda: nbautograd.gradcheck(THREE.apply, (x(2), x(2), x(2)))),
    ("causes.fails_noncontiguous_input.what", lambda: nbautograd.gradcheck(VIEWED.apply, (x(2, 3),))),
    ("views.tensor.inf", lambda: recorded(INFINITE, lambda f: f.apply(x(30)))),
    ("views.call.double_backward", lambda: recorded(SQUARE, again)),
    ("views.call.inside", lambda: recorded(INSIDE, lambda f: f.apply(x(3)))),
    ("recording.missing.dtype views.tensor.unknown", lambda: recorded(TAKES, lambda f: f.apply(x(3), ODD))),
    ("inspection.no_graph", lambda: nbautograd.inspect(DETACHED, x(3))),
    ("checking.budget_unknown", lambda: refused(lambda: nbautograd.gradcheck(DOUBLE.apply, (x(3),), budget="much"))),
    ("compare.outputs_differ", lambda: refused(lambda: nbautograd.compare(DOUBLE.apply, lambda a: (a, a), (x(3),)))),
    ("compare.reference_raises", lambda: nbautograd.compare(DOUBLE.apply, lambda a: a.view(3) * 2, (x(3),),
        cases=[("four", (x(4),))])),
    ("compare.overflow", lambda: nbautograd.compare(SQUARE.apply, lambda a: a * a, (torch.tensor([1e+30, 2.0,
        3.0]).requires_grad_(),))),
    ("compare.offset.what compare.offset.advice", lambda: nbautograd.compare(CENTRED.apply, lambda a: a - a.mean(-1,
        keepdim=True), (torch.randn(16, 64, requires_grad=True),))),
    ("views.issue.repro", lambda: for_issue(nbautograd.gradcheck(THREE.apply, (x(2), x(2), x(2))))),
    ("views.issue.other_values", lambda: for_issue(nbautograd.gradcheck(THREE.apply, (x(2), x(2), x(2))),
        redact=True)),
    ("graphs.cut.integer", lambda: ghost_word(Ghost("x", "integer", (3,), None))),
    ("graphs.cut.not_required", lambda: ghost_word(Ghost("x", "not_required", (3,), None))),
    ("graphs.cut.unused", lambda: ghost_word(Ghost("x", "unused", (3,), None))),
    ("explain.empty_optimizer.rule", lambda: rule("empty_optimizer")),
    ("explain.unused.rule", lambda: rule("unused")),
    ("explain.unused_parameters.rule", lambda: rule("unused_parameters")),
    ("graphs.exploding", lambda: norm_texts((1.0, 1000.0, 1000000.0, 1000000000.0))),
    ("graphs.listed", lambda: nbautograd.explain(x(3), names={"a": x(1) * 2, "b": x(1) * 3})),
    ("causes.tensor_of_shape", lambda: nbautograd.gradcheck(HIDDEN.apply, (x(3),))),
]  # fmt: skip


CELLS = [
    ("magics.empty_body", "%%autograd_function"),
    ("explain.turned_off", "%autograd_explain --off"),
    ("magics.no_override", "%autograd_dispatches 3"),
]


@contextmanager
def says(ids: str) -> Iterator[None]:
    before = set(said.SAID)
    said.SAID.clear()
    yield
    now = set(said.SAID)
    said.SAID.update(before)
    assert set(ids.split()) - now == set()


@pytest.mark.parametrize(("ids", "program"), ROWS, ids=lambda one: one if isinstance(one, str) else "")
def test_a_program_says_it(ids: str, program: Callable[[], Any]) -> None:
    with says(ids):
        if dataclasses.is_dataclass(told := program()):
            text(told), html(told)


@pytest.mark.parametrize(("ids", "cell"), CELLS, ids=[row[0] for row in CELLS])
def test_a_cell_says_it(ids: str, cell: str, notebook: Notebook) -> None:
    with says(ids):
        notebook(cell)
