"""Exercises of notebook 10, modules and old code."""

from __future__ import annotations

from nbautograd.course.exercise import Exercise
from nbautograd.course.exercises.layers import layer
from nbautograd.course.exercises.shapes import linear, linear_edges, linear_inputs

# migrate_linear


EXERCISES = (
    Exercise("linear_module", "Linear", "custom", own=layer, points=2),
    Exercise(
        "migrate_linear",
        "LinearFunction",
        "own_function value gradient edges",
        linear,
        linear_inputs,
        linear_edges,
        tolerance=1e-10,
    ),
    Exercise("repair_module", "Repaired", "custom", own=layer, points=2),
)
