"""Kinds of edit: their register, and the names and expressions that their rules may use."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch

from nbautograd.core.checking.repair.script import Edit, Hints, Script, product, tight
from nbautograd.core.checking.repair.values import KnownValue, broadcast
from nbautograd.core.forks import cached


class Facts:
    """Facts of the text of a backward, each found once for the thousands of edits that are made of it."""

    def __init__(self, tree: ast.AST) -> None:
        self.nodes = list(ast.walk(tree))

    @cached
    def read(self) -> frozenset[str]:
        """The names that are read, and the attributes and subscripts as they are written."""
        names = (n.id for n in self.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        return frozenset(
            (*names, *(ast.unparse(n) for n in self.nodes if isinstance(n, (ast.Attribute, ast.Subscript))))
        )

    @cached
    def negated(self) -> frozenset[int]:
        """Ids of the numbers behind a minus: 1 in ``-1``."""
        signed = (n for n in self.nodes if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.USub))
        return frozenset(id(n.operand) for n in signed if isinstance(n.operand, ast.Constant))

    @cached
    def guards(self) -> frozenset[int]:
        """Ids of all nodes inside the index of a ``ctx.needs_input_grad``."""
        asked = (n for n in self.nodes if isinstance(n, ast.Subscript))
        inside = (n.slice for n in asked if getattr(n.value, "attr", "") == "needs_input_grad")
        return frozenset(id(node) for index in inside for node in ast.walk(index))

    @cached
    def thresholds(self) -> frozenset[int]:
        """Ids of what something is compared with, or may be in a function that is called by its name."""
        compared = (side for n in self.nodes if isinstance(n, ast.Compare) for side in n.comparators)
        calls = (n for n in self.nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
        handed = (a for call in calls for a in call.args if isinstance(a, ast.Attribute))
        return frozenset(id(inner) for side in (*compared, *handed) for inner in ast.walk(side))


@dataclass(frozen=True)
class Context:
    """Names and expressions that edits of one backward may be made of.

    Attributes:
        script: the backward.
        names: names and ctx attributes that may take part, each with its value where it is known.
        hints: what the evidence speaks of.
        of: the value of each expression, by the id of its node, where it is known.
        facts: of the backward's text.
    """

    script: Script
    names: Mapping[str, KnownValue | None]
    hints: Hints
    of: Mapping[int, KnownValue | None]
    facts: Facts

    def source(self, node: ast.expr) -> str:
        """Return the text of an expression."""
        return self.script.source(node)

    def tight(self, node: ast.expr) -> str:
        """Return the text of an expression that something may bind to."""
        return tight(self.script, node)

    def product(self, node: ast.expr) -> str:
        """Return the text of an expression as the left side of a product."""
        return product(self.script, node)

    @cached
    def tensors(self) -> list[str]:
        """Names that may stand for a tensor."""
        return [name for name, value in self.names.items() if value is None or value.shape is not None]

    def operands(self, node: ast.expr) -> list[str]:
        """Return names of what an elementwise operation may take together with an expression."""
        value = self.of.get(id(node))
        return [name for name, other in self.names.items() if broadcast(value, other)]

    def alike(self, one: str, other: str) -> bool:
        """Return True for two names of the same shape and dtype, or of two numbers."""
        a, b = self.names.get(one), self.names.get(other)
        return a is not None and b is not None and a != KnownValue() and (a.shape, a.dtype) == (b.shape, b.dtype)

    @cached
    def unused(self) -> list[str]:
        """Names that may take part, and that backward has and never reads: what is missing often needs them."""
        read = self.facts.read
        return [n for n in self.names if n not in read and not n.startswith("_")]

    def dim(self, node: ast.expr) -> float:
        """Return the number of dimensions of an expression, infinite where not known; -1 for what is no tensor."""
        value = self.of.get(id(node))
        return math.inf if value is None else -1 if value.shape is None else len(value.shape)

    def dtype(self, node: ast.expr) -> torch.dtype | None:
        """Return the dtype of an expression where it is known."""
        value = self.of.get(id(node))
        return None if value is None else value.dtype

    @cached
    def numbers_on_ctx(self) -> list[str]:
        """Attributes of ctx that may take part: no flag, which nobody multiplies by."""
        return [name for name, value in self.names.items() if name.startswith("ctx.") and value != KnownValue()]

    @cached
    def transposed(self) -> tuple[str, ...]:
        """The ways to transpose, that of the code first."""
        own = [way for way in (".mT", ".T", ".transpose(-2, -1)", ".t()") if way in self.script.text]
        return tuple(dict.fromkeys((*own[:1], ".t()", ".transpose(-2, -1)")))

    def last(self, name: str) -> str:
        """Return a name with one dimension more at its end, as the code writes it."""
        return f"{name}[:, None]" if "[:, None]" in self.script.text else f"{name}.unsqueeze(-1)"


@dataclass(frozen=True)
class Kind:
    """One kind of edit.

    Attributes:
        name: such as ``"transpose"``.
        place: ``"value"`` for what is assigned or returned, ``"part"`` for each expression inside, ``"whole"`` for
            the backward at once.
        rule: yields the edits at a place.
    """

    name: str
    place: str
    rule: Callable[..., Iterator[Edit]]


KINDS: dict[str, Kind] = {}

# the code and the sentence of what an edit mends, by its kind; any other says that one expression is wrong
ANY = ("wrong_derivative", "mended")
_OF: dict[tuple[str, str], tuple[str, ...]] = {
    ("sign", "mended_sign"): ("negate", "minus taken off"),
    ("transposed_grad", "mended_transpose"): ("transpose",),
    ("missing_conj", "mended"): ("conjugate",),
    ("wrong_derivative", "mended_names"): ("names exchanged",),
    ("swapped_inputs", "mended_exchanged"): ("gradients exchanged",),
    ("constant_factor", "mended"): ("constant", "factor"),
    ("missing_factor", "mended"): (
        "factor inside", "factor that is a name", "factor that is a function of a name",
        "times grad_output", "factor left out",
    ),
    ("missing_coupling", "mended_term"): ("term through a mean or a sum", "centred"),
    ("wrong_reduction_dim", "mended_reduction"): ("sum for mean", "dimension", "dimension everywhere"),
    ("permuted_entries", "mended_order"): ("index", "reversed"),
    ("conditional", "mended_mask"): ("comparison", "not taken off"),
    ("missing_entries", "mended_sum"): ("add instead of assigning",),
}  # fmt: skip
SENTENCES = {kind: sentence for sentence, kinds in _OF.items() for kind in kinds}


def kind(name: str, place: str) -> Callable[[Callable[..., Iterator[Edit]]], Callable[..., Iterator[Edit]]]:
    """Register a rule as a kind of edit."""

    def register(rule: Callable[..., Iterator[Edit]]) -> Callable[..., Iterator[Edit]]:
        KINDS[name] = Kind(name, place, rule)
        return rule

    return register
