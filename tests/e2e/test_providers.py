"""A key that is piped in answers questions, and stands in no process list, no environment and no file."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import PATIENCE, Offing
from tests.model_provider import WireServer, able, serve_on_thread

pytestmark = pytest.mark.timeout(5 * PATIENCE)

KEY = "c4n4ry-key-of-a-person-0123456789"


@pytest.fixture(scope="module")
def provider() -> Iterator[WireServer]:
    """A provider on a thread of its own, for commands that the test waits for."""
    with serve_on_thread(able) as server:
        yield server


def pipe_key(home: Path, *words: str) -> tuple[int, str]:
    """Run `offing provider add … --key-stdin`, and look at all processes meanwhile."""
    environment = os.environ | {"OFFING_HOME": str(home), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "offing.cli", "provider", "add", *words, "--key-stdin"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(KEY)
        process.stdin.close()
        while process.poll() is None:
            assert find_key_in_processes() == []
            time.sleep(0.2)
        return process.returncode, process.stdout.read()


def find_key_in_processes() -> list[int]:
    """Processes whose arguments or environment have the key."""
    holders: list[int] = []
    for process in psutil.process_iter():
        try:
            text = f"{process.cmdline()} {process.environ()}"
        except psutil.Error:
            continue
        if KEY in text:
            holders.append(process.pid)
    return holders


def test_a_provider_is_added_tested_listed_and_removed(offing: Offing, home: Path, provider: WireServer) -> None:
    code, output = pipe_key(home, "work", "--provider", "openai", "--api-base", provider.url)
    assert code == 0, output
    tested = offing("provider", "test", "work", "gpt-4o-mini")
    assert tested.code == 0, tested.err
    assert "tool call" in tested.out
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
    listed = offing("provider", "list")
    assert "work/gpt-4o-mini" in listed.out
    unlisted = offing("provider", "models", "work")
    assert (unlisted.code != 0, "did not answer with a list of models" in unlisted.err) == (True, True), unlisted.err
    assert KEY not in output + tested.out + tested.err + listed.out

    answered = offing("ask", "Why is the sea salt?", "--engine", "all=litellm:work/gpt-4o-mini", "--max-turns", "1")
    assert KEY not in answered.out + answered.err
    assert len(provider.requests) > 4
    assert {one.headers["authorization"] for one in provider.requests} == {f"Bearer {KEY}"}
    for file in home.rglob("*"):
        if file.is_file() and not file.is_socket():
            assert KEY.encode() not in file.read_bytes(), file

    assert offing("provider", "rotate-key").code == 0
    assert offing("provider", "test", "work", "gpt-4o-mini", "--json").code == 0
    assert offing("provider", "remove", "work").code == 0
    assert "work" not in offing("provider", "list").out


def test_a_preset_is_set_and_used_and_its_limits_yield_to_options(offing: Offing, documents: Path) -> None:
    stored = offing("preset", "set", "mine", "--engine", "all=extractive", "--max-turns", "2")
    assert stored.code == 0, stored.err
    assert "mine" in offing("preset", "list").out
    done = offing("ask", "Who built the third Eddystone tower?", "--docs", str(documents), "--preset", "mine", "--json")
    assert done.code == 0, done.err
    unknown = offing("ask", "Why is that?", "--preset", "no-such")
    assert (unknown.code, "preset: there is no preset 'no-such'" in unknown.err) == (2, True)
    assert offing("preset", "default", "mine").code == 0
    assert "mine  (default)" in offing("preset", "list").out
    assert offing("preset", "default", "no-such").code == 2
    assert offing("preset", "default").out.strip() == "mine"
    assert offing("preset", "remove", "mine").code == 0
    assert "There is none" in offing("preset", "default").out


def test_a_key_is_no_argument_and_needs_a_terminal_or_a_pipe(offing: Offing) -> None:
    rejected = offing("provider", "add", "openai", "--key", KEY)
    assert rejected.code != 0
    assert "--key-stdin" in offing("provider", "add", "openai").err
