"""Where what is made of a tensor loses its way back, through variables, functions and modules, sure or only likely."""

from __future__ import annotations

import ast

import pytest
import torch
from torch import nn

import nbautograd
from nbautograd.core.graphs.source_dataflow import DataflowReader, Frame


def leaf():
    return torch.ones(3, requires_grad=True)


def written(line):
    with open(__file__, encoding="utf-8") as file:
        return file.readlines()[line - 1]


def helper(value):
    scaled = value * 2
    return scaled.detach() + 1  # helper


def outer(first, second):
    return helper(second) * first


@torch.no_grad()  # decorated
def quiet(value):
    return value * 2


class Cutting(nn.Module):
    def forward(self, x):
        return x.data * 2  # cutting


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        hidden = torch.tanh(self.first(x))
        hidden = self.stop(hidden)
        return self.second(hidden)

    def stop(self, x):
        return torch.tensor(x.tolist())  # stop


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.bias = nn.Parameter(torch.ones(3))

    def forward(self, x):
        with torch.no_grad():
            scale = self.weight * 2  # frozen
        return x * scale + self.bias


def test_a_variable_made_of_the_tensor_is_followed():
    a, b = leaf(), leaf()
    y = a.exp() * 2
    z = y.detach()  # variable
    loss = (z * b).sum()
    found = nbautograd.why_none(a, loss)
    assert found.code == "grad_none_cut"
    assert "# variable" in written(found.line)
    assert found.params["text"] == "y.detach()"


def test_the_line_inside_a_function_is_found_and_said_to_be_likely():
    a, b = leaf(), leaf()
    loss = outer(b, a).sum()
    found = nbautograd.why_none(a, loss)
    assert found.code == "grad_none_cut_likely"
    assert "# helper" in written(found.line)
    assert "most likely line" in found.message
    assert "of `helper`" in found.message
    assert "not observed running" in found.message
    (ghost,) = nbautograd.graph(loss).ghosts
    assert (ghost.name, ghost.where, ghost.sure, ghost.line) == ("a", "helper", False, found.line)


def test_a_decorated_function_is_named():
    a, b = leaf(), leaf()
    loss = (quiet(a) * b).sum()
    found = nbautograd.why_none(a, loss)
    assert "torch.no_grad()" in found.params["text"]
    assert str(found.params["where"]) == " of `quiet`"


def test_the_line_inside_a_modules_forward_is_found_for_a_parameter():
    net = Net()
    loss = net(torch.ones(2, 3)).sum()
    found = nbautograd.why_none(net.first.weight, loss)
    assert "# stop" in written(found.line)
    assert "of `Net.stop`" in found.message
    assert {g.name: g.where for g in nbautograd.graph(loss).ghosts} == dict.fromkeys(
        ["first.weight", "first.bias"], "Net.stop"
    )


def test_a_module_in_a_sequential_is_read_too():
    net = nn.Sequential(nn.Linear(3, 3), Cutting(), nn.Linear(3, 3))
    loss = net(torch.ones(2, 3)).sum()
    assert "# cutting" in written(nbautograd.why_none(net[0].bias, loss).line)


def test_a_loop_over_modules_is_read():
    layers = nn.ModuleList([nn.Linear(3, 3), Cutting(), nn.Linear(3, 3)])
    x = torch.ones(2, 3)
    for layer in layers:
        x = layer(x)
    assert "# cutting" in written(nbautograd.why_none(layers[0].bias, x.sum()).line)


def test_no_grad_inside_forward_is_found():
    net = Frozen()
    loss = net(leaf()).sum()
    found = nbautograd.why_none(net.weight, loss)
    assert "# frozen" in written(found.line)
    assert found.params["text"] == "with torch.no_grad()"


@pytest.mark.parametrize(("code", "reason"), [
    ("a.argmax()", "integer"), ("torch.argmax(a)", "integer"), ("a.to(torch.int64)", "integer"), ("a > 0.5", "integer"),
    ("a.to(device).long()", "integer"), ("torch.tensor(a)", "python"), ("torch.from_numpy(2 * a.numpy())", "python"),
    ("np.asarray(a)", "python"), ("float(a.sum())", "python"), ("[v.item() for v in a.unbind()]", "python"),
    ("(a * 2).exp().data", "detach"), ("f(b, g(a.detach()))", "detach"), ("a.to(torch.float64)", ""), ("b.long()", ""),
    ("torch.stack([a, b])", ""),
])  # fmt: skip
def test_each_way_out_is_known_and_others_are_not(code, reason):
    flow = DataflowReader().flow(ast.parse(code, mode="eval").body, Frame({}, {"a"}))
    assert (flow.cut.reason if flow.cut else "") == reason


