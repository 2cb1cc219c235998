"""The policy engine of a home: one process, at one address, for all commands that use the home at once.

The only home of who runs it. Whoever of them comes first does, and the workers of all ask it: a worker may be given any
run of the home, so an engine of its own beside another's would be asked for versions that only the other has. When the
one that runs it ends, it waits for the others; when it is killed, another one starts the engine anew.
"""

import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from offing.core.errors import Unavailable
from offing.local.datadir import Door, Layout, Lock
from offing.local.policy import has_policies, socket_of
from offing.local.processes import end_this_command
from offing.local.programs import Program
from offing.local.supervisor import START_SECONDS, Say, Supervisor
from offing.settings import Settings

LOOK_SECONDS = 0.3
"""Between looks whether there are policies, and whether somebody runs the engine."""

DEFERENCE_SECONDS = 3.0
"""For which a command that shares another's servers leaves the engine to that one, which may outlive it."""

ANSWER_SECONDS = 5.0


class SharedEngine:
    """One command's part in the engine of its home: to run it, if nobody does, and to wait until it answers."""

    def __init__(self, settings: Settings, paths: Layout, program: Program, say: Say, *, guest: bool = False) -> None:
        """`guest`: the command shares the servers of another one."""
        self.supervisor = Supervisor(say)
        self._settings, self._paths, self._program, self._say, self._guest = settings, paths, program, say, guest
        self._lock, self._users = Lock(paths.engine_lock), Door(paths.engine_users)
        self._ours, self._ending = False, threading.Event()
        self._failed: Unavailable | None = None
        self.given_up = False
        """The engine that is run here ended too often."""
        self._begun = time.monotonic()
        self._thread = threading.Thread(target=self._keep, name="offing-engine", daemon=True)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the programs that are run here: the engine, or none."""
        return self.supervisor.names

    def until_ready(self, cut_short: Callable[[], bool] = lambda: False) -> None:
        """Returns when the engine answers; at once without policies. Raises Unavailable with whose engine it is."""
        deadline = time.monotonic() + START_SECONDS
        while has_policies(self._settings) and not cut_short():
            if self._failed is not None:
                raise self._failed
            if answers(socket_of(self._paths)):
                return
            if time.monotonic() > deadline:
                raise Unavailable(self._why_not())
            time.sleep(LOOK_SECONDS)

    def begin(self) -> None:
        """Takes part: nobody who runs the engine stops it before `end`."""
        self._users.enter()
        self._take()
        self._thread.start()

    def end(self) -> None:
        """Leaves; whoever runs the engine stops it when the others have left, too."""
        try:
            self._users.leave()
            if self._ours and self._guest:
                self._wait_for_others()
        finally:
            self._ending.set()
            self.supervisor.halt()
            self._thread.join()
            self.supervisor.stop()
            self._lock.release()

    def _wait_for_others(self) -> None:
        last, told = Door(self._paths.engine_users), False
        with last:
            while not last.close_behind_the_last():
                if not told:
                    self._say("another offing command uses the policy engine; waiting for it (Ctrl-C stops it now)")
                told = True
                time.sleep(LOOK_SECONDS)

    def _keep(self) -> None:
        """Takes the engine over when nobody runs it, and starts it again when it ends by itself."""
        while not self._ours and not self._ending.wait(LOOK_SECONDS):
            self._take()
        if not self._ours:
            return
        try:
            self.supervisor.start([self._program])
        except Unavailable as error:
            self._failed, self._ours = error, False
            self._lock.release()
            return
        if not self.supervisor.watch(self._ending):
            self.given_up = True
            end_this_command()  # as for a worker that is given up: the command would wait for ever

    def _take(self) -> None:
        if not has_policies(self._settings):
            return
        if self._guest and time.monotonic() - self._begun < DEFERENCE_SECONDS:
            return
        self._ours = self._lock.acquire()

    def _why_not(self) -> str:
        holder = self._lock.holder()
        whose = f"which process {holder} runs," if holder else "which nobody runs,"
        log = self._paths.logs / "engine.log"
        return f"The policy engine of {self._paths.home}, {whose} does not answer. See {log}; `offing down` stops it."


@contextmanager
def shared(engine: SharedEngine | None) -> Generator[None]:
    """Takes part for as long as the block lasts. None: the command has no engine, or another's address."""
    if engine is None:
        yield
        return
    engine.begin()
    try:
        yield
    finally:
        engine.end()


def answers(path: Path) -> bool:
    """Whether an engine serves on a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(ANSWER_SECONDS)
        try:
            probe.connect(str(path))
            probe.sendall(b"GET /v1/models HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n")
            return b" 200 " in probe.recv(64)
        except OSError:
            return False
