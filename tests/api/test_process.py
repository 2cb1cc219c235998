"""The API as a process of its own: ready file, rejection, and stopping with streams open."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from offing.services import access
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.ports import free_port

START_SECONDS = 90

pytestmark = pytest.mark.timeout(300)


def environment(**more: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "OFFING_EXTRA_GRAPHS": "tests.api.graphs:quiet",
        **more,
    }


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_that_others_can_reach_is_rejected_with_a_remedy(host: str, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "offing.api"]
    done = subprocess.run(
        argv, env=environment(OFFING_HOST=host), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "OFFING_ALLOW_REMOTE=1" in done.stderr
    assert "Traceback" not in done.stderr


async def _key(app_url: str) -> str:
    async with Database(app_url, max_connections=1) as database:
        return (await access.create_key(database, LOCAL_TENANT, "test")).key


def test_it_says_when_it_is_ready_and_stops_at_once_with_streams_open(
    app_url: str, redis_url: str, tmp_path: Path
) -> None:
    port, ready, log = free_port(), tmp_path / "ready", tmp_path / "log"
    key = asyncio.run(_key(app_url))
    more = {
        "OFFING_APP_DATABASE_URL": app_url,
        "REDIS_URL": redis_url,
        "OFFING_PORT": str(port),
        "OFFING_READY_FILE": str(ready),
    }
    with log.open("wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "offing.api"], env=environment(**more), cwd=tmp_path, stdout=out, stderr=out
        )
    try:
        give_up = time.monotonic() + START_SECONDS
        while not ready.exists():
            assert child.poll() is None, log.read_text()
            assert time.monotonic() < give_up, log.read_text()
            time.sleep(0.02)
        assert ready.read_text() == str(child.pid)
        base, headers = f"http://localhost:{port}", {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=base, headers=headers, timeout=60) as http:
            created = http.post("/api/v1/runs", json={"question": "Why is the sea salt?", "graph": "quiet"})
            assert created.status_code == 201, created.text
            with http.stream("GET", f"/api/v1/runs/{created.json()['id']}/events") as stream:
                lines = stream.iter_lines()
                assert next(lines) == "event: run"
                child.send_signal(signal.SIGTERM)
                for _ in lines:
                    pass
        assert child.wait(60) in (0, -signal.SIGTERM), log.read_text()
        wrote = log.read_text()
        assert "timeout graceful shutdown exceeded" not in wrote  # said by uvicorn when it has waited in vain
        assert "Traceback" not in wrote
        assert key not in wrote
    finally:
        child.kill()
        child.wait()
