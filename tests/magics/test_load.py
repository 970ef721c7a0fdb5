"""Load, reload and unload leave the shell as it was."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import pytest
from notebook_shell import DOUBLE
from said import says

from nbautograd import loading, magics
from nbautograd.messages import text

NAMES = {
    "gradcheck", "jacobian", "autograd_graph", "autograd_calls", "autograd_compare", "autograd_dispatches",
    "autograd_audit",
}  # fmt: skip
CELL = "%%autograd_function\n" + DOUBLE


def state(shell: Any) -> dict[str, Any]:
    """All that loading could change."""
    manager = shell.magics_manager
    return {
        "transformers": list(shell.input_transformers_cleanup),
        "post": list(shell.input_transformers_post),
        "ast": list(shell.ast_transformers),
        "line": dict(manager.magics["line"]),
        "cell": dict(manager.magics["cell"]),
        "registry": dict(manager.registry),
        "configurables": list(shell.configurables),
        "events": {name: list(callbacks) for name, callbacks in shell.events.callbacks.items()},
        "matchers": list(shell.Completer.custom_matchers),
        "formatters": {m: dict(f.type_printers) for m, f in shell.display_formatter.formatters.items()},
        "hooks": {k: list(v) for k, v in vars(shell.hooks).items() if isinstance(v, list)},
        "names": set(shell.user_ns)
        - {"_i", "_ii", "_iii", "_", "__", "___", "_dh", "_oh", "_ih", "In", "Out", "_exit_code"},
    }


def test_unload_leaves_the_shell_as_it_was(bare) -> None:
    getattr(bare.shell.magics_manager, "load_all_lazy_magics", list)()
    before = state(bare.shell)
    bare("%load_ext nbautograd", store_history=False)
    assert set(bare.shell.magics_manager.magics["line"]) >= NAMES
    bare("%unload_ext nbautograd", store_history=False)
    after = state(bare.shell)
    for what, value in before.items():
        assert after[what] == value, what


def test_a_cold_kernel_counts_until_it_is_loaded(bare, monkeypatch) -> None:
    counted = threading.Semaphore(0)
    monkeypatch.setattr(loading, "PAUSE", 0)
    monkeypatch.setattr(loading, "text", lambda *of, **told: counted.release() or text(*of, **told))
    bare.shell.user_ns["wait"] = lambda: [counted.acquire(timeout=60) for _ in range(3)]
    ran = bare("from nbautograd.loading import seconds_shown\nwith seconds_shown():\n    assert all(wait())")
    assert ran.error is None
    assert all(says(one["text/plain"], "magics.loading") for one in ran.bundles[:2])
    assert ran.updates[-1] == {"text/plain": ""}


def test_reload_doubles_nothing(bare) -> None:
    bare("%load_ext nbautograd")
    once = state(bare.shell)
    bare("%reload_ext nbautograd")
    magics.load(bare.shell)
    twice = state(bare.shell)
    for what in ("transformers", "events", "matchers", "configurables"):
        assert len(twice[what]) == len(once[what])
    assert {k: len(v) for k, v in twice["events"].items()} == {k: len(v) for k, v in once["events"].items()}
    bare(CELL)
    bare("%unload_ext nbautograd")


def test_unload_gives_the_classes_back_as_written(notebook) -> None:
    notebook(CELL)
    cls = notebook["Double"]
    assert type(cls.__dict__["forward"]) is not staticmethod
    notebook("%unload_ext nbautograd")
    assert type(cls.__dict__["forward"]) is staticmethod
    assert "__init__" not in vars(cls._backward_cls)


def test_a_cell_may_unload_what_watches_it(notebook) -> None:
    import sys

    from torch.autograd.function import FunctionMeta

    before = sys.stdout.write, FunctionMeta.__init__
    ran = notebook(CELL + "%unload_ext nbautograd\n1")
    assert ran.result.result == 1
    assert type(notebook["Double"].__dict__["forward"]) is staticmethod
    assert (sys.stdout.write, FunctionMeta.__init__) == before


def test_a_users_magic_of_the_same_name_comes_back(bare) -> None:
    def own(line: str) -> str:
        return f"mine {line}"

    bare.shell.register_magic_function(own, "line", "jacobian")
    try:
        magics.load(bare.shell)
        magics.unload(bare.shell)
        assert bare("%jacobian x").result.result == "mine x"
    finally:
        del bare.shell.magics_manager.magics["line"]["jacobian"]


def test_stdout_is_given_back_after_every_cell(notebook) -> None:
    import sys

    before = sys.stdout.write
    notebook(CELL)
    notebook("1 / 0")
    notebook("x = = 1")
    assert sys.stdout.write == before


@pytest.mark.parametrize("asked", ["-h", "--help"])
@pytest.mark.parametrize(
    "magic",
    [
        "%%autograd_function", "%%exercise", "%%autograd_audit", "%exercises", "%gradcheck", "%jacobian",
        "%autograd_graph", "%autograd_calls", "%autograd_compare", "%autograd_dispatches", "%autograd_audit",
        "%autograd_explain",
    ],
)  # fmt: skip
def test_every_magic_prints_its_help(notebook, magic: str, asked: str) -> None:
    kind = "cell" if magic.startswith("%%") else "line"
    ran = notebook(f"{magic} {asked}" + ("\nleft = 1" if kind == "cell" else ""))
    help_text = inspect.cleandoc(notebook.shell.find_magic(magic.strip("%"), kind).__doc__)
    assert ran.error is None
    assert ran.stdout.strip() == help_text.strip()
    assert notebook(f"{magic} f(a) --help" + ("\nleft = 1" if kind == "cell" else "")).stdout == ran.stdout
    assert "left" not in notebook.shell.user_ns


@pytest.mark.parametrize("name", ["%autograd_function", "%%autograd_function", "%exercise", "%autograd_audit"])
def test_help_is_found_with_one_percent_sign_as_with_two(bare, name: str) -> None:
    bare("%load_ext nbautograd", store_history=False)
    assert bare.shell.object_inspect(name)["found"]
