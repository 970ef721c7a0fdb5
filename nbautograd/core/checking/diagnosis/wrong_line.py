"""The line of backward that goes wrong: with the right value in place of one of its results, the gradient is right.

Autograd of the class's own forward knows the value of each call of torch in forward, and the gradient that arrives
there. A result of backward that depends on grad_output stands for such a gradient, any other for such a value, or for a
derivative of the output. The mistake is in the line of the first result which, replaced by one of them, mends the
gradient, or before it: a later one would mend it too, an earlier one does not. What is found at the inputs given is
borne out at others, of other sizes among them.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nbautograd.core import pytrees, user_source
from nbautograd.core.checking import backward_lines
from nbautograd.core.checking.backward_call import user_backward
from nbautograd.core.checking.jacobian.forward_values import by_autograd
from nbautograd.core.checking.point import Gradients, Point
from nbautograd.core.checking.points import points
from nbautograd.core.checking.problem import Problem, pullback
from nbautograd.core.contract import rules
from nbautograd.core.findings import Phrase
from nbautograd.core.forks import cached
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.stumbles import any_errors, hands_over, users_errors
from nbautograd.core.trace import Trace, TracedCall

TRIED = 200  # backwards with another value that are tried: fewer than a search for a fix takes
POINTS = 3  # at which a value has to mend the gradient: where it was found, and elsewhere
ARGUMENTS = 2  # of these with another argument that is no tensor
LARGER = 2  # and at larger inputs: what is the same near the inputs may be another further off, as a mask is
ELEMENTS = 20_000  # of the inputs up to which values are tried
ROUNDINGS = 1000  # of a result, relative to its largest element, beyond which it is another number

SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
WRITES = ("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__idiv__", "__ipow__")

Key = tuple[int, int]  # where in the method's code, and how many-th result there; (-1, position) for an argument
Value = tuple[str, Key]  # "gradient", "value" or "derivative" (of the output) of what forward has


class TracedResult(NamedTuple):
    """A tensor that a call of torch in a method resulted in.

    Attributes:
        line: of the method.
        tensor: the result, or what was written into in place.
        value: its elements after that.
        version: its counter of changes after that.
        read: the tensors that went in: the keys of those that were such results, the elements of others.
        makes: True where it is made to be filled, or copied to be changed.
        item: which of the tensors it is that the call resulted in.
    """

    line: int
    tensor: Tensor
    value: Tensor
    version: int
    read: tuple[Key | Tensor, ...]
    makes: bool
    item: int


class Steps(Trace):
    """Keeps the results of a method's calls of torch, of which one may be replaced."""

    most = 300  # results of a method: each of backward is compared with each of forward, a second in all

    def __init__(self, code: CodeType, replaced: Mapping[Key, Callable[[Tensor], Tensor]] = {}) -> None:
        super().__init__(code, after=self._note)
        self.found: dict[Key, TracedResult] = {}
        self._known: dict[int, Key] = {}  # by identity; ``found`` keeps them alive
        self._turns = Counter[int]()
        self._replaced = replaced

    def _note(self, call: TracedCall) -> Any:
        if len(self.found) >= self.most:
            return call.result
        name, result, given = getattr(call.func, "__name__", ""), call.result, _plain(call.args)
        writes = name in WRITES or user_source.in_place(name)
        read = tuple(self._read(t, writes and k == 0) for k, t in enumerate(given))
        for item, tensor in enumerate(given[:1] if writes else _plain(result)):
            if not writes and any(tensor is t for t in given):
                continue  # handed on
            at = call.frame.f_lasti
            key = at, self._turns[at]
            self._turns[at] += 1
            if key in self._replaced and writes:
                tensor.copy_(self._replaced[key](tensor))
            elif key in self._replaced and tensor is result:
                result = tensor = self._replaced[key](tensor)
            makes = name.startswith(backward_lines.MAKERS)
            value, line = tensor.detach().clone(), call.frame.f_lineno
            self.found[key] = TracedResult(line, tensor, value, tensor._version, read, makes, item)
            self._known[id(tensor)] = key
        return result

    def _read(self, tensor: Tensor, written: bool) -> Key | Tensor:
        key = self._known.get(id(tensor))
        # else a view of it was written into
        same = key is not None and (written or self.found[key].version == tensor._version)
        return key if key is not None and same else tensor.detach().clone()


