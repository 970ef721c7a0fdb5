"""diagnose: from a checked Function to ranked findings."""

from __future__ import annotations
