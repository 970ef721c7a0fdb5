"""Chinese sentences of the subject ``report``."""

TEXTS: dict[str, str] = {
    "report.as_text": "{text}",
}
