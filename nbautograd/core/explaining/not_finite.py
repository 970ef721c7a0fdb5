"""NaN and infinity: the first in forward, else the first in backward, and which of the known traps it is."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, NamedTuple

import torch

from nbautograd.core.explaining.cause import ErrorCause, SourceLine, TrialEdit, at, finding, tensor_named
from nbautograd.core.explaining.program import Program, node_of, nodes_behind
from nbautograd.core.explaining.watch import Bad, all_finite, node_line
from nbautograd.core.findings import Finding
from nbautograd.core.stumbles import ask, beside_program
from nbautograd.core.torch_private.nodes import (
    function_of,
    leaf_tensor,
    node_name,
    raw_slot_names,
    raw_slots,
    saved_peek,
    sequence_number,
)
from nbautograd.core.user_source import parse

Test = Callable[[torch.Tensor], torch.Tensor]


class Trap(NamedTuple):
    """Values at which an operation, or its derivative, is infinite or undefined.

    Attributes:
        rule: stable, the end of its message's id.
        makes: what its value is there: ``"inf"`` or ``"nan"`` of finite numbers, ``"of inf"`` a NaN of infinities;
            ``"saved"`` where what a node saved shows that. Empty where only the derivative is.
        nodes, slot, saved: what nodes are called without their ending, what they saved, and at which of it this is.
        ops, position, given: the same for the names of operations in forward and the argument in this position.
    """

    rule: str
    makes: tuple[str, ...]
    nodes: str
    slot: str
    saved: Test
    ops: str = ""
    position: int = 0
    given: Test = torch.isnan


def _zero(t: torch.Tensor) -> torch.Tensor:
    return t == 0


def _negative(t: torch.Tensor) -> torch.Tensor:
    return t < 0


def _ends(t: torch.Tensor) -> torch.Tensor:
    return t.abs() >= 1


def _fact(holds: bool) -> torch.Tensor:
    return torch.tensor(holds)


_ARCS, _SOFTMAX = "acos asin arccos arcsin", "softmax log_softmax"
_LOGS, _EXPS = ("Log Log2 Log10", "self"), "exp exp2 expm1 sinh cosh"
_NO_NODE = "", "", torch.isnan
TRAPS = (
    Trap("sqrt_at_zero", (), "Sqrt", "result", _zero),
    Trap("rsqrt_at_zero", ("inf", "saved"), "Rsqrt", "result", torch.isinf, "rsqrt", 0, _zero),
    Trap("sqrt_negative", ("nan", "saved"), "Sqrt Rsqrt", "result", torch.isnan, "sqrt rsqrt", 0, _negative),
    Trap("norm_at_zero", (), "Norm LinalgVectorNorm Cdist Dist", "result", _zero),
    Trap("std_of_one", ("nan", "saved"), "Std", "result", torch.isnan, "std var", 0, lambda t: _fact(t.numel() > 0)),
    Trap("log_of_zero", ("inf", "saved"), *_LOGS, _zero, "log log2 log10", 0, _zero),
    Trap("log_negative", ("nan", "saved"), *_LOGS, _negative, "log log2 log10", 0, _negative),
    Trap("log1p_at_minus_one", ("inf", "saved"), "Log1P", "self", lambda t: t == -1, "log1p", 0, lambda t: t == -1),
    Trap("xlogy_at_zero", (), "Xlogy", "other", _zero),
    Trap("exp_overflow", ("inf", "saved"), "Exp Exp2 Expm1", "result", torch.isinf, _EXPS, 0, lambda t: t > 11),
    Trap("exp_overflow", ("inf", "saved"), "Sinh", "self", lambda t: t.sinh().isinf()),
    Trap("exp_overflow", ("inf", "saved"), "Cosh", "self", lambda t: t.cosh().isinf()),
    Trap("zero_over_zero", ("inf", "nan"), *_NO_NODE, "div __truediv__ true_divide divide", 1, _zero),
    Trap("division_by_zero", ("inf", "saved"), "Div", "other", _zero, "__rtruediv__ __rdiv__ reciprocal", 0, _zero),
    Trap("division_by_zero", ("inf", "saved"), "Reciprocal", "result", torch.isinf),
    Trap("division_by_infinity", (), "Div", "other", torch.isinf),
    Trap("pow_at_zero", ("inf",), "Pow", "self", _zero, "pow __pow__", 0, _zero),
    Trap("pow_of_negative", ("nan",), "Pow", "self", _negative, "pow __pow__", 0, _negative),
    Trap("outside_domain", ("inf", "nan"), *_NO_NODE, _ARCS, 0, lambda t: t.abs() > 1),
    Trap("outside_domain", ("inf", "nan"), *_NO_NODE, "acosh", 0, lambda t: t < 1),
    Trap("outside_domain", ("inf", "nan"), *_NO_NODE, "atanh", 0, _ends),
    Trap("acos_at_one", (), "Acos", "self", _ends),
    Trap("asin_at_one", (), "Asin", "self", _ends),
    Trap("acosh_at_one", (), "Acosh", "self", lambda t: t <= 1),
    Trap("atanh_at_one", ("saved",), "Atanh", "self", _ends),
    Trap("logit_at_ends", ("saved",), "Logit", "self", lambda t: (t <= 0) | (t >= 1)),
    Trap("atan2_at_zero", (), "Atan2", "self", _zero),
    Trap("all_masked", ("of inf", "saved"), "Softmax LogSoftmax", "result", torch.isnan, _SOFTMAX, 0, torch.isneginf),
    Trap("all_masked", ("saved",), "Logsumexp", "result", torch.isneginf),
    Trap("prod_at_zero", ("saved",), "Prod", "result", torch.isinf),
    Trap("mean_of_nothing", ("nan",), *_NO_NODE, "mean nanmean", 0, lambda t: _fact(not t.numel())),
    Trap("inf_minus_inf", ("of inf",), *_NO_NODE, "sub __sub__ sub_ __isub__", 0, torch.isinf),
    Trap("zero_times_inf", ("of inf",), *_NO_NODE, "mul __mul__ mul_ __imul__", 0, lambda t: t.isinf() | (t == 0)),
)

_EDGES = "sqrt_negative rsqrt_at_zero log_negative log1p_at_minus_one outside_domain acos_at_one asin_at_one"
# a trap -> the sentence that it shares with others
SENTENCE_OF = {
    **dict.fromkeys(f"{_EDGES} acosh_at_one atanh_at_one logit_at_ends".split(), "edge"),
    **dict.fromkeys(("zero_times_inf", "division_by_infinity"), "inf_minus_inf"),
    "prod_at_zero": "exp_overflow",
    "xlogy_at_zero": "division_by_zero",
    **dict.fromkeys(("mean_of_nothing", "norm_at_zero", "atan2_at_zero"), "zero_over_zero"),
}


# what a node is called whose gradient holds numbers that arrived, and zeros: of finite ones it makes finite ones
HANDS_ON = {
    *("T", "Transpose", "Permute", "View", "UnsafeView", "ReshapeAlias", "Alias", "Squeeze", "Unsqueeze", "Clone"),
    *("Slice", "Select", "Relu", "Sum", "Neg", "Cat", "Stack", "Unbind", "Split", "SplitWithSizes"),
}


@cache
def _hands_on(name: str) -> bool:
    return name.endswith("AccumulateGrad") or name.rstrip("0123456789").removesuffix("Backward") in HANDS_ON


@dataclass
class BackwardWatch:
    """Hooks on the nodes of a graph that notice the first one to make a NaN or infinity out of finite gradients.

    Attributes:
        node: that node's name, empty as long as there is none.
        place: the line that made it, where that is known.
        what: ``"NaN"`` or ``"Inf"``.
        rule: which trap it is, empty where none of them.
        masked: True where the gradient that came in was zero at every bad element.
        count: how many elements are bad.
        hidden: the earlier node whose forward result was already NaN or infinite, if this one only saved it.
        silent: of each place at which a custom Function returned None in spite of a gradient the last node, and the
            place, by the node's type and place.
    """

    node: str = ""
    place: SourceLine | None = None
    what: str = ""
    rule: str = ""
    masked: bool = False
    count: int = 0
    hidden: Any = None
    silent: dict[tuple[type, int], tuple[Any, int]] = field(default_factory=dict)
    handles: list[Any] = field(default_factory=list)

    def attach(self, nodes: Sequence[Any]) -> None:
        """Hook every node that computes a gradient, rather than hand on what arrives, or a part of it."""
        hooked = (node for node in nodes if not _hands_on(node.name()))
        self.handles += [node.register_hook(partial(self._look, node)) for node in hooked]

    def remove(self) -> None:
        """Take the hooks away again."""
        for handle in self.handles:
            handle.remove()
        self.handles.clear()

    def _look(self, node: Any, grad_inputs: Any, grad_outputs: Any) -> None:
        if self.node:
            return
        with beside_program("watched backward"):  # it goes on
            if function_of(node) is not None and any(g is not None for g in grad_outputs):
                edges = zip(node.next_functions, grad_inputs, strict=True)
                places = [k for k, ((following, _), g) in enumerate(edges) if following is not None and g is None]
                self.silent |= {(type(node), k): (node, k) for k in places}
            for bad in grad_inputs:
                if bad is not None and not all_finite(bad):
                    if all(g is None or all_finite(g) for g in grad_outputs):
                        self._record_first(node, bad, grad_outputs)
                    return

    def _record_first(self, node: Any, bad: torch.Tensor, grad_outputs: Any) -> None:
        self.node, self.place = node_name(node), node_line(node)
        self.what = "NaN" if bool(bad.isnan().any()) else "Inf"
        where = ~bad.detach().isfinite()
        self.count = int(where.sum())
        self.rule = trap(node, where=where)
        if not self.rule and any(not all_finite(saved) for saved in saved_tensors(node)):
            self.hidden = earliest_trap(nodes_behind(node))
            self.rule = trap(self.hidden, forward=True) if self.hidden is not None else ""
        incoming = [g.detach() for g in grad_outputs if g is not None]
        same = [g for g in incoming if g.shape == bad.shape]
        self.masked = bool(same) and not bool(same[0][where].any())


def trap(node: Any, forward: bool = False, where: torch.Tensor | None = None) -> str:
    """Return the rule of the trap that a node's saved values show; empty where they show none.

    Args:
        node: a node whose saved values are there.
        forward: look only for those at which the value itself is no finite number, not its derivative alone.
        where: the elements that are looked at, of what was saved in this shape.
    """
    name = node_name(node).rstrip("0123456789").removesuffix("Backward")
    for one in TRAPS:
        if name not in one.nodes.split() or (forward and "saved" not in one.makes):
            continue
        saved = ask(partial(getattr, node, f"_saved_{one.slot}"), None)  # freed, changed, or another torch
        if isinstance(saved, (int, float)):
            saved = torch.tensor(float(saved))
        if not isinstance(saved, torch.Tensor):
            continue
        shown = one.saved(saved.detach())
        if bool((shown if where is None or where.shape != shown.shape else shown & where).any()) and _holds(node, one):
            return one.rule
    return ""


def _holds(node: Any, one: Trap) -> bool:
    try:
        if one.rule == "atan2_at_zero":
            return bool(((node._saved_self == 0) & (node._saved_other == 0)).any())
        if one.rule.startswith("pow") and one.slot == "self":
            exponent = torch.as_tensor(node._saved_exponent)
            if one.rule == "pow_at_zero":
                return bool((exponent < 1).any())
            return exponent.requires_grad or bool((exponent != exponent.round()).any())
    except (AttributeError, RuntimeError):  # freed, changed, or another torch
        return False
    return True


def saved_tensors(node: Any) -> Iterator[torch.Tensor]:
    """Yield what one of torch's own nodes saved, as far as it can be seen without unpacking."""
    for name in raw_slot_names(type(node)):
        for _, slot in raw_slots(node, name) or ():
            if (tensor := saved_peek(slot)[0]) is not None:
                yield tensor


