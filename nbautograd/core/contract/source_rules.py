"""The contract by the source, before any run: each rule looks at one thing in the text and yields findings."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType

from nbautograd.core import user_source
from nbautograd.core.contract import rules
from nbautograd.core.contract.rules import RANK, Seen, broken
from nbautograd.core.findings import Finding
from nbautograd.core.migration import recognise
from nbautograd.core.torch_private import library
from nbautograd.core.user_source import METHODS, FunctionSource, as_written, codes_in, methods_of, read_source, unwrap

_RETURNS_MANY = frozenset({"unbind", "split", "chunk", "max", "min", "sort", "topk", "tensor_split", "unsafe_chunk"})


def read_contract(cls: type) -> tuple[Finding, ...]:
    """Return what a Function's source breaks of the contract, without running it.

    Returns:
        Findings, bugs first; () when all is well or the source is not to be had.
    """
    legacy = recognise(cls)
    if legacy is not None:
        return legacy.findings
    source = read_source(cls)
    if source is None:
        return ()
    codes = methods_of(cls).codes
    trees = {name: tree for name, code in codes.items() if (tree := user_source.method_at(code)) is not None}
    unknown, operation = _unknown_names(cls, codes, trees), library.stands_for_operation(cls)
    not_static = tuple(name for name in METHODS if isinstance(as_written(vars(cls).get(name)), FunctionType))
    reading = Reading(cls.__name__, source, trees, unknown, not_static, operation)
    found = [finding for rule in RULES for finding in rule(reading)]
    return tuple(sorted(found, key=lambda finding: RANK[finding.kind]))


def _unknown_names(
    cls: type, codes: Mapping[str, CodeType], trees: Mapping[str, user_source.FunctionNode]
) -> dict[str, tuple[str, ...]]:
    unknown = {}
    for method, code in codes.items():
        function, tree = unwrap(getattr(cls, method, None)), trees.get(method)
        if not isinstance(function, FunctionType) or tree is None:
            continue
        known = function.__globals__.keys() | vars(builtins).keys()
        codes_inside = list(codes_in(code))
        own = {name for one in codes_inside for name in (*one.co_varnames, *one.co_cellvars, *one.co_freevars)}
        nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        loads = sorted((node.lineno, node.col_offset, node.id) for node in nodes)
        free = {name for one in codes_inside for name in one.co_names} - own - known
        unknown[method] = tuple(dict.fromkeys(name for _, _, name in loads if name in free))
    return unknown


@dataclass(frozen=True)
class Reading:
    """A Function's source as the rules look at it.

    Attributes:
        name: of the class.
        source: what its text tells.
        methods: syntax tree of each method.
        unknown: per method, names that nothing defines.
        not_static: methods written without ``@staticmethod``.
        operation: True for an operation of ``torch.library``, whose schema says which inputs and outputs are lists.
    """

    name: str
    source: FunctionSource
    methods: Mapping[str, user_source.FunctionNode]
    unknown: Mapping[str, tuple[str, ...]]
    not_static: tuple[str, ...]
    operation: bool

    def seen(self, node: ast.AST) -> Seen:
        """Return where a node stands."""
        return Seen(getattr(node, "lineno", None), self.name)

    @property
    def backward(self) -> user_source.FunctionNode | None:
        """The tree of backward (or vjp)."""
        return self.methods.get("backward") or self.methods.get("vjp")

    @property
    def saver(self) -> user_source.FunctionNode | None:
        """The method that fills ctx."""
        return self.methods.get("setup_context") or self.methods.get("forward")


def number_of_gradients(reading: Reading) -> Iterator[Finding]:
    """Check that backward returns one value per argument of forward; more may only be None."""
    forward, backward = reading.methods.get("forward"), reading.backward
    if forward is None or backward is None or forward.args.vararg or forward.args.kwonlyargs:
        return
    expected = len(reading.source.inputs)
    optional = len(forward.args.defaults) if reading.source.style != "setup_context" else 0
    for statement in user_source.returns(backward):
        values = _values(statement, reading.source.grad_outputs)
        if values is None or (reading.operation and isinstance(statement.value, ast.List)):
            continue
        given = len(values)
        while given > expected and getattr(values[given - 1], "value", "") is None:  # of a constant
            given -= 1
        if not expected - optional <= given <= expected:
            yield rules.number_of_gradients(reading.seen(statement), len(values), reading.source.inputs)


def _values(statement: ast.Return, grad_outputs: tuple[str, ...]) -> list[ast.expr] | None:
    """Return the values of a return, None when only a run can tell how many there are."""
    value = statement.value
    if isinstance(value, (ast.Tuple, ast.List)):
        return None if any(isinstance(item, ast.Starred) for item in value.elts) else value.elts
    if value is None or any(isinstance(node, (ast.Tuple, ast.List, ast.Starred)) for node in ast.walk(value)):
        return None
    root = value
    while isinstance(root, (ast.Call, ast.Attribute, ast.BinOp, ast.UnaryOp)):
        if isinstance(root, ast.Attribute) and root.attr in _RETURNS_MANY:
            return None
        if isinstance(root, ast.BinOp):
            sides = (root.left, root.right)
            root = next((s for s in sides if isinstance(s, ast.Name) and s.id in grad_outputs), root.left)
        elif isinstance(root, ast.UnaryOp):
            root = root.operand
        else:
            root = root.func if isinstance(root, ast.Call) else root.value
    return [value] if isinstance(root, ast.Name) and root.id in grad_outputs else None


def static_methods(reading: Reading) -> Iterator[Finding]:
    """Check that methods are static; without the decorator they work through ``apply`` only by luck."""
    for method in reading.not_static:
        seen = Seen(reading.source.lines.get(method), reading.name)
        yield broken("missing_staticmethod", seen, "recording.missing_staticmethod", method=method)


def undefined_names(reading: Reading) -> Iterator[Finding]:
    """Yield findings on names that nothing defines: they fail only when backward runs."""
    forward, local = reading.methods.get("forward"), set[str]()
    if forward is not None:
        nodes = [n for n in user_source.own_nodes(forward) if isinstance(n, ast.Name)]
        local = {n.id for n in nodes if isinstance(n.ctx, ast.Store)}
        local |= {name.lstrip("*") for name in user_source.parameters(forward)}
    for method, names in reading.unknown.items():
        tree = reading.methods.get(method)
        for name in names if method != "forward" else ():
            uses = (n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name) if tree else iter(())
            sentence = "recording.name_of_forward" if name in local else "recording.undefined_name"
            yield broken("undefined_name", Seen(next(uses, None), reading.name), sentence, method=method, name=name)


def leaves_autograd(reading: Reading) -> Iterator[Finding]:
    """Yield findings on what makes second derivatives wrong without a word: ``.data``, ``.numpy()``, ``no_grad``."""
    backward = reading.backward
    if backward is None or any("once_differentiable" in ast.unparse(d) for d in backward.decorator_list):
        return
    met: set[tuple[str, int]] = set()
    for node in user_source.own_nodes(backward):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load) or (node.attr, node.lineno) in met:
            continue
        met.add((node.attr, node.lineno))
        seen, text = reading.seen(node), ast.unparse(node)
        if node.attr == "data":
            yield broken("data_in_backward", seen, "recording.cut_in_backward", text=text)
        elif node.attr == "numpy":
            yield broken("numpy_in_backward", seen, "recording.cut_in_backward", text=text)
        elif node.attr == "no_grad":
            yield broken("no_grad_in_backward", seen, "recording.cut_in_backward", text=text)


def empty_bodies(reading: Reading) -> Iterator[Finding]:
    """Yield findings on methods that only print, or do nothing, and return None."""
    for method in ("forward", "backward", "vjp"):
        tree = reading.methods.get(method)
        if tree is not None and all(isinstance(s, ast.Pass) or _only_shows(s) for s in tree.body):
            yield broken("empty_body", reading.seen(tree), "recording.empty_body", method=method)


def returns_a_list(reading: Reading) -> Iterator[Finding]:
    """Yield findings on tensors in a list or dict, which come out of apply without a grad_fn."""
    forward = None if reading.operation else reading.methods.get("forward")
    for statement in user_source.returns(forward) if forward is not None else ():
        listed = isinstance(statement.value, (ast.List, ast.ListComp))
        kind = "list" if listed else "dict" if isinstance(statement.value, (ast.Dict, ast.DictComp)) else None
        if kind is not None:
            yield rules.outputs_in_container(reading.seen(statement), kind)


def _only_shows(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr):
        return False
    value = statement.value
    printed = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print"
    return printed or isinstance(value, ast.Constant)


def saving(reading: Reading) -> Iterator[Finding]:
    """Yield a finding where ``save_for_backward`` is called twice; the last call counts."""
    saver = reading.saver
    calls = [s.value for s in saver.body if isinstance(s, ast.Expr)] if saver is not None else []
    twice = [c for c in calls if isinstance(c, ast.Call) and ast.unparse(c.func).endswith(".save_for_backward")]
    if len(twice) > 1:
        yield broken("saved_twice", reading.seen(twice[-1]), "recording.saved_twice", first=twice[0].lineno)


RULES: tuple[Callable[[Reading], Iterator[Finding]], ...] = (
    number_of_gradients,
    undefined_names,
    saving,
    static_methods,
    leaves_autograd,
    empty_bodies,
    returns_a_list,
)