@dataclass(frozen=True)
class WrongLine:
    """The first line of backward whose result is wrong, as far as forward has what belongs there.

    Attributes:
        line: in the cell or file.
        name: of the variable that it writes, or the expression.
        text: the statement.
        kind: ``"gradient"``, ``"value"`` or ``"derivative"`` of what belongs there; empty where that is not known.
        expression: of forward, whose gradient or value that is.
        expression_line: the expression's line; None for an argument.
        whole: True when it is the gradient of the input itself.
        agreed: the last line up to which every tensor is as forward has it; 0 where there is none.
        first: True where no line before it has a tensor that forward has not.
        key: of the result.
        belongs: what belongs in its place.
    """

    line: int = 0
    name: str = ""
    text: str = ""
    kind: str = ""
    expression: str = ""
    expression_line: int | None = None
    whole: bool = False
    agreed: int = 0
    first: bool = False
    key: Key | None = None
    belongs: Value = ("", (0, 0))

    @property
    def before(self) -> Phrase | str:
        """Name the last line up to which all values agree with autograd of forward."""
        return Phrase("causes.agrees_up_to", line=self.agreed) if self.agreed else ""

    @property
    def params(self) -> dict[str, Any]:
        """What the sentence on it speaks of."""
        known = self.expression_line
        return {
            "name": rules.short(self.name),
            "begins": Phrase("causes.begins_in" if self.first else "causes.begins_by", line=self.line),
            "known": self.before,
            "expression": rules.short(self.expression),
            "made_in": "" if known is None else Phrase("causes.of_forward", line=known),
            "back": "" if self.first else Phrase("causes.and_before"),
            "statement": rules.short(self.text),
        }


def wrong_line(problem: Problem, output: int, position: int) -> WrongLine | None:
    """Find the first line of backward that goes wrong on the way to an input's gradient; None where nothing is known.

    Args:
        problem: what was checked; a session of it must be open.
        output: through which it is wrong.
        position: of the input whose gradient is wrong.
    """
    size = sum(x.numel() for x in problem.inputs if isinstance(x, Tensor))
    if problem.source is None or not problem.direct or size > ELEMENTS:
        return None
    with any_errors("wrong line"):
        return LineSearch(problem, output, problem.differentiable.index(position)).found()
    return None  # where backward or forward cannot be run so, nothing is claimed


def rounded_line(problem: Problem, double: Problem) -> WrongLine | None:
    """Find the first line of backward whose result, without grad_output in it, is another number in double precision.

    Args:
        problem: what was checked; a session of it must be open.
        double: the same with inputs in double precision.
    """
    code = None if problem.cls is None else code_of(user_backward(problem.cls))
    if code is None or not problem.direct:
        return None
    with any_errors("rounded line"), double.session():
        double.call()
        here, there = (TracedPoint(Point(p, p.fresh()), code) for p in (problem, double))
        for key, step in here.steps.items():
            twin = there.steps.get(key)
            if twin is not None and step.value.is_floating_point() and not here.moves(key) and not there.moves(key):
                rel = ROUNDINGS * torch.finfo(step.value.dtype).eps
                if not agree_relative(step.value.double(), twin.value, rel):
                    return WrongLine(step.line, *written(code, key, step.item))
    return None


