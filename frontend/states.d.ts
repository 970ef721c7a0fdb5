// Written by frontend/generate.py from nbautograd/widgets/states.py: what views/to_json.py makes of it.

import type { Block } from "./tree";

export type Figure = number | string | [number | string, number | string] | null;

/** Elements under each cell of a small heat map: how many rows and columns, between which numbers; in words. */
export interface Pooling {
  rows: number;
  cols: number;
  low: Packed;
  high: Packed;
  words: string;
}

/** One entry of a Jacobian. */
export interface Entry {
  output_index: number[];
  input_index: number[];
  analytical: Figure;
  numerical: Figure;
}

/** One line of text in a box. */
export interface Line {
  text: string;
  x: number;
  y: number;
  style: string;
}

/** One box of the picture. */
export interface Box {
  key: string;
  kind: "op" | "function" | "leaf" | "output" | "portal" | "group" | "ghost";
  nodes: number[];
  x: number;
  y: number;
  width: number;
  height: number;
  lines: Line[];
  title: string;
  fan_in: number;
  freed: boolean;
  frozen: boolean;
}

/** One edge of the picture, from the box that computes a gradient to the box that receives it. */
export interface Path {
  source: string;
  target: string;
  edges: number[];
  points: [number, number][];
  label: string;
  label_x: number;
  label_y: number;
  style: string;
  title: string;
}

/** A laid-out graph: plain data, JSON-ready by ``to_dict()``. */
export interface Layout {
  width: number;
  height: number;
  boxes: Box[];
  paths: Path[];
  title: string;
  description: string;
  note: string;
  order: string[];
}

/** An array: its bytes in row-major little-endian order. */
export interface Packed {
  dtype: "float64" | "float32" | "uint8";
  shape: number[];
  buffer: DataView;
}

/** The three heat maps of a block, or of a window of it. */
export interface Maps {
  rows: number;
  cols: number;
  analytical: Packed;
  numerical: Packed;
  difference: Packed;
  wrong?: Packed;
}

/** All entries of a pooled block, kept for pages without a kernel. */
export interface Whole {
  analytical: Packed;
  numerical: Packed;
  wrong?: Packed;
}

/** Steps of finite differences at the worst entry, and their errors. */
export interface ErrorCurve {
  steps: Packed;
  errors: Packed;
}

/** A block of a Jacobian; of many only the interesting ones come with their heat maps and evidence. */
export interface BlockState {
  output: number;
  input: number;
  output_name: string;
  input_name: string;
  output_shape: number[];
  input_shape: number[];
  output_complex: boolean;
  input_complex: boolean;
  structure: string;
  entries: number;
  verdict?: "match" | "mismatch" | "subgradient" | "flat" | "undecided";
  wrong?: number;
  maps?: Maps;
  worst?: Entry;
  methods?: Block[];
  curve?: ErrorCurve;
  whole?: Whole;
}

/** A recorded call; of older ones only what the time line shows. */
export interface CallState {
  index: number;
  name: string;
  function: string;
  method: string;
  seconds: number | null;
  noticed: number;
  printed: boolean;
  bad: boolean;
  forward?: number;
  exception?: string;
  document?: Block[];
  ctx?: Block[];
}

/** Measures of all calls in columns. */
export interface TrendsState {
  count: number;
  starts: Packed;
  first_bad: number | null;
  bad_call: string | null;
  incoming: Packed;
  outgoing: Packed;
  bad: Packed;
  seconds: Packed;
}

/** The newest calls of a log. */
export interface CallsState {
  calls: CallState[];
  first: number;
  dropped: number;
  problems: string[];
  finding: Block[];
  trends: TrendsState | null;
}

/** A line of source that a cause names. */
export interface Mark {
  line: number | null;
  message: string;
}

/** The answer as the stored report says it, and what that leaves out. */
export interface AnswerState {
  document: Block[];
  evidence: Block[];
  others: Block[];
  marks: Mark[];
}

