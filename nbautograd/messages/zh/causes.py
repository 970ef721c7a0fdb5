"""Chinese sentences of the subject ``causes``."""

TEXTS: dict[str, str] = {}
