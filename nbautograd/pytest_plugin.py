"""A pytest plugin: ``assert_gradients(fn, inputs)`` as a fixture, with the report as the assertion's text.

pytest loads this module at its start, so nothing but pytest is imported before the first check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from nbautograd.core.checking.block import GradcheckReport


def assert_gradients(fn: Any, inputs: Any, *, unsure: bool = False, **options: Any) -> GradcheckReport:
    """Fail the test unless the gradients of a Function are right, and say why they are not.

    Args:
        fn: a Function class, its ``apply``, or any callable that returns tensors.
        inputs: a tuple of arguments, tensors or not; those that require grad are differentiated.
        unsure: True lets "cannot tell" pass, as for a straight-through gradient; "wrong" always fails. Second
            derivatives count with ``order=2``.
        options: as for ``nbautograd.gradcheck``: ``atol``, ``rtol``, ``eps``, ``order``, ``seed``, ``hints``,
            ``budget``.

    Returns:
        The report.

    Raises:
        GradcheckError: an AssertionError whose message is the report's text.
        CallError: the call makes no sense.
        InputError: nothing in the inputs can be differentiated.

    Example:
        >>> import torch
        >>> from nbautograd.pytest_plugin import assert_gradients
        >>> x = torch.linspace(0, 1, 5, dtype=torch.float64, requires_grad=True)
        >>> assert_gradients(torch.sin, x).verdict
        'right'
    """
    __tracebackhide__ = True
    from nbautograd.core.checking.gradcheck import gradcheck
    from nbautograd.core.display import render
    from nbautograd.errors import GradcheckError

    report = gradcheck(fn, inputs, **options)
    if report.wrong or not (report or unsure):
        raise GradcheckError("report.as_text", text=render("text", report))
    return report


@pytest.fixture(name="assert_gradients")
def _assert_gradients() -> Callable[..., GradcheckReport]:
    """Check the gradients of a torch.autograd.Function: assert_gradients(fn, inputs, **options)."""
    return assert_gradients
