"""Find what a solution says in all that goes to students, however it is written there.

A solution is taken apart into its expressions. Each is compared as its syntax tree reads: without white space and
brackets, numbers by value, and with any other names for its variables, one for each. So it is found in a cell, a
comment or a sentence, with or without ``return``, and in strings that are split, reversed or encoded.
"""

from __future__ import annotations

import ast
import base64
import binascii
import builtins
import codecs
import contextlib
import io
import keyword
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from nbautograd.core.user_source import tree_of
from nbautograd.course.source import Cell, Source, solution_lines, solved, stripped, without_magics

LEAST = 12  # characters of a line, or of an expression under its own names, that tell anything
TELLING = 3  # operators, numbers, attributes and functions of an expression that tell anything under other names
# what every Function says, right or wrong
_EVERYWHERE = {
    "ctx", "needs_input_grad", "saved_tensors", "save_for_backward", "save_for_forward", "set_materialize_grads",
    "mark_dirty", "mark_non_differentiable", "apply", "forward", "backward", "super", "__init__", "staticmethod",
    "None", "True", "False", "return",
}  # fmt: skip
_COMMON = re.compile(rf"\w+\.({'|'.join(_EVERYWHERE)})[\[(]")  # what every Function says, right or wrong
_TOKEN = re.compile(r"[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+|[^\W\d]\w*|\*\*|//|[<>=!]=|\.(?=\w)|[^\s\w.]")
_SILENT = set("()'\"`\\")  # brackets, quotes: how a tree reads does not depend on them
_PUNCTUATION = set(".,:[]{}=")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){12,}")


@dataclass(frozen=True)
class Secret:
    """An expression of a solution.

    Attributes:
        exercise: whose solution.
        text: as the solution has it, for its author.
        tokens: what it reads, in order; a number stands for a variable.
    """

    exercise: str
    text: str
    tokens: tuple[str | int, ...]


def secrets(source: Source) -> list[Secret]:
    """Return the expressions of solutions that tell something: not what the skeleton or a cell tagged ``shown`` has."""
    imported = set(_imported(source))
    shown = [_tokens(stripped(cell.text, "en")) for cell in source.cells if "shown" in cell.tags]
    found: dict[tuple[str | int, ...], Secret] = {}
    for cell in source.answers:
        skeleton = _tokens(stripped(cell.text, "en"))
        for statement in _statements(cell):
            for secret in _secrets_of(statement, cell.exercise, imported):
                if not any(_stands_in(secret, tokens) for tokens in (skeleton, *shown)):
                    found.setdefault(secret.tokens, secret)
    return list(found.values())


def leaks(hidden: Iterable[Secret], texts: Iterable[tuple[str, str]]) -> Iterator[tuple[Secret, str]]:
    """Yield the secrets that are left.

    Args:
        hidden: what ``secrets`` gave.
        texts: (where, text) of everything that goes out.

    Yields:
        The secret, and where it was found.
    """
    known = list(hidden)
    for where, text in texts:
        for reading in _readings(text):
            tokens = _tokens(reading)
            for secret in known:
                if _stands_in(secret, tokens):
                    yield secret, where


