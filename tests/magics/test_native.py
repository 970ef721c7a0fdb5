"""The cell runs as it would without the magic."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest
from notebook_shell import DOUBLE

from nbautograd.magics import options, transformer

MAGIC = "%%autograd_function\n"
BODIES = {
    "definition": DOUBLE,
    "print": DOUBLE + "print('hello')",
    "last expression": DOUBLE + "1 + 1",
    "silenced": DOUBLE + "1 + 1;",
    "error": DOUBLE + "\ndef inner():\n    return 1 / 0\ninner()",
    "error in forward": DOUBLE.replace("2 * x", "undefined") + "Double.apply(torch.ones(2))",
    "syntax error": DOUBLE + "x = = 1",
    "indentation error": DOUBLE + "  x = 1",
    "name error": "undefined",
    "future": "from __future__ import annotations\n" + DOUBLE + "def f(x: Nowhere): pass",
    "multi-line string": 's = """\n  a\n%%autograd_function\nb"""\nprint(s)',
    "system exit": "raise SystemExit(3)",
    "keyboard interrupt": "raise KeyboardInterrupt",
    "await": "import asyncio\nawait asyncio.sleep(0)\nprint('slept')",
    "assignment": "y = 3",
}


def plain(ran) -> tuple[str, str, str, str]:
    """What a person sees of a cell, without what the magic adds to it."""
    return ran.stdout, ran.stderr, repr(ran.result.result), repr(ran.error)


@pytest.mark.parametrize("body", BODIES)
def test_it_prints_returns_and_fails_as_a_cell_without_the_magic(notebook, body: str) -> None:
    bare = notebook("\n" + "# one line\n" + BODIES[body], store_history=False)
    ours = notebook("%%autograd_function\n" + BODIES[body], store_history=False)
    assert without_first_line(plain(ours)) == without_first_line(plain(bare))


def without_first_line(seen: tuple[str, ...]) -> tuple[str, ...]:
    """The two cells differ in their first line, and so in the name that IPython derives from their text."""
    return tuple(
        re.sub(r"<ipython-input-\w+-\w+>", "<cell>", text.replace("      1 # one line\n", "")) for text in seen
    )


def test_line_numbers_are_those_of_the_visible_cell(notebook) -> None:
    ran = notebook(MAGIC + DOUBLE + "1 / 0")
    assert ran.result.error_in_exec.__traceback__.tb_next.tb_lineno == 1 + (MAGIC + DOUBLE).count("\n")


def test_source_pickles_and_names_are_the_classes_own(notebook) -> None:
    notebook(MAGIC + DOUBLE)
    cls = notebook["Double"]
    assert inspect.getsource(cls.forward).strip().startswith("@staticmethod\n    def forward")
    assert inspect.getsourcelines(cls.forward)[1] == 3
    assert notebook("read_source = inspect.getsource(Double.forward)").result.success
    assert notebook["read_source"] == inspect.getsource(cls.forward)
    assert notebook("import pickle\npickle.loads(pickle.dumps(Double)) is Double").result.result is True
    assert pickle.dumps(cls)


def test_help_on_a_recorded_class_is_as_before(notebook) -> None:
    def help_text() -> str:
        return notebook("Double.forward??").text + notebook("Double?").text

    notebook("# one line\n" + DOUBLE, store_history=False)
    before = help_text()
    notebook(MAGIC + DOUBLE, store_history=False)
    assert help_text() == before


@pytest.mark.parametrize("magic", ["%%time", "%%capture out"])
@pytest.mark.parametrize("first", [True, False])
def test_other_cell_magics_above_and_below(notebook, magic: str, first: bool) -> None:
    lines = [magic, "%%autograd_function"]
    notebook("\n".join(lines if first else lines[::-1]) + "\n" + DOUBLE + "y = Double.apply(torch.ones(2))")
    assert notebook["y"].tolist() == [2, 2]
    assert len(notebook("%autograd_calls Double").result.result) == 1


def test_an_exported_script_runs_the_cell_by_the_registered_magic(notebook) -> None:
    ran = notebook("get_ipython().run_cell_magic('autograd_function', '', '''%s''')" % (DOUBLE + "print(1)"))
    assert ran.stdout == "1\n"
    assert "Recording `Double`" in ran.text
    failing = notebook("get_ipython().run_cell_magic('autograd_function', '', '''x = 1\n1 / 0''')")
    assert not failing.result.success
    assert failing.stdout.count("ZeroDivisionError") == 2  # the traceback's first and last line, once
    assert "line 3" in failing.stdout


@pytest.mark.parametrize("prefix", ["\n\n", "   ", "In [1]: ", ">>> "])
def test_cells_that_ipython_cleans_first(notebook, prefix: str) -> None:
    indent = "   " if prefix.isspace() else ""
    lines = (prefix + MAGIC + "class Plain(Function): pass\ny = 1").splitlines()
    ran = notebook("\n".join(line if i == 0 else indent + line for i, line in enumerate(lines)))
    assert ran.result.success
    assert "Recording `Plain`" in ran.text


@pytest.mark.parametrize("above", ["", "%%capture\n", "%%time\n"])
def test_a_line_is_read_once(notebook, monkeypatch, above: str) -> None:
    read: list[str] = []

    def counted(line: str) -> options.Options:
        read.append(line)
        return options.parse(line)

    monkeypatch.setattr(transformer, "parse", counted)
    notebook(above + "%%autograd_function\n" + DOUBLE)
    assert read == [""]
    assert notebook("%autograd_calls Double").error is None


def test_a_cell_that_another_magic_only_stores_asks_for_nothing(notebook, tmp_path) -> None:
    ran = notebook(f"%%writefile {tmp_path / 'double.py'}\n{MAGIC}{DOUBLE}")
    assert ran.bundles == []
