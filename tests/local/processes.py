"""Starts the holder of a home as a process of its own, as this user, as root or as an ordinary user."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

T = TypeVar("T")

NOBODY = 65534
SERVERS_PROCESS = Path(__file__).with_name("servers_process.py")
REPOSITORY = SERVERS_PROCESS.parents[2]


def missing(what: str) -> None:
    """Skips the test, or fails it where everything must be there (CI=true)."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} (CI=true, so this is not skipped)")
    pytest.skip(what)


@dataclass(frozen=True, slots=True)
class ServersProcess:
    """A process that runs the servers of `home`."""

    process: subprocess.Popen[str]
    home: Path
    owner_url: str
    redis_url: str

    def servers(self) -> list[psutil.Process]:
        """The server processes of this home that are alive, workers of Postgres included."""
        return servers_of(self.home)

    def each(self, ask: Callable[[psutil.Process], T]) -> list[T]:
        """What `ask` says of each server process; one that ends meanwhile, as workers of Postgres do, is left out."""
        messages: list[T] = []
        for process in self.servers():
            with suppress(psutil.NoSuchProcess):
                messages.append(ask(process))
        return messages


def environment() -> dict[str, str]:
    """What another interpreter needs to import this checkout and its dependencies."""
    packages = [REPOSITORY / "backend", *(p for p in sys.path if p.endswith("site-packages"))]
    return {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, packages))}


def servers_of(home: Path) -> list[psutil.Process]:
    results: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and Path(process.cwd()) in (home / "pg", home / "kv"):
                results.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return results


@contextmanager
def holding(
    home: Path, *, before: Sequence[str | Path] = (), python: str = sys.executable, **more: str
) -> Generator[ServersProcess]:
    """A holder of `home`, up; killed at the end. `before`: a program that runs it, such as `setpriv` with options.

    `more` are further variables of its environment.
    """
    process = subprocess.Popen(
        [*before, python, SERVERS_PROCESS, home],
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        env=environment() | more,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, f"the holder of {home} ended with {process.wait(5)}"
        message = json.loads(line)
        yield ServersProcess(process, home, message["owner_url"], message["redis_url"])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        assert eventually(lambda: not servers_of(home))


def eventually(check: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if check():
            return True
        time.sleep(0.02)
    return check()


def as_nobody(user: int = NOBODY) -> list[str]:
    """A command that runs the rest as an ordinary user; nothing when we are one ourselves."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        missing("setpriv is needed to become an ordinary user")
    become = [str(setpriv), f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all"]
    return [*become, "/usr/bin/env"]  # setpriv itself still reaches root's files; what env starts does not


def python_for(before: Sequence[str]) -> str:
    """An interpreter of our version that can be started behind `before`; ours may lie below root's home."""
    ask = "import sys, psycopg; print(sys.version_info[:2])"
    for python in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run(
            [*before, python, "-c", ask],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env=environment(),
        )
        if done.stdout.strip() == str(sys.version_info[:2]):
            return python
    missing("no Python of this version that an ordinary user may run with this environment's packages")
    raise AssertionError
