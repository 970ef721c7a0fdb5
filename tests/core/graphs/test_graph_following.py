"""Where what is made of a tensor loses its way back, through the variables of the calling code."""

from __future__ import annotations

import ast

import pytest
import torch

import nbautograd
from nbautograd.core.graphs.source_dataflow import DataflowReader, Frame


def leaf():
    return torch.ones(3, requires_grad=True)


def written(line):
    with open(__file__, encoding="utf-8") as file:
        return file.readlines()[line - 1]


def test_a_variable_made_of_the_tensor_is_followed():
    a, b = leaf(), leaf()
    y = a.exp() * 2
    z = y.detach()  # variable
    loss = (z * b).sum()
    found = nbautograd.why_none(a, loss)
    assert found.code == "grad_none_cut"
    assert "# variable" in written(found.line)
    assert found.params["text"] == "y.detach()"


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


@pytest.mark.parametrize(("code", "line"), [
    ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    b = a.detach()", None),  # which need not have run
    ("match 1:\n    case 1:\n        b = a.detach()", None),
    ("b = a * 2\nif a.numel() > 2:\n    b = b.detach()", None),
    ("b = a * 2\nif a.numel() > 5:\n    b = b.detach()\nb = b.detach()", 4),
    ("d = {}\nd.update(k=a.detach())\nb = d['k']", 2),
    ("d = {}\nd.setdefault('k', a.detach())\nb = d['k']", 2),
    ("class O: pass\no = O()\nsetattr(o, 'x', a.detach())\nb = o.x", 3),
    ("b = torch.zeros(3)\nb.copy_(a.detach())", 2),
    ("b = torch.zeros(3)\nwith torch.no_grad():\n    torch.mul(a, 2, out=b)", 3),
    ("def tensor(x):\n    return x.detach()\nb = tensor(a)", None),  # what a function does is not read
    ("class O:\n    def array(self, x):\n        return x.detach()\nb = O().array(a)\no = O()\nb = o.array(a)", None),
])  # fmt: skip
def test_each_way_into_a_variable_is_followed(code, line, tmp_path):
    file = tmp_path / "program.py"
    asked = "graph(loss, names={'a': a, 'c': c}), why_none(a, loss, names={'a': a, 'c': c})"
    file.write_text(f"{code}\nloss = (b * c).sum()\ngraph, finding = {asked}\n", encoding="utf-8")
    names = {"torch": torch, "graph": nbautograd.graph, "why_none": nbautograd.why_none, "__name__": "__main__"}
    space = {**names, "a": leaf(), "c": leaf()}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), space)
    (ghost,) = space["graph"].ghosts
    assert (ghost.name, ghost.line) == ("a", line)
    assert (space["finding"].line, space["finding"].code == "grad_none_cut") == (line, line is not None)
    assert line is not None or "nbautograd.explain(function)" in space["finding"].message


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


def test_without_any_cut_no_line_is_claimed():
    a, b = leaf(), leaf()
    other = torch.ones_like(b) * b
    found = nbautograd.why_none(a, other.sum())
    assert found.code == "grad_none_not_a_part"
    assert found.line is None


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
