"""Exercise: what a student is asked for, and what tells right from wrong. The public part; solutions are elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nbautograd.core.findings import Phrase
from nbautograd.course.draw import InputGenerator

CHECKS = (
    "value",
    "gradient",
    "edges",
    "own_function",
    "double_backward",
    "forward_mode",
    "vmap",
    "kinks",
    "context",
    "cost",
    "custom",
)
Sentence = str | Mapping[str, str] | Phrase  # by id, in "en" and "zh", or of the checker
Limit = int | Callable[..., int]  # a number, or a function of the inputs that gives one


@dataclass(frozen=True)
class Failure:
    """One thing that a check found wrong.

    Attributes:
        code: stable, made for programs, such as ``"swapped_inputs"``; what the author of a known-wrong answer names.
        sentence: the id of a sentence in ``nbautograd.messages``, or the sentence itself as ``{"en": ..., "zh": ...}``.
            It helps and does not give the answer away.
        params: what the sentence speaks of: filled in with ``str.format`` in both cases.
        more: further sentences, shown with the hints ``"where"`` and ``"fix"``; the second may say what to do.

    Example:
        >>> from nbautograd.course.exercise import Failure
        >>> Failure("too_few", {"en": "Only {n} of 10.", "zh": "10 个里只有 {n} 个。"}, {"n": 7}).code
        'too_few'
    """

    code: str
    sentence: Sentence = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    more: tuple[Sentence, ...] = ()


@dataclass(frozen=True)
class Exercise:
    """One exercise: a cell that defines one name, and the checks that its value must pass.

    Floating tensors among the inputs are differentiated, all of them, unless some already have
    ``requires_grad=True``: then those alone.

    Attributes:
        name: what ``%%exercise`` takes, such as ``"multiply"``; unique in the course.
        answer: the name that the cell defines, such as ``"Multiply"``.
        checks: names of the checks in the order in which they are made, such as ``"value gradient edges"``: see
            ``CHECKS`` and ``nbautograd.course.checks``.
        formula: the forward as a plain differentiable torch function of the inputs. ``value`` compares with its values;
            the checks of derivatives take the right ones from autograd of it. A parameter with the default None is an
            optional argument, which ``edges`` leaves out and gives as None.
        inputs: random inputs, ``lambda draw: (draw.normal(3, 4), draw.normal(4, 5))``; called anew for each point.
        edges: inputs of odd shapes, for ``edges``: a batch of 0 or 1, not square, without dimensions, expanded,
            transposed, float32.
        apply: from the answer to what is called on the inputs. Without it a Function class is called through its
            ``apply`` and anything else as it is.
        vjp: the declared backward where it is not the formula's derivative (straight-through, surrogates, stated
            conventions at kinks): called with the inputs, then one grad_output per output; returns one gradient, or
            a tuple of one per differentiable input: ``lambda x, g: g``.
        kinks: inputs that lie exactly at the kinks, for ``kinks``. With ``vjp`` the gradient there must be the
            declared one, without it any value between the two one-sided derivatives will do.
        own: the exercise's own check, ``custom``: called with the answer (as it was defined) and a Draw; yields a
            Failure for everything that is wrong. What it raises counts as the failure ``"own_raised"``, kindly.
        inside: True where ``own`` looks at what only the process that runs the answer can see: what a Function keeps,
            whose memory it returns, its other methods. Marks then say that this check was reported by the submission.
        notes: sentences of the exercise's own by failure code, shown instead of the general one; they help and do not
            give the answer away.
        points: what it is worth.
        shares: how many of the points a check earns by itself when another one fails, ``{"gradient": 2}``; without it
            an answer gets all points or none. A release is refused where the untouched cell would earn a share.
        ready_made: for ``own_function``: method -> names that it should not call, as what they compute is saved already
            or to be written: ``{"backward": {"exp"}}``.
        saved_bytes: for ``context`` and ``cost``: the most that forward may leave for backward; a number, or a function
            of the inputs.
        forward_calls: for ``cost``: the most calls that may be made of those inputs that are functions (a black box,
            counted) during one forward and one backward; a number, or a function of the inputs.
        tolerance: how closely values and gradients must agree, relative to the largest of them.

    Example:
        >>> import torch
        >>> from nbautograd.course.exercise import Exercise
        >>> inputs = lambda draw: (draw.normal(3), draw.normal(3))
        >>> Exercise("multiply", "Multiply", "value gradient", torch.mul, inputs).ids
        ('value', 'gradient')
    """

    name: str
    answer: str
    checks: str = "value gradient"
    formula: Callable[..., Any] | None = None
    inputs: Callable[[InputGenerator], tuple[Any, ...]] | None = None
    edges: Callable[[InputGenerator], Iterable[tuple[Any, ...]]] | None = None
    apply: Callable[[Any], Callable[..., Any]] | None = None
    vjp: Callable[..., Any] | None = None
    kinks: Callable[[InputGenerator], Iterable[tuple[Any, ...]]] | None = None
    own: Callable[[Any, InputGenerator], Iterable[Failure]] | None = None
    inside: bool = False
    notes: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    points: int = 1
    shares: Mapping[str, int] = field(default_factory=dict)
    ready_made: Mapping[str, Collection[str]] = field(default_factory=dict)
    saved_bytes: Limit | None = None
    forward_calls: Limit | None = None
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        """Refuse what no check could be made of.

        Raises:
            ValueError: with what is missing; its reader is the exercise's author.
        """
        unknown = [c for c in self.ids if c not in CHECKS]
        if unknown or not self.ids:
            raise ValueError(f"{self.name}: checks are some of {' '.join(CHECKS)}, not {self.checks!r}")
        for check, needed in NEEDED.items():
            for part in needed:
                if check in self.ids and getattr(self, part) is None:
                    raise ValueError(f"{self.name}: check {check} needs {part}=")

        if not set(self.shares) <= set(self.ids) or sum(self.shares.values()) > self.points:
            raise ValueError(f"{self.name}: shares= names checks of its own, and gives {self.points} points at most")

    def earned(self, passed: Collection[str]) -> int:
        """Return the points of an answer that passed these checks: all, or the shares of the checks.

        Example:
            >>> from nbautograd.course.exercise import Exercise
            >>> inputs = lambda draw: (draw.normal(3),)
            >>> cube = Exercise("cube", "Cube", "value gradient", lambda x: x**3, inputs, points=3, shares={"value": 1})
            >>> cube.earned({"value", "gradient"}), cube.earned({"value"}), cube.earned(())
            (3, 1, 0)
        """
        if set(passed) >= set(self.ids):
            return self.points
        return sum(share for check, share in self.shares.items() if check in passed)

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of the checks, in order."""
        return tuple(self.checks.split())


NEEDED = {
    **dict.fromkeys(("value", "gradient", "edges", "double_backward", "forward_mode", "vmap"), ("formula", "inputs")),
    **dict.fromkeys(("context", "own_function", "cost"), ("inputs",)),
    "kinks": ("kinks",),
    "custom": ("own",),
}
