"""Compiles the sentences: all .po files of a language into the one catalogue that gettext reads.

python .ci/compile_messages.py          after any change under nbautograd/messages; needs babel
"""

from __future__ import annotations

import io
from datetime import datetime, timezone
from pathlib import Path

from babel.messages import mofile, pofile
from babel.messages.catalog import Catalog

DATE = datetime(2026, 1, 1, tzinfo=timezone.utc)  # the same bytes whenever it is compiled
MESSAGES = Path(__file__).resolve().parents[1] / "nbautograd" / "messages"


def compiled(folder: Path) -> bytes:
    """The catalogue of one language, such as ``nbautograd/messages/zh``.

    Raises:
        ValueError: for a sentence that stands twice, or under an id that is not its subject's.
    """
    whole = Catalog(locale=folder.name, charset="utf-8", creation_date=DATE, revision_date=DATE)
    for file in sorted(folder.glob("*.po")):
        with file.open("rb") as source:
            for message in pofile.read_po(source, locale=folder.name):
                if not message.id:
                    continue
                if whole.get(message.id) is not None or not str(message.id).startswith(f"{file.stem}."):
                    raise ValueError(f"{file.name}: {message.id} stands twice or belongs elsewhere")
                whole.add(message.id, message.string)
    written = io.BytesIO()
    mofile.write_mo(written, whole)
    return written.getvalue()


def target(folder: Path) -> Path:
    """Where gettext looks for it."""
    return folder / "LC_MESSAGES" / "nbautograd.mo"


def main() -> None:
    """Compile every language."""
    for folder in sorted(path.parent for path in MESSAGES.glob("*/report.po")):
        target(folder).parent.mkdir(exist_ok=True)
        target(folder).write_bytes(compiled(folder))


if __name__ == "__main__":
    main()
