"""A server is written and pinned together, exactly as it was reviewed."""

import asyncio
from pathlib import Path

import pytest

from offing.core.errors import Conflict
from offing.mcp.client import McpClient
from offing.mcp.pins import pins_path
from offing.mcp.server_registry import McpServerRegistry
from offing.mcp.servers import McpServerConfig
from offing.mcp.tool_listing import McpToolListing, hash_tools
from offing.services.mcp_settings import McpReview, NewServer
from offing.web.url import InvalidUrl

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = (McpToolListing("search", "Finds.", SCHEMA), McpToolListing("publish", "Publishes.", SCHEMA))
NEW = NewServer("docs", "https://docs.example/mcp", "MCP_DOCS_TOKEN", ["search"])


class FixedClient(McpClient):
    """Lists the same tools for every server."""

    async def list_tools(self, server: McpServerConfig) -> tuple[McpToolListing, ...] | InvalidUrl:
        return TOOLS


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.toml"
    path.write_text('# ours\n[servers.wiki]\nurl = "https://wiki.example/mcp"\n')
    path.chmod(0o640)
    return path


def review(file: Path) -> tuple[McpReview, McpServerRegistry]:
    registry = McpServerRegistry(file)
    return McpReview(FixedClient({}), registry), registry


def test_an_added_server_can_be_used_at_once_with_the_selected_tools_alone(file: Path) -> None:
    reviewing, registry = review(file)
    asyncio.run(reviewing.add_server(NEW, hash_tools(TOOLS)))
    server = registry.list_servers()["docs"]
    assert (server.problem, [tool.spec.name for tool in server.tools]) == ("", ["mcp_docs_search"])
    assert (server.config.bearer, server.config.private) == ("MCP_DOCS_TOKEN", False)


def test_the_rest_of_the_file_and_its_permissions_are_kept(file: Path) -> None:
    before = file.read_text()
    asyncio.run(review(file)[0].add_server(NEW, hash_tools(TOOLS)))
    assert file.read_text().startswith(before)
    assert file.stat().st_mode & 0o777 == 0o640


def test_tools_other_than_the_reviewed_ones_write_nothing(file: Path) -> None:
    before = file.read_text()
    with pytest.raises(Conflict, match="not those that were shown"):
        asyncio.run(review(file)[0].add_server(NEW, hash_tools(TOOLS[:1])))
    assert (file.read_text(), pins_path(file).exists()) == (before, False)


def test_without_a_file_it_is_created_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "mcp.toml"
    reviewing, registry = review(file)
    asyncio.run(reviewing.add_server(NEW, hash_tools(TOOLS)))
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(registry.list_servers()) == ["docs"]


def test_without_a_setting_there_is_nothing_to_add_to() -> None:
    with pytest.raises(Conflict, match="OFFING_MCP_CONFIG is not set"):
        asyncio.run(McpReview(FixedClient({}), McpServerRegistry()).add_server(NEW, hash_tools(TOOLS)))
