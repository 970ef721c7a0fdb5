"""A notebook as a page: a cell that fails is shown and said, a file that is no notebook is said."""

import nbformat
import pytest
from said import pattern

from nbautograd.command.page import write_page
from nbautograd.errors import CommandError


def written(folder, *cells):
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(notebook, folder / "some.ipynb")
    return folder / "some.ipynb"


@pytest.mark.slow
def test_a_cell_that_fails_is_on_the_page(tmp_path):
    notebook = written(tmp_path, "print('before')", "1 / 0", "print('after')")
    before = notebook.read_bytes()
    with pytest.raises(CommandError, match=pattern("command.cell_failed", path=tmp_path / "some.html")):
        write_page(notebook)
    page = (tmp_path / "some.html").read_text(encoding="utf-8")
    assert "before" in page
    assert "ZeroDivisionError" in page
    assert notebook.read_bytes() == before


@pytest.mark.notebooks
def test_a_cell_that_takes_too_long(tmp_path):
    notebook = written(tmp_path, "import threading; threading.Event().wait(600)")
    with pytest.raises(CommandError, match="A cell timed out"):
        write_page(notebook, seconds=1)


@pytest.mark.parametrize("content", ["my work", "{}", "[]", '{"cells": 3}'])
def test_a_file_that_is_no_notebook(tmp_path, content):
    (tmp_path / "some.ipynb").write_text(content)
    with pytest.raises(CommandError, match=pattern("command.no_json", path=tmp_path / "some.ipynb")):
        write_page(tmp_path / "some.ipynb")
    assert not (tmp_path / "some.html").exists()
