// The marks of one notebook: read from the outputs of its cells, each for the cell that holds the checked text.

import { beginOf, cellOf } from "./place.js";
import { words } from "./words.js";

/** @typedef {import("./jupyterlab").CellModel} CellModel */
/** @typedef {import("./jupyterlab").NotebookPanel} NotebookPanel */
/** @typedef {import("./marks").MarksState} MarksState */

export const MIME = "application/vnd.nbautograd.marks+json";

/**
 * A mark that belongs to a cell.
 * @typedef {object} Found
 * @property {import("./marks").EditorMark} mark
 * @property {import("./marks").CheckedText} checked
 * @property {string} language of its sentences
 * @property {CellModel} from the cell whose output says it
 * @property {NotebookMarks} notebook
 */

export class NotebookMarks {
  /**
   * @param {NotebookPanel} panel
   * @param {(cell: string, found: Found[]) => void} show
   * @param {(cell: CellModel, ms: number) => void} ended told of each run of a cell
   */
  constructor(panel, show, ended) {
    this.panel = panel;
    this.show = show;
    this.ended = ended;
    /** @type {Map<CellModel, {changed: () => void, outputs: MarksState[]}>} of every code cell */
    this.read = new Map();
    /** @type {Map<string, Found[]>} by the cell's id */
    this.found = new Map();
    this.cells.changed.connect(() => this.follow());
    this.follow();
  }

  get cells() {
    return this.panel.content.model.cells;
  }

  /** @returns {CellModel[]} */
  get all() {
    return Array.from({ length: this.cells.length }, (_, k) => this.cells.get(k));
  }

  /** The cell that holds a checked text. @param {import("./marks").CheckedText} checked */
  home(checked) {
    const shared = cellOf(
      this.all.map((cell) => cell.sharedModel),
      checked,
    );
    return this.all.find((cell) => cell.sharedModel === shared);
  }

  /** Listen to the outputs of cells that came, forget those that went. */
  follow() {
    const cells = this.all.filter((cell) => cell.type === "code");
    for (const [cell, { changed }] of this.read)
      if (!cells.includes(cell)) {
        cell.outputs?.changed.disconnect(changed);
        cell.stateChanged.disconnect(changed);
        this.read.delete(cell);
      }
    for (const cell of cells)
      if (!this.read.has(cell)) {
        /** @type {number | undefined} */
        let began;
        const changed = () =>
          void Promise.resolve().then(() => {
            // its state is set after its outputs
            this.reread(cell);
            if (cell.executionState === "running") began ??= performance.now();
            else if (began !== undefined) {
              this.ended(cell, performance.now() - began);
              began = undefined;
            }
          });
        this.read.set(cell, { changed, outputs: outputsOf(cell) });
        cell.outputs?.changed.connect(changed);
        cell.stateChanged.connect(changed);
        cell.contentChanged.connect(() => this.again());
      }
    this.refresh();
  }

  /** Take the marks of a cell's outputs. A run begins by clearing them: till it ends the old marks stay, and nothing moves.
   * @param {CellModel} cell
   */
  reread(cell) {
    const known = this.read.get(cell),
      outputs = outputsOf(cell);
    if (!known || (!outputs.length && cell.executionState === "running")) return;
    known.outputs = outputs;
    this.refresh();
  }

  /** A cell without an id of its own may be the only one with a text, or no longer, after any edit. */
  again() {
    const guesses = [...this.read.values()].some(({ outputs }) =>
      outputs.some((output) => output.checked.some((checked) => !checked.cell)),
    );
    if (guesses) this.refresh();
    this.age();
  }

  /** Say above outputs whose checked text was edited since, or edited back, that they are of another one. */
  age() {
    for (const { model, node } of this.panel.content.widgets) {
      const old = this.read.get(model)?.outputs.find(({ checked }) =>
        checked.some((text) => {
          const home = this.home(text);
          return home && !beginOf(home.sharedModel.getSource().split("\n"), text);
        }),
      );
      const area = /** @type {HTMLElement | null} */ (node.querySelector(".jp-OutputArea"));
      if (area) area.dataset.nbagOld = old ? words(old.language)("refused_changed") : "";
    }
  }

  refresh() {
    const cells = this.all.map((model) => model.sharedModel);
    /** @type {Map<string, Found[]>} */
    const found = new Map();
    const seen = new Set();
    for (const [from, { outputs }] of this.read)
      for (const { checked, marks, language } of outputs) {
        const homes = checked.map((text) => cellOf(cells, text));
        for (const mark of marks) {
          const home = homes[mark.checked],
            text = checked[mark.checked],
            name = JSON.stringify([home?.id, text.text, { ...mark, checked: 0 }]);
          if (!home || seen.has(name)) continue; // two outputs say the same of it
          seen.add(name);
          const others = found.get(home.id) ?? [];
          found.set(home.id, [...others, { mark, checked: text, language, from, notebook: this }]);
        }
      }
    const before = this.found;
    this.found = found;
    for (const id of new Set([...before.keys(), ...found.keys()]))
      if (!same(before.get(id), found.get(id))) this.show(id, found.get(id) ?? []);
    this.age();
  }
}

/** @param {CellModel} cell @returns {MarksState[]} */
function outputsOf({ outputs }) {
  if (!outputs) return [];
  return Array.from({ length: outputs.length }, (_, k) => outputs.get(k).data[MIME]).filter(
    (data) => data && Array.isArray(data.marks) && Array.isArray(data.checked),
  );
}

/** @param {Found[]} [one] @param {Found[]} [other] */
function same(one = [], other = []) {
  return (
    one.length === other.length &&
    one.every(({ mark, checked, from }, k) => {
      const next = other[k];
      return mark === next.mark && checked === next.checked && from === next.from;
    })
  );
}
