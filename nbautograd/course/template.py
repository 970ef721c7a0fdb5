"""Template of a source notebook with one exercise, which can be released as it is."""

from __future__ import annotations

from nbautograd import messages

_EXERCISES = """import torch

from nbautograd.course.exercise import Exercise

EXERCISES = (
    Exercise(
        "{name}_square", "Square", "value gradient own_function",
        formula=lambda x: x * x, inputs=lambda draw: (draw.normal(3, 4),), points=1,
    ),
)
"""
_SOURCE = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   nbautograd:
#     title_{lang}: {name}
#     minutes: 15
# ---

# %% [markdown] lang="{lang}" pair="intro"
# # {name}
#
# {task}

# %% tags=["setup"]
import torch
from torch.autograd import Function

# %load_ext nbautograd

# %% exercise="{name}_square"
# %%exercise {name}_square
class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output
        ### END SOLUTION

# %%
# %exercises
"""


_ANSWERS = """@@ {name}_square: sign
-        return 2 * x * grad_output
+        return -2 * x * grad_output
"""


def template(name: str, lang: str) -> dict[str, str]:
    """Write a source notebook, its exercises and a known-wrong answer, in one language.

    Args:
        name: of the notebook and its files, such as ``"hw1"``.
        lang: ``"en"`` or ``"zh"``.

    Returns:
        File name -> text.
    """
    with messages.speaking(lang):
        task = messages.text("course.template_task")
    return {
        f"{name}.py": _SOURCE.format(name=name, lang=lang, task=task),
        f"{name}_exercises.py": _EXERCISES.format(name=name),
        f"{name}.diff": _ANSWERS.format(name=name),
    }
