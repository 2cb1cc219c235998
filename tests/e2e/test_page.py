"""The main job in a real browser: sign in by link, ask, see the report, open a citation."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import Offing

ROOT = Path(__file__).parents[2]

CHROMIUM = Path(os.environ.get("OFFING_CHROMIUM", "/usr/bin/chromium"))


def required(what: Path, remedy: str) -> None:
    """CI has everything; elsewhere a missing browser is said, not failed."""
    if not what.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{what} is missing. {remedy}")
        pytest.skip(f"{what} is missing. {remedy}")


def test_a_person_asks_a_question_and_opens_a_citation(offing: Offing, documents: Path, tmp_path: Path) -> None:
    required(CHROMIUM, "Install Debian's chromium, or set OFFING_CHROMIUM.")
    required(ROOT / "frontend/dist/index.html", "Run `make setup`, which builds the page.")
    os.environ["OFFING_PORT"] = "0"
    try:
        offing("ask", "Who built the third Eddystone tower?", "--docs", str(documents), "--json")
        started = offing("up", "--detach")
        link = re.search(r"http://\S+/login\?token=\S+", started.out + started.err)
        assert link, started.err
        environment = os.environ | {
            "OFFING_URL": link.group(0).split("/login")[0],
            "OFFING_LOGIN": link.group(0),
            "OFFING_QUESTION": "Who built the third Eddystone tower?",
            "OFFING_CHROMIUM": str(CHROMIUM),
            "OFFING_SHOT": str(tmp_path / "run.png"),
        }
        script = ["node", str(ROOT / "frontend/e2e/run-page.mjs")]
        done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=110)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "run.png").stat().st_size > 10_000
    finally:
        offing("down")
        del os.environ["OFFING_PORT"]
