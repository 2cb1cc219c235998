"""What a process and all that it started take up, as the kernel tells from outside.

The limits that the kernel keeps are a process's own; this is the only home of those that hold for all of them together.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

from offing.sandbox.sandbox import Killed, Limits

MOST_INODES = 4096
"""Files, folders and links that may lie in a place that can be written. Empty ones take up memory, too."""

USUAL_SEND_BUFFER = 208 * 1024
"""`net.core.wmem_default` where nobody has changed it."""

PAGE = os.sysconf("SC_PAGE_SIZE")


def too_much(pid: int, *, limits: Limits, folders: Sequence[str]) -> Killed | None:
    """Whether they hold more memory than allowed, or more files in one of these folders as they see them."""
    family = descendants(pid)
    held = sum(resident(one) for one in family)
    # Each is asked, since what has ended and was not waited for tells nothing.
    if held + max(map(sockets, family), default=0) * max_socket_bytes() > limits.memory:
        return Killed.MEMORY
    for folder in folders:
        if any(inodes(one, folder) > MOST_INODES for one in family):
            return Killed.FILES
    return None


@cache
def max_socket_bytes() -> int:
    """What the kernel can hold for one end of a pair of sockets: about two and a half times its default."""
    found = _text("/proc/sys/net/core/wmem_default").strip()  # not shown in every network namespace
    return (int(found) if found.isdigit() else USUAL_SEND_BUFFER) * 5 // 2


def descendants(pid: int) -> list[int]:
    """Ids of all that a process has started, and what those have, ended ones that nobody has waited for too."""
    found, waiting = list[int](), [pid]
    while waiting:
        for task in _listed(f"/proc/{waiting.pop()}/task"):
            children = [int(child) for child in _text(task).split()]
            found += children
            waiting += children
    return found


def _listed(folder: str) -> list[str]:
    try:
        return [f"{folder}/{task}/children" for task in os.listdir(folder)]
    except OSError:  # it has ended meanwhile
        return []


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:  # as above
        return ""


def resident(pid: int) -> int:
    """Bytes in memory. 0: it has ended."""
    words = _text(f"/proc/{pid}/statm").split()
    return int(words[1]) * PAGE if words else 0


def sockets(pid: int) -> int:
    """How many there are in the process's network namespace, closed ones with unread data too. 0: it has ended, or is
    not yet in its place."""
    try:
        if os.path.samestat(os.stat(f"/proc/{pid}/ns/net"), os.stat("/proc/self/ns/net")):
            return 0
    except OSError:
        return 0
    head, _, rest = _text(f"/proc/{pid}/net/sockstat").partition("sockets: used ")
    return int(rest.split()[0]) if rest and not head else 0


def inodes(pid: int, folder: str) -> int:
    """How many lie in the file system that the process sees there. 0: it has ended, or is not yet in its place."""
    root = f"/proc/{pid}/root"
    try:
        if os.path.samestat(os.stat(root + "/"), os.stat("/")):
            return 0
        known = os.statvfs(root + folder)
    except OSError:
        return 0
    return known.f_files - known.f_ffree


def too_much_in(pid: int, *, limits: Limits, folder: str) -> Killed | None:
    """The same of one process whose files lie in a folder of this machine, those that it has removed but still holds
    counted."""
    sizes = [*_sizes(folder), *_held(pid)]
    return Killed.FILES if sum(sizes) > limits.total or len(sizes) > MOST_INODES else None


def _sizes(folder: str) -> list[int]:
    """Of everything in it; a little more than may lie there is enough to know."""
    found, waiting = list[int](), [folder]
    while waiting and len(found) <= MOST_INODES:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                found.append(entry.stat(follow_symlinks=False).st_size)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return found


def _held(pid: int) -> list[int]:
    """Sizes of files that it has open and that have no name any more."""
    found = list[int]()
    with suppress(OSError):
        for handle in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                known = os.stat(f"/proc/{pid}/fd/{handle}")
                if known.st_nlink == 0 and known.st_mode & 0o170000 == 0o100000:
                    found.append(known.st_size)
    return found