def earliest_trap(nodes: Sequence[Any]) -> Any:
    """Return the node that was made first of those whose saved values show a trap of forward; None where none does."""
    ordered = sorted((n for n in nodes if leaf_tensor(n) is None), key=lambda node: sequence_number(node) or 0)
    return next((node for node in ordered if trap(node, forward=True)), None)


def not_finite(program: Program, backward: BackwardWatch | None = None) -> ErrorCause | None:
    """Explain a NaN or infinity: of the forward where there is one, else of the backward."""
    first = None if program.watch is None else program.watch.bad_root
    for root in program.roots if first is None else (first,):
        if not all_finite(root):
            return of_value(program, root)
    seen = look(program) if backward is None else backward
    if seen is not None and seen.node:
        return _of_backward(program, seen)
    return of_gradients(program, leaves(program.nodes())) if backward is None else None


def leaves(nodes: list[Any]) -> list[torch.Tensor]:
    """Return the leaves that a graph leads to."""
    return [leaf for node in nodes if (leaf := leaf_tensor(node)) is not None]


def of_gradients(program: Program, tensors: list[torch.Tensor]) -> ErrorCause | None:
    """Explain the first ``.grad`` that holds a NaN or infinity, of which no line is left."""
    bad = next((leaf for leaf in tensors if leaf.grad is not None and not all_finite(leaf.grad)), None)
    if bad is None or bad.grad is None:
        return None
    name = program.name_of(bad)
    shown = {"name": name or "?", "what": "NaN" if bool(bad.grad.isnan().any()) else "Inf"}
    return ErrorCause("not_finite", (finding("not_finite.in_grad", None, **shown),), name, params=shown)


