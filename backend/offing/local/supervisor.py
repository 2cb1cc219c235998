"""Supervisor that starts programs, restarts those that end, and stops all of them in reverse order."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from offing.core.errors import Unavailable
from offing.local.processes import ChildProcess, wait_until
from offing.local.programs import Program

log = logging.getLogger("offing.local")

START_TIMEOUT_SECONDS = 120.0
"""Maximum time for a program to recover and become ready."""

MAX_RESTARTS = 5
"""Maximum number of exits in a row without `MIN_SERVICE_SECONDS` between them."""

MIN_SERVICE_SECONDS = 60.0
"""Time after which a program that was ready counts as working."""

POLL_SECONDS = 0.05

MessageSink = Callable[[str], None]
"""Receives one line of progress for a person."""


def discard_message(_: str) -> None:
    """Discard a message."""


def restart_delay(exit_count: int, second_delay_seconds: float = 0.5) -> float | None:
    """Return the seconds to wait before restarting a program that has ended `exit_count` times in a row.

    `None` means that it has ended too often. The first restart is immediate, the next one follows after
    `second_delay_seconds`, and each further delay is twice as long, at most 10 s. The duration of a
    start does not count: a program that never becomes ready on a busy machine is given up, too.
    """
    if exit_count > MAX_RESTARTS:
        return None
    return 0.0 if exit_count <= 1 else min(second_delay_seconds * 2 ** (exit_count - 2), 10.0)


@dataclass(slots=True)
class _RunningProgram:
    program: Program
    child: ChildProcess
    ready_since: float | None
    """Time since when it is ready. `None` means that it is being restarted."""
    exit_count: int = 0
    """Number of exits in a row without enough service between them."""
    restart_thread: threading.Thread | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while the child is replaced."""


