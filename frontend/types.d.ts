import type {
  Answers,
  BlockState,
  ElementsState,
  GraphState,
  Maps,
  Selection,
  Traits,
  Views,
} from "./states";

export type State = Views[keyof Views];

/** What comes back for a question; its answer is in the first of the buffers beside it. */
export interface Reply {
  id: number;
  error?: string;
}

/** Of a trait's change, which tells nothing, or of a message. */
export type Listener = (reply: Reply, buffers: DataView[]) => void;

/** What anywidget gives a module of the model that Python holds. */
export interface Model {
  get<K extends keyof Traits>(name: K): Traits[K];
  set<K extends keyof Traits>(name: K, value: Traits[K]): void;
  save_changes(): void;
  send(content: Question & { id: number }): void;
  on(event: string, listener: Listener): void;
  off(event: string, listener: Listener): void;
  /** Of the front end that shows the model; JupyterLab's and Notebook 7's has the notebook around it. */
  widget_manager?: { context?: { model?: { sharedModel?: Notebook } } };
  /** Only where no kernel is: whether the answer to a question was kept. */
  knows?(question: Question): boolean;
}

/** A notebook as its front end shares it between those who edit it. */
export interface Notebook {
  cells: { cell_type: string; getSource(): string }[];
  insertCell(at: number, cell: { cell_type: "code"; source: string }): unknown;
}

/** What may be asked of Python: the kind says which answer comes. */
export interface Question<K extends keyof Answers = keyof Answers> {
  kind: K;
  [more: string]: unknown;
}

export type { Selection };

/** What every view gets: the words, the colours, the selection, and when to stop. */
export interface Page {
  model: Model;
  root: HTMLElement;
  signal: AbortSignal;
  /** Whether what is drawn stands in no output, and so marks no line of an editor. */
  unmarked?: boolean;
  t(id: string, params?: Record<string, string | number | null | undefined>): string;
  /** The reader's word for a fixed term such as `block` / `match`. */
  word(group: string, term: string): string;
  colours(): string[];
  onTheme(listener: () => void, until?: AbortSignal): void;
  /** What the graph's boxes tell of besides their names: "", "memory", "stale" or "gradients". */
  lens: import("./store").Store<string>;
  selection(): Selection;
  /** The block to begin with; none where the view has no blocks to select. */
  first: [number, number] | null;
  select(change: Selection): void;
  onSelect(listener: (selection: Selection) => void, until?: AbortSignal): void;
  tabs: string[];
  /** Numbers of the small tensors of the first call, by side and position. */
  elements: ElementsState;
  /** What is selected along with a block or entry: the worst entry, the line and the call of backward, where known. */
  reach(block: [number, number], entry?: [number, number]): Selection;
  show(tab: string): void;
  /** Whether a question can be answered: always by a kernel, without one only what was kept. */
  can(question: Question): boolean;
  onShow(listener: (tab: string) => void): void;
}

/** A block that came whole, or was asked for. */
export type WholeBlock = BlockState & { maps: Maps };

/** A box that was unfolded. */
export interface Opened {
  key: string;
  name: string;
  nodes: number[];
}

/** A graph, another picture of it where one was asked for, and how the view on it stands. */
export interface GraphView extends GraphState {
  /** Of the report around it. */
  function?: string;
  blocks?: BlockState[];
  opened?: Opened[] | "all";
  wide?: number | null;
  /** Why a tensor has no gradient, where that was asked. */
  asked?: { name: string; message: string; line?: number; node?: number; ghost?: number };
  redraw?: (next: GraphView, node?: number, fresh?: boolean) => void;
  start?: import("./camera.js").Place;
  /** The node whose details are open. */
  open?: number;
  outlined?: boolean;
  /** What is searched for. */
  wanted?: string;
  /** Nodes whose details were asked for. */
  fetched?: Set<number>;
}
