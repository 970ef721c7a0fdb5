"""Reproductions: a script for each wrong gradient of an audit that shows it with torch alone.

The inputs are made up anew and tried, so that nothing of the user's data leaves the machine; a script is kept only
where it shows the wrong gradient in a fresh process.
"""

from __future__ import annotations

import ast
import inspect
import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.checking.gradcheck import gradcheck
from nbautograd.core.display import Phrase
from nbautograd.core.torch_private import library
from nbautograd.core.user_source import as_written, read_source
from nbautograd.inspection.audit_checks import Kept, copied_calls
from nbautograd.inspection.audit_report import AuditedFunction, AuditedSituation, AuditReport
from nbautograd.inspection.audited_calls import ALONG, as_called, defaults
from nbautograd.inspection.evidence import made_up_inputs

TRIES = 3  # made-up inputs of each kind of values
SECONDS = 120  # that a script may take to show it
MOST_WRITTEN = 64  # elements of a tensor that are written out
MOST_NAMES = 200  # functions and classes that a script takes along
WRONG = 1  # exit status of a script; 2 where it cannot run, 0 otherwise
STANDARD = os.path.join(os.path.realpath(sysconfig.get_paths()["stdlib"]), "")


@dataclass(frozen=True)
class Reproduction:
    """A script that shows one wrong gradient with torch alone, or why there is none.

    Attributes:
        function: name of the Function.
        script, data: what was written; None where nothing was.
        reason: why no script was written; ``str`` of it is a sentence.
    """

    function: str
    script: Path | None = None
    data: Path | None = None
    reason: Phrase | str = ""


