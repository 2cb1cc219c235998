"""A stored key goes to the address that its owner named, alone, and before the keys of the environment."""

import re
import socket
from pathlib import Path
from typing import Any

import pytest

from offing.core.model import EngineConfig, EngineFailure, FailureKind
from offing.models.accepted_servers import accept_server
from offing.models.credentials import KEY_VARIABLES, PLACEHOLDER_KEY, EngineEndpoint, find_base_variable
from offing.models.engine import RoleRequest
from offing.models.litellm_client import get_litellm
from offing.models.stored_provider import (
    STORABLE_PROVIDERS,
    StoredProvider,
    resolve_stored_endpoint,
)
from offing.telemetry.redaction import remember_secret
from tests.model_provider import Completion, Fault, WireServer, scripted
from tests.models.builders import GOOD, answered, choice, failed, litellm_engine, request
from tests.models.test_redirects import arrived, canaries, secrets

__all__ = ["canaries", "secrets"]  # fixtures

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore:Unclosed:ResourceWarning")

KEY = "stored-key-of-a-tenant"


def through(provider: StoredProvider | EngineFailure | None, chosen: EngineConfig) -> RoleRequest:
    async def find(name: str) -> StoredProvider | EngineFailure | None:
        if isinstance(provider, StoredProvider):
            remember_secret(provider.api_key)
        return provider if isinstance(provider, EngineFailure) or (provider and provider.name == name) else None

    base = request(chosen)
    return RoleRequest(base.role, base.inputs, chosen, 1, 7, base.meter, find_provider=find)


def named(model: str, **more: Any) -> EngineConfig:
    return choice("", model=model, **more)


async def test_a_stored_key_takes_precedence_over_that_of_the_environment() -> None:
    async with WireServer(scripted(Completion(GOOD))) as server:
        env = {"OPENAI_API_KEY": "of-the-environment", "OPENAI_API_BASE": server.url}
        provider = StoredProvider("openai", "openai", server.url, KEY)
        await answered(litellm_engine(env=env), through(provider, named("openai/gpt-4o-mini")))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_name_of_one_s_own_stands_for_a_server_of_one_s_own() -> None:
    async with WireServer(scripted(Completion(GOOD), Completion(GOOD))) as server:
        keyed = StoredProvider("work", "hosted_vllm", server.url, KEY)
        response = await answered(litellm_engine(), through(keyed, named("work/qwen3")))
        await answered(litellm_engine(), through(StoredProvider("work", "hosted_vllm", server.url), named("work/q")))
    assert response.model == "hosted_vllm/qwen3"
    assert server.bodies[0]["model"] == "qwen3"
    assert [one.headers["authorization"] for one in server.requests] == [f"Bearer {KEY}", f"Bearer {PLACEHOLDER_KEY}"]


async def test_a_stored_key_does_not_go_to_another_address_that_a_run_names() -> None:
    async with WireServer(scripted(Completion(GOOD))) as elsewhere:
        provider = StoredProvider("openai", "openai", "", KEY)
        await answered(litellm_engine(), through(provider, named("openai/gpt-4o-mini", api_base=elsewhere.url)))
    assert KEY not in str(elsewhere.requests)
    assert elsewhere.requests[0].headers["authorization"] == f"Bearer {PLACEHOLDER_KEY}"


async def test_a_stored_key_does_not_follow_a_variable_to_another_address() -> None:
    async with WireServer(scripted(Completion(GOOD))) as elsewhere:
        env = {"OPENAI_API_BASE": elsewhere.url}
        provider = StoredProvider("openai", "openai", "", KEY)
        failure = await failed(litellm_engine(env=env), through(provider, named("openai/gpt-4o-mini")))
    assert elsewhere.requests == []
    assert failure.kind is FailureKind.BAD_REQUEST
    assert "OPENAI_API_BASE" in failure.message


