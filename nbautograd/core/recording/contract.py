"""The ctx contract, read from the source before any run."""

from __future__ import annotations

from nbautograd.core.findings import Finding


def read_contract(cls: type) -> tuple[Finding, ...]:
    """What a Function's source breaks of the contract, most serious first; () when its source is not to be had."""
    return ()
