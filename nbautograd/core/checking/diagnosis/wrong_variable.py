"""The variable of backward that goes wrong, and the statement that made it, as plain data for sentences."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from nbautograd.core.checking import backward_lines
from nbautograd.core.checking.problem import Problem
from nbautograd.core.contract import rules
from nbautograd.core.findings import Phrase


@dataclass(frozen=True)
class Site:
    """A variable of backward after a statement that wrote it.

    Attributes:
        name: of the variable.
        line: of the statement, in the cell or file; of a loop its head, where several statements in it write it.
        text: of the value that is assigned to the variable, else of the statement.
        from_ctx: the attribute of ctx where it is only taken from there, else empty.
        reads: the names that the statement computes it from.
        allocated: True where it is only allocated, to be filled.
        assigned: True where the statement is an assignment to this variable alone.
        condition: True for a comparison, or what an ``if`` tests, in place of a variable.
        loop: line of the head of the loop that wrote it; 0 where none did.
    """

    name: str
    line: int
    text: str
    from_ctx: str
    reads: frozenset[str]
    allocated: bool
    assigned: bool
    condition: bool = False
    loop: int = 0

    @property
    def statement(self) -> str:
        """The statement as text; of a loop its head."""
        return f"{self.name} = {self.text}" if self.assigned else self.text


@dataclass(frozen=True)
class WrongVariable:
    """The first variable of backward that goes wrong.

    Attributes:
        site: the variable, and the statement that made it.
        kind: ``"gradient"``, ``"value"`` or ``"derivative"`` of what belongs in its place; ``"taken"`` for a value that
            is saved, while another is taken from ctx; ``"entering"`` for what alone enters all that is wrong.
        expression: of forward, whose gradient or value that is.
        expression_line: the expression's line; None for an argument.
        whole: True when it is the gradient of the input itself.
        unknown: names among those that the statement computes it from of which it is not known whether they are right;
            None where nothing is known of any.
        piecewise: True when the variable is written piece by piece.
    """

    site: Site
    kind: str
    expression: str
    expression_line: int | None
    whole: bool
    unknown: tuple[str, ...] | None = None
    piecewise: bool = False

    def written(self, problem: Problem) -> tuple[int, str]:
        """Return the line that goes wrong and its statement: the one that saves it, for what is only taken from ctx."""
        own = self.site
        saved = backward_lines.saving_statement(problem, own.from_ctx) if own.from_ctx else None
        return (own.line, own.statement) if saved is None else (saved.lineno, ast.unparse(saved))

    @property
    def condition(self) -> bool:
        """Return True where a condition is wrong."""
        return self.site.condition

    @property
    def message(self) -> str:
        """The sentence that says what belongs in the variable's place."""
        if self.site.from_ctx or self.kind == "taken":
            return "wrong_saved"
        return "wrong_variable_whole" if self.whole else f"wrong_variable_{self.kind}"

    def before(self) -> Phrase | str:
        """Say where all that the statement uses is as autograd of forward has it."""
        return Phrase("causes.all_right_before", line=self.site.line) if self.alone else ""

    @property
    def alone(self) -> bool:
        """Return True where all that the statement uses is right, so that no line before it can be to blame."""
        return self.unknown == ()

    def params(self, line: int) -> dict[str, Any]:
        """Return what that sentence speaks of."""
        begins = Phrase(
            "causes.begins_in" if self.alone else "causes.begins_by", name=rules.short(self.site.name), line=line
        )
        of_line: Phrase | str = (
            "" if self.expression_line is None else Phrase("causes.of_forward", line=self.expression_line)
        )
        said = {"name": self.site.name, "at": line, "expression": self.expression, "made_in": of_line, "begins": begins}
        back = "" if self.alone else Phrase("causes.and_before")
        return {**said, "statement": rules.short(self.site.statement), "known": self.before(), "back": back}
