"""Functions of released packages, bare and instrumented. ``.ci/packages`` installs them; else this is skipped."""

from __future__ import annotations

import importlib
import os
import sys
import warnings

import pytest
import torch
from fidelity_values import bits, leaf

from nbautograd.core.recording import api as log

FOLDER = os.environ.get("NBAUTOGRAD_PACKAGES", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="no packages here: .ci/packages installs them and runs this")
if FOLDER:
    sys.path.append(FOLDER)


def find(name):
    module, _, attribute = name.rpartition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return getattr(importlib.import_module(module), attribute)
        except ImportError as error:
            if os.environ.get("NBAUTOGRAD_PACKAGES_ALL"):
                raise
            pytest.skip(f"{module} is not to be had: {error}")


def additive():
    module = find("memcnn.models.additive:AdditiveCoupling")(
        torch.nn.Linear(2, 2).double(), torch.nn.Linear(2, 2).double()
    )
    module = find("memcnn:InvertibleModuleWrapper")(module, keep_input=True)
    return lambda x: module(x)


def stochastic():
    class Equation(torch.nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self):
            super().__init__()
            self.rate = torch.nn.Parameter(torch.tensor(0.3, dtype=torch.float64))

        def f(self, t, y):
            return -self.rate * y

        def g(self, t, y):
            return 0.1 * y

    integrate, motion = find("torchsde:sdeint_adjoint"), find("torchsde:BrownianInterval")
    equation = Equation()

    def run(x):
        noise = motion(t0=0.0, t1=0.5, size=tuple(x.shape), dtype=x.dtype, entropy=7)
        return integrate(equation, x, torch.tensor([0.0, 0.5], dtype=x.dtype), bm=noise, dt=0.1, method="euler")

    return run


def linear(name, *more):
    function = find(f"linear_operator.functions.{name}")
    represent = find("linear_operator.operators:DenseLinearOperator")

    def run(x):
        operator = represent(x @ x.mT + 3 * torch.eye(3, dtype=x.dtype))
        return function.apply(operator.representation_tree(), *more, *operator.representation())

    return function, run


def applied(name, *more):
    function = find(name)
    return function, lambda x: function.apply(x, *more)


DENSE = torch.linspace(0, 1, 3, dtype=torch.float64).reshape(3, 1)
CASES = {
    "entmax sparsemax": lambda: applied("entmax.activations:SparsemaxFunction", -1, None),
    "entmax 1.5": lambda: applied("entmax.activations:Entmax15Function", -1, None),
    "entmax bisection": lambda: applied("entmax.root_finding:EntmaxBisectFunction", 1.3, -1, 30, True),
    "sparsemax": lambda: applied("sparsemax.sparsemax:SparsemaxFunction", -1),
    "snntorch fast sigmoid": lambda: applied("snntorch.surrogate:FastSigmoid", 25),
    "snntorch atan": lambda: applied("snntorch.surrogate:ATan", 2.0),
    "snntorch triangular": lambda: applied("snntorch.surrogate:Triangular", 1),
    "snntorch straight through": lambda: applied("snntorch.surrogate:StraightThroughEstimator"),
    "efficientnet swish": lambda: applied("efficientnet_pytorch.utils:SwishImplementation"),
    "revgrad": lambda: applied("pytorch_revgrad.functional:RevGrad", torch.tensor(0.5)),
    "memcnn additive": lambda: (find("memcnn.models.revop:InvertibleCheckpointFunction"), additive()),
    "torchsde adjoint": lambda: (find("torchsde._core.adjoint:_SdeintAdjointMethod"), stochastic()),
    "linear_operator matmul": lambda: linear("_matmul:Matmul", DENSE),
    "linear_operator pivoted cholesky": lambda: linear("_pivoted_cholesky:PivotedCholesky", 2, 1e-6),
}


def outcome(run):
    torch.manual_seed(0)
    x = leaf(4, 4) if run.__name__ != "run" else leaf(3, 3)
    try:
        out = run(x * 1)
        outs = [o for o in (out if isinstance(out, tuple) else (out,)) if isinstance(o, torch.Tensor)]
        sum(o.sum() for o in outs if o.requires_grad).backward()
        return bits(outs), bits(x.grad)
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_same_as_bare(case):
    torch.manual_seed(0)
    function, run = CASES[case]()
    before = dict(vars(function))
    expected = outcome(run)
    assert outcome(run) == expected, "the bare run cannot be repeated"
    assert not isinstance(expected[0], str), expected
    with log.recording(function) as calls:
        assert outcome(run) == expected
        assert {"forward", "backward"} <= {call.method for call in calls}
        assert log.problems() == ()
    assert dict(vars(function)) == before
