"""What is said of small programs that end in torch's gradient errors: the right tensor and line, or no line."""

from __future__ import annotations

import linecache
import re
import textwrap
from dataclasses import replace
from typing import Any

import pytest
import torch
from gradient_errors import FINITE, MISLEADING, OTHERS, PROGRAMS, QUIET, SYMPTOMS, Case, cases
from said import pattern

from nbautograd import explain, messages
from nbautograd.core.explaining import explain as rooms
from nbautograd.core.explaining.cause import TrialEdit
from nbautograd.core.explaining.torch_errors import kind_of
from nbautograd.core.explaining.trial import Rerun, edited, reaches
from nbautograd.core.torch_private.nodes import SHOWS_SAVED
from nbautograd.inspection.explanation import Explanation

OF_FUNCTIONS = ("returned", "mark_dirty", "save_for_backward")  # whose own lines the source shows
HIDDEN = () if SHOWS_SAVED else ("in_place",)


def seen(text: str) -> list[Case]:
    """The programs whose errors do not depend on what nodes saved, where this torch does not show that."""
    return [case for case in cases(text) if not case.code.startswith(HIDDEN)]


def program(case: Case) -> Rerun:
    """The program as a cell would run: its source can be read by its file name."""
    file = f"<program {case.name}>"
    linecache.cache[file] = (len(case.text), None, case.text.splitlines(keepends=True), file)

    def call(texts: dict[str, str]) -> None:
        torch.default_generator.manual_seed(0)
        exec(compile(texts[file], file, "exec"), {"torch": torch, "__name__": "__main__"})

    return Rerun(call, {file: case.text})


def error_of(run: Rerun) -> Exception:
    try:
        run()
    except Exception as error:
        return error
    raise AssertionError("the program ends without an error")


def lines(explanation: Explanation) -> dict[str, Any]:
    places = {"made": explanation.made, "saved": explanation.saved, "did": explanation.did}
    return {name: None if place is None else place.line for name, place in places.items()}


@pytest.mark.parametrize("case", seen(PROGRAMS), ids=lambda case: case.name)
def test_a_watched_run_names_the_tensor_and_the_lines(case):
    run = program(case)
    found = explain(error_of(run), run=run, apart=False)
    assert (found.code, found.tensor, lines(found)["did"]) == (case.code, case.tensor, case.did)
    assert lines(found)["made"] in (case.made, None) or case.made is None
    assert lines(found)["saved"] == case.saved or case.saved is None
    assert found.run == "here"


TRIED = {
    "state carried over": "loss.backward()\nh = h.detach()",
    "states of an lstm": "loss.backward()\nstate = tuple(part.detach() for part in state)",
    "a loss kept in a list of an object": "objective.backward()\n"
    "smooth.recent = [part.detach() for part in smooth.recent]",
    "no_grad block": "with torch.enable_grad():",
    "no_grad decorator": "@torch.enable_grad()",
    "set_grad_enabled": "with torch.set_grad_enabled(True):",
    "detach of the prediction": "err = pred - 1",
    "data": "y = w * 2",
    "torch.tensor of a tensor": "z = y",
    "gradient penalty without a graph": "g, = torch.autograd.grad(y, x, create_graph=True)",
    # two lines would have to change, or no one knows which tensor is meant
    **dict.fromkeys(("item", "numpy round trip", "argmax", "nothing requires grad")),
}


# lines that give the tensor its gradient
LEAVES = {
    "a step makes a new tensor": "with torch.no_grad(): w -= 0.1 * w.grad",
    "a conversion behind requires_grad": "x = torch.randn(3).double().requires_grad_()",
    "a gradient in a variable": "h = x * 2\nh.retain_grad()",
    "assert that a result has a gradient": "h = x * 2\nh.retain_grad()",
    "a product with None behind a detach": "h = w * 2",
    "gradients of a frozen layer": None,
}


@pytest.mark.slow
@pytest.mark.usefixtures("optimizers_imported")
@pytest.mark.parametrize("name", [*(name for name in TRIED if name in {case.name for case in seen(PROGRAMS)}), *LEAVES])
def test_a_changed_line_lets_gradients_through(name):
    run = program(next(case for case in (*cases(PROGRAMS), *cases(SYMPTOMS)) if case.name == name))
    fix = explain(error_of(run), run=run).fix
    assert (fix.source if fix is not None else None) == {**TRIED, **LEAVES}[name]
    assert fix is None or fix.verified


