"""What the entries of a wrong block show: predicates of the table of hypotheses, and factors for edits to try.

Of a factor that a wrong gradient may lack, or have too many, it is not known here what is meant: a candidate only has
to agree at the entries at hand. An edit that is right at other values and sizes shows which one it is, and whether any.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import own_node, tensors_on_ctx
from nbautograd.core.checking.block import Array
from nbautograd.core.checking.diagnosis.hypothesis import Cause, Evidence
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.numerics.constants import LARGEST_NUMERATOR, RECOGNISED, SLIGHT, SMALL

MOST_CANDIDATES = 8  # candidates for one gradient: each takes a few tries
PI = "{pi}"  # in a text: pi as the module that backward sees calls it

# what fractions come with in formulas: of densities, of erf and gelu, of norms
IRRATIONAL: tuple[tuple[str, float], ...] = (
    ("", 1.0),
    (f"{PI} ** 0.5", math.sqrt(math.pi)),
    (f"(2 * {PI}) ** 0.5", math.sqrt(2 * math.pi)),
    (f"(2 / {PI}) ** 0.5", math.sqrt(2 / math.pi)),
    (PI, math.pi),
    ("2 ** 0.5", math.sqrt(2)),
)


@dataclass(frozen=True)
class Clues:
    """What the entries of wrong blocks suggest to whoever looks for a fix.

    Attributes:
        factors: texts to multiply with, or divide by.
        ratios: numbers to multiply with or divide by: ``"/ 0.6"``; ``{pi}`` stands for pi.
        coupled: True where elements of an output depend on several of an input, so that a sum may be missing.
    """

    factors: tuple[str, ...] = ()
    ratios: tuple[str, ...] = ()
    coupled: bool = False


def clues(wrong: Sequence[Evidence], problem: Problem, outputs: Outputs) -> Clues:
    """Return what these wrong blocks suggest, at these outputs and the inputs of their call."""
    known = [e for e in wrong if np.isfinite(e.A).all() and np.isfinite(e.N).all() and e.A.any()]
    off = [(e, 1 / c) for e in known if (c := factor(e.A, e.N, e)) is not None and abs(abs(c) - 1) > RECOGNISED]
    ratios = dict.fromkeys(min(texts, key=len) for _, c in off if (texts := list(_by(c))))
    found = dict.fromkeys(
        text for e, c in off for text in itertools.islice(_names(c, _known(e, problem, outputs)), MOST_CANDIDATES)
    )
    coupled = any(bool(((~e.equal(e.N, np.zeros_like(e.N))).sum(axis=1) > 1).any()) for e in known)
    return Clues(tuple(found), tuple(ratios), coupled)


def factor(A: Array, N: Array, e: Evidence) -> float | None:
    """Return the constant c with A == c * N, or None; so small or large a one is round-off beside a gradient."""
    power = float((N * N).sum())
    if power == 0.0 or not np.isfinite(A).all() or not np.isfinite(N).all():
        return None
    c = float((A * N).sum()) / power
    close = np.abs(A - c * N) <= e.rel * np.maximum(np.abs(c * N), SMALL * abs(c) * np.abs(N).max()) + e.tiny
    return c if SLIGHT < abs(c) < 1 / SLIGHT and bool(close.all()) else None


def written(c: float) -> str | None:
    """Return a number as a formula has it, a fraction with pi or a root: ``"2 / {pi} ** 0.5"``; None for any other.

    Example:
        >>> from nbautograd.core.checking.diagnosis.predicates import written
        >>> written(2 / 3.141592653589793 ** 0.5), written(0.75), written(0.7123)
        ('2 / {pi} ** 0.5', '0.75', None)
    """
    for text, value in IRRATIONAL:
        for root, above in ((value, True), (1 / value, False)):
            for below in range(1, 13):
                p = c / root * below
                if 0 < abs(round(p)) < LARGEST_NUMERATOR and abs(p - round(p)) <= RECOGNISED * abs(p):
                    return _fraction(round(p), below, text, above)
    return None


def _by(c: float) -> Iterator[str]:
    for sign, text in (("*", written(c)), ("/", written(1 / c))):
        if text is not None:
            yield f"{sign} {text}" if re.fullmatch(r"-?[\w.]+", text) else f"{sign} ({text})"


def _fraction(p: int, q: int, text: str, above: bool) -> str:
    if not text:
        return repr(p / q) if q in (1, 2, 4, 5, 8, 10) and p % q else str(p // q) if p % q == 0 else f"{p} / {q}"
    if above:
        number = "" if p == 1 else "-" if p == -1 else f"{p} * "
        return f"{number}{text}" + ("" if q == 1 else f" / {q}")
    return f"{p} / {text}" if q == 1 else f"{p} / ({q} * {text})"


def _names(c: float, known: Iterable[tuple[str, float]]) -> Iterator[str]:
    """Yield the sizes and numbers at hand that a number, or its inverse, may be: edits multiply and divide."""
    for label, value in known:
        if any(abs(abs(c) - other) <= RECOGNISED * abs(c) for other in (abs(value), 1 / abs(value) if value else 0.0)):
            yield label


def _known(e: Evidence, problem: Problem, outputs: Outputs) -> Iterator[tuple[str, float]]:
    sizes = [(label, n) for label, n in _sizes(e, problem, outputs) if n > 1]
    yield from sizes
    yield from ((f"{label} ** 0.5", math.sqrt(n)) for label, n in sizes)
    for name, value in sorted(_scalars(problem, outputs).items(), key=lambda item: not item[0].startswith("ctx.")):
        yield from ((name, value), (f"(1 - {name})", 1 - value), (f"{name} ** 2", value * value))


def _sizes(e: Evidence, problem: Problem, outputs: Outputs) -> Iterator[tuple[str, float]]:
    """Yield the sizes and counts that a forgotten division may be: batch, elements, ones in a mask."""
    block = e.block
    pairs = block.input_complex, block.output_complex  # the last dimension is then of real and imaginary part
    shapes = [s[:-1] if p else s for s, p in zip((block.input_shape, block.output_shape), pairs, strict=True)]
    given = [*zip((block.input_name, block.output_name), shapes, strict=True)]
    others = [(problem.input_names[i], t) for i, t in enumerate(problem.inputs) if i != block.input and _strided(t)]
    for name, shape in (*given, *((name, t.shape) for name, t in others)):
        yield from ((f"{name}.shape[{k}]", float(n)) for k, n in enumerate(shape))
        yield f"{name}.numel()", float(math.prod(shape))
    for name, tensor in (*others, *tensors_on_ctx(problem, own_node(problem, outputs))):
        if _strided(tensor) and tensor.dim() and bool(((tensor == 0) | (tensor == 1)).all()):
            yield f"{name}.sum()", float(tensor.detach().sum().real)


def _scalars(problem: Problem, outputs: Outputs) -> dict[str, float]:
    node = own_node(problem, outputs)
    on_ctx = {f"ctx.{name}": value for name, value in vars(node).items()} if node is not None else {}
    found = {
        **dict(zip(problem.input_names, problem.inputs, strict=False)),
        **on_ctx,
        **dict(tensors_on_ctx(problem, node)),
    }
    return {name: float(value) for name, value in found.items() if _is_number(value)}


def _strided(item: Any) -> bool:
    return isinstance(item, Tensor) and item.layout is torch.strided


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.numel() == 1 and value.is_floating_point()
    return isinstance(value, (int, float)) and not isinstance(value, bool)


UNCLASSIFIED = Cause("wrong_unclassified", "wrong_unclassified")


def sampled(e: Evidence) -> Cause | None:
    """Return the cause where entries outside the sample of a large block are not known."""
    unknown = e.block.matrices.rows is not None and np.isnan(e.A).any()
    return UNCLASSIFIED if unknown and np.isfinite(e.block.matrices.analytical).all() else None


def nonfinite(e: Evidence) -> Cause | None:
    """Return the cause where A has entries that are no numbers, and N numbers there: a NaN of forward is no cause."""
    bad = int((~np.isfinite(e.A) & np.isfinite(e.N)).sum())
    return Cause("nonfinite", "nonfinite", {"wrong": bad}) if bad else None


def none_returned(e: Evidence) -> Cause | None:
    """Return the cause where backward returned None where something should come."""
    return Cause("none_gradient", "none_gradient") if e.none and not e.A.any() else None


def zero(e: Evidence) -> Cause | None:
    """Return the cause where nothing came where something should."""
    return Cause("zero_gradient", "zero_gradient") if not e.A.any() else None


def no_right_one(e: Evidence) -> Cause | None:
    """Return the cause where differences of forward give no numbers that A could be compared with."""
    return None if np.isfinite(e.N).all() else UNCLASSIFIED


def constant(e: Evidence) -> Cause | None:
    """Return the cause where A is N times a constant; of a single entry any two numbers have a ratio."""
    c = factor(e.A, e.N, e)
    if c is None or np.count_nonzero(e.N) < 2:
        return None
    if abs(c + 1) <= RECOGNISED:
        return Cause("sign", "sign")
    return Cause("constant_factor", "constant_factor", {"ratio": number(c)})


def number(c: float) -> str:
    """Write a number as a person would: ``2``, ``0.5``, ``0.99949``, ``1.000003``."""
    beyond = abs(abs(c) - 1)  # one that differs from 1 is not written as 1
    digits = 6 if not 0 < beyond < 1e-3 else min(3 - math.floor(math.log10(beyond)), 12)
    return f"{c + 0.0:.{digits}g}"  # no "-0"


def output_ignored(e: Evidence) -> Cause | None:
    """Return the cause where nothing comes from one output although something comes from others."""
    if e.A.any() or e.none:
        return None
    same_output = [b for (o, _), b in e.blocks.items() if o == e.block.output]
    others = [b for (o, _), b in e.blocks.items() if o != e.block.output]
    if (
        others
        and not any(b.pooled().analytical.any() for b in same_output)
        and any(b.pooled().analytical.any() for b in others)
    ):
        return Cause("output_grad_ignored", "output_grad_ignored", {"output": e.block.output_name})
    return None


def kink(e: Evidence) -> Cause | None:
    """Return the cause where all that is wrong is at kinks of forward: a subgradient outside both slopes."""
    held = e.block.matrices
    if not e.elementwise or held.kinks is None or not bool(held.kinks[held.wrong].all()):
        return None  # smooth somewhere, as one-sided differences say
    return Cause("kink", "kink_wrong", _count(e))


def missing(e: Evidence) -> Cause | None:
    """Return the cause where A is zero where N is not, and right elsewhere."""
    dead = e.equal(e.A, np.zeros_like(e.A))
    if not e.A.any() or not bool(dead[e.wrong].all()) or not bool((~e.wrong & ~dead).any()):
        return None
    return Cause("missing_entries", "missing_entries", _count(e))


def extra(e: Evidence) -> Cause | None:
    """Return the cause where A is alive where N is zero, and right elsewhere."""
    dead = e.equal(e.N, np.zeros_like(e.N))
    if not e.N.any() or not bool(dead[e.wrong].all()) or not bool((~e.wrong & ~dead).any()):
        return None
    return Cause("extra_entries", "extra_entries" if e.elementwise else "extra_entries_wide", _count(e))


def _count(e: Evidence) -> dict[str, Any]:
    return {"wrong": int(e.wrong.sum()), "entries": int(((e.A != 0) | (e.N != 0)).sum())}


def derivative(e: Evidence) -> Cause | None:
    """Return the cause where the right pattern has unrelated values."""
    a, n = _alive(e.A, e), _alive(e.N, e)
    return Cause("wrong_derivative", "wrong_derivative") if bool((a == n).all()) else None


def _alive(X: Array, e: Evidence) -> Array:
    return ~e.equal(X, np.zeros_like(X))