def look(program: Program) -> BackwardWatch | None:
    """Run the backward of what is differentiated once more, for its gradients only; None where the graph is freed."""
    watch = BackwardWatch()
    roots = [root for root in program.roots if node_of(root) is not None]
    nodes = Program(roots=tuple(roots)).nodes()
    ends = leaves(nodes)
    if not ends:
        return None
    watch.attach(nodes)
    try:
        with torch.autograd.set_detect_anomaly(False):
            ones = [torch.ones_like(root) for root in roots]
            torch.autograd.grad(roots, ends, ones, retain_graph=True, allow_unused=True)
    except RuntimeError:
        return watch if watch.node else None
    finally:
        watch.remove()
    return watch


def of_value(program: Program, root: torch.Tensor) -> ErrorCause:
    """Explain a tensor that holds a NaN or infinity."""
    name = program.name_of(root)
    bad = None if program.watch is None else program.watch.events.last(Bad, root)
    what = "NaN" if bool(root.detach().isnan().any()) else "Inf"
    if bad is None:
        node = earliest_trap(program.nodes())
        rule = trap(node, forward=True) if node is not None else ""
        op = node_name(node) if node is not None else ""
        facts = [finding(f"not_finite.{'saved' if rule else 'somewhere'}", None, root=name, what=what, op=op)]
        facts += _rule(rule, op)
        return ErrorCause(f"not_finite_{rule}".rstrip("_"), tuple(facts), name)
    did = bad.spot.place() if bad.spot is not None else None
    if bad.came_in and bad.after_backward:
        cause = _of_backward(program, program.watch.backward, "carried")
        later = {"line": did.line, "text": did.text, "what": bad.came_in} if did is not None else {}
        facts = [finding("not_finite.then", did, **later)] if later else []
        return replace(cause, findings=(cause.findings[0], *facts, *cause.findings[1:]))
    rule = forward_rule(bad)
    first = program.watch.bad_root
    if bad.came_in and not rule and first is not None and program.watch.events.last(Bad, first) not in (None, bad):
        return of_value(program, first)  # which was differentiated, and made what came in, as a step does
    outside = bool(bad.came_in) and not rule
    source = bad.source or ("" if outside else name)
    written = bad.op.strip("_")  # an operation as it is written: ``/`` for ``__truediv__``
    op = SIGNS.get(written, written) if bad.op.startswith("__") else bad.op
    shown = {"root": name, "what": bad.came_in if outside else bad.what, "op": op, "count": bad.bad, "size": bad.size}
    shown |= {"line": did.line if did is not None else 0, "text": did.text if did is not None else "", "name": source}
    which = "not_finite.came_in" if outside else "not_finite.forward"
    facts = [finding(which, did, tensor=tensor_named(source), **shown)]
    facts += _rule(rule, bad.op)
    code = f"not_finite_{rule}".rstrip("_")
    return ErrorCause(code, tuple(facts), source, None, did, {"rule": rule, **shown})


