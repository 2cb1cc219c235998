"""Child processes that never outlive us, and the recognition of those that did.

The only home of spawning, stopping and orphan hunting. It does not know what the children do. An orphan is taken for
ours only when the program's name matches and its working folder is our data folder; a pid alone proves nothing.
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
_KILLED_SECONDS = 30.0
"""How long a process that was killed may take to end: the kernel gives back its memory and waits for its disk first."""

# The kernel ties "die with the parent" to the thread that forked, so one thread that lives as long as we do forks all.
_spawner: ThreadPoolExecutor | None = None
_spawner_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Child:
    """A running child and how it is asked to stop."""

    name: str
    process: subprocess.Popen[bytes]
    stop_signal: signal.Signals

    @property
    def pid(self) -> int:
        return self.process.pid

    def alive(self) -> bool:
        return self.process.poll() is None

    def ask_to_stop(self) -> None:
        if self.alive():
            self.process.send_signal(self.stop_signal)

    def stop(self, grace_seconds: float) -> bool:
        """Asks, waits, and kills what is still there. True when it went by itself."""
        self.ask_to_stop()
        try:
            self.process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        return True


def spawn(
    name: str,
    argv: Sequence[str | Path],
    *,
    stop_signal: signal.Signals = signal.SIGTERM,
    death_signal: signal.Signals = signal.SIGKILL,
    identity: Identity = "same",
    env: Mapping[str, str],
    cwd: Path | None = None,
    output: IO[bytes] | int | None = None,
) -> Child:
    """Starts `argv` in a session of its own, so that Ctrl-C reaches only us. It gets `death_signal` when we die.

    `env`: the whole environment. `output`: where both streams go, None for ours.
    """
    command = launch_command(argv, os.getpid(), death_signal, identity)

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

    return Child(name, _spawning_thread().submit(start).result(), stop_signal)


def launch_command(
    argv: Sequence[str | Path], parent: int, death_signal: signal.Signals, identity: Identity
) -> list[str]:
    """The launcher's command line for `argv`."""
    own = [sys.executable, "-I", "-S", _LAUNCHER, str(parent), str(int(death_signal)), identity, "--"]
    return own + [str(a) for a in argv]


def _spawning_thread() -> ThreadPoolExecutor:
    global _spawner
    with _spawner_lock:
        if _spawner is None:
            _spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="offing-spawn")
            os.register_at_fork(after_in_child=_forget_spawner)
        return _spawner


def _forget_spawner() -> None:
    """A forked child has no threads but its own; it makes a spawner afresh if it needs one."""
    global _spawner
    _spawner = None


def end_this_command() -> None:
    """End this process from any of its threads, as Ctrl-C does.

    What a shell starts in the background of a script ignores SIGINT. There SIGTERM ends it, without more ado.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    os.kill(os.getpid(), signal.SIGTERM if ignored else signal.SIGINT)


def wait_until(ready: Callable[[], bool], *, alive: Callable[[], bool], timeout_seconds: float) -> bool:
    """True as soon as `ready()`; False when `alive()` fails first or time runs out."""
    deadline = time.monotonic() + timeout_seconds
    while alive():
        if ready():
            return alive()
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return False


def processes_in(folder: Path, program: str) -> list[int]:
    """Pids of processes whose name holds `program` and whose working folder is `folder`: ours, left behind."""
    import psutil

    found: list[int] = []
    for process in psutil.process_iter(["name"]):
        try:
            if program in process.name() and Path(process.cwd()) == folder:
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue  # gone, or another user's: not ours either way
    return found


def stop_orphans(folder: Path, program: str, *, polite: signal.Signals, patience_seconds: float = 2.0) -> int:
    """Waits for processes left behind in `folder` to end, asking first, then by force. The number that were found."""
    left = found = processes_in(folder, program)
    for number, seconds in ((polite, patience_seconds), (signal.SIGKILL, _KILLED_SECONDS)):
        for pid in left:
            _send(pid, number)
        left = left and _left_after(seconds, folder, program)
    return len(found)


def _left_after(seconds: float, folder: Path, program: str) -> list[int]:
    """Processes that are still in `folder` after so long. Returns as soon as there are none."""
    deadline = time.monotonic() + seconds
    while (left := processes_in(folder, program)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # ended by itself meanwhile, which is what was wanted
