"""Any program that hypothesis makes: the predicted order, sums on every slot, the first NaN, folding, drawing."""

from __future__ import annotations

import math

import torch
from fn import Fn
from hypothesis import given, settings
from hypothesis import strategies as st
from test_graph_folding import is_acyclic

import nbautograd
from nbautograd.core.graphs.build import Walk
from nbautograd.core.graphs.folding import fold_to
from nbautograd.core.graphs.names import Names

TwoOutputs = Fn.of("TwoOutputs", "a, b: save(a, b); return a * b, a - b",
    "grad_product, grad_difference: a, b = saved; "
    "return grad_product * b + grad_difference, grad_product * a - grad_difference")  # fmt: skip


def halves(a, b):
    first, second = torch.cat([a, b]).chunk(2)
    return first * 0.5 + second


def rows(a, b):
    top, _, bottom = torch.stack([a, b, a]).unbind()
    return top - bottom * 0.5


def in_place(a, b):
    made = a.clone()
    made.add_(b)
    made[1:] *= 0.5
    return made


STEPS = [
    torch.add,
    torch.mul,
    halves,
    rows,
    in_place,
    lambda a, b: sum(TwoOutputs.apply(a, b)),
    lambda a, b: TwoOutputs.apply(a, b)[1],
    lambda a, b: a.sigmoid() + b.detach(),
    lambda a, b: (a.view(2, 2) @ b.view(2, 2)).reshape(-1),
    lambda a, b: a.exp().clamp(max=3.0),
]
programs = st.lists(st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 40), st.integers(0, 40)), max_size=18)


def run(program, count=1):
    values = [torch.linspace(-1, 1, 4).add(k / 3).requires_grad_() for k in range(3)]
    for step, a, b in program:
        values.append(STEPS[step](values[a % len(values)], values[b % len(values)]))
    return [value.tanh().sum() for value in values[-count:]]


@settings(max_examples=10)
@given(programs, st.integers(1, 3))
def test_the_order_that_is_predicted_is_the_engines(program, count):
    roots = run(program, count)
    predicted = nbautograd.graph(roots, names={}).order
    assert nbautograd.backward(roots, names={}).ran == predicted


@settings(max_examples=10)
@given(programs)
def test_what_the_edges_into_every_slot_carry_sums_to_what_arrives_there(program):
    (loss,) = run(program)
    walk = Walk(loss, Names({}))
    sent, arrived = {}, {}
    for i, node in enumerate(walk.live):
        node.register_hook(lambda gi, go, i=i: sent.update({(i, k): g for k, g in enumerate(gi)}))
        node.register_prehook(lambda go, i=i: arrived.update({(i, nr): g for nr, g in enumerate(go) if g is not None}))
    made = nbautograd.backward(loss, names={})
    sums = {(walk.roots[0][0], 0): torch.ones_like(loss)}
    for edge in made.edges:
        raw = sent.get((edge.source, edge.input_nr))
        if raw is None:
            assert edge.gradient is None
            continue
        raw = raw.sum_to_size(edge.shape)
        assert math.isclose(edge.gradient.norm, float(raw.double().norm()), rel_tol=1e-5, abs_tol=1e-9)
        key = edge.target, edge.output_nr
        sums[key] = sums[key] + raw if key in sums else raw
    assert set(sums) == set(arrived)
    for key, total in sums.items():
        torch.testing.assert_close(total, arrived[key])
    for node in made.nodes:
        first = min((nr for i, nr in arrived if i == node.id), default=None)
        if first is not None:
            assert math.isclose(
                node.gradient.norm, float(arrived[node.id, first].double().norm()), rel_tol=1e-5, abs_tol=1e-9
            )


@settings(max_examples=10)
@given(programs, st.integers(0, 40))
def test_the_first_node_that_makes_a_nan_or_an_inf_is_pointed_at(program, place):
    values = [torch.linspace(-1, 1, 4).add(k / 3).requires_grad_() for k in range(3)]
    for at, (step, a, b) in enumerate(program):
        value = STEPS[step](values[a % len(values)], values[b % len(values)])
        values.append((value - value).sqrt() + value if at == place % len(program) else value)
    loss = values[-1].tanh().sum()
    walk = Walk(loss, Names({}))
    seen = []
    for i, node in enumerate(walk.live):
        node.register_hook(lambda gi, go, i=i: seen.append((i, finite(go), finite(gi))))
    made = nbautograd.backward(loss, names={})
    expected = next((i for i, before, after in seen if before and not after), None)
    marked = [node.id for node in made.nodes if node.first_bad]
    assert marked == ([] if expected is None else [expected])
    assert bool(marked) == ("graphs.first_bad" in [note.message_id for note in made.notes])


def finite(gradients):
    return all(bool(g.isfinite().all()) for g in gradients if g is not None)


@settings(max_examples=8)
@given(programs, st.integers(2, 12))
def test_any_program_is_folded_without_a_cycle_and_drawn(program, most):
    (loss,) = run(program)
    graph = nbautograd.backward(loss, names={})
    folded = fold_to(graph, most)
    assert is_acyclic(folded)
    for picture in (graph.to_svg(), folded.to_svg()):
        assert picture.startswith("<svg")
        assert picture.endswith("</svg>")
    assert graph.to_dot().source.count("[label=") >= len(graph.nodes)
