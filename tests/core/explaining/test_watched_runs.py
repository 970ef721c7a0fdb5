"""A watched run does what the bare one does: the same numbers, the same end; where it does not, that is said."""

from __future__ import annotations

import copy
import weakref
from collections import deque

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

from nbautograd import explain
from nbautograd.core.explaining.trial import GradientWatch
from nbautograd.core.explaining.watch import Cut, Events, Made, Watch, Write, all_finite

MODULES = {
    "embedding with padding": lambda: (nn.Embedding(7, 4, padding_idx=0), torch.tensor([[0, 2, 6]])),
    "embedding of bounded norm": lambda: (nn.Embedding(7, 4, max_norm=0.5), torch.tensor([1, 2])),
    "batch norm": lambda: (nn.BatchNorm1d(4), torch.randn(5, 4)),
    "lstm": lambda: (nn.LSTM(3, 4, 2, dropout=0.1, bidirectional=True), torch.randn(5, 2, 3)),
    "transformer": lambda: (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), torch.randn(2, 3, 8)),
    "attention": lambda: (Attends(), torch.randn(3, 2, 8)),
    "in place": lambda: (nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Dropout(0.5)), torch.randn(3, 4)),
    "spectral norm": lambda: (parametrizations.spectral_norm(nn.Linear(4, 3)), torch.randn(2, 4)),
    "weight norm": lambda: (parametrizations.weight_norm(nn.Linear(4, 3)), torch.randn(2, 4)),
    "checkpoint": lambda: (Checkpointed(True), torch.randn(3, 4)),
    "checkpoint, reentrant": lambda: (Checkpointed(False), torch.randn(3, 4, requires_grad=True)),
    "frozen and lazy": lambda: (
        nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 2).requires_grad_(False)),
        torch.randn(3, 5),
    ),
}


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2)

    def forward(self, x):
        return self.inner(x, x, x)[0]


class Checkpointed(nn.Module):
    def __init__(self, new):
        super().__init__()
        self.first, self.second, self.new = nn.Linear(4, 4), nn.Linear(4, 2), new

    def forward(self, x):
        inner = checkpoint(lambda t: nn.functional.dropout(self.first(t).tanh(), 0.3), x, use_reentrant=not self.new)
        return self.second(inner)


OPTIMIZERS = [
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    lambda p: torch.optim.Adam(p, amsgrad=True),
    torch.optim.Rprop,
]


def both_ways(program):
    """What a program returns, or ends in: bare, and under watch."""
    found = []
    for watch in (None, GradientWatch(finite=True)):
        torch.manual_seed(0)
        try:
            if watch is None:
                found.append(program())
            else:
                with watch.on():
                    found.append(program())
        except Exception as error:
            found.append((type(error), str(error)))
    return found


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value.detach().to_dense()]
    return [part for one in value for part in flat(one)] if isinstance(value, (list, tuple)) else [value]


def assert_same(program):
    bare, watched = map(flat, both_ways(program))
    assert bare
    for one, other in zip(bare, watched, strict=True):
        assert type(one) is type(other), (one, other)
        assert (
            torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)
            if isinstance(one, torch.Tensor)
            else one == other
        )


def trained(module, given, optimizer=None):
    out = module(given)
    optimizer = (optimizer or torch.optim.SGD)(module.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        out = module(given)
        out = out[0] if isinstance(out, tuple) else out
        out.square().sum().backward()
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
    return [out, *module.state_dict().values(), *(p.grad for p in module.parameters() if p.grad is not None)]


@pytest.mark.parametrize("make", MODULES.values(), ids=MODULES)
def test_a_module_trains_under_watch_as_without(make):
    assert_same(lambda: trained(*make()))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_steps_under_watch_as_without(optimizer):
    assert_same(lambda: trained(nn.Linear(3, 2), torch.ones(4, 3), optimizer))


@pytest.mark.parametrize("name", ["uniform_", "dirac_", "orthogonal_"])
def test_an_init_draws_under_watch_as_without(name):
    shape = (3, 3, 3) if name == "dirac_" else (4, 3)
    assert_same(lambda: getattr(nn.init, name)(nn.Parameter(torch.empty(*shape))))


def written(write, switched=torch.no_grad, use=None):
    def program():
        w = nn.Parameter(torch.ones(3, 4))
        with switched():
            view = w[0]
            write(view, w)
        if use is not None:
            return use(view, w)
        loss = (w * 2).sum()
        loss.backward()
        return [w, w.grad, w._version]

    return program


WRITES = {
    "fill": lambda view, w: view.fill_(0),
    "copy": lambda view, w: view.copy_(torch.arange(4.0)),
    "slice": lambda view, w: w.__setitem__(slice(1), 3.0),
    "base": lambda view, w: w.mul_(0.5),
    "data": lambda view, w: view.data.zero_(),
    "detached": lambda view, w: view.detach().zero_(),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("switched", [torch.no_grad, torch.enable_grad])
def test_a_view_is_changed_under_watch_as_without(write, switched):
    assert_same(written(write, switched))


def test_hooks_copies_and_state_dicts_are_as_without_a_watch():
    def program():
        net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        seen = []
        net[0].register_forward_hook(lambda module, given, out: out * 2)
        net[0].register_full_backward_hook(lambda module, given, out: seen.append(out[0].clone()))
        net[0].weight.register_hook(lambda grad: grad * 3)
        again = copy.deepcopy(net)
        again.load_state_dict(net.state_dict())
        x = torch.randn(4, 3, requires_grad=True)
        (net(x) * again(x)).sum().backward()
        return [*seen, *(p.grad for p in (*net.parameters(), *again.parameters())), len(net._modules)]

    assert_same(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda: torch.func.vmap(lambda t: t.log().sum())(torch.zeros(3, 2)),
        lambda: torch.func.grad(lambda t: t.sin().sum())(torch.ones(3)),
        lambda: torch.func.jacrev(lambda t: t**2)(torch.ones(3)),
        lambda: torch.autograd.functional.hessian(lambda t: (t**3).sum(), torch.ones(2)),
        lambda: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,)) * 2,
        lambda: torch.autograd.grad(torch.ones(2, requires_grad=True).exp().sum(), torch.ones(1, requires_grad=True)),
    ],
)
def test_transforms_and_layouts_are_as_without_a_watch(program):
    assert_same(program)


