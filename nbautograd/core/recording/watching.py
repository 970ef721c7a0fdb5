"""The ctx contract watched on recorded calls."""

from __future__ import annotations

from nbautograd.core.findings import Finding
from nbautograd.core.recording.state import Record


def warnings_of(record: Record, forward: Record | None) -> tuple[Finding, ...]:
    """What breaks the contract in one call."""
    return ()
