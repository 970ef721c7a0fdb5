"""What torch says when the contract of a Function is broken, said again so that a student knows what to do."""

from __future__ import annotations

import re
import traceback
from types import CodeType
from typing import Any

from nbautograd.core.checking import words
from nbautograd.core.checking.subject import Subject
from nbautograd.core.findings import Finding
from nbautograd.core.source import methods_of

# torch's (and Python's) words, and which sentence of ours explains them; groups become parameters by name
KNOWN: tuple[tuple[str, str], ...] = (
    (r"incorrect number of gradients \(expected (?P<expected>\d+), got (?P<got>\d+)\)", "number_of_gradients"),
    (r"gradient different than None at position (?P<n>\d+), but the corresponding", "gradient_for_no_tensor"),
    (r"invalid gradient at index (?P<index>\d+) - got (?P<got>\[.*?\]) but expected.*?(?P<expected>\[.*?\])", "shape"),
    (r"expected Variable or None \(got (?P<type>.*?)\)", "returned_no_tensor"),
    (r"expected Tensor or tuple of Tensor \(got (?P<type>.*?)\) for return", "forward_returned_no_tensor"),
    (r"marked as dirty during the forward.* not returned", "dirty_not_returned"),
    (r"is a view and is being modified inplace", "view_modified"),
    (r"Legacy autograd function with non-static forward", "legacy"),
    (r"can only save variables, but argument (?P<index>\d+) is of type (?P<type>\w+)", "saved_no_tensor"),
    (r"modified by an inplace operation", "saved_then_modified"),
    (r"takes (?P<takes>\d+) positional arguments? but (?P<given>\d+) were given", "grad_output_count"),
    (r"missing \d+ required positional arguments?: (?P<names>.*)", "grad_output_missing"),
    (r"Backward' object has no attribute '(?P<name>\w+)'", "nothing_on_ctx"),
    (r"name '(?P<name>\w+)' is not defined", "name_unknown"),
    (r"must implement either the backward or vjp", "no_backward"),
)


def contract_broken(error: BaseException) -> bool:
    """Whether torch complains that a Function breaks its contract, rather than the user's own code failing."""
    known = dict(KNOWN)
    own = {"grad_output_count", "grad_output_missing", "name_unknown", "nothing_on_ctx"}
    return any(known[p] not in own and re.search(p, str(error), re.DOTALL) for p in known)


def from_forward(error: BaseException, cls: type | None) -> bool:
    """Whether an exception passed through the user's ``forward`` or ``setup_context``, so that it is the user's own."""
    codes = _codes(cls, ("forward", "setup_context"))
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def explain(error: BaseException, subject: Subject) -> Finding:
    """A finding for an exception that backward (or torch, on its return) raised."""
    line = _line(error, subject)
    said = " ".join(str(error).split())
    params: dict[str, Any] = {
        "error": type(error).__name__,
        "said": words.short(said, 160),
        "place": words.Phrase("causes.on_line", line=line) if line is not None else "",
        "name": subject.name,
    }
    if _came_as_none(error, said, subject):
        return Finding("undefined_grad", "bug", "causes.undefined_grad", {"said": words.short(said, 120)}, None, line)
    special = _special(error, said, subject)
    if special is not None:
        return Finding("exception", "bug", f"causes.exception_{special}", params, None, line)
    for pattern, message in KNOWN:
        found = re.search(pattern, said)
        if found:
            params.update(_spoken(found.groupdict(), subject))
            return Finding("exception", "bug", f"causes.exception_{message}", params, None, line)
    return Finding("exception", "bug", "causes.exception_other", params, None, line)


def _came_as_none(error: BaseException, said: str, subject: Subject) -> bool:
    """Whether backward failed on a grad_output that was None, which only an author who asked for it gets."""
    asked = subject.source is not None and subject.source.materialize_grads is not True
    return asked and isinstance(error, (TypeError, AttributeError)) and "NoneType" in said


def _special(error: BaseException, said: str, subject: Subject) -> str | None:
    text = subject.source.text if subject.source is not None else ""
    if "values to unpack" in said and text.count("save_for_backward(") > 1:
        return "saved_twice"
    if "values to unpack" in said and "saved_tensors" in text:
        return "unpacked_wrongly"
    whole = re.search(r"^\s*\w+\s*=\s*\w+\.saved_(tensors|variables)\s*(#.*)?$", text, re.MULTILINE)
    indexed = whole and re.search(rf"\b{whole.group().split('=')[0].strip()}\s*\[", text)
    if whole and not indexed and isinstance(error, (TypeError, AttributeError)):
        return "not_unpacked"
    return None


def _spoken(groups: dict[str, str | None], subject: Subject) -> dict[str, Any]:
    spoken: dict[str, Any] = {k: v for k, v in groups.items() if v is not None}
    position = int(spoken["index"]) if "index" in spoken else int(spoken["n"]) - 1 if "n" in spoken else None
    if position is not None:
        known = position < len(subject.input_names) and subject.direct
        spoken["input"] = subject.input_names[position] if known else f"input {position}"
        spoken["value"] = words.value(subject, position) if known else words.ordinal(position)
        spoken["nth"] = words.ordinal(position)
    return spoken


def _codes(cls: type | None, names: tuple[str, ...]) -> set[CodeType]:
    if cls is None:
        return set()
    return {code for name, code in methods_of(cls).codes.items() if name in names}


def _line(error: BaseException, subject: Subject) -> int | None:
    """The last line of the user's file or cell that the exception passed through, else that of backward."""
    if subject.source is None:
        return None
    lines = [n for f, n in traceback.walk_tb(error.__traceback__) if f.f_code.co_filename == subject.source.file]
    methods = _codes(subject.cls, ("backward", "vjp", "forward", "setup_context"))
    inside = [n for f, n in traceback.walk_tb(error.__traceback__) if f.f_code in methods]
    return inside[-1] if inside else words.backward_line(subject) or (lines[-1] if lines else None)
