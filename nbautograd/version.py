"""The version of this package, for whoever needs it without the rest."""

__version__ = "0.2.0"