class NewestFirst(deque):
    def __iter__(self):
        raise AssertionError("read from its beginning, which takes longer with every write")


def test_a_write_costs_the_same_however_many_there_were():
    watch, x = GradientWatch(), torch.zeros(2)
    watch.events._log[Write] = NewestFirst()
    with watch.on():
        for _ in range(3):
            x.add_(1)
    assert [write.after for write in watch.events.all(Write)] == [3, 2, 1]


def test_events_are_of_the_tensor_that_lives_not_of_one_before_it_at_the_same_place():
    events, x, y = Events(), torch.ones(1), torch.ones(1)
    events.add(made := Made(None, "ones"), x)
    events.add(Made(None, "later"), y)
    assert events.last(Made, x) is made
    assert events.last(Cut, x) is None
    assert [event.op for event in events.all(Made)] == ["later", "ones"]
    place = id(y)
    del y
    others = [torch.ones(1) for _ in range(1000)]
    assert place in map(id, others)
    assert [events.last(Made, other) for other in others] == [None] * 1000
    assert [(tensor is x, event) for tensor, event in events.alive(Made)] == [(True, made)]


def test_a_program_that_a_look_would_disturb_is_explained_by_its_own_end():
    def program():
        net = nn.Embedding(5, 3, padding_idx=0)
        return net(torch.tensor([1])).sum()

    assert explain(program).code == "nothing"


@pytest.mark.parametrize("fails", [True, False], ids=["in place", "no graph"])
def test_a_run_that_ends_otherwise_under_watch_is_not_explained(monkeypatch, fails):
    watched = Watch.__torch_function__

    def disturbed(self, func, types, args=(), kwargs=None):
        result = watched(self, func, types, args, kwargs)
        if getattr(func, "__name__", "") == "exp":
            result.mul_(2) if fails else result.detach_()
        return result

    monkeypatch.setattr(Watch, "__torch_function__", disturbed)

    def fine():
        torch.ones(2, requires_grad=True).exp().sum().backward()

    found = explain(fine)
    assert (found.code, found.did, found.tensor) == ("ran_differently", None, "")
    assert found.findings[0].code == "explain_ran_differently"


@pytest.mark.parametrize(
    ("tensor", "finite"),
    [
        (torch.ones(2, 1).expand(2, 2**40), True),
        (torch.tensor([[1.0], [torch.inf]]).expand(2, 2**40), False),
        (torch.tensor(torch.nan).expand(2**30, 2**30), False),
        (torch.ones(1, 1).expand(0, 2**40), True),
        (torch.ones(3, 2).to_sparse(), True),
        (torch.sparse_coo_tensor([[0, 0]], [torch.nan, 1.0], (2**40,)), False),
    ],
)
def test_a_tensor_is_looked_at_as_large_as_it_is_in_memory(tensor, finite):
    assert all_finite(tensor) is finite


@pytest.mark.parametrize("finite", [True, False], ids=["beside the program", "of a trial"])
def test_what_the_program_drops_lives_on_in_a_trial_alone(finite):
    w, watch, dropped = torch.ones(3, requires_grad=True), GradientWatch(finite), []

    def step():
        x = torch.ones(3).requires_grad_()
        (gradient,) = torch.autograd.grad((w * x).sum(), x, create_graph=True)
        gradient.square().sum().backward()
        dropped.extend(map(weakref.ref, (x, gradient)))

    with watch.on():
        for _ in range(3):
            step()
        w.square().sum().backward()  # what was differentiated last is kept: of it an explanation speaks
        alive = [one() is not None for one in dropped]
        loss = (w * torch.ones(3)).sum()
        loss.backward(retain_graph=True)
        dropped, loss = [weakref.ref(loss)], None  # but not with all that its graph holds still
        assert (dropped[0]() is not None) is not finite
    assert alive == [not finite] * 6
