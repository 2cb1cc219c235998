"""Every recorded step is shown once and in order, whatever was closed or restarted while the run went on."""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.e2e.conftest import PATIENCE, Offing
from tests.e2e.test_web_ui import CHROMIUM, ROOT, browser_is_here

pytestmark = pytest.mark.timeout(3 * PATIENCE)


def test_steps_of_a_run_without_a_tab_and_with_one_are_shown_once_while_api_and_valkey_are_restarted(
    offing: Offing, documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser_is_here()
    home = tmp_path / "home"
    monkeypatch.setenv("OFFING_PORT", "0")
    try:
        started = offing("up", "--detach", home=home)
        link = re.search(r"http://\S+/login\?token=\S+", started.out + started.err)
        assert link, started.err
        base = link.group(0).split("/login")[0]
        with httpx.Client(base_url=base, timeout=60) as http:
            sign_in(http, offing("login", home=home).out)
            upload(http, documents)
            runs = {name: submit(http, name) for name in ("open", "closed")}
            until(lambda: all(detail(http, run)["pending_input_requests"] for run in runs.values()))
            with browser(link.group(0), base, runs) as script:
                assert line_of(script) == "ready"
                timelines = while_restarting(http, home, runs, script)
            assert script.wait(PATIENCE) == 0
            for name, run in runs.items():
                assert timelines[name] == recorded(http, run), name
    finally:
        offing("down", home=home)


def while_restarting(http: httpx.Client, home: Path, runs: dict[str, str], script: "subprocess.Popen[str]") -> Any:
    """End both runs between two restarts of the API and of Valkey. Returns what the tabs show afterwards."""
    kill(home, "valkey")
    kill(home, "api")
    for run in runs.values():
        until(lambda run=run: answer(http, run))
    until(lambda: all(detail(http, run)["last_seq"] > 6 for run in runs.values()))
    kill(home, "api")
    kill(home, "valkey")
    until(lambda: all(detail(http, run)["ended_at"] for run in runs.values()))
    counts = {name: detail(http, run)["last_seq"] for name, run in runs.items()}
    print(json.dumps(counts), file=script.stdin, flush=True)
    timelines = line_of(script)
    print("read", file=script.stdin, flush=True)
    return timelines


def browser(link: str, base: str, runs: dict[str, str]) -> "subprocess.Popen[str]":
    environment = os.environ | {
        "OFFING_URL": base,
        "OFFING_LOGIN": link,
        "OFFING_RUNS": json.dumps(runs),
        "OFFING_CHROMIUM": str(CHROMIUM),
    }
    script = ["node", str(ROOT / "frontend/e2e/exactly-once.mjs")]
    return subprocess.Popen(script, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line_of(script: "subprocess.Popen[str]") -> Any:
    assert script.stdout
    line = script.stdout.readline()
    assert line, "the browser stopped; its error is above"
    return json.loads(line)


def kill(home: Path, program: str) -> None:
    """Kill a program of the stack. The supervisor starts it again."""
    supervisor = psutil.Process(json.loads((home / "up.json").read_text())["pid"])
    targets = [child for child in supervisor.children(recursive=True) if is_program(child, program)]
    assert targets, program
    for process in targets:
        process.kill()


def is_program(process: psutil.Process, program: str) -> bool:
    try:
        words = process.cmdline()
    except psutil.Error:
        return False
    return any(f"/{program}-server" in word or word == f"offing.{program}" for word in words)


def sign_in(http: httpx.Client, output: str) -> None:
    http.get(next(word for word in output.split() if "/login?token=" in word))
    http.headers["X-CSRF-Token"] = http.get("/api/v1/session").json()["csrf_token"]


def upload(http: httpx.Client, folder: Path) -> None:
    files = [("files", (path.name, path.read_bytes())) for path in folder.iterdir()]
    http.post("/api/v1/library", files=files).raise_for_status()


def submit(http: httpx.Client, name: str) -> str:
    body = {"question": f"Which tower, {name}?", "graph": "research_team_reviewed", "budget": {"max_turns": 8}}
    response = http.post("/api/v1/runs", json=body)
    response.raise_for_status()
    return response.json()["id"]


def detail(http: httpx.Client, run: str) -> Any:
    return http.get(f"/api/v1/runs/{run}").raise_for_status().json()


def answer(http: httpx.Client, run: str) -> bool:
    """Approve the plan. Returns whether the server, which may be starting, accepted it."""
    request = http.get(f"/api/v1/runs/{run}/input-requests").raise_for_status().json()["items"][-1]
    number = request["number"]
    response = http.post(f"/api/v1/runs/{run}/input-requests/{number}/response", json={"decision": "approved"})
    return response.raise_for_status().is_success


def recorded(http: httpx.Client, run: str) -> list[list[Any]]:
    """Number and title of each step that the server stores, in order."""
    steps: list[list[Any]] = []
    while True:
        after = steps[-1][0] if steps else 0
        items = http.get(f"/api/v1/runs/{run}/steps", params={"after": after, "limit": 200}).raise_for_status().json()
        if not items["items"]:
            return steps
        steps += [[step["seq"], step["title"]] for step in items["items"]]


def until(holds: Callable[[], Any]) -> None:
    """Wait until it holds. A server that is being restarted counts as not yet."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            if holds():
                return
        except httpx.HTTPError:
            pass  # the server is away for a moment
        assert time.monotonic() < end
        time.sleep(0.2)