def _of_backward(program: Program, seen: BackwardWatch, which: str = "backward") -> ErrorCause:
    did = seen.place
    root = next((program.name_of(root) for root in program.roots), "")
    op = seen.node.rstrip("0123456789").removesuffix("Backward")
    shown = {"what": seen.what, "node": seen.node, "op": op, "count": seen.count, "root": root}
    shown |= {"line": did.line if did is not None else 0, "text": did.text if did is not None else ""}
    facts = [finding(f"not_finite.{which}", did, at=at(did), **shown)]
    first = op if seen.hidden is None else node_name(seen.hidden).rstrip("0123456789").removesuffix("Backward")
    if seen.hidden is not None:
        did = node_line(seen.hidden) or did
        facts.append(finding("not_finite.hidden", did, op=first.lower(), at=at(did)))
    facts += _rule(seen.rule, op if seen.hidden is None else node_name(seen.hidden))
    arrived = [] if program.watch is None or seen.what != "Inf" else program.watch.arrived()
    if any(gradient is not None and bool(gradient.isnan().any()) for gradient in arrived):
        facts.append(finding("not_finite.became"))
    if seen.masked:
        facts.append(finding("not_finite.masked", None, node=op, op=first.lower()))
    masked = seen.masked and seen.hidden is None  # only there an edit inside the operation is tried
    rule = ("masked_" if masked else "") + seen.rule
    edits = tuple(safe_inside(did, op)) if did is not None and masked else ()
    params = {"rule": seen.rule, **shown}
    return ErrorCause(f"not_finite_{rule}".rstrip("_"), tuple(facts), root, None, did, params, edits)


