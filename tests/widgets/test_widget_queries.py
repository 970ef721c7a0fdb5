"""What the page may ask of a check, what became of a Function since its last check, what older calls saw."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from comm_wire import Wire, decoded
from fn import Fn
from said import pattern

import nbautograd
from nbautograd.core.checking import entry_curve
from nbautograd.core.findings import Finding
from nbautograd.core.graphs.build import SAVED_OF_OPS
from nbautograd.core.recording.call import CallLog
from nbautograd.core.user_source import FunctionSource
from nbautograd.errors import InputError
from nbautograd.views.packing import Packed
from nbautograd.views.to_text import to_text
from nbautograd.widgets.calls import MOST_CALLS, calls_state, one_call
from nbautograd.widgets.encoding import encode
from nbautograd.widgets.gradcheck import since_last
from nbautograd.widgets.graph import GraphWidget, lens_state
from nbautograd.widgets.jacobian import again, decider, elsewhere, microscope
from nbautograd.widgets.states import Since


def numbers(packed: Packed) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(packed.buffer, packed.dtype).copy())


def squared() -> type:
    class Square(Fn):
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return 2 * x * grad_output

    return Square


def point(**more: Any) -> torch.Tensor:
    return torch.tensor([1.5, -2.0], dtype=torch.float64, requires_grad=True, **more)


def test_the_microscope_sees_the_forward() -> None:
    report = nbautograd.gradcheck(squared(), point())
    seen = microscope(report, {"block": [0, 0], "entry": [1, 1]})
    steps, curve = torch.tensor(seen.steps, dtype=torch.float64), seen.curves["float64"]
    assert curve.center == 4.0
    torch.testing.assert_close(numbers(curve.plus), (-2 + steps) ** 2)
    torch.testing.assert_close(numbers(curve.minus), (-2 - steps) ** 2)
    assert numbers(seen.curves["float32"].plus)[-1] == 4.0
    assert seen.claimed == -4.0


def test_the_microscope_on_a_jacobian_that_was_not_checked() -> None:
    report = nbautograd.jacobian(squared(), point())
    seen = microscope(report, {"block": [0, 0], "entry": [0, 0]})
    assert (seen.claimed, seen.curves["float64"].center) == (3.0, 2.25)
    assert list(report.widget().questions()) == ["zoom", "block", "microscope"]


def test_a_diagonal_of_ten_to_the_tenth_entries_answers_at_once(wire: Wire) -> None:
    x = torch.linspace(-1, 1, 100_000, dtype=torch.float64, requires_grad=True)
    report = nbautograd.jacobian(squared(), x)
    view = report.widget()
    (state,) = view.state.blocks
    assert (state.structure, state.entries) == ("diagonal", 10**10)
    assert sum(map(len, wire.sent[-1][2])) < 200_000
    zoom = view.questions()["zoom"]
    ranges = [50_000, 51_563], [50_000, 50_064]  # as a reader goes, to single entries
    replies = [zoom({"block": [0, 0], "rows": r, "cols": r}) for r in ranges]
    assert [reply.rows for reply in replies] == [25, 1]
    exact = torch.frombuffer(bytearray(replies[-1].analytical.buffer), dtype=torch.float64).reshape(64, 64)
    torch.testing.assert_close(exact, torch.diag(2 * x[50_000:50_064].detach()))


def test_complex_entries_count_as_pairs() -> None:
    z = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    seen = microscope(nbautograd.gradcheck(torch.conj, z), {"block": [0, 0], "entry": [1, 1]})
    assert seen.curves["float64"].center == -2.0
    assert numbers(seen.curves["float64"].plus)[0] == -3.0


@pytest.mark.parametrize("question", [{}, {"block": [0, 0], "entry": [0, 9]}, {"block": [5, 0], "entry": [0, 0]},
                                      {"block": "x", "entry": [0, -1]}])  # fmt: skip
def test_nonsense_gets_a_sentence(question: Any) -> None:
    report = nbautograd.gradcheck(squared(), point())
    with pytest.raises(InputError):
        microscope(report, question)


def test_another_point_is_judged_on_its_own() -> None:
    report = nbautograd.gradcheck(squared(), point())
    told = elsewhere(report, {"seed": 7})
    assert told.verdict == "right"
    with pytest.raises(InputError):
        elsewhere(report, {"seed": "7"})


@pytest.mark.parametrize(
    ("fn", "at", "options", "which", "then"),
    [
        (torch.sin, torch.linspace(0, 1, 9), {"budget": 1e-9}, "limit", "right"),
        (lambda x: x.sqrt(), torch.zeros(2, dtype=torch.float64), {}, "point", "right"),
        (Fn.of("Ste", "x: return x.round()", "g: return g"), torch.ones(2), {}, None, ""),
    ],
)
def test_what_would_decide_is_run_and_says_so(fn: Any, at: Any, options: Any, which: Any, then: str) -> None:
    report = nbautograd.gradcheck(fn, (at.requires_grad_(),), **options)
    assert (report.verdict == "cannot tell", decider(report)) == (True, which)
    if which is None:
        with pytest.raises(InputError):
            again(report)
    else:
        (card,) = again(report).document
        assert card.tone == then or not then


@pytest.mark.parametrize(("hints", "shown"), [("fix", True), ("none", False)])
def test_what_would_decide_gives_away_no_more_than_the_report(hints: str, shown: bool) -> None:
    Edge = Fn.of("Edge", "x: save(x); return x.sqrt()", "g: x, = saved; return g / x.sqrt()")
    report = nbautograd.gradcheck(Edge, (torch.zeros(2, dtype=torch.float64, requires_grad=True),), hints=hints)
    assert (decider(report), "x.sqrt()" in to_text(again(report).document)) == ("point", shown)


def test_the_function_goes_with_its_report() -> None:
    cls = squared()
    report, kept = nbautograd.gradcheck(cls, point()), weakref.ref(cls)
    assert entry_curve.problem_of(report).cls is cls
    del cls, report
    gc.collect()
    assert kept() is None


def test_large_inputs_are_not_kept() -> None:
    report = nbautograd.gradcheck(
        torch.sin, torch.zeros(entry_curve.LARGEST + 1, dtype=torch.float64, requires_grad=True)
    )
    with pytest.raises(InputError, match=pattern("checking.not_kept")):
        entry_curve.problem_of(report)


def test_what_became_of_it_since_the_last_check(samples: Any) -> None:
    def run(wrong: bool, text: str) -> Any:
        return samples.gradcheck(wrong, function="Edited", source=FunctionSource("Edited", "", 1, text, "combined"))

    first, second, third = run(True, "a"), run(True, "b"), run(False, "c")
    assert since_last(first) is None
    assert since_last(second) == Since(fixed=[], new=[], still=["`d output / d weight`"])
    assert since_last(third) == Since(fixed=["`d output / d weight`"], new=[], still=[])
    assert since_last(third) == Since(fixed=["`d output / d weight`"], new=[], still=[])
    assert since_last(run(True, "c")) is None  # the same source at another point: nothing was edited


def test_another_function_of_the_same_name_mends_nothing(samples: Any) -> None:
    def run(wrong: bool, module: str) -> Any:
        source = FunctionSource("Norm", "", 1, module, "combined")
        return samples.gradcheck(wrong, function="Norm", source=source, identity=f"{module}.Norm")

    assert since_last(run(True, "a")) is None
    assert since_last(run(False, "b")) is None
    sine, cosine = (nbautograd.gradcheck(type("Norm", (squared(),), {"__module__": m}), point()) for m in "ab")
    assert sine.function == cosine.function
    assert sine.identity != cosine.identity


def test_what_is_new_since_the_last_check_is_said_without_the_advice_that_its_headline_gives(samples: Any) -> None:
    def run(text: str, *findings: Finding) -> Any:
        source = FunctionSource("Raising", "", 1, text, "combined")
        return since_last(samples.gradcheck(function="Raising", source=source, findings=findings, blocks={}))

    bug = Finding("tensor_on_ctx", "bug", "causes.tensor_on_ctx", {"name": "x"})
    assert run("a") is None
    assert run("b", bug) == Since(fixed=[], new=[bug.what], still=[])
    assert bug.advice not in bug.what


def test_older_calls_are_sent_when_asked_for(wire: Wire, samples: Any) -> None:
    forward, backward = samples.calls()
    log = CallLog(tuple(replace(c, index=2 * k + j) for k in range(500) for j, c in enumerate((forward, backward))))
    state = calls_state(log)
    assert len(state.calls) == MOST_CALLS == 500
    assert state.calls[0].document is None
    assert state.calls[-1].document
    told = decoded(encode(one_call(log, {"calls": [0]})))
    weight = next(block for block in told["calls"][0]["document"] if "weight" in str(block))
    thumbnail = weight["body"][1]["spans"][0]["array"]
    assert np.frombuffer(thumbnail["buffer"], thumbnail["dtype"]).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    with pytest.raises(InputError):
        one_call(log, {"calls": [10**9]})


def test_a_block_that_nobody_can_decide_now_is_not_called_mended(samples: Any) -> None:
    def run(wrong: bool, text: str, verdict: str) -> Any:
        report = samples.gradcheck(wrong, function="Undecided", source=FunctionSource("U", "", 1, text, "combined"))
        blocks = {at: replace(b, verdict=verdict) if not wrong else b for at, b in report.blocks.items()}
        return replace(report, blocks=blocks)

    assert since_last(run(True, "a", "")) is None
    assert since_last(run(False, "b", "undecided")) == Since(fixed=[], new=[], still=[])


def drawn(name: str = "cost", then: Any = lambda cost: None) -> tuple[torch.Tensor, torch.Tensor, Any]:
    w = torch.ones(3, dtype=torch.complex64 if name == "complex" else torch.float32, requires_grad=True)
    cost = (w * w).sum() if name != "wide" else w * w
    then(cost)
    return w, cost, nbautograd.graph(cost, names={"w": w, name: cost} if name else {"w": w})


@pytest.mark.parametrize(
    ("name", "then", "runs"),
    [
        ("cost", lambda cost: None, True),
        ("", lambda cost: None, False),  # nothing to call it by
        ("wide", lambda cost: None, False),  # no scalar
        ("complex", lambda cost: None, False),  # torch would ask for a gradient
        ("cost", lambda cost: cost.backward(retain_graph=True), True),
        ("cost", lambda cost: cost.backward(), False),  # freed
    ],
)
def test_backward_for_a_lens_is_offered_where_it_can_run(name: str, then: Any, runs: bool) -> None:
    w, _cost, graph = drawn(name, then)
    lens = lens_state(graph)
    assert (lens.norms, lens.runs) == (None, runs)
    if runs:
        before = 0 if w.grad is None else w.grad.clone()
        ran = GraphWidget(graph)._backward({})
        assert ran.lenses.norms is not None
        torch.testing.assert_close(w.grad - before, 2 * w.detach())


def test_backward_for_a_lens_of_a_tensor_that_is_gone_or_that_raises() -> None:
    _w, cost, graph = drawn()
    view = GraphWidget(graph)
    cost.register_hook(lambda g: 1 / 0)
    assert any("ZeroDivisionError" in note for note in view._backward({}).notes)
    del cost
    gc.collect()
    with pytest.raises(InputError):
        view._backward({})


def test_what_flows_after_the_picture_was_drawn_moves_nothing_in_any_of_its_pictures() -> None:
    model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(40)])
    loss = model(torch.ones(2, 4)).square().sum()
    view = GraphWidget(nbautograd.graph(loss, names={"model": model, "loss": loss}))
    group = next(box.key for box in view.questions()["picture"]({}).layout.boxes if box.kind == "group")
    asked: list[dict[str, Any]] = [{}, {"opened": [group]}, {"wide": 300}, {"opened": "all"}, {"name": "model.0.bias"}]

    def places() -> Any:
        made = [view.questions()["picture"](question).layout for question in asked]
        bare = {"label": "", "style": "", "title": ""}
        return [replace(one, paths=[replace(p, **bare) for p in one.paths]) for one in made]

    before = places()
    told = view.questions()["backward"]({})
    assert places() == before
    _node, norm = told.lenses.least
    assert norm == min(
        p.gradient.norm for p in (*view.value.nodes, *view.value.edges) if p.gradient and p.gradient.norm
    )
    labels = [path.label for path in view.questions()["picture"]({"opened": "all"}).layout.paths if path.edges]
    assert labels
    assert not any("×" in label for label in labels)


def test_what_a_large_graph_keeps_is_read_when_asked_for_before_and_after_what_flows() -> None:
    x = h = torch.ones(4, requires_grad=True)
    for _ in range(SAVED_OF_OPS):
        h = h.exp()
    loss = squared().apply(h).sum()
    read = nbautograd.graph(loss, names={}, saved=True)
    view = GraphWidget(nbautograd.graph(loss, names={"x": x, "loss": loss}))
    assert (lens_state(view.value).kept, lens_state(view.value).reads) == (None, True)
    places = [(box.key, box.x, box.y) for box in view.questions()["picture"]({}).layout.boxes]
    for kind, flowed in (("saved", False), ("backward", True), ("saved", True)):
        lenses = view.questions()[kind]({}).lenses
        assert lenses.kept == lens_state(read).kept
        assert (lenses.norms is not None, lenses.reads) == (flowed, False)
        assert [(box.key, box.x, box.y) for box in view.questions()["picture"]({}).layout.boxes] == places
