"""Probes of determinism and state: unwritten memory, backward twice, with other numbers, with other calls between."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from nbautograd.core import formats
from nbautograd.core.checking import backward_lines, phrases
from nbautograd.core.checking.backward_call import (
    agree,
    cotangents,
    gradient_tolerance,
    observe,
    other_values,
    own_node,
    pull,
    tensors_on_ctx,
)
from nbautograd.core.checking.backward_lines import line_of_change, state_line
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.phrases import about, seen
from nbautograd.core.checking.point import Point
from nbautograd.core.checking.points import points
from nbautograd.core.checking.prepared_inputs import copy, unreadable_kind
from nbautograd.core.checking.probes.return_values import backward_record
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.checking.quiet import FilledMemory
from nbautograd.core.contract import call_rules, rules
from nbautograd.core.findings import Finding
from nbautograd.core.numerics.compare import agree_bitwise, agree_relative
from nbautograd.core.numerics.constants import ABOUT_ZERO, AGREED, PLAINLY
from nbautograd.core.stumbles import users_errors
from nbautograd.core.torch_private.tensors import storage_address


def state(problem: Problem) -> Iterator[Finding]:
    """Yield findings on what backward changes, and on what changes backward."""
    outputs = problem.call()
    v = cotangents(problem, outputs, problem.seed)
    told = list(_changes(problem, outputs, v))
    yield from told
    found = list(_nondeterministic(problem, v))
    yield from found if not told else ()
    if not found:
        yield from _between(problem, v)
        yield from _buffer(problem, v)
    for name in _changed_inputs(problem) if problem.mutates_inputs else ():
        yield rules.input_changed(seen(problem, phrases.method_line(problem, "forward")), name)


Entry = tuple[int, ...]  # position in a tensor


def never_written(problem: Problem) -> Iterator[Finding]:
    """Yield the outputs, else the gradients, that are computed from memory which ``torch.empty`` left as it was.

    Such memory is filled with NaN, at these inputs and at others: where NaN comes out it was never written.
    """
    outputs, gradients = _unwritten(problem, None)
    if not (outputs or gradients) or not any(_unwritten(problem, _near(problem))):
        return
    for k, entry in outputs.items():
        params = {"name": problem.output_names[k], "entry": formats.index(entry)}
        yield unsteady_forward(problem, "causes.output_never_written", **params)
    for k, entry in gradients.items() if not outputs else ():
        position = problem.differentiable[k]
        written = phrases.returned(problem, position)
        params = {"name": problem.input_names[position], "entry": formats.index(entry)}
        yield _unsteady(problem, None if written is None else written.line, "causes.gradient_never_written", **params)


def unsteady_forward(problem: Problem, sentence: str = "", **params: Any) -> Finding:
    """Return the finding on outputs that change from call to call: they cannot be compared."""
    return about(problem, "nondeterministic_forward", phrases.method_line(problem, "forward"), sentence, **params)


def _unwritten(problem: Problem, inputs: tuple[Any, ...] | None) -> tuple[dict[int, Entry], dict[int, Entry]]:
    """Return an entry of each output, and of each gradient, that is NaN only where such memory is."""
    with FilledMemory(zeros=True):  # so that no NaN is there by chance
        plain = problem.call(inputs)
        v = cotangents(problem, plain, problem.seed)
        expected = pull(problem, plain, v)
    with FilledMemory():
        filled = problem.call(inputs)
        return _nan_only(filled, plain), _nan_only(pull(problem, filled, v), expected)


def _nan_only(results: Sequence[Tensor | None], others: Sequence[Tensor | None]) -> dict[int, Entry]:
    """Return the first entry that is NaN in a result and not in the other one, of each that has such an entry."""
    pairs = enumerate(zip(results, others, strict=True))
    places = {
        k: (a.isnan() & ~b.isnan()).nonzero()[:1].tolist() for k, (a, b) in pairs if a is not None and b is not None
    }
    return {k: tuple(found[0]) for k, found in places.items() if found}


def _changes(problem: Problem, outputs: Outputs, v: Sequence[Tensor | None]) -> Iterator[Finding]:
    node = own_node(problem, outputs)
    before = [(name, t, t.detach().clone(), t._version) for name, t in tensors_on_ctx(problem, node)]
    containers = [(name, value, _items(value)) for name, value in _containers(node)]
    watched = observe(problem, outputs, v)
    after = dict(tensors_on_ctx(problem, node)) if node is not None else {}
    for found in call_rules.gradients_changed(backward_record(node._forward_cls, watched)) if node is not None else ():
        line = line_of_change(problem, backward_lines.versions)
        yield dataclasses.replace(found, line=line or found.line)
    written = [
        (name, t) for name, t, was, version in before if t._version != version or other_values(after.get(name, t), was)
    ]
    changed = [name for name, t in written if _is_users(t, outputs)]
    if not changed and not _repeats(problem, outputs, v, watched.gradients):
        changed = [name for name, _ in written]
        changed += [f"ctx.{name}" for name, value, items in containers if _items(value) != items]
    for name in changed[:1]:
        yield rules.saved_changed(seen(problem, line_of_change(problem, backward_lines.held)), name)


def _is_users(tensor: Tensor, outputs: Outputs) -> bool:
    """Return True for a tensor in the memory of an input or output, False for one that forward made for itself."""
    theirs = {storage_address(t) for t in (*outputs, *outputs.inputs) if isinstance(t, Tensor)} - {0}
    return storage_address(tensor) in theirs


def _repeats(
    problem: Problem, outputs: Outputs, v: Sequence[Tensor | None], gradients: Sequence[Tensor | None]
) -> bool:
    """Run backward once more and tell if it gives the same: then what it writes on ctx is scratch space or a cache."""
    rel = gradient_tolerance(outputs, problem.inputs)
    with users_errors():  # such as torch's own, where a saved tensor was changed
        again = pull(problem, outputs, v)
        return all(agree_relative(a, b, rel) for a, b in zip(gradients, again, strict=True))
    return False


def _containers(node: Any) -> list[tuple[str, Any]]:
    """Return the lists, dicts and the like on ctx, with their names."""
    held = vars(node) if node is not None else {}
    return [(name, value) for name, value in held.items() if isinstance(value, (list, dict, set, deque))]


def _items(value: Any) -> list[int]:
    """Return what tells whether the same items still lie in a container, in the same order."""
    return [id(item) for item in (*value, *(value.values() if isinstance(value, dict) else ()))]


def _nondeterministic(problem: Problem, v: Sequence[Tensor | None]) -> Iterator[Finding]:
    """Run backward again with the same random numbers, then with others: a deterministic one gives the same."""
    outputs = problem.call()
    numbers = _numbers(own_node(problem, outputs))
    first = pull(problem, outputs, v)
    changed = [name for name, was in numbers.items() if _numbers(own_node(problem, outputs)).get(name) != was]
    again, other = pull(problem, outputs, v), pull(problem, outputs, v, problem.seed + 1)
    rel = max(AGREED, gradient_tolerance(outputs, problem.inputs))
    for which in (again, other):
        exact = all(agree_bitwise(a, b) for a, b in zip(first, which, strict=True))
        if not exact:
            near = all(agree_relative(a, b, rel) for a, b in zip(first, which, strict=True))
            if changed and which is again:
                line = line_of_change(problem, backward_lines.held)
                yield _unsteady(problem, line, "causes.backward_counts", attribute=f"ctx.{changed[0]}")
                return
            found = _unsteady(problem, line_of_change(problem, backward_lines.generators))
            yield dataclasses.replace(found, kind="lint") if near else found  # the same but for its rounding
            return


def _unsteady(problem: Problem, line: int | None, sentence: str = "", **params: Any) -> Finding:
    return about(problem, "nondeterministic_backward", line, sentence, **params)


def _numbers(node: Any) -> dict[str, Any]:
    """Return the plain numbers on ctx."""
    kept = vars(node) if node is not None else {}
    return {name: value for name, value in kept.items() if isinstance(value, (int, float, complex))}


def _between(problem: Problem, v: Sequence[Tensor | None]) -> Iterator[Finding]:
    """Compare two calls before the first one's backward: what the second leaves must not reach the first."""
    outputs = problem.call()
    alone = pull(problem, outputs, v)
    outputs = problem.call()
    with users_errors() as guard:
        problem.call(_near(problem))
    if guard.failed:  # the inputs are tied to each other: a forward that raises is no evidence, any other call will do
        problem.call()
    together = pull(problem, outputs, v)
    problem.call()
    if not agree(problem, outputs, alone, together):
        yield rules.state_outside_ctx(seen(problem, state_line(problem.cls)))
    else:
        yield from _with_one_buffer(problem, v, alone)


