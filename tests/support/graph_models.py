"""Graphs for the tests of ``core/graphs``: every state that a user's graph can be in."""

from __future__ import annotations

import contextlib

import torch
from fn import Fn
from torch import nn


class Linear(Fn):
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight)
        ctx.note = "kept"
        output = input.mm(weight.t())
        return output if bias is None else output + bias

    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        return (
            grad_output.mm(weight),
            grad_output.t().mm(input),
            grad_output.sum(0) if ctx.needs_input_grad[2] else None,
        )


# Returns a gradient with more dimensions than its input; the engine sums it.
Broadcasting = Fn.of("Broadcasting", "x, shift: return x + shift", "grad_output: return grad_output, grad_output")
Raising = Fn.of("Raising", "x: return x * 2", 'grad_output: raise ValueError("not today")')
# Returns None for its second input.
Nothing = Fn.of("Nothing", "a, b: return a * 2 + b.detach()", "grad_output: return grad_output * 2, None")


def mlp():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    return model, model(torch.randn(5, 3)).pow(2).mean()


def rnn(steps=12):
    torch.manual_seed(0)
    wx, wh = (torch.randn(3, 3, requires_grad=True) for _ in range(2))
    h, loss = torch.zeros(2, 3), torch.zeros(())
    for x in torch.randn(steps, 2, 3):
        h = torch.tanh(x @ wx + h @ wh)
        loss = loss + h.sigmoid().mean()
    return [wx, wh], loss


class ResidualBlock(nn.Module):
    def __init__(self, channels, out, stride, act) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        self.act = act
        shrinks = stride > 1 or channels != out
        self.short = nn.Sequential(nn.Conv2d(channels, out, 1, stride), nn.BatchNorm2d(out)) if shrinks else None

    def forward(self, x):
        short = x if self.short is None else self.short(x)
        return self.act(self.norm2(self.conv2(self.act(self.norm1(self.conv1(x))))) + short)


