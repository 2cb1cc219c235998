"""A model server on this machine or a private network is asked when the operator has accepted it, and not before."""

import errno
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineConfig, EngineFailure, FailureKind
from offing.models.accepted_servers import (
    ACCEPTED_SERVERS_VARIABLE,
    accept_server,
    find_servers_file,
    is_accepted,
    list_accepted_servers,
    withdraw_server,
)
from offing.models.api_base import parse_api_base
from offing.models.credentials import LOCAL_API_BASES, PLACEHOLDER_KEY, EngineEndpoint, resolve_endpoint
from offing.models.engine_discovery import DiscoveredEngine, probe_model_servers
from offing.models.litellm_client import get_litellm
from offing.models.policy_engine import PolicyEngine
from tests.model_provider import Completion, Fault, WireServer, scripted
from tests.model_provider.policy_server import Policies, says
from tests.models.builders import GOOD, Time, answered, choice, failed, litellm_engine, request
from tests.models.test_policy_engine import small
from tests.unit.models.test_engine_discovery import Listing

SECRET = "what-a-service-of-mine-says"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"OFFING_HOME": str(tmp_path / "home")}


def to(base: str, env: dict[str, str]) -> EngineEndpoint | EngineFailure:
    return resolve_endpoint(EngineConfig(engine="litellm", model="openai/x", api_base=base), env)


async def test_a_port_of_this_machine_is_asked_only_after_it_was_accepted(env: dict[str, str]) -> None:
    async with WireServer(scripted(Fault(400, SECRET), Completion(GOOD)), accepted=False) as server:
        rejected = await failed(litellm_engine(env=env | {ACCEPTED_SERVERS_VARIABLE: ""}), request(choice(server.url)))
        assert server.requests == []
        accept_server(env, server.url)
        message = await failed(litellm_engine(env=env | {ACCEPTED_SERVERS_VARIABLE: ""}), request(choice(server.url)))
        await answered(litellm_engine(env=env | {ACCEPTED_SERVERS_VARIABLE: ""}), request(choice(server.url)))
    assert rejected.kind is FailureKind.BAD_REQUEST
    assert SECRET not in repr(rejected)
    assert "offing engine accept" in rejected.message
    assert SECRET in message.message
    assert server.requests[0].headers["authorization"] == f"Bearer {PLACEHOLDER_KEY}"


async def test_a_policy_server_is_asked_only_after_it_was_accepted(env: dict[str, str]) -> None:
    async with WireServer(Policies(says(GOOD)), accepted=False) as server:
        time = Time()
        engine = PolicyEngine(env | {"OFFING_ENGINE_KEY": "k"}, sleep=time.sleep, clock=time.clock)
        rejected = await failed(engine, request(small(api_base=server.url)))
        assert server.requests == []
        accept_server(env, server.url)
        await answered(engine, request(small(api_base=server.url)))
    assert "offing engine accept" in rejected.message
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    "base",
    [
        "http://127.0.0.1:9099/v1",
        "http://localhost:9099",
        "http://[::1]:9099",
        "http://127.8.8.8:9099",
        "http://0.0.0.0:9099",
        "http://10.0.0.5:8000/v1",
        "http://192.168.1.7:8000",
        "http://169.254.169.254/latest",
        "http://[fd00::1]:8000",
        "http://gpu.internal:8000",
    ],
)
def test_no_address_is_allowed_by_being_near(base: str, env: dict[str, str]) -> None:
    rejection = to(base, env)
    assert isinstance(rejection, EngineFailure)
    assert rejection.message.startswith("api_base:")
    accept_server(env, base)
    assert to(base, env) == EngineEndpoint(base, PLACEHOLDER_KEY, keyless=True)
    assert withdraw_server(env, base)
    assert isinstance(to(base, env), EngineFailure)


def test_on_this_machine_a_port_is_accepted_and_elsewhere_a_path(env: dict[str, str]) -> None:
    accept_server(env, "http://localhost:11434/v1")
    accept_server(env, "http://gpu.internal:8000/team-a/")
    assert isinstance(to("http://127.0.0.1:11434", env), EngineEndpoint)
    assert isinstance(to("http://[::1]:11434/api", env), EngineEndpoint)
    assert isinstance(to("http://127.0.0.1:11435", env), EngineFailure)
    assert isinstance(to("https://127.0.0.1:11434", env), EngineFailure)
    assert isinstance(to("http://gpu.internal:8000/team-a/v1", env), EngineEndpoint)
    assert isinstance(to("http://gpu.internal:8000/team-b", env), EngineFailure)