def _with_one_buffer(problem: Problem, v: Sequence[Tensor | None], alone: Sequence[Tensor | None]) -> Iterator[Finding]:
    """Make two calls that write into the same buffer: backward must not read the second one's values."""
    outputs = problem.call()
    read = [i for i, x in enumerate(problem.inputs) if isinstance(x, Tensor) and unreadable_kind(x) is None]
    given = [i for i in read if i not in problem.differentiable]
    written = [i for i in given if not agree_bitwise(outputs.inputs[i], problem.inputs[i])]
    if not written:
        return
    others = problem.fresh()
    problem.call(tuple(outputs.inputs[i] if i in written else x for i, x in enumerate(others)))
    with users_errors() as guard:  # saved by ``save_for_backward``, which notices by itself
        together = pull(problem, outputs, v)
    if not guard.failed and not agree(problem, outputs, alone, together):
        name = problem.input_names[written[0]]
        yield rules.state_outside_ctx(seen(problem), "causes.shared_state_buffer", name=name)


def gradients_written(problem: Problem) -> Iterator[Finding]:
    """Yield the tensors whose ``.grad`` backward writes by itself; a session puts them back when it ends."""
    for name in problem.shared.changed_gradients()[:1]:
        yield about(problem, "writes_grad", name=name)


def _buffer(problem: Problem, v: Sequence[Tensor | None]) -> Iterator[Finding]:
    """Run backward again: a gradient that was handed out must not change."""
    outputs = problem.call()
    node = own_node(problem, outputs)
    if node is None:
        return
    first = observe(problem, outputs, v)
    kept = [(g, g.detach().clone()) for g in first.returned or () if isinstance(g, Tensor)]
    observe(problem, outputs, [None if t is None else -2 * t for t in v])
    other = problem.call()
    observe(problem, other, [None if t is None else 3 * t for t in v])
    given = {t.data_ptr() for t in first.grad_outputs if isinstance(t, Tensor)}
    if any(not agree_bitwise(g, was) for g, was in kept if g.data_ptr() not in given):
        yield rules.buffer_reused(seen(problem))


