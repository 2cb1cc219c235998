"""The product as a person starts it: the installed command, a home of its own, documents on disk."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

Offing = Callable[..., "Finished"]

PATIENCE = 300
"""Seconds that a command or a browser may take. On a machine that other programs use, both take minutes; only a fault
takes longer."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def offing(home: Path) -> Offing:
    """Runs `offing …` in the session's home, or in another, with one worker unless a test asks for more."""

    def run(*words: str, home: Path = home) -> Finished:
        environment = {"OFFING_WORKER_PROCESSES": "1", **os.environ, "OFFING_HOME": str(home), "NO_COLOR": "1"}
        environment["TERM"] = "dumb"
        command = [sys.executable, "-m", "offing.cli", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
        return Finished(done.returncode, done.stdout, done.stderr)

    return run


@contextmanager
def running_stack(offing: Offing, home: Path, **variables: str) -> Generator[Offing]:
    """`offing …` in a home whose stack is up while the block runs, on a free port and with these variables."""
    run = partial(offing, home=home)
    with pytest.MonkeyPatch.context() as environment:
        for name, value in ({"OFFING_PORT": "0"} | variables).items():
            environment.setenv(name, value)
        try:
            started = run("up", "--detach")
            assert started.code == 0, started.err
            yield run
        finally:
            run("down")


@pytest.fixture(scope="session")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small folder on lighthouses, in three formats."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "eddystone.md").write_text(EDDYSTONE)
    (folder / "bell-rock.txt").write_text(BELL_ROCK)
    (folder / "fresnel.html").write_text(FRESNEL)
    return folder


EDDYSTONE = """# Eddystone

Four towers have stood on the Eddystone rocks. The first was lit in 1698 by Henry Winstanley and vanished in the storm
of 1703. John Smeaton built the third tower between 1756 and 1759 of granite blocks that were cut to interlock.

Smeaton found that lime with clay in it sets under water, which revived the use of hydraulic lime in building.
"""

BELL_ROCK = """Bell Rock

The Bell Rock lighthouse stands on a reef that the tide covers twice a day. Robert Stevenson directed the work from 1807
to 1810. Its builders could work for about two hours at each low tide during the first season.
"""

FRESNEL = """<html><head><title>The Fresnel lens</title></head><body><main><h1>The Fresnel lens</h1>
<p>Augustin Fresnel showed his stepped lens in 1822. A lens of this kind needs much less glass than a simple one,
because only the surface bends the light.</p>
<p>The first was lit at the Cordouan lighthouse in 1823.</p></main></body></html>
"""
