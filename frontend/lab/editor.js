// Marks in the editor of a cell: underlined, a sign in the gutter, a card on hover, the change below the line.

import { el, prose } from "../dom.js";
import { cardOf, comingLines, SIGNS } from "./card.js";
import { beginOf } from "./place.js";
import { words } from "./words.js";

/** @typedef {import("./notebook_marks.js").Found} Found */
/** @typedef {import("./jupyterlab").EditorView} EditorView */

/**
 * A mark where it stands now.
 * @typedef {object} Placed
 * @property {Found} found
 * @property {number} line from 1
 * @property {number} from where the lines begin that it is about
 * @property {number} to where they end
 * @property {number} change the first line that its change replaces, 0 where there is none
 * @property {boolean} exact whether the text is still the one that was checked
 */
/**
 * @typedef {object} Marks
 * @property {Found[]} given
 * @property {Placed[]} placed
 * @property {Found[]} released whose change is no longer shown below its line
 * @property {Found | null} opened whose card is open
 */
/** @typedef {(placed: Placed, run: boolean) => string} Apply returns why not, or nothing */

/** Outputs of a notebook that is not trusted mark and never apply. @param {Placed} placed */
export const applies = ({ found, exact }) =>
  exact && found.from.trusted && Boolean(found.mark.change);

/**
 * Where marks stand in a text; those whose checked text it does not hold are left out.
 * @param {import("./jupyterlab").Doc} doc
 * @param {Found[]} given
 * @returns {Placed[]}
 */
function place(doc, given) {
  const lines = given.length ? doc.toString().split("\n") : [];
  return given.flatMap((found) => {
    const begin = beginOf(lines, found.checked);
    if (!begin) return [];
    const moved = begin - found.checked.first_line,
      line = found.mark.line + moved,
      goes = found.mark.change,
      change = goes ? goes.line + moved : 0,
      last = goes ? change + goes.before.split("\n").length - 1 : line;
    const from = doc.line(Math.min(line, change || line)).from,
      to = doc.line(Math.max(line, last)).to;
    return [{ found, line, from, to, change, exact: true }];
  });
}

/**
 * Where marks stand after an edit: where the checked text stands, else moved along, but for those whose lines were edited.
 * @param {Marks} marks
 * @param {import("./jupyterlab").Transaction} edit
 * @returns {Placed[]}
 */
function afterEdit({ given, placed }, edit) {
  const exact = place(edit.newDoc, given);
  const moved = placed.flatMap((one) => {
    if (exact.some(({ found }) => found === one.found)) return [];
    if (edit.changes.touchesRange(one.from, one.to)) return [];
    const start = edit.startState.doc.line(one.line).from,
      line = edit.newDoc.lineAt(edit.changes.mapPos(start, 1)).number;
    const [from, to] = [one.from, one.to].map((at) => edit.changes.mapPos(at, 1));
    return [{ ...one, line, from, to, change: 0, exact: false }];
  });
  return [...exact, ...moved];
}

/** What an editor shows, made of the classes of the application's own CodeMirror. */
export class EditorMarks {
  /**
   * @param {{view: any, state: any}} codemirror
   * @param {Apply} apply
   */
  constructor({ view, state }, apply) {
    this.view = view;
    this.state = state;
    this.apply = apply;
    this.drawn = drawnClasses(view, apply);
    const define = () => state.StateEffect.define();
    /** @type {{set: any, release: any, open: any}} */
    this.effects = { set: define(), release: define(), open: define() };
    this.signs = new state.Compartment();
    this.field = this.stateField();
    this.gutter = this.gutterOfSigns();
    const hover = view.hoverTooltip((/** @type {EditorView} */ editor, /** @type {number} */ pos) =>
      this.hovered(editor, pos),
    );
    // where the caret is on a marked line, the key that applies works: the classes are what shortcuts select
    const caret = view.EditorView.updateListener.of((/** @type {any} */ update) => {
      const at = markAtCaret(update.view, this.field);
      update.view.dom.parentElement?.classList.toggle("nbag-at-mark", Boolean(at));
    });
    this.extension = [this.field, hover, caret, this.signs.of([])];
  }

  /** @param {EditorView} view @param {Found[]} given */
  show(view, given) {
    const gutters = this.signs.reconfigure(given.length ? this.gutter : []);
    view.dispatch({ effects: [this.effects.set.of(given), gutters] });
  }

  /** @param {any} state @returns {Marks} */
  of(state) {
    return state.field(this.field);
  }

  stateField() {
    const { EditorView, showTooltip } = this.view;
    return this.state.StateField.define({
      /** @returns {Marks} */
      create: () => ({ given: [], placed: [], released: [], opened: null }),
      /** @param {Marks} marks @param {import("./jupyterlab").Transaction} change */
      update: (marks, change) => this.updated(marks, change),
      /** @param {any} own */
      provide: (own) => [
        EditorView.decorations.compute([own], (/** @type {any} */ state) =>
          this.decorations(state.field(own), state.doc),
        ),
        showTooltip.compute([own], (/** @type {any} */ state) => {
          const { placed, opened } = /** @type {Marks} */ (state.field(own)),
            one = placed.find(({ found }) => found === opened);
          return one ? this.tooltip(one, state.doc.line(one.line).from) : null;
        }),
      ],
    });
  }

