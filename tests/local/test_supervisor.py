"""What the supervisor does with programs that end, hang, or refuse to start."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import offing
from offing.core.errors import Unavailable
from offing.local.programs import ManagedProcess
from offing.local.stack import watch_or_interrupt
from offing.local.supervisor import Supervisor
from offing.process_name import render_process_name
from tests.local.processes import eventually

WRITE_READY_FILE = "import os, sys, time; open(os.environ['OFFING_READY_FILE'], 'w').write(str(os.getpid())); "


def a_process(folder: Path, code: str, *, name: str = "worker", grace: float = 5.0) -> ManagedProcess:
    return ManagedProcess(
        name=name,
        argv=(sys.executable, "-I", "-S", "-c", code),
        env=dict(os.environ),
        ready_file=folder / f"{name}.ready",
        log=folder / f"{name}.log",
        grace_seconds=grace,
    )


@contextmanager
def watching(supervisor: Supervisor) -> Generator[None]:
    received = threading.Event()
    watch = threading.Thread(target=supervisor.watch, args=(received,))
    watch.start()
    try:
        yield
    finally:
        received.set()
        watch.join()


def is_ready(folder: Path, supervisor: Supervisor, name: str = "worker") -> bool:
    """Whether the child that runs now has said so."""
    ready = folder / f"{name}.ready"
    return ready.exists() and ready.read_text() == str(supervisor.get_pid(name))


def in_service(supervisor: Supervisor, name: str = "worker") -> bool:
    """Whether the supervisor has seen that it is ready."""
    return supervisor._running[name].ready_since is not None  # pyright: ignore[reportPrivateUsage]


def test_a_program_is_ready_when_it_says_so_itself(tmp_path: Path) -> None:
    supervisor = Supervisor()
    supervisor.start([a_process(tmp_path, WRITE_READY_FILE + "time.sleep(60)")])
    assert (tmp_path / "worker.ready").read_text() == str(supervisor.get_pid("worker"))
    supervisor.stop()


def test_a_program_that_ends_at_its_start_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    supervisor = Supervisor()
    with pytest.raises(Unavailable, match="no such table"):
        supervisor.start([a_process(tmp_path, "import sys; sys.exit('no such table')")])
    supervisor.stop()


def test_a_killed_program_is_started_again(tmp_path: Path) -> None:
    messages: list[str] = []
    supervisor = Supervisor(messages.append)
    supervisor.start([a_process(tmp_path, WRITE_READY_FILE + "time.sleep(60)")])
    first = supervisor.get_pid("worker")
    received = threading.Event()
    watch = threading.Thread(target=supervisor.watch, args=(received,))
    watch.start()
    psutil.Process(first).kill()
    assert eventually(lambda: supervisor.get_pid("worker") != first)
    received.set()
    watch.join()
    supervisor.stop()
    assert "worker ended (signal 9); restarting it" in messages


def test_a_program_that_ends_again_and_again_is_given_up(tmp_path: Path) -> None:
    messages: list[str] = []
    clock = iter(range(0, 10_000, 50))  # a busy machine: each start and each end take most of a minute
    supervisor = Supervisor(messages.append, clock=lambda: float(next(clock)), second_delay_seconds=0.01)
    supervisor.start_without_waiting([a_process(tmp_path, WRITE_READY_FILE + "time.sleep(0.02)")])
    assert supervisor.watch(threading.Event()) is False
    assert "giving up" in messages[-1]
    supervisor.stop()


def test_a_program_that_was_given_up_is_not_started_again_by_who_saw_its_end_a_moment_before(tmp_path: Path) -> None:
    messages: list[str] = []
    program = a_process(tmp_path, WRITE_READY_FILE + "sys.exit(3)")
    supervisor = Supervisor(messages.append, second_delay_seconds=0.01)
    supervisor.start_without_waiting([program])
    assert supervisor.watch(threading.Event()) is False
    running, before = supervisor._running["worker"], len(messages)  # pyright: ignore[reportPrivateUsage]
    running.exit_count = 0
    supervisor._restart_in_thread(running, threading.Event())  # pyright: ignore[reportPrivateUsage]
    supervisor.stop()
    assert messages[before:] == []


def test_a_program_that_cannot_be_started_again_is_given_up_and_it_is_said_why(tmp_path: Path) -> None:
    """Whatever the reason, and on whichever thread the watch is: a command would else wait for the program forever."""
    messages: list[str] = []
    logs = tmp_path / "logs"
    logs.mkdir()
    supervisor = Supervisor(messages.append)
    program = replace(a_process(tmp_path, WRITE_READY_FILE + "time.sleep(60)"), log=logs / "worker.log")
    supervisor.start([program])
    (logs / "worker.log").unlink()
    logs.rmdir()
    psutil.Process(supervisor.get_pid("worker")).kill()
    assert supervisor.watch(threading.Event()) is False
    assert "worker cannot be restarted: " in messages[-1]
    supervisor.stop()


def test_after_any_error_while_the_end_of_a_program_is_handled_the_others_are_stopped(tmp_path: Path) -> None:
    def fails(_name: str) -> None:
        raise RuntimeError("no database")

    supervisor = Supervisor()
    other = a_process(tmp_path, WRITE_READY_FILE + "time.sleep(60)", name="other")
    supervisor.start([other, replace(a_process(tmp_path, WRITE_READY_FILE + "time.sleep(60)"), on_exit=fails)])
    pids = [supervisor.get_pid("other"), supervisor.get_pid("worker")]
    psutil.Process(pids[1]).kill()
    supervisor.stop()
    assert not any(psutil.pid_exists(pid) for pid in pids)


def interrupted_within(seconds: float, result: Callable[[], str]) -> None:
    """Wait for an interruption. `found`: what there is to see when none comes."""
    time.sleep(seconds)
    pytest.fail(f"nothing ended the command: {result()}")


@pytest.fixture
def interruptible() -> Generator[None]:
    """SIGINT as in a terminal; in the background of a script it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("ignored", "ends"), [(False, signal.SIGINT), (True, signal.SIGTERM)])
