"""Chinese sentences of the subject ``checking``."""

TEXTS: dict[str, str] = {}