def save_repro(report: AuditReport, folder: Any, *, include_data: bool = False) -> tuple[Reproduction, ...]:
    """Write the scripts; see ``AuditReport.save_repro``."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    kept = copied_calls(report)
    written = []
    for i, function in enumerate(report.functions):
        places = sorted(place for place in kept if place[0] == i)
        tried: list[Reproduction] = []
        for place in places:
            tried.append(_reproduction(report, place, kept[place], target, include_data))
            if tried[-1].script is not None:
                break
        if tried:
            written.append(tried[-1] if tried[-1].script is not None else tried[0])
        elif function.verdict == "wrong":
            written.append(Reproduction(function.name, reason=Phrase("audit.repro_needs_data")))
    return tuple(written)


def _reproduction(
    report: AuditReport, place: tuple[int, int], kept: Kept, folder: Path, include_data: bool
) -> Reproduction:
    function = report.functions[place[0]]
    stem = _stem(function, report)
    try:
        claim = _claim(function.situations[place[1]])
        definition = _definition(kept.cls)
        inputs = kept.inputs if include_data else _drawn_inputs(kept, claim)
        if inputs is None:
            raise NoScript("audit.repro_needs_data")
        arguments = ", ".join(_argument(f"input_{k}", x) for k, x in enumerate(inputs))
    except NoScript as problem:
        return Reproduction(function.name, reason=problem.phrase)
    tensors = dict(_tensors(inputs))
    if not as_called(kept.call, inputs):
        definition = replace(definition, text=definition.text + _WIDE)
    text = _script(function.name, definition, arguments, stem, include_data, report, folder, claim)
    with tempfile.TemporaryDirectory() as temporary:
        trial = Path(temporary) / f"{stem}.py"
        torch.save(tensors, trial.with_suffix(".pt"))
        trial.write_text(text, encoding="utf-8")
        failure = _failure(trial)
        if failure:
            return Reproduction(function.name, reason=Phrase("audit.repro_not_shown", reason=failure))
        script, data = folder / f"{stem}.py", folder / f"{stem}.pt"
        shutil.copyfile(trial.with_suffix(".pt"), data)
        shutil.copyfile(trial, script)
    return Reproduction(function.name, script, data)


@dataclass(frozen=True)
class _Claim:
    """The difference that a report tells, which is what a script shows.

    Attributes:
        code: of the finding; empty where it is the difference alone.
        where: positions of output and input that the finding is about, if any.
        inputs: positions of the arguments whose gradient differs by it.
    """

    code: str
    where: tuple[int, int] | None
    inputs: tuple[int, ...]

    def holds(self, report: GradcheckReport) -> bool:
        """Return True for a report of the same finding at the same place."""
        differ = {block.input for block in report.blocks.values() if block.verdict == "mismatch"}
        same = not self.code or any((f.code, f.where) == (self.code, self.where) for f in report.findings)
        return same and set(self.inputs) <= differ


def _claim(situation: AuditedSituation) -> _Claim:
    """Return the difference that a situation is called wrong for.

    Raises:
        NoScript: where what was found is no difference of numbers, such as an input that is changed in place.
    """
    report, cause = situation.report, situation.cause
    assert report is not None
    if cause is not None and cause.code == ALONG:
        return _Claim("", None, (report.input_names.index(cause.params["input"]),))
    differ = [where for where, block in report.blocks.items() if block.verdict == "mismatch"]
    if cause is None and differ:
        return _Claim("", None, tuple(dict.fromkeys(position for _, position in differ)))
    if cause is None or cause.where not in differ:
        raise NoScript("audit.repro_other")
    # the code of a change says how to mend it, and a check without the search for one says it in another way
    return _Claim("" if cause.fix is not None else cause.code, cause.where, (cause.where[1],))


def _stem(function: AuditedFunction, report: AuditReport) -> str:
    """Return the name of a script without its ending; Functions of one name are numbered."""
    alike = [f for f in report.functions if f.name == function.name]
    number = f"_{alike.index(function) + 1}" if len(alike) > 1 else ""
    return f"repro_{re.sub('[^0-9A-Za-z]+', '_', function.name).strip('_')}{number}"


class NoScript(Exception):  # noqa: N818 - a reason, not a mistake
    """Nothing that a fresh process could run.

    Attributes:
        phrase: why.
    """

    def __init__(self, message_id: str, **params: Any) -> None:
        super().__init__(message_id)
        self.phrase = Phrase(message_id, **params)


def _drawn_inputs(kept: Kept, claim: _Claim) -> tuple[Any, ...] | None:
    """Return inputs of the same kinds at which the same is wrong; None where none were found."""
    op = library.operation_of(kept.cls)
    target = kept.cls if op is None else library.function_of(op) or op.overload

    def wrong(inputs: tuple[Any, ...]) -> bool:
        with defaults(kept.call, inputs):
            report = gradcheck(target, inputs, order=1, hints="what", budget=10.0)
        return report.verdict == "wrong" and claim.holds(report)

    return made_up_inputs(kept.inputs, wrong, TRIES)


def _tensors(inputs: Sequence[Any], prefix: str = "input") -> Iterator[tuple[str, Tensor]]:
    for k, item in enumerate(inputs):
        if isinstance(item, Tensor):
            yield f"{prefix}_{k}", item.detach().cpu()
        elif isinstance(item, (list, tuple)):
            yield from _tensors(item, f"{prefix}_{k}")


def _saved(name: str, tensor: Tensor) -> str:
    return f'data["{name}"]' + (".requires_grad_()" if tensor.requires_grad else "")


def _argument(
    name: str, item: Any, tensor: Callable[[str, Tensor], str] = _saved, value: Callable[[Any], str] = repr
) -> str:
    """Return an argument as a script writes it, its tensors, and its numbers and texts, by the given functions.

    Raises:
        NoScript: for what has no such form.
    """
    if isinstance(item, Tensor):
        return tensor(name, item)
    if isinstance(item, float) and not math.isfinite(item):
        return f'float("{item}")'
    if isinstance(item, (torch.device, torch.Size)):
        return f"torch.{item!r}".replace("torch.torch.", "torch.")
    if isinstance(item, (type(None), bool, torch.dtype)):
        return repr(item)
    if isinstance(item, (int, float, complex, str, bytes)):
        return value(item)
    if type(item) in (list, tuple):
        inside = ", ".join(_argument(f"{name}_{k}", x, tensor, value) for k, x in enumerate(item))
        return f"[{inside}]" if isinstance(item, list) else f"({inside},)" if item else "()"
    raise NoScript("audit.repro_name", name=type(item).__name__)


@dataclass(frozen=True)
class _Definition:
    """Origin of what a script shows.

    Attributes:
        text: lines that define it, or import it.
        call: what is called with the inputs.
        package: module whose version is worth telling, or empty.
    """

    text: str
    call: str
    package: str = ""


def _definition(cls: Any) -> _Definition:
    """Return how to import a Function of a module, or its source where it was written in a script or a notebook.

    Raises:
        NoScript: where it is neither.
    """
    op = library.operation_of(cls)
    if op is not None:
        return _operation(op)
    module, name = cls.__module__, cls.__qualname__
    if "<locals>" in name:
        raise NoScript("audit.repro_local", function=cls.__name__)
    if module != "__main__":
        if _named_object(module, name) is not cls:
            raise NoScript("audit.repro_name", name=f"{module}.{name}")
        first, _, rest = name.partition(".")
        return _Definition(
            f"from {module} import {first}\n", f"{first}{'.' + rest if rest else ''}.apply", _package(module)
        )
    return _Definition(_Sources(vars(sys.modules["__main__"])).text([cls]), f"{name}.apply")


def _operation(op: library.Operation) -> _Definition:
    """Return how to come by an operation: import the module that defines it."""
    module = getattr(op.backward, "__module__", "")
    if not module or module == "__main__":
        made = library.function_of(op)
        if made is None or not isinstance(op.forward, FunctionType):
            raise NoScript("audit.repro_name", name=op.name)
        functions = [f for f in (op.forward, op.setup_context, op.backward) if f is not None]
        names = {"forward": op.forward, "setup_context": op.setup_context, "backward": op.backward}
        text = _Sources(op.backward.__globals__).text(functions)
        lines = [f"    {method} = staticmethod({f.__name__})" for method, f in names.items() if f is not None]
        if op.setup_context is None:
            lines.append("    setup_context = staticmethod(lambda ctx, inputs, output: None)")
        return _Definition(
            "\n".join((text, "", "class Operation(torch.autograd.Function):", *lines, "")), "Operation.apply"
        )
    namespace, _, name = op.name.partition("::")
    return _Definition(f"import {module}  # registers {op.name}\n", f"torch.ops.{namespace}.{name}", _package(module))


def _named_object(module: str, name: str) -> Any:
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _package(module: str) -> str:
    return module.partition(".")[0]


class _Sources:
    """The source of classes and functions of a script or notebook, with what they read of its globals.

    Args:
        namespace: the globals.
    """

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self.imports: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        self.texts: dict[str, str] = {}

    def text(self, values: list[Any]) -> str:
        """Return the lines that define these values.

        Raises:
            NoScript: where something that they read can be neither imported nor written down.
        """
        for value in values:
            self._take(value.__name__, value)
        return "\n".join([*self.imports.values(), *self.constants.values(), "", "", "\n\n".join(self.texts.values())])

    def _take(self, name: str, value: Any) -> None:
        if name in self.imports or name in self.constants or name in self.texts:
            return
        if isinstance(value, ModuleType):
            self.imports[name] = f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}")
        elif getattr(value, "__module__", None) == "__main__" and isinstance(value, (type, FunctionType)):
            self._take_source(name, value)
        elif isinstance(value, type) or callable(value):
            home, known = getattr(value, "__module__", None), getattr(value, "__name__", None)
            if not home or not known or _named_object(home, known) is not value:
                raise NoScript("audit.repro_name", name=name)
            self.imports[name] = f"from {home} import {known}" + ("" if known == name else f" as {name}")
        elif isinstance(value, (type(None), bool, int, float, str, tuple, torch.dtype)):
            self.constants[name] = f"{name} = {value!r}"
        else:
            raise NoScript("audit.repro_name", name=name)

    def _take_source(self, name: str, value: Any) -> None:
        if len(self.texts) > MOST_NAMES:
            raise NoScript("audit.repro_name", name=name)
        try:
            source = textwrap.dedent(_source(value))
        except (OSError, TypeError):
            raise NoScript("audit.repro_name", name=name) from None
        self.texts[name] = ""  # so that a function that calls itself comes to an end
        for used in _globals_of(value):
            if used in self.namespace:
                self._take(used, self.namespace[used])
        del self.texts[name]  # what it reads stands before it
        self.texts[name] = source


def _source(value: Any) -> str:
    """Return the source of a class or function, of a function without the decorators that registered it somewhere."""
    if isinstance(value, type) and issubclass(value, torch.autograd.Function):
        source = read_source(value)
        if source is not None and source.text:
            return source.text
    text = inspect.getsource(value)
    if isinstance(value, FunctionType):
        lines = textwrap.dedent(text).splitlines()
        start = next(k for k, line in enumerate(lines) if line.startswith(("def ", "async def ")))
        return "\n".join(lines[start:]) + "\n"
    return text


def _globals_of(value: Any) -> list[str]:
    """Return the global names that a class or function reads, its bases among them."""
    names: dict[str, None] = {}
    codes: list[Any] = []
    if isinstance(value, type):
        names.update(dict.fromkeys(base.__name__ for base in value.__bases__))
        entries = [as_written(entry) for entry in vars(value).values()]
        codes = [getattr(getattr(entry, "__func__", entry), "__code__", None) for entry in entries]
        names.update(dict.fromkeys(_names_outside_methods(value)))
    else:
        codes = [value.__code__]
    codes = [code for code in codes if code is not None]
    while codes:
        code = codes.pop()
        names.update(dict.fromkeys(code.co_names))
        codes += [inner for inner in code.co_consts if hasattr(inner, "co_names")]
    return list(names)


def _names_outside_methods(cls: type) -> Iterator[str]:
    """Yield the names that a class reads outside its methods' bodies: bases, decorators, attributes, annotations."""
    nodes: list[ast.AST] = [ast.parse(textwrap.dedent(_source(cls)))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Name):
            yield node.id
        inside = node.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
        nodes += [child for child in ast.iter_child_nodes(node) if child not in inside]


