"""The magic on a cell that defines a class with ``__torch_function__`` or ``__torch_dispatch__``."""

from __future__ import annotations

import inspect
import textwrap

import torch

CELL = """\
%%autograd_function
class Scalar:
    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.mean:
            return args[0].value
        return NotImplemented
"""


def test_the_card_is_brought_up_to_date(bare) -> None:
    bare.shell.kernel = object()
    try:
        bare.shell.extension_manager.load_extension("nbautograd")
        bare(CELL)
        ran = bare("torch.mean(Scalar(4))")
        assert any("torch.mean(<Scalar value=4>)" in bundle["text/plain"] for bundle in ran.updates)
        assert bare("1 + 1").updates == []
    finally:
        del bare.shell.kernel


def test_source_lines_and_errors_are_the_users_own(notebook) -> None:
    notebook(CELL)
    cls = notebook["Scalar"]
    assert inspect.getsource(cls.__torch_function__) == CELL[CELL.index("    @classmethod") :]
    assert cls.__torch_function__.__func__.__wrapped__.__code__.co_firstlineno == 6
    ran = notebook(CELL + "\n    boom = 1 / 0\n")
    assert isinstance(ran.error, ZeroDivisionError)
    assert ran.error.__traceback__.tb_next.tb_next.tb_lineno == 12


def test_a_decorator_of_the_users_runs_first(notebook) -> None:
    cell = CELL.replace(
        "class Scalar", "import dataclasses\nseen = []\n@(lambda cls: seen.append(cls) or cls)\nclass Scalar"
    )
    notebook(cell)
    assert notebook["seen"] == [notebook["Scalar"]]


def test_a_metaclass_finds_the_frame_of_the_class(notebook) -> None:
    meta = "import sys\nclass Meta(type):\n    def __new__(cls, *args):\n        global seen\n"
    meta += "        seen = sys._getframe(1).f_code.co_name\n        return super().__new__(cls, *args)\ndef make():\n"
    body = CELL.partition("\n")[2].replace("class Scalar:", "class Scalar(metaclass=Meta):")
    assert notebook("%%autograd_function\n" + meta + textwrap.indent(body, "    ") + "make()").result.success
    assert notebook["seen"] == "make"  # where pydantic looks names of annotations up


def test_a_cell_run_again_traces_the_new_class_only(notebook) -> None:
    notebook(CELL)
    old = notebook["Scalar"]
    notebook(CELL)
    assert old is not notebook["Scalar"]
    assert not hasattr(vars(old)["__torch_function__"].__func__, "__wrapped__")
    assert hasattr(vars(notebook["Scalar"])["__torch_function__"].__func__, "__wrapped__")


def test_unloading_leaves_the_class_as_written(notebook) -> None:
    notebook(CELL)
    cls = notebook["Scalar"]
    notebook.shell.extension_manager.unload_extension("nbautograd")
    assert not hasattr(vars(cls)["__torch_function__"].__func__, "__wrapped__")
    assert torch.mean(cls(3)) == 3
    assert notebook.shell.ast_transformers == []


def test_inputs_are_answered(notebook) -> None:
    ran = notebook(CELL.replace("function\n", "function --inputs x\n", 1))
    assert "`--inputs` is for a `torch.autograd.Function`" in ran.text


def test_wrong_lines_are_one_sentence(notebook) -> None:
    ran = notebook("%autograd_dispatches torch.nn.Linear")
    assert "defines neither `__torch_function__` nor `__torch_dispatch__`" in ran.stderr


def test_a_class_that_is_not_traced_is_told_so_until_it_is(notebook) -> None:
    notebook(CELL.partition("\n")[2])
    asked = "%autograd_dispatches Scalar"
    (problem,) = notebook(asked).result.result.problems
    assert problem.message_id == "recording.not_watched"
    notebook(CELL)
    assert notebook(asked).result.result.problems == ()
