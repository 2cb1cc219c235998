"""A provider that answers with a redirect: nothing follows it, by any route, and the failure says what to do.

And what arrives at a server that was only accepted: nothing of any account that the environment holds.
"""

import asyncio
import gc
import re
import socket
from base64 import b64decode
from collections.abc import AsyncGenerator, Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from offing.core.model import FailureKind
from offing.models.credentials import KEYLESS_PROVIDERS, LOCAL_API_BASES
from offing.models.litellm_client import get_litellm
from offing.models.litellm_redirects import collect_rejected_redirects
from offing.models.policy_engine import PolicyEngine
from tests.model_provider import Fault, Received, WireServer
from tests.models.builders import Time, choice, failed, litellm_engine, request
from tests.models.test_policy_engine import small

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore:Unclosed:ResourceWarning")

KEY = "canary-key-of-mine"
ROUTES = (
    "openai/gpt-4o-mini",
    "anthropic/claude-sonnet-4-5",
    "azure/gpt-4o",
    "azure_ai/some-model",
    "gemini/gemini-2.5-flash",
    "mistral/mistral-small",
    "cohere/command-r",
    "groq/llama",
    "huggingface/some/model",
    "text-completion-openai/gpt-3.5-turbo-instruct",
    "ollama/qwen3",
    "ollama_chat/qwen3",
    "hosted_vllm/qwen3",
    "lm_studio/qwen3",
)
OTHER_CLIENTS = frozenset({"aiohttp_openai"})
"""Rejected before anything is sent."""
ELSEWHERE = frozenset({"bytez", "replicate", "gigachat", "watsonx_text"})
"""Providers that litellm asks at their own address whatever base it is given; a test reaches nobody outside."""
INTERACTIVE = frozenset({"github_copilot", "chatgpt", "codex"})
IN_PROCESS = frozenset({"petals", "vllm"})
NO_LIMIT = frozenset({"langflow", "langgraph"})
"""litellm takes no limit on tokens for these, which every call of ours has."""
NO_CHAT = frozenset({"infinity"})
"""Providers of embeddings and rerankers alone."""


@pytest.fixture(autouse=True, scope="module")
def frozen() -> Generator[None]:
    """What is there before stays out of the collections after each test, which take most of the time else."""
    asyncio.run(get_litellm())
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
async def tidy() -> AsyncGenerator[None]:
    """litellm keeps clients until their loop is gone, and some are never closed: here, and not in another test."""
    yield
    await (await get_litellm()).close_litellm_async_clients()
    gc.collect()


def redirecting(to: WireServer, status: int = 307, place: str = "chat/completions") -> WireServer:
    return WireServer(lambda _request: Fault(status, headers={"location": f"{to.url}/{place}"}))


def describe_requests(received: list[Received]) -> str:
    return str([(one.path, dict(one.headers), one.raw) for one in received])


READ = re.compile(r"""(?:environ(?:\.get)?|getenv|get_secret(?:_str|_bool)?)\s*[(\[]\s*["']([A-Z][A-Z0-9_]+)["']""")
SECRET = re.compile(
    "KEY|TOKEN|SECRET|PASS|USER|CREDENTIAL|CLIENT|AUTH|ORG|PROJECT|HEADERS|ACCOUNT|TENANT|ROLE|SESSION|JWT|_ID$"
)
NO_SECRET = re.compile("_(DIR|PATH|FILE|URL|LIMIT|TTL|SIZE|COUNT|INTERVAL)$|MAX_|TOKENS|DEFAULT_|^LITELLM_|AGENT")


def variables() -> set[str]:
    """Names under which the installed litellm and openai read whatever may be a secret or say whose an account is."""
    results = set[str]()
    for name in ("litellm", "openai"):
        spec = find_spec(name)
        assert spec is not None
        assert spec.submodule_search_locations
        for file in Path(spec.submodule_search_locations[0]).rglob("*.py"):
            results |= set(READ.findall(file.read_text(encoding="utf-8")))
    return {name for name in results if SECRET.search(name) and not NO_SECRET.search(name)}


@pytest.fixture(scope="module")
def canaries() -> dict[str, str]:
    """A value for each, by which it is known again wherever it arrives."""
    results = {name: f"canary-{name}" for name in variables()}
    assert len(results) > 200, "litellm reads its environment in another way than it did"
    assert {"DATABRICKS_CLIENT_SECRET", "AZURE_OPENAI_AD_TOKEN", "AZURE_PASSWORD", "OPENAI_ORG_ID"} <= results.keys()
    return results | {"OPENAI_CUSTOM_HEADERS": "X-Canary: canary-OPENAI_CUSTOM_HEADERS"}


