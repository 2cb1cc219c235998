"""Start bubblewrap as a user without privileges: `launcher.py PLAN`, with a plan in JSON.

Started by root, it becomes the user nobody, because the kernel does not limit the number of root's
processes. Files that nobody may not read, such as an interpreter in root's home, are first mounted in a
private mount namespace. The script uses only the standard library.
"""

import ctypes
import json
import os
import sys

NOBODY_UID = 65534

_CLONE_NEWNS = 0x00020000
_PRIVATE, _RECURSIVE, _BIND = 1 << 18, 1 << 14, 1 << 12
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9

PARENT_EXITED = 97


def main(plan: str) -> None:
    settings = json.loads(plan)
    argv: list[str] = settings["argv"]
    join_control_groups(settings["groups"])
    if os.geteuid() == 0:
        is_mounted = _bind_mounts(settings["places"])
        argv = [argument if is_mounted else settings["places"].get(argument, argument) for argument in argv]
        os.setgroups([])
        os.setresgid(NOBODY_UID, NOBODY_UID, NOBODY_UID)
        os.setresuid(NOBODY_UID, NOBODY_UID, NOBODY_UID)
    os.umask(0o022)
    os.nice(5)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.getppid() != settings["parent"]:
        os._exit(PARENT_EXITED)
    os.execv(argv[0], argv)


def join_control_groups(groups: list[str]) -> None:
    """Enter the control groups in which the code runs. Everything started afterwards is in them, too."""
    for members in groups:
        try:
            with open(members, "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
        except OSError as error:
            sys.exit(f"{members}: {error.strerror}")


def _bind_mounts(mounts: dict[str, str]) -> bool:
    """Mount every path in a private namespace. Returns `False` if root may not do so here.

    The sources are opened first, because the mounts may hide them.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        return False
    if libc.mount(b"none", b"/", None, _PRIVATE | _RECURSIVE, None) != 0:
        return False
    handles = {target: os.open(real, os.O_PATH | os.O_CLOEXEC) for target, real in mounts.items()}
    if libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, b"size=1m,mode=755") != 0:
        return False
    for place, real in mounts.items():
        _make_mount_point(place, os.path.isdir(f"/proc/self/fd/{handles[place]}"))
        if libc.mount(f"/proc/self/fd/{handles[place]}".encode(), place.encode(), None, _BIND, None) != 0:
            sys.exit(f"{real}: {os.strerror(ctypes.get_errno())}")
    return True


def _make_mount_point(path: str, folder: bool) -> None:
    if folder:
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


if __name__ == "__main__":
    main(sys.argv[1])
