"""The loader under anywidget's own runtime: slow is not failed, and the stored report stays until its view is there."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from widget_page import tab

pytestmark = pytest.mark.browser

LOADER = (Path(__file__).resolve().parents[2] / "nbautograd" / "static" / "loader.js").read_text(encoding="utf-8")
ANYWIDGET = (files("anywidget") / "nbextension" / "index.js").read_text(encoding="utf-8")
# a module that is not done before it has all that it needs
WAITING = """export default { render() {}, initialize() {
  new DecompressionStream("deflate");
  return new Promise(() => {});
} };"""
ANCHOR = "nbag-1"
# a model of ipywidgets as far as anywidget's runtime needs one, with anywidget's 2 s in our hands
HOST = """async ([runtime, esm, report]) => {
  window.limit = new AbortController();
  AbortSignal.timeout = () => limit.signal;
  document.body.insertAdjacentHTML("beforeend", report);
  const listeners = [];
  class DOMWidgetModel {
    initialize(traits) { this.traits = traits; }
    get(name) { return this.traits[name]; }
    set(name, value) { this.traits[name] = value; }
    save_changes() {}
    send() {}
    on(event, f, owner) { listeners.push([event, f, owner]); }
    once(event, f) { ended.push(f); }
    off(event, f, owner) {
      for (let k = listeners.length; k--;) {
        const [e, g, o] = listeners[k];
        if ((!event || e === event) && (!f || f === g) && (!owner || o === owner)) listeners.splice(k, 1);
      }
    }
    _handle_comm_msg(message) { heard.push(message); }
  }
  window.heard = [];
  window.ended = [];
  window.define = (_, make) => { window.made = make({ DOMWidgetModel, DOMWidgetView: class {} }); };
  (0, eval)(runtime);
  window.model = new made.AnyModel();
  const names = ["_module", "_stylesheet", "_anchor", "_colours", "state", "tab", "selection", "_kind", "_labels"];
  const traits = Object.fromEntries(names.map((name) => [name, nb.model.get(name)]));
  model.initialize({ ...traits, _esm: esm, _css: "", _anywidget_id: "nbautograd" });
}"""
# the packed module does not come before `gate.open` is called, or fails by `gate.fail`
SLOW = """() => {
  const Native = DecompressionStream, kept = {};
  const opened = new Promise((open, fail) => Object.assign(kept, { open, fail }));
  window.DecompressionStream = function (kind) {
    window.gate = kept;
    const first = new TransformStream({ transform: async (chunk, to) => (await opened, to.enqueue(chunk)) });
    return { writable: first.writable, readable: first.readable.pipeThrough(new Native(kind)) };
  };
}"""
LATE = "() => (limit.abort(), model._handle_comm_msg('update').then(() => heard, (problem) => String(problem)))"


@pytest.fixture
def hosted(load: Any, samples: Any) -> Any:
    """Open a model under anywidget's runtime, beside its stored report; its module comes when the test says so."""

    def open_model(esm: str = LOADER) -> Any:
        page = load(samples.report(wrong=True), anchor=ANCHOR)
        page.evaluate(SLOW)
        page.evaluate(HOST, [ANYWIDGET, esm, f"<div class='{ANCHOR}'>the stored report</div>"])
        page.wait_for_function("window.gate")
        return page

    return open_model


def test_a_model_whose_module_is_slow_has_not_failed(hosted: Any) -> None:
    page = hosted()
    assert page.evaluate(LATE) == ["update"]
    expect(page.get_by_text("the stored report")).to_be_visible()
    page.evaluate("gate.open()")
    expect(tab(page, "jacobian")).to_be_visible()
    expect(page.get_by_text("the stored report")).to_be_hidden()


def test_what_waits_in_initialize_fails_after_anywidgets_limit(hosted: Any) -> None:
    assert "Failed to initialize model" in hosted(WAITING).evaluate(LATE)


@pytest.mark.parametrize("broken", [
    "gate.fail(new Error('no module'))",
    "(model.traits.state = new DataView(new ArrayBuffer(4)), gate.open())",
], ids=["no module", "state cannot be drawn"])  # fmt: skip
def test_the_stored_report_stays_when_its_view_cannot_come(hosted: Any, broken: str) -> None:
    page = hosted()
    with page.expect_console_message(lambda message: message.text.startswith("nbautograd:")):
        page.evaluate(broken)
    expect(page.get_by_text("the stored report")).to_be_visible()
    expect(page.locator(".nbag-live")).to_have_count(0)
    assert page.evaluate(LATE) == ["update"]


def test_an_end_before_the_module_is_there_draws_nothing(hosted: Any) -> None:
    page = hosted()
    page.evaluate("ended.forEach((listener) => listener())")
    page.evaluate("gate.open()")
    page.wait_for_function("globalThis[Symbol.for('nbautograd modules')].size")
    page.evaluate("Promise.all(globalThis[Symbol.for('nbautograd modules')].values())")
    expect(page.get_by_text("the stored report")).to_be_visible()
    expect(page.locator(".nbag-live")).to_have_count(0)
