"""Which driver is used: one that stands its self-test here, or none."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from offing.sandbox.driver_choice import DriverChoice, DriverSetting, choose_driver, list_drivers
from offing.sandbox.drivers.bubblewrap import BubblewrapDriver
from offing.sandbox.escape_probes import PROBES
from offing.sandbox.sandbox import ExecutionRequest, ExecutionResult, Sandbox, SandboxUnavailableError
from offing.sandbox.self_test import find_problem
from offing.services.code_execution import CodeRunner
from offing.services.health import check_sandbox
from offing.settings import Settings


@dataclass(frozen=True)
class Leaky:
    """A driver that confines everything but for one thing."""

    inner: Sandbox
    leak: str
    """Code that has this in it gets out."""

    @property
    def name(self) -> str:
        return "leaky"

    async def run(self, request: ExecutionRequest) -> ExecutionResult:
        if self.leak in request.source:
            return replace(await self.inner.run(ExecutionRequest("print('tried')")), stdout="tried\nreached\n")
        return await self.inner.run(request)


@dataclass(frozen=True)
class Broken:
    """A driver that cannot start."""

    name: str = "broken"

    async def run(self, request: ExecutionRequest) -> ExecutionResult:
        raise SandboxUnavailableError("there are no namespaces here")


@dataclass(frozen=True)
class Faulty:
    """A driver with a fault that nobody foresaw."""

    name: str = "faulty"

    async def run(self, request: ExecutionRequest) -> ExecutionResult:
        raise KeyError("shelf")


@dataclass(frozen=True)
class Mute:
    """A driver that runs nothing, and says that all went well."""

    name: str = "mute"

    async def run(self, request: ExecutionRequest) -> ExecutionResult:
        return ExecutionResult(0, "tried\n", "")


def test_the_self_test_tries_more_than_twelve_ways_out() -> None:
    assert len(PROBES) >= 12


async def test_a_driver_that_contains_everything_is_chosen_and_the_next_is_not_tried(
    bubblewrap: BubblewrapDriver,
) -> None:
    choice = await choose_driver([bubblewrap, Broken()])
    assert (choice.sandbox, choice.rejected, choice.reason) == (bubblewrap, {}, "")


async def test_one_way_out_is_enough_to_reject_a_driver(bubblewrap: BubblewrapDriver) -> None:
    assert await find_problem(Leaky(bubblewrap, "0x10000000")) == (
        "it does not contain a probe for creating a user namespace: it was reached"
    )


@pytest.mark.parametrize(
    ("driver", "why"),
    [
        (Broken(), "there are no namespaces here"),
        (Faulty(), "its self-test failed (KeyError: 'shelf')"),
        (Mute(), "ordinary code does not run: no file was returned"),
    ],
)
async def test_without_a_driver_that_works_nothing_runs_and_each_reason_is_told(driver: Sandbox, why: str) -> None:
    codes = CodeRunner([driver])
    reason = f"No sandbox works on this machine, so no code is run ({driver.name}: {why})."
    assert await codes.run(ExecutionRequest("print(1)")) == reason


async def test_turned_off_nothing_is_even_tried() -> None:
    async with CodeRunner(()) as codes:
        assert await codes.run(ExecutionRequest("print(1)")) == "Running code is turned off here by OFFING_SANDBOX."


async def test_the_choice_is_made_once_in_a_process(bubblewrap: BubblewrapDriver) -> None:
    tested = list[str]()

    async def test(candidate: Sandbox) -> str:
        tested.append(candidate.name)
        return ""

    assert (await choose_driver([bubblewrap, bubblewrap], test)).sandbox is bubblewrap
    assert tested == ["bubblewrap"]
    async with CodeRunner([Broken()]) as codes:
        assert await codes.choose_driver() is await codes.choose_driver()


def test_the_setting_names_which_drivers_may_be_used(tmp_path: Path) -> None:
    def names(expected: DriverSetting) -> list[str]:
        return [one.name for one in list_drivers(expected, tmp_path, packages=None, module=None)]

    assert names("auto") == ["bubblewrap", "wasi"]
    assert (names("bubblewrap"), names("wasi"), names("off")) == (["bubblewrap"], ["wasi"], [])
    assert DriverChoice(None).reason == "Running code is turned off here by OFFING_SANDBOX."


def test_doctor_says_what_runs_code_and_why_nothing_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    off = asyncio.run(check_sandbox(Settings(home=tmp_path, sandbox="off")))
    assert (off.ok, off.detail) == (True, "turned off by OFFING_SANDBOX; runs cannot execute code")
    monkeypatch.setenv("PATH", str(tmp_path))
    none = asyncio.run(check_sandbox(Settings(home=tmp_path, sandbox="bubblewrap")))
    assert none.detail.startswith("none, so runs cannot execute code: bubblewrap: the program bwrap is not installed")
    assert none.remedy is not None
