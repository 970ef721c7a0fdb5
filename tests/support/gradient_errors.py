"""Small programs that end in one of torch's gradient errors, each with the tensor and the lines that are to blame.

``# made`` stands on the line that made the tensor, ``# saved`` on the one that saved it for backward, ``# did`` on the
line that did what torch complains of. A head says name, code and tensor; ``-`` stands for a tensor without a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PROGRAMS = """
=== exp then add | in_place | y
x = torch.ones(3, requires_grad=True)
y = x.exp()  # made
y += 1  # did
y.sum().backward()
=== second of two writes saved between | in_place | h
x = torch.randn(3, requires_grad=True)
h = x * 1  # made
h.add_(1)
z = h.sin()  # saved
h.mul_(2)  # did
z.sum().backward()
=== write through detach | in_place | y
x = torch.randn(4, requires_grad=True)
y = x.exp()  # made
d = y.detach()
d.zero_()  # did
y.sum().backward()
=== step between two backwards | in_place_step | net[1].weight
net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(2, 3, requires_grad=True)
loss = net(x).sum()  # made
loss.backward(retain_graph=True)
opt.step()  # did
loss.backward()
=== recurrent state filled by index | in_place | states
x = torch.randn(4, requires_grad=True)
states = torch.zeros(5)  # made
for t in range(4):
    states[t + 1] = torch.tanh(states[t] * x[t])  # did saved
loss = states.sum()
loss.backward()
=== state carried over | freed_carried | h
w = torch.randn(3, requires_grad=True)
h = torch.zeros(3)
for step in range(3):
    h = torch.tanh(h * w + 1)  # made
    loss = h.sum()
    loss.backward()  # did
=== states of an lstm | freed_carried | state[0]
lstm, head = torch.nn.LSTM(2, 3, batch_first=True), torch.nn.Linear(3, 1)
state = None
for batch in torch.randn(3, 4, 5, 2):
    out, state = lstm(batch, state)  # made
    loss = head(out).pow(2).mean()
    loss.backward()  # did
=== same loss twice | freed_again | loss
x = torch.randn(3, requires_grad=True)
loss = x.exp().sum()  # made
loss.backward()  # did
loss.backward()
=== two losses share features | freed_shared | features
w = torch.randn(3, requires_grad=True)
features = w.exp()  # made
first = (features * 2).sum()
second = (features ** 2).sum()
first.backward()  # did
second.backward()
=== a loss kept in a list of an object | freed_carried | smooth.recent[0]
class Smooth:
    def __init__(self):
        self.recent = []
    def __call__(self, loss):
        self.recent = [*self.recent, loss][-2:]
        return sum(self.recent) / len(self.recent)
smooth, net = Smooth(), torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh())
for _ in range(3):
    loss = net(torch.randn(4, 2)).pow(2).mean()  # made
    objective = smooth(loss)
    objective.backward()  # did
=== frozen as a module, behind a view | no_grad_frozen | net[0].weight
net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
net.requires_grad_(False)  # did
loss = net(torch.ones(4, 2)).T[0].mean()
loss.backward()
=== a leaf made of the data of what was computed | no_grad_detach | w
w = torch.ones(3, requires_grad=True)
h = w.exp()
start = h.data.requires_grad_()  # did
loss = start.square().sum()
torch.autograd.grad(loss, (w,))
=== no_grad block | no_grad_no_grad | w
w = torch.randn(3, requires_grad=True)
with torch.no_grad():
    y = w * 2  # did
y.sum().backward()
=== no_grad decorator | no_grad_no_grad | t
@torch.no_grad()
def features(t):
    return t.exp()  # did
w = torch.randn(3, requires_grad=True)
features(w).sum().backward()
=== detach of the prediction | no_grad_detach | pred
w = torch.randn(3, requires_grad=True)
pred = w * 2
err = pred.detach() - 1  # did
loss = (err ** 2).mean()
loss.backward()
=== data | no_grad_detach | w
w = torch.randn(3, requires_grad=True)
y = w.data * 2  # did
y.sum().backward()
=== item | no_grad_python | s
w = torch.randn(3, requires_grad=True)
s = (w * 2).sum()
value = s.item()  # did
loss = torch.tensor(value)
loss.backward()
=== numpy round trip | no_grad | loss
w = torch.randn(3, requires_grad=True)
y = w * 2
a = y.detach().numpy()
loss = torch.from_numpy(a).sum()
loss.backward()
=== torch.tensor of a tensor | no_grad_copied | y
import warnings
w = torch.randn(3, requires_grad=True)
y = w * 2
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    z = torch.tensor(y)  # did
z.sum().backward()
=== argmax | no_grad_integer | logits
w = torch.randn(3, requires_grad=True)
logits = w * 2
guess = logits.argmax()  # did
loss = (guess - 1.0) ** 2
loss.backward()
=== set_grad_enabled | no_grad_no_grad | w
w = torch.randn(3, requires_grad=True)
with torch.set_grad_enabled(False):
    loss = (w ** 2).sum()  # did
