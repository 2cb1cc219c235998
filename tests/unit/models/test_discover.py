"""What is found here, and what a role gets by default."""

import asyncio
import json
import subprocess
import sys

import pytest

from offing.core.errors import InvalidInput, Unavailable
from offing.core.model import EngineChoice
from offing.models.discover import (
    default_choice,
    engine_named,
    engines,
    engines_here,
    policy_answers,
    policy_here,
    role_choices,
    servers_here,
)


def test_extractive_is_always_usable_and_providers_are_by_their_key_s_name() -> None:
    found = {one.name: one for one in engines_here({"OPENAI_API_KEY": "canary-value", "ANTHROPIC_API_KEY": ""})}
    assert found["extractive"].available
    assert found["litellm:openai"].available
    assert "openai/gpt-4o-mini" in found["litellm:openai"].models
    assert not found["litellm:anthropic"].available
    assert "ANTHROPIC_API_KEY" in found["litellm:anthropic"].note
    assert "canary" not in repr(found)


async def test_servers_on_this_machine_are_asked_for_their_models() -> None:
    async with (
        Listing({"models": [{"name": "llama3.1:8b"}, {"odd": 1}]}) as ollama,
        Listing({"data": [{"id": "q"}]}) as vllm,
    ):
        env = {"OLLAMA_API_BASE": ollama.url, "HOSTED_VLLM_API_BASE": f"{vllm.url}/v1"}
        found = await servers_here(env)
    assert [one.models for one in found] == [("ollama_chat/llama3.1:8b",), ("hosted_vllm/q",)]


async def test_silence_nonsense_and_slowness_are_nothing_found() -> None:
    async with Listing("nonsense") as odd, Listing(None) as silent:
        env = {"OLLAMA_API_BASE": silent.url, "HOSTED_VLLM_API_BASE": odd.url}
        found = await servers_here(env, seconds=0.2)
    assert [one.models for one in found] == [()]
    gone = {"OLLAMA_API_BASE": silent.url, "HOSTED_VLLM_API_BASE": "http://[::1"}
    assert await servers_here(gone, seconds=0.2) == ()


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
    assert await engines(nobody) == (*engines_here(nobody), await policy_here({}))


async def test_the_policy_engine_is_listed_with_its_versions() -> None:
    async with Listing({"data": [{"id": "planner@1"}, {"id": "planner@2"}]}) as engine:
        found = await policy_here({"OFFING_ENGINE_URL": engine.url})
        said = await asyncio.to_thread(policy_answers, engine.url, "")
    assert (found.name, found.available, found.models) == ("policy", True, ("planner@1", "planner@2"))
    assert said == "planner@1, planner@2"


async def test_a_policy_engine_that_does_not_answer_is_listed_with_why() -> None:
    unset = await policy_here({})
    async with Listing("nonsense") as odd, Listing(None) as silent:
        found = [await policy_here({"OFFING_ENGINE_URL": one.url}, seconds=0.2) for one in (odd, silent)]
    gone = await policy_here({"OFFING_ENGINE_URL": "unix:///nowhere/sock"})
    assert not any(one.available for one in (unset, *found, gone))
    assert "OFFING_ENGINE_URL" in unset.note
    assert "no policy engine" in found[0].note
    assert "0.2 s" in found[1].note
    assert "does not answer" in gone.note
    with pytest.raises(Unavailable, match="does not answer"):
        await asyncio.to_thread(policy_answers, "unix:///nowhere/sock", "")


def test_roles_get_their_own_variable_and_the_rest_the_general_one() -> None:
    env = {
        "OFFING_ENGINE": "litellm:openai/a",
        "OFFING_ENGINE_QUERY_ANALYSIS": "litellm:openai/b@0.5",
        "OFFING_ENGINE_VERIFIER": "",
        "OFFING_ENGINE_ADDRESSES": "http://10.0.0.5:8000",
    }
    assert default_choice(env) == EngineChoice(engine="litellm", model="openai/a")
    assert role_choices(env) == {"query_analysis": EngineChoice(engine="litellm", model="openai/b", temperature=0.5)}
    assert (default_choice({}), role_choices({})) == (EngineChoice(), {})


@pytest.mark.parametrize("text", ["oracle", "litellm", "litellm:", ":x"])
def test_an_unusable_value_is_refused_by_its_variable(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        role_choices({"OFFING_ENGINE_PLANNER": text})
    assert caught.value.field == "OFFING_ENGINE_PLANNER"
    assert "litellm:provider/model" in caught.value.remedy
    with pytest.raises(InvalidInput, match="OFFING_ENGINE"):
        default_choice({"OFFING_ENGINE": text})
    with pytest.raises(InvalidInput, match="--engine"):
        engine_named(text, "--engine")


def test_looking_around_imports_no_litellm() -> None:
    code = (
        "import sys; from offing.models.discover import engines_here; from offing.models.engine import *;"
        "engines_here({'OPENAI_API_KEY': 'x'}); engine_for(EngineChoice(engine='litellm', model='a/b'));"
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
    expected = EngineChoice(engine="litellm", model=model, temperature=temperature)
    assert engine_named(text, "--engine") == expected