/** Verdict and findings of the check of second derivatives. */
export interface SecondOrder {
  verdict: string;
  answer: AnswerState;
}

/** Changes of a Function since its last check: sentences of findings and names of blocks. */
export interface Since {
  fixed: string[];
  new: string[];
  still: string[];
}

/** A check without its heat maps; ``table`` has a row for each block. */
export interface CheckState {
  function: string;
  motion: boolean;
  verdict: string;
  table: Block[];
  since: Since | null;
  order2: SecondOrder | null;
  again?: "limit" | "point";
}

/** A gradient that flowed: ``exact`` where a cell of the thumbnail is one element, ``written`` if that is read. */
export interface GradientState {
  dtype: string;
  shape: number[];
  contents: string;
  thumbnail: Packed | null;
  exact: boolean;
  sampled: boolean;
  pooling: Pooling | null;
  written?: "True";
}

/** A node of the graph, what it keeps and the gradient that arrived. */
export interface NodeState {
  id: number;
  name: string;
  kind: "op" | "function" | "leaf";
  label: string;
  scope: string;
  sequence: number | null;
  freed: boolean;
  line: number | null;
  dtype: string | null;
  shape: number[] | null;
  saved: Block[];
  gradient: GradientState | null;
}

/** An edge of the graph and the gradient that flows along it. */
export interface EdgeState {
  source: number;
  target: number;
  input_nr: number;
  output_nr: number;
  name: string;
  dtype: string | null;
  shape: number[] | null;
  gradient: GradientState | null;
}

/** The memory that a graph keeps for backward. */
export interface KeptMemory {
  nodes: Record<number, [number, number][]>;
  all: number;
}

/** A saved tensor that was changed in place since. */
export interface StaleState {
  node: number;
  of: string;
  name: string;
  maker: number | null;
  saved: number;
  now: number;
  by: string;
  line: number | null;
}

/** The facts behind the lenses; a lens with nothing to show is None. */
export interface LensState {
  kept: KeptMemory | null;
  stale: StaleState[];
  norms: Packed | null;
  bad: number | null;
  least: [number, number] | null;
  missing: string;
  runs: boolean;
  reads: boolean;
}

/** A laid-out graph, the module of each box, the classes of modules that are numbers, the names of its ghosts. */
export interface Picture {
  layout: Layout;
  scopes: Record<string, string>;
  classes: Record<string, string>;
  ghosts: string[];
}

/** The laid-out graph, and what is known of its nodes and edges. */
export interface GraphState {
  layout: Layout;
  scopes: Record<string, string>;
  classes: Record<string, string>;
  ghosts: string[];
  total: number;
  widest: number;
  nodes: NodeState[];
  edges: EdgeState[];
  whole: number;
  notes: string[];
  lenses: LensState;
  names: string[];
  calls: Record<number, [number, string][]>;
}

/** A value whose live view is its document. */
export interface DocumentState {
  document: Block[];
  about: string;
}

/** A comparison and its one sentence. */
export interface ComparisonState {
  document: Block[];
  about: string;
  headline: string;
}

/** The source of a class. */
export interface SourceState {
  text: string;
  first_line: number;
}

/** Numbers of the small tensors of the first forward, by position; the line of each gradient; a call of backward. */
export interface ElementsState {
  inputs: (Figure[] | null)[];
  outputs: (Figure[] | null)[];
  lines: Record<number, number | null>;
  call: number | null;
}

/** One element of an output along one element of an input, in one precision. */
export interface EntryCurveState {
  center: Figure;
  plus: Packed;
  minus: Packed;
}

/** The output along one input element, by precision, and what backward claims of it. */
export interface MicroscopeAnswer {
  steps: number[];
  curves: Record<string, EntryCurveState>;
  claimed: Figure;
  found: Figure;
}

/** The check at other inputs. */
export interface ElsewhereAnswer {
  verdict: string;
  headline: string;
}

/** The answer of the check that decides. */
export interface AgainAnswer {
  document: Block[];
}