loss.backward()
=== gradient penalty without a graph | no_grad_create_graph | y
x = torch.randn(3, requires_grad=True)
y = (x ** 3).sum()
(g,) = torch.autograd.grad(y, x)  # did
penalty = g.pow(2).sum()
penalty.backward()
=== nothing requires grad | no_grad_not_required | loss
w = torch.randn(3)
x = torch.ones(3)
loss = (w * x).sum()
loss.backward()
=== unused input | unused | b
a = torch.randn(3, requires_grad=True)
b = torch.randn(3, requires_grad=True)  # made
loss = (a * 2).sum()
torch.autograd.grad(loss, b)
=== leaf changed in place | leaf | w
w = torch.randn(3, requires_grad=True)  # made
w += 1  # did
=== unbind changed in place | view | row
w = torch.randn(2, 3, requires_grad=True)
row, other = (w * 2).unbind(0)  # made
row.add_(1)  # did
=== numpy of a result | numpy | y
w = torch.randn(3, requires_grad=True)
y = w * 2  # made
a = y.numpy()  # did
=== integers require grad | integer | k
k = torch.tensor([1, 2])  # made
k.requires_grad_()  # did
=== freeze a result | not_a_leaf | y
w = torch.randn(3, requires_grad=True)
y = w * 2  # made
y.requires_grad = False  # did
=== optimise a result | optimize_non_leaf | w
w = torch.randn(3, requires_grad=True).to(torch.float64)  # made
opt = torch.optim.SGD([w], lr=0.1)  # did
=== copy with a graph | deepcopy | y
import copy
w = torch.randn(3, requires_grad=True)
y = w * 2  # made
copy.deepcopy(y)  # did
=== loss of many numbers | not_scalar | loss
w = torch.randn(3, requires_grad=True)
loss = w * 2  # made
loss.backward()  # did
=== inference tensor | inference | t
w = torch.randn(3, requires_grad=True)
with torch.inference_mode():
    t = torch.ones(3)  # made
y = w * t  # did
=== two gradients for one argument | returned_number | -
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2, g  # did
w = torch.randn(3, requires_grad=True)
F.apply(w).sum().backward()
=== gradient of a wrong shape | returned_shape | weight
class Lin(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight
    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        grad_x = g @ weight.t()
        grad_weight = g.t() @ x  # did
        return grad_x, grad_weight
x = torch.randn(2, 3, requires_grad=True)
w = torch.randn(3, 4, requires_grad=True)
Lin.apply(x, w).sum().backward()
=== gradient on another device | returned_device | x
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return torch.ones(3, device="meta")  # did
w = torch.randn(3, requires_grad=True)
F.apply(w).sum().backward()
=== text for a gradient | returned_type | -
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return "2"  # did
w = torch.randn(3, requires_grad=True)
F.apply(w).sum().backward()
=== dirty and not returned | mark_dirty | -
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)  # did
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
w = torch.randn(3, requires_grad=True)
F.apply(w * 1).sum().backward()
=== number saved | save_for_backward | -
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)  # did
        return x * scale
    @staticmethod
    def backward(ctx, g):
        return g, None
w = torch.randn(3, requires_grad=True)
F.apply(w, 2.0).sum().backward()
=== saved by a Function and changed | in_place | k
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(k)
        return x * k
    @staticmethod
    def backward(ctx, g):
        k, = ctx.saved_tensors
        return g * k, None
w = torch.randn(3, requires_grad=True)
k = torch.ones(3)  # made
y = F.apply(w, k)
k.add_(1)  # did
y.sum().backward()
"""

# what can be seen here points to a line that is not to blame: a hidden function did it
MISLEADING = """
=== a visible write before, a hidden one after | in_place | -
def hidden(t):
    t.data.mul_(1)
    t.add_(1)  # did
