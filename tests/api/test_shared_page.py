"""The page of a share link in a real browser, with hostile texts in every place that a model or a document fills."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.api.conftest import Api
from tests.api.shared_reports import build_hostile_report, write_report
from tests.hostile_texts import list_hostile_texts
from tests.programs import unavailable

ROOT = Path(__file__).parents[2]

CHROMIUM = Path(os.environ.get("OFFING_CHROMIUM", "/usr/bin/chromium"))

SECONDS = 240


def browser_is_here() -> None:
    if not CHROMIUM.exists():
        unavailable(f"{CHROMIUM} is not installed", "Install Debian's chromium, or set OFFING_CHROMIUM.")
    if not (ROOT / "frontend/dist/index.html").exists():
        unavailable("The built page is not there", "Run `make setup`, which builds it.")


@pytest.mark.browser
@pytest.mark.timeout(SECONDS + 60)
async def test_no_script_of_a_shared_report_runs_and_no_request_leaves_the_server(api: Api) -> None:
    browser_is_here()
    texts = list_hostile_texts(200)
    run = await api.submit(f"Is {texts[0]} safe?")
    await write_report(api, run, build_hostile_report(texts))
    created = (await api.http.post(f"/api/v1/runs/{run}/shares", json={})).json()
    environment = os.environ | {"OFFING_SHARED": f"{api.base}{created['path']}", "OFFING_CHROMIUM": str(CHROMIUM)}
    script = await asyncio.create_subprocess_exec(
        "node",
        str(ROOT / "frontend/e2e/shared-report.mjs"),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(script.communicate(), SECONDS)
    finally:
        if script.returncode is None:
            script.kill()
    assert script.returncode == 0, output.decode()
