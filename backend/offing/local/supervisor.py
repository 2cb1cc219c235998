"""Starts programs, starts again those that end by themselves, and stops all of them in reverse order.

The only home of the restart rule. It does not know what the programs are, nor about folders or terminals.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from offing.core.errors import Unavailable
from offing.local.processes import Child, wait_until
from offing.local.programs import Program

log = logging.getLogger("offing.local")

START_SECONDS = 120.0
"""How long a program may take to recover and answer."""

MAX_RESTARTS = 5
"""In a row, without `SERVICE_SECONDS` of service between them."""

SERVICE_SECONDS = 60.0
"""After which a program that was ready is taken to work."""

POLL_SECONDS = 0.05

Say = Callable[[str], None]
"""Receives one line about what is being done, for a person."""


def silent(_: str) -> None:
    """Says nothing."""


def restart_delay(ends: int, second: float = 0.5) -> float | None:
    """Seconds to wait before the next start of a program that has ended `ends` times in a row.

    None: too often to try again. The first start after an end is at once, the one after `second` seconds, and each
    further one after twice as long, 10 s at most. How long a start takes does not count: a program that never gets
    ready on a busy machine is given up like any other.
    """
    if ends > MAX_RESTARTS:
        return None
    return 0.0 if ends <= 1 else min(second * 2 ** (ends - 2), 10.0)


@dataclass(slots=True)
class _Running:
    program: Program
    child: Child
    in_service_since: float | None
    """None: it is being started again, and has not been ready since."""
    ends: int = 0
    """In a row, without much service between them."""
    reviving: threading.Thread | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while the child is exchanged."""