x = torch.randn(3, requires_grad=True)
y = x * 1
y.add_(1)
z = y.exp() + y ** 2
hidden(y)
z.sum().backward()
=== a step before, a hidden change after | in_place | -
def clip(module):
    with torch.no_grad():
        module.weight.clamp_(-1, 1)  # did
net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.randn(1, 2)).sum().backward()
opt.step()
x = torch.randn(1, 2, requires_grad=True)
loss = net(x).sum()
clip(net)
loss.backward()
=== another loss's backward, a hidden one of this | freed | -
def log(value):
    value.backward()  # did
w = torch.randn(3, requires_grad=True)
v = torch.randn(3, requires_grad=True)
other = (v ** 2).sum()
loss = (w ** 2).sum()
other.backward()
log(loss)
loss.backward()
=== a detach that is not on the way | no_grad | -
def frozen(t):
    with torch.no_grad():
        return t * 2  # did
w = torch.randn(3, requires_grad=True)
seen = w.detach().sum()
loss = frozen(w).sum()
loss.backward()
=== a number that is the same by chance | no_grad | -
w = torch.ones(3, requires_grad=True)
one = w[0].item()
x = torch.tensor(1.0)
loss = x * 2
loss.backward()
"""

FINITE = """
=== a step carries what a backward made | not_finite_sqrt_at_zero | -
x = torch.zeros(3, requires_grad=True)
opt = torch.optim.SGD([x], lr=0.1)
for _ in range(3):
    opt.zero_grad()
    loss = (x ** 2).sum().sqrt()  # did
    loss.backward()
    opt.step()
=== an in-place log makes it | not_finite | t
t = torch.tensor([-1.0, 1.0])
t.log_()  # did
loss = (t * torch.ones(2, requires_grad=True)).sum()
loss.backward()
=== log of zero | not_finite_log_of_zero | p
p = torch.tensor([0.0, 0.5], requires_grad=True)
loss = torch.log(p).sum()  # did
loss.backward()
=== sqrt of a negative | not_finite_sqrt_negative | v
v = torch.tensor([-1.0, 4.0], requires_grad=True)
loss = v.sqrt().sum()  # did
loss.backward()
=== exp overflow | not_finite_exp_overflow | z
z = torch.tensor([1000.0], requires_grad=True)
e = z.exp()  # did
loss = (e / e).sum()
loss.backward()
=== empty masked mean | not_finite_zero_over_zero | total
x = torch.tensor([1.0, 2.0], requires_grad=True)
mask = torch.zeros(2)
total = (x * mask).sum()
loss = total / mask.sum()  # did
loss.backward()
=== mean of nothing | not_finite_mean_of_nothing | -
x = torch.tensor([1.0, 2.0], requires_grad=True)
loss = x[x > 5].mean()  # did
loss.backward()
=== a negative to a power | not_finite_pow_of_negative | x
x = torch.tensor([-1.0, 4.0], requires_grad=True)
loss = (x ** 0.5).sum()  # did
loss.backward()
=== acos outside | not_finite_outside_domain | c
c = torch.tensor([1.1], requires_grad=True)
loss = torch.acos(c).sum()  # did
loss.backward()
=== all masked softmax | not_finite_all_masked | scores
q = torch.randn(3, requires_grad=True)
scores = q.masked_fill(torch.ones(3, dtype=torch.bool), float("-inf"))
att = scores.softmax(0)  # did
loss = att.sum()
loss.backward()
=== zero times infinity | not_finite_zero_times_inf | a
a = torch.tensor([float("-inf"), 1.0], requires_grad=True)
loss = (a * torch.tensor([0.0, 1.0])).sum()  # did
loss.backward()
=== data with a NaN | not_finite | -
data = torch.tensor([1.0, float("nan")])  # did
w = torch.ones(2, requires_grad=True)
loss = (data * w).sum()
loss.backward()
=== std of one | not_finite_std_of_one | x
x = torch.tensor([1.0], requires_grad=True)
loss = x.std()  # did
loss.backward()
=== sqrt behind where | not_finite_masked_sqrt_at_zero | -
x = torch.tensor([0.0, 1.0], requires_grad=True)
r = x.sqrt()  # did
loss = torch.where(x > 0, r, torch.zeros(2)).sum()
loss.backward()
=== acos at one | not_finite_acos_at_one | -
c = torch.tensor([1.0], requires_grad=True)
angle = torch.acos(c)  # did
loss = angle.sum()
loss.backward()
=== power at zero | not_finite_pow_at_zero | -
x = torch.tensor([0.0, 1.0], requires_grad=True)
loss = (x ** 0.5).sum()  # did
loss.backward()
=== norm from the library | nothing | -
a = torch.zeros(3, requires_grad=True)
loss = a.norm() * 2
loss.backward()
=== division behind where | not_finite_masked_division_by_zero | -
n = torch.tensor([1.0, 2.0], requires_grad=True)
d = torch.tensor([0.0, 2.0], requires_grad=True)
ratio = n / d  # did
loss = torch.where(d > 0, ratio, torch.zeros(2)).sum()
loss.backward()
"""

# errors that are not torch's, or none at all, behind which a gradient is missing or a number is not finite
SYMPTOMS = """
=== a step makes a new tensor | grad_none_not_a_leaf | w
w = torch.randn(3, requires_grad=True)
for _ in range(2):
    loss = (w * w).sum()
    loss.backward()
    w = w - 0.1 * w.grad  # made
    w.grad.zero_()
