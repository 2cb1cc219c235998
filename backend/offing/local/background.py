"""A running home, seen from another process: started in the background, asked after, stopped."""

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from offing.core.errors import Unavailable
from offing.local.datadir import Lock, layout, open_log, prepare, read_note
from offing.local.processes import wait_until
from offing.local.servers import take_part
from offing.local.stack import READY_SECONDS, Hooks, attach
from offing.local.supervisor import Say
from offing.settings import Settings

STOP_SECONDS = 60.0
"""How long `down` waits: a worker's drain and the servers' own stop."""


@dataclass(frozen=True, slots=True)
class Status:
    """Whether this home runs. `page_url` None: no page; a command runs it for its own use."""

    pid: int | None
    programs: tuple[str, ...] = ()
    page_url: str | None = None


def status(settings: Settings) -> Status:
    note = read_note(layout(settings.home))
    return Status(None) if note is None else Status(note.pid, note.programs, note.page_url)


def up_detached(settings: Settings, argv: Sequence[str], hooks: Hooks, *, say: Say) -> int:
    """Runs `argv`, which is `offing up`, in the background, and returns when it is ready. The exit code."""
    paths = prepare(settings.home)
    if read_note(paths) is None:
        log = paths.logs / "offing.log"
        with open_log(log) as output:
            child = subprocess.Popen(
                list(argv), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        say(f"starting in the background; it writes to {log}")
        found = wait_until(
            lambda: read_note(paths) is not None, alive=lambda: child.poll() is None, timeout_seconds=READY_SECONDS
        )
        if not found:
            raise Unavailable(f"It did not start; see {log}.")
    part = take_part(paths)
    if isinstance(part, Lock):
        part.release()
        raise Unavailable(f"It started and ended again; see {paths.logs / 'offing.log'}.")
    part.door.leave()
    return attach(settings, part, hooks, say)


def down(settings: Settings, *, say: Say) -> bool:
    """Stops what runs this home and waits for it. False when nothing ran. Raises Unavailable when it does not stop."""
    lock = Lock(layout(settings.home).lock)
    holder = lock.holder()
    if holder is None:
        return False
    say(f"stopping pid {holder}")
    os.kill(holder, signal.SIGTERM)
    if not wait_until(lambda: lock.holder() is None, alive=lambda: True, timeout_seconds=STOP_SECONDS):
        raise Unavailable(f"Process {holder} is still stopping after {STOP_SECONDS:g} s.")
    return True
