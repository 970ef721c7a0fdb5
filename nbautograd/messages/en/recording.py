"""English sentences of the subject ``recording``."""

TEXTS: dict[str, str] = {}
