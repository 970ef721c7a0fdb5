// Written by frontend/generate.py from nbautograd/widgets/marks.py.

/** Lines of a cell as they were when they were checked; a mark is true of them and of nothing else. */
export interface CheckedText {
  cell: string;
  first_line: number;
  text: string;
}

/** Change that mends a line. */
export interface EditorChange {
  line: number;
  before: string;
  after: string;
  lit: [number, number, number][];
  note: string;
}

/** What is said of one line. */
export interface EditorMark {
  tone: "bug" | "risk" | "explained";
  checked: number;
  line: number;
  columns: [number, number];
  kind: string;
  message: string;
  change?: EditorChange;
}

/** All that one output says of lines. */
export interface MarksState {
  language: string;
  checked: CheckedText[];
  marks: EditorMark[];
}

/** One of the user's lines that an explanation names. */
export interface CardRow {
  role: string;
  place: string;
  text: string;
  main: boolean;
}

/** What stands in the place of a traceback: the answer, and the user's own lines in the order they ran. */
export interface ExplanationCard {
  language: string;
  answer: string;
  rows: CardRow[];
  change: EditorChange | null;
  find: string;
}
