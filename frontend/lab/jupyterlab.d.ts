// What is used of JupyterLab 4, Notebook 7 and their CodeMirror; their own types would bring hundreds of packages along.

export interface Signal<T extends (...args: any[]) => void> {
  connect(listener: T): void;
  disconnect(listener: T): void;
}

export interface SharedCell {
  id: string;
  getSource(): string;
  setSource(text: string): void;
  updateSource(start: number, end: number, text: string): void;
  transact(change: () => void): void;
}

export interface CellModel {
  type: string;
  trusted: boolean;
  sharedModel: SharedCell;
  contentChanged: Signal<() => void>;
  stateChanged: Signal<() => void>;
  executionState?: string;
  outputs?: {
    length: number;
    get(k: number): { data: Record<string, any>; type: string; toJSON(): any };
    set(k: number, output: object): void;
    changed: Signal<() => void>;
  };
}

export interface Cell {
  model: CellModel;
  editor: { editor: EditorView; focus(): void } | null;
  node: HTMLElement;
}

export interface Kernel {
  interrupt(): Promise<void>;
  requestExecute(
    content: object,
    disposeOnDone: boolean,
    metadata: object,
  ): {
    onIOPub: (message: { header: { msg_type: string }; content: any }) => void;
    done: Promise<unknown>;
  };
}

export interface NotebookPanel {
  id: string;
  node: HTMLElement;
  sessionContext: { session: { kernel: Kernel | null } | null };
  context: { ready: Promise<void>; path: string; save(): Promise<void> };
  content: {
    rendermime: { addFactory(factory: object, rank: number): void };
    model: {
      cells: { length: number; get(k: number): CellModel; changed: Signal<() => void> };
    };
    widgets: Cell[];
    activeCell: Cell | null;
    activate(): void;
    activeCellIndex: number;
    mode: "edit" | "command";
  };
}

export interface NotebookModule {
  INotebookTracker: unknown;
  NotebookActions: {
    insertBelow(notebook: unknown): void;
    runCells(notebook: unknown, cells: Cell[], session: unknown): Promise<boolean>;
  };
}

export interface Modules {
  apputils: any;
  codemirror: any;
  notebook: NotebookModule;
  rendermime: any;
  widgets: any;
  view: any;
  state: any;
  translation: any;
}

export interface Application {
  shell: { currentWidget: { id: string } | null; activateById(id: string): void };
  commands: {
    addCommand(
      id: string,
      options: { label?: string; execute: () => unknown; isEnabled?: () => boolean },
    ): void;
    execute(id: string): Promise<unknown>;
  };
}

export interface Doc {
  toString(): string;
  line(number: number): { from: number; to: number; number: number };
  lineAt(at: number): { from: number; to: number; number: number };
}

export interface EditorView {
  dom: HTMLElement;
  state: {
    doc: Doc;
    selection: { main: { head: number; from: number; to: number } };
    field(field: any): any;
  };
  dispatch(change: object): void;
  focus(): void;
}

export interface Transaction {
  docChanged: boolean;
  selection?: object;
  newDoc: Doc;
  startState: { doc: Doc };
  changes: {
    touchesRange(from: number, to: number): boolean | "cover";
    mapPos(at: number, side: number): number;
  };
  effects: { value: any; is(kind: any): boolean }[];
}
