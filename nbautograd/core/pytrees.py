"""Pytrees: what stands in nested lists, tuples and mappings, as functions take and return it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor


def leaves(tree: Any) -> Iterator[Any]:
    """Yield what stands in nested lists, tuples and mappings, in order."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, (list, tuple, Mapping)):
        for part in tree.values() if isinstance(tree, Mapping) else tree:
            yield from leaves(part)
    else:
        yield tree


def tensors(tree: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested lists, tuples and mappings, in order."""
    return (leaf for leaf in leaves(tree) if isinstance(leaf, Tensor))
