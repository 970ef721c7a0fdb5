"""What magics take where their line says nothing: of pyproject.toml, then of JupyterLab's settings editor."""

from __future__ import annotations

import pytest

from nbautograd import messages
from nbautograd.magics.options import Options
from nbautograd.settings import setting

EDITOR = """{
    // nbautograd
    /* Order, such as "1" */
    "order": "2", // as it was typed
    "language": "zh"
}"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write both files; returns the folder that a kernel runs in."""
    editor = tmp_path / "user-settings" / "nbautograd" / "plugin.jupyterlab-settings"
    editor.parent.mkdir(parents=True)
    project = tmp_path / "project" / "inside"
    project.mkdir(parents=True)
    monkeypatch.setenv("JUPYTERLAB_SETTINGS_DIR", str(tmp_path / "user-settings"))
    monkeypatch.chdir(project)

    def write(pyproject="", settings=""):
        (tmp_path / "project" / "pyproject.toml").write_text(pyproject)
        editor.write_text(settings)

    return write


@pytest.mark.parametrize(
    ("pyproject", "settings", "order", "budget"),
    [
        ("", "", "", ""),
        ("", EDITOR, "2", ""),
        ("[tool.nbautograd]\norder = 1\nbudget = 2.5", EDITOR, "1", "2.5"),
        ("[tool.other]\norder = 1", EDITOR, "2", ""),
        ("[tool]\nnbautograd = 3", "{", "", ""),
        ("not toml [", "[]", "", ""),
    ],
)
def test_the_projects_own_goes_before_the_persons(files, pyproject, settings, order, budget):
    files(pyproject, settings)
    assert (setting("order"), setting("budget")) == (order, budget)
    assert Options().checked_order == (int(order) if order else None)
    assert Options(order="1").checked_order == 1  # a line's own goes before both
    if budget:
        assert Options().checked_budget == float(budget)


def test_a_setting_that_is_none_is_a_sentence(files):
    files("[tool.nbautograd]\norder = 3")
    with pytest.raises(Exception, match=r"nbautograd\.order.*3"):
        _ = Options().checked_order


@pytest.mark.parametrize(("variable", "speaks"), [("", "zh"), ("en", "en")])
def test_the_language_is_that_of_the_settings_where_nothing_else_says(files, monkeypatch, variable, speaks):
    monkeypatch.setattr(messages, "_chosen", None)
    monkeypatch.setenv("NBAUTOGRAD_LANG", variable)
    messages.prefer_language("zh")
    assert messages.language() == speaks


def test_a_folder_that_is_gone_sets_nothing(files, tmp_path, monkeypatch):
    files("[tool.nbautograd]\norder = 1", EDITOR)
    gone = tmp_path / "project" / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert (setting("order"), setting("budget")) == ("2", "")
    monkeypatch.chdir(tmp_path)