class TracedPoint:
    """A point, the results of backward there, and what each result of forward and its gradient are."""

    def __init__(self, at: Point, code: CodeType) -> None:
        self.at, self._code = at, code
        self.steps = self.run(at)[1]

    def run(
        self, at: Point, replaced: Mapping[Key, Callable[[Tensor], Tensor]] = {}
    ) -> tuple[Gradients, dict[Key, TracedResult]]:
        """Return the gradients of a point and the results on the way, some of them replaced."""
        original, steps = user_backward(at.problem.cls), Steps(self._code, replaced)

        @hands_over
        def traced(ctx: Any, *grads: Any) -> Any:
            with steps:
                return original(ctx, *grads)

        return at.pull(traced), steps.found

    @cached
    def _turned(self) -> dict[Key, TracedResult]:
        return self.run(self.at.arranged(lambda _, c: (1 + c) / 3))[1]

    def moves(self, key: Key) -> bool:
        """Return True for a result that depends on grad_output."""
        other = self._turned.get(key)
        return other is None or not torch.equal(self.steps[key].value, other.value)

    @cached
    def values(self) -> dict[Value, Tensor]:
        """What forward has: values, the gradients that arrive there, and derivatives of a single output."""
        at, problem = self.at, self.at.problem
        cls: Any = problem.cls
        code, found = code_of(cls.forward), None
        self.forward = dict[Key, TracedResult]()
        assert at.outputs is not None
        if code is not None:
            steps = Steps(code)

            @hands_over
            def traced(*args: Any) -> Any:
                with steps:
                    return cls.forward(*args)

            found = by_autograd(problem, at.outputs, traced)
            self.forward = steps.found
        if found is None:
            return {}
        leaves, outputs = found
        held = {(-1, i): x for i, x in enumerate(leaves) if isinstance(x, Tensor)}
        held |= {k: s.tensor for k, s in steps.found.items() if s.tensor._version == s.version}
        asked = {k: t for k, t in held.items() if t.requires_grad}
        known: dict[Value, Tensor] = {("value", k): t.detach() for k, t in held.items()}
        for kind, v in (("gradient", at.v), ("derivative", [torch.ones_like(outputs[0])])):
            if kind == "gradient" or len(outputs) == 1:
                got = zip(asked, pullback(outputs, [*asked.values()], v), strict=True)
                known |= {(kind, k): g for k, g in got if g is not None}
        return known

    def agree(self, read: Tensor) -> list[Value]:
        """Return what of forward's a tensor is."""
        return [k for k, t in self.values.items() if (laid := laid_out(t, read)) is not None and self.same(read, laid)]

    def same(self, one: Tensor, other: Tensor) -> bool:
        """Compare two tensors as closely as gradients are compared here; whole numbers and masks exactly."""
        close = one.is_floating_point() or one.is_complex()
        return agree_relative(one, other, self.at.rel) if close else torch.equal(one, other)

    def pool(self, key: Key) -> list[tuple[Value, Tensor]]:
        """Return what may belong in the place of a result, each tensor once."""
        value, found = self.steps[key].value, list[tuple[Value, Tensor]]()
        kinds = ("gradient",) if self.moves(key) else ("value", "derivative")
        for name, tensor in self.values.items():
            laid = laid_out(tensor, value) if name[0] in kinds else None
            if laid is not None and not any(torch.equal(laid, other) for _, other in found):
                found.append((name, laid))
        return sorted(found, key=lambda item: item[1].shape != value.shape)

    def mends(self, key: Key, name: Value, which: int) -> bool:
        """Return True if the gradient is right with this in place of a result, and no other is worse than before."""
        at = self.at
        step, tensor = self.steps.get(key), self.values.get(name)
        laid = None if step is None or tensor is None else laid_out(tensor, step.value)
        if laid is None or at.right is None or at.gradients is None:
            return False
        with users_errors() as guard:
            got = self.run(at, {key: lambda _: laid.clone()})[0]
        if guard.failed:
            return False
        pairs = zip(got, at.right, at.gradients, strict=True)
        return all(
            agree_relative(g, r, at.rel) or (k != which and agree_relative(g, was, at.rel))
            for k, (g, r, was) in enumerate(pairs)
        )

    def is_whole(self, tensor: Tensor, which: int) -> bool:
        """Return True for what is the right gradient of the input itself."""
        right = None if self.at.right is None else self.at.right[which]
        return right is not None and right.numel() == tensor.numel() and self.same(tensor.reshape(right.shape), right)

    def is_returned(self, key: Key, which: int) -> bool:
        """Return True if whatever a result is, that is the gradient which comes out."""
        drawn = draws.generator(self.at.seed, "noise")
        noise = torch.randn(self.steps[key].value.shape, generator=drawn, dtype=torch.float64)
        with users_errors():
            got, steps = self.run(self.at, {key: lambda t: t + noise.to(t)})
            out = got[which]
            if out is not None and out.numel() == noise.numel() and key in steps:
                return self.same(out.reshape(noise.shape), steps[key].value)
        return False

    def copies(self, step: TracedResult) -> bool:
        """Return True where a result is grad_output as it came in, which says nothing of what else was read for it."""
        ours = [v for v in self.at.v if v is not None]

        def copied(t: Tensor) -> bool:
            return any(t.numel() == v.numel() and self.same(t.reshape(v.shape), v) for v in ours)

        return copied(step.value) and not all(isinstance(t, Tensor) and copied(t) for t in step.read)


