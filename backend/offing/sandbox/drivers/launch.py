"""Becomes bubblewrap, under a user without any rights: `launch.py PLAN`, with a plan in JSON.

Started by root, it becomes nobody, because the kernel counts the processes of root for no limit. What nobody may not
reach, such as an interpreter in root's home, is shown to it first in a mount namespace that ends with it. It knows
nothing of what it starts and uses the standard library only.
"""

import ctypes
import json
import os
import sys

NOBODY = 65534

_NEW_MOUNTS = 0x00020000
_PRIVATE, _RECURSIVE, _BIND = 1 << 18, 1 << 14, 1 << 12
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9

PARENT_GONE = 97


def main(plan: str) -> None:
    told = json.loads(plan)
    argv: list[str] = told["argv"]
    join(told["groups"])
    if os.geteuid() == 0:
        shown = _show(told["places"])
        argv = [argument if shown else told["places"].get(argument, argument) for argument in argv]
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    os.umask(0o022)
    os.nice(5)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.getppid() != told["parent"]:
        os._exit(PARENT_GONE)
    os.execv(argv[0], argv)


def join(groups: list[str]) -> None:
    """Enter the control groups in which the code runs; what starts from here on is in them, too."""
    for members in groups:
        try:
            with open(members, "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
        except OSError as error:
            sys.exit(f"{members}: {error.strerror}")


def _show(places: dict[str, str]) -> bool:
    """Make every place show what it stands for, for us alone. False: root may not do so here.

    What it stands for is opened first, since the places may cover it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS) != 0:
        return False
    if libc.mount(b"none", b"/", None, _PRIVATE | _RECURSIVE, None) != 0:
        return False
    found = {place: os.open(real, os.O_PATH | os.O_CLOEXEC) for place, real in places.items()}
    if libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, b"size=1m,mode=755") != 0:
        return False
    for place, real in places.items():
        _make(place, os.path.isdir(f"/proc/self/fd/{found[place]}"))
        if libc.mount(f"/proc/self/fd/{found[place]}".encode(), place.encode(), None, _BIND, None) != 0:
            sys.exit(f"{real}: {os.strerror(ctypes.get_errno())}")
    return True


def _make(place: str, folder: bool) -> None:
    if folder:
        os.mkdir(place)
    else:
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))


if __name__ == "__main__":
    main(sys.argv[1])