=== a conversion behind requires_grad | grad_none_not_a_leaf | x
x = torch.randn(3, requires_grad=True).double()  # made
(x * x).sum().backward()
x.grad.norm()
=== a product with None | unused | b
a = torch.ones(2, requires_grad=True)
b = torch.ones(2, requires_grad=True)
(a * 2).sum().backward()
step = 0.1 * b.grad
=== a product with None behind a detach | no_grad_detach | w
w = torch.ones(2, requires_grad=True)
v = torch.ones(2, requires_grad=True)
h = (w * 2).detach()  # did
(h * v).sum().backward()
w = w - 0.1 * w.grad
=== a Function that returns None | grad_none_returned_none | w
class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, n, a, b):
        ctx.save_for_backward(b)
        return a * b * n
    @staticmethod
    def backward(ctx, g):
        b, = ctx.saved_tensors
        return None, g * b, None  # did
v, w = (torch.ones(2, requires_grad=True) for _ in range(2))
for _ in range(2):
    v.grad = None
    out = Product.apply(1, v, w.exp())
    out.sum().backward()
w.grad.norm()
=== a gradient read before backward | grad_none_no_backward | w
w = torch.ones(2, requires_grad=True)
loss = (w * 2).sum()
print(w.grad.abs())
=== a gradient read after it was removed | grad_none_removed | model.weight
model = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(1, 2)).sum().backward()
opt.zero_grad()  # did
norms = [p.grad.norm() for p in model.parameters()]
=== gradients of a frozen layer | grad_none_frozen | net[0].weight
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
for p in net[0].parameters():
    p.requires_grad = False  # did
net(torch.ones(1, 2)).sum().backward()
for p in net.parameters():
    print(p.grad.mean())
=== a gradient in a variable | grad_none_not_a_leaf | h
x = torch.ones(3, requires_grad=True)
h = x * 2  # made
h.sum().backward()
saliency = h.grad
saliency.abs().max()
=== assert that a result has a gradient | grad_none_not_a_leaf | h
x = torch.ones(3, requires_grad=True)
h = x * 2  # made
h.sum().backward()
assert h.grad is not None
=== assert that all have gradients | unused | net[1].weight
net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Linear(1, 1))
net[0](torch.ones(1, 2)).sum().backward()
assert all(p.grad is not None for p in net.parameters())
=== a gradient that is missed, and refused | grad_none_not_a_leaf | h
x = torch.ones(3, requires_grad=True)
h = x * 2  # made
h.sum().backward()
if h.grad is None:
    raise RuntimeError("nothing arrived")
=== assert of a loss | not_finite_log_negative | x
x = torch.tensor([1.0, -1.0], requires_grad=True)
y = torch.log(x)  # did
loss = y.sum()
assert torch.isfinite(loss)
=== assert of a gradient | not_finite_masked_sqrt_at_zero | -
x = torch.tensor([0.0, 4.0], requires_grad=True)
y = torch.where(x > 0, x.sqrt(), torch.zeros(2))  # did
y.sum().backward()
assert torch.isfinite(x.grad).all()
=== a distribution refuses its parameters | not_finite_log_negative | raw
from torch.distributions import Normal
raw = torch.tensor([-1.0, 2.0], requires_grad=True)
scale = raw.log()  # did
Normal(torch.zeros(2), scale).sample()
=== an optimizer of what is detached | no_grad_detach | w
w = torch.nn.Parameter(torch.ones(2))
v = torch.nn.Parameter(torch.ones(2))
opt = torch.optim.SGD([w, v], lr=0.1)
for _ in range(2):
    opt.zero_grad()
    h = (w * 2).detach()  # did
    loss = (h * v).sum()
    loss.backward()
    opt.step()
