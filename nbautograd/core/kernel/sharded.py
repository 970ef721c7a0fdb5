"""Sharded against unsharded: a function in several ranks beside one process, and how their gradients are related."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.problem import Problem
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.kernel.check import FRESH, Outcome, candidate_regions, confirmed, finding
from nbautograd.core.kernel.golden import Measured, Pair, Values
from nbautograd.core.kernel.ranks import cut_along, launched
from nbautograd.core.kernel.trial import Track, Trial
from nbautograd.core.numerics.draws import child
from nbautograd.errors import CallError

DRAWS = 2  # of the first look, and of the second one: each is sent to all ranks
Pieces = Sequence[Tensor | None]  # of one quantity, one for each rank
Way = Callable[[int, int], Tensor | None]  # from a quantity and a draw to what is compared with one process


@dataclass(frozen=True)
class Sharded:
    """What came of a function in several ranks.

    Attributes:
        outcome: beside one process; None where not all ranks returned.
        findings: with the relation of each wrong gradient, where there is one.
        reason: why there is no outcome.
        trace: what the ranks raised, or where they stood at the limit of time.
    """

    outcome: Outcome | None = None
    findings: tuple[Finding, ...] = ()
    reason: Phrase | str = ""
    trace: str = ""


def sharded(
    fn: Callable[..., Any], single: Problem, placements: Mapping[int, int], ranks: Any, seconds: float, seed: int
) -> Sharded:
    """Run a function in several ranks, and compare what they return together with one process.

    Args:
        fn: importable by the ranks; each calls it with its own pieces of the inputs.
        single: the function that computes the same in one process, in a session.
        placements: by position the dimension along which an input is cut; the others each rank has whole.
        ranks: as ``launched`` takes them.
        seconds: that the ranks may take.
    """
    pair = Pair(single, single)
    draws = [d for s in (seed, child(seed, FRESH)) for d in pair.draws(DRAWS, s)]
    job = {"draws": tuple(draws), "shards": dict(placements), "differentiable": single.differentiable}
    ran = launched(fn, {**job, "seconds": seconds}, ranks)
    if not ran.values:
        told = ran.stacks or ran.errors
        trace = "\n".join(f"rank {rank}:\n{text.rstrip()}" for rank, text in told.items())
        if ran.stacks:
            return Sharded(reason=Phrase("compare.ranks_hang", seconds=round(seconds)), trace=trace)
        last = next((text.strip().splitlines()[-1] for text in ran.errors.values()), "")
        return Sharded(reason=Phrase("compare.ranks_raised", error=last), trace=trace)
    measured = [pair.measure(draw, 2) for draw in draws]
    return Related(pair, measured, ran.values, placements).judged()


class Related:
    """The values of all ranks at some draws, and which relation to one process explains them.

    Args:
        pair: the function in one process, twice.
        measured: in one process, at the draws; the second half of them confirms.
        values: of each rank, at each draw.
        placements: as ``sharded`` takes them.
    """

    def __init__(
        self,
        pair: Pair,
        measured: Sequence[Measured],
        values: Sequence[Sequence[Values]],
        placements: Mapping[int, int],
    ) -> None:
        self.pair, self.measured, self.values, self.placements = pair, measured, values, placements
        self.world, self.outputs = len(values), measured[0].golden.outputs
        self.count = len(measured[0].golden.tensors)
        if any(len(v.tensors) != self.count for rank in values for v in rank):
            raise CallError("compare.ranks_outputs", function=pair.reference.name, count=self.outputs)

    def judged(self) -> Sharded:
        """Compare, and name the relation of what is wrong."""
        gathered = self._gathered([self._whole] * self.count)
        first = Trial(self.pair, power=True).of(gathered[:DRAWS])
        suspects = [k for k, track in enumerate(first.tracks) if track.broken or track.exceeded()]
        regions = {k: candidate_regions(first.tracks[k]) for k in suspects}
        later = Trial(self.pair, regions=regions).of(gathered[DRAWS:])
        wrong = tuple(k for k in suspects if confirmed(first.tracks[k], later.tracks[k]))
        findings = tuple(self._finding(k, first.tracks[k], later.tracks[k]) for k in wrong)
        return Sharded(Outcome(first, wrong, findings, {}, DRAWS), findings)

    def _gathered(self, ways: Sequence[Way]) -> list[Measured]:
        return [
            replace(one, candidate=Values(tuple(way(k, at) for k, way in enumerate(ways)), self.outputs))
            for at, one in enumerate(self.measured)
        ]

    def pieces(self, k: int, at: int) -> Pieces:
        """Return the values of all ranks of a quantity at a draw."""
        return [rank[at].tensors[k] for rank in self.values]

    def _dim(self, k: int, at: int) -> int | None:
        if k >= self.outputs:
            return self.placements.get(self.pair.candidate.differentiable[k - self.outputs])
        golden, mine = self.measured[at].golden.tensors[k], self.pieces(k, at)[0]
        return None if golden is None or mine is None else cut_along(golden.shape, mine.shape, self.world)

    def _whole(self, k: int, at: int, shift: int = 0) -> Tensor | None:
        """Return the pieces of all ranks together, or the whole that is furthest from the golden values."""
        pieces, dim = self.pieces(k, at), self._dim(k, at)
        if any(one is None for one in pieces):
            return None
        tensors = [one for one in pieces if one is not None]
        if dim is not None:
            return torch.cat([*tensors[shift:], *tensors[:shift]], dim)
        golden = self.measured[at].golden.tensors[k]
        if golden is None:
            return tensors[0]
        return max(tensors, key=lambda one: _apart(one, golden))

    def _relations(self, k: int) -> Iterator[tuple[str, Way, dict[str, Any]]]:
        whole = self._whole
        yield "times", lambda k, at: _scaled(whole(k, at), 1 / self.world), {"factor": self.world}
        yield "times", lambda k, at: _scaled(whole(k, at), self.world), {"factor": f"1/{self.world}"}
        if self._dim(k, 0) is not None:
            for shift in range(1, self.world):
                yield "other_rank", functools.partial(whole, shift=shift), {"shift": shift}
            return
        golden = self.measured[0].golden.tensors[k]
        for dim in range(0 if golden is None else golden.dim()):
            if self._only_local(k, dim):
                yield "local_shard", self._sum, {"dim": dim}
        yield "partial_sum", self._sum, {}
        for rank in range(self.world):
            yield "one_rank", functools.partial(self._of_rank, rank=rank), {"rank": rank}

    def _of_rank(self, k: int, at: int, rank: int) -> Tensor | None:
        return self.pieces(k, at)[rank]

    def _sum(self, k: int, at: int) -> Tensor | None:
        pieces = [one for one in self.pieces(k, at) if one is not None]
        return torch.stack(pieces).sum(0) if pieces else None

    def _only_local(self, k: int, dim: int) -> bool:
        pieces = self.pieces(k, 0)
        if any(one is None or one.shape[dim] % self.world for one in pieces):
            return False
        chunks = [one.chunk(self.world, dim) for one in pieces if one is not None]
        return all(not bool(c.any()) for r, own in enumerate(chunks) for j, c in enumerate(own) if j != r)

    def _finding(self, k: int, track: Track, later: Track) -> Finding:
        general = finding(track, candidate_regions(track), later)
        for name, way, params in self._relations(k):
            ways: list[Way] = [self._whole] * self.count
            ways[k] = way
            track = Trial(self.pair).of(self._gathered(ways)).tracks[k]
            if not (track.broken or track.exceeded()):
                given = {**general.params, **params}
                return Finding("compare_sharded", "bug", f"compare.sharded_{name}", given, general.where)
        return general


def _scaled(tensor: Tensor | None, factor: float) -> Tensor | None:
    return None if tensor is None else tensor * factor


def _apart(one: Tensor, golden: Tensor) -> float:
    if one.shape != golden.shape:
        return float("inf")
    gap = (one.double() - golden.double()).abs().sum()
    return float("inf") if gap.isnan() else float(gap)