@pytest.mark.usefixtures("optimizers_imported")
@pytest.mark.parametrize(
    ("after", "works"),
    [
        ("y = x * 2", True),
        ("y = x * 3", False),  # another loss
        ("y = x.detach() * 2", False),  # as before
        ("y = x * 2 + 0 * x.sqrt().log()", False),  # gradients that are not finite
        ("y = missing", False),
    ],
)
def test_a_change_is_offered_only_where_it_leaves_the_values_and_lets_gradients_arrive(after, works):
    text = "x = torch.ones(3, requires_grad=True)\ny = x.data * 2\ny.sum().backward()\n"
    text = text.replace("ones", "zeros") if "sqrt" in after else text
    run = program(Case("tried", "", "", text))
    assert reaches(run, TrialEdit("<program tried>", 2, "y = x.data * 2", after)) == works


@pytest.mark.parametrize("case", seen(PROGRAMS + MISLEADING), ids=lambda case: case.name)
def test_what_an_error_leaves_behind_names_the_right_tensor_and_no_line_that_ran_before(case):
    error = error_of(program(case))
    found = explain(error)
    at_the_line = found.did is None or found.did == found.raised or found.code.startswith(OF_FUNCTIONS)
    assert (at_the_line, found.made, found.saved) == (True, None, None)
    assert lines(found)["did"] in (case.did, None)
    assert found.code.partition("_")[0] in (case.code.partition("_")[0], "unused")  # a run may show why it is unused
    assert str(found)


@pytest.mark.parametrize("case", seen(MISLEADING), ids=lambda case: case.name)
def test_a_line_that_only_looks_to_blame_is_not_named(case):
    run = program(case)
    assert lines(explain(error_of(run), run=run, apart=False))["did"] == case.did


@pytest.mark.parametrize("shown", [True, False])
def test_where_saved_tensors_are_hidden_no_tensor_is_named_and_no_graph_said_to_be_gone(shown, monkeypatch):
    monkeypatch.setattr(rooms, "SHOWS_SAVED", shown)
    monkeypatch.setattr(rooms, "in_place", lambda program: None)
    run = program(next(case for case in cases(PROGRAMS) if case.name == "exp then add"))
    found = explain(error_of(run))
    assert (found.code, found.tensor, found.did) == ("in_place", "", None)
    assert (messages.text("explain.in_place.rule") in " ".join(str(found).split())) == shown
    assert (messages.text("explain.hidden", version=torch.__version__) in " ".join(str(found).split())) != shown
    assert ("explain_run_again" in [f.code for f in found.findings]) == shown  # a run would not show it either


@pytest.fixture(scope="module")
def optimizers_imported():
    """Torch imports a good part of itself, and makes folders for it, when the first optimizer is made."""
    torch.optim.SGD([torch.ones(1)], lr=0.1)


@pytest.mark.usefixtures("optimizers_imported")
@pytest.mark.parametrize("case", cases(FINITE), ids=lambda case: case.name)
def test_the_first_nan_or_infinity_is_found_with_its_trap(case):
    run = program(case)
    found = explain(lambda: run())
    assert (found.code, lines(found)["did"]) == (case.code, case.did or lines(found)["did"])
    assert found.tensor == case.tensor or not case.tensor


@pytest.mark.usefixtures("optimizers_imported")
@pytest.mark.parametrize("case", cases(SYMPTOMS), ids=lambda case: case.name)
def test_a_run_that_ends_in_any_error_or_in_none_says_what_it_saw(case):
    run = program(case)
    found = explain(lambda: run())
    assert (found.code, found.tensor, lines(found)["did"]) == (case.code, case.tensor, case.did)
    assert lines(found)["made"] == case.made or case.made is None
    assert found.run == "copy"


