"""The text of a backward, taken apart so that one expression can be exchanged and the result compiled: an edit."""

from __future__ import annotations

import ast
import collections
import difflib
import inspect
import itertools
import linecache
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CellType, CodeType, FunctionType
from typing import Any

from nbautograd.core import user_source
from nbautograd.core.checking.backward_call import user_backward
from nbautograd.core.checking.repair.bounds import Loops, countable, counted
from nbautograd.core.forks import cached

FUNCTIONS = ("sin", "cos", "exp", "log", "tanh", "sigmoid", "sqrt", "rsqrt", "sinh", "cosh", "square", "reciprocal")
COUNTERPARTS = {
    "triu": "tril", "tril": "triu", "max": "min", "min": "max", "argmax": "argmin", "argmin": "argmax",
    "scatter": "scatter_add", "scatter_": "scatter_add_", "index_copy": "index_add", "index_copy_": "index_add_",
    "empty": "zeros", "empty_like": "zeros_like", "new_empty": "new_zeros",
}  # fmt: skip
SHAPES = frozenset(("t", "T", "mT", "mH", "view", "reshape", "transpose", "permute", "contiguous", "expand", "squeeze"))
AXES = frozenset(("sum", "mean", "flip", "cumsum", "cumprod", "softmax", "log_softmax", "unsqueeze", "squeeze", "prod"))
SWAPPED = {ast.Lt: ">", ast.Gt: "<", ast.LtE: ">=", ast.GtE: "<=", ast.Eq: "!=", ast.NotEq: "=="}
SIGN = {ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
RANDOM = frozenset(("bernoulli", "dropout", "exponential", "multinomial", "normal", "poisson", "uniform"))
SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|",
}  # fmt: skip

Place = ast.expr | ast.stmt
Change = tuple[Place, str]  # what is exchanged, and what stands in its place


@dataclass(frozen=True)
class Hints:
    """Facts of the evidence as text that may stand in backward.

    Attributes:
        factors: by the id of its node, what an expression may be multiplied with or divided by, the sign in front; and
            what may stand in the place of a number.
        grad_output: the name of the gradient that a missing term belongs to.
        constants: numbers in the forward.
        dims: dimensions and tuples of them in the forward, as text.
        lost: dimensions along which a mean or a sum of the gradient is missing.
    """

    factors: Mapping[int, Sequence[str]] = field(default_factory=dict)
    grad_output: str = "grad_output"
    constants: tuple[float, ...] = ()
    dims: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class Edit:
    """One expression exchanged for another text.

    Attributes:
        node: the expression.
        replacement: what stands in its place.
        cost: how far this is from what the user wrote; small is likely.
        also: further expressions, each with what stands in its place.
        kind: of the grammar.
    """

    node: Place
    replacement: str
    cost: float
    also: tuple[Change, ...] = ()
    kind: str = ""

    @property
    def changes(self) -> tuple[Change, ...]:
        """All expressions that are exchanged, each with what stands in its place."""
        return ((self.node, self.replacement), *self.also)

    @property
    def nodes(self) -> tuple[Place, ...]:
        """All expressions that are exchanged."""
        return tuple(node for node, _ in self.changes)


def drawing(tree: ast.AST) -> frozenset[int]:
    """Ids of the nodes inside calls that draw random numbers: an edit there only changes which ones are drawn."""
    calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and _draws(n.func))
    return frozenset(id(inner) for call in calls for inner in ast.walk(call))


def _draws(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name.startswith("rand") or name.removesuffix("_").removesuffix("_like") in RANDOM


def says_nothing(text: str, before: str) -> bool:
    """Return True for a text that is the one before, or that does what a person would not write.

    That is to take something off itself, to divide it by itself, to choose between it and itself or to assign a name to
    itself, where the text before did not.
    """
    return _meaning(text) == _meaning(before) or len(_by_themselves(text)) > len(_by_themselves(before))


def _by_themselves(text: str) -> list[str]:
    """Return the ``a - a``, ``a / a``, ``a if b else a`` and ``a = a`` in a text, whatever stands around ``a``."""
    try:
        nodes = list(ast.walk(user_source.parse(text)))
    except SyntaxError:
        return []
    operations = (n for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Sub, ast.Div)))
    found = [ast.dump(n) for n in operations if ast.dump(n.left) == ast.dump(n.right)]
    found += [ast.dump(n) for n in nodes if len({ast.dump(way) for way in alternatives(n)}) == 1]
    assigned = ((ast.unparse(t), ast.unparse(n.value)) for n in nodes if isinstance(n, ast.Assign) for t in n.targets)
    return [*found, *(target for target, value in assigned if target == value)]


def alternatives(node: ast.AST) -> tuple[ast.expr, ...]:
    """Return the two values that an expression chooses between by a condition: ``where``, or ``if`` and ``else``."""
    if isinstance(node, ast.IfExp):
        return node.body, node.orelse
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "where"):
        return ()
    own = () if len(node.args) == 3 else (node.func.value,)
    return (*own, *node.args[1:]) if len(node.args) in (2, 3) else ()