class LineSearch:
    """The search for the line that goes wrong on the way to one input's gradient through one output."""

    def __init__(self, problem: Problem, output: int, which: int) -> None:
        self.problem, self.output, self.which, self.left = problem, output, which, TRIED
        self.code = code_of(user_backward(problem.cls))

    def found(self) -> WrongLine | None:
        """Return the line, and what belongs there, as it is at the first place and borne out at the others."""
        places = self._places(self._points(), POINTS)
        if len(places) < POINTS or self.code is None:
            return None
        first = places[0]
        if len(first.steps) >= Steps.most:
            return None
        arguments = self._places(points(self.problem).of("argument"), ARGUMENTS)
        right = {
            key
            for key, step in first.steps.items()
            if _agree(places, [p.steps[key].value if key in p.steps else None for p in places])
            and not first.copies(step)
        }
        agreed, off = self._agreed(places, right)
        for key, step in first.steps.items():
            name = None if key in right or step.makes else self._belongs(places + arguments, key)
            if name is None or (name[0] != "value" and _masked(places, key, right)):
                continue
            whole = first.is_whole(first.values[name], self.which)
            if whole and any(other.tensor is step.tensor for k, other in first.steps.items() if k != key):
                break  # written in parts: which line wrote the wrong elements is another question
            expression, made_in = self._expression(first, name[1])
            if not expression:
                break
            return WrongLine(
                step.line, *written(self.code, key, step.item), name[0], expression, made_in,
                whole, agreed, step.line == off, key, name,
            )  # fmt: skip
        return WrongLine(agreed=agreed) if agreed else None

    def at(self, point: Point) -> TracedPoint | None:
        """Return a point as a place; None without the code of backward."""
        return None if self.code is None else TracedPoint(point, self.code)

    def _belongs(self, places: Sequence[TracedPoint], key: Key) -> Value | None:
        first, *others = places
        for name, tensor in first.pool(key):
            self.left -= 1
            if self.left < 0:
                return None
            if first.is_whole(tensor, self.which) and not first.is_returned(key, self.which):
                continue  # what follows would mend more than it can: it projects, or masks
            elsewhere = itertools.chain(others, self._larger) if first.mends(key, name, self.which) else None
            if elsewhere is not None and all(p.mends(key, name, self.which) for p in elsewhere):
                return name
        return None

    def _expression(self, place: TracedPoint, key: Key) -> tuple[str, int | None]:
        cls: Any = self.problem.cls
        code = code_of(cls.forward)
        if key[0] < 0 or code is None:
            return self.problem.input_names[key[1]], None
        step = place.forward[key]
        # of a comprehension only the whole has a place, which is not the value that one turn of it made
        inside = hasattr(expression_at(code, key), "generators")
        return "" if inside else written(code, key, step.item)[0], step.line

    @cached
    def _larger(self) -> list[TracedPoint]:
        return self._places(points(self.problem).of("larger"), LARGER)

    def _points(self) -> Iterator[Point]:
        stream = points(self.problem)
        for kind in ("given", "together", "near", "signed"):
            yield from itertools.islice(stream.of(kind), 1)
        yield from itertools.islice(stream.of("near"), 1, 2)

    def _places(self, stream: Iterable[Point], most: int) -> list[TracedPoint]:
        code = self.code
        if code is None:
            return []
        through = (at.through(self.output) for at in stream if at.works and at.node is not None)
        wrong = (at for at in through if at.wrong(self.which))
        return [TracedPoint(at, code) for at in itertools.islice(wrong, most)]

    def _agreed(self, places: Sequence[TracedPoint], right: set[Key]) -> tuple[int, int]:
        """Return the last line up to which all that is read and made is forward's, and the next, which is not so.

        What is read once more in the line that made it is a part of an expression, and may be anything.
        """
        steps, off, unlike = [*places[0].steps.items()], 0, set[int]()
        for k, (key, step) in enumerate(steps):
            later = [other for _, other in steps[k + 1 :]]
            inside = any(key in other.read and other.line == step.line for other in later)
            filled = step.makes and any(other.tensor is step.tensor for other in later)
            for number, read in enumerate(step.read):
                if isinstance(read, Tensor) and not _agree(places, [_read(p, key, number) for p in places]):
                    return 0, 0  # it is not known where it comes from
            if not (inside or filled or key in right):
                off, unlike = off or step.line, unlike | {step.line}
        before = min(unlike, default=sys.maxsize)  # of a loop in all its turns
        return max((step.line for _, step in steps if step.line < before), default=0), off


