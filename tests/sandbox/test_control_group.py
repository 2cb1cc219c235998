"""An exact limit on memory, where the kernel lets this process have one."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from offing.sandbox.control_group import GROUP_PREFIX, ControlGroup, find_parents, open_control_group
from offing.sandbox.drivers.bubblewrap import BubblewrapDriver
from offing.sandbox.escape_probe import PROBE_LIMITS
from offing.sandbox.limits import MEBIBYTE
from offing.sandbox.sandbox import ExecutionRequest, KillReason, Sandbox

UNIFIED = """25 20 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
26 20 0:23 / /proc rw - proc proc rw
"""

DIVIDED = """30 20 0:26 / /sys/fs/cgroup/unified rw shared:8 - cgroup2 cgroup2 rw
31 20 0:27 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory
32 20 0:28 /docker/abc /sys/fs/cgroup/pids rw shared:10 - cgroup cgroup rw,pids
"""


def test_on_one_hierarchy_a_group_goes_below_the_own_one_or_beside_it() -> None:
    own = "/user.slice/user-1000.slice/user@1000.service/app.slice/offing.scope"
    parents = find_parents(f"0::{own}\n", UNIFIED)
    assert parents == {"v2": [Path("/sys/fs/cgroup" + own), Path("/sys/fs/cgroup" + own).parent]}
    assert find_parents("0::/\n", UNIFIED) == {"v2": [Path("/sys/fs/cgroup")]}


def test_with_several_hierarchies_each_controller_has_its_own_positions() -> None:
    parents = find_parents("4:memory:/offing\n8:pids:/docker/abc/offing\n0::/\n", DIVIDED)
    assert parents["memory"] == [Path("/sys/fs/cgroup/memory/offing")]
    assert parents["pids"] == [Path("/sys/fs/cgroup/pids/offing")]
    assert "pids" not in find_parents("8:pids:/elsewhere\n", DIVIDED)


@pytest.fixture
async def group() -> AsyncIterator[ControlGroup]:
    async with open_control_group(PROBE_LIMITS) as result:
        if result is None:
            pytest.skip("this process may create no control group with a limit on memory")
        yield result


def list_own_groups(group: ControlGroup) -> set[Path]:
    """Return the groups of this process that exist, wherever this one has a folder."""
    return {each for folder in group.directories for each in folder.parent.glob(f"{GROUP_PREFIX}{os.getpid()}-*")}


def enter(group: ControlGroup, pid: int) -> None:
    for members in group.member_files:
        Path(members).write_text(str(pid), "ascii")


GREEDY = """
import os, time
for _ in range(10):
    if os.fork() == 0:
        held = []
        while True:
            held.append(bytearray(16 << 20))
time.sleep(20)
"""


async def test_what_outruns_the_watch_is_ended_by_the_kernel_for_memory(
    bubblewrap: BubblewrapDriver, group: ControlGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offing.sandbox.drivers.bubblewrap.find_excess", lambda *_, **__: None)  # pyright: ignore
    limits = replace(PROBE_LIMITS, max_memory_bytes=192 * MEBIBYTE, timeout_seconds=20)
    ran = await bubblewrap.run(ExecutionRequest(GREEDY, limits=limits))
    assert (ran.exit_status, ran.kill_reason) == (None, KillReason.MEMORY)


async def test_code_runs_in_the_group_and_the_group_is_deleted_afterwards(
    sandbox: Sandbox, group: ControlGroup
) -> None:
    before = list_own_groups(group)
    ran = await sandbox.run(ExecutionRequest("open('out.txt', 'w').write('42')", limits=PROBE_LIMITS))
    assert (ran.exit_status, [file.data for file in ran.files]) == (0, [b"42"])
    assert set(group.directories) <= list_own_groups(group) <= before


async def test_code_runs_without_a_group_that_can_be_made_and_not_entered(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = ControlGroup([tmp_path / "closed"])
    monkeypatch.setattr("offing.sandbox.control_group._create_group", lambda _: closed)  # pyright: ignore
    ran = await sandbox.run(ExecutionRequest("print(42)", limits=PROBE_LIMITS))
    assert (ran.exit_status, ran.stdout) == (0, "42\n")


async def test_groups_of_a_process_that_was_killed_are_removed(group: ControlGroup) -> None:
    deleted = group.directories[0].parent / f"{GROUP_PREFIX}4194304999-left"
    deleted.mkdir()
    async with open_control_group(PROBE_LIMITS) as another:
        assert another is not None
        assert not deleted.exists()
        assert another.directories[0].exists()
    assert not another.directories[0].exists()


async def test_a_group_that_is_still_in_use_at_its_end_is_removed_by_the_next_run(
    group: ControlGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offing.sandbox.control_group.REMOVAL_RETRY_SECONDS", (0.01,))
    async with open_control_group(PROBE_LIMITS) as busy:
        assert busy is not None
        process = await asyncio.create_subprocess_exec("sleep", "60")
        enter(busy, process.pid)
    assert any(folder.exists() for folder in busy.directories)
    process.kill()
    await process.wait()
    async with open_control_group(PROBE_LIMITS):
        assert not any(folder.exists() for folder in busy.directories)
