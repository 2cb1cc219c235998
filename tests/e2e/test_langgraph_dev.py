"""`offing dev` in a LangGraph project: served, run, edited, its worker killed, and the rows of its runs exported."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from langgraph_sdk import get_sync_client

from tests.langgraph_project import copy_project, edit

LIMIT = 120.0

FORMAT = ("--format", "jsonl_chat")

SECRET = "sk-of-the-project-7f3a"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass
class Served:
    """A project that `offing dev` serves, and what the command wrote."""

    project: Path
    log: Path
    command: psutil.Process
    page: httpx.Client

    def wait_for_output(self, pattern: str) -> str:
        """The first range of what it wrote that fits, once it is there."""
        return wait_for(lambda: (m := re.search(pattern, self.log.read_text())) and m[0], self.log.read_text)

    def submit(self, question: str) -> str:
        submitted = self.page.post("/api/v1/runs", json={"question": question, "graph": "agent"})
        assert submitted.status_code in (201, 202), submitted.text
        return submitted.json()["id"]

    def wait_for_end(self, run: str) -> dict[str, Any]:
        def find_ended() -> dict[str, Any] | None:
            row = self.page.get(f"/api/v1/runs/{run}").json()
            return row if row["status"] in ("done", "failed") else None

        return wait_for(find_ended, self.log.read_text)

    def list_steps(self, run: str) -> list[dict[str, Any]]:
        return self.page.get(f"/api/v1/runs/{run}/steps").json()["items"]

    def list_model_calls(self, run: str) -> list[str]:
        return [step["title"] for step in self.list_steps(run) if step["kind"] == "role_call"]

    def find_worker(self) -> psutil.Process:
        return next(one for one in self.command.children() if "offing_workers" in one.cmdline())

    def count_calls(self) -> int:
        file = self.project.parent / "calls"
        return len(file.read_text().splitlines()) if file.exists() else 0


def wait_for(find: Callable[[], Any], describe: Callable[[], str]) -> Any:
    give_up = time.monotonic() + LIMIT
    while not (result := find()):
        assert time.monotonic() < give_up, describe()
        time.sleep(0.1)
    return result


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    project, log = copy_project(tmp_path / "project"), tmp_path / "log"
    variables = {
        "AGENT_CALLS": str(tmp_path / "calls"),
        "AGENT_GATE": str(tmp_path / "gate"),
        "PROJECT_KEY": SECRET,
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/of_the_project",
    }
    (project / ".env").write_text("".join(f"{name}={value}\n" for name, value in variables.items()))
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("OFFING_") and k != "DATABASE_URL"}
    command = [sys.executable, "-m", "offing.cli", "dev", "--port", "0", "--web-port", "0", "--no-browser"]
    with log.open("wb") as output, httpx.Client(follow_redirects=True, timeout=30) as page:
        environment = inherited | {"OFFING_WORKER_PROCESSES": "1", "OFFING_LEASE_SECONDS": "3"}
        environment["OFFING_HEARTBEAT_INTERVAL_SECONDS"] = "0.5"
        child = subprocess.Popen(command, env=environment, stdout=output, stderr=output, cwd=project)
        try:
            result = Served(project, log, psutil.Process(child.pid), page)
            link = result.wait_for_output(r"http://\S+/login\?token=\S+")
            page.base_url = link.partition("/login")[0]
            page.get(link).raise_for_status()
            page.headers["X-CSRF-Token"] = page.get("/api/v1/session").json()["csrf_token"]
            yield result
        finally:
            child.terminate()
            child.wait(60)


def test_a_project_is_served_edited_killed_and_exported(served: Served) -> None:
    assert "langgraph.json: image_distro: It describes a container image." in served.log.read_text()
    gate = served.project.parent / "gate"

    # a run is recorded with the calls of the project's own model
    gate.touch()
    first = served.wait_for_end(served.submit("Why do gulls cry?"))
    assert first["status"] == "done", served.list_steps(first["id"])
    assert served.list_model_calls(first["id"]) == [
        "You asked: Why do gulls cry?",
        "You asked: You asked: Why do gulls cry? The end.",
    ]
    assert served.count_calls() == 2

    # a worker is killed in mid-run, after the project was edited: the run ends with the version that it began with
    gate.unlink()
    second = served.submit("And at night?")
    wait_for(lambda: served.list_model_calls(second), served.log.read_text)
    edit(served.project, "The end.", "That is all.")
    served.wait_for_output(r"(?s)(new runs use agent .*){2}")
    served.find_worker().kill()
    gate.touch()
    ended = served.wait_for_end(second)
    assert ended["status"] == "done", served.list_steps(second)
    assert served.list_model_calls(second)[-1].endswith("The end.")
    assert served.count_calls() == 4  # no recorded call was made again

    # the next run has the edit, and a fault in a file changes nothing for the runs after it
    third = served.wait_for_end(served.submit("And in winter?"))
    while not served.list_model_calls(third["id"])[-1].endswith("That is all."):
        third = served.wait_for_end(served.submit("And in winter?"))
    (served.project / "src/agent/state.py").write_text("not python at all\n")
    served.wait_for_output(r"src/agent/state\.py:1: SyntaxError")
    fourth = served.wait_for_end(served.submit("And at sea?"))
    assert fourth["status"] == "done"

    # LangGraph's own client needs no key on its port, and its runs are in the same record
    address = served.wait_for_output(r"clients connect to http://\S+").rpartition(" ")[2]
    with get_sync_client(url=address, api_key="a-key-of-another-service") as client:
        untyped: Any = client  # some of its types are open
        values: Any = untyped.runs.wait(None, "agent", input={"messages": [{"role": "user", "content": "And whales?"}]})
    assert "And whales?" in json.dumps(values)
    assert "And whales?" in [run["question"] for run in served.page.get("/api/v1/runs").json()["items"]]
    response = httpx.post(served.page.base_url.join("/langgraph/threads/search"), json={})
    assert response.status_code == 401

    served.page.patch("/api/v1/tenant", json={"training_opt_in": True}).raise_for_status()

    # the rows of the runs can be exported for training, and no secret of the project is stored or logged
    output = served.project.parent / "rows.jsonl"
    exported = subprocess.run(
        [sys.executable, "-m", "offing.cli", "trajectories", "export", str(output), "--kind", "interactive", *FORMAT],
        cwd=served.project,
        env={k: v for k, v in os.environ.items() if not k.startswith("OFFING_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert exported.returncode == 0, exported.stderr
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert any("Why do gulls cry?" in json.dumps(row) for row in rows)
    assert SECRET not in served.log.read_text()
    copies = [file for file in (served.project / ".offing/graphs").rglob("*") if file.is_file()]
    assert copies
    assert not any(SECRET.encode() in file.read_bytes() for file in copies)
