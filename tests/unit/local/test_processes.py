"""Processes that an earlier command left behind."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from offing.local.processes import list_processes, stop_orphans

DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"


@pytest.fixture
def left_behind(tmp_path: Path) -> Iterator[psutil.Process]:
    """A process in a folder that hears no polite request."""
    with subprocess.Popen([sys.executable, "-c", DEAF], cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield psutil.Process(process.pid)
        process.kill()


def test_who_stops_what_was_left_behind_continues_when_it_has_ended(
    left_behind: psutil.Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process that holds much memory ends some time after the signal."""
    kill, program = os.kill, left_behind.name()

    def slow(pid: int, number: int) -> None:
        threading.Timer(0.5 if number == signal.SIGKILL else 0.0, kill, (pid, number)).start()

    assert list_processes(tmp_path, program) == [left_behind.pid]
    with monkeypatch.context() as patched:
        patched.setattr(os, "kill", slow)
        assert stop_orphans(tmp_path, program, stop_signal=signal.SIGTERM, timeout_seconds=0.1) == 1
        assert list_processes(tmp_path, program) == []
