"""`deploy/provider-check` against a provider that fills every schema and writes every text form that it is sent."""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import PATIENCE
from tests.model_provider import Completion, Received, Reply, Tokens, WireServer, serve_on_thread
from tests.unit.docs.documents import ROOT

pytestmark = pytest.mark.timeout(3 * PATIENCE)

KEY = "c4n4ry-key-of-an-environment-0123456789"


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


ANSWER = "The North Bridge, by 128 meters."
FIRST_ROUND = (
    '<report>Nothing yet.</report>\n<tool_call>{"name": "search_library", "arguments": {"query": "bridge"}}</tool_call>'
)


def write_text(request: Received) -> str:
    """An answer in the text form that the prompt asks for: a round, an act, or a report."""
    prompt = json.dumps(request.body["messages"])
    if "This is the first round." in prompt:
        return FIRST_ROUND
    report = "<report>It is named.</report>\n" if "</report>" in prompt else ""
    return f"{report}<answer>\n# Bridges\n{ANSWER}\n</answer>" if "</answer>" in prompt else ANSWER


def fill_schemas(request: Received) -> Reply:
    tokens = Tokens(400, 120)
    if tools := request.body.get("tools"):
        function = tools[0]["function"]
        arguments = json.dumps(fill(function["parameters"], function["parameters"]))
        return Completion(tool=function["name"], arguments=arguments, tokens=tokens)
    if described := request.body.get("response_format"):
        schema = described["json_schema"]["schema"]
        return Completion(json.dumps(fill(schema, schema)), tokens=tokens)
    if len(request.body["messages"]) == 1 and request.body.get("stream"):
        return Completion("1 2 3 4 5 6 7 8 9 10 11 12", tokens=tokens)
    return Completion(write_text(request), tokens=tokens)


@pytest.fixture
def provider() -> Iterator[WireServer]:
    """A provider on a thread of its own, for a command that the test waits for."""
    with serve_on_thread(fill_schemas, accepted=False) as server:
        yield server


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
    assert code == 0, file.read_text() + errors
    table = file.read_text()
    for capability in ("plain answer", "tool call", "JSON schema", "streaming", "usage", "context window", "price"):
        assert f"| {capability} | works " in table, table
    for flow in ("agentflow", "iterresearch", "memact", "research_team"):
        assert f"| {flow} | done: answered |" in table, table
    assert 0 < spent(table) <= 0.10
    assert seconds < 300
    assert {one.headers["authorization"] for one in provider.requests} == {f"Bearer {KEY}"}
    assert KEY not in table + output + errors


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
