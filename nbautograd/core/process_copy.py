"""A run that leaves no trace: in a copy of the process, with files and the network out of its reach.

The copy is made by ``fork``, so that the program runs with every variable as it is, and whatever it changes is gone
with the copy. Three fences stand around it. What was open for writing is ``/dev/null`` there, so that a log handler
goes on and writes nothing. What Python would open anew is refused by an audit hook, and the answer says what it was.
What an extension in C would open is refused by the kernel, where it knows Landlock (Linux 5.13).
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import pickle
import select
import signal
import stat
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nbautograd.core.stumbles import ask
from nbautograd.core.this_thread import undone, warnings_ignored

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OUTSIDE = (
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink", "os.chmod", "os.chown"),
    *("os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.startfile", "os.kill", "subprocess.Popen"),
    *("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "urllib.Request", "webbrowser.open"),
    *("sqlite3.connect", "builtins.input", "shutil.move", "shutil.rmtree", "shutil.copyfile", "pty.spawn"),
)

_PR_SET_PDEATHSIG = 1  # of prctl(2): the signal that a process gets when its parent ends
_PR_SET_NO_NEW_PRIVS = 38  # of prctl(2): what the kernel asks for before a process may fence itself in
_POOL = "PTThreadPool"  # what torch names the threads of its pool between operators
_LENGTH = struct.Struct("=Q")  # of a message in the pipe
LONGEST_RUN = 120.0  # seconds; a thread that held a lock when the copy was made is not there to let go of it

Tell = Callable[[Any], None]
_copied = False  # True in a copy of a process


class OutsideError(BaseException):
    """The run reached outside its process; no ``except Exception`` of the program catches it."""


@dataclass(frozen=True)
class Refused:
    """A run that did not come to its end.

    Attributes:
        reason: ``"outside"`` (it reached for a file, the network or another process), ``"fork"`` (this system or
            device does not copy a process), ``"late"`` (it took longer than it may), ``"died"``.
        detail: what it reached for, such as ``"open out.csv"``, the seconds that it may take, or the signal that ended
            it, such as ``"SIGSEGV"``.
    """

    reason: str
    detail: str = ""


def why_not() -> str:
    """Return why no copy of this process can run torch; empty where one can."""
    if not hasattr(os, "fork"):
        return "fork"
    # the engine's threads of another device are not there in a copy, and its memory cannot be used
    other = getattr(torch, "accelerator", None)
    if torch.cuda.is_available() or (other is not None and ask(lambda: other.is_available(), False)):
        return "device"
    # nor are the threads of a process group: a collective waits for them for ever, with one process too
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return "group"
    return "threads" if _has_started_threads() else ""


def _has_started_threads() -> bool:
    """Return True where ``torch.jit.fork`` has started its threads, for which a copy would wait for ever."""
    for comm in Path("/proc/self/task").glob("*/comm"):  # only Linux has it
        with contextlib.suppress(OSError):  # a thread that ended meanwhile says nothing of the others
            if comm.read_text().strip() == _POOL:
                return True
    return False


def in_copy(job: Callable[[], Any], longest: float = LONGEST_RUN, compiled: bool = False) -> Any:
    """Return what a job returns in a copy of this process, or ``Refused``; what it returns has to be plain data.

    Args:
        job: what is run, out of reach of files and the network.
        longest: seconds after which the copy is ended.
        compiled: False runs what ``torch.compile`` made as it is written, where a watch sees its calls of torch.
    """

    def apart(_: Tell) -> Any:
        if not compiled and "torch._dynamo" in sys.modules:
            torch.compiler.set_stance("force_eager")  # of a process that has no other thread
        return job()

    if _copied:  # already; a fenced one may make no other
        return job()
    *_, answer = told_by_copy(apart, longest, fenced=True)
    if not (isinstance(answer, Refused) and answer.reason == "outside") or "torch._dynamo" in sys.modules:
        return answer
    # torch imports a large part of itself when it is first needed, which makes folders for its caches; as the program
    # would have it imported here if it ran here, that is done here, once for all copies to come
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        (torch.ones(1, requires_grad=True) * 2).mul_(2).sum().backward()
    *_, answer = told_by_copy(apart, longest, fenced=True)
    return answer


def told_by_copy(job: Callable[[Tell], Any], longest: float, fenced: bool) -> Iterator[Any]:
    """Yield what a job tells in a copy of this process, as it tells it; last what it returns, or ``Refused``.

    Args:
        job: what is run. It tells and returns plain data.
        longest: seconds after which the copy is ended.
        fenced: True to keep files and the network out of its reach.
    """
    reason = why_not()
    if reason:
        yield Refused("fork", reason)
        return
    parent, child, status = os.getpid(), -1, 0
    ends: list[int] = []
    end: Any = None

    def over() -> None:
        """End the copy; once more where an interrupt came in the middle of that."""
        nonlocal child, status
        if os.getpid() != parent:  # what is raised right after the fork does not let a copy out into the program
            os._exit(0)
        while ends:
            os.close(ends.pop())
        if child > 0:  # of one that has answered nothing is left to end
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGKILL)
                status = os.waitpid(child, 0)[1]
            child = -1

    try:
        try:
            try:
                with _signals_held() as (came, let_go):
                    ends += os.pipe()
                    with warnings_ignored():  # Python warns of threads; the copy uses none of them
                        child = os.fork()
                    if child == 0:
                        _in_copy(job, ends[1], parent, fenced, let_go)
            except OSError as error:  # no room for a copy
                end = (Refused("fork", os.strerror(error.errno or 0)),)
            for number in came:
                signal.raise_signal(number)
            while len(ends) > 1:  # none where there was no room
                os.close(ends.pop())
            for sent in _read(ends[0], longest) if ends else ():
                ended, value = pickle.loads(sent)
                if ended:
                    end = (value,)
                    break
                yield value
        except TimeoutError:
            end = (Refused("late", f"{longest:g}"),)
        finally:
            over()
    finally:
        over()
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    by = next((one.name for one in signal.Signals if one == number), f"signal {number}" if number else "")
    yield Refused("died", by) if end is None else end[0]


@contextlib.contextmanager
def _signals_held() -> Iterator[tuple[list[int], Callable[[], None]]]:
    """Let the program's handlers of signals wait for the end of a block; yields what came, and what lets them go.

    After a fork Python runs functions that let go of locks, logging's among them. A handler that raises there, as that
    of Ctrl-C does, leaves them locked: the next thread that logs hangs.
    """
    came: list[int] = []
    here = threading.current_thread() is threading.main_thread()  # no handler runs in any other
    handlers = {number: handler for number in signal.valid_signals() if callable(handler := signal.getsignal(number))}

    def undo() -> None:
        for number, handler in handlers.items() if here else ():
            signal.signal(number, handler)

    with undone(undo):
        for number in handlers if here else ():
            signal.signal(number, lambda number, _: came.append(number))
        yield came, undo


def _read(pipe: int, longest: float) -> Iterator[bytes]:
    """Yield the messages that are written to a pipe until it is closed, each after its length.

    Raises:
        TimeoutError: that takes longer.
    """
    end, sent = time.monotonic() + longest, bytearray()
    while select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
        chunk = os.read(pipe, 1 << 20)
        if not chunk:
            return
        sent += chunk
        while len(sent) >= _LENGTH.size and len(sent) >= (whole := _LENGTH.size + _LENGTH.unpack_from(sent)[0]):
            yield bytes(sent[_LENGTH.size : whole])
            del sent[:whole]
    raise TimeoutError


def _in_copy(job: Callable[[Tell], Any], writing: int, parent: int, fenced: bool, let_go: Callable[[], None]) -> None:
    """Run the job and send what it tells and returns; never comes back, and ends with its parent.

    Signals are held until ``let_go`` is called, within the block that ends the copy however it is left.
    """

    def tell(value: Any, ended: bool = False) -> None:
        message = pickle.dumps((ended, value))
        pipe.write(_LENGTH.pack(len(message)) + message)
        pipe.flush()

    global _copied
    _copied = True
    try:
        import resource  # not on Windows, which has no fork either

        let_go()
        with contextlib.suppress(OSError, AttributeError):  # only Linux has it
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # which ended before that
            return
        # GNU OpenMP waits in a copy for ever for the threads of the process, which are not there
        torch.set_num_threads(1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a copy that crashes leaves no file
        pipe = os.fdopen(writing, "wb")
        reached = _fence(writing) if fenced else []
        sys.stdin, sys.stdout, sys.stderr = io.StringIO(), io.StringIO(), io.StringIO()
        try:
            result = job(tell)
        except OutsideError:
            result = None
        tell(Refused("outside", reached[0]) if reached else result, ended=True)
    finally:
        os._exit(0)


def _fence(kept: int) -> list[str]:
    """Put up the three fences, and return the list that what is reached for will be in."""
    _silence(kept)
    sys.dont_write_bytecode = True
    tempfile.gettempdir()  # which writes a file to try it, the first time; imports of torch's ask for it
    reached: list[str] = []
    _refuse_savers(reached)
    sys.addaudithook(_guard(reached))
    with contextlib.suppress(OSError, AttributeError):  # another system, or an older kernel
        _forbid_writing()
    return reached


def _silence(kept: int) -> None:
    """Let nothing that was open before the copy be written to, or read from where somebody else would miss it.

    A copy shares its open files with the process, with their positions. So a file that is open for reading is opened
    again, at its position, and all else but devices that are read (``/dev/urandom``) and folders becomes ``/dev/null``.
    """
    import fcntl  # not on Windows, which has no fork either

    silent = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2, *_descriptors()):
        if number in (kept, silent):
            continue
        with contextlib.suppress(OSError):  # it was closed meanwhile, as the one that listed them
            mode = os.fstat(number).st_mode
            reads = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY and number > 2
            if not reads or not (stat.S_ISREG(mode) or stat.S_ISCHR(mode) or stat.S_ISDIR(mode)):
                os.dup2(silent, number)
            elif stat.S_ISREG(mode):
                again = os.open(f"/proc/self/fd/{number}", os.O_RDONLY)  # of its own, where the system has it
                os.lseek(again, os.lseek(number, 0, os.SEEK_CUR), os.SEEK_SET)
                os.dup2(again, number)
                os.close(again)


def _descriptors() -> list[int]:
    """Return the numbers of what is open, or of all that may be where the system does not list them."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        with contextlib.suppress(OSError):
            return [*map(int, os.listdir(folder))]
    return [*range(os.sysconf("SC_OPEN_MAX"))]


