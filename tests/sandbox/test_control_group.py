"""An exact limit on memory, where the kernel lets this process have one."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from offing.sandbox.control_group import PREFIX, ControlGroup, control_group, parents
from offing.sandbox.drivers.bubblewrap import Bubblewrap
from offing.sandbox.probe import SMALL
from offing.sandbox.sandbox import MB, Code, Killed, Sandbox

UNIFIED = """25 20 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
26 20 0:23 / /proc rw - proc proc rw
"""

DIVIDED = """30 20 0:26 / /sys/fs/cgroup/unified rw shared:8 - cgroup2 cgroup2 rw
31 20 0:27 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory
32 20 0:28 /docker/abc /sys/fs/cgroup/pids rw shared:10 - cgroup cgroup rw,pids
"""


def test_on_one_hierarchy_a_group_goes_below_the_own_one_or_beside_it() -> None:
    own = "/user.slice/user-1000.slice/user@1000.service/app.slice/offing.scope"
    found = parents(f"0::{own}\n", UNIFIED)
    assert found == {"v2": [Path("/sys/fs/cgroup" + own), Path("/sys/fs/cgroup" + own).parent]}
    assert parents("0::/\n", UNIFIED) == {"v2": [Path("/sys/fs/cgroup")]}


def test_on_several_hierarchies_each_controller_has_its_own_place() -> None:
    found = parents("4:memory:/offing\n8:pids:/docker/abc/offing\n0::/\n", DIVIDED)
    assert found["memory"] == [Path("/sys/fs/cgroup/memory/offing")]
    assert found["pids"] == [Path("/sys/fs/cgroup/pids/offing")]
    assert "pids" not in parents("8:pids:/elsewhere\n", DIVIDED)


@pytest.fixture
async def group() -> AsyncIterator[ControlGroup]:
    async with control_group(SMALL) as found:
        if found is None:
            pytest.skip("this process may create no control group with a limit on memory")
        yield found


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
    bubblewrap: Bubblewrap, group: ControlGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offing.sandbox.drivers.bubblewrap.too_much", lambda *_, **__: None)  # pyright: ignore
    limits = replace(SMALL, memory=192 * MB, seconds=20)
    ran = await bubblewrap.run(Code(GREEDY, limits=limits))
    assert (ran.exit, ran.killed) == (None, Killed.MEMORY)


async def test_code_runs_in_the_group_and_the_group_is_gone_afterwards(sandbox: Sandbox, group: ControlGroup) -> None:
    ran = await sandbox.run(Code("open('out.txt', 'w').write('42')", limits=SMALL))
    assert (ran.exit, [file.data for file in ran.files]) == (0, [b"42"])
    left = [each for folder in group.folders for each in folder.parent.glob(f"{PREFIX}{os.getpid()}-*")]
    assert set(left) == set(group.folders)


async def test_code_runs_without_a_group_that_can_be_made_and_not_entered(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = ControlGroup([tmp_path / "closed"])
    monkeypatch.setattr("offing.sandbox.control_group._created", lambda _: closed)  # pyright: ignore
    ran = await sandbox.run(Code("print(42)", limits=SMALL))
    assert (ran.exit, ran.stdout) == (0, "42\n")


async def test_groups_of_a_process_that_was_killed_are_removed(group: ControlGroup) -> None:
    gone = group.folders[0].parent / f"{PREFIX}4194304999-left"
    gone.mkdir()
    async with control_group(SMALL) as another:
        assert another is not None
        assert not gone.exists()
        assert another.folders[0].exists()
    assert not another.folders[0].exists()
