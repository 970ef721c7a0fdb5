/** What anywidget gives a module of the model that Python holds. */
export interface Model {
  get(name: string): any;
  set(name: string, value: any): void;
  save_changes(): void;
  send(content: any, callbacks?: any, buffers?: any): void;
  on(event: string, listener: (...args: any[]) => void): void;
  off(event: string, listener: (...args: any[]) => void): void;
  /** Only where no kernel is: whether the answer to a question was kept. */
  knows?(question: any): boolean;
}

/** An array as Python sends it. */
export interface Packed {
  dtype: "float32" | "float64" | "uint8";
  shape: number[];
  buffer: DataView;
}

/** What is selected, in all views at once. */
export interface Selection {
  block?: [number, number];
  entry?: [number, number];
  call?: number;
  node?: number;
  line?: number;
}

/** What every view gets: the words, the colours, the selection, and when to stop. */
export interface Page {
  model: Model;
  root: HTMLElement;
  signal: AbortSignal;
  t(id: string, params?: Record<string, any>): string;
  /** The reader's word for a fixed term such as `block` / `match`. */
  word(group: string, term: string): string;
  colours(): string[];
  onTheme(listener: () => void, until?: AbortSignal): void;
  /** What the graph's boxes tell of besides their names: "", "memory", "stale" or "gradients". */
  lens: import("./store").Store<string>;
  selection(): Selection;
  select(change: Selection): void;
  onSelect(listener: (selection: Selection) => void, until?: AbortSignal): void;
  tabs: string[];
  /** Numbers of the small tensors of the first call, by side and position. */
  elements: Record<string, any>;
  /** What is selected along with a block or entry: the worst entry, the line and the call of backward, where known. */
  reach(block: [number, number], entry?: [number, number]): Selection;
  show(tab: string): void;
  /** Whether a question can be answered: always by a kernel, without one only what was kept. */
  can(question: any): boolean;
  onShow(listener: (tab: string) => void): void;
}

/** A gradient that flowed; `exact` where each cell of the thumbnail is one element. */
export interface Gradient {
  dtype: string;
  shape: number[];
  norm: number | string | null;
  contents: string;
  thumbnail: Packed | null;
  exact: boolean;
  sampled: boolean;
}

export interface Maps {
  rows: number;
  cols: number;
  analytical: Packed;
  numerical: Packed;
  difference: Packed;
  /** Not 0 in cells with an entry that the checker calls wrong; only where there is one. */
  wrong?: Packed;
}

export interface Entry {
  output_index: number[];
  input_index: number[];
  analytical: any;
  numerical: any;
  error_bar: any;
}

export interface Block {
  output: number;
  input: number;
  output_name: string;
  input_name: string;
  output_shape: number[];
  input_shape: number[];
  /** The last dimension is the pair of real and imaginary part. */
  output_complex?: boolean;
  input_complex?: boolean;
  structure: string;
  entries: number;
  /** Of many blocks only the interesting ones come whole; the page asks for the others. */
  maps: Maps;
  /** All entries of a pooled block, where they were kept for pages without a kernel. */
  whole?: { analytical: Packed; numerical: Packed; wrong?: Packed };
  verdict?: string;
  reason?: string;
  wrong?: number;
  largest_error?: any;
  worst?: Entry | null;
  /** What each independent method says. */
  methods?: import("./tree").Block[];
  beyond?: number[] | null;
  curve?: { steps: Packed; errors: Packed };
}
