"""What is found here, and what a role gets by default."""

import asyncio
import json
import ssl
import subprocess
import sys
from typing import Any

import pytest

from offing.certificates import load_ssl_context
from offing.core.errors import InvalidInput, Unavailable
from offing.core.model import EngineConfig
from offing.models.engine_discovery import (
    default_engine_config,
    describe_policy_engine,
    discover_engines,
    list_configured_engines,
    parse_engine_config,
    probe_model_servers,
    probe_policy_engine,
    role_engine_configs,
)


def test_extractive_is_always_usable_and_providers_are_by_their_key_s_name() -> None:
    results = {
        one.name: one for one in list_configured_engines({"OPENAI_API_KEY": "canary-value", "ANTHROPIC_API_KEY": ""})
    }
    assert results["extractive"].available
    assert results["litellm:openai"].available
    assert "openai/gpt-4o-mini" in results["litellm:openai"].models
    assert not results["litellm:anthropic"].available
    assert "ANTHROPIC_API_KEY" in results["litellm:anthropic"].note
    assert "canary" not in repr(results)


async def test_servers_on_this_machine_are_asked_for_their_models() -> None:
    async with (
        Listing({"models": [{"name": "llama3.1:8b"}, {"odd": 1}]}) as ollama,
        Listing({"data": [{"id": "q"}]}) as vllm,
    ):
        env = {"OLLAMA_API_BASE": ollama.url, "HOSTED_VLLM_API_BASE": f"{vllm.url}/v1"}
        model_servers = await probe_model_servers(env)
    assert [one.models for one in model_servers] == [("ollama_chat/llama3.1:8b",), ("hosted_vllm/q",)]


async def test_silence_nonsense_and_slowness_are_nothing_found() -> None:
    async with Listing("nonsense") as odd, Listing(None) as silent:
        env = {"OLLAMA_API_BASE": silent.url, "HOSTED_VLLM_API_BASE": odd.url}
        model_servers = await probe_model_servers(env, timeout_seconds=0.2)
    assert [one.models for one in model_servers] == [()]
    deleted = {"OLLAMA_API_BASE": silent.url, "HOSTED_VLLM_API_BASE": "http://[::1"}
    assert await probe_model_servers(deleted, timeout_seconds=0.2) == ()


