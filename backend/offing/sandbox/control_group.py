"""Create a kernel control group for one code execution: an exact limit on its memory, including kernel buffers.

It requires that this process may create a group below or next to its own group and that a child may enter
it: as root, in a delegated unit of systemd, or in a user session. Versions 2 and 1 are supported. Elsewhere
only the limits of `runner_script` and `resource_usage` apply.
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

from offing.sandbox.limits import MEBIBYTE, SandboxLimits

GROUP_PREFIX = "offing-sandbox-"

RUNNER_MEMORY_BYTES = 128 * MEBIBYTE
"""Memory of the interpreter and its launcher, in addition to what the code may use."""

RUNNER_PROCESSES = 16

SHARED_MEMORY_BYTES = 16 * MEBIBYTE
"""Size of /dev/shm in the sandbox."""

REMOVAL_RETRY_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between attempts to remove a group whose last processes are still ending."""

ENTER_SCRIPT = "import os, sys; [open(each, 'w').write(str(os.getpid())) for each in sys.argv[1:]]"
"""Script of the child that tries to enter a group."""

ENTER_TIMEOUT_SECONDS = 30
"""Maximum seconds of the attempt: enough to start an interpreter on a busy machine."""

V2 = "v2"
"""Key of the unified hierarchy among the parents. The other keys are names of controllers."""


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """A control group with one folder per hierarchy."""

    directories: Sequence[Path]

    @property
    def member_files(self) -> list[str]:
        """Files into which a process writes its id to join."""
        return [str(folder / "cgroup.procs") for folder in self.directories]

    def ran_out_of_memory(self) -> bool:
        """Return whether the kernel killed a process of the group because of the memory limit."""
        return any(_read_oom_kills(folder) > 0 for folder in self.directories)


@asynccontextmanager
async def open_control_group(limits: SandboxLimits) -> AsyncGenerator[ControlGroup | None]:
    """Create a group with these limits and remove it afterwards.

    Yields `None` if this process cannot create or enter one.
    """
    group = _create_group(limits)
    try:
        yield group if group is not None and await _can_be_entered(group) else None
    finally:
        if group is not None:
            await _remove_group(group)


_enterable: dict[Sequence[Path], bool] = {}
"""Whether a child could enter a group below these folders. It is tried once per process, because the rules are
complex.
"""


async def _can_be_entered(group: ControlGroup) -> bool:
    below = tuple(folder.parent for folder in group.directories)
    if below not in _enterable:
        _enterable[below] = await asyncio.to_thread(_try_enter, group.member_files)
    return _enterable[below]