def amplified(tree: ast.AST, before: ast.AST) -> list[list[Change]]:
    """Return, for each tensor that a new statement makes or has as an operand, five percent more of it."""
    simple = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
    old, new = ([n for n in ast.walk(one) if isinstance(n, simple)] for one in (before, tree))
    known, found = {ast.dump(n) for n in old}, dict[str, list[Change]]()
    for node in (n for statement in new if ast.dump(statement) not in known for n in ast.walk(statement)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[ast.dump(node)] = [(node.value, f"({ast.unparse(node.value)}) * 1.05 + 0.05")]
        for side in (node.left, node.right) if isinstance(node, ast.BinOp) else ():
            if isinstance(side, ast.Name):
                more = f"({side.id} * 1.05 if hasattr({side.id}, 'dim') else None)"
                found.setdefault(side.id, []).append((side, more))
    return list(found.values())


def strangeness(text: str, before: str) -> tuple[int, int, int]:
    """Rate a changed text: numbers that stood nowhere before, its length, letters that changed."""
    old, new = (re.findall(r"\w+(?:\.\d+)?|\W", t) for t in (before, text))
    numbers = {t for t in new if t[0].isdigit()} - {t for t in old if t[0].isdigit()} - {"0", "1", "2"}
    moves = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = [token for op, _, _, i, j in moves if op != "equal" for token in new[i:j]]
    return len(numbers), len(text) - len(before), sum(map(len, changed))


def subexpressions(root: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions inside one that stand for a value: no callee, no module name, no keyword's name."""
    stack = collections.deque[ast.AST]((root,))
    while stack:
        node = stack.popleft()
        if isinstance(node, ast.expr) and not isinstance(node, (ast.Starred, ast.Slice)):
            yield node
        for name, child in ast.iter_fields(node):
            if isinstance(node, ast.Call) and name == "func":
                stack += [child.value] if isinstance(child, ast.Attribute) else []
            elif isinstance(node, ast.Attribute) and name == "value" and isinstance(child, ast.Name):
                continue
            elif isinstance(child, list):
                stack += [c for c in child if isinstance(c, ast.AST)]
            elif isinstance(child, ast.AST):
                stack.append(child)


def tight(script: Script, node: ast.expr) -> str:
    """Return the text of an expression, in parentheses where something is going to bind to it."""
    text = script.source(node)
    simple = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant))
    return text if simple and not text.startswith("-") else f"({text})"


