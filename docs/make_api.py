"""Makes the API documentation from the docstrings: one page that can be searched, without network.

python docs/make_api.py [FOLDER]        needs pdoc (in the extra "dev"); FOLDER is docs/api unless given
"""

from __future__ import annotations

import sys
from pathlib import Path

import pdoc
import pdoc.render

import nbautograd

HERE = Path(__file__).parent


def make(folder: Path) -> Path:
    """Write the page; returns it.

    Args:
        folder: where to; made when it is missing.
    """
    pdoc.render.configure(docformat="google", show_source=False, footer_text=f"nbautograd {nbautograd.__version__}")
    pdoc.pdoc("nbautograd", r"!nbautograd\.(?!types$).*", output_directory=folder)
    return folder / "nbautograd.html"


if __name__ == "__main__":
    print(make(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "api"))
