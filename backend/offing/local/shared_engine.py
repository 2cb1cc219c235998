"""Policy engine of a data directory, shared by all commands that use it at the same time.

The first command runs the engine process and the workers of all commands use it. Separate engines
would not work: a worker may claim any run, and would ask for versions that only another engine has
loaded. When the command that runs the engine ends, it waits for the others. If it is killed,
another command starts the engine again.
"""

import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from offing.core.errors import Unavailable
from offing.local.data_directory import DataDirectory, ExclusiveLock, SharedLock
from offing.local.engine_process import engine_socket, has_policies
from offing.local.processes import interrupt_command
from offing.local.programs import Program
from offing.local.supervisor import START_TIMEOUT_SECONDS, MessageSink, Supervisor
from offing.settings import Settings

POLL_SECONDS = 0.3
"""Interval between checks for policy versions and for a process that runs the engine."""

GUEST_DELAY_SECONDS = 3.0
"""Time for which a command that shares the stack lets its owner start the engine. The owner may run
longer.
"""

PROBE_TIMEOUT_SECONDS = 5.0


class SharedEngine:
    """Participation of one command in the shared policy engine.

    It runs the engine if no other process does, and waits until the engine is ready.
    """

    def __init__(
        self,
        settings: Settings,
        paths: DataDirectory,
        program: Program,
        say: MessageSink,
        *,
        shares_stack: bool = False,
    ) -> None:
        """`shares_stack` means that the command uses the servers of another command."""
        self.supervisor = Supervisor(say)
        self._settings, self._paths, self._program, self._say, self._shares_stack = (
            settings,
            paths,
            program,
            say,
            shares_stack,
        )
        self._lock, self._users_lock = ExclusiveLock(paths.engine_lock), SharedLock(paths.engine_users)
        self._runs_engine, self._ending = False, threading.Event()
        self._failed: Unavailable | None = None
        self.given_up = False
        """True if the engine of this process has ended too often."""
        self._started_at = time.monotonic()
        self._thread = threading.Thread(target=self._run_if_unowned, name="offing-engine", daemon=True)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the programs that this process runs: the engine, or none."""
        return self.supervisor.names

    def wait_until_ready(self, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        """Wait until the engine is ready. Return at once if there are no policy versions.

        Raises Unavailable that names the process that runs the engine.
        """
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while has_policies(self._settings) and not is_cancelled():
            if self._failed is not None:
                raise self._failed
            if is_serving(engine_socket(self._paths)):
                return
            if time.monotonic() > deadline:
                raise Unavailable(self._describe_problem())
            time.sleep(POLL_SECONDS)

    def join(self) -> None:
        """Register as a user of the engine, so that no process stops it before `leave`."""
        self._users_lock.acquire()
        self._try_acquire()
        self._thread.start()

    def leave(self) -> None:
        """Unregister. The process that runs the engine stops it when no user is left."""
        try:
            self._users_lock.release()
            if self._runs_engine and self._shares_stack:
                self._wait_for_others()
        finally:
            self._ending.set()
            self.supervisor.cancel_waits()
            self._thread.join()
            self.supervisor.stop()
            self._lock.release()

    def _wait_for_others(self) -> None:
        exclusive, reported = SharedLock(self._paths.engine_users), False
        with exclusive:
            while not exclusive.try_close():
                if not reported:
                    self._say("another offing command uses the policy engine; waiting for it (Ctrl-C stops it now)")
                reported = True
                time.sleep(POLL_SECONDS)

    def _run_if_unowned(self) -> None:
        """Run the engine if no process does, and restart it when it exits."""
        while not self._runs_engine and not self._ending.wait(POLL_SECONDS):
            self._try_acquire()
        if not self._runs_engine:
            return
        try:
            self.supervisor.start([self._program])
        except Unavailable as error:
            self._failed, self._runs_engine = error, False
            self._lock.release()
            return
        if not self.supervisor.watch(self._ending):
            self.given_up = True
            interrupt_command()  # interrupt, as for a worker that is given up: the command would wait forever

    def _try_acquire(self) -> None:
        if not has_policies(self._settings):
            return
        if self._shares_stack and time.monotonic() - self._started_at < GUEST_DELAY_SECONDS:
            return
        self._runs_engine = self._lock.acquire()

    def _describe_problem(self) -> str:
        holder = self._lock.find_holder()
        whose = f"which process {holder} runs," if holder else "which no process runs,"
        log = self._paths.logs / "engine.log"
        return (
            f"The policy engine of {self._paths.root}, {whose} does not respond. See {log}. Stop it with `offing down`."
        )


@contextmanager
def join_engine(engine: SharedEngine | None) -> Generator[None]:
    """Use the shared engine until the block ends.

    `None` means that the command has no engine or an external one.
    """
    if engine is None:
        yield
        return
    engine.join()
    try:
        yield
    finally:
        engine.leave()


def is_serving(path: Path) -> bool:
    """Return whether a policy engine answers on a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_TIMEOUT_SECONDS)
        try:
            probe.connect(str(path))
            probe.sendall(b"GET /v1/models HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n")
            return b" 200 " in probe.recv(64)
        except OSError:
            return False