  /** @param {Marks} marks @param {import("./jupyterlab").Transaction} change @returns {Marks} */
  updated(marks, change) {
    const { set, release, open } = this.effects;
    let next = marks;
    if (change.docChanged) next = { ...next, placed: afterEdit(next, change), opened: null };
    else if (change.selection) next = { ...next, opened: null };
    for (const effect of change.effects) {
      const { value } = effect,
        released = next.released.filter((one) => one !== value);
      if (effect.is(set))
        next = { given: value, placed: place(change.newDoc, value), released: [], opened: null };
      if (effect.is(release)) next = { ...next, released: [...released, value], opened: null };
      if (effect.is(open)) next = { ...next, released, opened: value };
    }
    return next;
  }

  /** @param {Marks} marks @param {import("./jupyterlab").Doc} doc */
  decorations({ placed, released }, doc) {
    const { Decoration } = this.view;
    const drawn = placed.flatMap((one) => {
      const { mark } = one.found,
        { from, to } = doc.line(one.line),
        [begin, end] = mark.columns;
      const underlined = Decoration.mark({ class: `nbag-under nbag-${mark.tone}` });
      const ranges = [underlined.range(from + begin, Math.min(to, from + end))];
      if (applies(one) && !released.includes(one.found)) {
        const widget = new this.drawn.Ghost(one),
          ghost = Decoration.widget({ widget, block: true, side: 1 });
        ranges.push(ghost.range(doc.line(one.change + changeRows(one) - 1).to));
      }
      return ranges.filter((range) => range.from < range.to || range.value.spec.block);
    });
    return Decoration.set(drawn, true);
  }

  /** @param {Placed} placed @param {number} pos */
  tooltip(placed, pos) {
    /** @param {boolean} run */
    const apply = (run) => this.apply(placed, run);
    return {
      pos,
      above: false, // the lines above say what the marked one is made of; the change stands in the card
      create: (/** @type {EditorView} */ view) => ({
        dom: el("div", null, cardOf(placed, apply, markAtCaret(view, this.field) === placed)),
      }),
    };
  }

  /** @param {EditorView} view @param {number} pos the card of the mark that the pointer is on */
  hovered(view, pos) {
    const { number, from } = view.state.doc.lineAt(pos),
      one = this.of(view.state).placed.find(({ line }) => line === number);
    return one ? this.tooltip(one, from) : null;
  }

  gutterOfSigns() {
    return this.view.gutter({
      class: "nbag-gutter",
      /** @param {EditorView} view */
      markers: ({ state }) => {
        /** @type {Map<string, any>} two outputs may say of a line what differs in its words alone */
        const signs = new Map();
        for (const { found, line } of this.of(state).placed)
          signs.set(
            `${line} ${found.mark.tone}`,
            new this.drawn.Sign(found.mark).range(state.doc.line(line).from),
          );
        const ranges = [...signs.values()];
        return this.state.RangeSet.of(ranges, true);
      },
      domEventHandlers: {
        /** @param {EditorView} view @param {{from: number}} block */
        mousedown: (view, block) => {
          const one = this.of(view.state).placed.find(
            ({ line }) => view.state.doc.line(line).from === block.from,
          );
          if (one) view.dispatch({ effects: this.effects.open.of(one.found) });
          return Boolean(one);
        },
      },
    });
  }
}

/**
 * The change below a line, and the sign beside one.
 * @param {any} view the application's CodeMirror
 * @param {Apply} apply
 */
function drawnClasses({ WidgetType, GutterMarker }, apply) {
  class Ghost extends WidgetType {
    /** @param {Placed} placed */
    constructor(placed) {
      super();
      this.placed = placed;
    }
    /** @param {Ghost} other */
    eq(other) {
      return other.placed.found === this.placed.found;
    }
    toDOM() {
      return ghostOf(this.placed, apply);
    }
  }
  class Sign extends GutterMarker {
    /** @param {import("./marks").EditorMark} mark */
    constructor(mark) {
      super();
      this.mark = mark;
    }
    /** @param {Sign} other */
    eq(other) {
      return other.mark === this.mark;
    }
    toDOM() {
      return el("span", `nbag-sign nbag-${this.mark.tone}`, SIGNS[this.mark.tone]);
    }
  }
  return { Ghost, Sign };
}

/** @param {Placed} placed */
const changeRows = ({ found }) => found.mark.change?.before.split("\n").length ?? 0;

/**
 * The mark at the caret whose change is shown below its line.
 * @param {EditorView} view
 * @param {any} field
 * @returns {Placed | undefined}
 */
export function markAtCaret(view, field) {
  const { doc, selection } = view.state,
    { placed, released } = /** @type {Marks} */ (view.state.field(field)),
    line = doc.lineAt(selection.main.head).number;
  return placed.find(
    (one) =>
      applies(one) &&
      !released.includes(one.found) &&
      (one.line === line || (line >= one.change && line < one.change + changeRows(one))),
  );
}

/** @param {Placed} placed @param {Apply} apply */
function ghostOf(placed, apply) {
  const { mark, language } = placed.found,
    change = /** @type {import("./marks").EditorChange} */ (mark.change),
    say = words(language);
  const row = el(
    "div",
    { class: "nbag-ghost", role: "note", "aria-label": say("ghost") },
    el("code", null, ...comingLines(change)),
    el("span", "nbag-note", prose(change.note)),
    el("kbd", "nbag-key", "Tab"),
  );
  row.addEventListener("mousedown", (event) => {
    event.preventDefault();
    apply(placed, false);
  });
  return row;
}
