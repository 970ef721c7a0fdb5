"""The version of this package and the address of its pages, for whoever needs them without the rest."""

__version__ = "0.9.0rc1"
SITE = "https://nbautograd.github.io/nbautograd/"  # pyproject.toml has the same


def page_of(code: str) -> str:
    """Return where the page of a finding's code stands on the site."""
    return f"{SITE}generated/findings/{code}.html"
