"""ViewWidget: what every interactive view shares. State goes to the page, questions come back, nothing is computed."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from nbautograd import messages
from nbautograd.core.stumbles import record
from nbautograd.errors import CallError
from nbautograd.views.bundle import mimebundle as static_bundle
from nbautograd.views.theme import colours
from nbautograd.widgets.encoding import encode, without_kernel
from nbautograd.widgets.front_ends import fresh_anchor, shows_views_only
from nbautograd.widgets.states import Answer, State

STATIC = Path(__file__).resolve().parent.parent / "static"
Question = Callable[[Mapping[str, Any]], Answer]
# sentences of the static report that the page uses too; its documents come with their words
SHARED = (
    "graphs.kept_in_all",
    *(f"views.{word}" for word in ("colon", "semicolon", "line", "nothing", "call.printed", "column.gradient")),
    *(f"views.{word}" for word in ("code_page", "evidence.incomplete", "fix.change", "tensor.scalar")),
    *(f"views.panel.{name}" for name in ("analytical", "numerical", "difference", "beyond", "pooled")),
    *(f"views.{group}." for group in ("verdict", "block", "structure", "part")),
)
UNUSED = {"views.part.findings", "views.part.evidence"}  # by the page; what is raised is said here
UNUSED |= {f"widgets.{name}" for name in ("unknown_option", "no_view", "no_block", "too_large", "no_answer")}


def labels() -> dict[str, str]:
    """Return the page's words in the chosen language, by id without its subject; the page fills placeholders."""
    texts = {**messages.catalogue("en"), **messages.catalogue(messages.language())}
    chosen = (k for k in texts if k.startswith(("widgets.", *SHARED)) and k not in UNUSED)
    return {k.partition(".")[2]: texts[k] for k in chosen}


@functools.cache
def deflated(name: str) -> bytes:
    """Return a file of ``static`` as it is sent and stored, ``"widget.js"`` or ``"widget.css"``."""
    return zlib.compress((STATIC / name).read_bytes(), 9)


class ViewWidget(anywidget.AnyWidget):
    """One value shown interactively.

    Args:
        value: what is shown; plain data that is without_kernel for as long as the widget lives.
        anchor: class of the static report whose place the widget takes on the page; empty to show only where displayed.
        options: ``tab`` and ``selection``, as the attributes below.

    Raises:
        CallError: for a keyword that does not exist; it is a ``TypeError``.
    """

    KIND = ""
    OPTIONS: tuple[str, ...] = ("selection", "tab")

    _esm = STATIC / "loader.js"
    _module = traitlets.Bytes().tag(sync=True)
    """``widget.js``, which draws all views, deflated since every saved widget stores it; ``_esm`` unpacks it."""
    _stylesheet = traitlets.Bytes().tag(sync=True)
    """``widget.css``, deflated as well; it stays inside the view's own shadow root."""
    _kind = traitlets.Unicode().tag(sync=True)
    """Which view the page draws."""
    _anchor = traitlets.Unicode().tag(sync=True)
    """Class of the static report whose place the view takes."""
    _labels = traitlets.Dict().tag(sync=True)
    """The words of the page by id."""
    _colours = traitlets.Dict().tag(sync=True)
    """Colour tables of the heat maps, for themes ``light`` and ``dark``; see ``views.theme``."""
    state = traitlets.Any().tag(sync=True, to_json=encode)
    """What is drawn: one of ``widgets.states``."""
    tab = traitlets.Unicode().tag(sync=True)
    """The tab in front, such as ``"jacobian"``; Python and the page may both set it."""
    selection = traitlets.Dict().tag(sync=True)
    """What is selected: ``block`` (output, input), ``entry`` (row, column), ``call`` (index), ``node`` (id)."""

    def __init__(self, value: Any, *, anchor: str = "", **options: Any) -> None:
        unknown = sorted(set(options) - set(self.OPTIONS))
        if unknown:
            raise CallError("widgets.unknown_option", name=unknown[0], known=", ".join(self.OPTIONS))
        self.value = value
        super().__init__(
            _module=deflated("widget.js"),
            _stylesheet=deflated("widget.css"),
            _kind=self.KIND,
            _anchor=anchor,
            _labels=labels(),
            _colours={theme: list(colours(theme)) for theme in ("light", "dark")},
            state=without_kernel(self.make_state(value), self.questions(), value),
            **options,
        )
        self.on_msg(self._answer)

    def make_state(self, value: Any) -> State:
        """Return the value as the page needs it."""
        raise TypeError(type(value).__name__)

    def questions(self) -> dict[str, Question]:
        """Return the questions that the page may ask, by name; every other message is ignored."""
        return {}

    def set_state(self, sync_data: Mapping[str, Any]) -> None:
        """Take from the page what a person may change there, nothing else."""
        super().set_state({name: sync_data[name] for name in self.OPTIONS if name in sync_data})

    def close(self) -> None:
        """Leave the page, and take the layout model along that ipywidgets made beside this one."""
        layout = self.layout if self.comm is not None else None
        super().close()
        if layout is not None:
            layout.close()

    def _answer(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """Answer one question of the page; a question that makes no sense gets a sentence back."""
        if not isinstance(content, dict) or not isinstance(content.get("id"), int):
            return
        question = self.questions().get(str(content.get("kind")))
        if question is None:
            return
        try:
            answer = encode(question(content))
        except Exception as problem:  # the page asked: it gets the answer, the kernel's log does not
            record(problem, f"question {content.get('kind')}")
            self.send({"id": content["id"], "error": messages.text("widgets.no_answer", reason=str(problem))})
        else:
            self.send({"id": content["id"]}, [answer])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.value!r}>"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the static report, whose place the view takes; and a view, where a page can only show that."""
        live = super()._repr_mimebundle_(**kwargs)
        if live is None:
            return None
        if shows_views_only():
            bundle, metadata = live if isinstance(live, tuple) else (live, {})
            return {**bundle, **static_bundle(self.value)}, metadata
        self._anchor = self._anchor or fresh_anchor()
        return static_bundle(self.value, anchor=self._anchor, live=True), {}
