"""Kinds of edit: their register, and the names and expressions that their rules may use."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch

from nbautograd.core.checking.repair.script import Edit, Hints, Script, product, tight
from nbautograd.core.checking.repair.values import Value, broadcast


@dataclass(frozen=True)
class Context:
    """Names and expressions that edits of one backward may be made of.

    Attributes:
        script: the backward.
        names: names and ctx attributes that may take part, each with its value where it is known.
        hints: what the evidence speaks of.
        of: the value of each expression, by the id of its node, where it is known.
    """

    script: Script
    names: Mapping[str, Value | None]
    hints: Hints
    of: Mapping[int, Value | None]

    def source(self, node: ast.expr) -> str:
        """The text of an expression."""
        return self.script.source(node)

    def tight(self, node: ast.expr) -> str:
        """The text of an expression that something may bind to."""
        return tight(self.script, node)

    def product(self, node: ast.expr) -> str:
        """The text of an expression as the left side of a product."""
        return product(self.script, node)

    @cached_property
    def tensors(self) -> list[str]:
        """Names that may stand for a tensor."""
        return [name for name, value in self.names.items() if value is None or value.shape is not None]

    def beside(self, node: ast.expr) -> list[str]:
        """Names of what an elementwise operation may take together with an expression."""
        value = self.of.get(id(node))
        return [name for name, other in self.names.items() if broadcast(value, other)]

    def dim(self, node: ast.expr) -> float:
        """The number of dimensions of an expression, infinite where it is not known; -1 for what is no tensor."""
        value = self.of.get(id(node))
        return math.inf if value is None else -1 if value.shape is None else len(value.shape)

    def dtype(self, node: ast.expr) -> torch.dtype | None:
        """The dtype of an expression where it is known."""
        value = self.of.get(id(node))
        return None if value is None else value.dtype

    @cached_property
    def guards(self) -> frozenset[int]:
        """Ids of all nodes inside the index of a ``ctx.needs_input_grad``."""
        asked = (n for n in ast.walk(self.script.tree) if isinstance(n, ast.Subscript))
        inside = (n.slice for n in asked if getattr(n.value, "attr", "") == "needs_input_grad")
        return frozenset(id(node) for index in inside for node in ast.walk(index))

    @cached_property
    def numbers_on_ctx(self) -> list[str]:
        """Attributes of ctx that may take part."""
        return [name for name in self.names if name.startswith("ctx.")]

    @cached_property
    def transposed(self) -> tuple[str, ...]:
        """The ways to transpose, that of the code first."""
        own = [way for way in (".mT", ".T", ".transpose(-2, -1)", ".t()") if way in self.script.text]
        return tuple(dict.fromkeys((*own[:1], ".t()", ".transpose(-2, -1)")))

    def last(self, name: str) -> str:
        """A name with one dimension more at its end, as the code writes it."""
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


def kind(name: str, place: str) -> Callable[[Callable[..., Iterator[Edit]]], Callable[..., Iterator[Edit]]]:
    """Register a rule as a kind of edit."""

    def register(rule: Callable[..., Iterator[Edit]]) -> Callable[..., Iterator[Edit]]:
        KINDS[name] = Kind(name, place, rule)
        return rule

    return register
