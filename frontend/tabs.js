// Tabs as the ARIA practices describe them: one stop for Tab, arrows move and open, panels are made when first opened.

import { el, keys } from "./dom.js";

/** @typedef {import("./types").Page} Page */

let made = 0;

/**
 * @param {Page} page
 * @param {{id: string, make: () => Node}[]} parts
 */
export function tabs(page, parts) {
  const prefix = `nbag${++made}`;
  page.tabs = parts.map((part) => part.id);
  const buttons = parts.map(({ id }) =>
    el(
      "button",
      {
        role: "tab",
        id: `${prefix}-${id}`,
        "aria-controls": `${prefix}-${id}-panel`,
        class: "tab",
      },
      page.t(`part.${id}`),
    ),
  );
  const panels = parts.map(({ id }) =>
    el("div", {
      role: "tabpanel",
      id: `${prefix}-${id}-panel`,
      "aria-labelledby": `${prefix}-${id}`,
      tabindex: "0",
      class: "panel",
      hidden: true,
    }),
  );
  const box = el("div", "panels", ...panels);
  /** @param {string} wanted */
  function open(wanted) {
    const chosen = Math.max(0, page.tabs.indexOf(wanted));
    buttons.forEach((button, k) => {
      button.setAttribute("aria-selected", String(k === chosen));
      button.tabIndex = k === chosen ? 0 : -1;
      panels[k].hidden = k !== chosen;
    });
    if (!panels[chosen].childNodes.length) panels[chosen].append(parts[chosen].make());
  }
  /** @param {number} k */
  function go(k) {
    const next = (k + buttons.length) % buttons.length;
    page.show(page.tabs[next]);
    buttons[next].focus();
  }
  const now = () => buttons.findIndex((button) => button.getAttribute("aria-selected") === "true");
  buttons.forEach((button, k) => button.addEventListener("click", () => page.show(page.tabs[k])));
  const list = el(
    "div",
    { role: "tablist", class: "tabs", "aria-label": page.t("tabs") },
    ...buttons,
  );
  keys(list, {
    ArrowLeft: () => go(now() - 1),
    ArrowRight: () => go(now() + 1),
    Home: () => go(0),
    End: () => go(-1),
  });
  page.onShow(open);
  open(page.model.get("tab"));
  return el("div", "tabbed", list, box);
}
