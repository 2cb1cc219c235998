"""Postgres gets a part of the machine that it is on, and never more than helps."""

import pytest

from offing.local.machine import Machine
from offing.local.postgres_settings import choose_settings

GIBIBYTE = 2**30

MACHINES = [Machine(memory, cores) for memory in (2**28, GIBIBYTE, 24 * GIBIBYTE, 1024 * GIBIBYTE) for cores in (1, 96)]


def megabytes(text: str) -> int:
    assert text.endswith("MB")
    return int(text.removesuffix("MB"))


@pytest.mark.parametrize("machine", MACHINES)
def test_postgres_fits_into_the_machine(machine: Machine) -> None:
    settings = choose_settings(machine)
    total = machine.memory_bytes / 2**20
    assert megabytes(settings["shared_buffers"]) <= total / 8
    assert megabytes(settings["maintenance_work_mem"]) <= total / 8
    assert 4 <= megabytes(settings["work_mem"]) <= 32
    assert megabytes(settings["effective_cache_size"]) <= total / 2


def test_more_memory_gives_larger_buffers_up_to_an_end() -> None:
    sizes = [megabytes(choose_settings(Machine(n * GIBIBYTE, 2))["shared_buffers"]) for n in (1, 4, 16, 64)]
    assert sizes == [128, 512, 2048, 2048]


def test_parallel_plans_need_cores_to_spare() -> None:
    per_gather = [choose_settings(Machine(GIBIBYTE, n))["max_parallel_workers_per_gather"] for n in (1, 2, 4, 96)]
    assert per_gather == ["0", "0", "2", "2"]


def test_a_small_container_has_fewer_connections() -> None:
    assert choose_settings(Machine(GIBIBYTE // 2, 1))["max_connections"] == "100"
    assert choose_settings(Machine(GIBIBYTE, 1))["max_connections"] == "200"