# an operation -> how it is written, and a value at which it and its derivative are finite
SAFE = {
    **{name: ((name.lower(),), 1) for name in ("Sqrt", "Rsqrt", "Log", "Log2", "Log10", "Reciprocal")},
    **{name: ((name.lower(), f"arc{name[1:].lower()}"), 0) for name in ("Acos", "Asin", "Atanh")},
    "Exp": (("exp",), 0),
    "Div": (("div", "true_divide"), 1),
    "Pow": (("pow",), 1),
}


def safe_inside(did: SourceLine, op: str) -> Iterator[TrialEdit]:
    """Yield the line with a second ``where`` around the operation's input, by the condition of the first.

    The first stands around the operation, or around the variable that the line assigns.
    """
    try:
        tree = parse("".join(linecache.getlines(did.file)))  # of its own: it is changed here
    except (SyntaxError, ValueError):
        return
    statement = next((s for s in ast.walk(tree) if isinstance(s, ast.stmt) and s.lineno == did.line), None)
    if statement is None or op not in SAFE or hasattr(statement, "body"):
        return
    wheres = [call for call in ast.walk(tree) if isinstance(call, ast.Call) and len(call.args) == 3]
    wheres = [call for call in wheres if ast.unparse(call.func).endswith("where")]
    for node in ast.walk(statement):
        for parent, place in _inputs(node, op):
            around = [(w, k) for w in wheres for k in (1, 2) if any(part is node for part in ast.walk(w.args[k]))]
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                name = statement.targets[0].id
                around += [(w, k) for w in wheres for k in (1, 2) if ast.unparse(w.args[k]) == name]
            if around:
                where, k = around[0]
                chosen = [place(parent), ast.Constant(SAFE[op][1])]
                safe = ast.Call(where.func, [where.args[0], *(chosen if k == 1 else reversed(chosen))], [])
                place(parent, safe)
                yield TrialEdit(did.file, did.line, did.text, ast.unparse(statement))
                return


def _inputs(node: ast.AST, op: str) -> Iterator[tuple[Any, Callable[..., Any]]]:
    if isinstance(node, ast.BinOp) and type(node.op).__name__ == op:
        yield node, _field("right" if op == "Div" else "left")
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in SAFE[op][0]:
        position = 1 if op == "Div" else 0
        method = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != "torch"
        if method and position == 0:
            yield node.func, _field("value")
        elif len(node.args) > position - method:
            yield node.args, _item(position - method)


def _field(name: str) -> Callable[..., Any]:
    return lambda node, *new: setattr(node, name, *new) if new else getattr(node, name)


def _item(position: int) -> Callable[..., Any]:
    return lambda items, *new: items.__setitem__(position, *new) if new else items[position]


def _rule(rule: str, op: str) -> list[Finding]:
    op = op.rstrip("0123456789").removesuffix("Backward").lower() or "exp"
    return [finding(f"trap.{SENTENCE_OF.get(rule, rule)}", None, op=op)] if rule else []


def forward_rule(bad: Bad) -> str:
    """Return the rule that the arguments of an operation show."""
    tensors = [t for t in bad.arguments if isinstance(t, torch.Tensor)]
    given = [t for t in tensors if t.is_floating_point() or t.is_complex()]
    if any(bool(t.isnan().any()) for t in given):
        return ""  # it came in
    came_in = any(bool(t.isinf().any()) for t in given)
    if came_in and bad.what == "Inf":
        return ""
    made = "of inf" if came_in else bad.what.lower()
    for one in TRAPS:
        position = one.position
        if bad.op not in one.ops.split() or made not in one.makes or position >= len(bad.arguments):
            continue
        if one.rule == "pow_at_zero" and not bool((torch.as_tensor(bad.arguments[1]) < 0).any()):
            continue
        value = bad.arguments[position]
        if isinstance(value, (int, float, torch.Tensor)) and bool(one.given(torch.as_tensor(value)).any()):
            return "division_by_zero" if one.rule == "zero_over_zero" and bad.what == "Inf" else one.rule
    return ""


SIGNS = {"truediv": "/", "rtruediv": "/", "rdiv": "/", "pow": "**", "mul": "*", "sub": "-", "add": "+", "matmul": "@"}
