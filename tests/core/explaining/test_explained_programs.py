"""Programs that change a tensor in place, or go through a graph that is gone."""

from __future__ import annotations

import pytest
import torch
from explained import Programs, check

from nbautograd import explain

pytestmark = pytest.mark.usefixtures("saved_tensors_shown")
PROGRAMS = Programs()
case = PROGRAMS.case


# ---- changed in place ----


@case("a module that changes its input is named", "in_place", says="in_place_module")
def module_in_place():
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Sigmoid(), torch.nn.ReLU(inplace=True))
    loss = net(torch.ones(2, 3)).sum()
    loss.backward()


@case(
    "a view of what was saved is not what was saved",
    "in_place",
    "left",
    lines="did made saved",
    in_place_saved={"shape": "2×4"},
)
def hidden_view():
    def clip(left):
        left.clamp_(0.0, 1.0)  # did

    def loss():
        whole = torch.ones(2, 4, requires_grad=True).exp()  # saved
        clip(whole[:, :2])  # made
        return whole.sum()

    loss().backward()


@case(
    "what was written into has not the name of what was saved beside it",
    "in_place",
    "move",
    lines="did",
    in_place_saved={"op": "Mm", "shape": "2×2"},
)
def split_and_scaled():
    z = torch.ones(2, 4, requires_grad=True) * 2
    keep, move = z[:, :2], z[:, 2:]
    scale = (keep @ torch.ones(2, 2, requires_grad=True)).tanh()
    move.mul_(scale)  # did
    z.sum().backward()


@case("a step under a graph that is carried on", "in_place_step", lines="did")
def carried_and_stepped():
    cell = torch.nn.Linear(2, 2)
    opt, h = torch.optim.SGD(cell.parameters(), lr=0.1), torch.ones(1, 2)
    for _ in range(3):
        h = cell(h).tanh()
        h.sum().backward(retain_graph=True)
        opt.step()  # did


@case("an error that the program catches", "in_place", "y", lines="did", says="caught")
def caught_by_the_program():
    y = torch.ones(3, requires_grad=True).exp()
    y += 1  # did
    with pytest.raises(RuntimeError):
        y.sum().backward()


@case(
    "a state that is zeroed gets new zeros, not a clone with a graph",
    "in_place",
    slow=True,
    fix="state = torch.zeros_like(state)",
)
def zeroed():
    state = torch.ones(2, requires_grad=True).exp()
    loss = state.square().sum()
    state.zero_()
    loss.backward()


@case(
    "a line that reads what it writes into, which no clone before it mends",
    "in_place",
    slow=True,
    fix="cov = cov - cov.mm(cov)",
)
def reads_what_it_writes():
    gain = torch.ones(2, 2, requires_grad=True)
    cov = torch.eye(2) + gain
    cov -= cov.mm(cov)
    cov.sum().backward()


@case("of two leaves the one that is written into", "leaf", "w")
def copied_between_leaves():
    w, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    w.copy_(b)


@case("a view of a leaf", "leaf", "rows", lines="did")
def expanded():
    bias = torch.nn.Parameter(torch.zeros(3))
    rows = bias.expand(2, 3)
    rows[0] += 1  # did


# ---- through a graph that is gone ----


@case("losses that share a part keep the graph", "freed_shared", "s", fix="a.backward(retain_graph=True)")
def shared():
    w = torch.ones(3, requires_grad=True)
    s = w.exp()
    a, b = (s * 2).sum(), (s**2).sum()
    a.backward()
    b.backward()