class ResNet(nn.Module):
    """A stem, four layers of residual blocks and a head."""

    def __init__(self, act=None, blocks=(3, 4, 6, 3)) -> None:
        super().__init__()
        act = act or nn.ReLU()
        self.conv = nn.Conv2d(3, 4, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.act = act
        self.pool = nn.MaxPool2d(3, 2, 1)
        for k, count in enumerate(blocks):
            first = ResidualBlock(4 * 2 ** max(k - 1, 0), 4 * 2**k, 2 if k else 1, act)
            rest = [ResidualBlock(4 * 2**k, 4 * 2**k, 1, act) for _ in range(count - 1)]
            setattr(self, f"layer{k + 1}", nn.Sequential(first, *rest))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = self.pool(self.act(self.norm(self.conv(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.head(x.mean((2, 3)))


def resnet(act=None, frozen=()):
    torch.manual_seed(0)
    model = ResNet(act)
    for name in frozen:
        getattr(model, name).requires_grad_(False)
    return model, nn.functional.cross_entropy(model(torch.randn(2, 3, 32, 32)), torch.tensor([1, 2]))


def blocks_in_sequence():
    """Residual blocks of which none has a name but its place, as they are called after another part."""
    blocks = [ResidualBlock(4 * k, 8, 1, nn.functional.relu) for k in (1, 2)]
    model = nn.Sequential(nn.Conv2d(3, 4, 3), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
    return model, model(torch.randn(2, 3, 6, 6)).sum()


def encoder(frozen=(), layers=6, **options):
    """A transformer without an embedding: what it is fed needs no gradient."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, **options)
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    for k in frozen:
        model.layers[k].requires_grad_(False)
    return model, model(torch.randn(2, 3, 8)).sum()


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return x + self.outer(self.inner(self.norm(x)).relu())


class InContainer(nn.Module):
    def __init__(self, container) -> None:
        super().__init__()
        self.layers = container([Residual() for _ in range(6)])

    def forward(self, x):
        for layer in getattr(self.layers, "values", lambda: self.layers)():
            x = layer(x)
        return x


def residual(container=nn.ModuleList, frozen=0):
    """Residual blocks that a loop runs, the first ones frozen."""
    model = InContainer(container)
    for layer in [*model.layers.children()][:frozen]:
        layer.requires_grad_(False)
    return model, model(torch.randn(3, 8)).sum()


class LanguageModel(nn.Module):
    def __init__(self, frozen) -> None:
        super().__init__()
        self.embedding = nn.Embedding(4, 8)
        self.encoder, _ = encoder(frozen)
        self.head = nn.Linear(8, 4)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens)))


def language_model(frozen=()):
    model = LanguageModel(frozen)
    return model, nn.functional.cross_entropy(model(torch.tensor([[0, 1, 2], [3, 2, 1]])).mT, torch.ones(2, 3).long())


def twice(channels, out):
    layers = [(nn.Conv2d(c, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()) for c in (channels, out)]
    return nn.Sequential(*layers[0], *layers[1])


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.down3, self.middle = (twice(max(1, k // 2), k) for k in (2, 4, 8, 16))
        self.up3, self.up2, self.up1 = (nn.ConvTranspose2d(2 * k, k, 2, 2) for k in (8, 4, 2))
        self.join3, self.join2, self.join1 = (twice(2 * k, k) for k in (8, 4, 2))
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.down3(self.pool(b))
        x = self.join3(torch.cat([self.up3(self.middle(self.pool(c))), c], 1))
        x = self.join2(torch.cat([self.up2(x), b], 1))
        return self.join1(torch.cat([self.up1(x), a], 1))


def unet():
    """A U-Net inside of another module, so that it has a frame."""
    torch.manual_seed(0)
    net = UNet()
    return nn.ModuleDict({"net": net}), net(torch.randn(1, 1, 32, 32)).pow(2).mean()


Cube = Fn.of("Cube", "x: save(x); return x**3", "grad_output: return 3 * grad_output * ctx.saved_tensors[0] ** 2")


class CubeModule(nn.Module):
    def forward(self, x):
        return Cube.apply(x)


def linear_function():
    torch.manual_seed(0)
    x = torch.randn(5, 4, dtype=torch.float64)
    weight = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(3, dtype=torch.float64, requires_grad=True)
    return {"x": x, "weight": weight, "bias": bias}, Linear.apply(x, weight, bias).sum()


def states():
    """Name -> tensors whose graph is in that state."""
    made = {}
    _, made["fresh"] = linear_function()
    _, after = linear_function()
    after.backward()
    made["after backward"] = after
    _, twice = linear_function()
    twice.backward(retain_graph=True)
    made["retained"] = twice
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    z = (y * y).sum()
    with torch.no_grad():
        y.add_(1)
    made["changed in place"] = z
    failed = Raising.apply(x).sum()
    with contextlib.suppress(ValueError):
        failed.backward()
    made["after an exception"] = failed
    made["several outputs"] = [x.sin(), {"a": (x.cos(), x)}, x * 2]
    made["an unbind"] = (x * 2).unbind()
    (first,) = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
    made["double backward"] = first.sum()
    made["no graph"] = torch.ones(3)
    made["a leaf"] = x
    made["integers"] = torch.arange(3)
    made["nothing"] = []
    made["an in-place view"] = _view()
    made["packed"] = _packed()
    made["meta"] = (torch.ones(3, device="meta", requires_grad=True) * 2).sum()
    made["complex"] = (torch.ones(2, dtype=torch.complex64, requires_grad=True) ** 2).abs().sum()
    made["sparse"] = torch.sparse.mm(torch.eye(3).to_sparse().requires_grad_(), torch.ones(3, 2)).sum()
    made["empty"] = torch.ones(0, 3, requires_grad=True).sum()
    return made


def _view():
    base = torch.zeros(4, requires_grad=True) * 1
    base[1:3].mul_(2)
    return base.sum()


def _packed():
    def refuse(_):
        raise AssertionError("an unpack hook ran")

    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: "elsewhere", refuse):
        return Linear.apply(x.reshape(1, 3), torch.ones(2, 3, requires_grad=True), None).exp().sum()
