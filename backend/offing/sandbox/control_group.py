"""A control group of the kernel for one run of code: an exact limit on its memory, kernel buffers included.

It exists where this process may create one below its own group, or beside it, and a child may enter it: as root, in a
delegated unit of systemd, or in a session of a user. Version 2 and version 1 are supported. Elsewhere the limits of
`inside` and `watching` stand alone.
"""

import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from offing.sandbox.sandbox import MB, Limits

PREFIX = "offing-sandbox-"

OWN_MEMORY = 128 * MB
"""Of the interpreter and of what starts it, beside the memory that the code may use."""

OWN_PROCESSES = 16

SHARED_MEMORY = 16 * MB
"""Size of /dev/shm inside."""

REMOVAL_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between attempts to remove a group whose last processes are still ending."""

ENTER = "import os, sys; [open(each, 'w').write(str(os.getpid())) for each in sys.argv[1:]]"
"""What the child does that tries."""

ENTER_SECONDS = 30
"""Maximum time of the try; no more than an interpreter needs to start on a busy machine."""

V2 = "v2"
"""Key of the unified hierarchy among the parents; the others are named by their controller."""


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """One folder per hierarchy."""

    folders: Sequence[Path]

    @property
    def members(self) -> list[str]:
        """Files into which a process writes its id to join."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel ended a process of the group because of the limit."""
        return any(_oom_kills(folder) > 0 for folder in self.folders)


@asynccontextmanager
async def control_group(limits: Limits) -> AsyncGenerator[ControlGroup | None]:
    """A group with these limits, removed afterwards. `None`: this process may create none, or not enter it."""
    group = _created(limits)
    try:
        yield group if group is not None and await _can_be_entered(group) else None
    finally:
        if group is not None:
            await _removed(group)


_entered: dict[Sequence[Path], bool] = {}
"""Whether a child could enter a group below these folders; tried once a process, since the rules for that are many."""


async def _can_be_entered(group: ControlGroup) -> bool:
    below = tuple(folder.parent for folder in group.folders)
    if below not in _entered:
        _entered[below] = await asyncio.to_thread(_enters, group.members)
    return _entered[below]


def _enters(members: Sequence[str]) -> bool:
    command = (sys.executable, "-I", "-S", "-c", ENTER, *members)
    try:
        tried = subprocess.run(command, env={}, capture_output=True, timeout=ENTER_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return tried.returncode == 0


def parents(groups: str, mounts: str) -> Mapping[str, Sequence[Path]]:
    """Where a group could be created, by `V2` or the controller, from the texts of /proc/self/cgroup and mountinfo."""
    found: dict[str, Sequence[Path]] = {}
    own = dict(_own_groups(groups))
    for root, place, kind, options in _mounts(mounts):
        names = [V2] if kind == "cgroup2" else [name for name in ("memory", "pids") if name in options]
        for name in names:
            path = own.get(name)
            if path is not None and path.startswith(root):
                folder = Path(place, path.removeprefix(root).lstrip("/"))
                found[name] = [folder, folder.parent] if name == V2 and folder != Path(place) else [folder]
    return found


def _own_groups(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            yield V2, path
        for name in controllers.split(","):
            if name in ("memory", "pids"):
                yield name, path


def _mounts(text: str) -> Iterator[tuple[str, str, str, Sequence[str]]]:
    """Root, place, kind and options of each mounted hierarchy."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, behind = before.split(), after.split()
        if len(fields) > 4 and len(behind) > 2 and behind[0] in ("cgroup", "cgroup2"):
            yield fields[3].rstrip("/"), fields[4], behind[0], behind[2].split(",")


def _created(limits: Limits) -> ControlGroup | None:
    try:
        groups, mounts = (Path("/proc/self", name).read_text("utf-8") for name in ("cgroup", "mountinfo"))
    except OSError:  # no Linux, or no /proc
        return None
    possible, name = parents(groups, mounts), f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    memory, folders = _memory(limits), list[Path]()
    try:
        for parent in possible.get(V2, ()):
            if _delegated(parent):
                folders.append(_made(parent, name))
                _write(folders[-1], "memory.max", memory)
                _write(folders[-1], "memory.oom.group", 1)
                with suppress(OSError):  # without swap there is none to limit
                    _write(folders[-1], "memory.swap.max", 0)
                with suppress(OSError):  # not every parent hands it on
                    _write(folders[-1], "pids.max", limits.processes + OWN_PROCESSES)
                return ControlGroup(folders)
        for parent in possible.get("memory", ()):
            if _writable(parent):
                folders.append(_made(parent, name))
                _write(folders[-1], "memory.limit_in_bytes", memory)
                with suppress(OSError):  # without swap accounting there is no such limit
                    _write(folders[-1], "memory.memsw.limit_in_bytes", memory)
        for parent in possible.get("pids", ()) if folders else ():
            if _writable(parent) and parent != Path(folders[0].parent):
                folders.append(_made(parent, name))
                _write(folders[-1], "pids.max", limits.processes + OWN_PROCESSES)
    except OSError:  # the kernel refuses what its files seemed to allow
        for folder in folders:
            with suppress(OSError):
                folder.rmdir()
        return None
    return ControlGroup(folders) if folders else None


def _memory(limits: Limits) -> int:
    """Bytes of all that the kernel charges: the code's memory, both folders that it writes to, and what runs it."""
    return limits.memory + 2 * limits.total + SHARED_MEMORY + OWN_MEMORY


def _delegated(parent: Path) -> bool:
    """Whether groups below it have a limit on memory, and this process may create them and move others into them."""
    try:
        controllers = (parent / "cgroup.subtree_control").read_text("ascii").split()
    except OSError:
        return False
    return "memory" in controllers and _writable(parent)


def _writable(parent: Path) -> bool:
    return os.access(parent, os.W_OK | os.X_OK) and os.access(parent / "cgroup.procs", os.W_OK)


def _made(parent: Path, name: str) -> Path:
    _sweep(parent)
    folder = parent / name
    folder.mkdir()
    return folder


def _sweep(parent: Path) -> None:
    """Remove the groups of processes that were killed before they could do so."""
    for left in parent.glob(f"{PREFIX}*-*"):
        pid = left.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            with suppress(OSError):
                left.rmdir()


def _write(folder: Path, name: str, value: int) -> None:
    (folder / name).write_text(str(value), "ascii")


def _oom_kills(folder: Path) -> int:
    for name in ("memory.events", "memory.oom_control"):
        with suppress(OSError):
            lines = (folder / name).read_text("ascii").splitlines()
            return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return 0


async def _removed(group: ControlGroup) -> None:
    for folder in group.folders:
        for pause in REMOVAL_PAUSES:
            try:
                folder.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:  # its last processes have not ended yet
                await asyncio.sleep(pause)