def _refuse_savers(reached: list[str]) -> None:
    """Refuse what torch writes to a file in C++, where Python does not hear of it, by name."""

    def refuse(owner: Any, name: str, position: int) -> None:
        save = getattr(owner, name)

        def refused(*args: Any, **kwargs: Any) -> Any:
            target = kwargs.get("f", args[position] if len(args) > position else None)
            if isinstance(target, (str, os.PathLike)):
                reached.append(f"{name} {os.fspath(target)}")
                raise OutsideError
            return save(*args, **kwargs)

        setattr(owner, name, refused)

    for owner, name, position in (
        (torch, "save", 1),
        (torch.serialization, "save", 1),
        (torch.jit, "save", 1),
        (torch.jit.ScriptModule, "save", 1),
    ):
        refuse(owner, name, position)


def _guard(reached: list[str]) -> Callable[[str, tuple[Any, ...]], None]:
    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = (*args, None, None, None)[:3]
            if path == os.devnull or isinstance(path, int) or not (isinstance(flags, int) and flags & _WRITING):
                return
            event = f"open {path}"
        elif event not in _OUTSIDE:
            return
        reached.append(event)
        raise OutsideError(event)

    return hook


# of landlock(7): calls, which have these numbers on every architecture, and rights by the version that has them first
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _BENEATH = 1, 1  # flags of the first two
_WRITE_FILE = 1 << 1
_FILES = {1: _WRITE_FILE | 0b1_1111_1111 << 4, 2: 1 << 13, 3: 1 << 14}  # write; remove, make; refer; truncate
_NETWORK = {4: 0b11}  # bind and connect of TCP
_SCOPE = {6: 0b11}  # abstract sockets and signals, to what is outside


def _forbid_writing() -> None:
    """Have the kernel refuse this process, for good, to write, make or remove any file but ``/dev/null``.

    It is the one fence that code in C meets as well: ``torch.jit.save``, the journal of a database, h5py.

    Raises:
        OSError: where the kernel does not.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *args: Any) -> int:
        result = int(libc.syscall(number, *args))
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

    version = call(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    asked = [sum(bits for first, bits in kind.items() if first <= version) for kind in (_FILES, _NETWORK, _SCOPE)]
    rights = (ctypes.c_uint64 * 3)(*asked)  # an older kernel takes the longer struct where its end is 0
    rules = call(_CREATE_RULESET, rights, ctypes.c_size_t(ctypes.sizeof(rights)), 0)
    silent = os.open(os.devnull, os.O_RDWR)
    allowed = ctypes.create_string_buffer(_WRITE_FILE.to_bytes(8, sys.byteorder) + silent.to_bytes(4, sys.byteorder))
    call(_ADD_RULE, rules, _BENEATH, allowed, 0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    call(_RESTRICT_SELF, rules, 0)
    os.close(rules)
    os.close(silent)