def product(script: Script, node: ast.expr) -> str:
    """Return the text of an expression as the left side of a ``*`` or ``/``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.MatMult)):
        return script.source(node)
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    return script.source(node) if negative else tight(script, node)


@dataclass(frozen=True)
class Script:
    """A backward as text.

    Attributes:
        function: the user's function, decorators taken off.
        text: its ``def``, dedented.
        tree: the syntax tree of ``text``.
        first_line: line of its ``def`` in the cell or file.
        indent: how far its lines stand from the margin there.
    """

    function: FunctionType
    text: str
    tree: ast.FunctionDef
    first_line: int
    indent: str

    def with_text(self, text: str) -> Script | None:
        """Return the same function with another text; None when that is no function."""
        try:
            tree = user_source.parse(text).body[0]
        except SyntaxError:
            return None
        return replace(self, text=text, tree=tree) if isinstance(tree, ast.FunctionDef) else None

    def source(self, node: ast.expr) -> str:
        """Return the text of an expression."""
        ((start, end),) = self._spans([(node, "")])
        return self._raw[start:end].decode() or ast.unparse(node)

    def changed(self, changes: Sequence[Change]) -> str:
        """Return the whole text with some expressions exchanged, each for a text of its own."""
        return self._spliced(self._spans(changes), [text for _, text in changes])

    def tidied(self, changes: Sequence[Change]) -> str:
        """Return the same as ``changed``, without parentheses that mean nothing."""
        text, spans, texts = self.changed(changes), self._spans(changes), [text for _, text in changes]
        meaning = ast.dump(user_source.parse(text))
        bare = [t[1:-1] if t.startswith("(") and t.endswith(")") else t for t in texts]
        raw = self._raw
        wide = [(a - 1, b + 1) if raw[a - 1 : a] == b"(" and raw[b : b + 1] == b")" else (a, b) for a, b in spans]
        for tried in ((wide, bare), (wide, texts), (spans, bare)):
            shorter = self._spliced(*tried)
            if shorter != text and _meaning(shorter) == meaning:
                return shorter
        return text

    def _spans(self, changes: Sequence[Change]) -> list[tuple[int, int]]:
        nodes = [node for node, _ in changes]
        return [(self._offset(n.lineno, n.col_offset), self._offset(n.end_lineno, n.end_col_offset)) for n in nodes]

    def _spliced(self, spans: Sequence[tuple[int, int]], texts: Sequence[str]) -> str:
        raw = self._raw
        for (start, end), text in sorted(zip(spans, texts, strict=True), reverse=True):
            raw = raw[:start] + text.encode() + raw[end:]
        return raw.decode()

    def _offset(self, line: int | None, column: int | None) -> int:
        return self._starts[(line or 1) - 1] + (column or 0)

    @property
    def pi(self) -> str:
        """How backward may write pi."""
        known = self.function.__globals__
        return next((f"{m}.pi" for m in ("math", "torch", "np") if hasattr(known.get(m), "pi")), repr(math.pi))

    @cached
    def _raw(self) -> bytes:
        return self.text.encode()

    @cached
    def _starts(self) -> list[int]:
        return [0, *itertools.accumulate(len(row) + 1 for row in self._raw.split(b"\n"))]

    def compiled(self, text: str) -> Callable[..., Any] | None:
        """Return a changed text as a function that sees what the user's function sees; None when it does not compile.

        Its ``range`` ends after so many steps of all its loops together.
        """
        loops = Loops()
        names = dict.fromkeys((*self.function.__code__.co_freevars, "range"))
        body = textwrap.indent(text, "    ")
        try:
            module = compile(f"def _around({', '.join(names)}):\n{body}\n", "<nbautograd repair>", "exec")
        except (SyntaxError, ValueError):
            return None
        user, outer = self.function, next(c for c in module.co_consts if isinstance(c, CodeType))
        code = next(c for c in outer.co_consts if isinstance(c, CodeType) and c.co_name == self.tree.name)
        cells = dict(zip(user.__code__.co_freevars, user.__closure__ or (), strict=True))
        closure = tuple(cells.get(name) or CellType(loops) for name in code.co_freevars)
        changed = FunctionType(code, counted(user, loops), user.__name__, user.__defaults__, closure)
        changed.__kwdefaults__ = user.__kwdefaults__
        return changed

    def difference(self, text: str) -> tuple[str, str, int]:
        """(changed lines, those lines before, the first one's number in the cell or file) for a changed text."""
        old, new = self.text.split("\n"), text.split("\n")
        start = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
        tail = 0
        while tail < min(len(old), len(new)) - start - 1 and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        after = "\n".join(self.indent + line for line in new[start : len(new) - tail])
        before = "\n".join(self.indent + line for line in old[start : len(old) - tail])
        return after, before, self.first_line + start


def _meaning(text: str) -> str:
    try:
        return ast.dump(user_source.parse(text))
    except SyntaxError:
        return ""


def read(cls: Any) -> Script | None:
    """Return the script of a class's backward; None without a text, or where running it again and again may do harm."""
    function = inspect.unwrap(user_backward(cls))
    node = user_source.method_at(function.__code__) if isinstance(function, FunctionType) else None
    if not isinstance(node, ast.FunctionDef):
        return None
    lines = linecache.getlines(function.__code__.co_filename)[node.lineno - 1 : node.end_lineno]
    text = textwrap.dedent("".join(lines)).rstrip("\n")
    tree = user_source.parse(text).body[0]
    if not isinstance(tree, ast.FunctionDef) or not countable(tree, function):
        return None
    return Script(function, text, tree, node.lineno, " " * node.col_offset)


@dataclass(frozen=True)
class Written:
    """A value that is assigned, returned or written in place, and where edits of it may be made.

    Attributes:
        value: the expression.
        subexpressions: it and the expressions inside; of a call that writes in place the call and its arguments.
    """

    value: ast.expr
    subexpressions: tuple[ast.expr, ...]

    @property
    def line(self) -> int:
        """The line that it begins in."""
        return self.value.lineno


def places(script: Script) -> Iterator[Written]:
    """Yield the values assigned, returned or written in place by a call, in source order; none unpacked from ctx."""
    for node in user_source.own_nodes(script.tree):
        value = getattr(node, "value", None)
        called = value.func if isinstance(node, ast.Expr) and isinstance(value, ast.Call) and value.args else None
        if isinstance(called, ast.Attribute) and user_source.in_place(called.attr):
            assert isinstance(value, ast.Call)
            inside = (part for argument in value.args for part in subexpressions(argument))
            yield Written(value.args[-1], (value, *inside))
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)) or value is None:
            continue
        unpacked = getattr(value, "attr", "") in ("saved_tensors", "saved_variables", "needs_input_grad")
        if unpacked or (isinstance(value, ast.Constant) and value.value is None):
            continue
        items = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
        wanted = [item for item in items if not (isinstance(item, ast.Constant) and item.value is None)]
        yield from (Written(item, tuple(subexpressions(item))) for item in wanted)


def names(script: Script) -> list[str]:
    """Return names that hold something in backward: its arguments without ctx, and what is assigned."""
    found = user_source.parameters(script.tree)[1:]
    for node in user_source.own_nodes(script.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append(node.id)
    return [n for n in dict.fromkeys(found) if not n.startswith("*")]


def dims(function: Any) -> list[str]:
    """Return dimensions, and tuples of them, in a function's code, as text."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    found = [c for c in code.co_consts if isinstance(c, tuple) and c and all(_is_dim(d) for d in c)] if code else []
    single = [c for c in user_source.constants(code) if _is_dim(c)] if code else []
    return [repr(c) for c in dict.fromkeys([*found, *single])]


def _is_dim(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 8
