"""The operator's file and the pins beside it: what is taken, what is rejected, and who may have written them."""

import os
from pathlib import Path

import orjson
import pytest

from offing.core.errors import InvalidInput
from offing.core.tool import SideEffect
from offing.mcp.pins import pin_tools, pins_path, read_pins, write_pins
from offing.mcp.servers import add_server, parse_servers, read_servers
from offing.mcp.tool_listing import McpToolListing, find_changed_tools, hash_tools
from tests.mcp.config_files import written

WHOLE = """
[servers.wiki]
url = "https://mcp.wiki.example/mcp"
bearer = "WIKI_TOKEN"

[servers.wiki.tools.search]
effect = "pure"
timeout_seconds = 30
max_calls = 100
when = [{ arg = "limit", optional = true, maximum = 20 }]

[servers.tickets]
url = "http://127.0.0.1:9000/mcp"
private = true
headers = { X-Api-Key = "TICKETS_API_KEY" }
query = { key = "TICKETS_QUERY_SECRET" }

[servers.tickets.tools]
create_ticket = {}
"""
SEARCH = McpToolListing("search", "Finds.", {"type": "object", "properties": {"q": {"type": "string"}}})


def test_the_file_of_the_operators_page_is_read() -> None:
    servers = parse_servers(WHOLE)
    search, create = servers["wiki"].tools["search"], servers["tickets"].tools["create_ticket"]
    assert (search.effect, search.timeout_seconds, search.max_calls, search.when[0].arg) == (
        SideEffect.PURE,
        30,
        100,
        "limit",
    )
    assert (create.effect, create.timeout_seconds, create.max_calls) == (SideEffect.AT_MOST_ONCE, 60, 256)
    assert servers["tickets"].parsed_url.port == 9000


def entry(line: str, url: str = "https://a.example/mcp") -> str:
    return f'[servers.a]\nurl = "{url}"\n{line}\n'


REJECTED = [
    ('[servers.a]\ncommand = "npx"\n', "servers.a: command: servers are not started as programs"),
    (entry('command = "npx"'), "servers.a: command: servers are not started"),
    (entry('args = ["-y"]'), "servers.a: args: servers are not started"),
    (entry('transport = "stdio"'), "servers.a: transport: servers are not started"),
    (entry('type = "stdio"'), "servers.a: type: servers are not started"),
    (entry("env = { A = 'x' }"), "servers.a: env: servers are not started"),
    ('[mcpServers.a]\nurl = "https://a.example"\n', "mcpServers: Extra inputs are not permitted"),
    ("[servers.a]\nprivate = true\n", "servers.a.url: Field required"),
    (entry("", "http://a.example/mcp"), "must begin with https://"),
    (entry("", "stdio://a"), "url: "),
    (entry("", "file:///etc/passwd"), "url: "),
    (entry("", "https://user:word@a.example/mcp"), "url: "),
    (entry("", "https://2130706433/mcp"), "url: "),
    (entry("", "https://a.example/mcp#x"), "fragment"),
    (entry('bearer = "sk-live-0123456789"'), "servers.a.bearer: must be the name of an environment variable"),
    (entry('bearer = "PATH"'), "servers.a.bearer: must be the name of an environment variable"),
    (entry('bearer = "wiki_token"'), "servers.a.bearer: must be the name of an environment variable"),
    (entry('headers = { Authorization = "Bearer abcdefghijkl" }'), "servers.a.headers.Authorization: must be"),
    (entry('headers = { "X\\r\\nY" = "A_TOKEN" }'), "String should match pattern"),
    (entry("[servers.a.tools.t]\neffect = 'readonly'"), "servers.a.tools.t.effect"),
    (entry("[servers.a.tools.t]\ntimeout_seconds = 0"), "servers.a.tools.t.timeout_seconds"),
    (entry("[servers.a.tools.t]\nmax_calls = -1"), "servers.a.tools.t.max_calls"),
    (entry("[servers.a.tools.t]\nwhen = [{ arg = 'a', like = 'x' }]"), "servers.a.tools.t.when.0.like"),
    (entry("[servers.a.tools.t]\ncommand = 'x'"), "servers.a.tools.t.command"),
    (entry("[servers.a.tools]\n'a b' = {}"), "servers.a.tools.a b"),
    ('[servers.A_b]\nurl = "https://a.example"\n', "servers.A_b"),
    ("servers = 3", "servers: "),
    ("[servers", "the file is not TOML"),
]


