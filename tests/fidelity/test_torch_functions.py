"""PyTorch's own Functions, bare, instrumented and watched: its test database, and those that its modules run on."""

from __future__ import annotations

import contextlib
import copy

import pytest
import torch
import torch.utils.checkpoint
from fidelity_values import bits
from torch.testing._internal import autograd_function_db as database

from nbautograd.core.recording import api as log
from nbautograd.core.recording.watching import FunctionWatch

FUNCTIONS = [
    found
    for found in vars(database).values()
    if isinstance(found, type) and issubclass(found, torch.autograd.Function) and found.__module__ == database.__name__
]


@contextlib.contextmanager
def recorded(*functions, watched=False):
    with log.recording(*functions) as calls, FunctionWatch() if watched else contextlib.nullcontext() as watch:
        yield calls
        assert log.problems() == ()
        assert watch is None or watch.errors == {}


in_a_watch_too = pytest.mark.parametrize("watched", [False, True], ids=["recorded", "watched"])


def tensors(sample):
    return [v for v in (sample.input, *sample.args, *sample.kwargs.values()) if isinstance(v, torch.Tensor)]


def outcome(action):
    try:
        return bits(action())
    except Exception as error:
        return type(error).__name__, str(error)


def flat(out):
    return [o for o in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(o, torch.Tensor)]


def plain(op, sample):
    out = flat(op(sample.input, *sample.args, **sample.kwargs))
    live = [o for o in out if o.requires_grad]
    leaves = [t for t in tensors(sample) if t.requires_grad]
    if not live:
        return out
    seeds = [torch.ones_like(o) for o in live]
    first = torch.autograd.grad(live, leaves, seeds, create_graph=True, allow_unused=True)
    again = [g for g in first if g is not None and g.requires_grad]
    second = torch.autograd.grad(again, leaves, [torch.ones_like(g) for g in again], allow_unused=True) if again else ()
    return out, first, second


def transformed(transform):
    def run(op, sample):
        def total(x):
            return sum(o.sum() for o in flat(op(x, *sample.args, **sample.kwargs)) if o.is_floating_point())

        return transform(total)(sample.input.detach())

    return run


def vmapped(op, sample):
    batch = torch.stack([sample.input.detach(), sample.input.detach() * 0.5])
    return torch.func.vmap(lambda x: op(x, *sample.args, **sample.kwargs))(batch)


def pushed(op, sample):
    x = sample.input.detach()
    return torch.func.jvp(lambda x: op(x, *sample.args, **sample.kwargs), (x,), (torch.ones_like(x),))


WAYS = {
    "plain": plain,
    "grad": transformed(torch.func.grad),
    "grad of grad": transformed(lambda f: torch.func.grad(lambda x: torch.func.grad(f)(x).sum())),
    "jacrev": transformed(torch.func.jacrev),
    "jacfwd": transformed(torch.func.jacfwd),
    "vmap": vmapped,
    "jvp": pushed,
}
BY_DAY = ("grad of grad", "vmap")


def test_the_database_is_covered():
    assert len(FUNCTIONS) >= 15
    assert len(database.autograd_function_db) >= 14


@pytest.mark.slow
@pytest.mark.parametrize(
    "watched", [pytest.param(False, id="recorded", marks=pytest.mark.nightly), pytest.param(True, id="watched")]
)  # a watch of calls that are recorded has both
@pytest.mark.parametrize("way", [w if w in BY_DAY else pytest.param(w, marks=pytest.mark.nightly) for w in WAYS])
@pytest.mark.parametrize("info", database.autograd_function_db, ids=lambda info: info.name)
def test_functions_of_the_database(info, way, watched):
    def run():
        torch.manual_seed(0)
        samples = list(info.sample_inputs("cpu", torch.float64, requires_grad=True))[:4]
        return [outcome(lambda sample=sample: WAYS[way](info.op, sample)) for sample in samples]

    expected = run()
    assert run() == expected, "the bare run cannot be repeated"
    with recorded(*FUNCTIONS, watched=watched) as calls:
        assert run() == expected
        assert len(calls) > 0 or all(isinstance(found[0], str) for found in expected)  # torch.func may refuse before


