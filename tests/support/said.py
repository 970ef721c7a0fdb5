"""Which sentences the tests put into words: whatever the package makes of one is put into words at once."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Callable
from typing import Any

SAID: set[str] = set()

# What no test of one process says: a process of its own does (a command, an answer that is marked, a rank), another
# version of torch, another system or a nightly test; or no program is known yet. The list may only get shorter.
OPEN = re.findall(
    r"\S+",
    """
audit.checking audit.fails_the_run audit.nothing_kept audit.other_processes audit.others audit.processes
audit.repro_name audit.repro_needs_data audit.traced audit.unclear_along causes.exception_shapes_elementwise.advice
checking.because_half checking.inside_smaller
checking.jvp_batched_wrong.advice checking.jvp_batched_wrong.what checking.only_backward.advice
checking.order2_too_large command.audit.progress command.cell_failed command.check.untold
command.doctor.torch_broken command.freeze.running command.freeze.unknown command.interrupted command.mark.progress
command.mark.stopped command.page compare.autocast.advice compare.compile.advice compare.compile.what
compare.compile_discarded compare.mixed.advice compare.ranks_hang compare.ranks_outputs compare.ranks_raised
compare.sweep_stopped course.advice.counts_wrong course.advice.mutates_input course.advice.names_wrong
course.advice.tuple_not_wrapped course.advice.vmap_gradient course.advice.vmap_without_function
course.advice.vmap_wrong course.backward_raised course.cannot_call course.double_backward_raised
course.double_backward_wrong course.mark.garbled course.mark.no_cluster course.mark.out_of_memory
course.omitted_gradient course.refused.twice course.vmap_gradient course.vmap_without_function course.vmap_wrong
explain.no_grad.integer_root explain.not_finite.came_in explain.optimizer_holds_others explain.refused_fork
explain.tried_finite explain.unused_parameters.what magics.loading magics.operation recording.failed_to_install
recording.incomplete recording.missing.off recording.operation views.audit.by_directions views.audit.by_slice
views.audit.without_gradient views.compare.one_is_none views.comparison.condition views.comparison.unseen
views.motion.cut views.motion.line
""",
)
MOST = 3  # others that a run may leave unsaid: a few are said only where a draw or the clock has it so


class Table(dict[str, str]):
    """The sentences of one language; it keeps the ids that it was asked for."""

    def get(self, key: str, default: Any = None) -> Any:
        """Look a sentence up to fill it in."""
        SAID.add(key)
        return super().get(key, default)


def listen() -> None:
    """Put the first of each id into words as it is made: what lacks a parameter fails there, not where it is read."""
    import nbautograd
    from nbautograd import messages
    from nbautograd.core.display import Phrase
    from nbautograd.core.findings import Finding
    from nbautograd.course.exercise import Failure
    from nbautograd.course.sentences import steps

    messages._TABLES = {lang: Table(table) for lang, table in messages._TABLES.items()}
    makers = (dataclasses.__file__, os.path.dirname(nbautograd.__file__))  # what a test makes by hand may lack some

    def spoken(cls: Any, words: Callable[[Any], Any]) -> None:
        plain, known = cls.__init__, set()

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            plain(self, *args, **kwargs)
            key = str(getattr(self, "message_id", self))
            if key not in known and sys._getframe(1).f_code.co_filename.startswith(makers):
                known.add(key)
                words(self)

        def from_copy(self: Any, state: dict[str, Any]) -> None:  # what a copy of the process made
            self.__dict__.update(state)
            words(self)

        cls.__init__, cls.__setstate__ = init, from_copy

    spoken(Phrase, str)
    spoken(Finding, lambda one: one.message)
    spoken(Failure, lambda one: steps(one, "fix"))


def unsaid() -> list[str]:
    """Name the sentences that no test said; those of the pages are said by JavaScript."""
    from nbautograd.messages import catalogue
    from nbautograd.widgets.base import SHARED

    page = ("widgets.", "lab.", *SHARED)
    return sorted(key for key in catalogue("en") if key not in SAID | set(OPEN) and not key.startswith(page))
