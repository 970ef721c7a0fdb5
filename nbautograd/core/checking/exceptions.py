"""Exceptions of torch about a broken contract of a Function, said again so that a student knows what to do."""

from __future__ import annotations

import ast
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import CodeType
from typing import Any

from torch import Tensor
from torch.autograd import Function

from nbautograd.core import stumbles, user_source
from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_lines import saving_trees
from nbautograd.core.checking.problem import Problem
from nbautograd.core.contract.rules import Seen, broken
from nbautograd.core.findings import Finding, Phrase
from nbautograd.core.migration import recognise
from nbautograd.core.user_source import methods_of

SAVED = ("saved_tensors", "saved_variables")
TAKE_TUPLES = ("len", "list", "tuple", "zip", "enumerate", "reversed", "map", "stack", "cat", "print", "iter", "next")


@dataclass(frozen=True)
class Raised:
    """The last line of backward that an exception passed through.

    Attributes:
        function: the syntax tree of backward; None without its source.
        line: its line in the file or cell.
        values: the local names with their values at that moment.
    """

    function: user_source.FunctionNode | None
    line: int
    values: Mapping[str, Any]

    def statement(self) -> ast.stmt | None:
        """Return the innermost statement at the line."""
        found = [n for n in ast.walk(self.function) if isinstance(n, ast.stmt)] if self.function is not None else []
        inside = [n for n in found if n.lineno <= self.line <= (n.end_lineno or n.lineno) and n is not self.function]
        return min(inside, key=lambda n: (n.end_lineno or n.lineno) - n.lineno, default=None)

    def shapes(self) -> dict[str, list[int]]:
        """Return the tensors that the statement reads by name, with their shapes, in order."""
        statement = self.statement()
        nodes = [n for n in ast.walk(statement) if isinstance(n, ast.Name)] if statement is not None else []
        read = sorted((n for n in nodes if isinstance(n.ctx, ast.Load)), key=lambda n: (n.lineno, n.col_offset))
        known = ((n.id, self.values.get(n.id)) for n in read)
        return {name: list(value.shape) for name, value in known if isinstance(value, Tensor)}

    def not_unpacked(self) -> bool:
        """Return True if all of ``ctx.saved_tensors`` is used as if it were a tensor."""
        return self.function is not None and any(True for _ in _whole(self.function))


def raised_in_backward(error: BaseException, problem: Problem) -> Raised | None:
    """Find the line of backward that an exception came through; None when it did not."""
    codes = methods_of(problem.cls).codes if problem.cls is not None else {}
    backward: set[CodeType] = {code for name, code in codes.items() if name in ("backward", "vjp")}
    hits = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code in backward]
    if not hits:
        return None
    frame, line = hits[-1]
    return Raised(user_source.method_at(frame.f_code), line, dict(frame.f_locals))