# a program whose step lies between a forward and its backward -> what goes, what comes instead, how far it is shown
STEPS = {
    "a GAN": (
        """
        G, D = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        g_opt, d_opt = (torch.optim.SGD(net.parameters(), lr=0.1) for net in (G, D))
        for _ in range(2):
            fake = G(torch.ones(8, 2))
            d_loss = D(torch.ones(8, 3)).mean() - D(fake.detach()).mean()
            g_loss = D(fake).square().mean()
            d_opt.zero_grad()
            d_loss.backward()
            # it learns

            d_opt.step()
            g_opt.zero_grad()
            g_loss.backward()
            g_opt.step()
        """,
        "g_loss = D(fake).square().mean()\nd_opt.zero_grad()\nd_loss.backward()\n# it learns\n\nd_opt.step()",
        "d_opt.zero_grad()\nd_loss.backward()\n# it learns\n\nd_opt.step()\ng_loss = D(fake).square().mean()",
        "further",
    ),
    "a score that both losses read": (
        """
        actor, critic = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
        a_opt, c_opt = (torch.optim.SGD(net.parameters(), lr=0.1) for net in (actor, critic))
        q = critic(actor(torch.ones(8, 4)))
        c_loss = (q - 1).square().mean()
        c_opt.zero_grad()
        c_loss.backward(retain_graph=True)
        c_opt.step()

        a_loss = -q.mean()
        a_opt.zero_grad()
        a_loss.backward()
        """,
        "c_loss.backward(retain_graph=True)\nc_opt.step()",
        "c_loss.backward(retain_graph=True)\nc_opt.step()\nq = critic(actor(torch.ones(8, 4)))",
        "further",
    ),
    "a state that the loss does not read": (
        """
        rnn, head = nn.RNN(3, 4), nn.Linear(4, 1)
        opt = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1)
        h = torch.zeros(1, 2, 4)
        for _ in range(3):
            out, h = rnn(torch.ones(4, 2, 3), h)
            loss = head(out).square().mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            opt.step()
        """,
        "loss.backward(retain_graph=True)",
        "loss.backward(retain_graph=True)\nh = h.detach()",
        "further",
    ),
    "a recurrent network": (
        """
        cell = nn.RNNCell(3, 4)
        opt = torch.optim.SGD(cell.parameters(), lr=0.1)
        h = torch.zeros(2, 4)
        for _ in range(3):
            h = cell(torch.ones(2, 3), h)
            loss = h.pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            opt.step()
        """,
        "loss.backward(retain_graph=True)",
        "loss.backward(retain_graph=True)\nh = h.detach()",
        "further",
    ),
    "a state by another name": (
        """
        cell = nn.RNNCell(3, 4)
        state = torch.zeros(2, 4)
        for _ in range(3):
            next_state = cell(torch.ones(2, 3), state)
            loss = next_state.pow(2).mean()
            loss.backward()
            state = next_state
        """,
        "loss.backward()",
        "loss.backward()\nnext_state = next_state.detach()",
        "reaches",
    ),
    "a gradient after the step": (
        """
        w = torch.ones(2, requires_grad=True)
        opt = torch.optim.SGD([w], lr=0.1)
        loss = (w * w).sum()
        loss.backward(retain_graph=True)
        opt.step()
        again = torch.autograd.grad(loss, [w])
        """,
        "opt.step()\nagain = torch.autograd.grad(loss, [w])",
        "again = torch.autograd.grad(loss, [w])\nopt.step()",
        "same",
    ),
    "gradients that a function leaves switched off": (
        """
        net = nn.Linear(3, 1)
        def evaluate(x):
            net.eval()
            torch.set_grad_enabled(False)
            score = net(x).mean()

            return score.item()
        for _ in range(2):
            loss = net(torch.ones(4, 3)).square().mean()
            loss.backward()
            evaluate(torch.ones(4, 3))
        """,
        "torch.set_grad_enabled(False)\nscore = net(x).mean()\n\nreturn score.item()",
        "with torch.no_grad():\n    score = net(x).mean()\n\n    return score.item()",
        "further",
    ),
}


@pytest.mark.slow
@pytest.mark.usefixtures("optimizers_imported")
@pytest.mark.parametrize("name", [name for name in STEPS if SHOWS_SAVED or name.startswith("gradients")])
def test_lines_that_stand_in_the_wrong_order_or_switch_off_too_much_are_changed_together(name):
    text, before, after, shown = STEPS[name]
    run = program(Case(name, "", "", "from torch import nn\n" + textwrap.dedent(text)))
    error = error_of(run)
    torch.set_grad_enabled(True)  # which one of them leaves switched off
    found = explain(error, run=run)
    assert (found.fix.before, found.fix.source, found.params["tried"]) == (before, after, shown)
    assert str(found)


def test_an_edit_of_several_lines_keeps_the_indentation_of_the_first():
    text = "def f():\n    if a:\n        x = 1\n\n    return x\n"
    edit = TrialEdit("f", 2, "if a:\n    x = 1\n\nreturn x", "return x\n\nif a:\n    x = 1")
    assert edited(text, edit) == "def f():\n    return x\n\n    if a:\n        x = 1\n"
    with pytest.raises(ValueError, match="line 3"):
        edited(text, replace(edit, line=3))


@pytest.mark.usefixtures("optimizers_imported")
@pytest.mark.parametrize("case", cases(QUIET), ids=lambda case: case.name)
def test_of_what_is_meant_nothing_is_said(case):
    run = program(case)
    assert explain(lambda: run()).code == case.code


@pytest.mark.parametrize("case", cases(OTHERS), ids=lambda case: case.name)
def test_other_errors_get_no_answer(case):
    error = error_of(program(case))
    assert kind_of(error) is None
    found = explain(error)
    assert (found.code, found.tensor, found.did, bool(found)) == ("not_torch", "", None, False)