def _failure(script: Path) -> str:
    """Run a script in a fresh process; return one line where it does not show the wrong gradient."""
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths}
    try:
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, timeout=SECONDS, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return str(Phrase("audit.out_of_time", seconds=SECONDS))
    if done.returncode == WRONG and "WRONG" in done.stdout:
        return ""
    return (done.stderr.strip() or done.stdout.strip() or "-").splitlines()[-1][:200]


def _roots(definition: str) -> dict[Path, str]:
    """Return the folders from which a script imports modules that are not installed, and which."""
    imports = [node for node in ast.parse(definition).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = [node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports]
    roots: dict[Path, str] = {}
    for name in (name.partition(".")[0] for name in names):
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        path = Path(os.path.realpath(file if file else next(iter(getattr(module, "__path__", ())), "")))
        installed = str(path).startswith(STANDARD) or {"site-packages", "dist-packages"} & set(path.parts)
        if (file or hasattr(module, "__path__")) and not installed:
            roots.setdefault(path.parent.parent if path.stem == "__init__" else path.parent, name)
    return roots


def _script(
    name: str, definition: _Definition, arguments: str, stem: str, real: bool, report: AuditReport, folder: Path,
    claim: _Claim,
) -> str:  # fmt: skip
    kind = "the inputs of a program" if real else "inputs that are made up"
    package = definition.package
    version = f'\nprint("{package}", getattr(sys.modules.get("{package}"), "__version__", ""))' if package else ""
    lines = definition.text.removeprefix("import torch\n")
    beside = [
        f'sys.path.append(str(pathlib.Path(__file__).resolve().parent / "{relative}"))  # where {local} is'
        for root, local in _roots(definition.text).items()
        for relative in (os.path.relpath(root, os.path.realpath(folder)).replace(os.sep, "/"),)
    ]
    parts = {"definition": "\n".join((*beside, lines.strip())), "call": definition.call, "version": version}
    parts["claimed"] = repr(list(claim.inputs))
    return _TEMPLATE.format(name=name, kind=kind, torch=report.torch, stem=stem, arguments=arguments, **parts)


_WIDE = "\n\ntorch.set_default_dtype(torch.float64)  # of the buffers that forward makes\n"


def as_code(item: Any, redact: bool = False) -> tuple[bool, str]:
    """Return whether an argument is written with its own numbers, and the argument as code.

    Redacted, tensors have other numbers, and what is a number or a text by itself is left out as ``...``.

    Raises:
        NoScript: for what has no such form.
    """
    exact = []

    def written(_: str, tensor: Tensor) -> str:
        short = tensor.layout == torch.strided and tensor.numel() <= MOST_WRITTEN
        exact.append(not redact and short and bool(torch.isfinite(tensor).all()))
        if redact and not (tensor.is_floating_point() or tensor.is_complex()):
            return f"torch.zeros({tuple(tensor.shape)}, dtype={tensor.dtype})"
        if not exact[-1]:
            return _random(tensor)
        grad = ", requires_grad=True" * tensor.requires_grad
        return f"torch.tensor({tensor.tolist()}, dtype={tensor.dtype}{grad})"

    code = _argument("", item, written, (lambda _: "...") if redact else repr)
    return all(exact), code


def _random(tensor: Tensor) -> str:
    if tensor.is_floating_point() or tensor.is_complex():
        grad = ".requires_grad_()" * tensor.requires_grad
        return f"torch.randn({tuple(tensor.shape)}).to({tensor.dtype}){grad}"
    if tensor.numel() > MOST_NAMES:
        raise NoScript("audit.repro_name", name=type(tensor).__name__)
    return f"torch.tensor({tensor.tolist()}, dtype={tensor.dtype})"


_TEMPLATE = '''"""The gradient of {name} is not the derivative of its forward, at {kind}.

Needs torch (seen with {torch}) and {stem}.pt beside it. Exits with 1 where the gradient is wrong, with 2 where it
cannot be told since this script cannot run, with 0 otherwise.
It compares <v, J u> for random u and v: by backward, and by central differences at two steps, which have to agree.
"""

import pathlib
import sys


def could_not_run(kind, error, trace):
    sys.__excepthook__(kind, error, trace)
    sys.exit(2)


sys.excepthook = could_not_run

import torch

{definition}

print("torch", torch.__version__){version}

data = torch.load(pathlib.Path(__file__).with_name("{stem}.pt"), weights_only=True)
inputs = [{arguments}]


def outputs(args):
    torch.manual_seed(0)
    result = {call}(*args)
    return [y for y in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(y, torch.Tensor)]


def copy(x):
    return x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x


def value(args, v):
    with torch.no_grad():
        pairs = [(y, w) for y, w in zip(outputs(args), v) if w is not None]
        return sum(float((w.conj() * y).real.double().sum()) for y, w in pairs)


def slope(k, u, v, h):
    ends = []
    for step in (h, -h):
        args = [copy(x) for x in inputs]
        args[k] = (inputs[k].detach() + step * u).requires_grad_()
        ends.append(value(args, v))
    return (ends[0] - ends[1]) / (2 * h)


claimed = {claimed}  # positions of the inputs whose gradient was found to be wrong
moving = [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
double = all(x.dtype in (torch.float64, torch.complex128) for x in moving)
near, tolerance = (1e-5, 1e-5) if double else (1e-2, 2e-2)
wrong = 0
for k in claimed:
    x = inputs[k]
    for seed in range(5):
        torch.manual_seed(seed + 1)
        args = [copy(one) for one in inputs]
        args = [one.clone() if isinstance(one, torch.Tensor) and one.requires_grad else one for one in args]
        leaf = args[k]
        ys = outputs(args)
        torch.manual_seed(seed + 1)
        v = [torch.randn_like(y.detach()) if y.requires_grad else None for y in ys]
        u = torch.randn_like(x.detach()) * x.detach().abs().clamp(min=1e-3)
        pairs = [(y, w) for y, w in zip(ys, v) if w is not None]
        (gradient,) = torch.autograd.grad([y for y, _ in pairs], [leaf], [w for _, w in pairs], allow_unused=True)
        g = torch.zeros_like(u) if gradient is None else gradient
        backward = float((g.conj() * u).real.double().sum())
        first, second = slope(k, u, v, near), slope(k, u, v, near / 2)
        size = max(abs(first), abs(second), abs(backward), 1e-12)
        if abs(first - second) < tolerance * size and abs(first - backward) > 20 * tolerance * size:
            wrong += 1
            numbers = f"{{backward:.8g}} by backward, {{second:.8g}} by finite differences"
            print(f"WRONG: input {{k}}, random direction {{seed}}: {{numbers}}")
sys.exit(1 if wrong else 0)
'''
