"""Commands that share a home share its policy engine: one runs it, and all of their workers ask it."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import psutil
import psycopg
import pytest

from offing.local.shared_engine import is_serving
from offing_world.compact_notation import VOCABULARY
from tests.engine.engine_server import tiny_policy
from tests.local.processes import eventually, holding
from tests.local.test_up import end, start
from tests.processes import alive

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SECONDS = 150.0
"""For a stack with an engine to come up on a busy machine."""

STACK_PROCESS = Path(__file__).with_name("stack_process.py")
SHORT = {"OFFING_WORKER_PROCESSES": "1", "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "NO_COLOR": "1"}


@dataclass(slots=True)
class Command:
    """A command of a home that is at work."""

    process: subprocess.Popen[str]
    home: Path
    stack_info: dict[str, Any] = field(default_factory=dict[str, Any])
    """Where its servers and its engine are, once they answer."""
    error_lines: list[str] = field(default_factory=list[str])

    @property
    def socket(self) -> Path:
        return Path(self.stack_info["engine_url"].removeprefix("unix://"))

    def ready(self) -> "Command":
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "\n".join(self.error_lines)
        self.stack_info = json.loads(line)
        return self

    def finish(self) -> None:
        """Asks it to end."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@contextmanager
def command(home: Path) -> Generator[Command]:
    env = {**os.environ, **SHORT, "OFFING_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, str(STACK_PROCESS), str(home)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(argv, text=True, env=env, start_new_session=True, **pipes) as process:
        holding = Command(process, home)
        reader = Thread(target=_read, args=(holding,), daemon=True)
        reader.start()
        try:
            yield holding
        finally:
            family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            process.kill()
            process.wait()
            psutil.wait_procs(family, timeout=20)
            reader.join()


def _read(holding: Command) -> None:
    assert holding.process.stderr is not None
    for line in holding.process.stderr:
        holding.error_lines.append(line.rstrip())


Start = Callable[[], Command]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a version to serve."""
    (tmp_path / "home" / "policies").mkdir(parents=True, mode=0o700)
    tiny_policy(tmp_path / "home" / "policies" / "other@1", VOCABULARY)
    return tmp_path / "home"


@pytest.fixture
def begin(home: Path) -> Generator[Start]:
    with ExitStack() as stack:

        def entered(of: AbstractContextManager[Command]) -> Command:
            return stack.enter_context(of)

        yield lambda: entered(command(home))


def engines(home: Path) -> list[psutil.Process]:
    """Engines that serve this home's folder."""
    results: list[psutil.Process] = []
    for process in psutil.process_iter(["cmdline"]):
        line: list[str] = process.info["cmdline"] or []
        try:
            ours = "engine" in line and "serve" in line and str(home) in process.environ().get("OFFING_POLICY_DIR", "")
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if ours and alive(process):
            results.append(process)
    return results


def test_versions_that_one_command_loads_answer_the_runs_that_the_others_workers_take(
    home: Path, tmp_path: Path, begin: Start
) -> None:
    first = begin().ready()
    second = begin().ready()
    assert first.stack_info["engine_url"] == second.stack_info["engine_url"]
    assert len(engines(home)) == 1
    later = tiny_policy(tmp_path / "later", VOCABULARY, seed=1)
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(first.socket)), timeout=SECONDS) as client:
        client.post("http://engine/v1/load_policy", json={"name": "planner@1", "path": str(later)}).raise_for_status()
    assert offing(home, "policy", "add", "planner", str(later)).returncode == 0
    collected = offing(
        home, "rollouts", "collect", "--tasks", "world:train-1@50", "--max-tasks", "12", "--group-size", "1",
        "--max-turns", "2",
        "--engine", "all=rules:world", "--policy", "planner+compact=planner@1", "--wait",
    )  # fmt: skip
    ended = Counter(status for (status,) in query_rows(first, "select stop_reason from app.run where kind = 'rollout'"))
    assert ended.total() == 12, collected.stderr
    assert "provider_down" not in ended, (ended, failures(first))


def failures(command: Command) -> list[tuple[Any, ...]]:
    return query_rows(command, "select payload from app.step where kind = 'failure' limit 3")


def offing(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **SHORT, "OFFING_HOME": str(home)}
    argv = [sys.executable, "-m", "offing.cli", *words]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=SECONDS * 2, check=False)


def query_rows(command: Command, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(command.stack_info["owner_url"]) as connection:
        return connection.execute(statement.encode()).fetchall()


def test_who_runs_the_engine_waits_for_the_others_and_another_takes_it_over_from_one_that_is_killed(
    home: Path, begin: Start
) -> None:
    with holding(home):
        owner = begin().ready()
        others = [begin().ready(), begin().ready()]
        assert len(engines(home)) == 1
        owner.finish()
        assert eventually(lambda: any("uses the policy engine; waiting" in line for line in owner.error_lines), SECONDS)
        assert is_serving(owner.socket)
        before = engines(home)[0].pid
        owner.process.kill()
        assert eventually(
            lambda: [e.pid for e in engines(home)] not in ([], [before]) and is_serving(owner.socket), SECONDS
        )
        assert len(engines(home)) == 1
        for other in others:
            other.finish()
        for other in others:
            assert other.process.wait(SECONDS) == 0, "\n".join(other.error_lines)
        assert eventually(lambda: not engines(home), 30)


def test_a_stack_that_began_without_policies_serves_those_that_come_later(tmp_path: Path) -> None:
    up = start(tmp_path, **SHORT)
    try:
        up.link()
        policies = up.home / "policies"
        assert engines(up.home) == []
        tiny_policy(policies / ".draft", VOCABULARY)
        (policies / ".draft").rename(policies / "planner@1")
        assert eventually(lambda: any("starting engine" in line for line in up.lines), SECONDS)
        with command(up.home) as loop:
            loop.ready()
            assert is_serving(loop.socket)
            assert len(engines(up.home)) == 1
            loop.finish()
            assert loop.process.wait(SECONDS) == 0, "\n".join(loop.error_lines)
        assert len(engines(up.home)) == 1
    finally:
        end(up)
    assert eventually(lambda: not engines(up.home), 30)