def _agree(places: Sequence[TracedPoint], tensors: Sequence[Tensor | None]) -> bool:
    known = [{*p.agree(t)} if t is not None else set() for p, t in zip(places, tensors, strict=True)]
    return bool(set.intersection(*known))


def _read(place: TracedPoint, key: Key, number: int) -> Tensor | None:
    step = place.steps.get(key)
    read = step.read[number] if step is not None and number < len(step.read) else None
    return read if isinstance(read, Tensor) else None


def _masked(places: Sequence[TracedPoint], key: Key, right: set[Key]) -> bool:
    """Return True where a mask that meets a result is not known to be right.

    A derivative that is zero where the mask should be mends the gradient in the result's place as well.
    """
    steps, made_of = places[0].steps, {key}
    for other, step in steps.items():
        if made_of.isdisjoint(step.read):
            continue
        made_of.add(other)
        for number, read in enumerate(step.read):
            value = read if isinstance(read, Tensor) else steps[read].value
            if isinstance(read, Tensor) or read not in made_of | right:
                mask = value.numel() > 1 and bool(value.any()) and bool(((value == 0) | (value == 1)).all())
                if mask and not _agree(places, [_read(p, other, number) for p in places]):
                    return True
    return False


def _plain(tree: Any) -> list[Tensor]:
    return [t for t in pytrees.tensors(tree) if t.layout is torch.strided and not t.is_inference()]


def code_of(method: Any) -> CodeType | None:
    """Return the code of the user's method, without the decorators around it."""
    return getattr(inspect.unwrap(method), "__code__", None)


def laid_out(tensor: Tensor, like: Tensor) -> Tensor | None:
    """Return a tensor in the shape of another, where it has as many elements in the same order, or transposed."""
    if tensor.dtype != like.dtype or tensor.numel() != like.numel():
        return None
    if tensor.dim() == like.dim() > 1 and tensor.shape != like.shape:
        return tensor.mT if tensor.mT.shape == like.shape else None
    return tensor.reshape(like.shape)


def expression_at(code: CodeType, key: Key) -> ast.expr | ast.AugAssign | None:
    """Return the expression of a method that called torch, where its text is at hand."""
    tree, place = user_source.method_at(code), [*code.co_positions()][key[0] // 2]
    nodes = () if tree is None else (n for n in ast.walk(tree) if isinstance(n, (ast.expr, ast.AugAssign)))
    ends = ((n, (n.lineno, n.end_lineno, n.col_offset, n.end_col_offset)) for n in nodes)
    return next((n for n, its in ends if its == place), None)


def written(code: CodeType, key: Key, item: int) -> tuple[str, str]:
    """Return the variable that a result is written to, else its expression; and the statement."""
    node, tree = expression_at(code, key), user_source.method_at(code)
    if node is None or tree is None:
        return "?", "?"
    nodes = [*user_source.own_nodes(tree)]
    around = [n for n in nodes if isinstance(n, SIMPLE) and node in ast.walk(n)]
    text, name = ast.unparse(around[-1] if around else node), ast.unparse(node)
    if isinstance(node, ast.AugAssign):
        return ast.unparse(node.target), text
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return ast.unparse(node.value), text
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and user_source.in_place(node.func.attr):
        return ast.unparse(node.func.value), text
    for target, value in user_source.assigned(nodes):
        if value is node:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            part = parts[item] if item < len(parts) else target
            return (part.id if isinstance(part, ast.Name) else name), text
    return name, text
