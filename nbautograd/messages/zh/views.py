"""Chinese sentences of the subject ``views``."""

TEXTS: dict[str, str] = {}
