"""Presenter: shows a report, a card or a sentence once a cell with the magic ran."""

from __future__ import annotations

from typing import Any

import torch
from IPython.core.error import UsageError
from IPython.display import display

from nbautograd import messages
from nbautograd.core.checking.budget import NOT_INTERRUPTED
from nbautograd.core.contract.source_rules import read_contract
from nbautograd.core.findings import Phrase
from nbautograd.core.migration import Legacy, recognise
from nbautograd.core.stumbles import RAISED, is_ours
from nbautograd.core.torch_private import library
from nbautograd.errors import NbautogradError
from nbautograd.inspection.report import run_inspection
from nbautograd.magics import output
from nbautograd.magics.call_expression import argument_names, read_inputs, read_reference
from nbautograd.magics.options import Options
from nbautograd.magics.output import Cards
from nbautograd.magics.progress import ProgressBar, show_interrupted
from nbautograd.views.card import Notice, RecordingCard


class CellPresenter:
    """Shows what a cell's line asked for.

    Args:
        shell: the InteractiveShell.
        cards: the session's cards.
    """

    def __init__(self, shell: Any, cards: Cards) -> None:
        self.shell = shell
        self.cards = cards
        self._offered: set[str] = set()

    def show(self, options: Options | None, functions: list[type], since: int, result: Any, traced: list[type]) -> None:
        """Show the outcome of a cell.

        Args:
            options: of its magic's line; None shows nothing.
            functions: the Functions that it defined, in order.
            since: index of the first call that the cell could make.
            result: IPython's result of the cell; changed when something asked for cannot be done.
            traced: the classes that it defined and that torch dispatches to.
        """
        if options is None or getattr(result, "error_before_exec", None) is not None:
            return
        failed = result is None or not result.success
        try:
            chosen = self._choose(options, functions)
        except UsageError as error:
            output.show_usage_error(self.shell, result, error)
            return
        if traced:
            names = messages.text("views.comma").join(f"`{cls.__name__}`" for cls in traced)
            output.show_message("tracing.begins", names=names, last=traced[-1].__name__)
        if chosen is None:
            if not failed and not traced:
                output.show_message("magics.no_function")
        elif not (failed or options.inputs or library.looked_before(chosen)) and library.stands_for_operation(chosen):
            arguments = ", ".join(argument_names(chosen)) or "..."
            output.show_message("magics.operation", operation=chosen.__name__, arguments=arguments)
        elif failed or not options.inputs or recognise(chosen) is not None:
            self._card(functions or [chosen], since)
        else:
            self._report(library.checked_as(chosen), options, result)

    def _choose(self, options: Options, functions: list[type]) -> type | None:
        if not options.name:
            return functions[-1] if functions else None
        known = {cls.__name__: cls for cls in functions}
        before = self.shell.user_ns.get(options.name)
        if options.name not in known and _is_function(before):
            return before  # type: ignore[no-any-return]
        if options.name not in known:
            sentence = messages.text("magics.no_such_name", name=options.name, names=", ".join(known) or "-")
            raise UsageError(messages.with_guess(sentence, options.name, known))
        return known[options.name]

    def _card(self, functions: list[type], since: int) -> None:
        names = tuple(dict.fromkeys(cls.__name__ for cls in functions))
        findings = tuple(finding for cls in functions for finding in read_contract(cls))
        old = [legacy for cls in functions if (legacy := recognise(cls)) is not None]
        offers = tuple(self._offer(legacy) for legacy in old if legacy.migrated)
        if old:
            hint = Phrase("magics.hint_legacy", after=old[-1].after)
        else:
            arguments = ", ".join(argument_names(functions[-1])) or "..."
            which = "magics.hint_operation" if library.stands_for_operation(functions[-1]) else "magics.hint"
            hint = Phrase(which, function=names[-1], arguments=arguments)
        self.cards.add(RecordingCard(names, findings=findings, hint=hint, offers=offers), since)

    def _offer(self, legacy: Legacy) -> Notice:
        """Return the migrated class, to be copied; the first time also as the next cell."""
        if legacy.migrated not in self._offered:
            self._offered.add(legacy.migrated)
            self.shell.set_next_input(legacy.migrated)
        return Notice((Phrase("magics.migrated", function=legacy.name),), legacy.migrated)

    def _report(self, cls: Any, options: Options, result: Any) -> None:
        bar = ProgressBar(self.shell, messages.text("magics.running"))
        report = None
        try:
            inputs = read_inputs(options.inputs, cls, self.shell.user_ns)
            reference = read_reference(options.reference, inputs, self.shell.user_ns) if options.reference else None
            with bar:
                report = run_inspection(
                    cls,
                    inputs.values,
                    reference=reference,
                    reference_name=options.reference,
                    names=inputs.names,
                    hints=options.hints,
                    order=options.checked_order,
                    budget=options.checked_budget,
                    progress=bar,
                )
        except UsageError as error:
            output.show_usage_error(self.shell, result, error)
        except NbautogradError as error:
            output.show_usage_error(self.shell, result, UsageError(str(error)))
        except RAISED as error:  # behind the cell nothing of IPython's catches an exit
            if is_ours(error):
                raise
            output.show_users_error(self.shell, result, error)
        except KeyboardInterrupt:
            show_interrupted(bar)
            output.count_as_interrupted(self.shell, result)
        if report is None:
            return
        if not bar.show_instead(report):
            display(report)
        check = report.gradcheck
        out_of_budget = any(finding.code in NOT_INTERRUPTED for finding in check.findings)
        if not check.complete and not out_of_budget:
            output.count_as_interrupted(self.shell, result)


def _is_function(value: Any) -> bool:
    function = torch.autograd.Function
    return isinstance(value, type) and issubclass(value, function) and value is not function
