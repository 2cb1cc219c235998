"""Logs that are put aside while a program writes to them."""

import errno
import subprocess
import sys
import time
from pathlib import Path

import pytest

from offing.local import logs
from offing.local.data_directory import open_log
from offing.local.logs import rotate_log, rotate_logs

WRITER = """
import os, sys, time
for n in range(400):
    while n == 399 and os.fstat(1).st_size > 4000:
        time.sleep(0.005)  # what is written while the log is put aside may be lost; the last line is looked for
    print(f"line {n} " + "x" * 90, flush=True)
    time.sleep(0.005)
"""


def test_a_log_within_its_size_stays(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    assert not rotate_log(log, 10, 3)
    log.write_bytes(b"x" * 10)
    assert not rotate_log(log, 10, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["worker.log"]


def test_a_grown_log_is_put_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    for n in range(5):
        log.write_text(f"number {n}")
        assert rotate_log(log, 5, 2)
        assert log.read_text() == ""
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "worker.log": "",
        "worker.log.1": "number 4",
        "worker.log.2": "number 3",
    }


def test_a_full_disk_costs_none_of_the_logs_that_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "worker.log"
    for n in range(3):
        log.write_text(f"number {n}")
        assert rotate_log(log, 5, 3)
    log.write_text("number 3")

    def full(source: Path, target: Path) -> None:
        target.write_text("numb")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copyfile", full)
    for _ in range(3):
        with pytest.raises(OSError, match="No space left"):
            rotate_log(log, 5, 3)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "worker.log": "number 3",
        "worker.log.1": "number 2",
        "worker.log.2": "number 1",
        "worker.log.3": "number 0",
    }


def test_a_program_that_continues_writing_fills_no_more_than_its_logs_may_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "POLL_SECONDS", 0.01)
    log = tmp_path / "worker.log"
    with rotate_logs(tmp_path, 4000, 2), open_log(log) as output:
        child = subprocess.Popen([sys.executable, "-c", WRITER], stdout=output)
        assert child.wait(60) == 0
        deadline = time.monotonic() + 30
        while log.stat().st_size > 4000:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert {path.name for path in tmp_path.iterdir()} == {"worker.log", "worker.log.1", "worker.log.2"}
    stored = "".join((tmp_path / name).read_text() for name in ("worker.log.2", "worker.log.1", "worker.log"))
    numbers = [int(line.split()[1]) for line in stored.splitlines() if line.startswith("line ")]
    assert numbers[-1] == 399
    assert numbers == sorted(numbers)
    assert "\0" not in stored  # it continues at the beginning, not at where it was
