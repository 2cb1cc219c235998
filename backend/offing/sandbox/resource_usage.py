"""Measure the resource usage of a process and its descendants from outside.

The limits of the kernel apply to each process. This module checks the limits that apply to all processes together.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

from offing.sandbox.limits import SandboxLimits
from offing.sandbox.sandbox import KillReason

MAX_INODES = 4096
"""Maximum number of files, folders and links in a writable folder. Empty ones use memory, too."""

DEFAULT_SEND_BUFFER_BYTES = 208 * 1024
"""Default of `net.core.wmem_default`."""

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def find_excess(pid: int, *, limits: SandboxLimits, folders: Sequence[str]) -> KillReason | None:
    """Return whether the processes use more memory than allowed, or have more files in one of these folders."""
    family = list_descendants(pid)
    resident = sum(resident_bytes(one) for one in family)
    # Read each process, because one that has ended and was not waited for reports nothing.
    if resident + max(map(count_sockets, family), default=0) * estimate_socket_bytes() > limits.max_memory_bytes:
        return KillReason.MEMORY
    for folder in folders:
        if any(count_inodes(one, folder) > MAX_INODES for one in family):
            return KillReason.FILES
    return None


@cache
def estimate_socket_bytes() -> int:
    """Return the bytes that the kernel can hold for one end of a socket pair: about two and a half times its
    default.
    """
    size = _read_text("/proc/sys/net/core/wmem_default").strip()  # not visible in every network namespace
    return (int(size) if size.isdigit() else DEFAULT_SEND_BUFFER_BYTES) * 5 // 2


def list_descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process, including ended ones that were not waited for."""
    descendants, waiting = list[int](), [pid]
    while waiting:
        for task in _list_children_files(f"/proc/{waiting.pop()}/task"):
            children = [int(child) for child in _read_text(task).split()]
            descendants += children
            waiting += children
    return descendants


def _list_children_files(folder: str) -> list[str]:
    try:
        return [f"{folder}/{task}/children" for task in os.listdir(folder)]
    except OSError:  # it has ended in the meantime
        return []


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:  # as above
        return ""


def resident_bytes(pid: int) -> int:
    """Return the bytes in memory. 0 means that the process has ended."""
    words = _read_text(f"/proc/{pid}/statm").split()
    return int(words[1]) * PAGE_BYTES if words else 0


def count_sockets(pid: int) -> int:
    """Return the number of sockets in the network namespace of a process, including closed ones with unread data.

    0 means that it has ended or has not entered its namespace yet.
    """
    try:
        if os.path.samestat(os.stat(f"/proc/{pid}/ns/net"), os.stat("/proc/self/ns/net")):
            return 0
    except OSError:
        return 0
    head, _, rest = _read_text(f"/proc/{pid}/net/sockstat").partition("sockets: used ")
    return int(rest.split()[0]) if rest and not head else 0


def count_inodes(pid: int, folder: str) -> int:
    """Return the number of inodes in the file system that the process sees at this path.

    0 means that it has ended or has not entered its namespace yet.
    """
    root = f"/proc/{pid}/root"
    try:
        if os.path.samestat(os.stat(root + "/"), os.stat("/")):
            return 0
        status = os.statvfs(root + folder)
    except OSError:
        return 0
    return status.f_files - status.f_ffree


def find_excess_in_folder(pid: int, *, limits: SandboxLimits, folder: str) -> KillReason | None:
    """Return the excess of one process whose files are in a folder of this machine.

    Files that it has deleted but still holds open count, too.
    """
    sizes = [*_entry_sizes(folder), *_unlinked_file_sizes(pid)]
    return KillReason.FILES if sum(sizes) > limits.max_total_bytes or len(sizes) > MAX_INODES else None


def _entry_sizes(folder: str) -> list[int]:
    """Return the sizes of all entries. Slightly more than the maximum number is enough to know."""
    sizes, waiting = list[int](), [folder]
    while waiting and len(sizes) <= MAX_INODES:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                sizes.append(entry.stat(follow_symlinks=False).st_size)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return sizes


def _unlinked_file_sizes(pid: int) -> list[int]:
    """Return the sizes of deleted files that the process still has open."""
    sizes = list[int]()
    with suppress(OSError):
        for handle in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                status = os.stat(f"/proc/{pid}/fd/{handle}")
                if status.st_nlink == 0 and status.st_mode & 0o170000 == 0o100000:
                    sizes.append(status.st_size)
    return sizes
