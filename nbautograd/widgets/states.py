"""State of every view, and answers to its questions, as plain data that goes to the page.

frontend/states.d.ts is generated from these classes. Every field goes, but for those that are None by default and still
are; a document goes as ``views.to_json`` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nbautograd.core.checking.slow_motion import Known
from nbautograd.views.document import Document
from nbautograd.views.layout import Layout
from nbautograd.views.packing import BlockState, Figure, Maps, Packed, Pair
from nbautograd.views.to_json import Pooling


@dataclass(frozen=True, kw_only=True)
class CallState:
    """A recorded call; of older ones only what the time line shows.

    Attributes:
        index: its number.
        name: its name among the calls of its Function.
        forward: number of the forward whose ctx it has.
        exception: what it raised.
        noticed: how many warnings there were.
        printed: True where it wrote to stdout.
        bad: True where it made NaN or infinity of finite numbers.
        document: what it was given, printed, raised and returned.
        ctx: what its ctx keeps.
    """

    index: int
    name: str
    function: str
    method: str
    seconds: float | None
    noticed: int
    printed: bool
    bad: bool
    forward: int | None = None
    exception: str | None = None
    document: Document | None = None
    ctx: Document | None = None


@dataclass(frozen=True, kw_only=True)
class TrendsState:
    """Measures of all calls in columns.

    Attributes:
        count: how many calls there are.
        starts: the first call of each column.
        first_bad: position of the first call with a bad element.
        bad_call: its name.
        incoming, outgoing: largest size of a gradient.
        bad: how many elements are NaN or Inf.
        seconds: the longest time.
    """

    count: int
    starts: Packed
    first_bad: int | None
    bad_call: str | None
    incoming: Packed
    outgoing: Packed
    bad: Packed
    seconds: Packed


@dataclass(frozen=True, kw_only=True)
class CallsState:
    """The newest calls of a log.

    Attributes:
        calls: oldest first.
        first: position in the log of the first of them.
        dropped: how many older ones the log itself has let go.
        problems: what could not be recorded.
        finding: the first call with a bad element; may be empty.
        trends: measures of all calls; None where there are too few.
    """

    calls: Sequence[CallState]
    first: int
    dropped: int
    problems: Sequence[str]
    finding: Document
    trends: TrendsState | None


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A line of source that a cause names."""

    line: int | None
    message: str


@dataclass(frozen=True, kw_only=True)
class AnswerState:
    """The answer as the stored report says it, and what that leaves out."""

    document: Document
    evidence: Document
    others: Document
    marks: Sequence[Mark]


@dataclass(frozen=True, kw_only=True)
class SecondOrder:
    """Verdict and findings of the check of second derivatives."""

    verdict: str
    answer: AnswerState


@dataclass(frozen=True, kw_only=True)
class Since:
    """Changes of a Function since its last check: sentences of findings and names of blocks."""

    fixed: Sequence[str]
    new: Sequence[str]
    still: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class CheckState:
    """A check without its heat maps; ``table`` has a row for each block.

    Attributes:
        motion: True where there is a backward to step through.
        again: which check would decide what this one cannot tell.
    """

    function: str
    motion: bool
    verdict: str
    table: Document
    since: Since | None
    order2: SecondOrder | None
    again: Literal["limit", "point"] | None = None


@dataclass(frozen=True, kw_only=True)
class GradientState:
    """A gradient that flowed: ``exact`` where a cell of the thumbnail is one element, ``written`` if that is read."""

    dtype: str
    shape: Sequence[int]
    contents: str
    thumbnail: Packed | None
    exact: bool
    sampled: bool
    pooling: Pooling | None
    written: Literal[True] | None = None


@dataclass(frozen=True, kw_only=True)
class NodeState:
    """A node of the graph, what it keeps and the gradient that arrived."""

    id: int
    name: str
    kind: Literal["op", "function", "leaf"]
    label: str
    scope: str
    sequence: int | None
    freed: bool
    line: int | None
    dtype: str | None
    shape: Sequence[int] | None
    saved: Document
    gradient: GradientState | None


@dataclass(frozen=True, kw_only=True)
class EdgeState:
    """An edge of the graph and the gradient that flows along it."""

    source: int
    target: int
    input_nr: int
    output_nr: int
    name: str
    dtype: str | None
    shape: Sequence[int] | None
    gradient: GradientState | None


@dataclass(frozen=True, kw_only=True)
class KeptMemory:
    """The memory that a graph keeps for backward.

    Attributes:
        nodes: storages of each node: number and bytes.
        all: bytes in all.
    """

    nodes: Mapping[int, Sequence[Pair]]
    all: int