def _try_enter(members: Sequence[str]) -> bool:
    command = (sys.executable, "-I", "-S", "-c", ENTER_SCRIPT, *members)
    try:
        tried = subprocess.run(command, env={}, capture_output=True, timeout=ENTER_TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return tried.returncode == 0


def find_parents(groups: str, mounts: str) -> Mapping[str, Sequence[Path]]:
    """Return where a group could be created, by `V2` or controller.

    The arguments are the texts of /proc/self/cgroup and mountinfo.
    """
    parents: dict[str, Sequence[Path]] = {}
    own = dict(_parse_own_groups(groups))
    for root, mount_point, kind, options in _parse_mounts(mounts):
        names = [V2] if kind == "cgroup2" else [name for name in ("memory", "pids") if name in options]
        for name in names:
            path = own.get(name)
            if path is not None and path.startswith(root):
                folder = Path(mount_point, path.removeprefix(root).lstrip("/"))
                parents[name] = [folder, folder.parent] if name == V2 and folder != Path(mount_point) else [folder]
    return parents


def _parse_own_groups(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            yield V2, path
        for name in controllers.split(","):
            if name in ("memory", "pids"):
                yield name, path


def _parse_mounts(text: str) -> Iterator[tuple[str, str, str, Sequence[str]]]:
    """Yield root, mount point, type and options of each mounted hierarchy."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, behind = before.split(), after.split()
        if len(fields) > 4 and len(behind) > 2 and behind[0] in ("cgroup", "cgroup2"):
            yield fields[3].rstrip("/"), fields[4], behind[0], behind[2].split(",")


def _create_group(limits: SandboxLimits) -> ControlGroup | None:
    try:
        groups, mounts = (Path("/proc/self", name).read_text("utf-8") for name in ("cgroup", "mountinfo"))
    except OSError:  # no Linux, or no /proc
        return None
    possible, name = find_parents(groups, mounts), f"{GROUP_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    memory, folders = _total_memory_bytes(limits), list[Path]()
    try:
        for parent in possible.get(V2, ()):
            if _is_delegated(parent):
                folders.append(_make_group(parent, name))
                _write(folders[-1], "memory.max", memory)
                _write(folders[-1], "memory.oom.group", 1)
                with suppress(OSError):  # without swap there is none to limit
                    _write(folders[-1], "memory.swap.max", 0)
                with suppress(OSError):  # not every parent delegates it
                    _write(folders[-1], "pids.max", limits.max_processes + RUNNER_PROCESSES)
                return ControlGroup(folders)
        for parent in possible.get("memory", ()):
            if _is_writable(parent):
                folders.append(_make_group(parent, name))
                _write(folders[-1], "memory.limit_in_bytes", memory)
                with suppress(OSError):  # without swap accounting there is no such limit
                    _write(folders[-1], "memory.memsw.limit_in_bytes", memory)
        for parent in possible.get("pids", ()) if folders else ():
            if _is_writable(parent) and parent != Path(folders[0].parent):
                folders.append(_make_group(parent, name))
                _write(folders[-1], "pids.max", limits.max_processes + RUNNER_PROCESSES)
    except OSError:  # the kernel rejects what its files seemed to allow
        for folder in folders:
            with suppress(OSError):
                folder.rmdir()
        return None
    return ControlGroup(folders) if folders else None


def _total_memory_bytes(limits: SandboxLimits) -> int:
    """Return all bytes that the kernel charges: the code's memory, both writable folders, and the runner."""
    return limits.max_memory_bytes + 2 * limits.max_total_bytes + SHARED_MEMORY_BYTES + RUNNER_MEMORY_BYTES


def _is_delegated(parent: Path) -> bool:
    """Return whether this process can create groups with a memory limit here and move processes into them."""
    try:
        controllers = (parent / "cgroup.subtree_control").read_text("ascii").split()
    except OSError:
        return False
    return "memory" in controllers and _is_writable(parent)


def _is_writable(parent: Path) -> bool:
    return os.access(parent, os.W_OK | os.X_OK) and os.access(parent / "cgroup.procs", os.W_OK)


def _make_group(parent: Path, name: str) -> Path:
    _remove_abandoned_groups(parent)
    folder = parent / name
    folder.mkdir()
    return folder


_still_in_use = set[Path]()
"""Groups of this process whose last processes outlived every attempt to remove them. The next run tries again."""


def _remove_abandoned_groups(parent: Path) -> None:
    """Remove the groups of processes that were killed before they could do so, and those in `_still_in_use`."""
    for abandoned in parent.glob(f"{GROUP_PREFIX}*-*"):
        pid = abandoned.name.removeprefix(GROUP_PREFIX).partition("-")[0]
        if abandoned in _still_in_use or (pid.isdigit() and not Path("/proc", pid).exists()):
            with suppress(OSError):
                abandoned.rmdir()
                _still_in_use.discard(abandoned)


def _write(folder: Path, name: str, value: int) -> None:
    (folder / name).write_text(str(value), "ascii")


def _read_oom_kills(folder: Path) -> int:
    for name in ("memory.events", "memory.oom_control"):
        with suppress(OSError):
            lines = (folder / name).read_text("ascii").splitlines()
            return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return 0


async def _remove_group(group: ControlGroup) -> None:
    for folder in group.directories:
        for pause in REMOVAL_RETRY_SECONDS:
            try:
                folder.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:  # its last processes have not ended yet
                await asyncio.sleep(pause)
        else:
            _still_in_use.add(folder)