def test_a_command_is_ended_in_a_terminal_and_in_the_background_of_a_script(
    ignored: bool, ends: signal.Signals
) -> None:
    how = "SIG_IGN" if ignored else "SIG_DFL"
    code = f"import signal, time; signal.signal(2, signal.{how}); "
    code += "from offing.local.processes import interrupt_command; interrupt_command(); time.sleep(60)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=50).returncode == -ends


@pytest.mark.usefixtures("interruptible")
def test_a_command_ends_when_a_program_that_it_needs_is_given_up(tmp_path: Path) -> None:
    messages: list[str] = []
    supervisor = Supervisor(messages.append, second_delay_seconds=0.01)
    supervisor.start_without_waiting([a_process(tmp_path, WRITE_READY_FILE + "sys.exit(3)")])
    watch = threading.Thread(target=watch_or_interrupt, args=(supervisor, threading.Event()))
    watch.start()
    with pytest.raises(KeyboardInterrupt):
        interrupted_within(60, lambda: f"{messages}, watching: {watch.is_alive()}, {signal.getsignal(signal.SIGINT)}")
    watch.join()
    supervisor.stop()
    assert messages[-1].endswith("6 times in a row; giving up")


def test_a_program_that_served_for_a_minute_is_started_at_once_when_it_ends(tmp_path: Path) -> None:
    messages: list[str] = []
    clock = iter(range(0, 10_000, 70))
    supervisor = Supervisor(messages.append, clock=lambda: float(next(clock)))
    supervisor.start([a_process(tmp_path, WRITE_READY_FILE + "time.sleep(60)")])
    with watching(supervisor):
        for _ in range(8):
            before = supervisor.get_pid("worker")
            psutil.Process(before).kill()
            assert eventually(lambda: supervisor.get_pid("worker") != before and in_service(supervisor))  # noqa: B023
    supervisor.stop()
    assert all(line.endswith("restarting it") for line in messages if "ended" in line)


def test_a_program_that_does_not_get_ready_again_keeps_no_other_waiting(tmp_path: Path) -> None:
    """A worker is killed and hangs in its next start; then another program ends."""
    again = tmp_path / "again"
    hangs = f"import os; again = os.path.exists({str(again)!r}); open({str(again)!r}, 'w').close();"
    hangs += "import time; again and time.sleep(600);" + WRITE_READY_FILE + "time.sleep(600)"
    supervisor = Supervisor()
    supervisor.start(
        [a_process(tmp_path, hangs), a_process(tmp_path, WRITE_READY_FILE + "time.sleep(600)", name="api")]
    )
    with watching(supervisor):
        worker, api = supervisor.get_pid("worker"), supervisor.get_pid("api")
        psutil.Process(worker).kill()
        assert eventually(lambda: supervisor.get_pid("worker") != worker)
        psutil.Process(api).kill()
        assert eventually(lambda: supervisor.get_pid("api") != api and is_ready(tmp_path, supervisor, "api"))
    supervisor.cancel_waits()
    supervisor.stop()