async def test_certificates_are_read_once_for_all_servers_and_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading them takes 20 ms in which the API answers nobody."""
    reads: list[object] = []
    context = ssl.create_default_context

    def create_default_context(*args: Any, **options: Any) -> ssl.SSLContext:
        reads.append(args)
        return context(*args, **options)

    monkeypatch.setattr(ssl, "create_default_context", create_default_context)
    load_ssl_context.cache_clear()
    await probe_model_servers({}, timeout_seconds=0.2)
    await probe_model_servers({}, timeout_seconds=0.2)
    assert len(reads) == 1


class Listing:
    """Answers every request with one JSON body; with None, never."""

    def __init__(self, body: object) -> None:
        self.body = body

    async def __aenter__(self) -> "Listing":
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        await self.server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if self.body is not None:
            body = json.dumps(self.body).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)
        else:
            await reader.read()
        writer.close()


async def test_all_of_it_comes_in_one_list() -> None:
    nobody = {"OLLAMA_API_BASE": "http://127.0.0.1:9", "HOSTED_VLLM_API_BASE": "http://127.0.0.1:9"}
    assert await discover_engines(nobody) == (*list_configured_engines(nobody), await probe_policy_engine({}))


async def test_the_policy_engine_is_listed_with_its_versions() -> None:
    async with Listing({"data": [{"id": "planner@1"}, {"id": "planner@2"}]}) as engine:
        policy_engine = await probe_policy_engine({"OFFING_ENGINE_URL": engine.url})
        text = await asyncio.to_thread(describe_policy_engine, engine.url, "")
    assert (policy_engine.name, policy_engine.available, policy_engine.models) == (
        "policy",
        True,
        ("planner@1", "planner@2"),
    )
    assert text == "planner@1, planner@2"


async def test_a_policy_engine_that_does_not_answer_is_listed_with_why() -> None:
    unset = await probe_policy_engine({})
    async with Listing("nonsense") as odd, Listing(None) as silent:
        results = [
            await probe_policy_engine({"OFFING_ENGINE_URL": one.url}, timeout_seconds=0.2) for one in (odd, silent)
        ]
    deleted = await probe_policy_engine({"OFFING_ENGINE_URL": "unix:///nowhere/sock"})
    assert not any(one.available for one in (unset, *results, deleted))
    assert "OFFING_ENGINE_URL" in unset.note
    assert "not a policy engine" in results[0].note
    assert "0.2 s" in results[1].note
    assert "does not respond" in deleted.note
    with pytest.raises(Unavailable, match="does not respond"):
        await asyncio.to_thread(describe_policy_engine, "unix:///nowhere/sock", "")


def test_roles_get_their_own_variable_and_the_rest_the_general_one() -> None:
    env = {
        "OFFING_DEFAULT_ENGINE": "litellm:openai/a",
        "OFFING_ENGINE_FOR_QUERY_ANALYSIS": "litellm:openai/b@0.5",
        "OFFING_ENGINE_FOR_VERIFIER": "",
        "OFFING_ALLOWED_ENGINE_URLS": "http://10.0.0.5:8000",
    }
    assert default_engine_config(env) == EngineConfig(engine="litellm", model="openai/a")
    assert role_engine_configs(env) == {
        "query_analysis": EngineConfig(engine="litellm", model="openai/b", temperature=0.5)
    }
    assert (default_engine_config({}), role_engine_configs({})) == (EngineConfig(), {})


@pytest.mark.parametrize("text", ["oracle", "litellm", "litellm:", ":x"])
def test_an_unusable_value_is_rejected_by_its_variable(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        role_engine_configs({"OFFING_ENGINE_FOR_PLANNER": text})
    assert caught.value.field == "OFFING_ENGINE_FOR_PLANNER"
    assert "litellm:provider/model" in caught.value.remedy
    with pytest.raises(InvalidInput, match="OFFING_DEFAULT_ENGINE"):
        default_engine_config({"OFFING_DEFAULT_ENGINE": text})
    with pytest.raises(InvalidInput, match="--engine"):
        parse_engine_config(text, "--engine")


def test_looking_around_imports_no_litellm() -> None:
    code = (
        "import sys; from offing.models.engine_discovery import list_configured_engines;"
        "from offing.models.engine import create_engine; from offing.core.model import EngineConfig;"
        "list_configured_engines({'OPENAI_API_KEY': 'x'}); create_engine(EngineConfig(engine='litellm', model='a/b'));"
        "assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(p for p in sys.path if p)})


@pytest.mark.parametrize(
    ("text", "model", "temperature"),
    [
        ("litellm:openai/a@0", "openai/a", 0.0),
        ("litellm:openai/a@1.5", "openai/a", 1.5),
        ("litellm:vertex_ai/claude@20250620", "vertex_ai/claude@20250620", None),
        ("litellm:vertex_ai/claude@20250620@0.2", "vertex_ai/claude@20250620", 0.2),
    ],
)
def test_only_a_number_up_to_two_after_the_last_at_is_a_temperature(
    text: str, model: str, temperature: float | None
) -> None:
    expected = EngineConfig(engine="litellm", model=model, temperature=temperature)
    assert parse_engine_config(text, "--engine") == expected


async def test_llama_cpp_and_lm_studio_are_found_as_well() -> None:
    async with Listing({"data": [{"id": "qwen3-8b"}]}) as llama, Listing({"data": [{"id": "gemma"}]}) as studio:
        env = {"LLAMAFILE_API_BASE": f"{llama.url}/v1", "LM_STUDIO_API_BASE": f"{studio.url}/v1"}
        servers = {one.name: one for one in await probe_model_servers(env)}
    assert servers["litellm:llamafile"].models == ("llamafile/qwen3-8b",)
    assert servers["litellm:lm_studio"].models == ("lm_studio/gemma",)
