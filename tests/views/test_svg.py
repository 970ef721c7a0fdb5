"""The SVG: well-formed, harmless, accessible, and the same words as the graph."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from random import Random

import torch
from fn import Fn
from said import says

import nbautograd
from nbautograd import messages
from nbautograd.views.svg import svg

NS = "{http://www.w3.org/2000/svg}"
EVIL = '<img src=x onerror="alert(1)">'
ALLOWED = {"svg", "title", "desc", "style", "rect", "path", "text", "g"}


LinearFunction = Fn.of("LinearFunction", "input, weight: save(input, weight); ctx.scale = 2.0; ctx.note = EVIL; "
    "return input.mm(weight.t())",
    "grad_output: input, weight = saved; return grad_output.mm(weight), grad_output.t().mm(input)")  # fmt: skip


def sample():
    torch.manual_seed(0)
    weight = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    return {"weight": weight}, LinearFunction.apply(torch.randn(5, 4, dtype=torch.float64), weight).sum()


def texts(document):
    return [e.text for e in ET.fromstring(document).iter(f"{NS}text")]


def test_after_backward_edges_tell_norms_and_freed_buffers_are_marked():
    names, loss = sample()
    made = nbautograd.backward(loss, names=names)
    told = texts(made.to_svg())
    norm = float(names["weight"].grad.norm())
    assert f"|g| {norm:.3g}" in told
    assert "saved_tensors · freed" in texts(nbautograd.graph(loss, names=names).to_svg())


def test_nan_is_marked():
    x = torch.zeros(2, requires_grad=True)
    document = nbautograd.backward((x / x).sum()).to_svg()
    assert 'class="x"' in document
    assert "2 NaN" in document


def test_names_are_text_and_nothing_else():
    cls = type(EVIL, (LinearFunction,), {})
    x = torch.ones(1, 2, requires_grad=True)
    loss = cls.apply(x, torch.ones(2, 2)).sum()
    document = nbautograd.graph({EVIL: loss, "]]>&\x00\x1b": loss}, names={EVIL: x}).to_svg()
    root = ET.fromstring(document)
    assert {e.tag.removeprefix(NS) for e in root.iter()} <= ALLOWED
    assert not any(name.startswith("on") or "href" in name for e in root.iter() for name in e.attrib)
    assert "<img" not in document
    assert "<script" not in document
    assert any("<img" in (e.text or "") for e in root.iter())


def test_many_boxes_are_drawn_as_few_elements():
    y = torch.ones(2, requires_grad=True)
    for _ in range(600):
        y = y.sin()
    graph = nbautograd.graph(y.sum(), names={})
    root = ET.fromstring(graph.to_svg(boxes=None))
    assert len(list(root.iter(f"{NS}rect"))) == 1
    assert sum(text == "SinBackward0" for text in (e.text for e in root.iter(f"{NS}text"))) == 600


def test_a_graph_with_nothing_in_it_says_so():
    document = nbautograd.graph([], names={}).to_svg()
    assert messages.text("graphs.no_tensor") in " ".join(texts(document))


def test_a_document_that_is_too_long_is_folded_further():
    y, random = torch.ones(2, requires_grad=True), Random(0)
    for _ in range(250):  # without a repeat
        y = random.choice([torch.sin, torch.exp, torch.tanh, torch.sigmoid, torch.relu])(y)
    graph = nbautograd.graph(y.sum(), names={})
    assert len(svg(graph)) > 20_000
    short = svg(graph, most=8_000, notes=False)
    assert len(short) <= 8_000
    assert says(" ".join(texts(short)), "graphs.folded", nodes=252)
