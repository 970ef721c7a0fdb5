"""English sentences of the subject ``graphs``."""

TEXTS: dict[str, str] = {}
