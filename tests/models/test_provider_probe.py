"""What a probe says of providers that can everything, a part, or nothing, and what it spends."""

import json
from decimal import Decimal
from typing import Any

import pytest

from offing.core.model import EngineFailure, Usage
from offing.models.provider_probe import ProbeResult, probe_provider
from offing.models.stored_provider import StoredProvider
from offing.telemetry.redaction import bind_secrets, remember_secret
from tests.model_provider import Completion, Fault, Received, Reply, Slow, WireServer, able
from tests.models.builders import Ledger, accepting

KEY = "stored-key-of-a-tenant"


async def probe(
    server: WireServer, model: str = "gpt-4o-mini", *, kind: str = "openai", cap: str = "0.05", **more: Any
) -> ProbeResult:
    provider = StoredProvider("work", kind, server.url, KEY)
    with bind_secrets():
        remember_secret(KEY)
        result = await probe_provider(model, provider, accepting(), more.get("meter", Ledger()), Decimal(cap))
    assert isinstance(result, ProbeResult), result
    return result


def outcomes(result: ProbeResult) -> dict[str, str]:
    return {one.name: one.outcome for one in result.capabilities}


async def test_a_model_that_can_everything_is_described_so_with_its_cost() -> None:
    meter = Ledger()
    async with WireServer(able) as server:
        result = await probe(server, meter=meter)
    assert outcomes(result) == {
        "plain answer": "works",
        "tool call": "works",
        "JSON schema": "works",
        "streaming": "works",
        "reasoning tokens": "unknown",
        "usage": "works",
        "context window": "works",
        "price": "works",
    }
    assert len(server.requests) == 4
    assert meter.total == result.usage
    assert Decimal() < result.usage.cost_usd < Decimal("0.001")
    assert all(one.headers["authorization"] == f"Bearer {KEY}" for one in server.requests)


async def test_reported_reasoning_tokens_are_counted() -> None:
    def thinking(request: Received) -> Reply:
        from tests.model_provider.replies import Whole, completion_body

        if request.body.get("stream"):
            return able(request)
        reply = able(request)
        assert isinstance(reply, Completion)
        body = json.loads(completion_body(reply, "m"))
        body["usage"]["completion_tokens_details"] = {"reasoning_tokens": 5}
        return Whole(body)

    async with WireServer(thinking) as server:
        result = await probe(server)
    assert result.find("reasoning tokens").detail.startswith("15")


async def test_a_server_of_one_s_own_without_tools_schema_and_usage_is_described_so() -> None:
    async with WireServer(lambda _: Completion("hello", tokens=None)) as server:
        result = await probe(server, "qwen3", kind="hosted_vllm")
    assert outcomes(result) == {
        "plain answer": "works",
        "tool call": "fails",
        "JSON schema": "fails",
        "streaming": "fails",
        "reasoning tokens": "unknown",
        "usage": "fails",
        "context window": "unknown",
        "price": "works",
    }
    assert result.usage.cost_usd == 0


async def test_after_a_wrong_key_nothing_else_is_tried_and_the_key_is_not_repeated() -> None:
    async with WireServer(lambda _: Fault(401, f"Incorrect API key provided: {KEY}")) as server:
        result = await probe(server)
    assert len(server.requests) == 1
    assert result.find("plain answer").detail.startswith("authentication_failed")
    assert (result.find("plain answer").cause, result.find("streaming").cause) == ("authentication_failed", "")
    assert result.find("streaming").outcome == "not tested"
    assert result.usage == Usage()
    assert KEY not in repr(result)


@pytest.mark.parametrize(("cap", "requests"), [("0", 0), ("0.0007", 1), ("0.05", 4)])
async def test_a_cap_is_never_exceeded(cap: str, requests: int) -> None:
    """A call of gpt-4o-mini may cost 0.0006 USD; the provider bills what it likes."""
    from tests.model_provider import Tokens

    async with WireServer(lambda _: Completion("ready", tokens=Tokens(20, 900))) as server:
        result = await probe(server, cap=cap)
    assert len(server.requests) == requests
    assert result.usage.cost_usd <= Decimal(cap)


async def test_a_daily_limit_stops_a_probe() -> None:
    async with WireServer(able) as server:
        result = await probe(server, meter=Ledger(usd=Decimal()))
    assert server.requests == []
    assert "spend limit" in result.find("plain answer").detail


async def test_a_call_is_bounded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offing.models.provider_probe.MAX_CALL_SECONDS", 0.3)
    async with WireServer(lambda _: Slow(Completion("ready"), 5)) as server:
        result = await probe(server)
    assert result.find("plain answer").detail == "No complete response within 0.3 s."
    assert result.seconds < 3


async def test_a_provider_that_may_not_be_called_is_a_failure() -> None:
    provider = StoredProvider("work", "openai", "http://10.0.0.5:8000", KEY)
    failure = await probe_provider("x", provider, accepting(), Ledger(), Decimal(1))
    assert isinstance(failure, EngineFailure)
    assert "offing engine accept" in failure.message