/** The report as plain text. */
export interface TextAnswer {
  text: string;
}

/** A stop in the slow motion of backward: what arrives, a line, or what is returned. */
export interface MotionStop {
  line: number;
  end: number;
  known: "right" | "wrong" | "wrong by here" | "follows" | "";
  says: string;
  reads: string[];
  document: Block[];
}

/** The gradient of an input, the check's verdict on it, and the stop from which on it is there. */
export interface MotionGradient {
  name: string;
  known: "right" | "wrong" | "wrong by here" | "follows" | "";
  stop: number;
  position: number;
}

/** A run of backward, line by line. */
export interface MotionState {
  function: string;
  output: number;
  lines: [number, string][];
  stops: MotionStop[];
  arrived: string[];
  saved: string[];
  gradients: MotionGradient[];
  notes: Block[];
}

/** All of a block that came in brief. */
export interface BlockAnswer {
  block: BlockState;
}

/** Some calls. */
export interface CallsAnswer {
  calls: CallState[];
}

/** Some nodes, the edges at them and the nodes at their far ends. */
export interface NodesAnswer {
  nodes: NodeState[];
  edges: EdgeState[];
}

/** Another picture of the graph; with why a tensor has no gradient, where that was asked. */
export interface PictureAnswer {
  layout: Layout;
  scopes: Record<string, string>;
  classes: Record<string, string>;
  ghosts: string[];
  message?: string;
  line?: number;
  node?: number;
  ghost?: number;
}

/** The answer to each question that a page may ask, by the question's kind. */
export interface Answers {
  zoom: Maps;
  block: BlockAnswer;
  microscope: MicroscopeAnswer;
  elsewhere: ElsewhereAnswer;
  again: AgainAnswer;
  text: TextAnswer;
  motion: MotionState;
  page: TextAnswer;
  calls: CallsAnswer;
  some_calls: CallsAnswer;
  function: CallsAnswer;
  nodes: NodesAnswer;
  picture: PictureAnswer;
  backward: GraphState;
  saved: GraphState;
}

/** The blocks of a check or a Jacobian. */
export interface BlocksState {
  blocks: BlockState[];
  answers?: Record<string, DataView>;
}

/** The blocks of a Jacobian. */
export interface JacobianState {
  blocks: BlockState[];
  answers?: Record<string, DataView>;
  function: string;
  complete: boolean;
}

/** A check: verdict, answer and blocks. */
export interface GradcheckState {
  blocks: BlockState[];
  answers?: Record<string, DataView>;
  check: CheckState;
  answer: AnswerState;
  folded: Block[];
}

/** Everything that a report holds; a part that it does not hold is None and gets no tab. */
export interface InspectorState {
  blocks: BlockState[];
  answers?: Record<string, DataView>;
  function: string;
  notes: string[];
  answer: AnswerState;
  table: Block[];
  check: CheckState;
  calls: CallsState;
  graph: GraphState | null;
  comparison: ComparisonState | null;
  source: SourceState | null;
  elements: ElementsState;
  folded: Block[];
}

/** The state of each view, by the view's kind. */
export interface Views {
  inspector: InspectorState;
  graph: GraphState;
  jacobian: JacobianState;
  gradcheck: GradcheckState;
  calls: CallsState;
  motion: MotionState;
  document: DocumentState;
}

/** Selection that all parts of a view share. */
export interface Selection {
  block?: [number, number];
  entry?: [number, number];
  call?: number;
  node?: number;
  line?: number;
}

/** The traits of ``ViewWidget`` that a page reads; module, stylesheet and state are deflated. */
export interface Traits {
  _module: DataView;
  _stylesheet: DataView;
  _kind: "inspector" | "graph" | "jacobian" | "gradcheck" | "calls" | "motion" | "document";
  _anchor: string;
  _labels: Record<string, string>;
  _colours: Record<"light" | "dark", string[]>;
  state: DataView;
  tab: string;
  selection: Selection;
}
