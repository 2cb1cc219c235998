"""`offing dev`: a change of a graph's folder is used by the next run, and a fault in it by none."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from offing.cli.new import render_template

LIMIT = 120.0


@dataclass
class Running:
    """A started `offing dev`, its page, and what it wrote."""

    log: Path
    folder: Path
    page: httpx.Client

    def wait_for_output(self, pattern: str) -> str:
        """The first range of what it wrote that fits, once it is there."""
        give_up = time.monotonic() + LIMIT
        while (match := re.search(pattern, self.log.read_text())) is None:
            assert time.monotonic() < give_up, self.log.read_text()
            time.sleep(0.1)
        return match[0]

    def run(self) -> dict[str, Any]:
        """A run that has ended, with its steps' labels."""
        submitted = self.page.post("/api/v1/runs", json={"question": "Who built the tower?", "graph": "harbour"})
        assert submitted.status_code in (201, 202), submitted.text
        run = submitted.json()["id"]
        give_up = time.monotonic() + LIMIT
        while (row := self.page.get(f"/api/v1/runs/{run}").json())["status"] not in ("done", "failed"):
            assert time.monotonic() < give_up, row
            time.sleep(0.1)
        steps = self.page.get(f"/api/v1/runs/{run}/steps").json()["items"]
        return {**row, "labels": {step["label"] for step in steps}}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    folder, log = tmp_path / "harbour", tmp_path / "log"
    for position, text in render_template("harbour", "full").items():
        (folder / position).parent.mkdir(parents=True, exist_ok=True)
        (folder / position).write_text(text)
    more = {"OFFING_HOME": str(tmp_path / "home"), "OFFING_PORT": "0", "OFFING_WORKER_PROCESSES": "1"}
    command = [sys.executable, "-m", "offing.cli", "dev", "--path", str(folder)]
    with log.open("wb") as output, httpx.Client(follow_redirects=True, timeout=30) as page:
        child = subprocess.Popen(command, env=os.environ | more, stdout=output, stderr=output, cwd=tmp_path)
        try:
            result = Running(log, folder, page)
            link = result.wait_for_output(r"http://\S+/login\?token=\S+")
            page.base_url = link.partition("/login")[0]
            page.get(link).raise_for_status()
            page.headers["X-CSRF-Token"] = page.get("/api/v1/session").json()["csrf_token"]
            yield result
        finally:
            child.terminate()
            child.wait(60)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_next_run_uses_what_was_changed_and_nothing_that_is_broken(running: Running) -> None:
    tools = running.folder / "harbour/tools.py"
    good = tools.read_text()
    first = running.run()
    assert (first["status"], "count" in first["labels"]) == ("done", True)
    tools.write_text(good.replace('@tool(label="count")', '@tool(label="tally")'))
    running.wait_for_output(r"(?s)(new runs use .*){2}")
    second = running.run()
    while "tally" not in second["labels"]:  # the API looks at the folder by itself, twice a second
        second = running.run()
    assert second["status"] == "done"
    tools.write_text("not python at all\n")
    assert running.wait_for_output(rf"{tools}:1: SyntaxError")
    third = running.run()
    assert (third["status"], "tally" in third["labels"]) == ("done", True)
