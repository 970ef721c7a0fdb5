"""Every kind of tensor that memory cannot simply be read of, given to, returned from and saved by a Function that is
recorded, or watched by an audit.

``python odd_tensors.py KIND...`` runs each kind in a process of its own (a fork of this one, so that torch is imported
once) and prints what became of it: ``ok``, or the first difference between the bare and the recorded run, or how the
process ended.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import sys
import tempfile
import threading
import warnings
from multiprocessing import shared_memory

import numpy as np
import torch
from fn import Fn

KEEP = []  # what a tensor's memory depends on, for the life of the process


def resized(size):
    x = torch.zeros(10**6)
    x.untyped_storage().resize_(size)
    return x


def shared_memory_closed():
    block = shared_memory.SharedMemory(create=True, size=4 * 10**6)
    x = torch.from_numpy(np.ndarray(10**6, np.float32, block.buf))
    block.close()
    block.unlink()
    return x


def truncated_file():
    file = tempfile.NamedTemporaryFile()  # noqa: SIM115 - it must outlive this function
    KEEP.append(file)
    file.truncate(4 * 10**6)
    x = torch.from_file(file.name, shared=True, size=10**6)
    os.truncate(file.name, 0)
    return x


def protected_pages():
    pages = mmap.mmap(-1, 4 * mmap.PAGESIZE)
    KEEP.append(pages)
    x = torch.frombuffer(pages, dtype=torch.float32)
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(x.data_ptr()), 4 * mmap.PAGESIZE, 0) == 0
    return x


def protected_small():
    return protected_pages()[:3]


def protected_with_gaps():
    return protected_pages()[:2000].reshape(2, 1000).t()


def protected_in_the_middle():
    pages = mmap.mmap(-1, 16 * mmap.PAGESIZE)
    KEEP.append(pages)
    x = torch.frombuffer(pages, dtype=torch.float32)
    middle = ctypes.c_void_p(x.data_ptr() + 8 * mmap.PAGESIZE)
    assert ctypes.CDLL(None).mprotect(middle, mmap.PAGESIZE, 0) == 0
    return x


def truncated_array():
    file = tempfile.NamedTemporaryFile()  # noqa: SIM115 - it must outlive this function
    KEEP.append(file)
    file.truncate(4 * 10**4)
    array = np.memmap(file.name, np.float32, "r+")
    os.truncate(file.name, 0)
    return array


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        KEEP.append(mode)
        return torch.ones(3)


class WithoutShape(torch.Tensor):
    @property
    def shape(self):
        raise ValueError("no shape")


class WithoutDtype(torch.Tensor):
    @property
    def dtype(self):
        raise ValueError("no dtype")


def two():
    from torch.testing._internal.two_tensor import TwoTensor

    return TwoTensor(torch.randn(3), torch.randn(3))


def masked():
    from torch.masked import masked_tensor

    return masked_tensor(torch.ones(3), torch.tensor([True, False, True]))


def functional():
    return torch._to_functional_tensor(torch.ones(3))


KINDS = {
    "nested strided": lambda: torch.nested.nested_tensor([torch.randn(2), torch.randn(3)]),
    "nested jagged": lambda: torch.nested.nested_tensor([torch.randn(2), torch.randn(3)], layout=torch.jagged),
    "sparse COO": lambda: torch.eye(3).to_sparse(),
    "sparse CSR": lambda: torch.eye(4).to_sparse_csr(),
    "sparse BSR": lambda: torch.eye(4).to_sparse_bsr((2, 2)),
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
    "mkldnn": lambda: torch.randn(3, 3).to_mkldnn(),
    "float8": lambda: torch.ones(3).to(torch.float8_e4m3fn),
    "complex32": lambda: torch.ones(3, dtype=torch.complex32),
    "named": lambda: torch.ones(2, 3, names=("N", "C")),
    "meta": lambda: torch.empty(3, device="meta"),
    "FakeTensor": fake,
    "wrapper subclass": two,
    "MaskedTensor": masked,
    "subclass without a shape": lambda: torch.ones(3).as_subclass(WithoutShape),
    "subclass without a dtype": lambda: torch.ones(3).as_subclass(WithoutDtype),
    "uninitialised parameter": torch.nn.UninitializedParameter,
    "sparse, not coalesced": lambda: torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.ones(2, 3), (4, 3)),
    "quantised by channel": lambda: torch.quantize_per_channel(
        torch.ones(3, 2), torch.ones(3), torch.zeros(3), 0, torch.qint8
    ),
    "expanded beyond all memory": lambda: torch.ones(2, 1).expand(2, 2**40),
    "functional wrapper": functional,
    "copy on write": lambda: torch._lazy_clone(torch.ones(3)),
    "negative view": lambda: torch._neg_view(torch.ones(3)),
    "conjugate": lambda: torch.ones(3, dtype=torch.complex64).conj(),
    "zero tensor": lambda: torch._efficientzerotensor(3),
    "inference": lambda: _inference(),
    "no elements": lambda: torch.empty(0, 3),
    "storage shrunk": lambda: resized(4),
    "storage freed": lambda: resized(0),
    "shared memory closed": shared_memory_closed,
    "file truncated": truncated_file,
    "pages protected": protected_pages,
    "pages protected, small": protected_small,
    "pages protected, with gaps": protected_with_gaps,
    "one page protected": protected_in_the_middle,
    "array of protected pages": lambda: protected_pages().numpy(),
    "array of a truncated file": truncated_array,
    "strided far beyond its storage": lambda: _beyond(),
}


def _inference():
    with torch.inference_mode():
        return torch.ones(3)


def _beyond():
    x = torch.zeros(10**6).as_strided((1000,), (1000,))
    x.untyped_storage().resize_(4 * 10**4)
    return x


def functions(make):
    """One Function per place in which the odd tensor can stand; none of them reads it."""

    Given = Fn.of("Given", "x, odd: return torch.ones(1)", "g: return None, None")
    Returned = Fn.of("Returned", "x, odd: return odd", "g: return None, None")
    Saved = Fn.of("Saved", "x, odd: save(odd); ctx.odd = odd; return x * 2", "g: return g * 2, None")
    SetUp = Fn.of(
        "SetUp", "x, odd: return x * 2", "g: return g * 2, None", setup_context="inputs, output: save(inputs[1])"
    )

    class Gradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, odd):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return make(), None

    return Given, Returned, Saved, SetUp, Gradient


def outcome(cls, make, needs_grad):
    """What one call gives: kinds of what came out, or the error."""
    try:
        x = torch.ones(3, requires_grad=needs_grad)
        out = cls.apply(x, make())
        seen = [type(out).__name__, out.requires_grad]
        if out.requires_grad and cls.__name__ != "Returned":
            out.sum().backward()
            seen.append(None if x.grad is None else type(x.grad).__name__)
    except Exception as error:
        return type(error).__name__, re.sub(r"\bj\d+", "j", str(error))[:60]  # jagged sizes are counted
    return seen


def compare(make):
    """The first difference of a recorded or watched run from the bare one, in any place, at any level; "" for none."""
    import nbautograd
    from nbautograd.core.recording.watching import FunctionWatch

    def safely():
        with torch.no_grad():
            return make()

    for bare, cls in zip(functions(safely), functions(safely), strict=True):
        for needs_grad in (True, False):
            expected = [outcome(bare, safely, needs_grad) for _ in range(2)]
            for level in ("shapes", "summary", "pooled", "values"):
                with nbautograd.recording(cls, level=level) as log:
                    got = [outcome(cls, safely, needs_grad) for _ in range(2)]
                if got != expected:
                    return f"{cls.__name__} at {level}, grad {needs_grad}: {got} instead of {expected}"
                if log.problems:
                    return f"{cls.__name__} at {level}: {log.problems[0]}"
                str(log), log.to_dict()  # can be read and written
                if not len(log) and any(type(one) is list for one in expected):
                    return f"{cls.__name__} at {level}: nothing recorded"
            with FunctionWatch() as watch:
                got = [outcome(bare, safely, needs_grad) for _ in range(2)]
            if got != expected:
                return f"{cls.__name__} under a watch, grad {needs_grad}: {got} instead of {expected}"
            if watch.errors or (bare not in watch.functions and any(type(one) is list for one in expected)):
                return f"{cls.__name__} under a watch: not seen {watch.errors}"
            for situation in [one for seen in watch.functions.values() for one in seen.situations.values()]:
                if not situation.copies and situation.lacking is None:
                    return f"{cls.__name__} under a watch: not kept, and not said why"
                str(situation.lacking), [call.arguments for call in situation.copies]
    return ""


def changed_by_another_thread():
    """As a process of its own: a tensor that another thread resizes and sets while it is given to a Function."""
    import nbautograd

    Given = functions(None)[0]
    nbautograd.instrument(Given)
    x, stop = torch.randn(10**5), threading.Event()

    def other():
        while not stop.is_set():
            x.resize_(0)
            x.set_(torch.randn(10**5))
            x.resize_(2 * 10**5)

    thread = threading.Thread(target=other)
    thread.start()
    for _ in range(4000):
        Given.apply(torch.ones(3), x)
    stop.set()
    thread.join()
    return "; ".join(map(str, nbautograd.calls(Given).problems))


def interrupted(native=True):
    """As a process of its own: an interrupt in each lookup of a method by PyTorch that runs Python of ours."""
    import nbautograd
    from nbautograd.core.recording import api, spy

    if not native:
        spy._NATIVE = spy.StaticSetupSpy
    x, lookups = torch.ones(3, requires_grad=True), 0
    for kind in (spy._CtxCreation, spy.ForwardSpy, spy.SetupSpy, spy.Spy):
        for at in range(4):
            SetUp = functions(None)[3]
            forward, setup_context = SetUp.forward, SetUp.setup_context
            nbautograd.instrument(SetUp)
            real, calls = kind.__get__, []

            def get(*args, real=real, calls=calls, at=at):
                calls.append(1)
                if len(calls) == at + 1:
                    raise KeyboardInterrupt
                return real(*args)

            kind.__get__ = get
            try:
                SetUp.apply(x, None).sum().backward()
            except KeyboardInterrupt:
                lookups += 1
            kind.__get__ = real
            api.clear_open_calls()
            if SetUp.forward is not forward or SetUp.setup_context is not setup_context:
                return f"another function than the user's after an interrupt in {kind.__name__}"
            SetUp.apply(x, None).sum().backward()
            methods = [call.method for call in nbautograd.calls(SetUp)][-3:]
            if methods != ["forward", "setup_context", "backward"]:
                return f"after an interrupt in {kind.__name__} {methods} were recorded"
    return "" if lookups > 3 else f"{lookups} lookups ran Python"


OTHERS = {
    "changed by another thread": changed_by_another_thread,
    "interrupted lookups": interrupted,
    "interrupted lookups in Python": lambda: interrupted(native=False),
}


def run(name):
    """One kind in a fork of this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                text = OTHERS[name]() if name in OTHERS else compare(KINDS[name])
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, (text or "ok").encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return text if status == 0 else f"the process ended with {status}"


if __name__ == "__main__":
    if "pipe" in os.environ.get("ODD_COPIER", ""):
        from nbautograd.core.recording import memory

        memory.VirtualMemory.copy = lambda *_: None
    compare(KINDS["no elements"])  # imports 200 modules, once for all forks: two thirds of what each takes
    for kind in sys.argv[1:]:
        print(f"{kind}: {run(kind)}", flush=True)