class Supervisor:
    """Runs programs for one owner. `start`, `restart` and `stop` from one thread; `watch` may be another."""

    def __init__(
        self, say: Say = silent, clock: Callable[[], float] = time.monotonic, second_delay: float = 0.5
    ) -> None:
        self._say, self._clock, self._second_delay = say, clock, second_delay
        self._running: dict[str, _Running] = {}
        self._halting, self._stopping, self._given_up = threading.Event(), threading.Event(), threading.Event()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._running)

    def pid(self, name: str) -> int:
        """The pid of `name` as it runs now; it changes at each restart."""
        return self._running[name].child.pid

    def start(self, programs: Sequence[Program]) -> None:
        """Starts all of them at once and returns when each answers. Raises Unavailable with the end of its log."""
        self.begin(programs)
        for program in programs:
            self._await(self._running[program.name])

    def begin(self, programs: Sequence[Program]) -> None:
        """Starts all of them and returns at once, so that `watch` does not have to wait for them."""
        for program in programs:
            self._say(f"starting {program.name}")
            program.prepare()
            self._running[program.name] = _Running(program, program.start(), self._clock())

    def restart(self, name: str) -> None:
        """Stops `name` if it still runs, starts it, and returns when it answers."""
        running = self._running[name]
        with running.lock:
            running.child.stop(running.program.grace_seconds)
            self._again(running)

    def watch(self, asked: threading.Event) -> bool:
        """Starts again what ends, until `asked` is set: True. False: something ended too often or could not be started
        again, and was given up.

        Each program is started again on a thread of its own, so that none waits until another is ready; servers go
        first, since the others need them.
        """
        while not asked.wait(0.2):
            if self._given_up.is_set():
                return False
            for running in list(self._running.values()):
                if running.reviving is None and not running.child.alive():
                    name = f"offing-revive-{running.program.name}"
                    running.reviving = threading.Thread(target=self._revive, args=(running, asked), name=name)
                    running.reviving.start()
        return True

    def halt(self) -> None:
        """Makes every wait for readiness end at once; for a signal handler."""
        self._halting.set()

    def kill(self) -> None:
        """Ends everything at once, without grace; for a second Ctrl-C. What they hold is safe on disk."""
        for running in self._running.values():
            running.child.process.kill()

    def stop(self) -> None:
        """Stops everything, last started first. Each is asked, then has its grace, then is killed."""
        self._stopping.set()
        for running in self._running.values():
            if (reviving := running.reviving) is not None:
                reviving.join()
        for name, running in reversed(self._running.items()):
            if running.child.alive():
                self._say(f"stopping {name}")
            if not running.child.stop(running.program.grace_seconds):
                self._say(f"{name} did not stop within {running.program.grace_seconds:g} s and was killed")
            self._note_end(running)
        self._running.clear()
        self._stopping.clear()

    def _revive(self, running: _Running, asked: threading.Event) -> None:
        """Starts a program again that has ended; on a thread of its own."""
        try:
            with running.lock:
                if self._given_up.is_set():
                    return  # perhaps by the thread before this one, after `watch` had looked
                if not running.child.alive():  # else it was restarted on purpose meanwhile
                    self._start_again(running, asked)
        except Exception as error:  # whatever it is, whoever watches must hear of it, on whichever thread
            log.exception("a program could not be started again")
            self._say(f"{running.program.name} cannot be started again: {error}; giving up")
            self._given_up.set()
        finally:
            running.reviving = None

    def _start_again(self, running: _Running, asked: threading.Event) -> None:
        name, now = running.program.name, self._clock()
        since = running.in_service_since
        running.ends = 1 if since is not None and now - since >= SERVICE_SECONDS else running.ends + 1
        delay = restart_delay(running.ends, self._second_delay)
        ended = f"{name} ended ({_ending(running.child)})"
        if delay is None:
            self._say(f"{ended} for the {running.ends}th time in a row; giving up")
            self._given_up.set()
            return
        self._say(f"{ended}; starting it again" + (f" in {delay:g} s" if delay else ""))
        if not self._pause(asked, lambda: self._clear_for(running.program), delay):
            return
        self._note_end(running)
        try:
            self._again(running)
        except Unavailable as error:
            self._say(str(error))  # it has ended once more, which the next round counts

    def _pause(self, asked: threading.Event, clear: Callable[[], bool], seconds: float) -> bool:
        """Waits for so long, and until `clear`. False: there is nothing to wait for any more."""
        until = time.monotonic() + seconds
        while time.monotonic() < until or not clear():
            if self._given_up.is_set() or self._ending_all or asked.wait(POLL_SECONDS):
                return False
        return not self._ending_all

    def _clear_for(self, program: Program) -> bool:
        """Whether all servers are up, which are all that a program needs; a server needs none."""
        return program.is_server or all(
            running.child.alive() and running.reviving is None
            for running in list(self._running.values())
            if running.program.is_server
        )

    @property
    def _ending_all(self) -> bool:
        return self._halting.is_set() or self._stopping.is_set()

    def _note_end(self, running: _Running) -> None:
        """Tell the program of a child that ended otherwise than it should."""
        if not running.child.process.returncode:
            return
        try:
            running.program.ended(running.child)
        except Exception:  # the rest must be stopped, and this one started again, whatever that was
            log.exception("the end of a program was not noted")

    def _again(self, running: _Running) -> None:
        running.program.prepare()
        running.in_service_since = None
        running.child = running.program.start()
        self._await(running)

    def _await(self, running: _Running) -> None:
        program, child = running.program, running.child
        if wait_until(
            lambda: program.ready(child),
            alive=lambda: child.alive() and not self._ending_all,
            timeout_seconds=START_SECONDS,
        ):
            running.in_service_since = self._clock()
            return
        child.stop(program.grace_seconds)
        attempt = None if self._ending_all else program.recover()
        if attempt is None:
            raise Unavailable(f"{program.name} did not start. {program.why_not()}")
        self._say(f"{program.name}: {attempt}")
        self._again(running)


def _ending(child: Child) -> str:
    code = child.process.returncode
    return f"signal {-code}" if code < 0 else f"exit code {code}"
