"""Launcher that executes a program which cannot outlive its parent process.

Every child is started as `launch.py PARENT SIGNAL IDENTITY -- program arguments`. The launcher
assumes the identity, asks the kernel for SIGNAL at the death of its parent, checks that the parent
is still alive, and calls exec, so that the child keeps its process id. It uses the standard library
only.

The kernel ties the request to the *thread* that forked the child and forgets it when credentials
change. Hence the order of the steps, and the one long-lived thread in `processes.spawn_process`.
Platforms without such a request (macOS) get none: there the next start finds and stops orphaned
processes.
"""

import ctypes
import os
import signal
import struct
import sys

NAMESPACE_REFUSED = 96
PARENT_EXITED = 97
CANNOT_EXEC = 98

UNPRIVILEGED_ID = 65534
"""User id of `nobody` on Linux: what a root process appears as inside its namespace, or becomes
outside one.
"""

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
    _assume_identity(identity)
    _set_parent_death_signal(int(parent), int(death_signal))
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
        os._exit(CANNOT_EXEC)


def _assume_identity(identity: str) -> None:
    """Assume an identity.

    `same` changes nothing. `namespace` becomes nobody inside a new user namespace. `drop` becomes
    nobody permanently.
    """
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
    """Keep the capability to enter folders of root, if this process had it.

    Otherwise they must be accessible.
    """
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    low = struct.pack("III", _DAC_OVERRIDE, _DAC_OVERRIDE, _DAC_OVERRIDE)
    if libc.capset(header, low + struct.pack("III", 0, 0, 0)) == 0:
        libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_OVERRIDE, 0, 0)


def _enter_namespace() -> None:
    uid, gid = os.geteuid(), os.getegid()
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER) != 0:
        _fail_namespace(os.strerror(ctypes.get_errno()))
    try:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{UNPRIVILEGED_ID} {uid} 1")
        _write("/proc/self/gid_map", f"{UNPRIVILEGED_ID} {gid} 1")
    except OSError as error:
        _fail_namespace(str(error))


def _fail_namespace(reason: str) -> None:
    print(f"user namespaces are not available: {reason}", file=sys.stderr)
    os._exit(NAMESPACE_REFUSED)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _set_parent_death_signal(parent: int, death_signal: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent:
        os._exit(PARENT_EXITED)


if __name__ == "__main__":
    main(sys.argv[1:])
