"""How far the checker can be trusted, measured on torch's own operators.

    export PYTHONPATH=tests/support
    python benchmarks/trust.py alarms [--per-op 3] [--part 1/3]
    python benchmarks/trust.py mutants [--part 1/3] [--names]
    python benchmarks/trust.py speed [--part 1/3]

``alarms`` counts verdicts on the float64 samples of op_db where torch's gradcheck passes. ``mutants`` damages the
gradient in sixteen ways in front of every operator and counts how many are detected and, with ``--names``, how many
are given their name by the whole report. ``speed`` compares CPU time with torch's slow mode on the samples with at
least 1,000 entries. ``--part k/n`` takes every n-th operator, from the k-th on.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
import warnings
from collections import Counter

import torch
from op_db_samples import samples

import nbautograd
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.run import GradcheckRun


def _wiggle(g):
    return g * (1 + 0.01 * torch.linspace(-1, 1, g.numel(), dtype=g.dtype).sin().reshape(g.shape))


def _drop_last(g):
    flat = g.reshape(-1).clone()
    flat[-1] = 0
    return flat.reshape(g.shape)


def _transposed(g):
    return g.transpose(-1, -2).contiguous() if g.dim() > 1 and g.shape[-1] == g.shape[-2] else g


# the damage, and the codes that name it
DAMAGES = {
    "negated": (torch.neg, {"sign"}),
    "doubled": (lambda g: 2 * g, {"constant_factor"}),
    "zero": (torch.zeros_like, {"zero_gradient"}),
    "rolled": (lambda g: g.reshape(-1).roll(1).reshape(g.shape), {"permuted_entries"}),
    "flipped": (lambda g: g.reshape(-1).flip(0).reshape(g.shape), {"permuted_entries"}),
    "transposed": (  # behind a sum along one dimension it is a gradient spread along another
        _transposed,
        {"transposed_grad", "permuted_entries", "wrong_reduction_dim"},
    ),
    "averaged": (
        lambda g: g.mean().expand(g.shape),
        {"wrong_reduction_dim", "extra_entries", "wrong_derivative"},
    ),
    "last dropped": (_drop_last, {"missing_entries", "zero_gradient", "conditional"}),
    "x 1.001": (lambda g: 1.001 * g, {"constant_factor"}),
    "x 1.0001": (lambda g: 1.0001 * g, {"constant_factor"}),
    "x 1.00001": (lambda g: 1.00001 * g, {"constant_factor"}),
    "wiggled": (_wiggle, {"wrong_derivative", "missing_factor"}),
    "absolute": (torch.abs, {"nonlinear_in_grad_output"}),
    "positive": (torch.relu, {"nonlinear_in_grad_output"}),
    "normalised": (lambda g: g / (g.norm() + 1e-12), {"nonlinear_in_grad_output"}),
    "clamped": (lambda g: g.clamp(-0.3, 0.3), {"nonlinear_in_grad_output"}),
}


class Damaged(torch.autograd.Function):
    """The identity with a damaged gradient, put in front of an operator."""

    @staticmethod
    def forward(ctx, x, damage):
        ctx.damage = damage
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return DAMAGES[ctx.damage][0](grad), None


def verdicts(fn, inputs):
    """The verdicts of the blocks alone, without probes and causes."""
    run = GradcheckRun(Problem(fn, inputs), None, None, None)
    with run.problem.session():
        run.find_blocks()
    return {b.verdict for b in run.blocks.values() if b.entries} | ({"error"} if run.error else set())


def torch_passes(fn, inputs):
    try:
        return torch.autograd.gradcheck(fn, inputs)
    except Exception:
        return False


def gradient(fn, inputs, random=False):
    """The gradient of a projection with respect to the first input, or None where there is none to damage."""
    try:
        result = fn(*inputs)
        outputs = [t for t in (result if isinstance(result, (tuple, list)) else [result]) if t.requires_grad]
        total = sum((t.real * torch.linspace(1, 2, t.numel()).reshape(t.shape)).sum() for t in outputs)
        found = torch.autograd.grad(total, inputs[0], allow_unused=True)[0]
    except Exception:
        return None
    known = found is not None and torch.isfinite(found).all() and (found.abs() > 1e-9).any()
    return found if known else None


def taken(per_op, options):
    """The samples of every n-th operator, from the k-th on, until the time is up."""
    first, step = (int(number) for number in options.part.split("/"))
    start = time.process_time()
    for number, (_, group) in enumerate(itertools.groupby(samples(per_op), key=lambda sample: sample[0])):
        if time.process_time() - start > options.seconds:
            print(f"stopped after {number} operators")
            return
        if number % step == first - 1:
            yield from group


def alarms(options):
    """Counts verdicts beside torch's gradcheck; returns the samples where torch passes, wrong and undecided ones."""
    counts, named = Counter(), []
    for name, fn, inputs in taken(options.per_op, options):
        passes = torch_passes(fn, inputs)
        found = verdicts(fn, inputs)
        worst = next((v for v in ("error", "mismatch", "undecided", "flat", "subgradient") if v in found), "match")
        counts[passes, worst] += 1
        if passes and worst not in ("match", "subgradient"):
            named.append((name, worst))
    for (passes, worst), count in sorted(counts.items()):
        print(f"torch {'passes' if passes else 'fails':7s} {worst:12s} {count:6d}")
    total = sum(count for (passes, _), count in counts.items() if passes)
    wrong, unsure = (sum(counts[True, v] for v in pair) for pair in (("mismatch", "error"), ("undecided", "flat")))
    print(
        f"of {total} where torch passes: {100 * wrong / total:.3f} % mismatch, {100 * unsure / total:.3f} % undecided"
    )
    print(*named, sep="\n")
    return total, wrong, unsure


