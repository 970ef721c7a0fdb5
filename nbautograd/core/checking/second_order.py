"""Second order: check the derivatives of backward, and name what was lost on the way where they are wrong.

A large function is checked at a few directions, numbers in and numbers out, like a small one.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core import pytrees
from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import cotangents, gradient_tolerance, own_node, tensors_on_ctx
from nbautograd.core.checking.block import Block, GradcheckReport, SecondOrderReport
from nbautograd.core.checking.budget import Meter, OutOfRunsError
from nbautograd.core.checking.exactness import accept_slight
from nbautograd.core.checking.points import points
from nbautograd.core.checking.probes.run_probes import probed
from nbautograd.core.checking.problem import Outputs, Problem, functions_of
from nbautograd.core.checking.run import GradcheckRun
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.arrays import to_array
from nbautograd.core.numerics.compare import agree_within_rounding
from nbautograd.core.stumbles import RAISED, is_ours
from nbautograd.core.torch_private import tensors as internals
from nbautograd.core.user_source import methods_of

WHOLE_ELEMENTS = 120  # elements of inputs and outputs together; of a larger Function the second derivatives are sampled
SUSPICION_RUNS = 400  # runs that a suspicion is worth in any case; what is wrong in 8 elements takes some 150 to 390
TOO_MANY = 4_000_000  # elements of which not even a sample is taken
CUTS = ("data", "detach", "numpy", "item", "tolist")
Inside = Callable[[GradcheckRun, set[type]], tuple[Finding, ...]]


def second_order(problem: Problem, inside: Inside, counts: bool = False) -> GradcheckReport | None:
    """Check the derivatives of backward, as gradgradcheck does.

    Args:
        problem: what was checked, right in first order.
        inside: says which of these Functions, that are called inside, are wrong by themselves.
        counts: True where second derivatives count: then a Function without a custom node is checked as well, and what
            cannot be looked at is a report that cannot tell, with its reason.

    Returns:
        A report whose blocks are the derivatives of each gradient with respect to inputs and grad_outputs; None where
        the Function does not claim them (``once_differentiable``), has no custom node, or is too large. Those of a
        Function of more than 120 elements are taken along a few directions, which the blocks' names say, in float64.
    """
    start = time.perf_counter()
    outputs = problem.call()
    if own_node(problem, outputs) is None and not counts:
        return None
    size = _size(problem, outputs)
    if size > TOO_MANY:
        return _left_out(problem, start, "checking.order2_too_large", size) if counts else None
    try:
        gradients = _gradients(problem, outputs, cotangents(problem, outputs, problem.seed))
        # ``once_differentiable`` stands above backward: its results lead to a node that raises
        nodes = [g.grad_fn for g in gradients if g is not None and g.grad_fn is not None]
        if any("Error" in type(node).__name__ + node.name() for node in nodes):
            return _left_out(problem, start, "checking.order2_not_claimed", size) if counts else None
        run, lacking = _looked_at(_problem(problem, outputs), size, problem.meter, counts)
    except RAISED as error:
        if is_ours(error):
            raise
        return _report(problem, (_unsupported(problem, error),), start)
    if lacking:
        return _left_out(problem, start, "checking.order2_left_out", size)
    if run is None:
        return _left_out(problem, start, "checking.order2_too_large", size) if counts else None
    if run.error is not None:
        return _report(problem, (_unsupported(problem, run.error),), start)
    accept_slight(run)
    findings = tuple(_findings(problem, outputs, run, inside)) or tuple(
        probed("over_reverse", problem, _problem(problem, outputs))
    )
    sampled: Phrase | str = ""
    if run.problem.sampled:
        sampled = Phrase("checking.sampled_directions", elements=f"{size:,}")
    return _report(problem, findings, start, run, sampled)


def _looked_at(whole: Problem, size: int, meter: Meter, counts: bool) -> tuple[GradcheckRun | None, bool]:
    """Find the blocks in no more runs of forward and backward than there were so far, unless something seems wrong.

    Where second derivatives are asked for, time alone is a limit.

    Returns:
        The run, None where nothing could be looked at, and whether runs were lacking to come to an end.
    """
    found, lacking = None, False
    for derived, runs in _attempts(whole, size <= WHOLE_ELEMENTS, sys.maxsize if counts else meter.runs):
        found, lacking = _within(derived, meter, runs)
        settled = found.error is not None or {b.verdict for b in found.blocks.values()} <= {"match"}
        if (lacking or settled) if derived.sampled else not lacking:
            break
    return found, lacking


def _attempts(whole: Problem, small: bool, first: int) -> Iterator[tuple[Problem, int]]:
    """Yield what to look at, and in how many runs, until one of them settles it.

    Of a small Function all entries, or where these take too many runs one direction of all elements; of a large one
    that direction. Where it does not settle it all entries of a small Function after all, then a few directions of few
    elements, which hardly ever meet a kink.
    """
    if small:
        yield whole, first * 3 // 4
    sampled = _sampled(whole)
    yield from ((one, max(4 * SUSPICION_RUNS, first)) for one in itertools.islice(sampled, 1))
    if small:
        yield whole, max(SUSPICION_RUNS, first)
    yield from ((few, max(4 * SUSPICION_RUNS, first)) for few in sampled)


def _within(derived: Problem, meter: Meter, runs: int) -> tuple[GradcheckRun, bool]:
    """Find the blocks in so many runs; True beside them when there were too few."""
    # what backward computes was found to have a derivative: a surrogate never comes here
    found = GradcheckRun(derived, None, None, None, stairs=False)
    try:
        with meter.limited(runs), derived.session():
            found.find_blocks()
            return found, not found.complete and meter.exceeded
    except OutOfRunsError:
        return found, True


def _size(problem: Problem, outputs: Outputs) -> int:
    takes = problem.differentiable_outputs(outputs)
    tensors: list[Tensor] = [*(outputs[k] for k in takes), *(problem.inputs[i] for i in problem.differentiable)]
    return sum(t.numel() for t in tensors)


def _gradients(problem: Problem, outputs: Outputs, v: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    leaves = [outputs.inputs[i] for i in problem.differentiable]
    pairs = [(o, c.requires_grad_()) for o, c in zip(outputs, v, strict=True) if c is not None]
    tensors, grads = zip(*pairs, strict=True)
    return internals.gradients(tensors, leaves, grads, create_graph=True)


def _problem(problem: Problem, outputs: Outputs) -> Problem:
    """Return the backward as a function of the inputs and the grad_outputs, to be checked like any other."""
    takes = problem.differentiable_outputs(outputs)
    v = cotangents(problem, outputs, problem.seed)
    count, own = len(problem.inputs), problem.differentiable
    tied = {own[k] for k in points(problem).symmetric}  # of which forward reads one triangle

    def gradients(*given: Any) -> tuple[Tensor, ...]:
        graph = torch.is_grad_enabled()  # differences need none
        with torch.enable_grad():
            leaf = {i: x if x.requires_grad else x.detach().requires_grad_() for i, x in enumerate(given) if i in own}
            xs = tuple(leaf.get(i, x) for i, x in enumerate(given[:count]))
            xs = tuple((x + x.mH) / 2 if i in tied else x for i, x in enumerate(xs))
            outputs = problem.call(xs)
            leaves = [xs[i] for i in own]
            tensors = [outputs[k] for k in takes]
            problem.meter.count()
            grads = internals.gradients(tensors, leaves, given[count:], create_graph=graph)
            found = tuple(torch.zeros_like(x) if g is None else g for g, x in zip(grads, leaves, strict=True))
            if not graph or all(g.requires_grad for g in found):
                return found
            # a gradient cut off from its graph counts as one with derivative zero, so that it can be compared
            tie = sum((0 * (x - x.detach())).sum() for x in (*leaves, *given[count:]))
            return tuple(g + tie for g in found)

    weights = [v[k].detach().requires_grad_() for k in takes]  # type: ignore[union-attr]
    derived = Problem(gradients, (*problem.fresh(), *weights), problem.seed)
    derived.meter = problem.meter
    derived.has_functions = True
    derived.input_names = (*problem.input_names, *(_grad_name(problem, k, len(takes)) for k in takes))
    derived.output_names = tuple(f"grad_{problem.input_names[i]}" for i in problem.differentiable)
    return derived


def _sampled(derived: Problem) -> Iterator[Problem]:
    """Yield the derivatives along directions; none below double precision, where their differences drown in noise."""
    if any(derived.inputs[i].dtype != torch.float64 for i in derived.differentiable):
        return
    for directions, together in ((1, None), (DIRECTIONS, TOGETHER)):
        small = restrict_to_directions(derived, derived.seed, directions, together)
        if small is None:
            return
        small.meter = derived.meter
        small.output_names, small.sampled = derived.output_names, True
        yield small


def _grad_name(problem: Problem, k: int, count: int) -> str:
    names = problem.source.grad_outputs if problem.source is not None else ()
    if k < len(names) and not names[k].startswith("*"):
        return names[k]
    return "grad_output" if count == 1 else f"grad_output {k}"


def _report(
    problem: Problem,
    findings: tuple[Finding, ...],
    start: float,
    run: GradcheckRun | None = None,
    reason: Phrase | str = "",
) -> GradcheckReport:
    wrong = any(f.kind == "bug" for f in findings)
    blocks: dict[tuple[int, int], Block] = {} if run is None else run.blocks
    decided = blocks and all(b.verdict in ("match", "subgradient") for b in blocks.values())
    names = ((), ()) if run is None else (run.problem.input_names, run.problem.output_names)
    return SecondOrderReport(
        problem.name, "wrong" if wrong else "right" if decided else "cannot tell", findings, blocks, *names,
        problem.seed, time.perf_counter() - start, run is None or run.complete, None, problem.source, reason,
    )  # fmt: skip


def _left_out(problem: Problem, start: float, why: str, size: int) -> GradcheckReport:
    return _report(problem, (), start, None, Phrase(why, function=problem.name, elements=f"{size:,}"))


def stopped_report(problem: Problem) -> GradcheckReport:
    """Return a report that says that the budget left no time for second derivatives."""
    return _left_out(problem, time.perf_counter(), "checking.stopped_verdict.advice", 0)


def _unsupported(problem: Problem, error: BaseException) -> Finding:
    params, line = {"said": phrases.said(error)}, phrases.method_line(problem)
    return Finding("double_backward_unsupported", "lint", "causes.double_backward_unsupported", params, None, line)


def _findings(problem: Problem, outputs: Outputs, run: GradcheckRun, inside: Inside) -> Iterator[Finding]:
    wrong = [b for b in run.blocks.values() if b.verdict == "mismatch"]
    if not wrong:
        return
    block = max(wrong, key=lambda b: b.largest_error)
    position = problem.differentiable[block.output]
    params: dict[str, Any] = {"input": problem.input_names[position], "by": block.input_name}
    line = phrases.method_line(problem)
    for reason, more, place in _reasons(problem, outputs):
        params |= {**more, "why": Phrase(f"causes.why_{reason}", **params, **more)}
        message = f"causes.double_backward_{reason}"
        params["what"] = Phrase("causes.double_backward_wrong.what", **params)
        yield Finding("double_backward_wrong", "bug", message, params, None, place or line)
        return
    with run.problem.session():
        # those that are called, by backward too, and that are not known to be right
        called = functions_of((*outputs, *(run.outputs or ())))
        blamed = inside(run, called - ({problem.cls} if problem.direct else set()))
    params["what"] = Phrase("causes.double_backward_wrong.what", **params, why="")
    yield from (dataclasses.replace(one, code="double_backward_wrong") for one in blamed)
    if not problem.direct:  # what a callable does around these Functions may be wrong as well
        yield Finding("double_backward_wrong", "bug", "causes.double_backward_wrong", params)
    elif not blamed:
        yield Finding("double_backward_wrong", "bug", "causes.double_backward_unknown", params, None, line)


def _reasons(problem: Problem, outputs: Outputs) -> Iterator[tuple[str, dict[str, Any], int | None]]:
    node = own_node(problem, outputs)
    if node is None:
        return
    near = points(problem).first("near")
    moved = {} if near is None else dict(tensors_on_ctx(problem, near.node))
    given = {x.data_ptr() for x in outputs.inputs if isinstance(x, Tensor) and x.numel()}
    for name, tensor in tensors_on_ctx(problem, node):
        if not (tensor.is_floating_point() or tensor.is_complex()):
            continue
        if tensor.grad_fn is node:
            leaves = [outputs.inputs[i] for i in problem.differentiable]
            found = internals.gradients([tensor], leaves, [torch.ones_like(tensor)])
            if all(g is None or not bool(g.any()) for g in found):
                nr = tensor.output_nr
                names = {"name": name, "grad": _grad_name(problem, nr, 2)}
                yield "output_ignored", names, None
        elif not tensor.requires_grad and tensor.data_ptr() not in given and _moves(tensor, moved.get(name)):
            yield "guilty", {"name": name}, phrases.method_line(problem, "forward")
    for what, line in _cuts(problem):
        yield "cut", {"what": what}, line


def _moves(tensor: Tensor, other: Tensor | None) -> bool:
    if other is None or other.shape != tensor.shape:
        return True
    return not agree_within_rounding(to_array(other), to_array(tensor), gradient_tolerance([tensor], []), floor=0.0)


def _cuts(problem: Problem) -> Iterator[tuple[str, int]]:
    """Find where backward leaves the graph: ``.data``, ``.detach()``, numpy, an inner autograd.grad."""
    tree = methods_of(problem.cls).tree("backward") if problem.cls is not None else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Attribute) and node.attr in CUTS:
            yield f".{node.attr}", node.lineno
        inner = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("autograd.grad")
        if isinstance(node, ast.Call) and inner and not any(k.arg == "create_graph" for k in node.keywords):
            yield "autograd.grad", node.lineno
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("no_grad"):
            yield "no_grad", node.lineno


DIRECTIONS = 4  # per input
TOGETHER = 8  # elements that one direction moves; more would meet a kink too easily


def restrict_to_directions(problem: Problem, seed: int, directions: int, together: int | None) -> Problem | None:
    """Return the same function of a few numbers per input, each of which moves a few elements.

    Args:
        problem: a function whose Jacobians would be too large to hold.
        seed: of the choice of elements, and of the weights that the outputs are read with.
        directions: how many of them per input.
        together: how many elements one of them moves; all of them when None.

    Returns:
        A problem whose blocks have so many rows and columns; None for complex tensors.
    """
    outputs = problem.call()
    moved = [problem.inputs[i].detach() for i in problem.differentiable]
    if any(t.is_complex() for t in (*outputs, *moved)):
        return None
    generator = draws.generator(seed, "few")
    places = [_places(x, generator, directions, together or x.numel()) for x in moved]
    weights = [torch.randn(directions, y.numel(), generator=generator, dtype=torch.float64).to(y) for y in outputs]

    def few(*numbers: Tensor) -> tuple[Tensor, ...]:
        given: list[Any] = list(problem.fresh())
        for k, i in enumerate(problem.differentiable):
            x, (index, far) = moved[k], places[k]
            by = numbers[k].repeat_interleave(index.shape[1]) * far
            some = x.reshape(-1).index_add(0, index.reshape(-1), by).reshape(x.shape) if x.numel() else None
            given[i] = x + 0 * numbers[k].sum() if some is None else some
        found: Sequence[Tensor] = tuple(pytrees.tensors(problem.fn(*given)))
        return tuple(w @ y.reshape(-1) for w, y in zip(weights, found, strict=True))

    start = tuple(x.new_zeros(directions).requires_grad_() for x in moved)
    small = Problem(few, start, problem.seed)
    small.has_functions = problem.has_functions
    small.input_names = tuple(problem.input_names[i] for i in problem.differentiable)
    small.output_names = problem.output_names
    return small


Places = tuple[Tensor, Tensor]


def _places(x: Tensor, generator: torch.Generator, directions: int, together: int) -> Places:
    """Choose the elements that move, and how far each for one unit: as much as it is large."""
    count = min(together, max(1, x.numel() // directions))
    index = torch.randint(max(1, x.numel()), (directions, count), generator=generator)
    if count == x.numel():
        index = torch.arange(count).expand(directions, count)
    size = x.reshape(-1)[index.reshape(-1)].abs() if x.numel() else x.new_zeros(index.numel())
    sign = torch.randint(2, (index.numel(),), generator=generator) * 2 - 1
    return index, sign.to(x) * torch.where(size > 0, size, torch.ones_like(size)) / math.sqrt(count)
