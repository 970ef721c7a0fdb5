"""What is noticed while a call runs: each on a Function that does it, and on a twin that does not."""

from __future__ import annotations

import contextlib

import pytest
import torch
from fn import Fn

from nbautograd.core.recording import api as log
from nbautograd.core.torch_private.nodes import SHOWS_SAVED

WEIGHT = torch.ones(3, dtype=torch.float64, requires_grad=True)


def made(forward, backward, **attributes):
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward), **attributes}
    return type("Made", (torch.autograd.Function,), body)


def x():
    return torch.ones(3, dtype=torch.float64, requires_grad=True)


def double(ctx, x):
    return x * 2


def saving(ctx, x):
    ctx.save_for_backward(x)
    return x * x


def backward_once(cls, make=x):
    given = make()
    cls.apply(given).pow(2).sum().backward()
    return given.grad


class Changes:
    """grad_output."""

    does = made(double, lambda ctx, g: g.mul_(2))
    not_ = made(double, lambda ctx, g: g.clone().mul_(2))


def changes_by_numpy(ctx, g):
    g.numpy()[:] *= 2
    return g.clone()


def copies_by_numpy(ctx, g):
    return torch.from_numpy(g.numpy() * 2)


def changes_input_by_data(ctx, x):
    x.data[0] = 7.0
    return x * 2


def reads_input_by_data(ctx, x):
    return x.data * 2


def changes_saved(ctx, g):
    (x,) = ctx.saved_tensors
    x.data.mul_(2)
    return g * x


def copies_saved(ctx, g):
    (x,) = ctx.saved_tensors
    return x.clone().mul_(2) * g


def shares(ctx, x):
    return torch.from_numpy(x.detach().numpy())


def views(ctx, x):
    return x.data.clone().view(-1)


def uses_global(ctx, x):
    return x * WEIGHT


def uses_argument(ctx, x):
    return x * x


def buffered():
    buffer = torch.zeros(3, dtype=torch.float64)

    def backward(ctx, g):
        return torch.mul(g, 2, out=buffer)

    return backward


def fresh(ctx, g):
    gradient = torch.zeros(3, dtype=torch.float64)
    gradient.add_(g).mul_(2)
    return gradient


def flattens(ctx, g):
    return g.view(-1).view_as(g) * 2


def reshapes(ctx, g):
    return g.reshape(-1).view_as(g) * 2


PAIRS = {
    "mutates_grad_output": (Changes.does, Changes.not_),
    "mutates_grad_output by numpy": (made(double, changes_by_numpy), made(double, copies_by_numpy)),
    "mutates_input": (made(changes_input_by_data, lambda ctx, g: g), made(reads_input_by_data, lambda ctx, g: g * 2)),
    "mutates_saved": (made(saving, changes_saved), made(saving, copies_saved)),
    "output_aliases_input": (made(shares, lambda ctx, g: g), made(views, lambda ctx, g: g)),
    "hidden_input": (made(uses_global, lambda ctx, g: g), made(uses_argument, lambda ctx, g: g)),
    "grad_buffer_reused": (made(double, buffered()), made(double, fresh)),
}


@contextlib.contextmanager
def recorded(cls, level="summary"):
    with log.recording(cls, level=level) as calls:
        yield calls
    assert log.problems() == ()


def found(calls):
    return {w.code for c in calls for w in c.warnings}


@pytest.mark.parametrize("what", PAIRS)
def test_noticed_and_not(what):
    code = what.partition(" ")[0]
    if code == "mutates_saved" and not SHOWS_SAVED:
        pytest.skip("this torch shows saved tensors only by unpacking them")
    does, does_not = PAIRS[what]
    for cls, expected in ((does, {code}), (does_not, set())):
        bare = [backward_once(cls), backward_once(cls)]
        with recorded(cls) as calls:
            same = [backward_once(cls), backward_once(cls)]
        assert [g.tolist() for g in same] == [g.tolist() for g in bare]
        assert found(calls) == expected
        assert all("{" not in w.message for c in calls for w in c.warnings)


def test_noticed_at_level_shapes_by_the_version():
    with recorded(Changes.does, "shapes") as calls:
        backward_once(Changes.does)
    assert found(calls) == {"mutates_grad_output"}


def in_place_by_index(ctx, g):
    g[0] = 0
    return g


