"""Cause: what one hypothesis says when it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Cause:
    """A hypothesis that held.

    Attributes:
        code: the diagnosis.
        message: which sentence says it; the part of the id after ``causes.``.
        params: what the sentence speaks of, beyond the value and the input that every sentence names.
    """

    code: str
    message: str
    params: Mapping[str, Any] = field(default_factory=dict)
