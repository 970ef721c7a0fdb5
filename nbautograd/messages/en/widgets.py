"""English sentences of the subject ``widgets``."""

TEXTS: dict[str, str] = {}