def _changed_inputs(problem: Problem) -> list[str]:
    """Return the names of the inputs that require grad and that forward changed in place, unmarked."""
    given = problem.fresh()
    problem.call(given)
    pairs = ((i, given[i].detach(), problem.inputs[i].detach()) for i in problem.differentiable)
    return [problem.input_names[i] for i, now, before in pairs if not agree_bitwise(now, before)]


LEAST = 2  # other inputs at which a gradient must be wrong; one disagreement may be a kink that was met


def wrong_at_other_inputs(problem: Problem, blocks: Mapping[tuple[int, int], Block]) -> Iterator[Finding]:
    """Yield findings on a gradient that is right at the inputs given and wrong at others.

    That alone says no more than that. State is proved where the gradient there becomes right once what the class,
    its methods' closures and globals hold is as it was before the first call, or empty.
    """
    if not problem.has_functions or not blocks or not all(map(_plainly_right, blocks.values())):
        return
    wrong, seen = set(range(len(problem.differentiable))), Counter[int]()
    near = list[Point]()
    for at in points(problem).of("near"):  # three: of one, differences may tell nothing
        judged = _judged(at)
        wrong -= {k for k, right in judged.items() if right}
        if not wrong:
            return
        seen.update(k for k, right in judged.items() if right is False)
        near += [at] if any(judged.get(k) is False for k in wrong) else []
    wrong = {k for k in wrong if seen[k] >= LEAST}
    here = _judged(Point(problem, problem.fresh()))
    wrong -= {k for k in wrong if here.get(k) is False}  # the same question must have its answer here
    if not wrong:
        return
    name = problem.input_names[problem.differentiable[min(wrong)]]
    if _left_over(problem, near, min(wrong)):
        yield rules.state_outside_ctx(phrases.seen(problem, state_line(problem.cls)), "causes.wrong_later", input=name)
    else:
        yield phrases.about(problem, "wrong_elsewhere", input=name)


def _left_over(problem: Problem, near: Sequence[Point], which: int) -> bool:
    """Return True if the gradient of this input is right at each of the other inputs where they come first."""
    for empty in (False, True):
        rights = []
        for at in near:
            with problem.state.put_back(empty=empty):
                again = Point(problem, tuple(map(copy, at.inputs)), seed=at.seed)
                rights.append(again.gradients is not None and again.is_right(which, again.gradients[which]))
        if all(rights):
            return True
    return False


def _plainly_right(block: Block) -> bool:
    """Return True if a block agrees by more than the caller's tolerance."""
    worst = block.worst
    size = 0.0 if worst is None else max(abs(worst.analytical), abs(worst.numerical))
    return block.verdict == "match" and block.largest_error <= PLAINLY * size + ABOUT_ZERO


def _judged(at: Point) -> dict[int, bool | None]:
    """Return by input whether its gradient is right at a point; a forward that raises is no evidence."""
    found = () if at.outputs is None else at.pull()
    return {k: at.is_right(k, gradient) for k, gradient in enumerate(found)}


def _near(problem: Problem) -> tuple[Any, ...]:
    """Return other inputs, such as another call may have."""
    at = points(problem).first("near")
    assert at is not None
    return tuple(map(copy, at.inputs))