def _whole(function: user_source.FunctionNode) -> Iterator[ast.AST]:
    """Find the tuple of saved tensors, or a name for it, as an operand, an argument or the object of a method."""
    names = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _is_saved(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(function):
        operands = [
            *([node.left, node.right] if isinstance(node, ast.BinOp) else []),
            *([node.operand] if isinstance(node, ast.UnaryOp) else []),
            *([node.left, *node.comparators] if isinstance(node, ast.Compare) else []),
            *(node.args if isinstance(node, ast.Call) and not _takes_tuples(node) else []),
            *([node.value] if isinstance(node, ast.Attribute) else []),
        ]
        yield from (n for n in operands if _is_saved(n) or (isinstance(n, ast.Name) and n.id in names))


def _is_saved(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in SAVED


def _takes_tuples(call: ast.Call) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return name in TAKE_TUPLES


# torch's (and Python's) words, and which sentence of ours explains them; groups become parameters by name
KNOWN: tuple[tuple[str, str], ...] = (
    (r"incorrect number of gradients \(expected (?P<expected>\d+), got (?P<got>\d+)\)", "number_of_gradients"),
    (r"gradient different than None at position (?P<n>\d+), but the corresponding", "gradient_for_no_tensor"),
    (r"invalid gradient at index (?P<index>\d+) - got (?P<got>\[.*?\]) but expected.*?(?P<expected>\[.*?\])", "shape"),
    (r"expected Variable or None \(got (?P<type>.*?)\)", "returned_no_tensor"),
    (r"input_is_complex == grad_is_complex", "complex"),
    (r"marked as dirty during the forward.* not returned", "dirty_not_returned"),
    (r"is a view and is being modified inplace", "view_modified"),
    (r"can only save variables, but argument (?P<index>\d+) is of type (?P<type>\w+)", "saved_no_tensor"),
    (r"modified by an inplace operation", "saved_then_modified"),
    (r"takes \d+ positional arguments? but \d+ were given", "grad_output_count"),
    (r"missing \d+ required positional arguments?: ", "grad_output_count"),
    (r"Backward' object has no attribute '(?P<name>\w+)'", "nothing_on_ctx"),
    (r"name '(?P<name>\w+)' is not defined", "name_unknown"),
    (r"must implement either the backward or vjp", "no_backward"),
)

# a sentence of torch's -> the break of the contract that it is
SAME = {
    "number_of_gradients": "wrong_number_of_gradients",
    "gradient_for_no_tensor": "gradient_for_non_tensor",
    "returned_no_tensor": "gradient_not_a_tensor",
}

# what torch complains of when forward has run, and the call in forward or setup_context that it is about
OF_FORWARD = {
    "dirty_not_returned": "mark_dirty",
    "view_modified": "",
    "saved_no_tensor": "save_for_backward",
}

# torch's words for shapes that do not fit in an operation, and which sentence of ours tells it with the names
SHAPES: tuple[tuple[str, str], ...] = (
    (r"mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<first>\d+) and (?P<second>\d+)x\d+\)", "shapes_product"),
    (r"size mismatch, got .*?|inconsistent tensor size|Expected size for first two dimensions of batch2", "shapes_met"),
    (r"size of tensor a \((?P<first>\d+)\) must match the size of tensor b \((?P<second>\d+)\)", "shapes_elementwise"),
    (r"expanded size of the tensor|shape '.*?' is invalid|expects a tensor with <= 2 dimensions", "shapes_met"),
    (r"Dimension out of range|Dimension specified as|subscript .* has size|must have same reduction dim", "shapes_met"),
)


def contract_broken(error: BaseException) -> bool:
    """Return True if torch complains that a Function breaks its contract, rather than the user's code failing."""
    known = dict(KNOWN)
    own = {"grad_output_count", "name_unknown", "nothing_on_ctx"}
    if _in_the_style_of_old_torch(error):
        return True
    return any(known[p] not in own and re.search(p, stumbles.said(error), re.DOTALL) for p in known)


def from_forward(error: BaseException, cls: type | None) -> bool:
    """Return True if an exception passed through the user's ``forward`` or ``setup_context``: it is the user's own."""
    codes = _codes(cls, ("forward", "setup_context"))
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def explain(error: BaseException, problem: Problem) -> Finding:
    """Return a finding for an exception that backward (or torch, on its return) raised."""
    line = _line(error, problem)
    error_text = " ".join(stumbles.said(error).split())
    params: dict[str, Any] = {
        "error": type(error).__name__,
        "said": phrases.short(error_text, 2_000),
        "name": problem.name,
    }
    place = raised_in_backward(error, problem)
    if _came_as_none(error, error_text, place):
        return undefined_grad(line, phrases.short(error_text, 120))
    if old := _in_the_style_of_old_torch(error):
        return old
    special = _special(error, error_text, problem, place)
    if special is not None:
        return Finding("exception", "bug", f"causes.exception_{special}", params, None, line)
    shapes = _shapes(error_text, place) if isinstance(error, (RuntimeError, IndexError)) else None
    if shapes is not None:
        params |= shapes[1]
        params["what"] = Phrase("causes.exception_shapes_met.what", **params)
        return Finding("exception", "bug", f"causes.exception_{shapes[0]}", params, None, line)
    for pattern, message in KNOWN:
        found = re.search(pattern, error_text)
        if found and message in OF_FORWARD:
            params |= found.groupdict()
            method = OF_FORWARD[message]
            calls = [call for tree in saving_trees(problem.cls) for call in user_source.calls_of(tree, method)]
            line = calls[0].lineno if len(calls) == 1 else phrases.method_line(problem, "forward")
            return Finding("exception", "bug", f"causes.exception_{message}", params, None, line)
        if found:
            if message == "nothing_on_ctx":
                known = [n for n in dir(getattr(error, "obj", None)) if not n.startswith("_")]
                for near in get_close_matches(getattr(error, "name", None) or "", known, n=1, cutoff=0.8):
                    params["advice"] = Phrase("magics.did_you_mean", near=f"ctx.{near}")
            params |= _spoken(found.groupdict(), problem)
            line = params["value"].params.get("line", line) if "value" in params else line  # of what was returned
            if same := SAME.get(message):
                params |= {part: Phrase(f"causes.{same}.{part}", **params) for part in ("what", "advice")}
            return Finding("exception", "bug", f"causes.exception_{message}", params, None, line)
    return Finding("exception", "bug", "causes.exception_other", params, None, line)


def _in_the_style_of_old_torch(error: BaseException) -> Finding | None:
    called = [frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__)]
    old = recognise(type(called[-1])) if called and isinstance(called[-1], Function) else None
    return None if old is None else old.findings[0]


def undefined_grad(line: int | None, error_text: str = "") -> Finding:
    """Return the finding on a backward that takes a None for another grad_output than zeros, or raises over it."""
    return broken("undefined_grad", Seen(line), said=error_text)


def _came_as_none(error: BaseException, error_text: str, place: Raised | None) -> bool:
    """Return True if backward failed on a grad_output that was None, which only an author who asked for it gets."""
    if not isinstance(error, (TypeError, AttributeError)) or "NoneType" not in error_text or place is None:
        return False
    names = [] if place.function is None else user_source.parameters(place.function)[1:]
    return any(place.values.get(name.lstrip("*"), 0) is None for name in names)


def _special(error: BaseException, error_text: str, problem: Problem, place: Raised | None) -> str | None:
    text = problem.source.text if problem.source is not None else ""
    if "values to unpack" in error_text and "saved_tensors" in text:
        return "unpacked_wrongly"
    tuples = isinstance(error, (TypeError, AttributeError)) and (
        "tuple" in error_text or "converted to an index" in error_text
    )
    if tuples and place is not None and place.not_unpacked():
        return "not_unpacked"
    return None


def _shapes(error_text: str, place: Raised | None) -> tuple[str, dict[str, Any]] | None:
    shapes = {} if place is None else place.shapes()
    statement = None if place is None else place.statement()
    if not shapes or statement is None:
        return None
    listed = phrases.shapes(shapes)
    code = phrases.short(ast.unparse(statement).removeprefix("return "), 80)
    for pattern, message in SHAPES:
        found = re.search(pattern, error_text)
        if found:
            return message, {"shapes": listed, "code": code, **found.groupdict()}
    return None


def _spoken(groups: dict[str, str | None], problem: Problem) -> dict[str, Any]:
    spoken: dict[str, Any] = {k: v for k, v in groups.items() if v is not None}
    position = int(spoken["index"]) if "index" in spoken else int(spoken["n"]) - 1 if "n" in spoken else None
    if position is not None:
        known = position < len(problem.input_names) and problem.direct
        spoken["input"] = problem.input_names[position] if known else f"input {position}"
        nth = Phrase("causes.value_nth", n=position + 1)
        spoken["value"] = phrases.value(problem, position) if known else nth
    return spoken


def _codes(cls: type | None, names: tuple[str, ...]) -> set[CodeType]:
    if cls is None:
        return set()
    return {code for name, code in methods_of(cls).codes.items() if name in names}


def _line(error: BaseException, problem: Problem) -> int | None:
    if problem.source is None:
        return None
    lines = [n for f, n in traceback.walk_tb(error.__traceback__) if f.f_code.co_filename == problem.source.file]
    methods = _codes(problem.cls, ("backward", "vjp", "forward", "setup_context"))
    inside = [n for f, n in traceback.walk_tb(error.__traceback__) if f.f_code in methods]
    return inside[-1] if inside else phrases.method_line(problem) or (lines[-1] if lines else None)