@dataclass(frozen=True, kw_only=True)
class StaleState:
    """A saved tensor that was changed in place since.

    Attributes:
        node: the node that keeps it.
        of: the node's name.
        maker: the node of the op that changed it, where there is exactly one.
        saved, now: its versions.
        by: what changed it.
    """

    node: int
    of: str
    name: str
    maker: int | None
    saved: int
    now: int
    by: str
    line: int | None


@dataclass(frozen=True, kw_only=True)
class LensState:
    """The facts behind the lenses; a lens with nothing to show is None.

    Attributes:
        kept: memory kept for backward; None in a large graph that was not read.
        stale: what backward will refuse, of what was read.
        norms: one for each edge.
        bad: the node that the first NaN or Inf came out of.
        least: the node that the smallest gradient above zero arrives at, and its norm.
        missing: why there are no norms, and what a button that runs backward does.
        runs: whether there can be one.
        reads: whether a button can read what a large graph keeps.
    """

    kept: KeptMemory | None
    stale: Sequence[StaleState]
    norms: Packed | None
    bad: int | None
    least: tuple[int, float] | None
    missing: str
    runs: bool
    reads: bool


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A laid-out graph, the module of each box, the classes of modules that are numbers, the names of its ghosts."""

    layout: Layout
    scopes: Mapping[str, str]
    classes: Mapping[str, str]
    ghosts: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class GraphState(Picture):
    """The laid-out graph, and what is known of its nodes and edges.

    Attributes:
        total: how many nodes there are.
        widest: px of a picture on a wide page.
        whole: how many nodes come with all their edges, from the first one on.
        names: the tensors that can be asked for.
        calls: numbers and names of the recorded calls of a node.
    """

    total: int
    widest: int
    nodes: Sequence[NodeState]
    edges: Sequence[EdgeState]
    whole: int
    notes: Sequence[str]
    lenses: LensState
    names: Sequence[str]
    calls: Mapping[int, Sequence[tuple[int, str]]]


@dataclass(frozen=True, kw_only=True)
class DocumentState:
    """A value whose live view is its document.

    Attributes:
        about: name of the file that it is frozen to; empty where it is not taken along.
    """

    document: Document
    about: str = ""


@dataclass(frozen=True, kw_only=True)
class ComparisonState(DocumentState):
    """A comparison and its one sentence."""

    headline: str


@dataclass(frozen=True, kw_only=True)
class SourceState:
    """The source of a class."""

    text: str
    first_line: int


@dataclass(frozen=True, kw_only=True)
class ElementsState:
    """Numbers of the small tensors of the first forward, by position; the line of each gradient; a call of backward."""

    inputs: Sequence[Sequence[Figure] | None]
    outputs: Sequence[Sequence[Figure] | None]
    lines: Mapping[int, int | None]
    call: int | None


@dataclass(frozen=True, kw_only=True)
class EntryCurveState:
    """One element of an output along one element of an input, in one precision."""

    center: Figure
    plus: Packed
    minus: Packed


@dataclass(frozen=True, kw_only=True)
class MicroscopeAnswer:
    """The output along one input element, by precision, and what backward claims of it."""

    steps: Sequence[float]
    curves: Mapping[str, EntryCurveState]
    claimed: Figure
    found: Figure


@dataclass(frozen=True, kw_only=True)
class ElsewhereAnswer:
    """The check at other inputs."""

    verdict: str
    headline: str


@dataclass(frozen=True, kw_only=True)
class AgainAnswer:
    """The answer of the check that decides."""

    document: Document


@dataclass(frozen=True, kw_only=True)
class TextAnswer:
    """The report as plain text."""

    text: str


@dataclass(frozen=True, kw_only=True)
class MotionStop:
    """A stop in the slow motion of backward: what arrives, a line, or what is returned.

    Attributes:
        line, end: first and last line of the statement; 0 where there is none.
        known: what is known of it.
        says: the same in words.
        reads: names of the grad_outputs and saved tensors that it reads.
        document: its values.
    """

    line: int
    end: int
    known: Known
    says: str
    reads: Sequence[str]
    document: Document


@dataclass(frozen=True, kw_only=True)
class MotionGradient:
    """The gradient of an input, the check's verdict on it, and the stop from which on it is there."""

    name: str
    known: Known
    stop: int
    position: int


