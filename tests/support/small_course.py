"""A course of one exercise, to be spoiled in one way or another."""

from __future__ import annotations

from pathlib import Path

EXERCISES = """import torch
from nbautograd.course.exercise import Exercise
EXERCISES = (
    Exercise("own_square", "Square", "value gradient", lambda x: x * x, lambda draw: (draw.normal(3),), points=2),
)
"""
SOURCE = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   nbautograd:
#     course: "99"
#     title_en: Squares
#     title_zh: 平方
#     minutes: 5
# ---

# %% [markdown] lang="en" pair="intro"
# # Squares

# %% [markdown] lang="zh" pair="intro" of="{of}"
# # 平方

# %% tags=["setup"]
import torch
from torch.autograd import Function
import nbautograd
# %load_ext nbautograd

# %% [markdown]
# $x^2$ {markdown}

# %% exercise="own_square"{metadata}
# %%exercise own_square
class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (x,) = ctx.saved_tensors
        return {solution}
        ### END SOLUTION

# %%{tags}
{plain}

# %%
# %exercises
"""
ANSWERS = """@@ own_square: right
-        return {solution}
+        return {right}
@@ own_square: {expects}
-        return {solution}
+        return {wrong}
"""
WHOLE = {
    "of": "af8fe79c", "markdown": "", "metadata": "", "solution": "2 * x * grad_output",
    "right": "(x + x) * grad_output", "expects": "sign", "wrong": "-2 * ctx.saved_tensors[0] * grad_output",
    "tags": "", "plain": "y = Square",
}  # fmt: skip


def written(folder: Path, **changes: str) -> Path:
    """The source notebook with these pieces changed, its exercises and its answers beside it."""
    (folder / "own_exercises.py").write_text(EXERCISES, encoding="utf-8")
    path = folder / "99_squares.py"
    path.write_text(SOURCE.format(**{**WHOLE, **changes}), encoding="utf-8")
    path.with_suffix(".diff").write_text(ANSWERS.format(**{**WHOLE, **changes}), encoding="utf-8")
    return path
