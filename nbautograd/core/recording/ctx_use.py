"""What a method can have done with ctx, from its bytecode: what it never touches need not be read after each call."""

from __future__ import annotations

import dis
from types import CodeType

_THROUGH = frozenset({"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"})
_LOADS = ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")


def used_of_ctx(code: CodeType | None) -> frozenset[str] | None:
    """Names of the attributes of its first argument that a function can read, call or set; None when it can be any.

    It can be any as soon as ctx itself is passed on, kept, deleted, closed over or rebound.

    Example:
        >>> def forward(ctx, x):
        ...     ctx.save_for_backward(x)
        ...     return x * 2
        >>> sorted(used_of_ctx(forward.__code__))
        ['save_for_backward']
        >>> used_of_ctx((lambda ctx, x: print(ctx)).__code__) is None
        True
    """
    if code is None or not code.co_argcount:
        return None
    name = code.co_varnames[0]
    if name in code.co_cellvars:
        return None
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG")]
    used = set()
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        mentioned = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if not step.opname.endswith(("_FAST", "_CHECK", "_BORROW", "_AND_CLEAR")) and "_FAST_" not in step.opname:
            continue
        if name not in mentioned:
            continue
        if step.opname not in _LOADS or following is None or following.opname not in _THROUGH:
            return None
        used.add(following.argval)
    return frozenset(used)
