"""The metadata by which nbgrader knows a cell: schema 3, with its checksum."""

from __future__ import annotations

import hashlib
from typing import Any

SCHEMA = 3


def answer(name: str, text: str, points: int) -> dict[str, Any]:
    """For the cell of an exercise: the student writes it, it is worth points."""
    return _with_checksum(_meta(name, grade=True, solution=True, locked=False, points=points), text, "code")


def read_only(name: str, text: str, kind: str) -> dict[str, Any]:
    """For a cell that is put back as it was when a student changes it."""
    return _with_checksum(_meta(name, grade=False, solution=False, locked=True), text, kind)


def checksum(meta: dict[str, Any], text: str, kind: str) -> str:
    """The MD5 that nbgrader computes over a cell's text, type, kind, name and points."""
    locked = not meta["solution"] and (bool(meta["locked"]) or bool(meta["grade"]))
    parts = [text, kind, str(meta["grade"]), str(meta["solution"]), str(locked), meta["grade_id"]]
    if meta["grade"]:
        parts.append(str(float(meta["points"])))
    return hashlib.md5("".join(parts).encode("utf-8"), usedforsecurity=False).hexdigest()


def _meta(name: str, **kind: Any) -> dict[str, Any]:
    return {"grade_id": name, "schema_version": SCHEMA, "task": False, **kind}


def _with_checksum(meta: dict[str, Any], text: str, kind: str) -> dict[str, Any]:
    return {**meta, "cell_type": kind, "checksum": checksum(meta, text, kind)}
