"""``nbautograd freeze``: a copy of a notebook whose live views need no kernel and no network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbautograd import __version__
from nbautograd.command.page import as_html, read, require_ours, run
from nbautograd.errors import CommandError
from nbautograd.messages import text
from nbautograd.widgets.front_ends import fresh_anchor
from nbautograd.widgets.thawing import brought_once, script

LIVE = "application/vnd.jupyter.widget-view+json"
STORED = "application/vnd.jupyter.widget-state+json"
PAGES = (".html", ".htm")
SECONDS = 600  # that one cell may take
_ANCHOR = re.compile(r'class="nbautograd (nbag-[0-9a-f]{16})"')
_REPORT = re.compile(r'class="nbautograd\b')


@dataclass
class Count:
    """Counts of views: how many are interactive now, how many bytes they take, how many stay static."""

    frozen: int = 0
    size: int = 0
    unknown: int = 0
    large: int = 0


def freeze(notebook: Path, out: Path | None, *, execute: bool) -> int:
    """Write a copy of a notebook in which the live views are HTML that brings its own script and state.

    Args:
        notebook: an ``.ipynb`` file; it is not changed.
        out: the copy, ``.ipynb`` or ``.html``; None takes ``NAME.frozen.ipynb`` beside it.
        execute: True runs the notebook, in memory; False runs it when no live view is stored in it.

    Raises:
        CommandError: when the copy would be written over something that is not ours, when nothing can be frozen, or
            when a cell raises (the copy is written and shows where).
    """
    target = notebook.parent / f"{notebook.stem}.frozen.ipynb" if out is None else out
    _require_free(notebook, target)
    content = read(notebook)
    failure = ""
    if execute or not views(content):
        print(text("command.freeze.running", path=notebook), flush=True)
        from nbautograd.widgets.encoding import FREEZING

        environment = {FREEZING: "1"}
        failure = run(content, notebook.parent.resolve(), SECONDS, keep_widgets=True, environment=environment)
    count = frozen(content)
    if not count.frozen and not failure:
        raise CommandError(text("command.freeze.nothing", path=notebook))
    _write(content, target)
    _say(count, target)
    if failure:
        raise CommandError(text("command.cell_failed", path=target, reason=failure))
    return 0


def _require_free(notebook: Path, target: Path) -> None:
    if target.suffix not in (".ipynb", *PAGES):
        raise CommandError(text("command.freeze.kind", path=target))
    if target.resolve() == notebook.resolve():
        raise CommandError(text("command.freeze.itself", path=notebook))
    if target.suffix in PAGES:
        require_ours(target)
    elif target.exists() and "frozen" not in _mapping(read(target).metadata.get("nbautograd")):
        raise CommandError(text("command.freeze.taken", path=target))


def views(content: Any) -> dict[str, Any]:
    """Return the stored state of our widgets in a notebook, by model; those of other packages are not among them."""
    return {key: model for key, model in _stored(content).items() if _is_ours(_mapping(model))}


def _stored(content: Any) -> dict[str, Any]:
    """Return the widgets that a notebook stores; a notebook is written by others, so nothing is taken for granted."""
    return _mapping(_mapping(_mapping(content.metadata.get("widgets")).get(STORED)).get("state"))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_ours(model: Mapping[str, Any]) -> bool:
    state = _mapping(model.get("state"))
    ours = isinstance(state.get("_kind"), str) and isinstance(state.get("_anchor"), str)
    return model.get("model_module") == "anywidget" and ours


def frozen(content: Any) -> Count:
    """Replace the live views of a notebook in place, and take their stored state out of its metadata."""
    models, count = views(content), Count()
    by_anchor = {model["state"]["_anchor"]: model for model in models.values() if model["state"]["_anchor"]}
    for output in [o for cell in content.cells for o in cell.get("outputs", ()) if "data" in o]:
        data = output["data"]
        anchor = _ANCHOR.search(data.get("text/html", ""))
        live = _mapping(data.get(LIVE)).get("model_id")
        if isinstance(live, str) and live in models:
            del data[LIVE]
            _bring_to_life(data, models[live], fresh_anchor(), count)
        elif anchor and anchor[1] in by_anchor:
            _bring_to_life(data, by_anchor[anchor[1]], anchor[1], count)
        elif anchor:
            count.unknown += 1
    _forget(content, models)
    content.metadata["nbautograd"] = {"frozen": __version__}
    return count


def _bring_to_life(data: Any, model: Any, anchor: str, count: Count) -> None:
    """Give an output's static report the class by which its script finds it, and the script."""
    report = data.get("text/html", "")
    if anchor not in report:  # displayed by itself: its report has no name yet
        report = _REPORT.sub(f'class="nbautograd {anchor}', report or '<div class="nbautograd"></div>', count=1)
    try:
        made = script(model, anchor)
    except (KeyError, IndexError, TypeError, ValueError):  # a state that no widget of ours has stored
        made = None
    if made is None:
        count.unknown += 1
    elif not made:
        count.large += 1
    else:
        count.frozen, count.size = count.frozen + 1, count.size + len(made)
    data["text/html"] = report + (made or "")


def _forget(content: Any, models: dict[str, Any]) -> None:
    """Take models, and the layouts that are theirs, out of the stored state; nothing is left of it when it is empty."""
    stored = _stored(content)
    layouts = {str(model["state"].get("layout", "")).removeprefix("IPY_MODEL_") for model in models.values()}
    for key in [key for key in stored if key in models or key in layouts]:
        del stored[key]
    if not stored:
        content.metadata.pop("widgets", None)


def _write(content: Any, target: Path) -> None:
    import nbformat

    written = brought_once(as_html(content, target.stem)) if target.suffix in PAGES else f"{nbformat.writes(content)}\n"
    try:
        target.write_bytes(written.encode())  # all of it or nothing: half of a character pair has no bytes
    except OSError as error:
        raise CommandError(text("command.freeze.no_file", path=target, reason=error.strerror or error)) from None


def _say(count: Count, target: Path) -> None:
    print(text("command.freeze.done", path=target, count=count.frozen, size=-(-count.size // 1000)))
    for name in ("unknown", "large"):
        if getattr(count, name):
            print(text(f"command.freeze.{name}", count=getattr(count, name)))
    if target.suffix == ".ipynb":
        print(text("command.freeze.trust", path=target))
