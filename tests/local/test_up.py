"""`offing up` with everything it starts, as processes of their own."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import httpx
import psutil
import psycopg
import pytest

from offing.local.data_directory import locate_data_directory, read_stack_info
from tests.engine.engine_server import tiny_policy
from tests.local.processes import eventually
from tests.processes import alive

READY_SECONDS = 240.0

pytestmark = pytest.mark.timeout(5 * READY_SECONDS)

CANARIES = {
    name: f"canary-{name}" for name in ("ANTHROPIC_API_KEY", "TAVILY_API_KEY", "WIKI_TOKEN", "OFFING_OTHER_KEY")
}
"""Secrets that only what calls providers, search engines and MCP servers may have in its environment."""
LOGIN_LINK = re.compile(r"http://127\.0\.0\.1:\d+/login\?token=\S+")


@dataclass(slots=True)
class Up:
    """One running `offing up`, and what it says."""

    process: subprocess.Popen[str]
    home: Path
    lines: list[str] = field(default_factory=list[str])

    def link(self) -> str:
        """The login link that it printed, once it has."""
        assert eventually(lambda: self._link() is not None or self.process.poll() is not None, READY_SECONDS)
        result = self._link()
        assert result is not None, "\n".join(self.lines)
        return result

    def _link(self) -> str | None:
        return next((m.group() for m in map(LOGIN_LINK.search, list(self.lines)) if m), None)

    def family(self) -> list[psutil.Process]:
        """Every process below it."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, module: str) -> psutil.Process:
        return next(p for p in self.family() if runs(p, module) and p.ppid() == self.process.pid)


def runs(process: psutil.Process, word: str) -> bool:
    """Whether a process lives and has this word in its command line."""
    try:
        return word in process.cmdline()
    except psutil.NoSuchProcess:  # a zombie is none either
        return False


