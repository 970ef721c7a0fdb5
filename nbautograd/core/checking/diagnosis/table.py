"""Why a block is wrong: hypotheses in the order that told causes apart best, the first that holds is named."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nbautograd.core.checking import phrases
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.diagnosis import averages, exchanges, factors, lost_terms, masks, patterns
from nbautograd.core.checking.diagnosis.evidence import Evidence, Terms, gather
from nbautograd.core.checking.diagnosis.hypothesis import Cause
from nbautograd.core.checking.diagnosis.patterns import number
from nbautograd.core.checking.diagnosis.ratio_confirmation import confirm_constant
from nbautograd.core.checking.problem import Subject
from nbautograd.core.findings import Finding, Phrase

Hypothesis = Callable[[Evidence], "Cause | None"]

ORDER: tuple[Hypothesis, ...] = (
    masks.kink,
    patterns.collapsed,
    patterns.constant,
    patterns.conjugate,
    patterns.transposed_grad,
    patterns.transposed_jacobian,
    patterns.reduced_over_wrong_dim,
    averages.averaged,
    patterns.couples_along_wrong_dim,
    masks.localized,
    patterns.shifted,
    masks.inverted,
    patterns.permuted,
    masks.coupling,
    lost_terms.overwritten,
    masks.missing,
    masks.extra,
    masks.small,
    masks.conditional,
    masks.partial,
    factors.missing_factor,
    factors.missing_term,
    factors.row_factor,
    lost_terms.lost_term,
    masks.derivative,
)


# what is left of a sentence whose name does not hold at fresh inputs
LESS = {
    "missing_entries_where": "missing_entries",
    "missing_entries_part": "missing_entries",
    "extra_entries_where": "extra_entries",
    "row_factor_named": "row_factor",
}
# what these say are facts about the block at hand, or it is confirmed on its own
PLAIN = (patterns.constant, masks.localized, masks.small, masks.derivative)
Blocks = Mapping[tuple[int, int], Block]
Elsewhere = Callable[[], Sequence[tuple[Blocks, Terms]]]

# numbers of a sentence that may be others at other inputs, though the cause is the same
COUNTED = frozenset(("wrong", "entries", "ratio", "inverse", "relative", "part", "least", "most"))


def causes(
    subject: Subject,
    blocks: Blocks,
    terms: Terms,
    elsewhere: Elsewhere = lambda: (),
    none: frozenset[int] = frozenset(),
) -> Iterator[Finding]:
    """One finding per block that backward and the other witnesses disagree on; the same cause is told once per input.

    Args:
        subject: what was checked.
        blocks: with their verdicts.
        terms: what a factor, a term or a threshold may be made of.
        elsewhere: gives the blocks and terms of checks at fresh inputs, where a named cause has to hold as well.
        none: positions of inputs for which backward returned None.
    """
    told: set[tuple[Any, ...]] = set()
    for (o, i), block in blocks.items():
        if block.verdict != "mismatch":
            continue
        e = gather(block, terms, _single(subject))
        cause = _cause(e, blocks, i in none, functools.partial(_fresh, subject, elsewhere, (o, i)))
        if cause.message == "constant_factor":
            c = patterns.factor(e.A, e.N, e) or 1.0
            cause = confirm_constant(subject, i, c, patterns.constant_names(c, e), cause)
        key = (i, cause.code, cause.message, str(cause.params))
        if key not in told:
            told.add(key)
            yield _finding(subject, e, cause, (o, i))


def _single(subject: Subject) -> bool:
    import torch

    given = (t for t in subject.inputs if isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex()))
    return any(torch.finfo(t.dtype).bits < 64 for t in given)


def _fresh(subject: Subject, elsewhere: Elsewhere, where: tuple[int, int]) -> list[Evidence]:
    """The evidence for the same block at fresh inputs, where it is wrong as well."""
    met = ((blocks.get(where), terms) for blocks, terms in elsewhere())
    wrong = (gather(b, terms, _single(subject)) for b, terms in met if b is not None and b.verdict == "mismatch")
    return [e for e in wrong if np.isfinite(e.A).all() and np.isfinite(e.N).all()]


def _cause(e: Evidence, blocks: Blocks, none: bool, fresh: Callable[[], Sequence[Evidence]]) -> Cause:
    if e.block.matrices.rows is not None and np.isnan(e.A).any() and np.isfinite(e.block.matrices.analytical).all():
        return Cause("wrong_unclassified", "wrong_unclassified")  # entries outside the sample are not known
    if not np.isfinite(e.A).all():
        bad = int((~np.isfinite(e.A)).sum())
        return Cause("nonfinite", "nonfinite", {"wrong": bad})
    if none and not e.A.any():
        return Cause("none_gradient", "none_gradient")
    for test in (exchanges.output_ignored, exchanges.swapped_inputs, exchanges.swapped_outputs):
        found = test(e, blocks)
        if found is not None:
            return found
    if not e.A.any():
        return Cause("zero_gradient", "zero_gradient")
    if not np.isfinite(e.N).all():
        return Cause("wrong_unclassified", "wrong_unclassified")
    return _by_pattern(e, blocks, fresh)


def _by_pattern(e: Evidence, blocks: Blocks, fresh: Callable[[], Sequence[Evidence]]) -> Cause:
    """Return the first hypothesis that holds here and at fresh inputs; the plain sentence where none does."""
    for hypothesis in ORDER:
        found = hypothesis(e)
        if found is None:
            continue
        others = [] if hypothesis in PLAIN else [hypothesis(other) for other in fresh()]
        if all(_alike(found, other) for other in others):
            break
        if found.message in LESS and all(other is not None and other.code == found.code for other in others):
            found = Cause(found.code, LESS[found.message], found.params)
            break
    else:
        found = masks.wrong_in(e, "wrong_unclassified")
    if found.code in ("sign", "collapsed_grad_output", "transposed_grad") or found.message == "constant_factor_named":
        return found
    return exchanges.copied_input(e, blocks) or found


def _alike(one: Cause, other: Cause | None) -> bool:
    """Whether two causes say the same, numbers aside."""
    if other is None or (one.code, one.message) != (other.code, other.message):
        return False
    return all(one.params[key] == other.params.get(key) for key in one.params.keys() - COUNTED)


def _finding(subject: Subject, e: Evidence, cause: Cause, where: tuple[int, int]) -> Finding:
    block, position = e.block, where[1]
    found = phrases.returned(subject, position)
    line = found.line if found is not None else None
    params = {
        "input": block.input_name,
        "output": block.output_name,
        "value": phrases.value(subject, position),
        "example": _example(block),
        **({"right": factors.whole(e)} if not e.A.any() and np.isfinite(e.N).all() else {}),
        **cause.params,
    }
    return Finding(cause.code, "bug", f"causes.{cause.message}", params, where, line or phrases.backward_line(subject))


def _example(block: Block) -> Phrase | str:
    worst = block.worst
    if worst is None:
        return ""
    place_out = str(list(worst.output_index)).replace(" ", "") if worst.output_index else ""
    place_in = str(list(worst.input_index)).replace(" ", "") if worst.input_index else ""
    return Phrase(
        "causes.example",
        output=block.output_name + place_out,
        input=block.input_name + place_in,
        analytical=_said(worst.analytical),
        numerical=_said(worst.numerical),
        wrong=block.wrong,
        entries=block.entries,
    )


def _said(value: complex) -> str:
    return number(value.real) if not isinstance(value, complex) or value.imag == 0 else f"{value:.6g}"
