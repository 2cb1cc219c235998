"""The drivers on this machine. If one cannot run, its tests fail and say why. `SKIP_MISSING=1` skips them instead."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from offing.sandbox.driver_choice import list_drivers
from offing.sandbox.drivers.bubblewrap import BubblewrapDriver
from offing.sandbox.drivers.wasi import WasiDriver
from offing.sandbox.escape_probe import ProbeTargets
from offing.sandbox.sandbox import ExecutionRequest, Sandbox, SandboxUnavailableError
from offing.sandbox.self_test import open_targets
from tests.programs import unavailable

_known: dict[str, str] = {}
"""Why a driver cannot run here. Empty: it can."""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the module is kept once it is compiled, which takes seconds."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(params=["bubblewrap", "wasi"])
async def sandbox(request: pytest.FixtureRequest, compiled: Path) -> Sandbox:
    (result,) = list_drivers(request.param, compiled, packages=None, module=None)
    return await _usable(result)


@pytest.fixture
async def bubblewrap() -> BubblewrapDriver:
    result = BubblewrapDriver()
    await _usable(result)
    return result


@pytest.fixture
async def wasi(compiled: Path) -> WasiDriver:
    result = WasiDriver(compiled)
    await _usable(result)
    return result


async def _usable(sandbox: Sandbox) -> Sandbox:
    if sandbox.name not in _known:
        try:
            await sandbox.run(ExecutionRequest("pass"))
            _known[sandbox.name] = ""
        except SandboxUnavailableError as error:
            _known[sandbox.name] = error.reason
    if why := _known[sandbox.name]:
        unavailable(f"{sandbox.name} cannot run here: {why}")
    return sandbox


@pytest.fixture(scope="session")
def targets() -> Iterator[ProbeTargets]:
    with open_targets() as result:
        yield result
