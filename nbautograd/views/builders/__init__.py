"""Values as documents, each written down once: what there is to read, in which order.

``build`` is the one entry; each kind of value registers its builder.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from nbautograd.views.document import Document, Verbatim


@singledispatch
def build(value: Any) -> Document:
    """Return the document of a value, in the language of the moment; of a value that is none of ours its ``repr``."""
    return (Verbatim(repr(value)),)