@pytest.fixture
def secrets(canaries: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """All of them in the environment, on a machine without a way out: they lead some providers to their own servers."""
    for name, value in canaries.items():
        monkeypatch.setenv(name, value)
    look_up = socket.getaddrinfo

    def near(host: Any, *more: Any, **named: Any) -> Any:
        if host not in ("127.0.0.1", b"127.0.0.1", None):
            raise socket.gaierror(socket.EAI_NONAME, "no way out of a test")
        return look_up(host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", near)
    return canaries


def arrived(received: list[Received]) -> set[str]:
    text = describe_requests(received)
    words = [b64decode(word).decode("latin-1") for word in re.findall(r"Basic ([A-Za-z0-9+/]+=*)", text)]
    return set(re.findall(r"canary-\w+", " ".join([text, *words])))


async def test_no_secret_of_the_environment_arrives_at_a_server_that_was_only_accepted(secrets: dict[str, str]) -> None:
    """Through every provider: most are rejected there, and the others say nothing of whose request it is."""
    litellm, requests = await get_litellm(), set[str]()
    providers = {str(getattr(one, "value", one)) for one in litellm.provider_list}
    async with WireServer(lambda _: Fault(500)) as elsewhere:
        for provider in sorted(providers | KEYLESS_PROVIDERS):
            async with redirecting(elsewhere) as named:
                chosen = choice(
                    named.url, model=f"{provider}/some-model", options={"output_mode": "text"}, timeout_seconds=60
                )
                failure = await failed(litellm_engine(env=secrets), request(chosen))
                assert arrived(named.requests) == set(), provider
                assert failure.kind is FailureKind.BAD_REQUEST, failure
                requests |= {provider} if named.requests else set()
        assert elsewhere.requests == []
    assert requests == KEYLESS_PROVIDERS & providers - NO_LIMIT - NO_CHAT


@pytest.mark.usefixtures("secrets")
async def test_no_secret_of_the_environment_follows_a_redirect_of_the_operator_s_own_server() -> None:
    """Also where litellm asks for a token first, with another client."""
    litellm, at_once = await get_litellm(), asyncio.Semaphore(8)
    providers = {str(getattr(one, "value", one)) for one in litellm.provider_list}

    async def arrived_by(provider: str, elsewhere: WireServer) -> set[str]:
        async with at_once, redirecting(elsewhere, place=f"{provider}/chat/completions") as named:
            with collect_rejected_redirects():
                await _complete(litellm, provider, named.url, stream=False)
            return arrived(named.requests)

    async with WireServer(lambda _: Fault(500)) as elsewhere:
        tried = sorted(providers - OTHER_CLIENTS - INTERACTIVE - IN_PROCESS)
        result = set[str]().union(*await asyncio.gather(*(arrived_by(provider, elsewhere) for provider in tried)))
        assert elsewhere.requests == [], f"followed: {[one.path for one in elsewhere.requests]}"
    assert "canary-DATABRICKS_CLIENT_SECRET" in result, "litellm asks for this token in another way than it did"


@pytest.mark.parametrize("provider", sorted(LOCAL_API_BASES.keys() - NO_LIMIT - NO_CHAT))
async def test_nobody_is_asked_what_a_model_can_do(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """litellm asked Ollama's usual address for it, with the key, wherever the call itself went."""
    litellm, requests = await get_litellm(), list[str]()

    def noted(url: str, **_: Any) -> None:
        requests.append(url)

    for verb in ("get", "post"):
        monkeypatch.setattr(litellm.module_level_client, verb, noted)
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)
    async with WireServer(lambda _: Fault(400)) as named:
        await failed(litellm_engine(), request(choice(named.url, model=f"{provider}/some-model")))
    assert requests == []
    assert len(named.requests) == 1


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ROUTES)
async def test_a_redirect_is_not_followed_and_says_what_to_do(model: str, stream: bool, status: int) -> None:
    async with WireServer(lambda _: Fault(500)) as elsewhere, redirecting(elsewhere, status) as named:
        env = {"OFFING_ALLOWED_ENGINE_URLS": named.url, f"{model.partition('/')[0].upper()}_API_KEY": KEY}
        options = {"stream": stream, "output_mode": "text"}
        chosen = choice(named.url, model=model, options=options, timeout_seconds=60)
        failure, position = await failed(litellm_engine(env=env), request(chosen)), elsewhere.url.removesuffix("/v1")
    assert named.requests, failure
    assert elsewhere.requests == []
    assert (failure.kind, len(failure.attempts)) == (FailureKind.BAD_REQUEST, 1)
    assert "redirect" in failure.message
    assert position in failure.message
    assert KEY not in repr(failure)


async def test_a_redirect_at_the_address_of_the_environment_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with WireServer(lambda _: Fault(500)) as elsewhere, redirecting(elsewhere) as named:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_API_BASE", named.url)
        failure = await failed(litellm_engine(), request(choice("")))
    assert KEY in describe_requests(named.requests)
    assert elsewhere.requests == []
    assert failure.kind is FailureKind.BAD_REQUEST


async def test_no_provider_that_litellm_knows_is_followed_to_another_address() -> None:
    """Also those that nobody thought of, and both ways in which litellm asks."""
    litellm, at_once = await get_litellm(), asyncio.Semaphore(8)
    providers = {str(getattr(one, "value", one)) for one in litellm.provider_list}

    async def asked_by(provider: str, elsewhere: WireServer) -> bool:
        async with at_once, redirecting(elsewhere, place=f"{provider}/chat/completions") as named:
            for stream in (False, True):
                await _complete(litellm, provider, named.url, stream)
            return bool(named.requests)

    async with WireServer(lambda _: Fault(500)) as elsewhere:
        tried = sorted(providers - OTHER_CLIENTS - ELSEWHERE - INTERACTIVE - IN_PROCESS)
        requests = await asyncio.gather(*(asked_by(provider, elsewhere) for provider in tried))
        assert elsewhere.requests == [], f"followed: {[one.path for one in elsewhere.requests]}"
    assert sum(requests) > 90, "litellm asks fewer providers here than it did"


async def _complete(litellm: Any, provider: str, base: str, stream: bool) -> None:
    inputs: dict[str, Any] = {
        "model": f"{provider}/some-model",
        "messages": [{"role": "user", "content": "hello"}],
        "api_base": base,
        "api_key": KEY,
        "stream": stream,
        "timeout": 20,
        "num_retries": 0,
        "max_retries": 0,
    }
    try:
        answer = await litellm.acompletion(**inputs)
        async for _ in answer:
            pass
    except Exception:  # each provider has its own way to say that it got no answer
        return


@pytest.mark.parametrize("model", ["openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5", "ollama_chat/qwen3"])
async def test_litellm_s_calls_that_block_follow_none_either(model: str) -> None:
    litellm = await get_litellm()
    async with WireServer(lambda _: Fault(500)) as elsewhere, redirecting(elsewhere) as named:
        inputs: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], "max_retries": 0, "timeout": 20}
        with pytest.raises(Exception, match=r"redirect|Connection error"):
            await asyncio.to_thread(litellm.completion, model=model, api_base=named.url, api_key=KEY, **inputs)
    assert named.requests
    assert elsewhere.requests == []