HEAD = "import torch\nfrom torch import nn\n"
SQUARE = """class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, *ws):
        ctx.save_for_backward(x, *ws)
        return x * ws[0]
    @staticmethod
    def backward(ctx, g):
        x, *ws = ctx.saved_tensors
        gw = (g * x).sum(1)
        if len(ws) > 1:
            return g * ws[0], gw, None
        gw = (g * x).sum(0)
        return g * ws[0], gw
"""
# a program -> what is said of it, what is not
SAID = {
    "a write by what detach() gives": (
        "w = torch.ones(3, requires_grad=True)\np = w.sigmoid()\n"
        "def less():\n    v = p.detach()\n    v -= v.mean()\n    return v\n(p * less()).sum().backward()\n",
        (pattern("explain.in_place.changed", line=7), pattern("explain.in_place.rule")),
        (pattern("explain.freed.rule"),),
    ),
    "gradients of one input, then of the other": (
        "a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)\nf, g = a.exp(), b.exp()\n"
        "loss = f.sum() + g.sum()\n"
        "torch.autograd.grad(loss, [a])\ntorch.autograd.grad(loss, [b])\ng.mean().backward()\n",
        (pattern("explain.freed.earlier"), r"\(line 7"),
        ("line 6",),
    ),
    "a draw within a sum": (
        "w, s = torch.zeros(2, requires_grad=True), torch.ones(2, requires_grad=True)\n"
        "y = w + torch.distributions.Normal(torch.zeros(2), s).sample()\ntorch.autograd.grad(y.sum(), [w, s])\n",
        (pattern("explain.no_grad.inside"),),
        ("its result",),
    ),
    "another leaf than the one that is written into": (
        "w, several = torch.ones(2, requires_grad=True), [torch.ones(2, requires_grad=True)]\nseveral[0].add_(w)\n",
        (pattern("explain.leaf.rule"),),
        (pattern("explain.leaf.what", name="w"),),
    ),
    "a result of what is named": (
        "h = torch.ones(2, requires_grad=True) * 2\n(h * 2).requires_grad_(False)\n",
        (pattern("explain.not_a_leaf.rule"),),
        (pattern("explain.not_a_leaf.what", name="h"),),
    ),
    "an infinity that is masked into a NaN": (
        "x = torch.ones(2, 2, requires_grad=True)\ns = x.masked_fill(torch.eye(2).bool(), -torch.inf)\n"
        "loss = (s @ torch.zeros(2, 1)).sum()\nloss.backward()\n",
        (pattern("explain.not_finite.forward", what="NaN"),),
        (pattern("explain.not_finite.came_in"),),
    ),
    "a NaN in what is handed over": (
        "x = torch.tensor([1.0, float('nan')])\nloss = nn.Linear(2, 1)(x).sum()\nloss.backward()\n",
        (pattern("explain.not_finite.forward", op="tensor", line=3),),
        ("`linear`",),
    ),
    "an infinity that becomes a NaN further on": (
        "x = torch.tensor([4.0, 1.0], requires_grad=True)\n"
        "((x * torch.tensor([1.0, 0.0])).pow(0.5)).sum().backward()\n",
        (pattern("explain.not_finite.backward", what="Inf"), pattern("explain.not_finite.became")),
        (),
    ),
    "an argument of a star, and two returns": (
        SQUARE + "x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)\n"
        "Scaled.apply(x, w, torch.ones(1)).sum().backward()\n",
        (pattern("explain.returned_shape.what", argument="ws[0]", got="2"),),
        (),
    ),
    "a write on another thread": (
        "import threading\ny = torch.ones(3, requires_grad=True).exp()\n"
        "other = threading.Thread(target=y.detach().zero_)\n"
        "other.start()\nother.join()\ny.sum().backward()\n",
        (pattern("explain.unseen"),),
        (pattern("explain.in_place.changed", tensor="`y`"),),
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_a_sentence_is_said_only_where_it_was_seen(name):
    text, said, not_said = SAID[name]
    run = program(Case(name, "", "", HEAD + text))
    found = explain(lambda: run(), apart=False)
    if found.code.startswith("in_place") and not SHOWS_SAVED:
        pytest.skip("this torch shows saved tensors only by unpacking them")
    words = str(found)
    assert [part for part in said if not re.search(part, words)] == []
    assert [part for part in not_said if re.search(part, words)] == []


def test_the_line_that_removed_a_gradient_is_named_where_later_backwards_gave_none():
    m, h, x = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1), torch.ones(1, 2)

    def main():
        m(x).sum().backward()
        m.zero_grad()
        h(x).sum().backward()
        return m.weight

    found = explain(main, apart=False)
    assert (found.code, found.did, found.tensor) == ("grad_none_removed", None, "m.weight")
    assert "`m.zero_grad()`" in str(found)
