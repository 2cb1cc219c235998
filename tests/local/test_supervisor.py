"""What the supervisor does with programs that end, hang, or refuse to start."""

import os
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from offing.core.errors import Unavailable
from offing.local.programs import Process
from offing.local.stack import watch_or_end
from offing.local.supervisor import Supervisor
from tests.local.processes import eventually

TELL_READY = "import os, sys, time; open(os.environ['OFFING_READY_FILE'], 'w').write(str(os.getpid())); "


def a_process(folder: Path, code: str, *, name: str = "worker", grace: float = 5.0) -> Process:
    return Process(
        name=name,
        argv=(sys.executable, "-I", "-S", "-c", code),
        env=dict(os.environ),
        ready_file=folder / f"{name}.ready",
        log=folder / f"{name}.log",
        grace_seconds=grace,
    )


def test_a_program_is_ready_when_it_says_so_itself(tmp_path: Path) -> None:
    supervisor = Supervisor()
    supervisor.start([a_process(tmp_path, TELL_READY + "time.sleep(60)")])
    assert (tmp_path / "worker.ready").read_text() == str(supervisor.pid("worker"))
    supervisor.stop()


def test_a_program_that_ends_at_its_start_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    supervisor = Supervisor()
    with pytest.raises(Unavailable, match="no such table"):
        supervisor.start([a_process(tmp_path, "import sys; sys.exit('no such table')")])
    supervisor.stop()


def test_a_killed_program_is_started_again(tmp_path: Path) -> None:
    said: list[str] = []
    supervisor = Supervisor(said.append)
    supervisor.start([a_process(tmp_path, TELL_READY + "time.sleep(60)")])
    first = supervisor.pid("worker")
    asked = threading.Event()
    watch = threading.Thread(target=supervisor.watch, args=(asked,))
    watch.start()
    psutil.Process(first).kill()
    assert eventually(lambda: supervisor.pid("worker") != first)
    asked.set()
    watch.join()
    supervisor.stop()
    assert "worker ended (signal 9); starting it again" in said


def test_a_program_that_ends_again_and_again_is_given_up(tmp_path: Path) -> None:
    said: list[str] = []
    clock = iter(range(0, 1000, 8))  # eight seconds between ends: within the minute, and no real waiting
    supervisor = Supervisor(said.append, clock=lambda: float(next(clock)), second_delay=0.01)
    supervisor.start([a_process(tmp_path, TELL_READY + "time.sleep(0.02)")])
    assert supervisor.watch(threading.Event()) is False
    assert "giving up" in said[-1]
    supervisor.stop()


def test_a_command_ends_when_a_program_that_it_needs_is_given_up(tmp_path: Path) -> None:
    said: list[str] = []
    supervisor = Supervisor(said.append, second_delay=0.01)
    supervisor.begin([a_process(tmp_path, TELL_READY + "sys.exit(3)")])
    watch = threading.Thread(target=watch_or_end, args=(supervisor, threading.Event()))
    watch.start()
    with pytest.raises(KeyboardInterrupt):
        time.sleep(60)
    watch.join()
    supervisor.stop()
    assert said[-1].endswith("for the 6th time within a minute; giving up")


def test_programs_are_stopped_last_started_first(tmp_path: Path) -> None:
    said: list[str] = []
    supervisor = Supervisor(said.append)
    supervisor.start([a_process(tmp_path, TELL_READY + "time.sleep(60)", name=n) for n in ("first", "second")])
    supervisor.stop()
    assert said[-2:] == ["stopping second", "stopping first"]


def test_a_program_has_its_grace_to_finish_what_it_began(tmp_path: Path) -> None:
    drains = "import signal; signal.signal(15, lambda *_: (time.sleep(0.5), print('drained', flush=True), sys.exit()));"
    supervisor = Supervisor()
    supervisor.start([a_process(tmp_path, "import time, sys;" + drains + TELL_READY + "time.sleep(60)")])
    supervisor.stop()
    assert (tmp_path / "worker.log").read_text() == "drained\n"


def test_a_program_that_does_not_stop_is_killed_after_its_grace(tmp_path: Path) -> None:
    said: list[str] = []
    supervisor = Supervisor(said.append)
    deaf = "import signal; signal.signal(15, signal.SIG_IGN);" + TELL_READY + "time.sleep(60)"
    supervisor.start([a_process(tmp_path, deaf, grace=0.3)])
    pid = supervisor.pid("worker")
    supervisor.stop()
    assert not psutil.pid_exists(pid)
    assert said[-1] == "worker did not stop within 0.3 s and was killed"


def test_a_request_to_stop_ends_a_start_that_hangs(tmp_path: Path) -> None:
    supervisor = Supervisor()
    threading.Timer(0.3, supervisor.halt).start()
    before = time.monotonic()
    with pytest.raises(Unavailable):
        supervisor.start([a_process(tmp_path, "import time; time.sleep(60)")])
    assert time.monotonic() - before < 3
    supervisor.stop()


def test_the_death_of_the_thread_that_asked_for_a_program_does_not_kill_it(tmp_path: Path) -> None:
    supervisor = Supervisor()
    programs = [a_process(tmp_path, TELL_READY + "time.sleep(60)")]
    starter = threading.Thread(target=supervisor.start, args=(programs,))
    starter.start()
    starter.join()
    time.sleep(0.2)
    assert psutil.Process(supervisor.pid("worker")).status() != psutil.STATUS_ZOMBIE
    supervisor.stop()


def test_lines_of_a_program_are_passed_on_with_its_name(tmp_path: Path) -> None:
    lines: list[tuple[str, str]] = []
    process = a_process(tmp_path, TELL_READY + "print('hello', flush=True); time.sleep(60)")
    echoing = Process(
        name=process.name,
        argv=process.argv,
        env=process.env,
        ready_file=process.ready_file,
        log=process.log,
        echo=lambda name, line: lines.append((name, line)),
    )
    supervisor = Supervisor()
    supervisor.start([echoing])
    assert eventually(lambda: ("worker", "hello") in lines)
    supervisor.stop()