@pytest.mark.parametrize("model", ["aiohttp_openai/some-model"])
async def test_a_provider_whose_client_follows_redirects_is_rejected(model: str) -> None:
    async with WireServer(lambda _: Fault(500)) as named:
        env = {"OFFING_ALLOWED_ENGINE_URLS": named.url}
        failure = await failed(litellm_engine(env=env), request(choice(named.url, model=model)))
    assert failure.kind is FailureKind.BAD_REQUEST
    assert named.requests == []


async def test_the_policy_engine_s_key_follows_no_redirect() -> None:
    async with WireServer(lambda _: Fault(500)) as elsewhere, redirecting(elsewhere) as named:
        time, env = Time(), {"OFFING_ENGINE_URL": named.url, "OFFING_ENGINE_KEY": KEY}
        engine = PolicyEngine(env, sleep=time.sleep, random_float=lambda: 0.5, clock=time.clock)
        failure = await failed(engine, request(small()))
    assert KEY in describe_requests(named.requests)
    assert elsewhere.requests == []
    assert (failure.kind, len(failure.attempts)) == (FailureKind.BAD_REQUEST, 1)
    assert "redirect" in failure.message


@pytest.mark.parametrize(
    "name",
    [
        "../../../../team-b/gpt-4o",
        "a/../b",
        "..",
        "gpt%2f..%2f..",
        "https://elsewhere.example/x",
        "a\\..\\b",
        "a?b",
        "a#",
    ],
)
@pytest.mark.parametrize("provider", ["azure", "gemini", "huggingface", "openai"])
async def test_a_model_s_name_leads_to_no_other_path(provider: str, name: str) -> None:
    """Azure and Gemini have the model in the path: dots in it led out of the base that may be named."""
    async with WireServer(lambda _: Fault(400)) as server:
        base = f"{server.url}/team-a"
        env = {"OFFING_ALLOWED_ENGINE_URLS": base, f"{provider.upper()}_API_KEY": KEY}
        failure = await failed(litellm_engine(env=env), request(choice(base, model=f"{provider}/{name}")))
    assert server.requests == []
    assert failure.kind is FailureKind.BAD_REQUEST
    assert failure.message.startswith("model:")
