"""Choose the sandbox driver of this machine: the first that passes its self-test."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from offing.sandbox.drivers.bubblewrap import BubblewrapDriver
from offing.sandbox.drivers.wasi import WasiDriver
from offing.sandbox.sandbox import Sandbox
from offing.sandbox.self_test import find_problem

DriverSetting = Literal["auto", "bubblewrap", "wasi", "off"]


@dataclass(frozen=True, slots=True)
class DriverChoice:
    """The chosen driver, and why others were rejected."""

    sandbox: Sandbox | None
    """The chosen driver. `None` means that no code may run on this machine."""
    rejected: Mapping[str, str] = field(default_factory=dict[str, str])
    """Reasons by name of the driver. Drivers after the chosen one were not tried."""

    @property
    def reason(self) -> str:
        """Why no code may run. Empty if it may."""
        if self.sandbox is not None:
            return ""
        if not self.rejected:
            return "Running code is turned off here by OFFING_SANDBOX."
        reasons = "; ".join(f"{name}: {why}" for name, why in self.rejected.items())
        return f"No sandbox works on this machine, so no code is run ({reasons})."


def list_drivers(
    setting: DriverSetting, folder: Path, *, packages: Path | None, module: Path | None
) -> Sequence[Sandbox]:
    """Return the drivers that may be used, in order. `folder` is where they store what they compile."""
    drivers: dict[str, Sandbox] = {"bubblewrap": BubblewrapDriver(packages), "wasi": WasiDriver(folder, module)}
    return [driver for name, driver in drivers.items() if setting in ("auto", name)]


async def choose_driver(
    candidates: Sequence[Sandbox], test: Callable[[Sandbox], Awaitable[str]] = find_problem
) -> DriverChoice:
    """Return the first candidate that passes the test.

    `test` returns the problem of a driver, or an empty text.
    """
    reasons_by_driver = dict[str, str]()
    for candidate in candidates:
        if not (why := await test(candidate)):
            return DriverChoice(candidate, reasons_by_driver)
        reasons_by_driver[candidate.name] = why
    return DriverChoice(None, reasons_by_driver)
