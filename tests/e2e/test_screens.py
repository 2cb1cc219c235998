"""Screens in a real browser over stored runs: no violation that axe finds, no error, nothing too wide or too small."""

from pathlib import Path

import pytest

from tests.e2e.conftest import PATIENCE
from tests.e2e.screens import walk
from tests.e2e.test_web_ui import CHROMIUM, browser_is_here

pytestmark = pytest.mark.timeout(4 * PATIENCE)


def test_no_screen_has_a_fault_at_desktop_or_phone_width_in_any_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser_is_here()
    monkeypatch.setenv("OFFING_CHROMIUM", str(CHROMIUM))
    done = walk(tmp_path / "home", "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
