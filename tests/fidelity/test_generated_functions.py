"""Functions that hypothesis makes up: bare and instrumented give the same bits, or the same error."""

from __future__ import annotations

import torch
from fidelity_values import bits
from hypothesis import given, settings
from hypothesis import strategies as st

from nbautograd.core.recording import api as log

ARGUMENTS = st.sampled_from(["leaf", "leaf", "inner", "frozen", "float", "none", "text", "expanded", "transposed"])
QUIRKS = st.fixed_dictionaries(
    {
        "style": st.sampled_from(["combined", "setup_context"]),
        "outputs": st.integers(1, 3),
        "view": st.booleans(),
        "dirty": st.booleans(),
        "as_is": st.booleans(),
        "materialize": st.booleans(),
        "nondiff": st.booleans(),
        "none_gradient": st.booleans(),
        "float32_gradient": st.booleans(),
        "unsummed_gradient": st.booleans(),
        "on_ctx": st.booleans(),
        "optional": st.booleans(),
        "wrong_count": st.sampled_from([0] * 30 + [-1, 1]),
    }
)


def argument(kind, seed):
    tensor = torch.randn(2, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    if kind in ("float", "none", "text"):
        return {"float": 1.5, "none": None, "text": "sum"}[kind]
    if kind == "frozen":
        return tensor
    tensor.requires_grad_()
    made = {
        "expanded": lambda t: t[:1].expand(2, 3),
        "transposed": lambda t: t.t().contiguous().t(),
        "inner": lambda t: t * 1,
    }
    return made.get(kind, lambda t: t)(tensor)


def build(quirks, arguments):
    """A Function with these quirks, made anew."""

    def total(tensors):
        return sum((i + 1) * t for i, t in enumerate(tensors))

    def outputs(args):
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        first = total(tensors)
        made = [first, first.sin(), first.argmax() if quirks["nondiff"] else first * 3][: quirks["outputs"]]
        if quirks["as_is"]:
            made[0] = tensors[0]
        elif quirks["view"]:
            made[0] = tensors[0].view(-1) if tensors[0].is_contiguous() else tensors[0].t()
        elif quirks["dirty"] and arguments[[isinstance(a, torch.Tensor) for a in args].index(True)] == "inner":
            made[0] = tensors[0].mul_(2)
        return tuple(made) if quirks["outputs"] > 1 else made[0]

    def keep(ctx, args, out):
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        first = out[0] if isinstance(out, tuple) else out
        if first is tensors[0] and not quirks["as_is"]:
            ctx.mark_dirty(tensors[0])
        if quirks["nondiff"] and quirks["outputs"] == 3:
            ctx.mark_non_differentiable(out[2])
        ctx.set_materialize_grads(quirks["materialize"])
        ctx.save_for_backward(*tensors[1:], *(out[1:2] if isinstance(out, tuple) else ()))
        ctx.is_tensor = [isinstance(a, torch.Tensor) for a in args]
        if quirks["on_ctx"]:
            ctx.kept = tensors[-1]

    def gradients(ctx, *grads):
        g = next((g for g in grads if g is not None), None)
        if g is None:
            return (None,) * len(ctx.is_tensor)
        g = g.reshape(-1)[:1].expand(2, 3) * sum(s.detach().abs().sum() for s in ctx.saved_tensors[:1])
        if quirks["unsummed_gradient"]:
            g = g.expand(4, 2, 3)
        if quirks["float32_gradient"]:
            g = g.float()
        found = [g * (i + 1) if t else None for i, t in enumerate(ctx.is_tensor)]
        if quirks["none_gradient"]:
            found[0] = None
        return tuple((found + [g])[: len(found) + quirks["wrong_count"]])

    if quirks["style"] == "combined":

        def forward(ctx, *args):
            out = outputs(args)
            keep(ctx, args, out)
            return out

        methods = {"forward": forward}
    else:
        methods = {"forward": lambda *args: outputs(args), "setup_context": keep}
    methods["backward"] = gradients
    return type("MadeUp", (torch.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


def outcome(cls, kinds):
    args = [argument(kind, seed) for seed, kind in enumerate(kinds)]
    try:
        out = cls.apply(*args)
        outs = list(out) if isinstance(out, tuple) else [out]
        live = [o for o in outs if o.requires_grad]
        leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
        gradients = (
            torch.autograd.grad([o.sum() for o in live[-1:]], leaves, allow_unused=True) if live and leaves else ()
        )
        again = [(o.requires_grad, type(o.grad_fn).__name__, o._version, o._is_view()) for o in outs]
        return bits(outs), bits(gradients), again
    except Exception as error:
        return type(error).__name__, str(error)


@settings(max_examples=150)
@given(
    quirks=QUIRKS,
    kinds=st.lists(ARGUMENTS, min_size=1, max_size=4),
    level=st.sampled_from(["shapes", "summary", "values"]),
)
def test_bare_and_instrumented_are_equal(quirks, kinds, level):
    if not {"leaf", "inner", "frozen", "expanded", "transposed"} & set(kinds):
        kinds = [*kinds, "leaf"]
    expected = outcome(build(quirks, kinds), kinds)
    cls = build(quirks, kinds)
    with log.recording(cls, level=level) as calls:
        assert outcome(cls, kinds) == expected
        assert [c.method for c in calls][:1] == ["forward"]
        assert calls.problems == ()
    calls.to_dict()
