"""Chinese sentences of the subject ``command``."""

TEXTS: dict[str, str] = {}
