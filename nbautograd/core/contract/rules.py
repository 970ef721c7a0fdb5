"""The ctx contract: how serious each break of it is, and the finding that says so, made in one place for each code.

A break that may be seen in several ways (in the source, in a recorded call, in a call of the check's own, by asking
again) is a function here, which all of these call. One that a single detector can see is made there, by ``broken``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbautograd.core.findings import Finding, Kind, Phrase
from nbautograd.core.user_source import FunctionSource, Returned

RANK: Mapping[Kind, int] = {"bug": 0, "lint": 1, "note": 2}  # bugs first

SEVERITY: Mapping[str, Kind] = {
    # wrong numbers, or an error, for somebody
    "backward_never_called": "bug",
    "fails_noncontiguous_grad": "bug",
    "grad_buffer_reused": "bug",
    "gradient_for_non_tensor": "bug",
    "gradient_not_a_tensor": "bug",
    "hidden_input": "bug",
    "legacy": "bug",
    "mutates_grad_output": "bug",
    "mutates_input": "bug",
    "mutates_saved": "bug",
    "needs_input_grad_wrong": "bug",
    "nondeterministic_backward": "bug",
    "nondiff_marked_wrongly": "bug",
    "output_not_tensor_tuple": "bug",
    "shared_state": "bug",
    "undefined_grad": "bug",
    "undefined_name": "bug",
    "vmap_wrong": "bug",
    "wrong_elsewhere": "bug",
    "wrong_gradient_shape": "bug",
    "wrong_noncontiguous_grad": "bug",
    "wrong_noncontiguous_input": "bug",
    "wrong_number_of_gradients": "bug",
    # legal, and a trap: memory, silence, or wrong in second order
    "backward_loses_precision": "lint",
    "data_in_backward": "lint",
    "empty_body": "lint",
    "fails_noncontiguous_input": "lint",
    "grad_dtype_cast": "lint",
    "grad_shape_reduced": "lint",
    "ignores_needs_input_grad": "lint",
    "input_read_outside": "lint",
    "missing_staticmethod": "lint",
    "no_grad_in_backward": "lint",
    "nondeterministic_forward": "lint",
    "numpy_in_backward": "lint",
    "output_aliases_input": "lint",
    "output_on_ctx": "lint",
    "returns_none": "lint",
    "returns_nonfinite": "lint",
    "saved_twice": "lint",
    "tensor_on_ctx": "lint",
    "unused_output_grad": "lint",
    "vmap_raises": "lint",
    "writes_grad": "lint",
    # worth knowing
    "fails_batched": "note",
}

# what a single call cannot know: a check, where there is one, says whether the derivative is other than that
FOR_A_CHECK_TO_PROVE = frozenset(("returns_none", "returns_nonfinite"))


@dataclass(frozen=True)
class Seen:
    """The place where a break of the contract was seen.

    Attributes:
        line: line of the cell or file, counted from 1, or None.
        function: name of the Function, where the reader may not know which one is spoken of.
        call: index of the recorded call; None for the source, and for calls of the check's own.
        where: (output, input) positions, where the break is about one input.
    """

    line: int | None = None
    function: str = ""
    call: int | None = None
    where: tuple[int, int] | None = None

    def params(self) -> dict[str, Any]:
        """Return what a program may want to know of the place."""
        place = {"line": self.line} if self.call is None else {"call": self.call}
        return {"function": self.function, **place} if self.function else {}


def broken(code: str, seen: Seen, sentence: str = "", /, **params: Any) -> Finding:
    """Return the finding for one break of the contract.

    Args:
        code: one of ``SEVERITY``.
        seen: where.
        sentence: what the ids of its sentences begin with, ``causes.<code>`` if empty.
        params: what they speak of.
    """
    return Finding(
        code, SEVERITY[code], sentence or f"causes.{code}", {**seen.params(), **params}, seen.where, seen.line
    )


def input_changed(seen: Seen, input: str) -> Finding:
    """Return the finding on an input that requires grad, that forward changed in place and did not mark as dirty."""
    return broken("mutates_input", seen, input=input)


def saved_changed(seen: Seen, name: str) -> Finding:
    """Return the finding on a tensor or container on ctx that is not what it was when forward ended."""
    return broken("mutates_saved", seen, name=name)


def number_of_gradients(seen: Seen, got: int, inputs: Sequence[str]) -> Finding:
    """Return the finding on values returned by backward that are not one for each argument of forward."""
    return broken("wrong_number_of_gradients", seen, got=got, expected=len(inputs), inputs=", ".join(inputs))


def outputs_in_container(seen: Seen, type: str) -> Finding:
    """Return the finding on tensors that forward returns in a list or dict, into which apply does not look."""
    return broken("output_not_tensor_tuple", seen, type=type)


def hidden_input(seen: Seen, sentence: str = "causes.hidden_input", **params: Any) -> Finding:
    """Return the finding on a tensor that requires grad and reaches forward otherwise than as an argument.

    Args:
        seen: where.
        sentence: of a ``tensor``, or of an ``input`` that is a list, tuple or dict with it inside
            (``causes.hidden_input_in_container``).
        params: what it speaks of.
    """
    return broken("hidden_input", seen, sentence, **params)


def state_outside_ctx(seen: Seen, sentence: str = "causes.shared_state", **params: Any) -> Finding:
    """State that is kept outside ctx and reaches the backward of another call.

    Args:
        seen: where.
        sentence: by the evidence: gradients that differ (``causes.shared_state``, ``causes.wrong_later``, or
            ``causes.shared_state_buffer``), or an attribute that changed between forward and backward
            (``causes.shared_state_attribute``).
        params: what it speaks of.
    """
    return broken("shared_state", seen, sentence, **params)


def buffer_reused(seen: Seen) -> Finding:
    """Return the finding on a gradient that changes when backward runs again."""
    return broken("grad_buffer_reused", seen)


def fails_for_strided_gradient(seen: Seen, error: str, after: str) -> Finding:
    """Return the finding on a backward that raises for a grad_output that is not contiguous, as after this code."""
    return broken("fails_noncontiguous_grad", seen, said=error, after=after)


def value_returned(source: FunctionSource | None, argument: int, written: Returned | None = None) -> Phrase:
    """Name the gradient of an argument of forward among the values that backward returns.

    Args:
        source: where it is read from.
        argument: its position.
        written: the statement that computed it, where more is known of it than the source tells.

    Returns:
        Such as "`grad_weight`, the 2nd value returned, line 23: `input.mm(grad_output)`".
    """
    several = source is not None and max(len(source.gradients), len(source.inputs)) > 1  # one call may return them all
    which = Phrase("causes.value_nth", n=argument + 1) if several else Phrase("causes.value_only")
    found = written or returned(source, argument)
    if found is None or found.line is None or not found.expression:
        return which
    place = {"which": which, "line": found.line, "expression": short(found.expression)}
    if found.name is None or found.name == found.expression:
        return Phrase("causes.value_expression", **place)
    return Phrase("causes.value_named", name=found.name, **place)


def returned(source: FunctionSource | None, argument: int) -> Returned | None:
    """Return the source's expression of an argument's gradient; None where the source does not tell."""
    gradients = () if source is None else source.gradients
    return gradients[argument] if argument < len(gradients) else None


def short(expression: str, most: int = 60) -> str:
    """Return an expression on one line, cut when it is long."""
    text = " ".join(expression.split())
    return text if len(text) <= most else text[: most - 1].rstrip(" .,;:[(") + "…"
