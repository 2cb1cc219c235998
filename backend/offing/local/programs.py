"""What the supervisor can run: the protocol, and our own processes as one kind of it.

`Postgres` and `KeyValue` are the others. It does not know which processes there are; those come in as values.
"""

import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from offing.local.datadir import log_tail, open_log
from offing.local.processes import Child, spawn
from offing.process_name import NONCE_VARIABLE, process_name

Echo = Callable[[str, str], None]
"""Receives a program's name and one line that it wrote."""

OnEnd = Callable[[str], object] | None
"""Receives the `process_name` of a child that has ended. None: nobody needs to know."""


class Program(Protocol):
    """Something that runs as one child process and can be told to be ready."""

    @property
    def name(self) -> str: ...

    @property
    def grace_seconds(self) -> float:
        """How long it may take to stop by itself."""
        ...

    @property
    def is_server(self) -> bool:
        """Whether the others need it to be up."""
        ...

    def prepare(self) -> None:
        """Makes what it needs and clears away what a killed one left; called before each start."""
        ...

    def start(self) -> Child: ...

    def ready(self, child: Child) -> bool:
        """Whether `child`, and nobody else in its place, answers."""
        ...

    def recover(self) -> str | None:
        """Tries something against a failed start; what was done, None when there is nothing left to try."""
        ...

    def why_not(self) -> str:
        """What it wrote last, for an error message."""
        ...

    def ended(self, child: Child) -> None:
        """`child` is gone, and did not end as it was asked to. Never raises, and takes seconds at most."""
        ...


@dataclass(frozen=True, slots=True)
class Process:
    """One of our own processes. It writes its pid to `ready_file` (OFFING_READY_FILE) when it is ready for work."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    """The whole environment."""
    ready_file: Path
    log: Path
    echo: Echo | None = None
    """Gets its lines as they come; None: they go to `log`."""
    answers: Callable[[], bool] = lambda: True
    """A further check, such as a request to its port."""
    grace_seconds: float = 25.0
    on_end: OnEnd = None
    """Told of a child that ended otherwise than it was asked to."""
    nonce: str = field(default_factory=lambda: secrets.token_hex(4))
    """Part of the names of its children, so that no other process has the name of one."""
    is_server: bool = False

    def prepare(self) -> None:
        self.ready_file.unlink(missing_ok=True)

    def start(self) -> Child:
        env = {**self.env, "OFFING_READY_FILE": str(self.ready_file), "PYTHONUNBUFFERED": "1"}
        env[NONCE_VARIABLE] = self.nonce
        if self.echo is None:
            with open_log(self.log) as log:
                return spawn(self.name, self.argv, env=env, output=log)
        child = spawn(self.name, self.argv, env=env, output=subprocess.PIPE)
        threading.Thread(target=_pass_on, args=(child, self.echo), daemon=True, name=f"log-{self.name}").start()
        return child

    def ready(self, child: Child) -> bool:
        try:
            said = self.ready_file.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return False
        return said == str(child.pid) and self.answers()

    def recover(self) -> str | None:
        return None

    def ended(self, child: Child) -> None:
        if self.on_end is not None:
            self.on_end(process_name(child.pid, self.nonce))

    def why_not(self) -> str:
        return log_tail(self.log) if self.echo is None else "See what it wrote above."


def _pass_on(child: Child, echo: Echo) -> None:
    assert child.process.stdout is not None
    with child.process.stdout as lines:
        for line in lines:
            echo(child.name, line.decode("utf-8", "replace").rstrip())


def module(name: str) -> tuple[str, ...]:
    """The command line that runs a Python module with this interpreter."""
    return (sys.executable, "-m", name)