def in_place_by_method(ctx, g):
    h = g.clone()
    h *= 2
    g.mul_(2)
    return g


def in_place_after_another_name(ctx, g):
    h = g
    h *= 2
    g = g.clone()
    g *= 2
    return g


@pytest.mark.parametrize(
    ("backward", "line"), [(in_place_by_index, 1), (in_place_by_method, 3), (in_place_after_another_name, 0)]
)
def test_the_line_that_changes_a_gradient_is_named_where_the_source_tells_it(backward, line):
    cls = made(double, backward)
    with recorded(cls) as calls:
        backward_once(cls)
    lines = [w.line for c in calls for w in c.warnings if w.code == "mutates_grad_output"]
    assert lines == [backward.__code__.co_firstlineno + line]


class Shared(Fn):
    factor = 1.0

    def forward(ctx, x, factor):
        Shared.factor = factor
        return x * factor

    def backward(ctx, g):
        return g * Shared.factor, None


def test_state_on_the_class():
    def run(order):
        outs = [Shared.apply(x(), 2.0), Shared.apply(x(), 3.0)]
        for i in order:
            outs[i].sum().backward()

    with recorded(Shared) as calls:
        outs = [Shared.apply(x(), 2.0), Shared.apply(x(), 3.0)]
        [out.sum().backward() for out in outs]
    wrong = [c for c in calls if c.warnings]
    assert [c.forward for c in wrong] == [calls[0].index]
    assert {w.code for c in wrong for w in c.warnings} == {"shared_state"}
    with recorded(Shared) as calls:
        for factor in (2.0, 3.0):
            Shared.apply(x(), factor).sum().backward()
    assert found(calls) == set()


@pytest.mark.parametrize(
    ("make", "after"),
    [(lambda y: y.sum(0).pow(2).sum(), "y.sum()"), (lambda y: y.t().reshape(-1).pow(2).sum(), "y.t()")],
)
def test_gradients_that_are_not_contiguous(make, after):
    square = torch.ones(3, 3, dtype=torch.float64)
    with recorded(cls := made(double, flattens)) as calls:
        given = square.clone().requires_grad_()
        with contextlib.suppress(RuntimeError):
            make(cls.apply(given)).backward()
    assert found(calls) == {"fails_noncontiguous_grad"}
    assert {w.params["after"] for c in calls for w in c.warnings} == {after}
    with recorded(cls := made(double, reshapes)) as calls:
        make(cls.apply(square.clone().requires_grad_())).backward()
    assert found(calls) == set()


def test_tensors_in_a_list():
    def forward(ctx, x, others):
        return x * others[0]

    cls = made(forward, lambda ctx, g: (g, None))
    for needs, expected in ((True, {"hidden_input"}), (False, set())):
        with recorded(cls) as calls:
            cls.apply(x(), [torch.ones(3, dtype=torch.float64, requires_grad=needs)]).sum().backward()
        assert found(calls) == expected


def test_reported_once_however_often_it_is_read():
    with recorded(Changes.does) as calls:
        backward_once(Changes.does)
    assert [len(c.warnings) for c in calls] == [len(c.warnings) for c in calls] == [0, 1]


def test_materialize_grads_as_it_was_set_in_the_run():
    def forward(ctx, x, flag):
        ctx.set_materialize_grads(flag)
        return x * 2, x * 3

    def backward(ctx, g, h):
        return g * 2, None

    cls = made(forward, backward)
    with recorded(cls) as calls:
        for flag in (True, False):
            cls.apply(x(), flag)[0].sum().backward()
    assert [c.ctx.materialize_grads for c in calls] == [True, True, False, False]
    assert [c.inputs[1].repr for c in calls if c.method == "backward"][1] == "None"
    with recorded(Changes.not_) as calls:
        backward_once(Changes.not_)
    assert {c.ctx.materialize_grads for c in calls} == {True}


def test_a_wrong_flag_fails_as_in_the_bare_class():
    def forward(ctx, x):
        ctx.set_materialize_grads("yes")
        return x * 2

    cls = made(forward, lambda ctx, g: g)

    def said():
        try:
            cls.apply(x())
        except Exception as error:
            trace, frames = error.__traceback__, []
            while trace is not None:
                frames.append(trace.tb_frame.f_code.co_name)
                trace = trace.tb_next
            return type(error), str(error), frames
        return None

    expected = said()
    with recorded(cls):
        assert said() == expected
