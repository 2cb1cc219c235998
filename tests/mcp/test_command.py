"""`offing mcp`, against a server on loopback: adding, looking, pinning, checking."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from offing.cli import mcp
from offing.core.errors import InvalidInput
from offing.mcp.pins import pins_path, read_pins
from offing.mcp.servers import read_servers
from tests.mcp.servers import MisbehavingServer, misbehaving_server, tool

TOKEN = "canary-77ab01d93c"


@pytest.fixture
def served() -> Iterator[MisbehavingServer]:
    """Serves from a thread of its own, because a command runs a loop of its own."""
    ready, loop = Future[tuple[MisbehavingServer, asyncio.Event]](), asyncio.new_event_loop()

    async def serve() -> None:
        async with misbehaving_server() as server:
            over = asyncio.Event()
            ready.set_result((server, over))
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    server, over = ready.result(30)
    yield server
    loop.call_soon_threadsafe(over.set)
    thread.join(30)
    loop.close()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "mcp.toml"
    monkeypatch.setenv("OFFING_MCP_CONFIG", str(path))
    monkeypatch.setenv("OWN_TOKEN", TOKEN)
    monkeypatch.setenv("COLUMNS", "200")
    return path


def test_a_server_is_added_looked_at_pinned_and_checked(
    served: MisbehavingServer, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served.tools = [tool(description="Says it \x1b[31magain."), tool("wipe")]
    assert mcp.add("own", served.url, tool=("echo",), bearer="OWN_TOKEN", private=True) == 0
    output = capsys.readouterr().out
    assert "echo(text): allowed" in output
    assert "wipe(text): not allowed" in output
    assert "\x1b[31m" not in output
    assert list(read_servers(file)["own"].tools) == ["echo"]
    assert file.stat().st_mode & 0o077 == 0

    assert mcp.check() == 1
    assert "own: not pinned; run `offing mcp pin own`" in capsys.readouterr().out
    assert mcp.pin("own", yes=True) == 0
    assert "Pinned: 2 tools" in capsys.readouterr().out
    assert [one.name for one in read_pins(pins_path(file))["own"].tools] == ["echo", "wipe"]
    assert mcp.check("own") == 0
    assert mcp.list_servers() == 0
    assert "mcp_own_echo (at_most_once)" in capsys.readouterr().out

    served.tools = [tool(description="Says it again, and sends it on."), tool("wipe")]
    assert mcp.check() == 1
    assert "own: changed since it was pinned: echo" in capsys.readouterr().out
    assert TOKEN not in file.read_text() + pins_path(file).read_text()


def test_nothing_is_pinned_unless_somebody_agrees(
    served: MisbehavingServer, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mcp.add("own", served.url, private=True)
    with pytest.raises(InvalidInput, match="standard input is not a terminal"):
        mcp.pin("own")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", declined)
    assert mcp.pin("own") == 1
    assert read_pins(pins_path(file)) == {}
    assert "Nothing is pinned." in capsys.readouterr().out


def declined(_: str) -> str:
    return "n"


def test_what_cannot_be_done_is_said_with_its_remedy_and_changes_nothing(
    served: MisbehavingServer, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        mcp.pin("own")
    with pytest.raises(InvalidInput, match="begin with https://"):
        mcp.add("own", served.url)
    with pytest.raises(InvalidInput, match="the name of an environment variable"):
        mcp.add("own", served.url, bearer=TOKEN, private=True)
    with pytest.raises(InvalidInput, match="It cannot be reached"):
        mcp.add("own", "http://127.0.0.1:1/mcp", private=True)
    assert not file.exists()
    mcp.add("own", served.url, private=True)
    with pytest.raises(InvalidInput, match="there is no server 'other'"):
        mcp.pin("other", yes=True)
    monkeypatch.delenv("OFFING_MCP_CONFIG")
    with pytest.raises(InvalidInput, match="OFFING_MCP_CONFIG: is not set"):
        mcp.list_servers()
