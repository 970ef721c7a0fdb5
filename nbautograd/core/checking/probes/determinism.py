"""Probes of determinism and state: unwritten memory, backward twice, with other numbers, with other calls between."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core import formats, pytrees
from nbautograd.core.checking import backward_lines, phrases
from nbautograd.core.checking.backward_call import (
    cotangents,
    gradient_tolerance,
    observe,
    other_values,
    own_node,
    pull,
    rounding_level,
    tensors_on_ctx,
)
from nbautograd.core.checking.backward_lines import line_of_change, state_line
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.directional import DIRECTIONS, SHORTENED, derivative_of_reached
from nbautograd.core.checking.last_step import MOST, left_by_iterations
from nbautograd.core.checking.meant import meant_pairs
from nbautograd.core.checking.phrases import about, seen
from nbautograd.core.checking.point import Point
from nbautograd.core.checking.points import points
from nbautograd.core.checking.prepared_inputs import copy, unreadable_kind
from nbautograd.core.checking.probes.usage import backward_record
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.checking.quiet import FilledMemory
from nbautograd.core.checking.relations import Answer, Variant, relation
from nbautograd.core.contract import call_rules, rules
from nbautograd.core.findings import Finding, Kind, Phrase
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.compare import agree_bitwise
from nbautograd.core.numerics.constants import ABOUT_ZERO, AGREED, INEXACT, PLAINLY
from nbautograd.core.stumbles import users_errors
from nbautograd.core.torch_private.tensors import storage_address

REDRAWN = 16  # random numbers: of six elements that are kept nine times of ten all are kept in every second draw
UNCONFIRMED = "causes.writes_grad_unconfirmed"  # of a gradient that differences do not confirm
CONTAINERS = (list, dict, set, deque)
WRONG_AT = 2  # other inputs a gradient must be wrong; one disagreement may be a kink that was met


def state(problem: Problem, noisy: bool = False) -> Iterator[Finding]:
    """Yield findings on what backward changes, else on what changes backward.

    Args:
        noisy: True for a surrogate, which may draw random numbers as that of a stochastic spike does (snntorch).
    """
    outputs = problem.call()
    v, node = cotangents(problem, outputs, problem.seed), own_node(problem, outputs)
    tensors = [(name, t, t.detach().clone(), t._version) for name, t in tensors_on_ctx(problem, node)]
    items = _items(node)
    ends = [t for t in pytrees.tensors((*outputs, *outputs.inputs)) if unreadable_kind(t) is None]
    theirs = [(t, t.detach().clone(), t._version) for t in ends if not t.is_inference()]
    first = observe(problem, outputs, v)
    told = list[Finding]()
    for change in () if node is None else call_rules.gradients_changed(backward_record(node._forward_cls, first)):
        told.append(dataclasses.replace(change, line=line_of_change(problem, backward_lines.versions) or change.line))
    after = dict(tensors_on_ctx(problem, node))
    written = [(n, t) for n, t, was, version in tensors if t._version != version or other_values(after.get(n, t), was)]
    spoilt = [t for t, was, version in theirs if t._version != version or other_values(t, was)]
    overwritten = {storage_address(t) for t in spoilt} - {0}
    others = [*(n for n, _ in written), *(f"ctx.{n}" for n, was in items.items() if _items(node).get(n) != was)]
    changed = [name for name, t in written if storage_address(t) in overwritten]
    if spoilt and not changed:  # kept where no name leads to it
        named = zip((*problem.output_names, *problem.input_names), (*outputs, *outputs.inputs), strict=False)
        changed = [*(name for name, t in named if t is spoilt[0]), *others]
    kind: Kind = "bug"
    if others and not changed:  # where it gives the same again it is scratch space that forward made, or a cache
        unsteady = list[Finding]()
        with users_errors() as guard:  # such as torch's own, where a saved tensor was changed
            unsteady += repeated(problem, outputs, v, first.gradients, (problem.seed,))
        changed = others if guard.failed or any(f.kind == "bug" for f in unsteady) else []
        later = {storage_address(t) for _, t in tensors_on_ctx(problem, own_node(problem, problem.call()))}
        # what is named as an element of an argument is copied for each call
        copied = {n for n, _ in written if "[" in n and n.partition("[")[0] in problem.input_names}
        if guard.failed and not any(storage_address(t) in later or n in copied for n, t in written):
            kind = "lint"  # as in a cross entropy that makes the gradient of what it saved: no later call meets that
    pairs = zip(problem.input_names, outputs.inputs, strict=False)
    given_up = {storage_address(x) for n, x in pairs if n in problem.overwrites and isinstance(x, Tensor)} - {0}
    meant = {*problem.overwrites, *(n for n, t, *_ in tensors if storage_address(t) in given_up)}
    for name in sorted(changed, key=meant.__contains__)[:1]:
        found = rules.saved_changed(seen(problem, line_of_change(problem, backward_lines.held)), name)
        told.append(dataclasses.replace(found, kind=kind))
    redrawn = REDRAWN if problem.numbers.drawn and not noisy else 1
    seeds = (problem.seed, *(problem.seed if noisy else draws.child(problem.seed, "other", k) for k in range(redrawn)))
    told = told or list(repeated(problem, outputs, v, first.gradients, seeds))
    yield from (one for one in told if one.params.get("name") not in meant)
    if not any(one.kind == "bug" for one in told):
        yield from called_between(problem, outputs, v, first.gradients)
        yield from handed_out(problem, v)
    if problem.mutates_inputs:
        given = problem.fresh()
        problem.call(given)
        for i in problem.differentiable:
            if problem.input_names[i] not in meant and not agree_bitwise(given[i], problem.inputs[i]):
                line = phrases.method_line(problem, "forward")
                yield rules.input_changed(seen(problem, line), problem.input_names[i])


def _items(node: Any) -> dict[str, list[int]]:
    kept = {} if node is None else {name: held for name, held in vars(node).items() if isinstance(held, CONTAINERS)}
    return {n: [id(i) for i in (*c, *(c.values() if isinstance(c, dict) else ()))] for n, c in kept.items()}


@relation
def repeated(problem: Problem, outputs: Outputs, v: Answer, first: Answer, seeds: tuple[int, ...]) -> Iterator[Variant]:
    """Yield backward once more for each seed of the random numbers: a deterministic one gives the same.

    The same but for its rounding is a risk: sums may be in another order each time.
    """
    again = [pull(problem, outputs, v, seed, anew=False) for seed in seeds]
    kinds: dict[Kind, float] = {"bug": max(AGREED, gradient_tolerance(outputs, problem.inputs)), "lint": 0.0}
    for (kind, rel), answer in itertools.product(kinds.items(), again):

        def unsteady(_: int, kind: Kind = kind) -> Finding:
            line = line_of_change(problem, backward_lines.generators)
            return dataclasses.replace(_unsteady_backward(problem, line), kind=kind)

        yield Variant(lambda answer=answer: answer, lambda: first, unsteady, rel=rel)  # type: ignore[misc]


@relation
def called_between(problem: Problem, outputs: Outputs, v: Answer, alone: Answer) -> Iterator[Variant]:
    """Yield calls before whose backward another one comes, elsewhere or with the same buffer: it must not matter."""
    rel, low = gradient_tolerance(outputs, problem.inputs), rounding_level(outputs, problem.inputs)

    def elsewhere(_: Outputs) -> None:
        with users_errors() as guard:
            problem.call(_near(problem))
        if guard.failed:  # the inputs are tied to each other: a forward that raises is no evidence, any other will do
            problem.call()

    read = [i for i, x in enumerate(problem.inputs) if isinstance(x, Tensor) and unreadable_kind(x) is None]
    given = [i for i in read if i not in problem.differentiable]
    written = [i for i in given if not agree_bitwise(outputs.inputs[i], problem.inputs[i])]

    def same_buffer(first: Outputs) -> None:
        problem.call(tuple(first.inputs[i] if i in written else x for i, x in enumerate(problem.fresh())))

    ways: list[tuple[Callable[[Outputs], None], str, dict[str, Any]]] = [(elsewhere, "causes.shared_state", {})]
    if written:
        names = {"name": problem.input_names[written[0]]}
        ways += [(same_buffer, "causes.shared_state_buffer", names)]
    for call_other, sentence, params in ways:

        def followed(call_other: Callable[[Outputs], None] = call_other) -> Answer:
            mine = problem.call()
            call_other(mine)
            found = pull(problem, mine, v, anew=False)
            problem.call()  # what the other one left is not to meet what comes next
            return found

        place = seen(problem, None if params else state_line(problem.cls))
        shared = rules.state_outside_ctx(place, sentence, **params)
        yield Variant(followed, lambda: alone, lambda _, shared=shared: shared, rel=rel, low=low)  # type: ignore[misc]


@relation
def handed_out(problem: Problem, v: Answer) -> Iterator[Variant]:
    """Yield the gradients that one backward handed out, after others: they must be what they were."""
    outputs = problem.call()
    if own_node(problem, outputs) is None:
        return
    first = observe(problem, outputs, v)
    given = {t.data_ptr() for t in first.grad_outputs if isinstance(t, Tensor)}
    kept = [g for g in first.returned or () if isinstance(g, Tensor) and g.data_ptr() not in given]
    before = [g.detach().clone() for g in kept]
    for call, times in ((outputs, -2), (problem.call(), 3)):
        observe(problem, call, [None if t is None else times * t for t in v])
    yield Variant(lambda: kept, lambda: before, lambda _: rules.buffer_reused(seen(problem)))


def gradients_written(problem: Problem) -> Iterator[Finding]:
    """Yield a tensor whose ``.grad`` backward writes by itself; a session puts it back when it ends.

    No block speaks of what arrives there, so differences have to confirm that it is a gradient.
    """
    outputs = problem.call()
    problem.shared.put_back_gradients()  # what forward wrote
    problem.vjp(outputs, cotangents(problem, outputs, problem.seed))
    written = problem.shared.changed_gradients()
    for name in list(written)[:1]:
        confirmed = problem.state.apart(functools.partial(_confirmed, problem, list(written.values())), moves=True)
        sentence = "" if confirmed else UNCONFIRMED
        yield about(problem, "writes_grad", None, sentence, name=name)


def _confirmed(problem: Problem, tensors: Sequence[Tensor]) -> bool:
    agreed = list[bool]()
    for seed in (draws.child(problem.seed, k) for k in range(DIRECTIONS)):
        outputs = problem.call()
        v = cotangents(problem, outputs, seed)
        for x in tensors:
            x.grad = torch.zeros_like(x)
        problem.vjp(outputs, v)
        written = {x: torch.zeros_like(x) if x.grad is None else x.grad for x in tensors}
        gradient = torch.cat([g.reshape(-1) for g in written.values()])
        tries = (derivative_of_reached(problem, written, v, seed, scale) for scale in (1.0, SHORTENED))
        # a difference that would agree with a tenth more is too coarse to say anything
        found = [one.agrees(gradient) for one in tries if one is not None and not one.agrees(gradient * 1.1)]
        agreed += [any(found)] if found else []
    return bool(agreed) and all(agreed)


def never_written(problem: Problem) -> Iterator[Finding]:
    """Yield the outputs, else the gradients, that are computed from memory which ``torch.empty`` left as it was.

    Such memory is filled with NaN, at these inputs and at others: where NaN comes out it was never written.
    """
    outputs, gradients = _unwritten(problem, None)
    if not (outputs or gradients) or not any(_unwritten(problem, _near(problem))):
        return
    advice = Phrase("causes.never_written")
    for k, entry in outputs.items():
        params = {"name": problem.output_names[k], "entry": formats.index(entry), "advice": advice}
        yield unsteady_forward(problem, "causes.output_never_written", **params)
    for k, entry in gradients.items() if not outputs else ():
        position = problem.differentiable[k]
        written = phrases.returned(problem, position)
        params = {"name": problem.input_names[position], "entry": formats.index(entry), "advice": advice}
        line = None if written is None else written.line
        yield _unsteady_backward(problem, line, "causes.gradient_never_written", **params)


def _unsteady_backward(problem: Problem, line: int | None, sentence: str = "", **params: Any) -> Finding:
    return about(problem, "nondeterministic_backward", line, sentence, **params)


def unsteady_forward(problem: Problem, sentence: str = "", **params: Any) -> Finding:
    """Return the finding on outputs that change from call to call: they cannot be compared."""
    return about(problem, "nondeterministic_forward", phrases.method_line(problem, "forward"), sentence, **params)


def _unwritten(
    problem: Problem, inputs: tuple[Any, ...] | None
) -> tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]]]:
    """Return an entry of each output, and of each gradient, that is NaN only where such memory is."""
    with FilledMemory(zeros=True):  # so that no NaN is there by chance
        plain = problem.call(inputs)
        v = cotangents(problem, plain, problem.seed)
        expected = pull(problem, plain, v)
    with FilledMemory():
        filled = problem.call(inputs)
        return _nan_only(filled, plain), _nan_only(pull(problem, filled, v), expected)


def _nan_only(results: Sequence[Tensor | None], others: Sequence[Tensor | None]) -> dict[int, tuple[int, ...]]:
    """Return the first entry that is NaN in a result and not in the other one, of each that has such an entry."""
    pairs = enumerate(zip(results, others, strict=True))
    places = {
        k: (a.isnan() & ~b.isnan()).nonzero()[:1].tolist() for k, (a, b) in pairs if a is not None and b is not None
    }
    return {k: tuple(found[0]) for k, found in places.items() if found}


def wrong_at_other_inputs(problem: Problem, blocks: Mapping[tuple[int, int], Block]) -> Iterator[Finding]:
    """Yield findings on a gradient that is right at the inputs given and wrong at others.

    That alone says no more than that. State is proved where the gradient there becomes right once what the class,
    its methods' closures and globals hold is as it was before the first call, or empty.
    """
    if not problem.has_functions or not blocks or not all(map(_plainly_right, blocks.values())):
        return
    wrong, near = set(range(len(problem.differentiable))), list[tuple[Point, set[int]]]()
    for at in points(problem).of("near"):  # three: of one, differences may tell nothing
        judged = _judged(at)
        wrong -= {k for k, right in judged.items() if right}
        if not wrong:
            return
        near.append((at, {k for k, right in judged.items() if right is False}))
    here = _judged(Point(problem, problem.fresh()))  # the same question must have its answer here
    for k in sorted(k for k in wrong if here.get(k) is not False):
        seen_at = [at for at, those in near if k in those]
        if len(seen_at) < WRONG_AT or sum(_evident(at, k) for at in seen_at) < WRONG_AT:
            continue
        name = problem.input_names[problem.differentiable[k]]
        flat = {where[1] for where, meant in meant_pairs(problem).items() if meant.reason == "staircase"}
        if problem.differentiable[k] in flat:
            return  # a surrogate whose window lies elsewhere
        if _left_over(problem, seen_at, k):
            yield rules.state_outside_ctx(seen(problem, state_line(problem.cls)), "causes.wrong_later", input=name)
        else:
            yield about(problem, "wrong_elsewhere", input=name)
        return


def _evident(at: Point, which: int) -> bool:
    """Return True where a gradient is off by more than an approximation leaves, or an iteration there."""
    asked, gradient = at.derivative(which), (at.gradients or ())[which]
    if asked is None or gradient is None:
        return gradient is None
    off, size = abs(asked.off_by(gradient)), float(gradient.abs().max()) * float(asked.u.abs().sum())
    if off <= INEXACT * size or off > MOST * size:
        return off > MOST * size
    problem = Problem(at.problem.fn, tuple(map(copy, at.inputs)), at.problem.seed)
    with problem.session():
        return off > size * left_by_iterations(problem, problem.call())[problem.differentiable[which]]


def _left_over(problem: Problem, near: Sequence[Point], which: int) -> bool:
    """Return True if the gradient of this input is right at each of the other inputs where they come first."""

    def right(at: Point) -> bool | None:
        return _judged(Point(problem, tuple(map(copy, at.inputs)), seed=at.seed)).get(which)

    for empty in (False, True):
        if all(problem.state.apart(functools.partial(right, at), empty=empty) for at in near):
            return True
    return False


def _plainly_right(block: Block) -> bool:
    size = 0.0 if block.worst is None else max(abs(block.worst.analytical), abs(block.worst.numerical))
    return block.verdict == "match" and block.largest_error <= PLAINLY * size + ABOUT_ZERO


def _judged(at: Point) -> dict[int, bool | None]:
    """Return by input whether its gradient is right at a point; where user code raises nothing is known."""
    return {k: at.is_right(k, gradient) for k, gradient in enumerate(at.gradients or ())}


def _near(problem: Problem) -> tuple[Any, ...]:
    at = points(problem).first("near")
    assert at is not None
    return tuple(map(copy, at.inputs))
