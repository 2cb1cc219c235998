"""Child processes that do not outlive their parent, and detection of orphans that did.

A process counts as our orphan only if its program's name matches and its working folder is our data
folder. A process id alone proves nothing.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

Identity = Literal["same", "namespace", "drop"]

_LAUNCHER = str(Path(__file__).with_name("launch.py"))
_POLL_SECONDS = 0.02
_KILL_TIMEOUT_SECONDS = 30.0
"""Maximum time for a killed process to end, while the kernel frees its memory and waits for its disk."""

# The kernel ties the death signal to the thread that forked. So one thread that lives as long as the
# process forks all children.
_spawn_executor: ThreadPoolExecutor | None = None
_spawn_executor_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """Running child process with the signal that stops it."""

    name: str
    process: subprocess.Popen[bytes]
    stop_signal: signal.Signals

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def request_stop(self) -> None:
        if self.is_alive():
            self.process.send_signal(self.stop_signal)

    def stop(self, grace_seconds: float) -> bool:
        """Request a stop, wait, and kill the process if it is still running.

        Return whether it stopped on its own.
        """
        self.request_stop()
        try:
            self.process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        return True


def spawn_process(
    name: str,
    argv: Sequence[str | Path],
    *,
    stop_signal: signal.Signals = signal.SIGTERM,
    death_signal: signal.Signals = signal.SIGKILL,
    identity: Identity = "same",
    env: Mapping[str, str],
    cwd: Path | None = None,
    output: IO[bytes] | int | None = None,
) -> ChildProcess:
    """Start `argv` in its own session, so that Ctrl-C reaches only the parent.

    The child gets `death_signal` when the parent dies. `env` is its whole environment. `output`
    receives both output streams; `None` means those of the parent.
    """
    command = build_launch_command(argv, os.getpid(), death_signal, identity)

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=None if output is None else subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )

    return ChildProcess(name, _get_spawn_executor().submit(start).result(), stop_signal)


def build_launch_command(
    argv: Sequence[str | Path], parent: int, death_signal: signal.Signals, identity: Identity
) -> list[str]:
    """Return the command line of the launcher for `argv`."""
    own = [sys.executable, "-I", "-S", _LAUNCHER, str(parent), str(int(death_signal)), identity, "--"]
    return own + [str(a) for a in argv]


def _get_spawn_executor() -> ThreadPoolExecutor:
    global _spawn_executor
    with _spawn_executor_lock:
        if _spawn_executor is None:
            _spawn_executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="offing-spawn")
            os.register_at_fork(after_in_child=_reset_spawn_executor)
        return _spawn_executor


def _reset_spawn_executor() -> None:
    """Discard the spawn executor in a forked process, which has no other threads.

    It creates a new one if needed.
    """
    global _spawn_executor
    _spawn_executor = None


def interrupt_command() -> None:
    """End this process from any of its threads, as Ctrl-C does.

    A background process of a shell script ignores SIGINT. There SIGTERM ends the process immediately.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    os.kill(os.getpid(), signal.SIGTERM if ignored else signal.SIGINT)


def wait_until(is_ready: Callable[[], bool], *, is_alive: Callable[[], bool], timeout_seconds: float) -> bool:
    """Return True when `is_ready()` is true, or False when `is_alive()` is false or time has run out."""
    deadline = time.monotonic() + timeout_seconds
    while is_alive():
        if is_ready():
            return is_alive()
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return False


def list_processes(folder: Path, program: str) -> list[int]:
    """Return the ids of orphaned processes.

    Their name contains `program` and their working folder is `folder`.
    """
    import psutil

    pids: list[int] = []
    for process in psutil.process_iter(["name"]):
        try:
            if program in process.name() and Path(process.cwd()) == folder:
                pids.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue  # ended, or of another user: not our child
    return pids


def stop_orphans(folder: Path, program: str, *, stop_signal: signal.Signals, timeout_seconds: float = 2.0) -> int:
    """Stop orphaned processes in `folder`, first by `stop_signal`, then by force.

    Return how many were found.
    """
    remaining = orphans = list_processes(folder, program)
    for number, seconds in ((stop_signal, timeout_seconds), (signal.SIGKILL, _KILL_TIMEOUT_SECONDS)):
        for pid in remaining:
            _send_signal(pid, number)
        remaining = remaining and _wait_for_exit(seconds, folder, program)
    return len(orphans)


def _wait_for_exit(timeout_seconds: float, folder: Path, program: str) -> list[int]:
    """Wait until no process is in `folder`, at most `timeout_seconds`, and return those that are left."""
    deadline = time.monotonic() + timeout_seconds
    while (remaining := list_processes(folder, program)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return remaining


def _send_signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # already ended, which is the goal
