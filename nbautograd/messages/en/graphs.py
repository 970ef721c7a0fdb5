"""English sentences of the subject ``graphs``."""

TEXTS: dict[str, str] = {
    # the graph itself
    "graphs.output": "output{number}",
    "graphs.no_graph": (
        "`{name}` has no graph: it does not require grad. Was it detached, computed under `torch.no_grad()`, or made "
        "only from tensors that need no gradient?"
    ),
    "graphs.no_tensor": "There is no tensor in what was given, so there is no graph to draw.",
    "graphs.freed": (
        "An earlier backward freed the saved tensors (nodes: {count}); `backward(retain_graph=True)` keeps them."
    ),
    "graphs.interrupted": "Interrupted: only the {nodes} nodes found until then are here.",
    "graphs.cut": "The graph is too large: only its first {nodes} nodes are here.",
    "graphs.backward_raised": (
        "backward stopped at `{node}`: {error}. The gradients that flowed until then are in the picture."
    ),
    "graphs.backward_interrupted": "backward was interrupted; the gradients that flowed until then are in the picture.",
    "graphs.first_bad": "The first {what} in the order of backward came out of `{node}`.",
    # the picture
    "graphs.title": "Backward graph of {name}",
    "graphs.size": "{nodes} nodes, {edges} edges.",
    "graphs.steps": "In the order of backward: {steps}.",
    "graphs.leaf": "leaf",
    "graphs.leaf_title": "{name}: used {uses} times; the gradients of all its uses are summed into its `.grad`",
    "graphs.line": "line {line}",
    "graphs.freed_word": "freed",
    "graphs.more": "{count} more",
    "graphs.folded": "{nodes} nodes, drawn in {shown} boxes.",
    "graphs.group": "{name} · {count} nodes",
    "graphs.repeat": "{name} ×{times}",
    "graphs.part": "{name} · part {number} of {times}",
    "graphs.repeat_group": "{name} · {count} nodes each",
    "graphs.norms": "|g| from part to part: {norms}",
    "graphs.vanishing": "gradients vanish",
    "graphs.exploding": "gradients explode",
    "graphs.not_finite": "NaN or Inf in {count} of {times}",
    "graphs.first_bad_here": "the first {what}",
    "graphs.beside": (
        "Left the first graph, right the graph of its gradient; each node is tied to the one that made it."
    ),
    "graphs.legend.tie": "made by its backward",
    "graphs.legend.same": "the same node",
    "graphs.first_graph": "the first graph",
    "graphs.second_graph": "the graph of its gradient",
    "graphs.shares": "shares {names}",
    "graphs.column.keeps": "keeps",
    "graphs.column.changed": "changed in place",
    "graphs.column.module": "module",
    "graphs.ghost_likely": (
        "No gradient gets to `{name}`: most likely line {line}{where} cuts it off by `{text}` (read in "
        "the source, not seen to run)."
    ),
    "graphs.rest": "the rest",
    "graphs.scalar": "scalar",
    "graphs.stale": (
        "`{name}` was changed in place after `{node}` had saved it (version {saved}, now {now}): backward will refuse. "
        "Change a copy instead, or before it is used."
    ),
    "graphs.stale_by": (
        "`{name}` was changed in place by {by} after `{node}` had saved it (version {saved}, now {now}): backward will "
        "refuse. Change a copy instead, or before it is used."
    ),
    "graphs.changed_line": "`{by}` in line {line}",
    "graphs.kept": "keeps {size}",
    "graphs.kept_in_all": "Kept for backward: {size}, shared memory counted once.",
    "graphs.derivative_of": "∂ of {name}",
    "graphs.the_same": "of the first graph",
    "graphs.ghost": "No gradient gets to `{name}`: no way leads from there to it.",
    "graphs.ghost_line": "No gradient gets to `{name}`: line {line} cuts it off by `{text}`.",
    "graphs.ghost_title": "No gradient gets to {name}.",
    "graphs.cut.detach": "detach",
    "graphs.cut.no_grad": "no_grad",
    "graphs.cut.integer": "integer",
    "graphs.cut.python": "left torch",
    "graphs.cut.not_required": "needs no gradient",
    "graphs.cut.unused": "not reached",
    # why is this grad None
    "graphs.none.has": "`{name}` has a gradient: the graph leads to it, and backward has brought one.",
    "graphs.none.integer": (
        "`{name}` holds integers or booleans, and only floating-point and complex tensors have gradients. Make it one: "
        "`{name}.double().requires_grad_()`."
    ),
    "graphs.none.not_required": (
        "`{name}` does not require grad. Call `{name}.requires_grad_()` before the forward; a tensor that `detach()` "
        "or `torch.no_grad()` gave never does."
    ),
    "graphs.none.not_a_leaf": (
        "`{name}` was computed from other tensors, and `.grad` is kept only for leaves. Call `{name}.retain_grad()` "
        "before backward."
    ),
    "graphs.none.no_graph": (
        "What was differentiated has no graph, so nothing can flow to `{name}`: it was detached, computed under "
        "`torch.no_grad()`, or went through `.item()`, `.data` or numpy."
    ),
    "graphs.none.not_a_part": (
        "`{name}` is not a part of the graph of {outputs}: a detached copy of it was used, or it was not used at all."
    ),
    "graphs.none.cut": (
        "`{name}` is not a part of the graph of {outputs}: line {line} uses it as `{text}`, and what that gives has no "
        "way back to `{name}`."
    ),
    "graphs.none.cut_likely": (
        "`{name}` is not a part of the graph of {outputs}: most likely line {line}{where} cuts it off by "
        "`{text}`. That was read in the source, not seen to run; look there first."
    ),
    "graphs.none.where": " of `{where}`",
    "graphs.none.not_run": "`{name}` is a part of the graph, but no backward has run yet.",
    "graphs.none.not_reached": (
        "`{name}` is a part of the graph, but this backward did not reach it: `inputs=` left it out, or backward "
        "stopped before."
    ),
    "graphs.none.returned_none": (
        "The backward of `{source}` returned None for `{argument}`, which means zero; so `{name}` gets no gradient. "
        "Return a gradient there if `{argument}` changes the output."
    ),
}
