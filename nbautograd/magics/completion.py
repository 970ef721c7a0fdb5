"""Completion on the magics' lines: options, their choices, names of Functions, and expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from nbautograd.course.catalogue import written_names
from nbautograd.magics.options import GRAMMARS, NO_LIMIT, Grammar, Option

_MAGIC = re.compile(r"(?:(%%\w+)|(?:.*=)?\s*(%\w+))\s(.*)", re.DOTALL)
_DASHES = re.compile(r"--?[a-z-]*")
_CLASS = re.compile(r"^\s*class\s+(\w+)", re.MULTILINE)
_NAME_TAIL = re.compile(r"[^\W\d]\w*$|$")


def matcher(shell: Any) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """Return the matcher to append to ``shell.Completer.custom_matchers``."""

    @context_matcher(identifier="nbautograd")  # type: ignore[untyped-decorator,unused-ignore]
    def nbautograd_matcher(context: CompletionContext) -> SimpleMatcherResult:
        found = _MAGIC.match(context.text_until_cursor)
        grammar = None if found is None else GRAMMARS.get(found[1] or found[2])
        if found is None or grammar is None:
            return _result((), "", "")
        return _on_line(shell, grammar, found[3], context.full_text)

    return nbautograd_matcher  # type: ignore[no-any-return,unused-ignore]


def _on_line(shell: Any, grammar: Grammar, text: str, cell: str) -> SimpleMatcherResult:
    """Complete what is typed behind a magic, by its grammar."""
    words = text.split()
    typed = "" if not words or text[-1].isspace() else words.pop()
    known = grammar.by_spelling
    used = [known[word] for word in words if word in known]
    last = known.get(words[-1]) if words else None
    if last is not None and last.choices:
        return _result(last.choices, typed, "value")
    if last is not None and last.metavar == "SECONDS":
        return _result((NO_LIMIT,), typed, "value")
    if last is not None and last.metavar == "NAME":
        return _names([*_CLASS.findall(cell), *_functions(shell)], typed)
    if grammar.options and _DASHES.fullmatch(typed):
        return _result(_unused(grammar, used), typed, "param")
    if grammar.operand == "exercise":
        values = {words[k + 1] for k, word in enumerate(words[:-1]) if word in known}
        named = any(word not in known and word not in values for word in words)
        return (
            _result(_unused(grammar, used), typed, "param")
            if named
            else _result(written_names(Path.cwd()), typed, "class")
        )
    if grammar.operand == "function" and "." not in text:
        return _names(_functions(shell), typed)
    in_expression = bool(grammar.operand) or (bool(used) and used[-1].metavar == "EXPR")
    if in_expression and (grammar.operand or last is not None or typed):
        return _expression(shell, text)
    return _result(_unused(grammar, used), typed, "param") if not typed else _result((), "", "")


def _unused(grammar: Grammar, used: list[Option]) -> list[str]:
    taken = {option.field for option in used}
    return [option.spellings[0] for option in grammar.options if option.field not in taken]


def _functions(shell: Any) -> list[str]:
    function = torch.autograd.Function
    names = [n for n, v in shell.user_ns.items() if isinstance(v, type) and issubclass(v, function) and v != function]
    return [name for name in names if not name.startswith("_")]


def _names(names: Iterable[str], typed: str) -> SimpleMatcherResult:
    return _result(dict.fromkeys(names), typed, "class")


def _expression(shell: Any, text: str) -> SimpleMatcherResult:
    """Return bare names, which IPython does not complete behind a magic; attributes and keys it completes by itself."""
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
