"""The magic on a cell that defines a class with ``__torch_function__`` or ``__torch_dispatch__``."""

from __future__ import annotations

import inspect

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


def test_what_comes_after_the_cell_is_traced_and_the_class_is_as_written(notebook) -> None:
    notebook(CELL)
    cls = notebook["Scalar"]
    assert inspect.getsource(cls.__torch_function__) == CELL[CELL.index("    @classmethod") :]
    notebook("torch.mean(Scalar(4))")
    log = notebook("%autograd_dispatches Scalar").result.result
    assert [(one.func, one.outcome) for one in log] == [("torch.mean", "returned")]
    notebook.shell.extension_manager.unload_extension("nbautograd")
    assert not hasattr(vars(cls)["__torch_function__"].__func__, "__wrapped__")
    assert torch.mean(cls(3)) == 3


def test_a_class_of_an_earlier_cell_is_left_alone(notebook) -> None:
    notebook(CELL.partition("\n")[2])
    notebook("%%autograd_function\nnumber = 1")
    (problem,) = notebook("%autograd_dispatches Scalar").result.result.problems
    assert problem.message_id == "recording.not_watched"
