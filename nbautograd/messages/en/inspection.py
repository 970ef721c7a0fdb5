"""English sentences of ``inspect`` and ``compare``."""

TEXTS: dict[str, str] = {
    "inspection.reference_failed": "The comparison with `{name}` is missing: it raised {error}.",
    "inspection.no_graph": (
        "`{function}` returned nothing that requires grad, so there is no backward graph: was its output detached, "
        "marked non-differentiable, or computed under `torch.no_grad()`?"
    ),
    "inspection.no_function": (
        "No custom Function took part in this call, so no calls were recorded. Was `forward` called directly "
        "instead of `apply`?"
    ),
}