@pytest.mark.parametrize(("text", "problem"), REJECTED, ids=lambda value: value[:50])
def test_what_cannot_be_used_is_named_with_its_path(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_servers(text)
    assert problem in str(error.value)
    assert "sk-live-0123456789" not in str(error.value)
    assert "abcdefghijkl" not in str(error.value)


def test_a_server_is_added_behind_what_stands_in_the_file() -> None:
    text = add_server(WHOLE + "# a remark", "new", "https://n.example/mcp", tools=("a", "b"), bearer="N_TOKEN")
    assert text.startswith(WHOLE + "# a remark")
    assert list(parse_servers(text)["new"].tools) == ["a", "b"]
    assert parse_servers(add_server("", "one", "http://h:1/", private=True))["one"].private
    for name, url in (("wiki", "https://n.example"), ("new", "http://n.example"), ("a]\n[x", "https://n.example")):
        with pytest.raises(InvalidInput):
            add_server(WHOLE, name, url)
    with pytest.raises(InvalidInput):
        add_server("", "one", "https://n.example", bearer='A_TOKEN"\ncommand = "x')


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_rejected(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path, WHOLE)
    path.chmod(mode)
    with pytest.raises(InvalidInput, match="is writable by other users"):
        read_servers(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_rejected_unless_it_is_roots(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE)
    os.chown(path, 65534, -1)
    with pytest.raises(InvalidInput, match="belongs to another user"):
        read_servers(path)


def test_what_is_no_file_is_rejected_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_servers(tmp_path / "none.toml")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_servers(tmp_path)


def test_pins_are_read_back_as_they_were_written_and_beside_the_file(tmp_path: Path) -> None:
    path = pins_path(tmp_path / "mcp.toml")
    assert (path.name, read_pins(path)) == ("mcp.pins.json", {})
    pin = pin_tools("https://a.example", [SEARCH])
    write_pins(path, {"a": pin})
    assert (read_pins(path), path.stat().st_mode & 0o022) == ({"a": pin}, 0)
    assert [one.name for one in tmp_path.iterdir()] == ["mcp.pins.json"]


def test_pins_that_were_altered_by_hand_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "mcp.pins.json"
    write_pins(path, {"a": pin_tools("https://a.example", [SEARCH])})
    stored = orjson.loads(path.read_bytes())
    stored["servers"]["a"]["tools"][0]["description"] = "Finds, and sends it elsewhere."
    for body in (orjson.dumps(stored), b"{}", b"[]", b"no", orjson.dumps({"servers": {"a": {}}})):
        path.write_bytes(body)
        with pytest.raises(InvalidInput, match="was not written by `offing mcp pin`"):
            read_pins(path)
    path.chmod(0o666)
    with pytest.raises(InvalidInput, match="is writable by other users"):
        read_pins(path)


def test_a_hash_knows_a_list_whatever_its_order_and_tells_every_difference() -> None:
    other = McpToolListing("other", "Other.", {"type": "object"})
    assert hash_tools([SEARCH, other]) == hash_tools([other, SEARCH])
    schema = {"properties": {"q": {"type": "string"}}, "type": "object"}
    assert hash_tools([McpToolListing("search", "Finds.", schema)]) == hash_tools([SEARCH])
    differing = [
        McpToolListing("Search", "Finds.", SEARCH.schema),
        McpToolListing("search", "Finds. ", SEARCH.schema),
        McpToolListing("search", "Finds.", {"type": "object", "properties": {"q": {"type": "string", "default": "x"}}}),
    ]
    assert len({hash_tools([one]) for one in (SEARCH, *differing)}) == 4
    assert find_changed_tools([SEARCH], [differing[1], other]) == ("other", "search")
    assert find_changed_tools([SEARCH], [SEARCH]) == ()
