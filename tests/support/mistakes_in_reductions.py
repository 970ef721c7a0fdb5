"""Mistakes in sums, means and scans: a number for all where each element has its own."""

from __future__ import annotations

from own_mistakes import Catalogue, draw

MISTAKES = Catalogue()
case, written = MISTAKES.case, MISTAKES.written


# fmt: off
case("GradientAveragedOverRows", "x: save(x); return x.sin()",
     "g: (x,) = saved; return (g * x.cos()).mean(0, keepdim=True).expand_as(x)", lambda: (draw(4, 3),),
     "wrong_unclassified", "wrong_derivative")
case("GradOutputSummedOverColumns", "x, w: save(x, w); return x @ w",
     "g: x, w = saved; g = g.sum(0, keepdim=True).expand_as(g); return g @ w.t(), x.t() @ g",
     lambda: (draw(4, 3), draw(3, 5, seed=1)), "extra_entries", "wrong_derivative")
case("DeterminantNotTransposed", "a: save(a); return torch.linalg.slogdet(a)[1]",
     "g: (a,) = saved; return g * torch.linalg.inv(a)", lambda: (draw(3, 3),), "transposed_grad", "permuted_entries")
case("NormNotDividedBy", "a: length = a.norm(); save(a, length); return length", "g: a, _ = saved; return g * a",
     lambda: (draw(4, 3),), "missing_factor", "constant_factor", "wrong_derivative")