async def test_an_address_that_the_operator_withdraws_is_called_no_more(tmp_path: Path) -> None:
    env = {"OFFING_HOME": str(tmp_path)}
    provider = StoredProvider("work", "openai", "http://127.0.0.1:9099/v1", KEY)
    config = EngineConfig(engine="litellm", model="work/x")
    assert isinstance(resolve_stored_endpoint(config, provider, env)[1], EngineFailure)
    accept_server(env, "http://127.0.0.1:9099/v1")
    renamed, endpoint = resolve_stored_endpoint(config, provider, env)
    assert renamed.model == "openai/x"
    assert isinstance(endpoint, EngineEndpoint)
    assert endpoint.api_key == KEY
    assert KEY not in repr(endpoint)


async def test_a_provider_that_repeats_the_key_leaves_it_in_no_failure_and_no_answer() -> None:
    echo = Completion(f'{{"analysis": "your key is {KEY}", "stop": true}}')
    async with WireServer(scripted(Fault(401, f"Incorrect API key provided: {KEY}"), echo)) as server:
        provider = StoredProvider("work", "openai", server.url, KEY)
        role_request = through(provider, named("work/gpt-4o-mini"))
        failure = await failed(litellm_engine(), role_request)
        response = await answered(litellm_engine(), role_request)
    assert KEY not in repr(failure) + repr(response)
    assert "offing provider add work" in failure.message
    assert "[redacted]" in response.text


async def test_a_failure_to_decrypt_is_the_failure_of_the_call() -> None:
    problem = EngineFailure(FailureKind.AUTHENTICATION_FAILED, "The key cannot be used.")
    failure = await failed(litellm_engine(), through(problem, named("openai/gpt-4o-mini")))
    assert failure.message == problem.message


async def test_no_secret_of_the_environment_goes_where_a_stored_key_goes(secrets: dict[str, str]) -> None:
    """Through every provider that can be stored, of the environment with more than 200 marked values."""
    reached = set[str]()
    for kind in sorted(STORABLE_PROVIDERS):
        async with WireServer(lambda _: Fault(500)) as server:
            provider = StoredProvider(kind, kind, server.url, KEY)
            chosen = named(f"{kind}/some-model", options={"output_mode": "text"}, timeout_seconds=60)
            await failed(litellm_engine(env=secrets), through(provider, chosen))
            assert arrived(server.requests) == set(), kind
            assert all(KEY in str(one.headers) + one.path for one in server.requests), kind
            reached |= {kind} if server.requests else set()
    assert reached == STORABLE_PROVIDERS


BASE_READ = re.compile(r"""["']([A-Z][A-Z0-9_]*(?:_BASE|_URL|_ENDPOINT|_HOST))["']""")
"""Names under which litellm may read an address."""


def list_variables(folder: Path) -> set[str]:
    sources = [file.read_text(encoding="utf-8") for file in folder.rglob("*.py")]
    return {name for text in sources for name in BASE_READ.findall(text)}


async def test_no_variable_that_litellm_reads_leads_a_stored_key_to_another_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A variable with a provider's address is refused. With all others set, the key goes to the provider's own."""
    litellm, hosts = await get_litellm(), list[str]()
    variables = list_variables(Path(litellm.__path__[0]))
    assert {"OPENAI_BASE_URL", "MISTRAL_AZURE_API_BASE", "ANTHROPIC_API_BASE"} <= variables

    def nowhere(host: Any, *_: Any, **__: Any) -> Any:
        hosts.append(host.decode() if isinstance(host, bytes) else host)
        raise socket.gaierror(socket.EAI_NONAME, "no way out of a test")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    own = set[str]()
    for kind in sorted(set(KEY_VARIABLES)):
        assert find_base_variable(kind, dict.fromkeys(variables, "http://elsewhere.example/v1")) is not None
        for name in variables:
            monkeypatch.delenv(name, raising=False)
            if find_base_variable(kind, {name: "http://elsewhere.example/v1"}) is None:
                monkeypatch.setenv(name, "http://elsewhere.example/v1")
        hosts.clear()
        chosen = named(f"{kind}/some-model", options={"output_mode": "text"})
        await failed(litellm_engine(), through(StoredProvider(kind, kind, "", KEY), chosen))
        assert hosts, kind
        assert "elsewhere.example" not in hosts, kind
        own |= set(hosts)
    assert len(own) == len(KEY_VARIABLES), own
