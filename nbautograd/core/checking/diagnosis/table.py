"""Diagnosis of a wrong block: a table of hypotheses, of which the first that holds and is confirmed is named."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from nbautograd.core import formats
from nbautograd.core.checking import backward_lines, phrases
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.diagnosis import predicates, shares
from nbautograd.core.checking.diagnosis.hypothesis import (
    Cause,
    Confirm,
    Evidence,
    FreshCheck,
    Predicate,
    WrongBlock,
    at_hand,
    fresh_inputs,
    gather,
)
from nbautograd.core.checking.diagnosis.predicates import Clues, clues
from nbautograd.core.checking.diagnosis.wrong_line import WrongLine, wrong_line
from nbautograd.core.checking.points import points
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.findings import Finding, Phrase
from nbautograd.core.stumbles import any_errors
from nbautograd.core.user_source import Returned

Blocks = Mapping[tuple[int, int], Block]
# sentences that say where, and not why
UNEXPLAINED = ("wrong_derivative", "wrong_unclassified")
# sentences that say which entries are wrong, in place of which the mask that does it is named
ENTRIES = ("missing_entries", "extra_entries", "extra_entries_wide", "none_gradient")
# causes that are no matter of how a value is computed
NOT_COMPUTED = ("none_gradient", "output_grad_ignored", "nonfinite")
# sentences that are true of an input whatever comes through other outputs
WHOLE = (*UNEXPLAINED, "none_gradient", "output_grad_ignored", "nonfinite")


Elsewhere = Callable[[], Iterable[FreshCheck]]
At = Callable[[int, int], WrongLine | None]


# in the order that told causes apart best
HYPOTHESES: tuple[tuple[Predicate, Confirm], ...] = (
    (predicates.nonfinite, at_hand),
    (predicates.none_returned, at_hand),
    (predicates.output_ignored, fresh_inputs),
    (predicates.zero, at_hand),
    (predicates.no_right_one, at_hand),
    (predicates.kink, fresh_inputs),
    (predicates.constant, fresh_inputs),
    (predicates.missing, fresh_inputs),
    (predicates.extra, fresh_inputs),
    (shares.plausible, shares.lacking),
    (predicates.derivative, at_hand),
)


def evidence(problem: Problem, blocks: Blocks, none: frozenset[int] = frozenset()) -> dict[tuple[int, int], Evidence]:
    """Gather the evidence of each block that backward and the other witnesses disagree on.

    Args:
        none: positions of inputs for which backward returned None.
    """
    # an output that backward hands the gradient of through, flat in forward, is the last to blame
    through = {o for (o, _), block in blocks.items() if block.verdict == "flat"}
    wrong = [where for where, block in blocks.items() if block.verdict == "mismatch"]
    given = (t for t in problem.inputs if isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex()))
    single = any(torch.finfo(t.dtype).bits < 64 for t in given)
    ordered = sorted(wrong, key=lambda where: where[0] in through)
    return {(o, i): gather(blocks[o, i], single, blocks, i in none) for o, i in ordered}


def entries(
    problem: Problem, known: Mapping[tuple[int, int], Evidence], outputs: Outputs
) -> tuple[tuple[Finding, ...], Clues]:
    """Return a finding for each wrong input that says what its entries are, and what they suggest for a fix."""
    plain = [predicate for predicate, confirmed in HYPOTHESES if confirmed is at_hand]
    found: dict[int, Finding] = {}
    for (_, i), e in known.items():
        if i not in found:
            cause = None
            for predicate in plain:
                with any_errors("hypothesis"):
                    cause = cause or predicate(e)
            found[i] = _finding(problem, e, cause or predicates.UNCLASSIFIED, None, False)
    return tuple(found.values()), clues([*known.values()])


def causes(
    problem: Problem, blocks: Blocks, known: Mapping[tuple[int, int], Evidence], elsewhere: Elsewhere = tuple
) -> Iterator[Finding]:
    """Yield one finding per wrong block, the same cause once per input.

    Args:
        known: the evidence of those that are wrong.
        elsewhere: gives checks at fresh inputs, where a named cause has to hold as well.
    """
    told: set[tuple[Any, ...]] = set()
    at = functools.cache(functools.partial(wrong_line, problem))
    found = {where: (e, first_confirmed(WrongBlock(problem, e, elsewhere))) for where, e in known.items()}
    together = _together(problem, blocks, found, at)
    if together is not None:
        yield from together
        return
    for (o, i), (e, cause) in found.items():
        key = (i, *_key(cause))
        if key not in told:
            told.add(key)
            others = {k: block for k, block in blocks.items() if k[1] == i and k[0] != o}
            alone = any(_key(found[k][1]) != _key(cause) if k in found else _alive(b) for k, b in others.items())
            via = at(o, i) if cause.code not in NOT_COMPUTED else None
            yield _finding(problem, e, cause, via, alone and cause.message not in WHOLE)


def _together(
    problem: Problem, blocks: Blocks, found: Mapping[tuple[int, int], tuple[Evidence, Cause]], at: At
) -> list[Finding] | None:
    """Return the findings on several inputs of which no line is known, but what backward computes all of them from."""
    said = {cause.message for _, cause in found.values()}
    plain = said <= {*UNEXPLAINED, *ENTRIES} and not said <= {*ENTRIES}
    first = {i: (o, i) for o, i in [*found][::-1]}
    others = {i for _, i in blocks} - {*first}
    wrong, right = ([k for i in some if (k := problem.arguments.get(i)) is not None] for some in (first, others))
    placed = any(getattr(at(*where), "kind", "") for where in found)
    if len(first) < 2 or not plain or placed or len(wrong) < len(first):
        return None
    shared = backward_lines.shared(problem, wrong, right)
    if shared is None:
        return None
    code = next(iter(found.values()))[1].code
    name, (first_made, *more) = shared
    line = None if more else first_made.lineno  # of what is assigned again nobody knows which one counts
    at_line = "" if more else Phrase("causes.together_at", line=line, statement=phrases.short(ast.unparse(first_made)))
    return [
        Finding(
            code, "bug", "causes.wrong_together", {**_named(found[where][0]), "name": name, "at": at_line}, where, line
        )
        for where in sorted(first.values(), key=[*found].index)
    ]


def _key(cause: Cause) -> tuple[str, ...]:
    return cause.code, cause.message, str(cause.params)


def _alive(block: Block) -> bool:
    pooled = block.pooled()
    return bool(pooled.analytical.any() or pooled.numerical.any())


def first_confirmed(case: WrongBlock) -> Cause:
    """Return the cause of the first hypothesis in the table that holds and is confirmed; else the plain one."""
    cause = None
    for predicate, confirmed in HYPOTHESES:
        with any_errors("hypothesis"):
            found = predicate(case.evidence) if cause is None else None
            cause = cause if found is None else confirmed(predicate, found, case)
    return cause or predicates.UNCLASSIFIED


def _finding(problem: Problem, e: Evidence, cause: Cause, via: WrongLine | None, alone: bool) -> Finding:
    """Put a cause into a finding; one that holds for the block's output alone is said of what comes through it."""
    block, position = e.block, e.block.input
    found, plain = _written(problem, e), cause.message in UNEXPLAINED
    line = found.line if found is not None else None
    output, name, value = block.output_name, block.input_name, phrases.value(problem, position, found)
    message, said = cause.message, dict[str, Any]()
    if via is not None and via.kind:
        if line != via.line:
            line = via.line
            value = Phrase("causes.value_from_line", input=name, line=line, expression=phrases.short(via.text))
        # a mask in whose place another mends the entries is what they are wrong by
        if not via.whole and (plain or (via.kind == "value" and message in ENTRIES)):
            message, said = f"wrong_line_{via.kind}", via.params
            right = Phrase(f"views.motion.{via.kind}", name=said["expression"], output=output)
            said["what"] = Phrase("causes.goes_wrong", input=name, begins=said["begins"])
            said["advice"] = Phrase("causes.go_over", right=right, **said)
    if message == cause.message:
        said["shared"] = _right_with(problem, position) or (via.before if via is not None and plain else "")
    params = {
        **_named(e),
        **({"input": Phrase("causes.input_through", input=name, output=output)} if alone else {}),
        "value": Phrase("causes.value_through", value=value, output=output) if alone else value,
        **said,
        **cause.params,
    }
    end = backward_lines.return_statement(problem) if line is None else None
    line = line or (end.line if end is not None else None)
    line = line or phrases.method_line(problem)
    return Finding(cause.code, "bug", f"causes.{message}", params, (block.output, position), line)


