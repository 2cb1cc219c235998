"""The memory and the cores that the processes of this machine may use, within the limits of a container."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")

UNLIMITED_BYTES = 2**60
"""A limit above this is none. Version 1 of cgroups writes a number near 2**63 for it."""


@dataclass(frozen=True, slots=True)
class Machine:
    memory_bytes: int
    cores: int
    """Whole cores, at least 1."""


def read_machine(cgroup_root: Path = CGROUP_ROOT, own_groups: Path = Path("/proc/self/cgroup")) -> Machine:
    """Return what this process may use. Limits that cannot be read are none."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    folders = list(_list_groups(cgroup_root, _read(own_groups)))
    return limit_machine(
        Machine(memory, cores),
        memory_limits=[_read(folder / name) for folder in folders for name in ("memory.max", "memory.limit_in_bytes")],
        core_limits=[
            _read(folder / "cpu.max") or f"{_read(folder / 'cpu.cfs_quota_us')} {_read(folder / 'cpu.cfs_period_us')}"
            for folder in folders
        ],
    )


def limit_machine(machine: Machine, *, memory_limits: Iterable[str], core_limits: Iterable[str]) -> Machine:
    """Return the machine within the limits of control groups.

    A memory limit is a number of bytes or `max`; a core limit is `QUOTA PERIOD`. `max`, a quota of -1 and an empty
    text stand for no limit.
    """
    bytes_allowed = [int(text) for text in memory_limits if text.isdigit() and int(text) < UNLIMITED_BYTES]
    quotas = [text.split() for text in core_limits]
    cores_allowed = [int(quota) // int(period) for quota, period in _pairs(quotas) if quota.isdigit() and int(period)]
    return Machine(min([machine.memory_bytes, *bytes_allowed]), max(1, min([machine.cores, *cores_allowed])))


def _pairs(quotas: Iterable[list[str]]) -> Iterator[tuple[str, str]]:
    for parts in quotas:
        if len(parts) == 2 and parts[1].isdigit():
            yield parts[0], parts[1]


def _list_groups(root: Path, own_groups: str) -> Iterator[Path]:
    """Yield the folders of this process's groups and of those above them, for both versions of cgroups."""
    for line in own_groups.splitlines():
        number, controllers, path = line.split(":", 2)
        names = controllers.split(",")
        if number != "0" and not {"memory", "cpu"} & set(names):
            continue
        top = root if number == "0" else root / controllers
        folder = top / path.lstrip("/")
        while folder != top and top in folder.parents:
            yield folder
            folder = folder.parent
        yield top


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except OSError:
        return ""
