"""English sentences of ``inspect`` and ``compare``."""

TEXTS: dict[str, str] = {
    "inspection.not_callable": (
        "There is nothing to call: expected a Function class, its `apply`, or a function, got {what}. "
        "Write for example `nbautograd.inspect(MyFunction, x)`."
    ),
    "inspection.no_grad_input": (
        "None of the inputs requires grad, so there is no gradient to look at. Make at least one of them a "
        "floating-point tensor that does: `x = torch.randn(3, dtype=torch.float64, requires_grad=True)`."
    ),
    "inspection.reference_failed": "The comparison with `{name}` is missing: it raised {error}.",
    "inspection.no_graph": (
        "`{function}` returned nothing that requires grad, so there is no backward graph: was its output detached, "
        "marked non-differentiable, or computed under `torch.no_grad()`?"
    ),
    "inspection.backward_raised": "backward raised {error}; the graph shows the state before it ran.",
    "inspection.interrupted": "Interrupted: this report holds what was done until then.",
    "inspection.no_function": (
        "No custom Function took part in this call, so no calls were recorded. Was `forward` called directly "
        "instead of `apply`?"
    ),
}
