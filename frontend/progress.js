// The bar of long work: how far it is, and a button that ends it, by a message or, where that is not heard, by the server.

import { verdictWord } from "./blocks.js";
import { button, el, prose } from "./dom.js";
import { time } from "./formats.js";
import { ask, decode } from "./wire.js";

/** @typedef {import("./types").Page} Page */

const SOON = 1200; // ms in which a kernel that hears messages while it works has answered

/**
 * @param {Page} page
 * @param {import("./states").ProgressState} state
 */
export function progressView(page, state) {
  const words = el("span"),
    seconds = el("span", "faint"),
    filled = el("div"),
    verdict = el("div", { "aria-live": "polite" }),
    said = el("span", { class: "faint", role: "status" });
  const track = el(
    "div",
    {
      class: "progress",
      role: "progressbar",
      "aria-label": page.t("progress"),
      "aria-valuemin": "0",
      "aria-valuemax": "100",
    },
    filled,
  );
  let stopping = false,
    over = false;
  const stop = button(page.t("stop"), () => {
    if (stopping) return;
    stopping = true;
    stop.setAttribute("aria-disabled", "true");
    said.textContent = page.t("stopping");
    heard("stop")
      .catch(() => interrupt(state.kernel ?? ""))
      .catch(own);
  });
  /** @param {"ready" | "stop"} kind */
  function heard(kind) {
    return ask(page.model, { kind }, page.signal, "", SOON);
  }
  function own() {
    if (page.signal.aborted) return;
    stop.style.visibility = "hidden"; // its room stays, so that nothing jumps
    said.textContent = page.t("own_stop");
  }
  function again() {
    stopping = false;
    stop.removeAttribute("aria-disabled");
    stop.style.visibility = said.textContent = "";
  }
  /** @param {import("./states").ProgressState} now */
  function show(now) {
    const { percent } = now;
    const parts = [percent === null ? "" : `${percent} %`, now.what, timeLeft(page, now.left)];
    words.replaceChildren(prose(parts.filter(Boolean).join(" · ")));
    if (now.headline && !verdict.childNodes.length)
      verdict.append(
        verdictWord(page, now.tone, "verdict"),
        " ",
        el("strong", null, prose(now.headline)),
      );
    else if (!now.headline) verdict.replaceChildren();
    seconds.textContent = page.t("progress_time", { seconds: now.seconds });
    track.classList.toggle("unknown", percent === null && !now.over);
    filled.style.width = `${percent ?? 100}%`;
    if (percent === null) track.removeAttribute("aria-valuenow");
    else track.setAttribute("aria-valuenow", String(percent));
    if (over && !now.over) again();
    if (now.over) stop.style.visibility = "hidden";
    over = now.over;
  }
  async function follow() {
    const latest = page.model.get("state"),
      now = await decode(latest);
    if (latest === page.model.get("state")) show(now);
  }
  page.model.on("change:state", follow);
  page.signal.addEventListener("abort", () => page.model.off("change:state", follow), {
    once: true,
  });
  show(state);
  heard("ready").catch(() => (server() && state.kernel ? undefined : own()));
  return el(
    "div",
    { class: "stack", role: "group", "aria-label": page.t("progress") },
    verdict,
    el("div", "bar", words, seconds, el("span", "grow"), said, stop),
    track,
  );
}

/** @param {Page} page @param {number | null} seconds that the rest takes */
function timeLeft(page, seconds) {
  if (seconds === null) return "";
  return seconds ? page.t("time_left", { time: time(seconds) }) : page.t("soon");
}

/** What a Jupyter server writes into its pages; nothing elsewhere. */
function server() {
  try {
    return JSON.parse(document.getElementById("jupyter-config-data")?.textContent ?? "null");
  } catch {
    return null;
  }
}

/** @param {string} kernel its id, as its own server knows it */
async function interrupt(kernel) {
  const { baseUrl, token } = server();
  const cookie = document.cookie.match(/(?:^|; *)_xsrf=([^;]*)/)?.[1];
  const headers = {
    ...(token && { Authorization: `token ${token}` }),
    ...(cookie && { "X-XSRFToken": decodeURIComponent(cookie) }),
  };
  const answer = await fetch(`${baseUrl}api/kernels/${encodeURIComponent(kernel)}/interrupt`, {
    method: "POST",
    headers,
    credentials: "same-origin",
  });
  if (!answer.ok) throw new Error(answer.statusText);
}