@pytest.mark.parametrize(("code", "line", "sure"), [
    ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    b = a.detach()", 4, False),
    ("match 1:\n    case 1:\n        b = a.detach()", 3, False),
    ("d = {}\nd.update(k=a.detach())\nb = d['k']", 2, True),
    ("d = {}\nd.setdefault('k', a.detach())\nb = d['k']", 2, True),
    ("class O: pass\no = O()\nsetattr(o, 'x', a.detach())\nb = o.x", 3, True),
    ("b = torch.zeros(3)\nb.copy_(a.detach())", 2, True),
    ("b = torch.zeros(3)\nwith torch.no_grad():\n    torch.mul(a, 2, out=b)", 3, True),
    ("def f():\n    global b\n    b = a.detach()\nf()", 3, False),
    ("def f():\n    return a.detach()\nb = f()", 2, False),
])  # fmt: skip
def test_each_way_into_a_variable_is_followed(code, line, sure, tmp_path):
    file = tmp_path / "program.py"
    asked = "graph(loss, names={'a': a, 'c': c}), why_none(a, loss, names={'a': a, 'c': c})"
    file.write_text(f"{code}\nloss = (b * c).sum()\ngraph, finding = {asked}\n", encoding="utf-8")
    names = {"torch": torch, "graph": nbautograd.graph, "why_none": nbautograd.why_none, "__name__": "__main__"}
    space = {**names, "a": leaf(), "c": leaf()}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), space)
    (ghost,) = space["graph"].ghosts
    assert (ghost.name, ghost.line, ghost.sure) == ("a", line, sure)
    assert (space["finding"].line, space["finding"].code.endswith("_likely")) == (line, not sure)


def test_a_cut_that_leads_nowhere_is_not_the_reason():
    a, c = leaf(), leaf()
    b = a.detach()
    loss = c.sum()
    assert nbautograd.why_none(a, loss, names={"a": a}).code == "grad_none_not_a_part"
    assert b.sum() == 3


def test_what_is_only_logged_is_not_blamed():
    a, b, logged = leaf(), leaf(), []
    logged.append(a.item() if a.numel() == 1 else a.detach())
    hidden = a * 3
    loss = (hidden.long().double() * b).sum()  # long
    found = nbautograd.why_none(a, loss)
    assert "# long" in written(found.line)


def test_a_branch_is_only_likely():
    a, b = leaf(), leaf()
    y = a * 2
    if a.numel() > 2:
        y = y.detach()  # branch
    found = nbautograd.why_none(a, (y * b).sum())
    assert found.code == "grad_none_cut_likely"
    assert "# branch" in written(found.line)


def test_without_any_cut_no_line_is_claimed():
    a, b = leaf(), leaf()
    other = torch.ones_like(b) * b
    found = nbautograd.why_none(a, other.sum())
    assert found.code == "grad_none_not_a_part"
    assert found.line is None


def test_recursion_and_what_cannot_be_read_do_no_harm():
    def again(value, depth=0):
        return again(value, depth + 1) if depth < 3 else value.detach()  # again

    exec("def unread(x):\n    return x.detach()", globals())
    a, b = leaf(), leaf()
    assert "# again" in written(nbautograd.why_none(a, (again(a) * b).sum()).line)
    assert nbautograd.why_none(a, (globals()["unread"](a) * b).sum()).line is None


def test_nothing_of_the_users_is_run():
    class Property:
        @property
        def step(self):
            raise AssertionError("a property was run")

    thing, a, b = Property(), leaf(), leaf()
    assert thing is not None
    fake = lambda x: thing.step(x)  # noqa: E731
    assert fake is not None
    loss = (a.detach() * b).sum()
    assert nbautograd.why_none(a, loss).code == "grad_none_cut"
