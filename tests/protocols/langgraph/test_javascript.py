"""LangGraph's JavaScript clients: the SDK in node, and React's `useStream` in Chromium."""

import asyncio
import os
import shutil
from pathlib import Path

from tests.e2e.test_web_ui import CHROMIUM, browser_is_here
from tests.programs import unavailable
from tests.protocols.langgraph.conftest import ENVIRONMENT, Client

__all__ = ["ENVIRONMENT"]

FOLDER = Path(__file__).parent / "javascript"
LIMIT_SECONDS = 150


async def test_the_javascript_client_drives_runs(client: Client, base: str) -> None:
    await run_script("client.mjs", client, f"{base}/langgraph")


async def test_a_page_with_use_stream_is_reloaded_in_mid_stream(client: Client, base: str, tmp_path: Path) -> None:
    browser_is_here()
    await run_script("use-stream.mjs", client, base, OFFING_GATE=str(tmp_path / "open"), OFFING_CHROMIUM=str(CHROMIUM))


async def run_script(script: str, client: Client, url: str, **more: str) -> None:
    """Run a script with node. It fails with what the script printed."""
    if shutil.which("node") is None or not (FOLDER / "node_modules").is_dir():
        unavailable(f"LangGraph's JavaScript clients are not installed: run `npm ci` in {FOLDER}")
    environment = {**os.environ, **more, "OFFING_URL": url, "OFFING_KEY": client.http.client.headers["x-api-key"]}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        "node", script, cwd=FOLDER, env=environment, stdout=pipe, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            printed, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, printed.decode()
