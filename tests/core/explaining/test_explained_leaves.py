"""Programs without a graph, leaves without a gradient, and gradients that are not finite."""

from __future__ import annotations

import math

import pytest
import torch
from explained import Programs, check

pytestmark = pytest.mark.usefixtures("saved_tensors_shown")
PROGRAMS = Programs()
case = PROGRAMS.case


# ---- no graph ----


@case("what has no name is quoted", "numpy", "w * 2")
def array_of_an_expression():
    w = torch.ones(2, requires_grad=True)
    (w * 2).numpy()


@case(
    "the line that switched gradients off is the one in force",
    "no_grad_no_grad",
    no_grad_switched_off={"text": "with torch.no_grad():"},
)
def switched_on_inside():
    w = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        with torch.enable_grad():
            w.sum()
        y = (w * 2).sum()
    y.backward()


def logged(function):
    return function


@logged
@torch.no_grad()
def scored(net, x):
    return net(x)


@case("gradients that a decorator switches off", "no_grad_no_grad", no_grad_switched_off={"text": "@torch.no_grad()"})
def silent():
    loss = scored(torch.nn.Linear(2, 1), torch.ones(3, 2)).sum()
    loss.backward()


@case(
    "a line that only reads a tensor with a graph out does not cut it",
    "no_grad",
    did=None,
    no_grad_left={"text": "array = scores.detach().numpy()"},
)
def error_rate():
    scores, wanted = torch.ones(2, requires_grad=True) * 2, torch.ones(2)
    array = scores.detach().numpy()
    other = wanted.numpy()
    loss = torch.from_numpy(array - other).mean()
    loss.backward()


@case("numbers that the line of a tensor reads out cut the graph", "no_grad_python", "angle", lines="did")
def read_as_numbers():
    angle = torch.nn.Parameter(torch.zeros(2))

    def turned():
        rows = [torch.tensor([math.cos(a), math.sin(a)], requires_grad=True) for a in angle]  # did
        return torch.stack(rows).sum()

    turned().backward()
    return angle


@case("numbers that are only logged do not", "unused")
def only_logged():
    weight, other = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    logged = [weight.sum().item()]
    torch.tensor(logged[0] + 1)
    (other * 2).sum().backward()
    return weight


@case(
    "a change is not offered where gradients arrive at no other leaf than before",
    "no_grad_python",
    lines="did",
    fix=None,
)
def mined():
    weight, values = torch.nn.Parameter(torch.ones(3)), []
    for k in range(3):
        values += [(weight[k] * 2).item()]  # did
    loss = torch.tensor(values, requires_grad=True).sum()
    loss.backward()
    return weight


@case(
    "numbers that become a tensor again have both lines",
    "no_grad_python",
    "net.weight",
    lines="did",
    says="no_grad_anew",
)
def read_out():
    net, terms = torch.nn.Linear(2, 1), []
    for row in torch.ones(3, 2):
        value = net(row).sum()
        terms += [value.item()]  # did
    torch.tensor(terms, requires_grad=True).sum().backward()
    return net.weight


class Normals(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.spread = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)

    def forward(self, x):
        return torch.distributions.Normal(self.mean(x), self.spread(x).exp())


@case("a sample that gradients are to pass through", "no_grad_inside", slow=True, fix="action = distribution.rsample()")
def drawn():
    torch.manual_seed(0)
    net, critic = Normals(), torch.nn.Linear(2, 1)
    distribution = net(torch.ones(4, 3))
    action = distribution.sample()
    loss = critic(action).mean() - distribution.entropy().mean()
    loss.backward()
    return net.mean.weight


@case(
    "values that leave the graph through the data of another",
    "no_grad_data",
    lines="did",
    no_grad_data={"name": "layer.weight"},
)
def taken_over():
    weight, layer = torch.ones(3, requires_grad=True), torch.nn.Linear(3, 1, bias=False)
    made = weight * 2
    layer.weight.data = made.view(1, 3)  # did
    loss = layer(torch.ones(2, 3)).sum()
    loss.backward()
    return weight


@case("parameters that were frozen when they were used", "no_grad_frozen", lines="did")
def frozen_for_a_while():
    net = torch.nn.Linear(2, 1)
    net.weight.requires_grad_(False)  # did
    net.bias.requires_grad_(False)
    loss = net(torch.ones(2)).sum()
    net.requires_grad_(True)
    loss.backward()


@case("leaves made anew of leaves made anew are followed to the first", "no_grad_detach", "net.weight", lines="did")
def adapted_by_hand():
    net, fast = torch.nn.Linear(2, 1), {}
    fast = dict(net.named_parameters())
    for _ in range(2):
        loss = torch.func.functional_call(net, fast, (torch.ones(1, 2),)).pow(2).sum()
        gradients = torch.autograd.grad(loss, list(fast.values()))
        for (name, p), g in zip(list(fast.items()), gradients, strict=True):
            fast[name] = (p - 0.1 * g).detach().requires_grad_()  # did
    torch.func.functional_call(net, fast, (torch.ones(1, 2),)).sum().backward()
    return net.weight


@case("a detach beside integers does not cut the graph", "no_grad_integer", fix=None)
def rounded():
    w = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    scale = w.max() / 7
    q = (w / scale).round().int() * scale.detach()
    q.sum().backward()


