"""Two hundred hostile texts in every place of an installation, and every screen and export that shows them."""

import asyncio
import io
import json
import os
import re
import zipfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from pathlib import Path
from uuid import UUID
from xml.etree import ElementTree

import docx
import httpx
import pypdfium2
import pytest

from offing.api.app import create_app
from offing.services import access
from offing.settings import Settings
from tests.api import hostile_stack
from tests.api.conftest import Api, running
from tests.api.hostile_stack import HostileStack
from tests.api.test_shared_page import CHROMIUM, ROOT, browser_is_here
from tests.hostile_texts import list_hostile_texts

SECONDS = 900
"""Seconds that the browser may take on a machine that other programs use. Only a fault takes longer."""

TEXTS = list_hostile_texts(200)
VERSIONS = (1, 2)
"""The report of the run, and the version in which a person has added a hostile sentence."""


@pytest.fixture
async def installation(
    settings: Settings, app_url: str, other_tenant: UUID, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Api]:
    """An API whose operator has set up an MCP server with hostile tools."""
    monkeypatch.setenv("OFFING_HOME", str(tmp_path))
    mcp = tmp_path / "mcp"
    mcp.mkdir()
    settings = settings.model_copy(update={"mcp_config": hostile_stack.write_mcp_config(mcp, TEXTS[::5])})
    async with running(create_app(settings), settings, app_url, other_tenant) as api:
        yield api


@pytest.mark.browser
@pytest.mark.timeout(SECONDS + 300)
async def test_hostile_texts_are_inert_on_every_screen_and_in_every_export(
    installation: Api, owner_url: str, tmp_path: Path
) -> None:
    browser_is_here()
    folder, exports = tmp_path / "libraries", tmp_path / "exports"
    folder.mkdir()
    exports.mkdir()
    stack = await hostile_stack.fill(installation, owner_url, TEXTS, folder)
    assert stack.document_count > 190
    assert stack.name_count > 100
    await check_exports(installation, stack, exports)
    link = await access.create_login_link(
        installation.database, installation.tenant, installation.base, is_operator=True
    )
    await open_screens(
        {
            "OFFING_URL": installation.base,
            "OFFING_LOGIN": link,
            "OFFING_IDS": json.dumps(asdict(stack), default=str),
            "OFFING_EXPORTS": str(exports),
            "OFFING_CHROMIUM": str(CHROMIUM),
        }
    )


async def check_exports(api: Api, stack: HostileStack, exports: Path) -> None:
    """Open each export with a parser, and leave those as HTML in the folder for the browser."""
    addresses = [(f"/api/v1/runs/{stack.ended}/export", {"version": version}) for version in VERSIONS]
    shared = (f"/api/v1/{stack.shared.lstrip('/')}/export", dict[str, int]())
    for number, (address, parameters) in enumerate([*addresses, shared]):
        client = api.nobody if (address, parameters) == shared else api.http

        async def read(file_format: str, client: httpx.AsyncClient = client, address: str = address) -> bytes:
            response = await client.get(address, params={"format": file_format, **parameters}, timeout=SECONDS)  # noqa: B023
            assert response.status_code == 200, response.text
            assert response.headers["content-disposition"].startswith("attachment; ")
            return response.content

        (exports / f"report-{number}.html").write_bytes(await read("html"))
        check_docx(await read("docx"))
        check_pdf(await read("pdf"))


def check_docx(data: bytes) -> None:
    """The file opens, refers to the web only by links, and has no macro, field or embedded object."""
    assert docx.Document(io.BytesIO(data)).paragraphs
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        assert not [name for name in names if re.search(r"vba|embeddings|activeX|\.bin$", name)]
        for name in (name for name in names if name.endswith((".xml", ".rels"))):
            for element in ElementTree.fromstring(archive.read(name)).iter():
                if element.get("TargetMode") == "External":
                    assert element.get("Type", "").endswith("/hyperlink")
                    assert re.match("https?://", element.get("Target", "")), element.attrib
                assert not re.search(r"}(object|altChunk|script)$", element.tag), element.tag


def check_pdf(data: bytes) -> None:
    """The file opens, and has no script, form, file or link but those of the web."""
    assert len(pypdfium2.PdfDocument(data)) > 0
    assert not re.search(rb"/(JavaScript|JS|Launch|AA|SubmitForm|EmbeddedFile|AcroForm|RichMedia)\b", data)
    assert all(match.startswith(b"[") for match in re.findall(rb"/OpenAction\s*(.)", data)), "only a page is opened"
    for address in re.findall(rb"/URI \(([^)]*)\)", data):
        assert re.match(rb"https?://", address), address


async def open_screens(environment: Mapping[str, str]) -> None:
    script = await asyncio.create_subprocess_exec(
        "node",
        str(ROOT / "frontend/e2e/hostile-screens.mjs"),
        env=os.environ | dict(environment),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(script.communicate(), SECONDS)
    finally:
        if script.returncode is None:
            script.kill()
    assert script.returncode == 0, output.decode()
