"""Factors solved for: numbers that expressions of a backward have to be multiplied by for a gradient to be right.

With an expression times t a gradient depends on t, mostly linearly. That it agrees with the derivative of the forward
is one equation for t, which the secant method solves in a few calls of backward. A root that a person may have written
(a fraction, one with pi or a root, a number or size at hand) makes an edit. It has to be right at other points, too.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import tensors_on_ctx
from nbautograd.core.checking.point import Gradients, Point
from nbautograd.core.checking.repair.script import Script, places, product
from nbautograd.core.checking.repair.values import KnownValue, KnownValues
from nbautograd.core.checking.repair.verification_points import Stage
from nbautograd.core.numerics.constants import LARGEST_NUMERATOR, RECOGNISED, SLIGHT

STEPS = 6  # of the secant method: one where t enters linearly, five where it stands in an exponent
MOST_TRIES = 200.0  # of the 800 of a search; a backward of ten lines takes about fifty
SMALL_NUMBER = 12  # largest denominator that a person writes, and numerator beside a root
MOST_TEXTS = 8  # for one factor: each takes a few tries

# what fractions come with in formulas: of densities, of erf and gelu, of norms
IRRATIONAL: tuple[tuple[str, float], ...] = (
    ("", 1.0),
    ("pi ** 0.5", math.sqrt(math.pi)),
    ("(2 * pi) ** 0.5", math.sqrt(2 * math.pi)),
    ("(2 / pi) ** 0.5", math.sqrt(2 / math.pi)),
    ("pi", math.pi),
    ("2 ** 0.5", math.sqrt(2)),
)


class Factors:
    """Factors of the expressions of one backward, from one point where a gradient is wrong.

    Args:
        script: the backward.
        known: values of one run.
        at: the point.
        which: number of the differentiable input whose gradient is wrong there.
        constants: numbers in the forward.

    Attributes:
        texts: by the id of its node, what an expression may be multiplied with or divided by (``"* 0.5"``), and what
            may stand in the place of a number.
        tries: calls of an edited backward that were made.
    """

    def __init__(self, script: Script, known: KnownValues, at: Stage, which: int, constants: Sequence[float]) -> None:
        self._script, self._at, self._which = script, at, which
        self._before, self.tries = self._along(at.original), 0.0
        factors: dict[ast.expr, float] = {}
        for node in (node for place in places(script) for node in place.subexpressions):
            if self.tries < MOST_TRIES and node not in factors and known.of.get(id(node)) != KnownValue():
                factors.update(_shared(node, self._solved(node)))
        at_hand = {repr(c): c for c in constants} | dict(_at_hand(at.point))
        self.texts: dict[int, list[str]] = {}
        for node, c in factors.items():
            if SLIGHT < abs(c) < 1 / SLIGHT:
                number = node.value if isinstance(node, ast.Constant) else None
                found = _exchanged(number, c, at_hand) if isinstance(number, (int, float)) else _multiplied(c, at_hand)
                self.texts[id(node)] = [re.sub(r"\bpi\b", script.pi, text) for text in found]

    def _solved(self, node: ast.expr) -> float:
        """Return the factor of an expression; NaN where no factor makes the gradient agree."""
        before, off, t = 1.0, self._before, 2.0
        for _ in range(STEPS):
            now = self._off(node, t)
            if not math.isfinite(now) or now == off:
                return math.nan
            before, t, off = t, t - now * (t - before) / (now - off), now
            if abs(t - before) <= RECOGNISED * abs(t):
                return t
        return math.nan

    def _off(self, node: ast.expr, t: float) -> float:
        """Return what the gradient is off by where an expression is times t; NaN where backward raises."""
        text = self._script.changed([(node, f"({product(self._script, node)} * {t!r})")])
        backward = self._script.compiled(text)
        self.tries += self._at.price
        return math.nan if backward is None else self._along(self._at.gradients(backward))

    def _along(self, gradients: Gradients | str | None) -> float:
        asked = self._at.point.derivative(self._which)
        if asked is None or gradients is None or isinstance(gradients, str):
            return math.nan
        return asked.off_by(gradients[self._which])


def _shared(node: ast.expr, c: float) -> Iterator[tuple[ast.expr, float]]:
    """Yield the factor of an expression for itself and for what it is a product of."""
    yield node, c
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        yield from _shared(node.left, c)
        yield from _shared(node.right, c if isinstance(node.op, ast.Mult) else 1 / c if c else math.nan)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _shared(node.operand, c)


def _multiplied(c: float, at_hand: Mapping[str, float]) -> Iterator[str]:
    ways = (("*", c), ("/", 1 / c))
    for sign, value in ways:
        yield from (f"{sign} {label}" for label in _labels(value, at_hand))
    numbers = [f"{sign} {_bound(text)}" for sign, value in ways if (text := written(value)) is not None]
    yield from sorted(numbers, key=len)[:1]


def _exchanged(number: float, c: float, at_hand: Mapping[str, float]) -> Iterator[str]:
    yield from _labels(number * c, at_hand)
    text = written(number * c)
    if number % 1 and number * c % 1 and _same(c, round(c)):  # as a power rule gives it
        yield f"({c:.0f} * {number!r})"
    elif len(repr(number)) > 4 and _same(1 / c, round(1 / c)):  # it is known by its digits
        yield f"({number!r} / {1 / c:.0f})"
    elif text is not None:
        yield repr(float(text)) if isinstance(number, float) and text.isdigit() else _bound(text)


def _labels(value: float, at_hand: Mapping[str, float]) -> Iterator[str]:
    """Yield the sizes and numbers at hand that a number may be."""
    yield from itertools.islice((label for label, other in at_hand.items() if _same(value, other)), MOST_TEXTS)


def _bound(text: str) -> str:
    outer = re.sub(r"\([^()]*\)", "", text).replace("**", "")
    return f"({text})" if "*" in outer or "/" in outer else text


def _same(c: float, other: float) -> bool:
    return abs(c - other) <= RECOGNISED * abs(c)


def written(c: float) -> str | None:
    """Return a number as a formula has it, a fraction with pi or a root: ``"2 / pi ** 0.5"``; None for any other.

    Example:
        >>> from nbautograd.core.checking.repair.factors import written
        >>> written(2 / 3.141592653589793 ** 0.5), written(0.75), written(0.7123)
        ('2 / pi ** 0.5', '0.75', None)
    """
    for text, value in IRRATIONAL:
        most = SMALL_NUMBER if text else LARGEST_NUMERATOR  # hundreds beside a root come near any number by chance
        for root, above in ((value, True), (1 / value, False)):
            for below in range(1, SMALL_NUMBER + 1):
                p = c / root * below
                if 0 < abs(round(p)) <= most and abs(p - round(p)) <= RECOGNISED * abs(p):
                    return _fraction(round(p), below, text, above)
    return None


def _fraction(p: int, q: int, text: str, above: bool) -> str:
    if not text:
        return repr(p / q) if q in (1, 2, 4, 5, 8, 10) and p % q else str(p // q) if p % q == 0 else f"{p} / {q}"
    if above:
        number = "" if p == 1 else "-" if p == -1 else f"{p} * "
        return f"{number}{text}" + ("" if q == 1 else f" / {q}")
    return f"{p} / {text}" if q == 1 else f"{p} / ({q} * {text})"


def _at_hand(point: Point) -> Iterator[tuple[str, float]]:
    """Yield the numbers that backward may name, and the sizes and counts that a forgotten division may be."""
    problem, sizes = point.problem, list[tuple[str, float]]()
    on_ctx = ((f"ctx.{name}", item) for name, item in vars(point.node).items())
    arguments = zip(problem.input_names, point.inputs, strict=False)
    outputs = zip(problem.output_names, point.outputs or (), strict=False)
    for name, item in (*on_ctx, *tensors_on_ctx(problem, point.node), *arguments, *outputs):
        if isinstance(item, torch.Size):
            sizes.append((f"{name}.numel()", item.numel()))
        elif isinstance(item, (int, float)) and not isinstance(item, bool):
            yield from ((name, item), (f"(1 - {name})", 1 - item), (f"{name} ** 2", item * item))
        elif isinstance(item, Tensor) and item.layout is torch.strided:
            sizes += [(f"{name}.shape[{k}]", n) for k, n in enumerate(item.shape)] + [(f"{name}.numel()", item.numel())]
            if item.dim() and bool(((item == 0) | (item == 1)).all()):
                sizes.append((f"{name}.sum()", float(item.detach().sum().real)))
    for label, n in sizes:
        yield from ((label, n), (f"{label} ** 0.5", math.sqrt(n))) if n > 1 else ()
