"""In a real browser: the text of a plan and of a report while a slow model writes it."""

import asyncio
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import PATIENCE, Offing
from tests.e2e.test_web_ui import CHROMIUM, ROOT, browser_is_here
from tests.model_provider.replies import Slow
from tests.model_provider.server import WireServer, scripted
from tests.workers.test_models import ANALYSIS, COMMAND, PLAN, REPORT, ROLES, VERDICT, says

pytestmark = pytest.mark.timeout(3 * PATIENCE)

QUESTION = "Who built the third Eddystone tower?"


async def test_answers_are_visible_before_their_steps_and_a_report_is_marked_unverified(
    offing: Offing, documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser_is_here()
    replies = (
        says(ANALYSIS),
        Slow(says(PLAN), 1.5, between=True),
        says(COMMAND),
        says(VERDICT),
        Slow(says(REPORT), 0.5, between=True),
    )
    async with WireServer(scripted(*replies)) as server:
        monkeypatch.setenv("OFFING_PORT", "0")
        monkeypatch.setenv("OFFING_ALLOWED_ENGINE_URLS", server.url)
        engine = {"engine": "litellm", "model": "openai/stand-in", "api_base": server.url}
        engines = dict.fromkeys(ROLES, engine | {"options": {"output_mode": "text"}})
        try:
            done = await asyncio.to_thread(open_run, offing, documents, tmp_path, json.dumps(engines))
        finally:
            await asyncio.to_thread(offing, "down")
    assert done.returncode == 0, done.stdout + done.stderr


def open_run(offing: Offing, documents: Path, shots: Path, engines: str) -> "subprocess.CompletedProcess[str]":
    offing("ask", QUESTION, "--docs", str(documents), "--json")
    started = offing("up", "--detach")
    link = re.search(r"http://\S+/login\?token=\S+", started.out + started.err)
    assert link, started.err
    environment = os.environ | {
        "OFFING_URL": link.group(0).split("/login")[0],
        "OFFING_LOGIN": link.group(0),
        "OFFING_QUESTION": QUESTION,
        "OFFING_ENGINES": engines,
        "OFFING_SHOTS": str(shots),
        "OFFING_CHROMIUM": str(CHROMIUM),
    }
    script = ["node", str(ROOT / "frontend/e2e/answer-drafts.mjs")]
    return subprocess.run(script, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
