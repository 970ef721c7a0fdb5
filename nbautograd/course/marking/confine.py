"""Confinement of a process that is about to run what somebody handed in, as far as the system can.

Nothing here asks for a container or for root. Every layer is tried by itself, and the names of those that hold are
returned: they stand in the marks. Numbers of system calls are those of Linux on x86-64 and arm64.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import site
import struct
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch

NOBODY = 65534  # of Linux and of NFS
_SET_NO_NEW_PRIVS, _SET_PDEATHSIG, _SET_SECCOMP, _SECCOMP_FILTER = 38, 1, 22, 2  # linux/prctl.h, linux/seccomp.h
_CAPSET, _CAPABILITIES = (126, 91), 0x20080522  # linux/capability.h: version 3
_LANDLOCK = 444, 445, 446  # landlock_create_ruleset, _add_rule, _restrict_self: the same everywhere
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3  # linux/landlock.h
_ACCESSES = 13, 13, 14, 15, 15, 16  # rights to files that ABI 1, 2, ... know: the first so many bits
# number on x86-64, on arm64: what starts programs and processes, opens sockets, reaches other processes or the kernel
_REFUSED = {
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281), "clone3": (435, 435),
    "socket": (41, 198), "socketpair": (53, 199), "io_uring_setup": (425, 425),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "keyctl": (250, 219), "memfd_create": (319, 279), "shmget": (29, 194),
    "msgget": (68, 186),
}  # fmt: skip
_CLONE = 56, 220
_CLONE_THREAD = 0x00010000  # linux/sched.h: with it a thread is asked for, without it a process
_ARCHES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # linux/audit.h
_EPERM, _ENOSYS, _ALLOW, _KILL = 0x00050001, 0x00050026, 0x7FFF0000, 0x80000000  # SECCOMP_RET_...


def confine(limits: Mapping[str, int]) -> list[str]:
    """Confine this process for good, and return the names of the layers that hold.

    Args:
        limits: ``memory``, bytes more than this process has now, and ``seconds`` of processor time.
    """
    layers = [_limited(limits["memory"], limits["seconds"])]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.geteuid() == 0 and _readable_by_others(torch.__file__) and _readable_by_others(os.__file__):
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # a change of user clears it
            layers.append("nobody")
        elif os.geteuid() == 0:  # a root that may no more than others: it could lift its limits
            nothing = struct.pack("<6I", *[0] * 6)
            number, head = _CAPSET[platform.machine() == "aarch64"], struct.pack("<Ii", _CAPABILITIES, 0)
            if libc.syscall(number, head, nothing) == 0:
                layers.append("powers")
        libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)  # before the two others, which the kernel refuses without it
        layers += [name for name, ask in (("files", _no_files), ("calls", _no_calls)) if ask(libc)]
    return layers


def _limited(memory: int, seconds: int) -> str:
    """Bound memory, processor time and core dumps, and let no file grow: a disk cannot be filled."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    if sys.platform == "linux":  # macOS does not enforce it
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    return "limits"


def _readable_by_others(file: str) -> bool:
    """Return True if anybody may read a file: a package in root's own home is closed to nobody."""
    path = Path(file).resolve()
    return all(os.stat(p).st_mode & 0o005 for p in path.parents) and bool(os.stat(path).st_mode & 0o004)


def _libraries() -> Iterable[str]:
    """Return the folders that Python and what is installed may be read from."""
    packages = [*site.getsitepackages(), *(p for p in sys.path if p.endswith(("site-packages", "dist-packages")))]
    ours = [str(Path(__file__).resolve().parents[2]), str(Path(torch.__file__).parent)]
    python = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    return {*packages, *ours, *python, "/usr", "/lib", "/lib64", "/dev", "/proc/self"}


def _no_files(libc: ctypes.CDLL) -> bool:
    """Let this process read the libraries alone, and write nothing (Landlock, Linux 5.13)."""
    create, add, restrict = _LANDLOCK
    version = libc.syscall(create, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    handled = (1 << _ACCESSES[min(version, len(_ACCESSES)) - 1]) - 1
    network, scopes = (0b11 if version >= 4 else 0), (0b11 if version >= 6 else 0)  # TCP; signals, abstract sockets
    attributes = struct.pack("<QQQ", handled, network, scopes)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = libc.syscall(create, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return False
    for folder in _libraries():
        try:
            opened = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        libc.syscall(add, ruleset, 1, struct.pack("<Qi", _READ_FILE | _READ_DIR, opened), 0)
        os.close(opened)
    held = bool(libc.syscall(restrict, ruleset, 0) == 0)
    os.close(ruleset)
    return held


def _no_calls(libc: ctypes.CDLL) -> bool:
    """Refuse programs, processes, sockets and signals to this process; threads stay (seccomp, Linux 3.5)."""
    if platform.machine() not in _ARCHES:
        return False
    column, arch = _ARCHES[platform.machine()]
    load, equal, has, answer = 0x20, 0x15, 0x45, 0x06  # BPF: load a word, jump if equal, jump if a bit is set, return
    numbers = [(n[column], _ENOSYS if name == "clone3" else _EPERM) for name, n in _REFUSED.items()]
    lines = [(load, 0, 0, 4), (equal, 1, 0, arch), (answer, 0, 0, _KILL), (load, 0, 0, 0)]
    if column == 0:
        lines += [(has, 0, 1, 0x40000000), (answer, 0, 0, _EPERM)]  # the x32 numbers of the same calls
    for number, refusal in numbers:
        if number is not None:
            lines += [(equal, 0, 1, number), (answer, 0, 0, refusal)]
    lines += [(equal, 0, 3, _CLONE[column]), (load, 0, 0, 16), (has, 1, 0, _CLONE_THREAD), (answer, 0, 0, _EPERM)]
    lines.append((answer, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in lines))
    program = struct.pack("@HP", len(lines), ctypes.addressof(code))
    return bool(libc.prctl(_SET_SECCOMP, _SECCOMP_FILTER, program, 0, 0) == 0)
