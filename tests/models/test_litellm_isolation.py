"""What litellm must not do behind our back, and what a trace shows of a call."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from offing.models.accepted_servers import ACCEPTED_SERVERS_VARIABLE
from offing.models.litellm_client import estimate_price
from offing.models.model_table import SELF_HOSTED_PROVIDERS
from tests.model_provider import Completion, Fault, Tokens, WireServer, scripted
from tests.models.builders import GOOD, Question, answered, choice, litellm_engine, request

ALONE = """
import asyncio, socket, sys
sys.addaudithook(lambda name, args: called(name, args))
seen = []
def called(name, args):
    if name == "socket.getaddrinfo" and args[0] not in ("127.0.0.1", "localhost", None):
        seen.append(args[0])
    if name == "socket.connect" and isinstance(args[1], tuple) and args[1][0] not in ("127.0.0.1", "::1"):
        seen.append(args[1])
import logging
logging.basicConfig(level=logging.DEBUG)
from tests.models.builders import *
from tests.model_provider import *
async def main():
    async with WireServer(scripted(*[Completion(GOOD)] * 2)) as server:
        for stream in (False, True):
            options = {"stream": stream}
            role_request = request(choice(server.url, options=options), inputs=Question(text="canary question"))
            await answered(litellm_engine(), role_request)
asyncio.run(main())
assert not seen, f"called {seen}"
"""


def test_importing_and_calling_reaches_nobody_but_the_provider_and_prints_no_prompt() -> None:
    env = {
        "PYTHONPATH": ":".join([*filter(None, sys.path), "."]),
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        ACCEPTED_SERVERS_VARIABLE: os.environ[ACCEPTED_SERVERS_VARIABLE],
    }
    done = subprocess.run([sys.executable, "-c", ALONE], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == ""
    assert "canary question" not in done.stderr


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


async def test_each_attempt_is_a_span_with_metrics_and_without_content(spans: InMemorySpanExporter) -> None:
    async with WireServer(scripted(Fault(503, "busy"), Completion(GOOD, tokens=Tokens(30, 4)))) as server:
        await answered(litellm_engine(), request(choice(server.url), inputs=Question(text="canary question")))
    first, second = spans.get_finished_spans()
    assert first.status.status_code is StatusCode.ERROR
    assert (first.attributes or {})["error.type"] == "overloaded"
    attributes = dict(second.attributes or {})
    assert second.name == "chat openai/gpt-4o-mini"
    assert attributes["gen_ai.request.model"] == "openai/gpt-4o-mini"
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (30, 4)
    assert attributes["offing.attempt"] == 2
    assert not any("canary" in span.to_json() or "enough" in span.to_json() for span in (first, second))


@pytest.mark.parametrize("provider", sorted(SELF_HOSTED_PROVIDERS))
async def test_models_on_one_s_own_machine_cost_nothing(provider: str) -> None:
    assert await estimate_price(f"{provider}/any", 1000, 1000) == 0


async def test_a_model_without_a_price_has_none_rather_than_nought() -> None:
    assert await estimate_price("openai/never-heard-of", 1000, 1000) is None