=== a NaN that nobody looks at | not_finite_zero_over_zero | -
x, mask = torch.ones(3), torch.zeros(3)
mean = (x * mask).sum() / mask.sum()  # did
print("mean", mean)
=== weights that diverge | not_finite | -
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e12)
x = torch.ones(8, 4)
for _ in range(20):
    loss = net(x).square().mean()  # did
    opt.zero_grad()
    loss.backward()
    opt.step()
    assert not torch.isnan(loss), "diverged"
=== a NaN before another error | not_finite_log_negative | x
x = torch.tensor([-1.0], requires_grad=True)
loss = x.log().sum()  # did
loss.backward()
{}["accuracy"]
"""

# programs that are as they are meant: nothing is wrong, or what is wrong has nothing to do with gradients
QUIET = """
=== a step, then the gradients are removed | nothing |
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
model[0].bias.requires_grad_(False)
opt = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(2):
    loss = model(torch.ones(1, 2)).sum()
    loss.backward()
    opt.step()
    opt.zero_grad()
=== a target network | nothing |
import copy
net = torch.nn.Linear(2, 1)
target = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
with torch.no_grad():
    goal = target(torch.ones(1, 2))
loss = (net(torch.ones(1, 2)) - goal.detach()).square().mean()
loss.backward()
opt.step()
=== a mask of infinities | nothing |
scores = torch.randn(2, 2, requires_grad=True)
masked = scores.masked_fill(torch.tensor([[False, True], [False, False]]), float("-inf"))
masked.softmax(-1).square().sum().backward()
=== a mask of infinities before another error | not_torch |
scores = torch.randn(2, 2, requires_grad=True)
masked = scores.masked_fill(torch.tensor([[False, True], [False, False]]), float("-inf"))
masked.softmax(-1).square().sum().backward()
{}["accuracy"]
=== a step before the first backward | nothing |
w = torch.nn.Parameter(torch.ones(2))
opt = torch.optim.SGD([w], lr=0.1)
opt.step()
(w * 2).sum().backward()
opt.step()
=== an evaluation | nothing |
net = torch.nn.Linear(2, 1)
with torch.no_grad():
    accuracy = net(torch.ones(4, 2)).mean().item()
"""

OTHERS = """
=== shapes do not fit | |
torch.randn(2, 3) @ torch.randn(2, 3)
=== user's own words | |
raise RuntimeError("Trying to backward through the graph a second time")
=== a shape that an assertion refuses | |
scores = torch.zeros(2, 2).fill_(float("-inf"))
assert scores.shape == (3, 3)
=== None of something else | |
x = torch.ones(2, requires_grad=True)
x.grad_fn.name()
=== an assertion that wants no gradient | |
w, u = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
w.sum().backward()
assert u.grad is None and w.sum() > 9
=== a gradient in the words of an assertion | |
w = torch.ones(2, requires_grad=True)
assert w.sum() > 9, w.grad
=== assertion | |
assert torch.zeros(1).item() == 1, "element 0 of tensors does not require grad"
"""


@dataclass(frozen=True)
class Case:
    """One program: its text, and what is to be found."""

    name: str
    code: str
    tensor: str
    text: str

    @property
    def did(self) -> int | None:
        """The line marked ``# did``."""
        return self._marked("did")

    @property
    def made(self) -> int | None:
        """The line marked ``# made``."""
        return self._marked("made")

    @property
    def saved(self) -> int | None:
        """The line marked ``# saved``."""
        return self._marked("saved")

    def _marked(self, word: str) -> int | None:
        lines = self.text.splitlines()
        return next((i for i, line in enumerate(lines, 1) if re.search(rf"#.*\b{word}\b", line)), None)


def cases(programs: str) -> list[Case]:
    """Return the programs of a text."""
    found = []
    for part in programs.split("=== ")[1:]:
        head, _, text = part.partition("\n")
        name, code, tensor = (word.strip() for word in head.split("|"))
        found.append(Case(name, code, "" if tensor == "-" else tensor, text))
    return found
