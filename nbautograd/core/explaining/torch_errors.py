"""The errors that torch raises about gradients, told from all others, and what kind each is."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import torch

from nbautograd.core import stumbles
from nbautograd.core.user_source import tree_of

# the beginning of what torch says -> the kind; torch has no classes for its errors, so that its words are all there is
KINDS: tuple[tuple[str, str], ...] = (
    (r"one of the variables needed for gradient computation has been modified by an inplace operation", "in_place"),
    (r"a (view of a )?leaf Variable that requires grad (is being|has been) used in an in-place operation", "leaf"),
    (r"(Output \d+ of \S+|A view was created|This view) .*modified inplace", "view"),
    (r"Trying to backward through the graph a second time", "freed"),
    (r"element \d+ of (tensors|variables) does not require grad", "no_grad"),
    (r"One of the differentiated Tensors (does not require grad|appears to not have been used)", "unused"),
    (r"The differentiated Tensor at index \d+ appears to not have been used in the graph", "unused"),
    (r"One of the differentiated Tensors given as 'inputs'", "unused"),
    (r"grad can be (implicitly )?created only for (scalar|real scalar) outputs", "not_scalar"),
    (r"Function '?\S+'? returned nan values", "not_finite"),
    (r"function \S+ returned an incorrect number of gradients", "returned_number"),
    (r"(F|f)unction \S+ returned an invalid gradient at index \d+ - got .* but expected shape", "returned_shape"),
    (r"(F|f)unction \S+ returned an invalid gradient at index \d+ - expected device", "returned_device"),
    (r"expected Variable or None \(got", "returned_type"),
    (r"Some elements marked as dirty during the forward", "mark_dirty"),
    (r"save_for_backward can only save variables", "save_for_backward"),
    (r"Can't call numpy\(\) on Tensor that requires grad", "numpy"),
    (r"[Oo]nly Tensors of floating point (and complex )?dtype can require gradients", "integer"),
    (r"you can only change requires_grad flags of leaf variables", "not_a_leaf"),
    (r"can't optimize a non-leaf Tensor", "optimize_non_leaf"),
    (r"optimizer got an empty parameter list", "empty_optimizer"),
    (r"Inference tensors cannot be saved for backward", "inference"),
    (r"Expected to have finished reduction in the prior iteration", "unused_parameters"),
    (r"Only Tensors created explicitly by the user .* support the deepcopy", "deepcopy"),
)
_TABLE = tuple((re.compile(pattern, re.DOTALL), kind) for pattern, kind in KINDS)
NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
TORCH = str(Path(torch.__file__).parent)


def kind_of(error: BaseException | None) -> str | None:
    """Return the kind of one of torch's gradient errors; None for every other error.

    The same words raised by the user's own ``raise`` are the user's error.
    """
    if not isinstance(error, (RuntimeError, ValueError, TypeError)):
        return None
    words = stumbles.said(error)
    kind = next((kind for pattern, kind in _TABLE if pattern.match(words)), None)
    return None if kind is None or _raised_by_user(error) else kind


def ending(error: BaseException) -> str:
    """Return what a program ended in, to be compared with another run: numbers, such as versions, are left out."""
    return f"{type(error).__name__}: {kind_of(error) or NUMBER.sub('#', stumbles.said(error))}"


WATCHED_CALL = "<watched call>"  # name of the frame, with the place of the user's, from which a watch calls torch


def entries(error: BaseException) -> Iterator[TracebackType]:
    """Yield the entries of an error's traceback, the outermost first."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_name != WATCHED_CALL:
            yield trace
        trace = trace.tb_next


def is_torch(file: str) -> bool:
    """Return True for a file of torch itself."""
    return file.startswith(TORCH) or file == "<string>"  # torch makes some of its functions from text


def _raised_by_user(error: BaseException) -> bool:
    last = next(iter([*entries(error)][-1:]), None)
    if last is None or is_torch(last.tb_frame.f_code.co_filename):
        return last is None
    tree = tree_of("".join(linecache.getlines(last.tb_frame.f_code.co_filename, last.tb_frame.f_globals)))
    raises = [n for n in ast.walk(tree) if isinstance(n, ast.Raise)] if tree is not None else []
    return any(n.lineno <= last.tb_lineno <= (n.end_lineno or n.lineno) for n in raises)
