"""English sentences of the subject ``tracing``."""

TEXTS: dict[str, str] = {
    "tracing.no_override": (
        "`{got}` has no `__torch_function__` and no `__torch_dispatch__` of its own, so torch asks it nothing and there "
        "is nothing to trace. Give the class whose body defines one of them."
    ),
    "tracing.nothing": "Say which classes to trace, as in `with nbautograd.tracing(ScalarTensor) as log:`.",
    "tracing.other_kind": (
        "`{owner}.{method}` is not traced: it is neither a class method nor an ordinary method, so it runs untouched."
    ),
    # a log
    "tracing.headline": "{n} dispatches to {owners}",
    "tracing.headline_one": "1 dispatch to {owners}",
    "tracing.empty": "Nothing has been dispatched yet: call a torch function with an object of the class.",
    "tracing.caption": "What torch asked, in order; a call inside another is indented",
    "tracing.column.call": "call",
    "tracing.column.asked": "asked",
    "tracing.column.answer": "answered by",
    "tracing.column.result": "result",
    "tracing.itself": "the method itself",
    "tracing.by": "{name}, line {line}",
    "tracing.raised": "raised",
    "tracing.running": "has not returned",
    "tracing.more": "{n} more",
    "tracing.dropped": "{n} earlier dispatches are no longer kept.",
    "tracing.deep": "{n} more, each inside the one before",
    # what it means
    "tracing.nobody": (
        "Nobody answered `{func}`: each type that was asked ({owners}) returned `NotImplemented`, and then torch raises "
        "a TypeError. Register an implementation of `{func}`, or turn the object into a tensor and call "
        "`{func}` again."
    ),
    "tracing.recursion": (
        "`{func}` came back to `{owner}` {n} times, one inside the other: an argument that is handed on is still a "
        "`{owner}`. Look at what the fallback converts: items of a list and keyword arguments are easily left out."
    ),
    # cards under a cell
    "tracing.card": "Tracing {names}: what torch asks it appears here. Try {hint}.",
    "tracing.card_last": "The last {last} of {total} dispatches to {names}.",
    "tracing.no_inputs": (
        "`--inputs` is for a `torch.autograd.Function`; this cell defines {names}, whose dispatches are traced instead."
    ),
}