@case("a constant is not what is computed from", "no_grad_not_required", "t")
def asked_of_a_constant():
    x, t = torch.ones(3, requires_grad=True), torch.linspace(0, 1, 3)
    u = (x**2).sum()
    torch.autograd.grad(u, t)


# ---- no .grad ----


class Generated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = torch.nn.Linear(2, 6)
        self.main = torch.nn.Linear(3, 2)

    def forward(self, x):
        w = self.generator(torch.ones(2)).view(2, 3)
        self.main.weight = torch.nn.Parameter(w)  # did
        return self.main(x)


@case(
    "the leaf that stands in the way of a parameter",
    "unused_new_leaf",
    "model.generator.weight",
    lines="did",
    no_grad_new_leaf={"name": "w"},
)
def generated():
    model = Generated()
    loss = model(torch.ones(4, 3)).sum()
    loss.backward()
    return model.generator.weight


@case("a result is no leaf, and the line that made it is named", "grad_none_not_a_leaf", "patch", lines="made")
def scaled():
    patch = torch.ones(3, requires_grad=True) * 2  # made
    patch.sum().backward()
    return patch


@case("a row of a parameter keeps no gradient", "grad_none_not_a_leaf", "table[1]")
def row_of_a_table():
    table = torch.nn.Parameter(torch.ones(4, 2))
    table[1].square().sum().backward()
    return table[1]


@case("what one optimizer leaves out another may hold", "nothing")
def shared_out():
    body, head = torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)
    optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (body, head)]
    head(body(torch.ones(4, 3))).sum().backward()
    for optimizer in optimizers:
        optimizer.step()


class Trainer:
    def __init__(self):
        self.model = torch.nn.Linear(2, 1)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def resume(self):
        self.model = torch.nn.Linear(2, 1)

    def step(self):
        self.model(torch.ones(1, 2)).sum().backward()
        self.opt.step()  # did


@case(
    "a trainer that resumes with another model",
    "optimizer_holds_others",
    lines="did",
    optimizer_left_out_what={"name": "self.model.bias`, `self.model.weight"},
)
def resumed():
    trainer = Trainer()
    held = trainer.model.weight
    trainer.resume()
    trainer.step()
    return held


# ---- not finite ----


@case(
    "a second where in the line above", "not_finite_masked_division_by_zero", fix="ratio = n / torch.where(d > 0, d, 1)"
)
def assigned_behind_where():
    n, d = torch.ones(2, requires_grad=True), torch.tensor([0.0, 2.0], requires_grad=True)
    ratio = n / d
    torch.where(d > 0, ratio, 0.0).sum().backward()


@case(
    "a where goes around the input of what overflows",
    "not_finite_masked_exp_overflow",
    fix="torch.where(x > 0, x, torch.exp(torch.where(x > 0, 0, x)) - 1).sum().backward()",
)
def half_overflows():
    x = torch.tensor([20.0, -1.0], dtype=torch.float16, requires_grad=True)
    torch.where(x > 0, x, torch.exp(x) - 1).sum().backward()
    return x


@case("the backward of a loss that a function returns is tried", "not_finite_masked_sqrt_at_zero", lines="did")
def at_zero():
    x = torch.zeros(3, requires_grad=True)
    return torch.where(x > 0, x.sqrt(), 0.0).sum()  # did


@case(
    "a NaN of forward that the loss does not show has its own line",
    "not_finite_all_masked",
    lines="did",
    says="not_finite_hidden",
)
def masked_attention():
    scores = torch.zeros(3, 3, requires_grad=True)
    values = torch.ones(3, 2, requires_grad=True)
    masked = scores.masked_fill(torch.eye(3).cumsum(0) == 0, float("-inf"))
    masked = torch.where(torch.tensor([[True], [False], [True]]), masked, float("-inf"))
    weights = torch.softmax(masked, -1)  # did
    out = weights @ values
    return out[0].sum() + out[2].sum()


@case("masking what comes out does not help", "not_finite_log_of_zero", says="not_finite_hidden")
def entropy_masked_afterwards():
    p = torch.tensor([0.0, 0.5, 0.5], requires_grad=True)
    terms = torch.where(p > 0, p * torch.log(p), torch.zeros(3))
    terms.sum().backward()
    return p


@case(
    "a loss was not finite, and an optimizer went on from it",
    "not_finite_division_by_zero",
    lines="did",
    says="not_finite_forward",
)
def infinite_and_stepped():
    w = torch.nn.Parameter(torch.tensor([0.0, 1.0]))
    opt = torch.optim.SGD([w], lr=0.1)
    for _ in range(2):
        opt.zero_grad()
        loss = w.reciprocal().sum()  # did
        loss.backward()
        opt.step()


@case("a NaN that anomaly mode refuses has its line and its trap", "not_finite_masked_sqrt_at_zero", lines="did")
def refused_by_anomaly_mode():
    x = torch.zeros(2, requires_grad=True)
    with torch.autograd.detect_anomaly():
        root = (x * x).sqrt()  # did
        (root * x.detach()).sum().backward()


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize(("program", "expected"), PROGRAMS)
def test_what_a_program_s_explanation_names(program, expected):
    check(program, expected)
