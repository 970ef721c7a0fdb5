"""Is what forward saved still the same when forward is done?"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.jacobian.forward_values import StubContext
from nbautograd.core.checking.problem import Problem, separate_context
from nbautograd.core.checking.quiet import seed_all
from nbautograd.core.numerics.compare import agree_bitwise


class _Watching(StubContext):
    """Remembers the values that tensors had when they were saved."""

    __slots__ = ("copies",)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep the tensors, and copies of them."""
        super().save_for_backward(*tensors)
        self.copies = [t.detach().clone() if isinstance(t, Tensor) else None for t in tensors]


def changed_after_saving(subject: Problem) -> str:
    """The name of a tensor that forward saves and then changes in place, so that backward reads other values; or ""."""
    if subject.cls is None or not subject.direct or separate_context(subject.cls):
        return ""
    given = tuple(x.detach() if isinstance(x, Tensor) else x for x in subject.fresh())
    ctx = _Watching(tuple(i in subject.differentiable for i in range(len(given))))
    seed_all(subject.seed)
    try:
        with torch.no_grad():
            subject.cls.forward(ctx, *given)  # type: ignore[attr-defined]
    except Exception:  # a forward that needs the real ctx
        return ""
    pairs = zip(ctx.saved_tensors, getattr(ctx, "copies", ()), strict=True)
    changed = [k for k, (t, was) in enumerate(pairs) if was is not None and not agree_bitwise(t, was)]
    names = subject.source.saved if subject.source is not None else None
    if not changed:
        return ""
    return names[changed[0]] if names is not None and changed[0] < len(names) else f"saved_tensors[{changed[0]}]"
