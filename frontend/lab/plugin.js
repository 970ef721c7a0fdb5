// The plugin: marks in the editors of notebooks, and the commands that go with them.

import { applyChange } from "./apply.js";
import { Commands } from "./commands.js";
import { EditorMarks, markAtCaret } from "./editor.js";
import { CARD, explanationOutput } from "./explanation_card.js";
import { MIME, NotebookMarks } from "./notebook_marks.js";
import { beginOf } from "./place.js";
import { words } from "./words.js";
import sheet from "./lab.css";

/** @typedef {import("./jupyterlab").Application} Application */
/** @typedef {import("./jupyterlab").EditorView} EditorView */
/** @typedef {import("./notebook_marks.js").Found} Found */

const LONG = 10_000; // ms of a check from which on somebody has gone elsewhere

class Extension {
  /**
   * @param {Application} app @param {import("./jupyterlab").Modules} modules
   * @param {any} tracker @param {any} outputs the registry of what shows outputs
   */
  constructor(app, modules, tracker, outputs) {
    this.app = app;
    this.modules = modules;
    this.tracker = tracker;
    this.Explanation = explanationOutput(modules.widgets, outputs, () =>
      tracker.filter(() => true),
    );
    /** @type {Map<string, Set<EditorView>>} by the cell's id: a notebook may be open twice */
    this.views = new Map();
    /** @type {Map<string, Found[]>} */
    this.found = new Map();
    this.marks = new EditorMarks(modules, (placed, run) =>
      applyChange(placed.found, run, modules.notebook),
    );
  }

  /** The editor of a cell, as CodeMirror's extension. @param {{model: any}} options */
  editor({ model }) {
    const cell = model.sharedModel;
    if (cell?.cell_type !== "code") return [];
    const follow = this.modules.view.ViewPlugin.define((/** @type {EditorView} */ view) => {
      const views = this.views.get(cell.id) ?? new Set();
      this.views.set(cell.id, views.add(view));
      const given = this.found.get(cell.id);
      if (given) queueMicrotask(() => this.marks.show(view, given)); // not while it is being made
      return { destroy: () => views.delete(view) };
    });
    return [this.marks.extension, follow];
  }

  /** @param {import("./jupyterlab").NotebookPanel} panel */
  async follow(panel) {
    const createRenderer = (/** @type {object} */ options) => new this.Explanation(options);
    // before their HTML; a notebook has a registry of its own, which is copied when it is opened
    panel.content.rendermime.addFactory({ safe: true, mimeTypes: [CARD], createRenderer }, 0);
    await panel.context.ready;
    new NotebookMarks(
      panel,
      (cell, found) => {
        this.found.set(cell, found);
        for (const view of this.views.get(cell) ?? []) this.marks.show(view, found);
      },
      (cell, ms) => this.tell(panel, cell, ms),
    );
  }

  /**
   * Tell of a long check that ends where nobody looks.
   * @param {import("./jupyterlab").NotebookPanel} panel
   * @param {import("./jupyterlab").CellModel} cell
   * @param {number} ms
   */
  tell({ id, content }, cell, ms) {
    if (ms < LONG || (this.app.shell.currentWidget?.id === id && !document.hidden)) return;
    const { outputs } = cell,
      all = Array.from({ length: outputs?.length ?? 0 }, (_, k) => outputs?.get(k).data ?? {}),
      report = all.find((data) => MIME in data);
    if (!report) return;
    const label = words(report[MIME].language)("open");
    const callback = () => {
      this.app.shell.activateById(id);
      content.widgets.find(({ model }) => model === cell)?.node.scrollIntoView({ block: "center" });
    };
    this.modules.apputils.Notification.info(
      String(report["text/plain"]).split("\n")[0].replaceAll("`", ""),
      {
        autoClose: false,
        actions: [{ label, callback }],
      },
    );
  }

  /** The mark at the caret of the active cell. */
  here() {
    const cell = this.tracker.currentWidget?.content.activeCell,
      view = cell?.editor?.editor;
    const placed = view && markAtCaret(view, this.marks.field);
    return placed ? { view, placed } : null;
  }

  /** @param {boolean} run */
  apply(run) {
    const at = this.here();
    if (at) applyChange(at.placed.found, run, this.modules.notebook);
  }