@pytest.mark.parametrize("provider", sorted(LOCAL_API_BASES))
def test_a_provider_that_listens_on_this_machine_waits_for_acceptance_too(provider: str, env: dict[str, str]) -> None:
    named = EngineConfig(engine="litellm", model=f"{provider}/qwen3")
    rejection = resolve_endpoint(named, env)
    assert isinstance(rejection, EngineFailure)
    assert rejection.message.startswith("model:")
    assert f"offing engine accept {LOCAL_API_BASES[provider]}" in rejection.message
    accept_server(env, LOCAL_API_BASES[provider])
    assert resolve_endpoint(named, env) == EngineEndpoint(LOCAL_API_BASES[provider], PLACEHOLDER_KEY, keyless=True)


async def test_no_other_provider_of_litellm_is_called_on_this_machine_by_default() -> None:
    litellm = await get_litellm()
    for provider in {str(getattr(one, "value", one)) for one in litellm.provider_list} - LOCAL_API_BASES.keys():
        try:
            base = litellm.get_llm_provider(f"{provider}/some-model")[3]
        except litellm.exceptions.BadRequestError:
            continue
        api_base = parse_api_base(base or "https://elsewhere.example")
        assert api_base is None or not api_base.host.startswith(("127.", "localhost", "0.0.0.0")), (provider, base)


@pytest.mark.parametrize(
    "named",
    [
        {"OPENAI_API_BASE": "http://127.0.0.1:9099/v1"},
        {"OPENAI_BASE_URL": "http://127.0.0.1:9099/v1"},
        {"OFFING_ALLOWED_ENGINE_URLS": "http://127.0.0.1:9099"},
    ],
)
def test_what_the_environment_names_is_accepted_by_that(named: dict[str, str], env: dict[str, str]) -> None:
    assert to("http://127.0.0.1:9099/v1", env | named) == EngineEndpoint("http://127.0.0.1:9099/v1", PLACEHOLDER_KEY)


@pytest.mark.parametrize("variable", ["OLLAMA_API_BASE", "OLLAMA_BASE_URL"])
@pytest.mark.parametrize("model", ["ollama/qwen3", "ollama_chat/qwen3"])
def test_an_ollama_that_the_environment_names_is_the_one_that_is_asked(
    model: str, variable: str, env: dict[str, str]
) -> None:
    """litellm reads one of the two variables, and would ask this machine's usual port where the other is set."""
    there = "http://10.0.0.7:11434"
    named = env | {variable: there, "OLLAMA_API_KEY": "k"}
    assert resolve_endpoint(EngineConfig(engine="litellm", model=model), named) == EngineEndpoint(there, "k")
    assert resolve_endpoint(EngineConfig(engine="litellm", model=model, api_base=there), named) == EngineEndpoint(
        there, "k"
    )


@pytest.mark.parametrize(
    "provider", ["databricks", "azure", "watsonx", "gigachat", "bedrock", "vertex_ai", "predibase"]
)
def test_a_provider_with_further_secrets_is_not_asked_at_a_server_that_was_only_accepted(
    provider: str, env: dict[str, str]
) -> None:
    accept_server(env, "http://127.0.0.1:11434")
    named = EngineConfig(engine="litellm", model=f"{provider}/x", api_base="http://127.0.0.1:11434/v1")
    own = {f"{provider.upper()}_API_BASE": "http://127.0.0.1:11434"}
    rejection = resolve_endpoint(named, env)
    assert isinstance(rejection, EngineFailure)
    assert rejection.message.startswith("api_base: ")
    assert f"Use openai/MODEL for a server with OpenAI's API, or set {next(iter(own))}" in rejection.message
    assert isinstance(resolve_endpoint(named, env | own), EngineEndpoint)


def test_a_secret_that_goes_to_the_root_of_a_server_goes_where_its_own_variable_says(env: dict[str, str]) -> None:
    listed = {"OFFING_ALLOWED_ENGINE_URLS": "http://10.0.0.5:8000/team-a"}
    named = EngineConfig(engine="litellm", model="databricks/x", api_base="http://10.0.0.5:8000/team-a")
    assert isinstance(resolve_endpoint(named, env | listed), EngineFailure)


async def test_a_server_that_is_found_is_offered_and_nothing_of_it_is_shown(env: dict[str, str]) -> None:
    async with Listing({"models": [{"name": SECRET}]}) as ollama:
        prompt = env | {"OLLAMA_API_BASE": "", "HOSTED_VLLM_API_BASE": "http://127.0.0.1:9"}
        offered = await probe_at(ollama.url, prompt)
        accept_server(env, ollama.url)
        accepted = await probe_at(ollama.url, prompt)
    assert (offered.available, offered.models, offered.offered_at) == (False, (), ollama.url)
    assert f"offing engine accept {ollama.url}" in offered.note
    assert SECRET not in repr(offered)
    assert (accepted.available, accepted.models, accepted.offered_at) == (True, (f"ollama_chat/{SECRET}",), "")


