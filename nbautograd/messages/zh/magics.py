"""Chinese sentences of the subject ``magics``."""

TEXTS: dict[str, str] = {}
