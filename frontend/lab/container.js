// How JupyterLab loads the extension: a script that registers a container of webpack's module federation, by hand.
//
// JupyterLab's own builder would write the same from TypeScript with some hundred packages of npm. What it adds is the
// registration below and `shared`; both are what every prebuilt extension rests on (jupyterlab.readthedocs.io,
// "prebuilt extensions"), and tests/e2e/test_lab_extension.py fails where that changes.

import { plugin } from "./plugin.js";

/** @typedef {Record<string, {get: () => Promise<() => any>, loaded?: number}>} Versions */

/** @type {Record<string, Versions>} */
let scope = {};

/** The version of a module that the application itself runs with. @param {string} name @returns {Promise<any>} */
async function shared(name) {
  const versions = Object.values(scope[name] ?? {});
  const chosen = versions.find((version) => version.loaded) ?? versions[0];
  if (!chosen) throw new Error(`nbautograd: this application has no ${name}`);
  return (await chosen.get())();
}

const container = {
  /** @param {Record<string, Versions>} given */
  init(given) {
    scope = given;
  },
  async get() {
    const [apputils, codemirror, notebook, rendermime, translation, widgets, view, state] =
      await Promise.all(
        [
          "@jupyterlab/apputils",
          "@jupyterlab/codemirror",
          "@jupyterlab/notebook",
          "@jupyterlab/rendermime",
          "@jupyterlab/translation",
          "@lumino/widgets",
          "@codemirror/view",
          "@codemirror/state",
        ].map(shared),
      );
    const modules = {
      apputils,
      codemirror,
      notebook,
      rendermime,
      translation,
      widgets,
      view,
      state,
    };
    return () => ({ __esModule: true, default: [plugin(modules)] });
  },
};

const page = /** @type {{_JUPYTERLAB?: Record<string, unknown>}} */ (
  /** @type {unknown} */ (window)
);
page._JUPYTERLAB = { ...page._JUPYTERLAB, nbautograd: container };