  /**
   * Apply the change of a report, asked for by its button.
   * @param {CustomEvent} event
   */
  fromReport(event) {
    const { change, run } = event.detail;
    const cell = event
      .composedPath()
      .find((node) => node instanceof HTMLElement && node.classList.contains("jp-Cell"));
    const all = [...this.found.values()].flat(),
      found = all.find(
        ({ mark, from, notebook }) =>
          notebook.panel.content.widgets.find(({ node }) => node === cell)?.model === from &&
          mark.change?.line === change.line &&
          bare(mark.change?.after ?? "") === bare(change.after),
      );
    event.detail.refused = found
      ? applyChange(found, run, this.modules.notebook)
      : words(document.documentElement.lang)("refused_gone");
  }

  /** Go to the next marked line of the notebook behind the caret, and open its card. */
  async next() {
    const content = this.tracker.currentWidget?.content;
    if (!content) return;
    const editing = content.mode === "edit",
      caret = editing ? caretLine(content.activeCell) : 0;
    const marked = content.widgets.flatMap((/** @type {any} */ cell, /** @type {number} */ at) =>
      (this.found.get(cell.model.sharedModel.id) ?? []).flatMap((found) => {
        const begin = beginOf(cell.model.sharedModel.getSource().split("\n"), found.checked),
          line = found.mark.line + begin - found.checked.first_line;
        return begin ? [{ at, cell, found, line }] : [];
      }),
    );
    marked.sort((/** @type {any} */ a, /** @type {any} */ b) => a.at - b.at || a.line - b.line);
    const here = content.activeCellIndex,
      behind = marked.find(
        (/** @type {any} */ one) => one.at > here || (one.at === here && one.line > caret),
      ),
      next = behind ?? marked[0];
    if (!next) return;
    content.activeCellIndex = next.at;
    content.mode = "edit";
    await next.cell.ready;
    const { editor } = next.cell,
      { to } = editor.editor.state.doc.line(next.line);
    editor.focus();
    editor.editor.dispatch({
      selection: { anchor: to },
      scrollIntoView: true,
      effects: this.marks.effects.open.of(next.found),
    });
  }

  release() {
    const at = this.here();
    at?.view.dispatch({ effects: this.marks.effects.release.of(at.placed.found) });
  }
}

/** A text without the margins of its lines, which a report leaves out. @param {string} text */
const bare = (text) =>
  text
    .trim()
    .split("\n")
    .map((row) => row.trim())
    .join("\n");

/** @param {import("./jupyterlab").Cell | null} cell */
function caretLine(cell) {
  const state = cell?.editor?.editor.state;
  return state ? state.doc.lineAt(state.selection.main.head).number : 0;
}

/** @param {import("./jupyterlab").Modules} modules */
export function plugin(modules) {
  const { apputils, codemirror, notebook, rendermime, translation } = modules;
  return {
    id: "nbautograd:plugin",
    autoStart: true,
    requires: [
      notebook.INotebookTracker,
      codemirror.IEditorExtensionRegistry,
      rendermime.IRenderMimeRegistry,
    ],
    optional: [apputils.ICommandPalette, translation.ITranslator],
    /**
     * @param {Application} app @param {any} tracker @param {any} registry @param {any} outputs
     * @param {any} palette which Notebook 7 may lack @param {any} translator
     */
    activate(app, tracker, registry, outputs, palette, translator) {
      document.head.append(Object.assign(document.createElement("style"), { textContent: sheet }));
      const ours = new Extension(app, modules, tracker, outputs);
      const { EditorExtensionRegistry } = codemirror;
      registry.addExtension({
        name: "nbautograd:marks",
        factory: (/** @type {any} */ options) =>
          EditorExtensionRegistry.createImmutableExtension(ours.editor(options)),
      });
      tracker.forEach((/** @type {any} */ panel) => void ours.follow(panel));
      tracker.widgetAdded.connect(
        (/** @type {any} */ _, /** @type {any} */ panel) => void ours.follow(panel),
      );
      const language = translator?.languageCode?.startsWith("zh") ? "zh" : "en";
      const commands = new Commands(app, tracker, modules, language);
      commands.addWriting();
      commands.add("command.next", "next-finding", () => ours.next());
      commands.add("command.apply", "apply", () => ours.apply(false));
      commands.add("command.apply_and_run", "apply-and-run", () => ours.apply(true));
      commands.add("command.release", "release", () => ours.release());
      for (const command of commands.ids) palette?.addItem({ command, category: "nbautograd" });
      document.addEventListener("nbautograd:apply", (event) =>
        ours.fromReport(/** @type {CustomEvent} */ (event)),
      );
      document.documentElement.dataset.nbautogradLab = "1";
    },
  };
}