class Supervisor:
    """Runner of programs. Call `start`, `restart` and `stop` from one thread; `watch` may use another."""

    def __init__(
        self,
        say: MessageSink = discard_message,
        clock: Callable[[], float] = time.monotonic,
        second_delay_seconds: float = 0.5,
    ) -> None:
        self._say, self._clock, self._second_delay = say, clock, second_delay_seconds
        self._running: dict[str, _RunningProgram] = {}
        self._halting, self._stopping, self._given_up = threading.Event(), threading.Event(), threading.Event()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._running)

    def get_pid(self, name: str) -> int:
        """Return the present process id of `name`, which changes at each restart."""
        return self._running[name].child.pid

    def start(self, programs: Sequence[Program]) -> None:
        """Start all programs and wait until each is ready. Raises Unavailable with the end of the log."""
        self.start_without_waiting(programs)
        for program in programs:
            self._wait_until_ready(self._running[program.name])

    def start_without_waiting(self, programs: Sequence[Program]) -> None:
        """Start all programs and return at once, so that `watch` can begin."""
        for program in programs:
            self._say(f"starting {program.name}")
            program.prepare()
            self._running[program.name] = _RunningProgram(program, program.start(), self._clock())

    def restart(self, name: str) -> None:
        """Stop `name` if it runs, start it, and wait until it is ready."""
        running = self._running[name]
        with running.lock:
            running.child.stop(running.program.grace_seconds)
            self._restart_child(running)

    def watch(self, stop_requested: threading.Event) -> bool:
        """Restart programs that end, until `stop_requested` is set.

        Return True then, or False if a program ended too often or could not be restarted. Each program is
        restarted in its own thread, so that none waits for another. Servers are restarted first, because
        the others need them.
        """
        while not stop_requested.wait(0.2):
            if self._given_up.is_set():
                return False
            for running in list(self._running.values()):
                if running.restart_thread is None and not running.child.is_alive():
                    name = f"offing-revive-{running.program.name}"
                    running.restart_thread = threading.Thread(
                        target=self._restart_in_thread, args=(running, stop_requested), name=name
                    )
                    running.restart_thread.start()
        return True

    def cancel_waits(self) -> None:
        """Cancel every wait for readiness. A signal handler may call it."""
        self._halting.set()

    def kill(self) -> None:
        """Kill all programs without grace, for a second Ctrl-C. Their data is safe on disk."""
        for running in self._running.values():
            running.child.process.kill()

    def stop(self) -> None:
        """Stop all programs, last started first.

        A program that does not stop within its grace period is killed.
        """
        self._stopping.set()
        for running in self._running.values():
            if (reviving := running.restart_thread) is not None:
                reviving.join()
        for name, running in reversed(self._running.items()):
            if running.child.is_alive():
                self._say(f"stopping {name}")
            if not running.child.stop(running.program.grace_seconds):
                self._say(f"{name} did not stop within {running.program.grace_seconds:g} s and was killed")
            self._notify_exit(running)
        self._running.clear()
        self._stopping.clear()

    def _restart_in_thread(self, running: _RunningProgram, stop_requested: threading.Event) -> None:
        """Restart an ended program, in its own thread."""
        try:
            with running.lock:
                if self._given_up.is_set():
                    return  # perhaps by the previous thread after the check in `watch`
                if not running.child.is_alive():  # else it was restarted on purpose
                    self._restart_with_delay(running, stop_requested)
        except Exception as error:  # report any error to the watching thread
            log.exception("program could not be restarted")
            self._say(f"{running.program.name} cannot be restarted: {error}; giving up")
            self._given_up.set()
        finally:
            running.restart_thread = None

    def _restart_with_delay(self, running: _RunningProgram, stop_requested: threading.Event) -> None:
        name, now = running.program.name, self._clock()
        since = running.ready_since
        running.exit_count = 1 if since is not None and now - since >= MIN_SERVICE_SECONDS else running.exit_count + 1
        delay = restart_delay(running.exit_count, self._second_delay)
        ended = f"{name} ended ({_describe_exit(running.child)})"
        if delay is None:
            self._say(f"{ended} {running.exit_count} times in a row; giving up")
            self._given_up.set()
            return
        self._say(f"{ended}; restarting it" + (f" in {delay:g} s" if delay else ""))
        if not self._wait_before_restart(stop_requested, lambda: self._servers_ready_for(running.program), delay):
            return
        self._notify_exit(running)
        try:
            self._restart_child(running)
        except Unavailable as error:
            self._say(str(error))  # it has ended again; the next round counts it

    def _wait_before_restart(
        self, stop_requested: threading.Event, is_clear: Callable[[], bool], delay_seconds: float
    ) -> bool:
        """Wait for `delay_seconds` and until `is_clear`.

        Return False if the supervisor stops or gives up meanwhile.
        """
        until = time.monotonic() + delay_seconds
        while time.monotonic() < until or not is_clear():
            if self._given_up.is_set() or self._is_stopping or stop_requested.wait(POLL_SECONDS):
                return False
        return not self._is_stopping

    def _servers_ready_for(self, program: Program) -> bool:
        """Return whether all servers are up, as every program needs them. A server needs none."""
        return program.is_server or all(
            running.child.is_alive() and running.restart_thread is None
            for running in list(self._running.values())
            if running.program.is_server
        )

    @property
    def _is_stopping(self) -> bool:
        return self._halting.is_set() or self._stopping.is_set()

    def _notify_exit(self, running: _RunningProgram) -> None:
        """Notify the program of a child that has ended unexpectedly."""
        if not running.child.process.returncode:
            return
        try:
            running.program.handle_exit(running.child)
        except Exception:  # continue after any error: others must be stopped or restarted
            log.exception("the exit of a program could not be handled")

    def _restart_child(self, running: _RunningProgram) -> None:
        running.program.prepare()
        running.ready_since = None
        running.child = running.program.start()
        self._wait_until_ready(running)

    def _wait_until_ready(self, running: _RunningProgram) -> None:
        program, child = running.program, running.child
        if wait_until(
            lambda: program.is_ready(child),
            is_alive=lambda: child.is_alive() and not self._is_stopping,
            timeout_seconds=START_TIMEOUT_SECONDS,
        ):
            running.ready_since = self._clock()
            return
        child.stop(program.grace_seconds)
        attempt = None if self._is_stopping else program.recover()
        if attempt is None:
            raise Unavailable(f"{program.name} did not start. {program.describe_failure()}")
        self._say(f"{program.name}: {attempt}")
        self._restart_child(running)


def _describe_exit(child: ChildProcess) -> str:
    code = child.process.returncode
    return f"signal {-code}" if code < 0 else f"exit code {code}"
