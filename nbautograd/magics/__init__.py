"""IPython: ``%%autograd_function`` and the line magics."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

from nbautograd import messages
from nbautograd.core.stumbles import any_errors
from nbautograd.core.this_thread import start_thread
from nbautograd.settings import setting

DISABLE = "NBAUTOGRAD_DISABLE"  # environment variable; with "1" every magic runs its cell or call and nothing more

_loaded: weakref.WeakKeyDictionary[Any, contextlib.ExitStack] = weakref.WeakKeyDictionary()


def load(shell: Any) -> None:
    """Give a shell the magics; a second call changes nothing.

    Args:
        shell: the ``InteractiveShell`` that ``%load_ext nbautograd`` runs in.
    """
    if shell in _loaded:
        return
    if os.environ.get(DISABLE, "0") not in ("", "0"):
        _loaded[shell] = _without_effect(shell)
        return
    from nbautograd.magics import cell_magics, explain, lines
    from nbautograd.magics.completion import matcher
    from nbautograd.magics.session import Session
    from nbautograd.magics.transformer import BlankMagicLines

    messages.prefer_language(setting("language"))
    session = Session(shell)
    cell_magics.set_help()
    lines.set_help()
    explain.set_help()
    explainer = explain.ExplainMagics(shell)
    undo = contextlib.ExitStack()
    undo.callback(_close_widgets)
    undo.callback(session.close)
    _append(undo, shell.input_transformers_cleanup, BlankMagicLines(session.take))
    _append(undo, shell.Completer.custom_matchers, matcher(shell))
    _listen(undo, shell, "pre_run_cell", session.before_cell)
    _listen(undo, shell, "post_run_cell", session.after_cell)
    _listen(undo, shell, "post_run_cell", explainer.after_cell)
    _register(undo, shell, explainer)
    _register(undo, shell, cell_magics.FunctionMagics(shell, session))
    _register(undo, shell, lines.LineMagics(shell))
    _register(undo, shell, cell_magics.AuditMagics(shell))
    _register(undo, shell, cell_magics.ExerciseMagics(shell, session.exercises))
    _loaded[shell] = undo
    if getattr(shell, "kernel", None) is not None:
        start_thread("views", _prepare_views)


def _without_effect(shell: Any) -> contextlib.ExitStack:
    """Give a shell magics of the same names that run their cell or call; returns what undoes it."""
    from nbautograd.magics.disabled import InertMagicLines, magics_without_effect

    undo = contextlib.ExitStack()
    _append(undo, shell.input_transformers_cleanup, InertMagicLines())
    manager = shell.magics_manager
    for kind, name, function in magics_without_effect(shell):
        undo.callback(_put_back, manager.magics[kind], name, manager.magics[kind].get(name))
        manager.register_function(function, kind, name)
    return undo


def unload(shell: Any) -> None:
    """Leave the shell and the recorded classes as they were before ``load``."""
    undo = _loaded.pop(shell, None)
    if undo is not None:
        undo.close()


def _prepare_views() -> None:
    """Import what the first live view needs while the user still reads or types, so that it is there at once."""
    with any_errors("first live view"):  # without it the first view takes longer, nothing else
        importlib.import_module("nbautograd.widgets.inspector")


def _close_widgets() -> None:
    live = sys.modules.get("nbautograd.widgets.live")
    if live is not None:
        live.close_all()


def _append(undo: contextlib.ExitStack, items: list[Any], item: Any) -> None:
    items.append(item)
    undo.callback(lambda: items.remove(item) if item in items else None)


def _listen(undo: contextlib.ExitStack, shell: Any, event: str, callback: Callable[..., None]) -> None:
    shell.events.register(event, callback)
    undo.callback(shell.events.unregister, event, callback)


def _register(undo: contextlib.ExitStack, shell: Any, magics: Any) -> None:
    """Register magics; undoing puts back what had their names before."""
    manager = shell.magics_manager
    for kind, names in magics.magics.items():
        for name in names:
            undo.callback(_put_back, manager.magics[kind], name, manager.magics[kind].get(name))
    shell.register_magics(magics)
    undo.callback(manager.registry.pop, type(magics).__name__, None)
    undo.callback(lambda: shell.configurables.remove(magics) if magics in shell.configurables else None)


def _put_back(table: dict[str, Any], name: str, before: Any) -> None:
    if before is None:
        table.pop(name, None)
    else:
        table[name] = before
