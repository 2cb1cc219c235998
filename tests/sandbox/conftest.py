"""The drivers on this machine. If one cannot run, its tests fail and say why. `SKIP_MISSING=1` skips them instead."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from offing.sandbox.choose import drivers
from offing.sandbox.drivers.bubblewrap import Bubblewrap
from offing.sandbox.drivers.wasi import Wasi
from offing.sandbox.probe import Bait
from offing.sandbox.sandbox import CannotRun, Code, Sandbox
from offing.sandbox.self_test import baited
from tests.programs import unavailable

_known: dict[str, str] = {}
"""Why a driver cannot run here. Empty: it can."""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the module is kept once it is compiled, which takes seconds."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(params=["bubblewrap", "wasi"])
async def sandbox(request: pytest.FixtureRequest, compiled: Path) -> Sandbox:
    (found,) = drivers(request.param, compiled, packages=None, module=None)
    return await _usable(found)


@pytest.fixture
async def bubblewrap() -> Bubblewrap:
    found = Bubblewrap()
    await _usable(found)
    return found


@pytest.fixture
async def wasi(compiled: Path) -> Wasi:
    found = Wasi(compiled)
    await _usable(found)
    return found


async def _usable(sandbox: Sandbox) -> Sandbox:
    if sandbox.name not in _known:
        try:
            await sandbox.run(Code("pass"))
            _known[sandbox.name] = ""
        except CannotRun as refused:
            _known[sandbox.name] = refused.reason
    if why := _known[sandbox.name]:
        unavailable(f"{sandbox.name} cannot run here: {why}")
    return sandbox


@pytest.fixture(scope="session")
def bait() -> Iterator[Bait]:
    with baited() as found:
        yield found