def start(home: Path, **environment: str) -> Up:
    process = subprocess.Popen(
        [sys.executable, "-m", "offing.cli", "up"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=home,
        env={
            **os.environ,
            "OFFING_HOME": str(home / "data"),
            "OFFING_PORT": "0",
            "OFFING_WORKER_PROCESSES": "1",
            **environment,
        },
    )
    up = Up(process, home / "data")
    Thread(target=_read, args=(up,), daemon=True).start()
    return up


def _read(up: Up) -> None:
    assert up.process.stdout is not None
    with up.process.stdout as lines:
        for line in lines:
            up.lines.append(line.rstrip())


def have_ended(family: list[psutil.Process]) -> bool:
    return not any(map(alive, family))


def programs(up: Up) -> tuple[str, ...]:
    note = read_stack_info(locate_data_directory(up.home))
    return tuple(note.programs) if note else ()


def end(up: Up) -> None:
    family = up.family() if up.process.poll() is None else []
    up.process.kill()
    up.process.wait()
    assert eventually(lambda: have_ended(family))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = start(tmp_path_factory.mktemp("up"))
    up.link()
    yield up
    end(up)


def test_the_link_signs_a_browser_in_once(running: Up) -> None:
    link = running.link()
    with httpx.Client(timeout=30) as browser:
        assert browser.get(link).status_code in (200, 303)
        assert browser.cookies
    with httpx.Client(timeout=30) as another:
        another.get(link)
        assert not another.cookies


def test_it_says_what_it_is_doing(running: Up) -> None:
    running.link()
    lines = [line for line in running.lines if " | " not in line]
    for step in ("starting valkey", "starting postgres", "applying migrations", "starting api", "starting worker"):
        assert step in lines


def test_a_second_up_says_where_it_runs_and_gives_a_fresh_link(running: Up) -> None:
    first = running.link()
    second = start(running.home.parent)
    assert second.link() != first
    assert second.process.wait(30) == 0
    assert any(f"is running (pid {running.process.pid})" in line for line in second.lines)
    assert running.process.poll() is None


def test_the_children_never_see_the_owners_address(running: Up) -> None:
    running.link()
    for module in ("offing.api", "offing_workers"):
        environment = running.child(module).environ()
        assert "offing_app@" in environment["OFFING_APP_DATABASE_URL"]
        assert "offing_owner" not in " ".join(environment.values())


def test_a_killed_worker_is_started_again(running: Up) -> None:
    running.link()
    killed = running.child("offing_workers")
    killed.kill()
    assert eventually(lambda: "worker ended (signal 9); restarting it" in running.lines)
    assert eventually(lambda: any(runs(p, "offing_workers") for p in running.family()))


def test_a_killed_postgres_is_started_again_and_the_page_recovers(running: Up) -> None:
    health = running.link().partition("/login")[0] + "/api/v1/health/ready"
    postmaster = int((running.home / "pg" / "postmaster.pid").read_text().splitlines()[0])
    os.kill(postmaster, signal.SIGKILL)
    assert eventually(lambda: "postgres ended (signal 9); restarting it" in running.lines)
    assert eventually(lambda: healthy(health), READY_SECONDS)


def healthy(url: str) -> bool:
    try:
        return httpx.get(url, timeout=30).status_code == 200
    except httpx.HTTPError:  # not yet
        return False


def test_ctrl_c_stops_everything_and_leaves_nothing(tmp_path: Path) -> None:
    up = start(tmp_path)
    up.link()
    family, run = up.family(), locate_data_directory(up.home).socket_dir
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(40) == 0
    assert have_ended(family)
    assert not run.exists()
    assert read_stack_info(locate_data_directory(up.home)) is None
    lines = [line for line in up.lines if line.startswith("stopping") and line != "stopping trainer"]
    assert lines == ["stopping worker", "stopping api", "stopping postgres", "stopping valkey"]


def test_more_workers_start_once_the_page_is_there_and_stop_with_it(tmp_path: Path) -> None:
    up = start(tmp_path, OFFING_WORKER_PROCESSES="2")
    up.link()
    assert eventually(lambda: "worker-2" in programs(up), READY_SECONDS)
    assert up.lines.index("starting worker-2") > up.lines.index("Press Ctrl-C to stop it.")
    family = up.family()
    assert sum(runs(p, "offing_workers") for p in family) == 2
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(40) == 0
    assert have_ended(family)


def test_ctrl_c_during_the_start_stops_what_has_started(tmp_path: Path) -> None:
    up = start(tmp_path)
    assert eventually(lambda: "starting worker" in up.lines, READY_SECONDS)
    family = up.family()
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(40) == 0
    assert have_ended(family)


def test_after_the_death_of_everything_it_starts_again_with_nothing_lost(tmp_path: Path) -> None:
    first = start(tmp_path)
    first.link()
    host = locate_data_directory(first.home).postgres_sockets
    with psycopg.connect(host=str(host), user="offing_owner", dbname="offing") as connection:
        connection.execute("create table kept as select generate_series(1, 500) as n")
    everything = [*first.family(), psutil.Process(first.process.pid)]
    for process in everything:
        with suppress(psutil.NoSuchProcess):  # workers of Postgres come and go
            process.kill()
    first.process.wait()
    second = start(tmp_path)
    second.link()
    with psycopg.connect(host=str(host), user="offing_owner", dbname="offing") as connection:
        assert connection.execute("select count(*) from kept").fetchone() == (500,)
    end(second)


def test_a_taken_port_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        up = start(tmp_path, OFFING_PORT=str(taken.getsockname()[1]))
        assert up.process.wait(30) != 0
    assert eventually(lambda: any("OFFING_PORT" in line for line in up.lines))
    assert not any("Traceback" in line or line.startswith("starting") for line in up.lines)


def test_a_folder_of_policies_is_served_to_the_worker_and_a_killed_engine_comes_back(tmp_path: Path) -> None:
    policies = tmp_path / "policies"
    tiny_policy(policies / "planner@1", ["w1"])
    up = start(tmp_path, OFFING_POLICY_DIR=str(policies), **CANARIES)
    up.link()
    try:
        assert eventually(lambda: any(runs(p, "trainer") for p in up.family()), READY_SECONDS)
        for process in up.family():
            with suppress(psutil.NoSuchProcess):  # workers of Postgres come and go
                calls_out = {"offing.api", "offing_workers"} & set(process.cmdline())
                assert set(CANARIES) & set(process.environ()) == (set(CANARIES) if calls_out else set()), process
        for module in ("offing.api", "offing_workers"):
            url = up.child(module).environ()["OFFING_ENGINE_URL"]
            assert served(url) == ["planner@1"]
        next(p for p in up.family() if runs(p, "serve")).kill()
        assert eventually(lambda: "engine ended (signal 9); restarting it" in up.lines)
        assert eventually(lambda: served(url) == ["planner@1"], READY_SECONDS)
    finally:
        end(up)


def served(url: str) -> list[str] | None:
    """Versions of the engine at a unix socket; None when nobody answers there."""
    path = url.removeprefix("unix://")
    with socket.socket(socket.AF_UNIX) as probe:  # httpx forgets to close a socket that is rejected
        if probe.connect_ex(path):
            return None
    with httpx.Client(transport=httpx.HTTPTransport(uds=path), timeout=30) as client:
        return list(client.get("http://engine/health").json()["models"])
