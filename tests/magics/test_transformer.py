from __future__ import annotations

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from nbautograd.magics.transformer import BlankMagicLine, request

BODY = "class F:\n    pass\n"


@pytest.fixture
def manager() -> TransformerManager:
    made = TransformerManager()
    made.cleanup_transforms.append(BlankMagicLine())
    return made


@pytest.mark.parametrize(
    "line", ["%%autograd_function", "%%autograd_function --inputs a, b", "%%autograd_function\t-i a"]
)
def test_the_magic_line_is_emptied_and_the_rest_kept(manager: TransformerManager, line: str) -> None:
    assert manager.transform_cell(f"{line}\n{BODY}") == f"\n{BODY}"


def test_the_rest_is_transformed_as_ever(manager: TransformerManager) -> None:
    shown = manager.transform_cell("%%autograd_function\n%time 1\n!ls\n")
    assert shown == "\nget_ipython().run_line_magic('time', '1')\nget_ipython().system('ls')\n"


@pytest.mark.parametrize(
    "cell",
    [
        "%%autograd_function --wrong\nx = 1\n",
        "%%autograd_function\n",
        "%%autograd_function --inputs a\n\n  \n",
    ],
)
def test_wrong_options_and_empty_bodies_are_left_to_the_registered_magic(
    manager: TransformerManager, cell: str
) -> None:
    assert "run_cell_magic('autograd_function'" in manager.transform_cell(cell)
    assert request(cell) is None


def test_help_is_left_alone(manager: TransformerManager) -> None:
    assert "pinfo" in manager.transform_cell("%%autograd_function?")
    assert request("%%autograd_function?\nx = 1") is None


@pytest.mark.parametrize(
    "cell", ["x = 1\n", "%%time\nx = 1\n", "%%autograd_functions\nx\n", "# %%autograd_function\nx\n", ""]
)
def test_other_cells_are_left_alone(cell: str) -> None:
    lines = cell.splitlines(keepends=True)
    assert BlankMagicLine()(lines) == lines
    assert request(cell) is None


def test_another_cell_magic_below_still_works(manager: TransformerManager) -> None:
    assert manager.transform_cell(f"%%autograd_function\n%%time\n{BODY}").startswith(
        "get_ipython().run_cell_magic('time'"
    )


def test_a_request_is_found_below_blank_lines_and_other_cell_magics() -> None:
    plain = request(f"\n\n%%autograd_function -i a\n{BODY}")
    assert plain is not None
    assert (plain.options.inputs, plain.nested) == ("a", False)
    nested = request(f"%%time\n%%autograd_function -i a\n{BODY}")
    assert nested is not None
    assert nested.nested


def test_a_cell_is_complete_when_it_ends_with_an_empty_line(manager: TransformerManager) -> None:
    assert manager.check_complete("%%autograd_function")[0] == "incomplete"
    assert manager.check_complete(f"%%autograd_function\n{BODY}")[0] == "incomplete"
    assert manager.check_complete(f"%%autograd_function\n{BODY}\n")[0] == "complete"
