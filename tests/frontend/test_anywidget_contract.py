"""anywidget's contract and no more: six methods of the model, two hooks, an end by function or by signal.

So the same module runs in JupyterLab, VS Code, Colab and marimo, whatever else their models and pages have.
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect
from widget_page import button, tab

pytestmark = pytest.mark.browser

CONTRACT = {"get", "set", "save_changes", "send", "on", "off"}
# a model that has the contract's methods alone, and writes down whatever else it is asked for
STRICT = """(contract) => {
  window.asked = new Set();
  const loose = nb.model;
  nb.model = new Proxy({}, { get: (_, name) => {
    asked.add(String(name));
    return contract.includes(name) ? (...args) => loose[name](...args) : undefined;
  } });
}"""
DRAW = """async (withSignal) => {
  nb.stop = new AbortController();
  const el = document.createElement("div");
  el.id = "view";
  document.body.append(el);
  const context = { model: nb.model, el, ...(withSignal && { signal: nb.stop.signal, experimental: undefined }) };
  nb.ends = [await nb.widget.initialize(context), await nb.widget.render(context)];
}"""
LISTENERS = "Object.values(nb.listeners).flat().length"


@pytest.mark.parametrize("by_signal", [True, False])
def test_the_contract_is_enough_and_ends_leave_nothing(load: Any, samples: Any, by_signal: bool) -> None:
    page = load(samples.report(wrong=True), anchor="nbag-1")
    page.evaluate(STRICT, sorted(CONTRACT))
    page.evaluate("() => document.body.append(Object.assign(document.createElement('div'), { className: 'nbag-1' }))")
    page.evaluate(DRAW, by_signal)
    expect(page.locator(".nbag-live")).to_have_count(2)
    first = page.locator(".nbag-live").first
    for one in first.get_by_role("tab").all():
        one.click()
    tab(first, "graph").click()
    button(first, "widgets.play").click()
    tab(first, "jacobian").click()
    page.get_by_role("application").first.focus()
    page.keyboard.press("Enter")
    # which only a frozen copy has, and only some front ends
    assert set(page.evaluate("[...asked]")) - CONTRACT <= {"knows", "widget_manager"}
    page.evaluate("nb.stop.abort()" if by_signal else "nb.ends.forEach((end) => end())")
    expect(page.locator(".nbag-live")).to_have_count(0)
    expect(page.locator("#view")).to_be_empty()
    assert page.evaluate(LISTENERS) == 0


def test_a_signal_that_came_too_early_draws_nothing(load: Any, samples: Any) -> None:
    page = load(samples.report())
    page.evaluate("""async () => {
      const stop = new AbortController(), { signal } = stop;
      const drawn = nb.widget.render({ model: nb.model, el: document.body, signal });
      stop.abort();
      await drawn;
    }""")
    expect(page.locator(".nbag-live")).to_have_count(0)
    assert page.evaluate(LISTENERS) == 0
