"""A question about the values of a call, asked without a loop: compiled once for each pattern of values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations
from types import CodeType
from typing import Any

from nbautograd.core.torch_private import tensors as internals

TENSOR, NOTHING, PLAIN = "tensor", "None", "plain"  # what a value can be; a number: the same tensor as that one

_TEMPLATE = """
def make(told, weight, same, types=(), node=None, names=(), address=None, join=None, copies=()):
    {unpacked}
    last = b""
    def take({values}):
        nonlocal last
        if {other}:
            return None
        data, size = None, weight
        {copied}
        return told, size, data, {versions}{rest}
    return take
"""
_COPIED = """
        {addresses} = {asked}
        if not ({addresses_all}):
            return None
        data = join(({copies}))
        if data == last:
            data = last  # one object for what stays the same
        else:
            last, size = data, weight + len(data)
"""


@cache
def compiled(pattern: tuple[str | int, ...], needs: tuple[int, ...], copies: bool) -> Callable[..., Any]:
    """Makes the ``take`` of a Form.

    Args:
        pattern: what each value is.
        needs: which of them are tensors that require grad and whose node counts.
        copies: whether the bytes of the tensors are copied.

    Returns:
        ``make(told, weight, same, ...)`` with, where the pattern has them: the types of the plain values, what tells
        the name of a tensor's node, these names, what tells its address, what joins buffers, and for each tensor what
        gives the buffer at an address.

    Example:
        >>> take = compiled(("tensor", "tensor", 0), (), False)("told", 8, lambda a, b: True)
        >>> class T:
        ...     _version = 3
        >>> a, b = T(), T()
        >>> take(a, b, a), take(a, b, b)
        (('told', 8, None, 3, 3), None)
    """
    names: dict[str, Any] = {}
    exec(compile(_text(pattern, needs, copies), __file__, "exec"), names)
    make: Callable[..., Any] = names["make"]
    for code in filter(lambda const: isinstance(const, CodeType), make.__code__.co_consts):
        internals.skip_in_dynamo(code, with_calls=True)
    return make


def _text(pattern: tuple[str | int, ...], needs: tuple[int, ...], copies: bool) -> str:
    tensors = [i for i, one in enumerate(pattern) if one == TENSOR]
    plain = [i for i, one in enumerate(pattern) if one == PLAIN]
    other = [f"v{i} is not None" for i, one in enumerate(pattern) if one == NOTHING]
    other += [f"v{i} is not v{one}" for i, one in enumerate(pattern) if isinstance(one, int)]
    other += [f"type(v{i}) is not k{i}" for i in plain]
    other += _distinct(tensors)
    other += [f"not same({_each('v{}', tensors)})", *(f"node(v{i}) != n{i}" for i in needs)]
    places = range(len(tensors))
    copied = _COPIED.format(
        addresses=_each("p{}", places),
        asked=_each("address(v{})", tensors),
        addresses_all=" and ".join(f"p{j}" for j in places),
        copies=_each("c{0}(p{0})", places),
    )
    unpacked = [(_each("k{}", plain), "types"), (_each("n{}", needs), "names")]
    unpacked += [(_each("c{}", places), "copies")] if copies else []
    return _TEMPLATE.format(
        unpacked="; ".join(f"{left} = {right}" for left, right in unpacked if left) or "pass",
        values=_each("v{}", range(len(pattern))),
        other=" or ".join(other),
        copied=copied if copies else "pass",
        versions=_each("v{}._version", tensors),
        rest=_each("v{}", plain),
    )


@cache
def picks(count: int, places: tuple[int, ...]) -> Callable[..., bool]:
    """Tells whether values are these of some others.

    Args:
        count: how many others there are.
        places: for each value where among them it is, -1 for None.

    Returns:
        A function of the others and then the values.

    Example:
        >>> picks(2, (1, -1))("a", "b", "b", None)
        True
    """
    same = [f"s{i} is " + ("None" if at < 0 else f"v{at}") for i, at in enumerate(places)]
    given = _each("v{}", range(count)) + _each("s{}", range(len(places)))
    made: Callable[..., bool] = eval(f"lambda {given}: {' and '.join(same) or True}")
    internals.skip_in_dynamo(made.__code__, with_calls=True)
    return made


def _each(form: str, numbers: Any) -> str:
    return "".join(form.format(i) + ", " for i in numbers)


def _distinct(tensors: list[int]) -> list[str]:
    """No two of these are the same."""
    if len(tensors) > 6:
        return [f"len({{{_each('id(v{})', tensors)}}}) != {len(tensors)}"]
    return [f"v{i} is v{j}" for i, j in combinations(tensors, 2)]
