"""Instance-style Functions of old torch: recognised, explained, and rewritten as static ones that run today."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType

from nbautograd.core.findings import Finding, Fix
from nbautograd.core.recording.migrating import Migration, migrate
from nbautograd.core.source import as_written, methods_of, read_source


@dataclass(frozen=True)
class Legacy:
    """What is known of an instance-style Function.

    Attributes:
        name: the class's name.
        migrated: source of the same Function with static methods, ready to run; empty when it could not be made.
        before: the call as it was written for old torch, such as ``"AddConstant(constant)(tensor)"``.
        after: the call to use instead, such as ``"AddConstant.apply(tensor, constant)"``.
        findings: what to tell the reader.
    """

    name: str
    migrated: str
    before: str
    after: str
    findings: tuple[Finding, ...]


def recognise(cls: type) -> Legacy | None:
    """Is this a Function of old torch, with instance methods that use ``self``?

    Args:
        cls: a subclass of ``torch.autograd.Function``.

    Returns:
        What it is and how to write it today; None for a Function with static methods, and for one that merely lacks
        ``@staticmethod`` on methods that take ctx.

    Example:
        >>> import torch
        >>> from nbautograd.core.recording.legacy import recognise
        >>> recognise(torch.autograd.function.InplaceFunction) is None
        True
    """
    if not _instance_style(cls):
        return None
    source = read_source(cls)
    migration = migrate(source.text, cls.__name__) if source is not None else None
    line = source.lines.get("forward") if source is not None else None
    return _explained(cls.__name__, migration, line)


def _instance_style(cls: type) -> bool:
    forward = as_written(vars(cls).get("forward"))
    if not isinstance(forward, FunctionType):
        return False
    code = methods_of(cls).codes.get("forward")
    first = code.co_varnames[0] if code is not None and code.co_argcount else ""
    return first == "self" or isinstance(vars(cls).get("__init__"), FunctionType)


def _explained(name: str, migration: Migration | None, line: int | None) -> Legacy:
    before = migration.before if migration is not None else f"{name}()(...)"
    after = migration.after if migration is not None else f"{name}.apply(...)"
    text = migration.source if migration is not None else ""
    params = {"function": name, "before": before, "after": after, "line": line}
    sentence = "recording.legacy" if text else "recording.legacy_by_hand"
    fix = Fix(text, verified=False, line=None) if text else None
    return Legacy(name, text, before, after, (Finding("legacy", "bug", sentence, params, None, line, fix),))