async def test_the_ollama_that_runs_ask_is_the_one_that_is_found(env: dict[str, str]) -> None:
    async with Listing({"models": [{"name": "qwen3"}]}) as ollama:
        model_servers = await probe_model_servers(env | {"OLLAMA_BASE_URL": ollama.url}, timeout_seconds=20)
    assert [one.note for one in model_servers if one.models == ("ollama_chat/qwen3",)] == [f"Responds at {ollama.url}."]


async def probe_at(url: str, env: dict[str, str]) -> DiscoveredEngine:
    """The Ollama that is found, where `url` is the place at which one listens by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LOCAL_API_BASES, "ollama_chat", url)
        return next(
            one for one in await probe_model_servers(env, timeout_seconds=20) if one.name == "litellm:ollama_chat"
        )


def test_a_file_that_others_may_write_is_not_believed(env: dict[str, str]) -> None:
    accept_server(env, "http://127.0.0.1:9099")
    file = find_servers_file(env)
    assert file is not None
    assert file.stat().st_mode & 0o077 == 0
    file.chmod(0o666)
    with pytest.raises(Conflict, match="chmod 600"):
        list_accepted_servers(env)
    rejection = to("http://127.0.0.1:9099", env)
    assert isinstance(rejection, EngineFailure)
    assert "chmod 600" in rejection.message


def test_a_file_that_cannot_be_read_is_rejected_with_its_owner_and_the_remedy(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    accept_server(env, "http://127.0.0.1:9099")

    def closed(_: Path, **__: str) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", closed)
    rejection = to("http://127.0.0.1:9099", env)
    assert isinstance(rejection, EngineFailure)
    owner = pwd.getpwuid(os.geteuid()).pw_name
    assert f"cannot be used: Permission denied. {find_servers_file(env)} belongs to {owner}." in rejection.message
    assert f"chown {os.geteuid()} {find_servers_file(env)}" in rejection.message
    with pytest.raises(Conflict, match="Permission denied"):
        accept_server(env, "http://127.0.0.1:9100")


def test_a_file_that_is_no_text_is_rejected(env: dict[str, str]) -> None:
    accept_server(env, "http://127.0.0.1:9099")
    file = find_servers_file(env)
    assert file is not None
    file.write_bytes(b"\xff\xfe\x00")
    rejection = to("http://127.0.0.1:9099", env)
    assert isinstance(rejection, EngineFailure)
    assert "is not UTF-8 text. Delete it" in rejection.message


def test_a_file_of_another_user_is_named_as_that(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    accept_server(env, "http://127.0.0.1:9099")
    file, result = find_servers_file(env), os.geteuid()
    assert file is not None
    if result == 0:
        os.chown(file, 54321, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: result + 1)
    with pytest.raises(Conflict, match=r"belongs to another user, .*chown") as error:
        list_accepted_servers(env)
    assert "chmod" not in str(error.value)


def test_servers_that_are_accepted_at_the_same_time_are_all_kept(env: dict[str, str]) -> None:
    code = "import sys; from offing.models.accepted_servers import accept_server\n"
    code += "for port in sys.argv[2:]: accept_server({'OFFING_HOME': sys.argv[1]}, f'http://127.0.0.1:{port}')"
    ports = [[str(9000 + 40 * process + count) for count in range(40)] for process in range(4)]
    running = [subprocess.Popen([sys.executable, "-c", code, env["OFFING_HOME"], *some]) for some in ports]
    assert [process.wait(60) for process in running] == [0] * 4
    assert {server.port for server in list_accepted_servers(env)} == {int(port) for some in ports for port in some}


def test_a_line_that_is_no_address_is_named(env: dict[str, str]) -> None:
    accept_server(env, "http://127.0.0.1:9099")
    file = find_servers_file(env)
    assert file is not None
    file.write_text(file.read_text() + "http://u:p@gpu.internal\n")
    with pytest.raises(InvalidInput, match="engine-servers"):
        list_accepted_servers(env)
    for nonsense in ("11434", "localhost:11434", "http://a/?q", "unix:///run/x.sock", ""):
        with pytest.raises(InvalidInput, match="ADDRESS"):
            accept_server({"OFFING_HOME": env["OFFING_HOME"] + "-2"}, nonsense)


def test_one_file_can_be_named_for_several_machines(env: dict[str, str], tmp_path: Path) -> None:
    shared = {ACCEPTED_SERVERS_VARIABLE: str(tmp_path / "shared")}
    accept_server(env | shared, "http://10.0.0.5:8000")
    base = parse_api_base("http://10.0.0.5:8000/v1")
    assert base is not None
    assert is_accepted(base, shared)
    assert not is_accepted(base, env)
    assert find_servers_file({}) is None
    assert find_servers_file(os.environ) is not None
