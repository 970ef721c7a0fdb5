"""Write what the front end takes from Python: the colours of widget.css.

``python frontend/generate.py``; then ``npm run build``. A test says when it was forgotten.
"""

from __future__ import annotations

import re
from pathlib import Path

from nbautograd.views import theme

FRONTEND = Path(__file__).resolve().parent
BLOCK = re.compile(r"(?<=by frontend/generate.py \*/\n).*?(?=/\* end of colours \*/)", re.DOTALL)


def generated() -> dict[str, str]:
    """Return the files of the front end that hold something of Python's, by name, as they should be."""
    sheet = (FRONTEND / "widget.css").read_text(encoding="utf-8")
    return {"widget.css": BLOCK.sub(lambda _: f"{theme.style_variables()}\n", sheet)}


if __name__ == "__main__":
    for name, text in generated().items():
        (FRONTEND / name).write_text(text, encoding="utf-8")
