"""`deploy/provider-check` against a provider that fills every schema it is sent."""

import asyncio
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import PATIENCE
from tests.model_provider import Completion, Received, Reply, Tokens, WireServer
from tests.unit.docs.documents import ROOT

pytestmark = pytest.mark.timeout(3 * PATIENCE)

KEY = "c4n4ry-key-of-a-person-0123456789"


def fill(schema: dict[str, Any], root: dict[str, Any]) -> Any:
    """The smallest value of a JSON schema."""
    if "$ref" in schema:
        return fill(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return fill(schema[choice][0], root)
    if "const" in schema or "enum" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    match schema.get("type"):
        case "object":
            properties: dict[str, Any] = schema.get("properties", {})
            return {name: fill(value, root) for name, value in properties.items()}
        case "array":
            return [fill(schema["items"], root)] * schema.get("minItems", 0)
        case "integer" | "number":
            return 7
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "128 meters"


def able(request: Received) -> Reply:
    import json

    tokens = Tokens(400, 120)
    if tools := request.body.get("tools"):
        function = tools[0]["function"]
        arguments = json.dumps(fill(function["parameters"], function["parameters"]))
        return Completion(tool=function["name"], arguments=arguments, tokens=tokens)
    if described := request.body.get("response_format"):
        schema = described["json_schema"]["schema"]
        return Completion(json.dumps(fill(schema, schema)), tokens=tokens)
    text = "1 2 3 4 5 6 7 8 9 10 11 12" if request.body.get("stream") else "The North Bridge, by 128 meters."
    return Completion(text, tokens=tokens)


@pytest.fixture
def provider() -> Iterator[WireServer]:
    """A provider on a thread of its own, for a command that the test waits for."""
    server, loop = WireServer(able, accepted=False), asyncio.new_event_loop()
    loop.run_until_complete(server.__aenter__())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield server
    asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def check(*words: str, **variables: str) -> tuple[int, str, str, float]:
    started = time.monotonic()
    env = os.environ | {"NO_COLOR": "1"} | variables
    command = [ROOT / "deploy/provider-check", *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE * 2)
    return done.returncode, done.stdout, done.stderr, time.monotonic() - started


def spent(table: str) -> float:
    amount = re.search(r"^(\d+\.\d+) USD of at most", table, re.MULTILINE)
    assert amount, table
    return float(amount[1])


def test_every_capability_and_flow_is_in_the_table_within_the_cap_and_five_minutes(
    provider: WireServer, tmp_path: Path
) -> None:
    file = tmp_path / "table.md"
    words = ("openai/gpt-4o-mini", "--api-base", provider.url, "--output", str(file))
    code, output, errors, seconds = check(*words, OPENAI_API_KEY=KEY)
    assert code in (0, 1), errors
    table = file.read_text()
    for capability in ("plain answer", "tool call", "JSON schema", "streaming", "usage", "context window", "price"):
        assert f"| {capability} | works " in table, table
    for flow in ("agentflow", "iterresearch", "memact", "research_team"):
        assert re.search(rf"^\| {flow} \| (?:done|failed): \w+ \|", table, re.MULTILINE), table
    assert 0 < spent(table) <= 0.10
    assert seconds < 300
    assert {one.headers["authorization"] for one in provider.requests} == {f"Bearer {KEY}"}
    assert KEY not in table + output + errors
    print(table, f"{seconds:.0f} s", code)


def test_the_cap_holds_for_everything_together(provider: WireServer) -> None:
    """A call of this model may cost a cent, so the flows have to stop."""
    words = ("openai/gpt-4o", "--api-base", provider.url, "--max-cost-usd", "0.011")
    code, table, _, _ = check(*words, OPENAI_API_KEY=KEY)
    assert code == 1, table
    assert spent(table) <= 0.011
    assert "spend_limit" in table or "not tested" in table


def test_a_model_that_cannot_be_checked_is_rejected_at_once() -> None:
    code, _, errors, _ = check("azure/gpt-4o")
    assert (code, "MODEL: 'azure/gpt-4o' cannot be checked" in errors) == (2, True)
