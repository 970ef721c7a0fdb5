"""Ranks: one function in several processes, started by torch's own launcher, and what each rank returned."""

from __future__ import annotations

import contextlib
import datetime
import faulthandler
import os
import pickle
import signal
import tempfile
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.prepared_inputs import is_floating
from nbautograd.core.kernel.golden import Draw, Values, copied
from nbautograd.core.pytrees import tensors
from nbautograd.errors import CallError

GRACE = 3.0  # seconds in which the other ranks write their stacks, once one has reached the limit
# What the launcher sets in the process that calls it, and leaves: see launch_agent and PContext.start in torch 2.13.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
VARIABLE = "TORCHELASTIC_SIGNALS_TO_HANDLE"


@dataclass(frozen=True)
class Job:
    """What each rank does.

    Attributes:
        fn: the function, as bytes that name where it can be imported from.
        draws: inputs and grad_outputs, whole.
        shards: by position of an input the dimension that it is cut along, one piece for each rank; the others whole.
        differentiable: positions of the inputs that are differentiated.
        seconds: after which a rank writes its stack and ends.
    """

    fn: bytes
    draws: tuple[Draw, ...]
    shards: dict[int, int]
    differentiable: tuple[int, ...]
    seconds: float


@dataclass(frozen=True)
class Ran:
    """What came of a job.

    Attributes:
        values: of each rank the outputs and gradients at each draw; empty where not all ranks returned.
        errors: by rank what it raised, as text.
        stacks: by rank where it was at the limit of time.
    """

    values: tuple[tuple[Values, ...], ...]
    errors: dict[int, str]
    stacks: dict[int, str]


def launched(fn: Callable[..., Any], job: dict[str, Any], ranks: Any) -> Ran:
    """Run a function in ranks of their own.

    Args:
        fn: importable by the ranks.
        job: the attributes of ``Job`` but for the function.
        ranks: how many on this machine, or a ``torch.distributed.launcher.api.LaunchConfig`` for others.

    Raises:
        CallError: the ranks could not import the function.
    """
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    try:
        named = pickle.dumps(fn)
    except Exception as error:  # silent: a function that has no place to be imported from is its author's
        raise CallError("compare.ranks_not_importable", function=getattr(fn, "__name__", "fn")) from error
    with tempfile.TemporaryDirectory() as folder, _as_before():
        given = ranks
        if isinstance(ranks, int):
            given = LaunchConfig(
                1,
                1,
                ranks,
                max_restarts=0,
                run_id=uuid.uuid4().hex,
                rdzv_backend="c10d",
                rdzv_endpoint="localhost:0",
            )
        torch.save(Job(named, **job), Path(folder) / "job.pt")
        with contextlib.suppress(Exception):  # silent: what a rank raised stands in its file
            elastic_launch(given, _rank)(folder)
        return _read(Path(folder))


@contextlib.contextmanager
def _as_before() -> Iterator[None]:
    """Put back the handlers of signals and the variable that the launcher sets."""
    handlers, variable = {one: signal.getsignal(one) for one in SIGNALS}, os.environ.get(VARIABLE)
    try:
        yield
    finally:
        for one, handler in handlers.items():
            with contextlib.suppress(ValueError):  # not in the main thread, where none was set
                signal.signal(one, handler)
        os.environ.pop(VARIABLE, None)
        if variable is not None:
            os.environ[VARIABLE] = variable


def _read(folder: Path) -> Ran:
    found: dict[str, dict[int, Any]] = {"values": {}, "error": {}, "stack": {}}
    for file in sorted(folder.glob("rank*")):
        rank, kind = int(file.stem.removeprefix("rank")), file.suffix[1:]
        if file.stat().st_size:
            loaded = torch.load(file, weights_only=False) if kind == "values" else file.read_text(encoding="utf-8")
            found[kind][rank] = loaded
    whole = not found["error"] and sorted(found["values"]) == list(range(len(found["values"])))
    values = tuple(found["values"][rank] for rank in sorted(found["values"])) if whole else ()
    return Ran(values, found["error"], found["stack"])


def _rank(folder: str) -> None:
    """Do the job in a rank; its result, its error or its stack goes into a file."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    place = Path(folder) / f"rank{rank}"
    job: Job = torch.load(Path(folder) / "job.pt", weights_only=False)
    with place.with_suffix(".stack").open("w") as stack:
        # both need no GIL: a collective that waits may hold it
        faulthandler.dump_traceback_later(job.seconds, file=stack)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, job.seconds + GRACE)
        try:
            torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=job.seconds + 2 * GRACE))
            fn = pickle.loads(job.fn)
            values = tuple(_run(fn, draw, job, rank, world) for draw in job.draws)
            torch.save(values, place.with_suffix(".values"))
            torch.distributed.barrier()
            torch.distributed.destroy_process_group()
        except BaseException as error:
            place.with_suffix(".error").write_text("".join(traceback.format_exception(error)), encoding="utf-8")
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()
            signal.setitimer(signal.ITIMER_REAL, 0)


def _run(fn: Callable[..., Any], draw: Draw, job: Job, rank: int, world: int) -> Values:
    inputs = list(copied(draw.inputs))
    for k, dim in job.shards.items():
        whole = inputs[k]
        inputs[k] = whole.detach().chunk(world, dim)[rank].clone().requires_grad_(whole.requires_grad)
    torch.manual_seed(draw.seed)
    outputs = [y for y in tensors(fn(*inputs)) if is_floating(y)]
    flowing = [y for y in outputs if y.requires_grad]
    grads = [piece(g, y.shape, rank, world) for y, g in zip(flowing, draw.grad_outputs, strict=True)]
    leaves = [inputs[k] for k in job.differentiable]
    gradients = torch.autograd.grad(flowing, leaves, grads, allow_unused=True)
    return Values((*(y.detach() for y in outputs), *gradients), len(outputs))


def cut_along(whole: Sequence[int], part: Sequence[int], world: int) -> int | None:
    """Return the dimension that a shape was cut along, one piece for each rank; None for none."""
    if len(whole) != len(part):
        return None
    others = [d for d, (n, m) in enumerate(zip(whole, part, strict=True)) if n != m]
    return others[0] if len(others) == 1 and part[others[0]] * world == whole[others[0]] else None


def piece(whole: Tensor, shape: Sequence[int], rank: int, world: int) -> Tensor:
    """Return what of a tensor belongs to a rank whose own has this shape."""
    dim = cut_along(whole.shape, shape, world)
    return whole if dim is None else whole.chunk(world, dim)[rank].contiguous()
