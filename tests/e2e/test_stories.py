"""The primitives of the web UI in a real browser: axe checks each story, and each overlay while it is open."""

import os
import subprocess

import pytest

from tests.e2e.conftest import PATIENCE
from tests.e2e.test_web_ui import CHROMIUM, ROOT, browser_is_here
from tests.ports import free_port

pytestmark = pytest.mark.timeout(2 * PATIENCE)


def test_axe_finds_no_violation_in_any_story() -> None:
    browser_is_here()
    environment = os.environ | {"OFFING_CHROMIUM": str(CHROMIUM), "OFFING_STORIES_PORT": str(free_port())}
    done = subprocess.run(
        ["node", "e2e/stories.mjs"],
        cwd=ROOT / "frontend",
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
