"""In a real browser: a first visit that sets up a model of a server with OpenAI's API, and asks it a question."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import PATIENCE, Offing
from tests.e2e.test_web_ui import CHROMIUM, ROOT, browser_is_here, faults_of
from tests.model_provider import Fault, Received, Reply, WireServer, able
from tests.model_provider.replies import Whole
from tests.workers.test_models import ANALYSIS, COMMAND, PLAN, SUPPORTED_REPORT, VERDICT, says

pytestmark = pytest.mark.timeout(3 * PATIENCE)

PROBES = ("single word: ready", "report_number", '{"number": 7}', "Count from 1 to 20")


class ModelServer:
    """Lists one model, passes its tests, and then answers the roles of one question in their order."""

    def __init__(self) -> None:
        self._answers: Iterator[Reply] = map(says, (ANALYSIS, PLAN, COMMAND, VERDICT, SUPPORTED_REPORT))

    def __call__(self, request: Received) -> Reply:
        if request.method == "GET":
            return Whole({"data": [{"id": "stand-in", "max_model_len": 32768}]})
        if any(probe in str(request.body.get("messages")) for probe in PROBES):
            return able(request)
        return next(self._answers, Fault(500, "the question has no further call"))


async def test_a_new_user_sets_up_a_model_in_the_page_and_it_answers_a_question(
    offing: Offing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser_is_here()
    monkeypatch.setenv("OFFING_PORT", "0")
    home = tmp_path / "home"
    monkeypatch.setenv("OFFING_ENGINE_SERVERS", str(home / "engine-servers"))
    async with WireServer(ModelServer(), accepted=False) as server:
        try:
            done = await asyncio.to_thread(visit, offing, home, tmp_path, server.url)
        finally:
            await asyncio.to_thread(lambda: offing("down", home=home))
    assert done.returncode == 0, done.stdout + done.stderr
    assert {one.headers.get("authorization") for one in server.requests} == {"Bearer c4n4ry-key-of-the-browser"}
    assert not (faults := faults_of(tmp_path / "exchanges.json")), "\n".join(faults)


def visit(offing: Offing, home: Path, folder: Path, address: str) -> "subprocess.CompletedProcess[str]":
    started = offing("up", "--detach", home=home)
    link = re.search(r"http://\S+/login\?token=\S+", started.out + started.err)
    assert link, started.err
    environment = os.environ | {
        "OFFING_HOME": str(home),
        "OFFING_URL": link.group(0).split("/login")[0],
        "OFFING_LOGIN": link.group(0),
        "OFFING_MODEL": address,
        "OFFING_ACCEPT": json.dumps([sys.executable, "-m", "offing.cli", "engine", "accept", address]),
        "OFFING_EXCHANGES": str(folder / "exchanges.json"),
        "OFFING_CHROMIUM": str(CHROMIUM),
    }
    script = ["node", str(ROOT / "frontend/e2e/model-setup.mjs")]
    return subprocess.run(script, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