def test_a_program_is_started_again_when_the_servers_are_up(tmp_path: Path) -> None:
    """Both end at once, and the server takes its time."""
    up, seen = tmp_path / "up", tmp_path / "seen"
    slow = f"import os, time; os.path.exists({str(up)!r}) and (os.unlink({str(up)!r}), time.sleep(2)); "
    slow += f"open({str(up)!r}, 'w').close();" + WRITE_READY_FILE + "time.sleep(600)"
    looks = f"import os; open({str(seen)!r}, 'a').write(str(os.path.exists({str(up)!r})) + ' ');"
    looks += WRITE_READY_FILE + "time.sleep(600)"
    server = replace(a_process(tmp_path, slow, name="server"), is_server=True)
    supervisor = Supervisor()
    supervisor.start([server])
    supervisor.start([a_process(tmp_path, looks)])
    worker = supervisor.get_pid("worker")
    for name in ("worker", "server"):
        psutil.Process(supervisor.get_pid(name)).kill()
    with watching(supervisor):
        assert eventually(lambda: supervisor.get_pid("worker") != worker and is_ready(tmp_path, supervisor))
    supervisor.stop()
    assert seen.read_text() == "True True "


def test_a_caller_is_notified_of_a_child_that_was_killed_and_of_none_that_stopped(tmp_path: Path) -> None:
    messages: list[str] = []
    nice = "import signal, sys; signal.signal(15, lambda *_: sys.exit());" + WRITE_READY_FILE + "time.sleep(600)"
    process = replace(a_process(tmp_path, nice), on_exit=messages.append)
    supervisor = Supervisor()
    supervisor.start([process])
    killed = supervisor.get_pid("worker")
    with watching(supervisor):
        psutil.Process(killed).kill()
        assert eventually(lambda: supervisor.get_pid("worker") != killed and is_ready(tmp_path, supervisor))
    supervisor.stop()
    assert messages == [render_process_name(killed, process.nonce)]


def test_a_child_gets_the_name_that_its_supervisor_uses(tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); from offing import process_name as it; "
    code += "print(it.get_process_name());"
    plain = a_process(tmp_path, "")
    backend = str(Path(offing.__file__).parents[1])
    process = replace(plain, argv=(sys.executable, "-c", code + WRITE_READY_FILE + "time.sleep(600)", backend))
    supervisor = Supervisor()
    supervisor.start([process])
    name = render_process_name(supervisor.get_pid("worker"), process.nonce)
    supervisor.stop()
    assert (tmp_path / "worker.log").read_text().split() == [name]


def test_programs_are_stopped_last_started_first(tmp_path: Path) -> None:
    messages: list[str] = []
    supervisor = Supervisor(messages.append)
    supervisor.start([a_process(tmp_path, WRITE_READY_FILE + "time.sleep(60)", name=n) for n in ("first", "second")])
    supervisor.stop()
    assert messages[-2:] == ["stopping second", "stopping first"]


def test_a_program_has_its_grace_to_finish_what_it_began(tmp_path: Path) -> None:
    drains = "import signal; signal.signal(15, lambda *_: (time.sleep(0.5), print('drained', flush=True), sys.exit()));"
    supervisor = Supervisor()
    supervisor.start([a_process(tmp_path, "import time, sys;" + drains + WRITE_READY_FILE + "time.sleep(60)")])
    supervisor.stop()
    assert (tmp_path / "worker.log").read_text() == "drained\n"


def test_a_program_that_does_not_stop_is_killed_after_its_grace(tmp_path: Path) -> None:
    messages: list[str] = []
    supervisor = Supervisor(messages.append)
    deaf = "import signal; signal.signal(15, signal.SIG_IGN);" + WRITE_READY_FILE + "time.sleep(60)"
    supervisor.start([a_process(tmp_path, deaf, grace=0.3)])
    pid = supervisor.get_pid("worker")
    supervisor.stop()
    assert not psutil.pid_exists(pid)
    assert messages[-1] == "worker did not stop within 0.3 s and was killed"


def test_a_request_to_stop_ends_a_start_that_hangs(tmp_path: Path) -> None:
    supervisor = Supervisor()
    threading.Timer(0.3, supervisor.cancel_waits).start()
    before = time.monotonic()
    with pytest.raises(Unavailable):
        supervisor.start([a_process(tmp_path, "import time; time.sleep(60)")])
    assert time.monotonic() - before < 30
    supervisor.stop()


def test_the_death_of_the_thread_that_asked_for_a_program_does_not_kill_it(tmp_path: Path) -> None:
    supervisor = Supervisor()
    programs = [a_process(tmp_path, WRITE_READY_FILE + "time.sleep(60)")]
    starter = threading.Thread(target=supervisor.start, args=(programs,))
    starter.start()
    starter.join()
    time.sleep(0.2)
    assert psutil.Process(supervisor.get_pid("worker")).status() != psutil.STATUS_ZOMBIE
    supervisor.stop()


def test_lines_of_a_program_are_passed_on_with_its_name(tmp_path: Path) -> None:
    lines: list[tuple[str, str]] = []
    process = a_process(tmp_path, WRITE_READY_FILE + "print('hello', flush=True); time.sleep(60)")
    echoing = ManagedProcess(
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
