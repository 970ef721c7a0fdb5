// The commands of the palette, the Run menu and the shortcuts: each writes what a person would type, into the notebook.

import { words } from "./words.js";

/** @typedef {import("./jupyterlab").NotebookPanel} NotebookPanel */

const LOADED = /^\s*%(re)?load_ext\s+nbautograd\b/m;
const NAME = /[\p{L}_][\p{L}\p{N}_.]*/gu;

/** @typedef {{line?: string, above?: string, runs?: boolean, saves?: boolean}} Writes a cell below, or a line above the active cell */

/** The variable at the caret, or what is selected. @param {import("./jupyterlab").Cell | null} cell */
function selected(cell) {
  const state = cell?.editor?.editor.state;
  if (!state) return "";
  const { from, to, head } = state.selection.main;
  const text = state.doc.toString();
  if (from < to) return text.slice(from, to).trim();
  return (
    [...text.matchAll(NAME)].find(
      ({ 0: name, index }) => index <= head && head <= index + name.length,
    )?.[0] ?? ""
  );
}

/** @type {Record<string, (panel: NotebookPanel) => Writes | null>} by the command's name */
const WRITES = {
  check: () => ({ above: "%%autograd_function --inputs " }),
  audit: () => ({ above: "%%autograd_audit", runs: true }),
  explain: () => ({ line: "%autograd_explain --run" }),
  graph({ content }) {
    const name = selected(content.activeCell);
    return name ? { line: `%autograd_graph ${name}` } : null;
  },
  freeze: ({ context }) => ({
    line: `!nbautograd freeze "${context.path.split("/").pop()}"`,
    saves: true,
  }),
};

export class Commands {
  /**
   * @param {import("./jupyterlab").Application} app
   * @param {any} tracker
   * @param {import("./jupyterlab").Modules} modules
   * @param {string} language of the application
   */
  constructor(app, tracker, modules, language) {
    this.app = app;
    this.tracker = tracker;
    this.actions = modules.notebook.NotebookActions;
    this.say = words(language);
    /** @type {string[]} those of the palette */
    this.ids = [];
  }

  /** @param {import("./words.js").WordId} word @param {string} name @param {() => unknown} execute */
  add(word, name, execute) {
    const id = `nbautograd:${name}`;
    this.ids.push(id);
    this.app.commands.addCommand(id, {
      label: this.say(word),
      execute,
      isEnabled: () => Boolean(this.tracker.currentWidget),
    });
  }

  /** Those that write into the notebook. */
  addWriting() {
    for (const [name, writes] of Object.entries(WRITES)) {
      const word = /** @type {import("./words.js").WordId} */ (`command.${name}`);
      this.add(word, name, () => {
        const panel = this.tracker.currentWidget,
          written = panel && writes(panel);
        if (written) return this.write(panel, written);
      });
    }
  }

  /** @param {NotebookPanel} panel @param {Writes} written */
  async write(panel, { line, above, runs, saves }) {
    const { content } = panel,
      cell = content.activeCell;
    if (saves) await panel.context.save(); // what is frozen is the file
    if (line) {
      const loads = content.widgets.some(({ model }) => LOADED.test(model.sharedModel.getSource()));
      this.actions.insertBelow(content);
      const made = /** @type {import("./jupyterlab").Cell} */ (content.activeCell);
      made.model.sharedModel.setSource(loads ? line : `%load_ext nbautograd\n${line}`);
      return this.actions.runCells(content, [made], panel.sessionContext);
    }
    if (!above || cell?.model.type !== "code" || !cell.editor) return;
    const { sharedModel } = cell.model,
      source = sharedModel.getSource(),
      magic = above.split(" ")[0];
    if (!source.startsWith(magic))
      sharedModel.transact(() => sharedModel.updateSource(0, 0, `${above}\n`));
    if (runs) return this.actions.runCells(content, [cell], panel.sessionContext);
    content.mode = "edit"; // which inputs is for the person to say
    cell.editor.focus();
    const { doc } = cell.editor.editor.state;
    cell.editor.editor.dispatch({ selection: { anchor: doc.line(1).to } });
  }
}