@dataclass(frozen=True, kw_only=True)
class MotionState:
    """A run of backward, line by line.

    Attributes:
        output: position of the output at which a gradient arrives.
        lines: number and text of the lines of backward.
        arrived, saved: names of the grad_outputs and of the tensors on ctx.
        notes: from where it is known what is right.
    """

    function: str
    output: int
    lines: Sequence[tuple[int, str]]
    stops: Sequence[MotionStop]
    arrived: Sequence[str]
    saved: Sequence[str]
    gradients: Sequence[MotionGradient]
    notes: Document


@dataclass(frozen=True, kw_only=True)
class BlockAnswer:
    """All of a block that came in brief."""

    block: BlockState


@dataclass(frozen=True, kw_only=True)
class CallsAnswer:
    """Some calls."""

    calls: Sequence[CallState]


@dataclass(frozen=True, kw_only=True)
class NodesAnswer:
    """Some nodes, the edges at them and the nodes at their far ends."""

    nodes: Sequence[NodeState]
    edges: Sequence[EdgeState]


@dataclass(frozen=True, kw_only=True)
class PictureAnswer(Picture):
    """Another picture of the graph; with why a tensor has no gradient, where that was asked.

    Attributes:
        message: why.
        line: the line to blame.
        node: the node where its gradient ends.
        ghost: position of the tensor among the ghosts.
    """

    message: str | None = None
    line: int | None = None
    node: int | None = None
    ghost: int | None = None


@dataclass(frozen=True)
class Answers:
    """The answer to each question that a page may ask, by the question's kind."""

    zoom: Maps
    block: BlockAnswer
    microscope: MicroscopeAnswer
    elsewhere: ElsewhereAnswer
    again: AgainAnswer
    text: TextAnswer
    motion: MotionState
    page: TextAnswer
    calls: CallsAnswer
    some_calls: CallsAnswer
    function: CallsAnswer
    nodes: NodesAnswer
    picture: PictureAnswer
    backward: GraphState
    saved: GraphState


@dataclass(frozen=True, kw_only=True)
class BlocksState:
    """The blocks of a check or a Jacobian.

    Attributes:
        answers: what Python answered beforehand, encoded, by question, for pages without a kernel.
    """

    blocks: Sequence[BlockState]
    answers: Mapping[str, bytes] | None = None


@dataclass(frozen=True, kw_only=True)
class JacobianState(BlocksState):
    """The blocks of a Jacobian."""

    function: str
    complete: bool


@dataclass(frozen=True, kw_only=True)
class GradcheckState(BlocksState):
    """A check: verdict, answer and blocks.

    Attributes:
        folded: the line that it begins as; nothing where it begins open.
    """

    check: CheckState
    answer: AnswerState
    folded: Document


@dataclass(frozen=True, kw_only=True)
class InspectorState(BlocksState):
    """Everything that a report holds; a part that it does not hold is None and gets no tab.

    Attributes:
        table: a row for each checked block, a way into the Jacobian.
        folded: the line that it begins as; nothing where it begins open.
    """

    function: str
    notes: Sequence[str]
    answer: AnswerState
    table: Document
    check: CheckState
    calls: CallsState
    graph: GraphState | None
    comparison: ComparisonState | None
    source: SourceState | None
    elements: ElementsState
    folded: Document


@dataclass(frozen=True)
class Views:
    """The state of each view, by the view's kind."""

    inspector: InspectorState
    graph: GraphState
    jacobian: JacobianState
    gradcheck: GradcheckState
    calls: CallsState
    motion: MotionState
    document: DocumentState


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Selection that all parts of a view share.

    Attributes:
        block, entry: output and input, row and column.
        call, node, line: their numbers.
    """

    block: Pair | None = None
    entry: Pair | None = None
    call: int | None = None
    node: int | None = None
    line: int | None = None


@dataclass(frozen=True)
class Traits:
    """The traits of ``ViewWidget`` that a page reads; module, stylesheet and state are deflated."""

    _module: bytes
    _stylesheet: bytes
    _kind: Literal["inspector", "graph", "jacobian", "gradcheck", "calls", "motion", "document"]
    _anchor: str
    _labels: Mapping[str, str]
    _colours: Mapping[Literal["light", "dark"], Sequence[str]]
    state: bytes
    tab: str
    selection: Selection


State = (  # of a view
    InspectorState | GraphState | JacobianState | GradcheckState | CallsState | MotionState | DocumentState
)
Answer = (  # to a question
    Maps
    | BlockAnswer
    | MicroscopeAnswer
    | ElsewhereAnswer
    | AgainAnswer
    | TextAnswer
    | MotionState
    | CallsAnswer
    | NodesAnswer
    | PictureAnswer
    | GraphState
)
