"""Values as documents, each written down once: what there is to read, in which order.

``build`` is the one entry; each kind of value registers its builder.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from nbautograd.views.document import Document


@singledispatch
def build(value: Any) -> Document:
    """Return the document of a value, in the language of the moment.

    Raises:
        TypeError: for a value that has none.
    """
    raise TypeError(f"no document of {type(value).__name__}")


_refuse = build.dispatch(object)


def has_document(value: Any) -> bool:
    """Return True where ``build`` knows how to make a document of such a value."""
    return build.dispatch(type(value)) is not _refuse
