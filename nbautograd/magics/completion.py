"""Completion on the magics' lines: options, their choices, names of Functions, and expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from nbautograd.course.catalogue import UnknownExerciseError, names
from nbautograd.magics.options import BY_SPELLING, MAGIC, TABLE, Option

_MAGIC_LINE = re.compile(re.escape(MAGIC) + r"\s(.*)", re.DOTALL)
_LINE_MAGIC = re.compile(r"(?:.*=)?\s*%(gradcheck|jacobian|autograd_(?:graph|calls|compare|dispatches))\s(.*)")
_EXERCISE = re.compile(r"%%exercise\s(.*)", re.DOTALL)
HINTS = ("--hints", "1", "2", "3")
_LINE_OPTIONS = ("--hints", "--order")  # of %gradcheck
_OPTION = re.compile(r"(?:^|\s)(?:--?[a-z]*|(?P<named>--hints|--order) +\w*)$")
_CLASS = re.compile(r"^\s*class\s+(\w+)", re.MULTILINE)
_NAME_TAIL = re.compile(r"[^\W\d]\w*$|$")


def matcher(shell: Any) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """The matcher to append to ``shell.Completer.custom_matchers``."""

    @context_matcher(identifier="nbautograd")  # type: ignore[untyped-decorator,unused-ignore]
    def nbautograd_matcher(context: CompletionContext) -> SimpleMatcherResult:
        before = context.text_until_cursor
        cell_magic = _MAGIC_LINE.match(before)
        if cell_magic:
            return _on_magic_line(shell, cell_magic[1], context.full_text)
        exercise = _EXERCISE.match(before)
        if exercise:
            return _on_exercise_line(exercise[1])
        line_magic = _LINE_MAGIC.match(before)
        if line_magic is None:
            return _result((), "", "")
        name, rest = line_magic.groups()
        option = _OPTION.search(rest) if name == "gradcheck" else None
        if option is not None:
            return _line_option(rest, option["named"])
        if name == "autograd_calls" and "." not in rest:
            return _names(_functions(shell), rest.split(" ")[-1])
        return _expression(shell, rest)

    return nbautograd_matcher  # type: ignore[no-any-return,unused-ignore]


def _on_exercise_line(text: str) -> SimpleMatcherResult:
    """The name of an exercise, ``--hints``, and how much of them."""
    words = text.split()
    typed = "" if not words or text[-1].isspace() else words.pop()
    if words and words[-1] == "--hints":
        return _result(("1", "2", "3"), typed, "value")
    if typed.startswith("-") or any(word not in HINTS for word in words):
        return _result([] if "--hints" in words else ["--hints"], typed, "param")
    try:
        known = names(Path.cwd())
    except UnknownExerciseError:  # the declarations beside the notebook cannot be read: the cell will say so
        known = names()
    return _result(known, typed, "class")


def _on_magic_line(shell: Any, text: str, cell: str) -> SimpleMatcherResult:
    words = text.split()
    typed = "" if not words or text[-1].isspace() else words.pop()
    used = [BY_SPELLING[word] for word in words if word in BY_SPELLING]
    last = BY_SPELLING.get(words[-1]) if words else None
    if last is not None and last.choices:
        return _result(last.choices, typed, "value")
    if last is not None and last.field == "name":
        return _names([*_CLASS.findall(cell), *_functions(shell)], typed)
    in_expression = bool(used) and used[-1].metavar == "EXPR"
    if in_expression and not typed.startswith("-") and (last is not None or typed):
        return _expression(shell, text)
    return _result(_unused(used), typed, "param") if typed.startswith("-") or not typed else _result((), "", "")


def _line_option(rest: str, named: str | None) -> SimpleMatcherResult:
    """Offer an option of ``%gradcheck`` that is not there yet, or the values of the one that was typed."""
    typed = rest.rsplit(" ", 1)[-1]
    if named is None:
        return _result([o for o in _LINE_OPTIONS if o not in rest.split()], typed, "param")
    return _result(BY_SPELLING[named].choices, typed, "value")


def _unused(used: list[Option]) -> list[str]:
    taken = {option.field for option in used}
    return [option.spellings[0] for option in TABLE if option.field not in taken]


def _functions(shell: Any) -> list[str]:
    function = torch.autograd.Function
    names = [n for n, v in shell.user_ns.items() if isinstance(v, type) and issubclass(v, function) and v != function]
    return [name for name in names if not name.startswith("_")]


def _names(names: Iterable[str], typed: str) -> SimpleMatcherResult:
    return _result(dict.fromkeys(names), typed, "class")


def _expression(shell: Any, text: str) -> SimpleMatcherResult:
    """Bare names, which IPython does not complete behind a magic; attributes and keys it completes by itself."""
    tail = _NAME_TAIL.search(text)
    typed = tail[0] if tail else ""
    before = text[: len(text) - len(typed)]
    if before.endswith((".", "'", '"')) or (not typed and before.strip()):
        return _result((), "", "")
    if typed:
        return {**_result(shell.Completer.global_matches(typed), typed, ""), "suppress": False}
    hidden = shell.user_ns_hidden
    return _names([n for n in shell.user_ns if not n.startswith("_") and n not in hidden], "")


def _result(words: Iterable[str], typed: str, kind: str) -> SimpleMatcherResult:
    completions = [SimpleCompletion(word, type=kind or None) for word in words if word.startswith(typed)]
    return SimpleMatcherResult(completions=completions, matched_fragment=typed, suppress=bool(completions))
