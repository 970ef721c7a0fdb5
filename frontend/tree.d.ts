// Written by frontend/generate.py from nbautograd/views/document.py: what views/to_json.py makes of it.

/** A word on a coloured ground; its colour never says more than the word. */
export interface Chip {
  kind: "chip";
  words: string;
  tone: "right" | "wrong" | "cannot tell" | "meant" | "unchecked" | "bug" | "lint" | "note";
}

/** Words that stand out; their backticks become code, as those of every sentence do. */
export interface Strong {
  kind: "strong";
  words: string;
}

/** A name or a piece of source, as it is written. */
export interface Code {
  kind: "code";
  words: string;
}

/** Words that step back behind those beside them. */
export interface Faint {
  kind: "faint";
  words: string;
}

/** Words that a page underlines with dots, and explains where the pointer rests on them; text shows the words. */
export interface Term {
  kind: "term";
  words: string;
  meaning: string;
}

/** Words in a cell whose backticks become code, as those of a paragraph do. */
export interface Sentence {
  kind: "sentence";
  words: string;
}

/** Plain words, each on a line of its own; text writes them in one line. */
export interface Lines {
  kind: "lines";
  lines: string[];
}

/** The line in a cell that leads to what stands inside the row of a call above; nothing at depth 0. */
export interface Branch {
  kind: "branch";
  depth: number;
}

/** A way to another part of the same live view or notebook, or to a page; a stored report shows the last two. */
export interface Link {
  kind: "link";
  words: string;
  tab?: string;
  block?: [number, number] | null;
  line?: number | null;
  place?: string;
  url?: string;
}

/** The name of a block of a Jacobian; in a live view a way to the block. */
export interface BlockName {
  kind: "blockname";
  words: string;
  block: [number, number];
  tab?: string;
}

/** A sentence or two; backticks in plain words become code. */
export interface Paragraph {
  kind: "paragraph";
  spans: Span[];
  look?: "" | "small" | "faint" | "head";
}

/** Rows and columns; a column with nothing in it under its heading is left out. */
export interface Table {
  kind: "table";
  header: Cell[];
  rows: Cell[][];
  caption?: string;
  right?: number[];
  wrap?: boolean;
}

/** A part that can be folded; text has no folds and shows what ``in_text`` says. */
export interface Fold {
  kind: "fold";
  title: Span;
  body: Block[];
  beside?: string;
  opened?: boolean;
  strong?: boolean;
}

/** Lines that go and lines that come instead. */
export interface Change {
  kind: "change";
  before: string;
  after: string;
  note?: string;
  tried?: boolean;
  line?: number | null;
}

/** Text as it was printed, or written. */
export interface Verbatim {
  kind: "verbatim";
  words: string;
}

/** Blocks that belong together under what stands before them, such as one finding; text indents them. */
export interface Item {
  kind: "item";
  body: Block[];
}

/** The answer: blocks beside a bar in the verdict's colour; links lead to it by the name of its place. */
export interface Card {
  kind: "card";
  tone: "right" | "wrong" | "cannot tell" | "meant" | "unchecked" | "bug" | "lint" | "note";
  body: Block[];
  place?: string;
}

/** Documents beside each other where there is room, else below each other. */
export interface Beside {
  kind: "beside";
  parts: Block[][];
}

/** A small heat map; `exact` where each of its cells is one element, drawn on a scale of its own without `most`. */
export interface Thumbnail {
  kind: "thumbnail";
  alt: string;
  array: import("./states").Packed;
  exact: boolean;
  name: string;
  shape: number[];
  sampled: boolean;
  pooling: import("./states").Pooling | null;
  most?: number;
  floor?: number;
}

/** The picture of a graph under its name; without a layout where it is too large. */
export interface Drawing {
  kind: "drawing";
  title: string;
  layout: import("./states").Layout | null;
}

/** A block of a Jacobian with its heat maps. */
export interface Heatmaps {
  kind: "heatmaps";
  block: import("./types").WholeBlock;
}

export type Span = string | Chip | Strong | Code | Faint | Term | Sentence | Lines | Branch | Thumbnail | Link | BlockName;
export type Cell = Span | Span[];
export type Block = Paragraph | Table | Fold | Change | Verbatim | Item | Card | Drawing | Beside | Heatmaps;
