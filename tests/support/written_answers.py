"""Answers for the tests: a product with one thing changed, defined from text so that its source can be read."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import torch
from fn import written

_numbers = itertools.count()
PRODUCT = """class Multiply(Function):
    @staticmethod
    def forward(ctx, a, b):
        {save}
        return {value}

    @staticmethod
    def backward(ctx, g):
        {unpack}
        {returned}
"""
MODERN = """class Multiply(Function):
    {rule}

    @staticmethod
    def forward(a, b):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a

    @staticmethod
    def jvp(ctx, da, db):
        a, b = ctx.saved_tensors
        return {tangent}
"""


def define(source: str, name: str) -> Any:
    """The object of this name that the source defines."""
    file = f"<test answer {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space: dict[str, Any] = {"torch": torch, "Function": torch.autograd.Function, "__name__": "__main__"}
    exec(compile(source, file, "exec"), space)
    return space[name]


def function(name: str, forward: str, backward: str) -> Any:
    """The Function of a row, as a student writes it."""
    return define(written(name, forward, backward), name)


def product(
    save: str = "ctx.save_for_backward(a, b)",
    value: str = "a * b",
    unpack: str = "a, b = ctx.saved_tensors",
    returned: str = "return g * b, g * a",
) -> Any:
    """The product of two tensors, with pieces of it replaced."""
    return define(PRODUCT.format(save=save, value=value, unpack=unpack, returned=returned), "Multiply")


def modern(rule: str = "generate_vmap_rule = True", tangent: str = "da * b + a * db") -> Any:
    """The product with setup_context, jvp and a rule for vmap."""
    return define(MODERN.format(rule=rule, tangent=tangent), "Multiply")