def _right_with(problem: Problem, position: int) -> Phrase | str:
    """Say with which flag the other way round the gradient is right, at two points; empty where there is none."""
    which = problem.differentiable.index(position)
    for i, given in ((i, x) for i, x in enumerate(problem.inputs) if isinstance(x, bool)):
        stream = points(problem)
        turned = [at for at in (*stream.of("argument"), *stream.again.of("argument")) if at.inputs[i] is (not given)]
        right = [at.gradients is not None and at.is_right(which, at.gradients[which]) for at in turned]
        if len(right) > 1 and all(right):
            return Phrase("causes.right_with", argument=f"{problem.input_names[i]}={not given}")
    return ""


def _named(e: Evidence) -> dict[str, Any]:
    block = e.block
    example: Phrase | str = ""
    if block.worst is not None:
        counts = {"wrong": formats.count(block.wrong), "entries": formats.count(block.entries)}
        differ = Phrase("checking.entries_differ", **counts)
        example = Phrase("checking.example", differ=differ, largest=block.largest_difference())
    return {"input": block.input_name, "output": block.output_name, "example": example}


def _written(problem: Problem, e: Evidence) -> Returned | None:
    """Return the statement of backward that a wrong block comes from, as far as it can be told."""
    found, block = phrases.returned(problem, e.block.input), e.block
    right = {i for _, i in e.blocks} - {i for (_, i), other in e.blocks.items() if other.verdict == "mismatch"}
    names = [other.name for other in (phrases.returned(problem, i) for i in right) if other is not None]
    if found is None:
        return backward_lines.return_statement(problem)
    if found.name is not None and found.name in names:  # it is right for that input, and not for this one
        end = backward_lines.return_statement(problem)
        return found if end is None else Returned(None, end.line, found.name)
    wrong = np.zeros(block.input_shape, dtype=bool).reshape(-1)
    wrong[block.wrong_entries()[:, 1]] = True
    wrong = wrong.reshape(block.input_shape)
    return backward_lines.written(problem, found, np.asarray(wrong.any(-1)) if block.input_complex else wrong)
