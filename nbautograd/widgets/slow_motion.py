"""Backward in slow motion as a live view: the stops that its slider goes through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nbautograd import messages
from nbautograd.core.checking.slow_motion import Known, LineValue, SlowMotion
from nbautograd.views.builders.motion import arrived, returned, values_document
from nbautograd.views.document import Document, sentences
from nbautograd.views.phrases import code, listed, say
from nbautograd.widgets.base import ViewWidget
from nbautograd.widgets.states import MotionGradient, MotionState, MotionStop

COMPARED = ("views.motion.by_change", "views.motion.by_value")  # notes on the right values


def motion_state(motion: SlowMotion) -> MotionState:
    """Return what arrives, each line that computed something, and what is returned, as stops."""
    gradients = [
        MotionGradient(name=str(g.value.name), known=g.known, stop=g.stop + 1, position=g.position)
        for g in motion.gradients
    ]
    return MotionState(
        function=motion.function,
        output=motion.position,
        lines=motion.lines,
        stops=[_arrival(motion), *_lines(motion), _return(motion)],
        arrived=[str(value.name) for value in motion.arrived],
        saved=[str(value.name) for value in motion.saved],
        gradients=gradients,
        notes=sentences([note for note in motion.notes if note.message_id not in COMPARED], "faint"),
    )


def _arrival(motion: SlowMotion) -> MotionStop:
    line = motion.lines[0][0] if motion.lines else 0
    says = messages.text("views.motion.arrives", output=motion.output)
    return MotionStop(line=line, end=line, known="", says=says, reads=[], document=values_document(arrived(motion)))


def _lines(motion: SlowMotion) -> Iterator[MotionStop]:
    for stop in motion.stops:
        name, known = listed([code(str(v.value.name)) for v in stop.values]), stop.known
        says = messages.text("views.motion.line", line=stop.line, name=name)
        says += messages.text("views.colon") + say("motion_known", known) if known else ""
        document = _compared(motion, stop.values, stop.parts)
        yield MotionStop(line=stop.line, end=stop.end, known=known, says=says, reads=stop.reads, document=document)


def _compared(motion: SlowMotion, values: Sequence[LineValue], parts: Sequence[LineValue] = ()) -> Document:
    """Return a table of values and, below values that stand beside right ones, from where these are known."""
    beside = any(one.right is not None for one in (*values, *parts))
    known = [note for note in motion.notes if beside and note.message_id in COMPARED]
    return (*values_document(values, parts), *sentences(known, "faint"))


def _return(motion: SlowMotion) -> MotionStop:
    line, known = motion.last or 0, {g.known for g in motion.gradients}
    found: Known = "wrong" if motion.raised or "wrong" in known else "right" if known == {"right"} else ""
    if found == "wrong" and not motion.raised and any(stop.known.startswith("wrong") for stop in motion.stops):
        found = "follows"
    says = str(motion.notes[-1]) if motion.raised else returned(motion)
    document = _compared(motion, motion.gradients)
    return MotionStop(line=line, end=line, known=found, says=says, reads=[], document=document)


class SlowMotionWidget(ViewWidget):
    """The lines of backward, its graph and its tensors in step."""

    KIND = "motion"

    def make_state(self, value: SlowMotion) -> MotionState:
        """Return the stops."""
        return motion_state(value)