def mutants(options):
    """Damages gradients; returns the number of operators, of mutants, of those detected and of those named."""
    made, seen, told = Counter(), Counter(), Counter()
    missed, answers, ops = [], Counter(), set()
    for name, fn, inputs in taken(1, options):
        plain = gradient(fn, inputs)
        if plain is None or plain.numel() < 2 or not torch_passes(fn, inputs):
            continue
        for damage, (change, codes) in DAMAGES.items():
            if damage in ("absolute", "positive", "normalised", "clamped"):
                effective = plain.norm() > 1e-3  # any sign of the cotangent comes up
            else:
                effective = not torch.allclose(change(plain), plain, rtol=1e-6, atol=0)
            if not effective:
                continue
            ops.add(name)
            made[damage] += 1

            def mutant(x, *rest, d=damage, f=fn):
                return f(Damaged.apply(x, d), *rest)

            if options.names:
                try:
                    report = nbautograd.gradcheck(mutant, inputs, order=1, hints="where")
                except Exception as error:  # a mistake of ours
                    missed.append((name, damage, repr(error)))
                    continue
                found = report.verdict
                top = report.findings[0].code if report.findings else "nothing"
                told[damage] += top in codes
                answers[damage, top] += 1
                hit = found == "wrong"
            else:
                found = verdicts(mutant, inputs)
                hit = "mismatch" in found
            seen[damage] += hit
            if not hit:
                missed.append((name, damage, found))
    for damage in made:
        tops = ", ".join(f"{t} {n}" for (d, t), n in answers.most_common() if d == damage)
        print(f"{damage:14s} {made[damage]:5d} detected {seen[damage]:5d} named {told[damage]:5d}  {tops}")
    total = sum(made.values())
    print(f"{len(ops)} operators, {total} mutants: detected {100 * sum(seen.values()) / total:.2f} %,"
          f" named {100 * sum(told.values()) / total:.1f} %")  # fmt: skip
    print(*missed, sep="\n")
    return len(ops), total, sum(seen.values()), sum(told.values())


def speed(options):
    ratios = []
    for name, fn, inputs in taken(options.per_op, options):
        result = fn(*inputs)
        outputs = [t for t in (result if isinstance(result, (tuple, list)) else [result]) if t.requires_grad]
        entries = sum(t.numel() for t in outputs) * sum(t.numel() for t in inputs)
        if entries < 1000:
            continue
        ours, theirs = (min(_cpu(tool, fn, inputs) for _ in range(2)) for tool in (verdicts, torch_passes))
        ratios.append((ours / theirs, name, entries, 1e3 * ours, 1e3 * theirs))
    ratios.sort(reverse=True)
    slower = sum(r[0] > 1 for r in ratios)
    twice = sum(r[0] > 2 for r in ratios)
    print(f"{len(ratios)} samples with n*m >= 1,000: slower than slow mode {slower}, more than 2x {twice}")
    for ratio, name, entries, ours, theirs in ratios[:15]:
        print(f"{ratio:6.2f}x {name:40s} {entries:8d} entries, {ours:8.1f} ms, torch slow {theirs:8.1f} ms")


def _cpu(tool, fn, inputs):
    start = time.process_time()
    tool(fn, inputs)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=["alarms", "mutants", "speed"])
    parser.add_argument("--per-op", type=int, default=3)
    parser.add_argument("--part", default="1/1", help="k/n: every n-th operator from the k-th on")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of CPU time, after which it stops")
    parser.add_argument("--names", action="store_true", help="ask the whole report, and count the names it gives")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    start = time.process_time()
    {"alarms": alarms, "mutants": mutants, "speed": speed}[options.study](options)
    print(f"{time.process_time() - start:.0f} s of CPU time")


if __name__ == "__main__":
    main()
