"""Becomes another program that cannot outlive the process that started it.

Run as a script in front of every child: `launch.py PARENT SIGNAL IDENTITY -- program arguments`. It takes on the
identity, asks the kernel for SIGNAL at its parent's death, checks that the parent is still there, and execs, so that
the child keeps the pid that the parent knows. It knows nothing of what it starts and uses the standard library only.

The kernel ties the request to the *thread* that forked us and forgets it when credentials change; hence the order
here, and the one long-lived thread in `processes.spawn`. Platforms without the request (macOS) get none: there the
next start finds and stops what was left behind.
"""

import ctypes
import os
import signal
import struct
import sys

NAMESPACE_REFUSED = 96
PARENT_GONE = 97
CANNOT_EXEC = 98

UNPRIVILEGED_ID = 65534
"""`nobody` on every Linux; who a root process appears to be inside its namespace, or becomes outside one."""

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1
_PR_SET_KEEPCAPS = 8
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_CAPABILITY_VERSION_3 = 0x20080522
_CAP_DAC_OVERRIDE = 1
_DAC_OVERRIDE = 1 << _CAP_DAC_OVERRIDE


def main(arguments: list[str]) -> None:
    parent, death_signal, identity, dashes, *argv = arguments
    assert dashes == "--", arguments
    os.umask(0o077)
    _become(identity)
    _die_with_parent(int(parent), int(death_signal))
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
        os._exit(CANNOT_EXEC)


def _become(identity: str) -> None:
    """`same`: as we are. `namespace`: nobody inside a new user namespace. `drop`: nobody for good."""
    if identity == "namespace":
        _enter_namespace()
    elif identity == "drop":
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
        os.setgroups([])
        os.setgid(UNPRIVILEGED_ID)
        os.setuid(UNPRIVILEGED_ID)
        _keep_reaching_files(libc)


def _keep_reaching_files(libc: ctypes.CDLL) -> None:
    """Keeps the one capability to pass folders that admit root alone, where we had it; without it they must be open."""
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    low = struct.pack("III", _DAC_OVERRIDE, _DAC_OVERRIDE, _DAC_OVERRIDE)
    if libc.capset(header, low + struct.pack("III", 0, 0, 0)) == 0:
        libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_OVERRIDE, 0, 0)


def _enter_namespace() -> None:
    uid, gid = os.geteuid(), os.getegid()
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER) != 0:
        _refuse(os.strerror(ctypes.get_errno()))
    try:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{UNPRIVILEGED_ID} {uid} 1")
        _write("/proc/self/gid_map", f"{UNPRIVILEGED_ID} {gid} 1")
    except OSError as error:
        _refuse(str(error))


def _refuse(why: str) -> None:
    print(f"user namespaces are refused here: {why}", file=sys.stderr)
    os._exit(NAMESPACE_REFUSED)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _die_with_parent(parent: int, death_signal: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent:
        os._exit(PARENT_GONE)


if __name__ == "__main__":
    main(sys.argv[1:])
