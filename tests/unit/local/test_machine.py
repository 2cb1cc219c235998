"""A container's limits on memory and cores count, in both versions of cgroups."""

from pathlib import Path

import pytest

from offing.local.machine import Machine, limit_machine, read_machine

LARGE = Machine(64 * 2**30, 16)


@pytest.mark.parametrize(
    ("memory", "cores", "expected"),
    [
        ([], [], LARGE),
        (["max"], ["max 100000"], LARGE),
        (["", "max"], ["", " "], LARGE),
        (["9223372036854771712"], ["-1 100000"], LARGE),
        (["2147483648"], ["250000 100000"], Machine(2 * 2**30, 2)),
        (["max", "4294967296", "1073741824"], ["max 100000", "50000 100000"], Machine(2**30, 1)),
        ([str(128 * 2**30)], ["3200000 100000"], LARGE),
    ],
)
def test_the_smallest_limit_counts(memory: list[str], cores: list[str], expected: Machine) -> None:
    assert limit_machine(LARGE, memory_limits=memory, core_limits=cores) == expected


def test_the_limits_of_the_groups_above_count(tmp_path: Path) -> None:
    own = tmp_path / "cgroup"
    own.write_text("0::/pod/container\n")
    (tmp_path / "pod" / "container").mkdir(parents=True)
    (tmp_path / "pod" / "memory.max").write_text("1048576\n")
    (tmp_path / "pod" / "container" / "memory.max").write_text("max\n")
    (tmp_path / "pod" / "container" / "cpu.max").write_text("100000 100000\n")
    assert read_machine(tmp_path, own) == Machine(2**20, 1)


def test_the_limits_of_version_1_count(tmp_path: Path) -> None:
    own = tmp_path / "cgroup"
    own.write_text("4:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n2:pids:/docker/1\n")
    for folder, texts in {
        "memory": {"memory.limit_in_bytes": "1048576"},
        "cpu,cpuacct/docker/1": {"cpu.cfs_quota_us": "100000", "cpu.cfs_period_us": "100000"},
        "pids": {"memory.max": "1"},
    }.items():
        (tmp_path / folder).mkdir(parents=True)
        for name, text in texts.items():
            (tmp_path / folder / name).write_text(text + "\n")
    assert read_machine(tmp_path, own) == Machine(2**20, 1)


def test_a_machine_without_control_groups_has_no_limit(tmp_path: Path) -> None:
    machine = read_machine(tmp_path, tmp_path / "missing")
    assert machine.memory_bytes > 2**28
    assert machine.cores >= 1