def strings(content: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts inside a notebook or any other JSON data, with their places."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield f"{where}/{key}", str(key)
            yield from strings(value, f"{where}/{key}")
    elif isinstance(content, (list, tuple)):
        if content and all(isinstance(item, str) for item in content):
            yield where, "".join(content)
        else:
            for k, item in enumerate(content):
                yield from strings(item, f"{where}/{k}")
    elif isinstance(content, str):
        yield where, content


def _statements(cell: Cell) -> Iterator[ast.stmt]:
    """Yield the statements inside a cell's solution."""
    text, inside = without_magics(solved(cell)), {line.strip() for line in solution_lines(cell)}
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and lines[node.lineno - 1].strip() in inside:
            yield node


def _secrets_of(statement: ast.stmt, exercise: str, imported: Collection[str]) -> Iterator[Secret]:
    """Yield a statement's expressions, those of a tuple one by one; the whole of it where they are short."""
    parts = [part for part in ast.iter_child_nodes(statement) if isinstance(part, ast.expr)]
    parts = [part for part in parts if not isinstance(getattr(part, "ctx", None), ast.Store)]
    whole = True
    for node in (one for part in parts for one in (part.elts if isinstance(part, ast.Tuple) else [part])):
        text = ast.unparse(node)
        tokens = tuple(_own_tokens(text, imported))
        if _telling(tokens) >= TELLING:
            yield Secret(exercise, text, tokens)
        elif not _telling(tokens) or _COMMON.match(text):
            continue
        elif len(text) >= LEAST:
            yield Secret(exercise, text, tuple(_tokens(text)))
        elif whole and len(ast.unparse(statement).splitlines()[0]) >= LEAST:
            text = ast.unparse(statement).splitlines()[0]
            yield Secret(exercise, text, tuple(_tokens(text)))
        whole = False


def _telling(tokens: Iterable[str | int]) -> int:
    return sum(isinstance(token, str) and token not in _PUNCTUATION | _EVERYWHERE for token in tokens)


def _own_tokens(text: str, imported: Collection[str]) -> Iterator[str | int]:
    """Yield the tokens of an expression, its variables numbered."""
    seen: dict[str, int] = {}
    found = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.string.strip()]
    for before, token, after in zip([None, *found[:-1]], found, [*found[1:], None], strict=True):
        if token.type != tokenize.NAME or keyword.iskeyword(token.string) or token.string in imported:
            yield from [token.string] if token.string == "." else _tokens(token.string)
        elif (before and before.string == ".") or (after and after.string in "(="):
            yield token.string  # an attribute, what is called, a keyword
        else:
            yield seen.setdefault(token.string, len(seen))


def _imported(source: Source) -> Iterator[str]:
    """Yield names that mean the same everywhere."""
    yield from dir(builtins)
    for cell in source.cells:
        for line in cell.text.splitlines():
            if re.match(r"\s*(import|from) ", line):
                yield from re.findall(r"\w+", line)


def _tokens(text: str) -> list[str]:
    """Return a text as code is read; numbers by value."""
    found = (token for token in _TOKEN.findall(text) if token not in _SILENT)
    return [str(float(t)) if t[-1] in "0123456789." and t[0] in ".0123456789" and t != "." else t for t in found]


def _stands_in(secret: Secret, tokens: list[str]) -> bool:
    """Return True if these tokens contain the secret's, with one name for each of its variables."""
    wanted = secret.tokens
    anchor = _longest(wanted)
    if wanted[anchor] not in tokens:
        return False
    starts = range(len(tokens) - len(wanted) + 1)
    return any(tokens[k + anchor] == wanted[anchor] and _reads(wanted, tokens, k) for k in starts)


@cache
def _longest(wanted: tuple[str | int, ...]) -> int:
    """Return the place of the longest token, which the fewest other texts have."""
    return max((k for k, token in enumerate(wanted) if isinstance(token, str)), key=lambda k: len(str(wanted[k])))


def _reads(wanted: tuple[str | int, ...], tokens: list[str], start: int) -> bool:
    end = start + len(wanted)
    if (start and tokens[start - 1] == ".") or (end < len(tokens) and tokens[end] in ".["):
        return False  # a part of another expression: `b` of `a.b`, `b` of `b.c`
    names: dict[str | int, str] = {}
    for want, token in zip(wanted, tokens[start:end], strict=True):
        if isinstance(want, str):
            if want != token:
                return False
        elif not token.isidentifier() or keyword.iskeyword(token) or names.setdefault(want, token) != token:
            return False
    return len(set(names.values())) == len(names)


def _readings(text: str) -> Iterator[str]:
    """Yield a text, and all that its strings say: joined, reversed and decoded."""
    yield text
    parts = _constants(text)
    whole = "".join(parts)
    yield whole
    for part in {*parts, whole, *_BASE64.findall(text), *_HEX.findall(text), "".join(text.split())}:
        yield part[::-1]
        yield codecs.decode(part, "rot13")
        for decode in (base64.b64decode, binascii.unhexlify):
            with contextlib.suppress(ValueError):
                yield decode(part.encode()).decode("utf-8", "ignore")


def _constants(text: str) -> list[str]:
    """Return the strings in a piece of code, in order; none in what is no code."""
    tree = tree_of(without_magics(text))
    if tree is None:
        return []
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    said = [node.value for node in sorted(found, key=lambda node: (node.lineno, node.col_offset))]
    return [s if isinstance(s, str) else s.decode("utf-8", "ignore") for s in said if isinstance(s, (str, bytes))]
