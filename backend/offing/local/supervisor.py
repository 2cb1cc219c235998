"""Starts programs, starts again those that end by themselves, and stops all of them in reverse order.

The only home of the restart rule. It does not know what the programs are, nor about folders or terminals.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from offing.core.errors import Unavailable
from offing.local.processes import Child, wait_until
from offing.local.programs import Program

START_SECONDS = 120.0
"""How long a program may take to recover and answer."""

RESTARTS_A_MINUTE = 5

Say = Callable[[str], None]
"""Receives one line about what is being done, for a person."""


def silent(_: str) -> None:
    """Says nothing."""


def restart_delay(ends: Sequence[float], now: float, second: float = 0.5) -> float | None:
    """Seconds to wait before the next start of a program that ended at the times `ends`, the last one included.

    None: it ended too often within a minute to try again. The first start after an end is at once, the one after
    `second` seconds, and each further one after twice as long, 10 s at most.
    """
    recent = [t for t in ends if now - t < 60]
    if len(recent) > RESTARTS_A_MINUTE:
        return None
    return 0.0 if len(recent) <= 1 else min(second * 2 ** (len(recent) - 2), 10.0)


@dataclass(slots=True)
class _Running:
    program: Program
    child: Child
    ends: list[float] = field(default_factory=list[float])


class Supervisor:
    """Runs programs for one owner. `start`, `restart` and `stop` from one thread; `watch` may be another."""

    def __init__(
        self, say: Say = silent, clock: Callable[[], float] = time.monotonic, second_delay: float = 0.5
    ) -> None:
        self._say, self._clock, self._second_delay = say, clock, second_delay
        self._running: dict[str, _Running] = {}
        self._halting = threading.Event()

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
            self._running[program.name] = _Running(program, program.start())

    def restart(self, name: str) -> None:
        """Stops `name` if it still runs, starts it, and returns when it answers."""
        running = self._running[name]
        running.child.stop(running.program.grace_seconds)
        self._again(running)

    def watch(self, asked: threading.Event) -> bool:
        """Starts again what ends, until `asked` is set: True. False: something ended too often, and was given up."""
        while not asked.wait(0.2):
            for running in list(self._running.values()):
                if not running.child.alive() and not self._revive(running, asked):
                    return asked.is_set()
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
        for name, running in reversed(self._running.items()):
            if running.child.alive():
                self._say(f"stopping {name}")
            if not running.child.stop(running.program.grace_seconds):
                self._say(f"{name} did not stop within {running.program.grace_seconds:g} s and was killed")
        self._running.clear()

    def _revive(self, running: _Running, asked: threading.Event) -> bool:
        name, now = running.program.name, self._clock()
        running.ends.append(now)
        delay = restart_delay(running.ends, now, self._second_delay)
        ended = f"{name} ended ({_ending(running.child)})"
        if delay is None:
            self._say(f"{ended} for the {RESTARTS_A_MINUTE + 1}th time within a minute; giving up")
            return False
        self._say(f"{ended}; starting it again" + (f" in {delay:g} s" if delay else ""))
        if asked.wait(delay):
            return True
        try:
            self._again(running)
        except Unavailable as error:
            self._say(str(error))  # it has ended once more, which the next round counts
        return True

    def _again(self, running: _Running) -> None:
        running.program.prepare()
        running.child = running.program.start()
        self._await(running)

    def _await(self, running: _Running) -> None:
        program, child = running.program, running.child
        if wait_until(
            lambda: program.ready(child),
            alive=lambda: child.alive() and not self._halting.is_set(),
            timeout_seconds=START_SECONDS,
        ):
            return
        child.stop(program.grace_seconds)
        attempt = None if self._halting.is_set() else program.recover()
        if attempt is None:
            raise Unavailable(f"{program.name} did not start. {program.why_not()}")
        self._say(f"{program.name}: {attempt}")
        self._again(running)


def _ending(child: Child) -> str:
    code = child.process.returncode
    return f"signal {-code}" if code < 0 else f"exit code {code}"