class Streaming(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.state = torch.nn.LSTM(2, 3), None

    def forward(self, x):
        h, state = self.rnn(x, self.state)
        self.state = state
        return h


@case(
    "a state that a module keeps in a tuple",
    "freed_carried",
    "model.state[0]",
    fix="loss.backward()\nmodel.state = tuple(part.detach() for part in model.state)",
)
def two_chunks():
    model = Streaming()
    for _ in range(2):
        out = model(torch.ones(1, 2))
        loss = out.sum()
        loss.backward()


@case(
    "losses of one graph are not carried along",
    "freed_shared",
    "loss",
    freed_tie={"by": "features = torch.tanh(encoder(x))"},
)
def two_tasks():
    encoder, heads = torch.nn.Linear(2, 3), {"a": torch.nn.Linear(3, 1), "b": torch.nn.Linear(3, 1)}

    def losses_of(x):
        features = torch.tanh(encoder(x))
        return {name: head(features).sum() for name, head in heads.items()}

    losses = losses_of(torch.ones(1, 2))
    for loss in losses.values():
        loss.backward()


class HoldsItself(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.seen = torch.nn.Linear(2, 1), []
        self.seen.append(self.seen)

    def forward(self, x):
        return self.linear(x)


@case("a list that holds itself is looked through once", "freed_again", fix="y.backward(retain_graph=True)")
def twice_through():
    module = HoldsItself()
    y = module(torch.ones(1, 2)).sum()
    y.backward()
    y.backward()


@case(
    "either change gives another gradient, so none is offered",
    "freed_create_graph",
    lines="did",
    fix=None,
    says="freed_create_graph",
)
def slope_in_the_loss():
    x = torch.linspace(0, 1, 5).requires_grad_()
    weight = torch.ones(1, requires_grad=True)
    y = (weight * x).exp()
    slope = torch.autograd.grad(y, x, torch.ones_like(y))[0]  # did
    loss = (slope - y).pow(2).sum()
    loss.backward()


class Embedder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self._cache = torch.nn.Linear(2, 2), {}

    def forward(self, key):
        if key not in self._cache:
            self._cache[key] = self._computed(key)
        return self._cache[key]

    def _computed(self, key):
        return self.inner(torch.ones(2) * key)


@case(
    "a cache that keeps graphs",
    "freed_shared",
    "embedder._cache[1]",
    slow=True,
)
def cached():
    embedder, head = Embedder(), torch.nn.Linear(2, 1)
    for _ in range(2):
        loss = head(embedder(1)).pow(2).sum()
        loss.backward()


class Schedule(torch.nn.Module):
    """Computes a learned table once."""

    def __init__(self):
        super().__init__()
        self.raw = torch.nn.Parameter(torch.zeros(4))
        self.table = torch.cumprod(self.raw.sigmoid(), 0)


@case(
    "what is computed once is not carried, and no change stops it from learning",
    "freed_shared",
    "schedule.table",
    slow=True,
    fix=None,
)
def computed_once():
    schedule, head = Schedule(), torch.nn.Linear(4, 1)
    for _ in range(3):
        loss = head(schedule.table).pow(2).sum()
        loss.backward()


@case(
    "a gradient that is used is not mended by adding the losses",
    "freed_shared_grad",
    fix="grad = torch.autograd.grad(recon.sum(), last.weight, retain_graph=True)[0]",
)
def weighed():
    body, last = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
    recon = last(body(torch.ones(1, 2)).tanh()).exp()
    grad = torch.autograd.grad(recon.sum(), last.weight)[0]
    (recon * grad.norm().detach()).sum().backward()


@case(
    "a memory that is written into by place is what is carried",
    "freed_carried",
    "memory",
    fix="loss.backward()\nmemory = memory.detach()",
)
def remembered():
    weight, memory = torch.ones(2, requires_grad=True), torch.zeros(3, 2)
    for i in range(3):
        key = weight * (i + 1)
        memory[i] = key.exp()
        loss = (memory * key).sum()
        loss.backward()


class Attends(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.cache = torch.nn.Linear(2, 2), None

    def forward(self, x):
        k = self.inner(x)
        self.cache = k if self.cache is None else torch.cat([self.cache, k])  # made
        return self.cache.sum()


@case(
    "what a line reads and stores again is not made elsewhere",
    "freed_carried",
    "attends.cache",
    lines="made",
    slow=True,
)
def stored_again():
    attends = Attends()
    for _ in range(3):
        loss = attends(torch.ones(1, 2)).exp()
        loss.backward()


def unbound():
    rate = torch.ones(1, requires_grad=True)
    path = torch.zeros(3, 2)
    path[0] = rate
    for k in range(2):
        x, v = path[k]
        path[k + 1] = torch.stack((v, -rate[0] * x))
    path.sum().backward()


def test_an_error_alone_does_not_show_by_which_line_a_saved_view_was_written_into():
    with pytest.raises(RuntimeError) as raised:
        unbound()
    found = explain(raised.value)
    assert (found.code, found.did, found.findings[0].code) == ("in_place", None, "explain_in_place_rule")


@pytest.mark.parametrize(("program", "expected"), PROGRAMS)
def test_what_a_program_s_explanation_names(program, expected):
    check(program, expected)
