"""Start, inspect and stop a stack that runs in the background."""

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from offing.core.errors import Unavailable
from offing.local.data_directory import (
    ExclusiveLock,
    locate_data_directory,
    open_log,
    prepare_data_directory,
    read_stack_info,
)
from offing.local.processes import wait_until
from offing.local.servers import join_or_lock
from offing.local.stack import READY_TIMEOUT_SECONDS, StackHooks, show_running_stack
from offing.local.supervisor import MessageSink
from offing.settings import Settings

STOP_TIMEOUT_SECONDS = 60.0
"""Maximum time that `down` waits: the drain of a worker and the stop of the servers."""


@dataclass(frozen=True, slots=True)
class StackStatus:
    """State of the stack of a data directory.

    `web_url` is `None` if a command runs the stack for its own use.
    """

    pid: int | None
    programs: tuple[str, ...] = ()
    web_url: str | None = None


def get_status(settings: Settings) -> StackStatus:
    info = read_stack_info(locate_data_directory(settings.home))
    return StackStatus(None) if info is None else StackStatus(info.pid, info.programs, info.page_url)


def start_detached(settings: Settings, argv: Sequence[str], hooks: StackHooks, *, say: MessageSink) -> int:
    """Run `argv`, which is `offing up`, in the background. Return the exit code when it is ready."""
    paths = prepare_data_directory(settings.home)
    if read_stack_info(paths) is None:
        log = paths.logs / "offing.log"
        with open_log(log) as output:
            child = subprocess.Popen(
                list(argv), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        say(f"starting in the background; the log is {log}")
        hooks.prepare_login_link()  # the other process is importing, too, and this one would only wait
        is_ready = wait_until(
            lambda: read_stack_info(paths) is not None,
            is_alive=lambda: child.poll() is None,
            timeout_seconds=READY_TIMEOUT_SECONDS,
        )
        if not is_ready:
            raise Unavailable(f"The stack did not start. See {log}.")
    part = join_or_lock(paths)
    if isinstance(part, ExclusiveLock):
        part.release()
        raise Unavailable(f"The stack started and then ended. See {paths.logs / 'offing.log'}.")
    part.users_lock.release()
    return show_running_stack(settings, part, hooks, say)


def stop_stack(settings: Settings, *, say: MessageSink) -> bool:
    """Stop the running stack and wait for it. Return False if nothing ran.

    Raises Unavailable if it does not stop in time.
    """
    lock = ExclusiveLock(locate_data_directory(settings.home).lock)
    holder = lock.find_holder()
    if holder is None:
        return False
    say(f"stopping pid {holder}")
    os.kill(holder, signal.SIGTERM)
    if not wait_until(lambda: lock.find_holder() is None, is_alive=lambda: True, timeout_seconds=STOP_TIMEOUT_SECONDS):
        raise Unavailable(f"Process {holder} is still stopping after {STOP_TIMEOUT_SECONDS:g} s.")
    return True
