"""The sandbox: the time of empty code, of a sum inside the sandbox, and of the self-test."""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from offing.sandbox.driver_choice import list_drivers
from offing.sandbox.sandbox import ExecutionRequest, Sandbox, SandboxUnavailableError
from offing.sandbox.self_test import find_problem
from tests.bench.measurement import Measurement, Samples

REPEATS = 20

SUM = "print(sum(i * i % 7 for i in range(1_000_000)))"


def sandbox_speed() -> list[Measurement]:
    return asyncio.run(_measured())


async def _measured() -> list[Measurement]:
    measurements = list[Measurement]()
    with tempfile.TemporaryDirectory() as folder:
        for driver in list_drivers("auto", Path(folder), packages=None, module=None):
            measurements += await _of(driver)
    return measurements


async def _of(driver: Sandbox) -> Sequence[Measurement]:
    about = f"sandbox, {driver.name}"
    try:
        first = await _timed(driver, "pass")
        empty = [await _timed(driver, "pass") for _ in range(REPEATS)]
        summed = [await _timed(driver, SUM) for _ in range(REPEATS)]
    except SandboxUnavailableError as error:
        print(f"{about}: cannot run here. {error.reason}", file=sys.stderr)
        return []
    began = time.perf_counter()
    why = await find_problem(driver)
    tested = time.perf_counter() - began
    assert not why, why
    bare, bare_sum = _bare("pass"), _bare(SUM)
    return [
        Measurement(f"{about}: first execution on a machine", (first,), "ms"),
        Measurement(f"{about}: empty code", tuple(empty), "ms", bare),
        Measurement(f"{about}: sum of a million terms", tuple(summed), "ms", bare_sum),
        Measurement(f"{about}: self-test of a process", (tested,), "s"),
    ]


async def _timed(driver: Sandbox, source: str) -> float:
    began = time.perf_counter()
    ran = await driver.run(ExecutionRequest(source))
    assert ran.exit_status == 0, ran
    return time.perf_counter() - began


def _bare(source: str) -> Samples:
    """Run the same in a Python process without a sandbox."""
    times = list[float]()
    for _ in range(REPEATS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-S", "-c", source], check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return tuple(times)
