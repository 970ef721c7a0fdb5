"""The compiled catalogues say what the .po files say."""

from __future__ import annotations

import gettext
import io
import runpy
import shutil
from pathlib import Path

import pytest

from nbautograd import messages

ROOT = Path(__file__).parents[2]
COMPILE = runpy.run_path(str(ROOT / ".ci" / "compile_messages.py"))
MESSAGES = Path(messages.__file__).parent


def sentences(compiled: bytes) -> dict[str, str]:
    """What gettext reads of a compiled catalogue."""
    said = gettext.GNUTranslations(io.BytesIO(compiled))._catalog
    return {key: value for key, value in said.items() if key}


@pytest.mark.parametrize("lang", messages.LANGUAGES)
def test_the_catalogue_is_what_the_po_files_give(lang):
    """When this fails: python .ci/compile_messages.py, and commit what it writes."""
    assert sentences(COMPILE["compiled"](MESSAGES / lang)) == messages.catalogue(lang)


@pytest.mark.parametrize("lang", messages.LANGUAGES)
def test_compiling_twice_gives_the_same_bytes(lang):
    assert COMPILE["compiled"](MESSAGES / lang) == COMPILE["compiled"](MESSAGES / lang)


def test_a_sentence_in_the_wrong_file_is_refused(tmp_path):
    folder = tmp_path / "en"
    folder.mkdir()
    shutil.copy(MESSAGES / "en" / "report.po", folder / "widgets.po")
    with pytest.raises(ValueError, match=r"widgets\.po: report\..* stands twice or belongs elsewhere"):
        COMPILE["compiled"](folder)


def test_every_subject_is_there_in_both_languages():
    files = [sorted(file.name for file in (MESSAGES / lang).glob("*.po")) for lang in messages.LANGUAGES]
    assert files[0] == files[1]
    assert len(files[0]) > 10


def test_the_environment_is_asked_as_gettext_asks_it(monkeypatch):
    monkeypatch.setattr(messages, "_chosen", None)
    monkeypatch.setenv("NBAUTOGRAD_LANG", "zh")
    assert messages.text("views.compare.agree", first="f", second="g") == "f 与 g 一致。"