@pytest.mark.slow
@in_a_watch_too
@pytest.mark.parametrize("info", database.autograd_function_db, ids=lambda info: info.name)
def test_gradcheck_of_the_database(info, watched):
    sample = next(iter(info.sample_inputs("cpu", torch.float64, requires_grad=True)))
    inputs = (sample.input, *sample.args)

    def run():
        wrapped = info.gradcheck_wrapper or (lambda op, *args, **kwargs: op(*args, **kwargs))
        return outcome(
            lambda: torch.tensor(
                torch.autograd.gradcheck(lambda *a: wrapped(info.op, *a, **sample.kwargs), inputs, raise_exception=True)
            )
        )

    expected = run()
    with recorded(*FUNCTIONS, watched=watched):
        assert run() == expected


def local_response():
    from torch.nn.modules._functions import CrossMapLRN2d as Function

    module, x = torch.nn.CrossMapLRN2d(3), torch.linspace(-1, 1, 2 * 4 * 3 * 3, dtype=torch.float64).reshape(2, 4, 3, 3)
    return Function, lambda: gradients(module, x.clone().requires_grad_())


def gradients(module, *inputs):
    out = module(*inputs)
    flat(out)[0].sum().backward()
    return flat(out), [i.grad for i in inputs]


def checkpointed():
    from torch.utils.checkpoint import CheckpointFunction

    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.Tanh())

    def run():
        torch.manual_seed(1)
        x = torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()
        return gradients(lambda x: torch.utils.checkpoint.checkpoint(module, x, use_reentrant=True), x)

    return CheckpointFunction, run


def checkpointed_without_reentry():
    """This kind has no Function of its own: one of the database runs inside, twice."""
    function = database.NumpyCube

    def run():
        x = torch.linspace(-1, 1, 8, dtype=torch.float64).requires_grad_()
        cube = lambda x: function.apply(x)  # noqa: E731
        return gradients(lambda x: torch.utils.checkpoint.checkpoint(cube, x, use_reentrant=False), x)

    return function, run


def parallel(name):
    from torch.nn.parallel import _functions

    Function = getattr(_functions, name)
    x = torch.linspace(0, 1, 6)
    arguments = {
        "Broadcast": ([0], x),
        "ReduceAddCoalesced": (0, 1, x),
        "Gather": (0, 0, x),
        "Scatter": ([0], None, 0, x),
    }
    return Function, lambda: Function.apply(*arguments[name])


def synchronised():
    from torch.nn.modules._functions import SyncBatchNorm as Function

    def run():
        x = torch.linspace(-1, 1, 12).reshape(2, 3, 2).requires_grad_()
        ones, zeros = torch.ones(3), torch.zeros(3)
        return Function.apply(x, ones, zeros, zeros.clone(), ones.clone(), 1e-5, 0.1, None, 1)

    return Function, run


OWN = {
    "CrossMapLRN2d": local_response,
    "checkpoint, reentrant": checkpointed,
    "checkpoint": checkpointed_without_reentry,
    "SyncBatchNorm": synchronised,
    **{name: (lambda name=name: parallel(name)) for name in ("Broadcast", "ReduceAddCoalesced", "Gather", "Scatter")},
}


@in_a_watch_too
@pytest.mark.parametrize("name", OWN)
def test_own_functions(name, watched):
    """On a CPU some of them only raise (they want a GPU or other processes): then the same error."""
    function, run = OWN[name]()
    before = copy.copy(dict(vars(function)))
    expected = outcome(run)
    assert outcome(run) == expected, "the bare run cannot be repeated"
    with recorded(function, watched=watched) as calls:
        assert outcome(run) == expected
    assert len(calls) > 0
    assert dict(vars(function)) == before


def test_which_of_them_run_here():
    ran = {name for name in OWN if not isinstance(outcome(OWN[name]()[1])[0], str)}
    assert {"CrossMapLRN2d", "checkpoint, reentrant", "checkpoint"} <= ran
