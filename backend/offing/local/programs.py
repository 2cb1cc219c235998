"""Protocol of the programs that a supervisor runs, and its implementation for Offing's own processes.

`PostgresServer` and `KeyValueServer` are the other implementations.
"""

import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from offing.local.data_directory import open_log, read_log_tail
from offing.local.processes import ChildProcess, spawn_process
from offing.process_name import NONCE_VARIABLE, render_process_name

LineEcho = Callable[[str, str], None]
"""Receives the name of a program and one line of its output."""

ExitCallback = Callable[[str], object] | None
"""Receives the `process_name` of a child that has ended. `None` means no callback."""


class Program(Protocol):
    """Program that runs as one child process and reports when it is ready."""

    @property
    def name(self) -> str: ...

    @property
    def grace_seconds(self) -> float:
        """Seconds that the program may take to stop on its own."""
        ...

    @property
    def is_server(self) -> bool:
        """Whether other programs need it to be running."""
        ...

    def prepare(self) -> None:
        """Create what the program needs and remove what a killed one has left. Called before each start."""
        ...

    def start(self) -> ChildProcess: ...

    def is_ready(self, child: ChildProcess) -> bool:
        """Return whether `child` itself, and not another process in its place, is ready."""
        ...

    def recover(self) -> str | None:
        """Try to recover from a failed start and return what was done.

        `None` means that nothing is left to try.
        """
        ...

    def describe_failure(self) -> str:
        """Return its last output for an error message."""
        ...

    def handle_exit(self, child: ChildProcess) -> None:
        """Handle the unexpected end of `child`. It must not raise, and must return within seconds."""
        ...


@dataclass(frozen=True, slots=True)
class ManagedProcess:
    """Process of Offing. It writes its process id to `ready_file` (OFFING_READY_FILE) when it is ready."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    """The whole environment of the process."""
    ready_file: Path
    log: Path
    echo: LineEcho | None = None
    """Receives its lines of output. `None` writes them to `log`."""
    is_answering: Callable[[], bool] = lambda: True
    """Additional readiness check, such as a request to its port."""
    grace_seconds: float = 25.0
    on_exit: ExitCallback = None
    """Called when a child has ended unexpectedly."""
    nonce: str = field(default_factory=lambda: secrets.token_hex(4))
    """Part of the names of its children, which makes them unique among processes."""
    is_server: bool = False

    def prepare(self) -> None:
        self.ready_file.unlink(missing_ok=True)

    def start(self) -> ChildProcess:
        env = {**self.env, "OFFING_READY_FILE": str(self.ready_file), "PYTHONUNBUFFERED": "1"}
        env[NONCE_VARIABLE] = self.nonce
        if self.echo is None:
            with open_log(self.log) as log:
                return spawn_process(self.name, self.argv, env=env, output=log)
        child = spawn_process(self.name, self.argv, env=env, output=subprocess.PIPE)
        threading.Thread(target=_echo_lines, args=(child, self.echo), daemon=True, name=f"log-{self.name}").start()
        return child

    def is_ready(self, child: ChildProcess) -> bool:
        try:
            ready_text = self.ready_file.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return False
        return ready_text == str(child.pid) and self.is_answering()

    def recover(self) -> str | None:
        return None

    def handle_exit(self, child: ChildProcess) -> None:
        if self.on_exit is not None:
            self.on_exit(render_process_name(child.pid, self.nonce))

    def describe_failure(self) -> str:
        return read_log_tail(self.log) if self.echo is None else "See its output above."


def _echo_lines(child: ChildProcess, echo: LineEcho) -> None:
    assert child.process.stdout is not None
    with child.process.stdout as lines:
        for line in lines:
            echo(child.name, line.decode("utf-8", "replace").rstrip())


def python_module_command(name: str) -> tuple[str, ...]:
    """Return the command line that runs a Python module with this interpreter."""
    return (sys.executable, "-m", name)
